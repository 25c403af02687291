"""The latent space in the browser, as a page that needs no server."""

from __future__ import annotations

import html
import sys
import tempfile
import webbrowser
from pathlib import Path

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import _native

#: The height of a page inside a notebook.
HEIGHT = 760


class Page:
    """A page about a model: one HTML text that decodes positions by itself.

    A notebook shows it inline. Other pages are not reached from it, and it asks for nothing from elsewhere.

    Attributes
    ----------
    html : str
        The whole page.
    """

    def __init__(self, content: str):
        self.html = content

    def save(self, path) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def open(self) -> Path:
        """Open the page in the browser, from a file that is left in the folder for temporary ones; return the file."""
        with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="latentgp-", encoding="utf-8", delete=False) as file:
            file.write(self.html)
        path = Path(file.name)
        webbrowser.open(path.as_uri())
        return path

    def _repr_html_(self) -> str:
        source = html.escape(self.html, quote=True)
        look = f"width:100%;height:{HEIGHT}px;border:1px solid #d5dae0;border-radius:8px"
        return f'<iframe srcdoc="{source}" sandbox="allow-scripts allow-downloads" style="{look}"></iframe>'


def explore(model, labels=None, *, images=None, title=None, show=None) -> Page:
    """Look at a latent space in the browser: the map, decoded under the pointer.

    Positions are decoded by the page itself. Placing new rows and the path of low predictive variance need the server of
    ``latentgp explore MODEL``.

    Parameters
    ----------
    model : BayesianGPLVM, GPLVM or PPCA
        A fitted latent space.
    labels : array-like of shape (n_samples,), default=None
        The class of each training row, to colour, to filter and to search by.
    images : tuple of (height, width), default=None
        The rows are images of so many pixels.
    title : str, default=None
        The title of the page; the name of the model by default.
    show : bool, default=None
        Whether the browser opens the page; by default it does unless this is a notebook, which shows the page itself.

    Returns
    -------
    page : Page
        The page, to be shown by a notebook, saved or opened.
    """
    check_is_fitted(model)
    fitted = getattr(model, "_model", None)
    if not isinstance(fitted, _native.LatentModel):
        raise TypeError(
            f"explore: expected a latent space, such as BayesianGPLVM, found {type(model).__name__}; save the model and use "
            "`latentgp explore MODEL` for regressions and forecasts"
        )
    of = None if labels is None else [str(label) for label in np.asarray(labels).ravel()]
    shape = None if images is None else (int(images[0]), int(images[1]))
    page = Page(fitted.page(title or type(model).__name__, of, shape))
    if not _in_notebook() if show is None else show:
        page.open()
    return page


def _in_notebook() -> bool:
    """Whether what a cell returns is shown as HTML."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")
