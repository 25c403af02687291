"""Every example of the gallery runs and ends in a picture."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

plt = pytest.importorskip("matplotlib.pyplot")

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "python"
EXAMPLES = sorted(GALLERY.glob("*.py"))
NEEDS = {"kernel_from_jax": "jax", "pandas_pipeline": "pandas"}

#: A picture has at least so many colours.
COLOURS = 16

pytestmark = pytest.mark.skipif(not EXAMPLES, reason="the gallery is not beside the tests")


def test_there_are_at_least_eight():
    assert len(EXAMPLES) >= 8
    listed = (GALLERY / "README.md").read_text(encoding="utf-8")
    for example in EXAMPLES:
        assert f"({example.name})" in listed
        assert len(example.read_text(encoding="utf-8").splitlines()) <= 42, example.name
        picture = GALLERY.parents[1] / "docs" / "figures" / "python" / f"{example.stem}.png"
        assert picture.stat().st_size <= 60_000, example.name


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_draws_a_picture(example, tmp_path):
    if example.stem in NEEDS:
        pytest.importorskip(NEEDS[example.stem])
    path = tmp_path / "figure.png"
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, example, path], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    # Examples are short; that a fit ended at its limit of iterations is said, and is all that may be.
    said = [line for line in done.stderr.splitlines() if not line.startswith(" ") and "ConvergenceWarning" not in line]
    assert not said, done.stderr
    picture = plt.imread(path)
    assert picture.shape[0] > 200 and picture.shape[1] > 200
    assert len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) >= COLOURS
