"""Every Python block of README.md and docs/ runs: those of one page in order, in one namespace and one fresh folder.

With ``LATENTGP_FIGURES=write`` the pictures that the blocks draw replace those of ``docs/figures/guide``.
"""

import os
import re
import shutil
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "figures" / "guide"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if GUIDE.exists() else []

#: The largest picture of a page, in bytes.
LARGEST = 80_000

pytestmark = pytest.mark.skipif(not PAGES, reason="the guide is not beside the tests")


def blocks(page):
    """Blocks of Python: the line of the fence, the words after the language, and the code."""
    found, start = [], None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if start is None and line.startswith("```"):
            start, info, code = number, line[3:].split(maxsplit=1), []
        elif line.startswith("```"):
            if info and info[0] == "python":
                found.append((start, " ".join(info[1:]), "\n".join(code)))
            start = None
        elif start is not None:
            code.append(line)
    return found


WITH_PYTHON = [page for page in PAGES if blocks(page)]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name if page.parent != ROOT else "README")
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    namespace = {"__name__": "__main__"}
    for line, marker, code in blocks(page):
        if marker.startswith("notest"):
            assert marker.removeprefix("notest").strip(": "), f"{page.name}:{line}: notest needs a reason"
            continue
        # As many empty lines before it as the page has: a traceback shows the line of the page.
        exec(compile("\n" * line + code, str(page), "exec"), namespace)
    plt.close("all")
    for name in re.findall(r"figures/guide/([\w-]+\.png)", page.read_text(encoding="utf-8")):
        assert (tmp_path / name).exists(), f"{page.name}: no block draws {name}"
        if os.environ.get("LATENTGP_FIGURES"):
            shutil.copy(tmp_path / name, GUIDE / name)
        assert (GUIDE / name).stat().st_size <= LARGEST, f"{name} is too large"


def test_most_blocks_run():
    markers = [marker for page in PAGES for _, marker, _ in blocks(page)]
    skipped = sum(marker.startswith("notest") for marker in markers)
    assert len(markers) >= 15 and skipped <= len(markers) // 10
