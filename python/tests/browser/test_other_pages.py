"""Regressions, classes, counts, series, and the page as one file."""

import subprocess

import latentgp as lg
import numpy as np
import pytest
from conftest import SIZES, program

SLIDE = "(() => {{ const s = document.querySelectorAll('input[type=range]')[{0}]; s.value = {1}; s.dispatchEvent(new Event('input')); }})()"
CURVE = "document.querySelectorAll('.chart svg')[{0}].querySelector('g path:last-of-type').getAttribute('d')"


@pytest.fixture(scope="module")
def regression(folder, serve):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (120, 2))
    y = np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * rng.normal(size=120)
    lg.GPRegressor(max_iter=40, effort="quick").fit(x, y).save(folder / "regression.lgp")
    return serve(folder / "regression.lgp")


@pytest.fixture(scope="module")
def series(folder, serve):
    t = np.arange(120)
    y = np.sin(2 * np.pi * t / 12) + 0.02 * t + 0.05 * np.random.default_rng(0).normal(size=120)
    lg.GPNarx(lags=12, max_iter=30, effort="quick").fit(y).save(folder / "series.lgp")
    return serve(folder / "series.lgp")


@pytest.mark.parametrize("size", SIZES)
def test_sliders_move_the_curves_of_the_other_inputs(visit, regression, size, shots):
    page = visit(regression, size)
    page.wait("document.querySelectorAll('.chart svg').length === 2")
    before = page.eval(CURVE.format(0))
    page.eval(SLIDE.format(1, 950))
    page.wait(f"{CURVE.format(0)} !== {before!r}")
    page.wait("/at=/.test(location.hash)")
    page.shot(shots / f"regression-{size[0]}.png", full=size[0] < 600)
    page.press("SVG")
    assert b"<svg" in page.downloaded("along-1.svg") and b"<svg" in page.downloaded("along-2.svg")
    page.press("PNG")
    assert page.downloaded("along-1.png")[:4] == b"\x89PNG"


@pytest.mark.parametrize("kind", ["classes", "counts"])
def test_classes_and_counts(visit, folder, serve, kind, shots):
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, (90, 1))
    if kind == "classes":
        y = np.array(["<low>", "mid", "high"])[np.digitize(x[:, 0] + 0.3 * rng.normal(size=90), [-1, 1])]
        model = lg.GPClassifier(max_iter=15, effort="quick").fit(x, y)
    else:
        model = lg.GPCountRegressor(max_iter=15, effort="quick").fit(x, rng.poisson(np.exp(1 + np.sin(x[:, 0]))))
    model.save(folder / f"{kind}.lgp")
    page = visit(serve(folder / f"{kind}.lgp"))
    page.wait("document.querySelectorAll('.chart svg').length === 1")
    text = page.eval("document.body.innerText")
    assert "Most probable here" in text and "<low>" in text if kind == "classes" else "90 % band" in text
    page.shot(shots / f"{kind}.png")


@pytest.mark.parametrize("size", SIZES)
def test_the_horizon_and_the_cut_are_dragged(visit, series, size, shots):
    page = visit(series, size)
    page.wait("document.querySelector('.chart svg')")
    page.eval(SLIDE.format(0, 40))
    page.wait("/forecast of 40 steps/.test(document.querySelector('.chart svg').getAttribute('aria-label'))")
    page.eval(SLIDE.format(1, 90))
    page.wait("/RMSE on 30 known rows/.test(document.body.innerText)")
    page.shot(shots / f"series-{size[0]}.png", full=size[0] < 600)
    left, top, width, height = page.box(".chart svg")
    lines = page.eval("[...document.querySelectorAll('.chart svg g line')].slice(-2).map((l) => Number(l.getAttribute('x1')))")
    wide = page.eval("document.querySelector('.chart svg').viewBox.baseVal.width")
    x = [left + width * at / wide for at in lines]
    y = top + height / 2
    if size[0] < 600:
        page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x[1], "y": y}])
        page.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=[{"x": x[1] - 40, "y": y}])
        page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    else:
        page.drag([(x[1], y), (x[1] - 30, y), (x[1] - 80, y)])
    page.wait("!/forecast of 40 steps/.test(document.querySelector('.chart svg').getAttribute('aria-label'))")
    page.press("CSV")
    assert page.downloaded("forecast.csv").startswith(b"row,")


@pytest.mark.parametrize("kernel", ["rbf", "matern32 + linear", "matern52 * rational_quadratic + constant + white"])
def test_one_file_decodes_as_the_server_does(visit, folder, serve, kernel, shots):
    rng = np.random.default_rng(2)
    t = np.linspace(0, 3, 60)
    y = np.column_stack([np.sin(t), np.cos(2 * t), t, t**2, np.exp(-t)]) + 0.05 * rng.normal(size=(60, 5))
    y[4, 1] = np.nan
    model = lg.BayesianGPLVM(n_components=2, n_inducing=10, kernel=kernel, max_iter=25, effort="quick", random_state=0).fit(y)
    path = folder / "static.lgp"
    model.save(path)
    out = folder / "static.html"
    subprocess.run([program, "explore", str(path), "--static", str(out), "--quiet"], check=True)
    page = visit(out.as_uri())
    served = visit(serve(path))
    ask = "fetch('api/decode', {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify({x: [[0.3, -0.2]]})}).then((r) => r.json())"
    there = served.eval(ask)
    spec = "JSON.parse(document.getElementById('data').textContent).decoder"
    assert page.eval(f"{spec}.kind") == "process"
    # The page shows what it decodes where the pointer is; its table has four digits.
    for p in (page, served):
        left, top, width, height = p.box(".over")
        p.mouse("mouseMoved", left + width * 0.4, top + height * 0.45)
        p.wait("document.querySelector('.facts b')")
        p.wait("document.querySelectorAll('.values td').length === 10")
    cells = "[...document.querySelector('.values').querySelectorAll('td')].map((c) => c.textContent.replace('−', '-'))"
    numbers = [np.array([float(v) for v in p.eval(cells)]) for p in (page, served)]
    assert np.allclose(*numbers, rtol=2e-3, atol=2e-4)
    assert len(there["mean"][0]) == 5
    page.press("Uncertain ground")
    page.wait("document.querySelector('.plot').dataset.ground === 'drawn'", 30)
    page.shot(shots / "static.png")


def test_a_kernel_that_pages_do_not_know_is_said(visit, folder):
    t = np.linspace(0, 3, 40)
    y = np.column_stack([np.sin(t), np.cos(t), t])
    model = lg.BayesianGPLVM(n_components=2, n_inducing=8, kernel="arc_sine", max_iter=5, effort="quick").fit(y)
    page = visit(lg_page(model, folder))
    assert "pages cannot compute the kernel `arc_sine`" in page.eval("document.body.innerText")
    linear = lg.PPCA(n_components=2).fit(y)
    page = visit(lg_page(linear, folder))
    left, top, width, height = page.box(".over")
    page.mouse("mouseMoved", left + width / 2, top + height / 2)
    page.wait("document.querySelectorAll('.values td').length === 6")


def lg_page(model, folder):
    path = folder / f"{type(model).__name__}.html"
    lg.explore(model, show=False).save(path)
    return path.as_uri()
