"""Models served by the program, and a browser to look at them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import latentgp as lg
import numpy as np
import pytest
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).parent))
import chromium  # noqa: E402

SIZES = [pytest.param((1280, 800), id="wide"), pytest.param((390, 844), id="phone")]
#: Seconds that one test may take.
LIMIT = 240

program = os.environ.get("LATENTGP_PROGRAM")


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if chromium.PROGRAM is None:
                item.add_marker(pytest.mark.skip(reason="there is no chromium: install it to test the explorer"))
            elif program is None:
                item.add_marker(pytest.mark.skip(reason="LATENTGP_PROGRAM does not say where `latentgp` is"))


@pytest.fixture(autouse=True)
def limit():
    def late(*_):
        raise TimeoutError(f"the test took more than {LIMIT} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)


@pytest.fixture(scope="session")
def shots():
    """The folder that keeps what was seen."""
    folder = Path(program).resolve().parent.parent / "browser"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def browser():
    own = chromium.Browser()
    yield own
    own.close()


@pytest.fixture
def visit(browser):
    """Opens an address in a page of some size; what the page complains of fails the test."""
    pages = []

    def open_page(address, size=(1280, 800), **more):
        page = browser.page(*size, **more)
        pages.append(page)
        page.open(address)
        return page

    yield open_page
    for page in pages:
        # What happens at the end is heard too.
        page.eval("new Promise((done) => setTimeout(done, 150))")
        assert page.complaints == []
        away = [r for r in page.requests if not r.startswith(("http://127.0.0.1:", "file:", "data:", "blob:", "about:"))]
        assert away == []
        page.close()


@pytest.fixture(scope="session")
def serve():
    """Serves a model file; gives the address."""
    running = []

    def start(model, *more):
        process = subprocess.Popen(
            [program, "explore", str(model), "--no-open", "--quiet", *more], stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), address
        return address

    yield start
    for process in running:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def digits(folder, serve):
    """360 digits of scikit-learn in two dimensions, three cells of them missing, served."""
    data = load_digits()
    y, labels = data.data[:360].copy(), data.target[:360]
    y[[3, 3, 8], [10, 20, 30]] = np.nan
    model = lg.BayesianGPLVM(
        n_components=2, n_inducing=30, kernel="rbf", scale="center", max_iter=60, effort="quick", random_state=0
    ).fit(y)
    model.save(folder / "digits.lgp")
    # A label, and names that are markup, come from beside the model.
    names = ["<img src=x onerror=alert(1)>" if i == 0 else f"scan {i}" for i in range(len(y))]
    rows = [f'd{label},"{name}",{i * 0.5}' for i, (label, name) in enumerate(zip(labels, names))]
    (folder / "more.csv").write_text("\n".join(["digit,scan,ink <b>", *rows]) + "\n")
    address = serve(folder / "digits.lgp", "--images", "8x8", "--data", str(folder / "more.csv"))
    return address, model, data.data
