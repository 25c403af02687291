"""The package as a whole: examples in docstrings, what is promised, what an import takes along."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys

import pytest

import latentgp as lg

MODULES = ["latentgp"] + [
    f"latentgp.{found.name}" for found in pkgutil.iter_modules(lg.__path__) if found.name != "_native"
]

#: A part that docstrings share and that was not filled in.
LEFT = re.compile(r"^ *\{\w+\}$", re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_names_are_those_promised():
    for name in ("BayesianGPLVM", "GPLVM", "PPCA", "GPRegressor", "SparseGPRegressor", "LinearRegressor",
                 "SPGPDRRegressor", "VDMGPRegressor", "GPClassifier", "GPCountRegressor", "GPNarx", "psi_statistics", "load",
                 "kernels"):  # fmt: skip
        assert name in lg.__all__ and hasattr(lg, name)
    with pytest.raises(AttributeError, match="nonsense"):
        lg.nonsense


def test_an_import_takes_nothing_heavy_along():
    program = "import sys, numpy; before = set(sys.modules); import latentgp; print(*set(sys.modules) - before)"
    new = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"sklearn", "scipy", "matplotlib", "pandas", "polars", "dask", "jax", "joblib", "difflib"}
    assert "latentgp._native" in new and not heavy & {name.split(".")[0] for name in new}
    assert not {"latentgp.plot", "latentgp.datasets"} & set(new)


def test_all_names_are_there_before_they_are_used():
    program = "import latentgp; print(*dir(latentgp)); from latentgp import *; print(*sorted(globals()))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    listed, imported = said.splitlines()
    assert set(lg.__all__) <= set(listed.split()) and set(lg.__all__) <= set(imported.split())


def test_every_public_thing_says_what_it_is():
    for name in lg.__all__:
        thing = getattr(lg, name, None)
        if isinstance(thing, type):
            assert thing.__doc__ and not LEFT.search(thing.__doc__)
            for method, of in vars(thing).items():
                if not method.startswith("_") and callable(of):
                    assert of.__doc__ and not LEFT.search(of.__doc__), f"{name}.{method}"
    for module in (lg.plot, lg.datasets):
        for name in module.__all__:
            assert not LEFT.search(getattr(module, name).__doc__), name
