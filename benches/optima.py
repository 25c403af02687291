"""Writes the tables of `cargo run --release --example optima` as CSV files: `python benches/optima.py FOLDER`.

Needs scikit-learn. The last column of a table with classes is called class.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn import datasets


def write(folder, name, values, classes=None):
    names = [f"x{j}" for j in range(values.shape[1])] + ([] if classes is None else ["class"])
    cells = [[repr(float(v)) for v in row] for row in values]
    if classes is not None:
        cells = [row + [str(int(c))] for row, c in zip(cells, classes)]
    (folder / f"{name}.csv").write_text("\n".join(",".join(row) for row in [names, *cells]) + "\n")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("iris", "wine", "breast_cancer"):
        table = getattr(datasets, f"load_{name}")()
        write(folder, name, table.data, table.target)
    digits = datasets.load_digits()
    pixels = digits.data[:600]
    write(folder, "digits", pixels[:, pixels.std(axis=0) > 0], digits.target[:600])
    diabetes = datasets.load_diabetes()
    write(folder, "diabetes", np.c_[diabetes.data, diabetes.target])
    x, y = datasets.make_friedman1(n_samples=200, noise=1.0, random_state=0)
    write(folder, "friedman1", np.c_[x, y])
    roll, _ = datasets.make_swiss_roll(n_samples=300, noise=0.3, random_state=0)
    directions = np.random.RandomState(1).randn(3, 8)
    write(folder, "swiss_roll", np.c_[roll, np.tanh(roll @ directions / 10)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
