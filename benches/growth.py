"""Draws how time and memory grow, from the numbers of the example `growth`.

    cargo run --release --example growth -- --csv growth.csv
    python benches/growth.py growth.csv docs/figures/growth.png
"""

import csv
import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

VARIED = {"N": "rows N", "M": "inducing inputs M", "Q": "latent dimensions Q", "D": "columns D"}
METHODS = {
    "rbf analytic": ("rbf, closed form", "#1f4e79", "o"),
    "matern32 unscented": ("Matérn 3/2, unscented", "#c55a11", "s"),
}


def exponent(x, y):
    """The slope of ln y over ln x in the larger half."""
    half = len(x) // 2
    return np.polyfit(np.log(x[half:]), np.log(y[half:]), 1)[0]


def panel(axes, rows, varied, quantity, scale):
    for method, (label, colour, marker) in METHODS.items():
        own = [r for r in rows if r["varied"] == varied and r["method"] == method]
        x = np.array([float(r[varied.lower()]) for r in own])
        y = scale * np.array([float(r[quantity]) for r in own])
        slope = f"{label}: {varied}$^{{{exponent(x, y):.2f}}}$"
        axes.loglog(x, y, marker=marker, ms=4, lw=1.4, color=colour, label=slope)
    axes.set_xticks(x, [f"{v:g}" if v < 1e4 else f"$10^{{{np.log10(v):.0f}}}$" for v in x])
    axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    # Within two decades, ones alone would leave an axis with one number.
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", lw=0.4, alpha=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7.5, loc="upper left")
    axes.set_ylim(low, high * (high / low) ** 0.25)


def main(source, target):
    with open(source, newline="") as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(2, 4, figsize=(13, 5.6), layout="constrained")
    for column, (varied, words) in enumerate(VARIED.items()):
        panel(axes[0, column], rows, varied, "seconds", 1e3)
        panel(axes[1, column], rows, varied, "megabytes", 1.0)
        axes[1, column].set_xlabel(words)
    axes[0, 0].set_ylabel("one bound + gradient, ms")
    axes[1, 0].set_ylabel("peak memory, data included, MB")
    figure.savefig(target, dpi=150)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
