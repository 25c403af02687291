"""The page of a latent space from Python."""

import re

import latentgp as lg
import pytest
from sklearn.exceptions import NotFittedError


def fitted(table):
    return lg.BayesianGPLVM(n_components=2, n_inducing=8, max_iter=10, random_state=0).fit(table)


def test_a_notebook_shows_the_page_inline(table, tmp_path):
    labels = ["<script>alert(1)</script>" if i % 2 else "b" for i in range(len(table))]
    page = lg.explore(fitted(table), labels, title="a & b <c>", show=False)
    assert page.html.startswith("<!doctype html>") and "<title>a &amp; b &lt;c&gt;</title>" in page.html
    assert "<script>alert(1)" not in page.html  # in data it is written without its brackets
    policy = re.search('Content-Security-Policy" content="([^"]*)"', page.html)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page.html)
    inline = page._repr_html_()
    assert inline.startswith('<iframe srcdoc="&lt;!doctype') and 'sandbox="allow-scripts allow-downloads"' in inline
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html


def test_the_browser_opens_it_elsewhere(table, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    model = lg.PPCA(n_components=2).fit(table)
    lg.explore(model, show=False)
    assert not opened
    lg.explore(model)
    assert len(opened) == 1 and opened[0].startswith("file:")


def test_what_cannot_be_explored_is_said(table, wave):
    model = fitted(table)
    with pytest.raises(ValueError, match="labels.*expected 40, found 3"):
        lg.explore(model, [1, 2, 3], show=False)
    with pytest.raises(ValueError, match="5 columns.*found 3x3"):
        lg.explore(model, images=(3, 3), show=False)
    with pytest.raises(TypeError, match="GPRegressor.*latentgp explore"):
        lg.explore(lg.GPRegressor(max_iter=5).fit(*wave), show=False)
    with pytest.raises(NotFittedError):
        lg.explore(lg.PPCA(), show=False)
