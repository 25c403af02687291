"""Times the same work in latentgp and its peers, one after the other, and prints the ratios.

    python benches/compare/compare.py                       # everything that is installed, two threads each
    python benches/compare/compare.py bound exact --threads 1
    python benches/compare/compare.py bound --size 100,12,5,20 --rounds 3

Every program reads the same arrays, computes the same number (the largest relative difference is printed) and
runs in its own process on the given number of cores; the times are those inside the program, the best of many
evaluations in the best of the rounds. A peer that is not installed is left out.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cases
import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PEERS = {"JAX": "jax", "GPy": "GPy", "GPflow": "gpflow", "GPyTorch": "gpytorch", "scikit-learn": "sklearn"}
TIME_LIMIT = 900


def built():
    """The program of `crates/latentgp/benches/compare.rs`, built in release."""
    command = ["cargo", "bench", "-q", "-p", "latentgp", "--bench", "compare", "--no-run", "--message-format=json"]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    programs = [json.loads(line).get("executable") for line in lines if line.startswith("{")]
    return next(path for path in reversed(programs) if path)


def run(command, threads):
    """The JSON line that a program prints, or why there is none."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    environment = os.environ | {name: str(threads) for name in names} | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    cores = sorted(os.sched_getaffinity(0))[:threads] if hasattr(os, "sched_setaffinity") else None
    pin = (lambda: os.sched_setaffinity(0, cores)) if cores else None
    try:
        done = subprocess.run(
            command, env=environment, preexec_fn=pin, capture_output=True, text=True, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired:
        return {"skipped": f"over {TIME_LIMIT} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode == 0 and lines:
        return json.loads(lines[-1])
    reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
    return {"skipped": "out of memory" if done.returncode < 0 else reason[:70]}


def measure(ours, task, folder, options):
    """The result of every program, the best of the rounds."""
    programs = {"latentgp": [ours]} | {
        name: [sys.executable, str(HERE / "peers" / f"{module.lower()}_program.py")]
        for name, module in PEERS.items()
        if importlib.util.find_spec(module)
    }
    results = {}
    for _ in range(options.rounds):
        for name, program in programs.items():
            if "skipped" in results.get(name, {}):
                continue
            found = run([*program, task, str(folder)], options.threads)
            if found.get("seconds", np.inf) <= results.get(name, {}).get("seconds", np.inf):
                results[name] = found
    return results


def table(title, rows, value=None):
    """A Markdown table: milliseconds of each program, and how many times ours that is."""
    names = [n for n in ["latentgp", *PEERS] if any("seconds" in row.get(n, {}) for _, row in rows)]
    print(f"\n**{title}**\n\n| | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for label, row in rows:
        cells = []
        for name in names:
            found = row.get(name, {})
            if "seconds" not in found:
                cells.append("–" if found.get("skipped", "").startswith("not in") else found.get("skipped", "–"))
                continue
            cell = f"{1e3 * found['seconds']:.3g} ms"
            if name != "latentgp":
                cell += f" (**{found['seconds'] / row['latentgp']['seconds']:.1f}×**)"
            if value:
                cell += value(found)
            cells.append(cell)
        print(f"| {label} | " + " | ".join(cells) + " |")
    sys.stdout.flush()


def agreement(row):
    """The largest relative difference between the values of the programs."""
    ours = row["latentgp"]["value"]
    return max((abs(r["value"] - ours) / abs(ours) for r in row.values() if "value" in r), default=0.0)


def report(label, row):
    note = f"{label}: values agree to {agreement(row):.0e}"
    memory = ", ".join(f"{name} {r['megabytes']:.0f} MB" for name, r in row.items() if "megabytes" in r)
    print(f"{note}; peak memory {memory}", file=sys.stderr)


def bounds(ours, scratch, options):
    sizes = [options.size] if options.size else cases.BOUND_SIZES
    for task, title in [
        ("bound_rbf", "One bound and full gradient, rbf, closed form"),
        ("bound_matern32", "One bound and full gradient, Matérn 3/2, unscented"),
    ]:
        rows = []
        for size in sizes:
            folder = scratch / "bound-{}-{}-{}-{}".format(*size)
            cases.bound(folder, *size)
            row = measure(ours, task, folder, options)
            label = "{}, {}, {}, {}".format(*size)
            report(f"{title}, {label}", row)
            rows.append((label, row))
        table(f"{title} (N, D, Q, M)", rows)


def exacts(ours, scratch, options):
    rows = []
    for n in [options.size[0]] if options.size else cases.EXACT_SIZES:
        folder = scratch / f"exact-{n}"
        cases.regression(folder, n)
        rows.append((f"N = {n}", measure(ours, "exact", folder, options)))
        report(f"exact, {rows[-1][0]}", rows[-1][1])
    table(f"Exact regression: evidence and gradient, {cases.EXACT_INPUTS} ARD inputs", rows)


def predictions(ours, scratch, options):
    rows = []
    folder = scratch / "predict"
    cases.regression(folder, 2000)
    for label, task in [("sparse, M = 100", "predict_sparse"), ("exact, N = 2000", "predict_exact")]:
        rows.append((label, measure(ours, task, folder, options)))
        report(f"prediction, {label}", rows[-1][1])
    table(f"Prediction of {cases.PREDICTED_ROWS} rows, with variances", rows)


def fits(ours, scratch, options):
    if options.data:
        y = np.load(options.data / "three_phase_oil_flow.npz")["Y"]
        label = "oil flow"
    else:
        text = subprocess.run(
            ["cargo", "run", "-q", "--release", "-p", "latentgp-cli", "--", "dataset", "oil-flow", "--n", "100"],
            cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
        ).stdout.splitlines()
        y = np.array([line.split(",")[:12] for line in text[1:]], dtype=float)
        label = "oil flow, simulated"
    folder = scratch / "fit"
    cases.fit(folder, y)
    own = {"latentgp": run([ours, "fit_default", str(folder)], options.threads)}
    rows = [(label, measure(ours, "fit", folder, options)), (f"{label}, our own start", own)]
    table(f"A whole fit, {len(y)} × {y.shape[1]}, Q = 5, M = 20", rows, lambda r: f", bound {r['value']:.1f}")


def imports(*_):
    """Seconds to import each package, or to start the program."""

    print("\n**To start**\n\n| | ms |\n|---|---|")
    subprocess.run(["cargo", "build", "-q", "--release", "-p", "latentgp-cli"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    print(f"| the program `latentgp` | {1e3 * best_start([str(target / 'release' / 'latentgp'), '--version'], 50):.1f} |")
    base = best_start([sys.executable, "-c", "import numpy"], 10)
    print(f"| `import numpy` | {1e3 * base:.0f} |")
    for module in ["latentgp", "sklearn.base", *PEERS.values()]:
        if importlib.util.find_spec(module.split(".")[0]):
            more = best_start([sys.executable, "-c", f"import numpy, {module}"], 10) - base
            print(f"| `import {module}`, beyond NumPy | {1e3 * more:.0f} |")


def best_start(command, count):
    """The shortest of so many starts of a program, in seconds."""
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - begin)
    return min(times)


PARTS = {"bound": bounds, "exact": exacts, "predict": predictions, "fit": fits, "start": imports}


def size(text):
    values = tuple(int(v) for v in text.split(","))
    if len(values) not in (1, 4):
        raise argparse.ArgumentTypeError("expected N,D,Q,M (or N for exact)")
    return values


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="what to time; everything by default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1, help="the best of so many rounds over all programs")
    parser.add_argument("--size", type=size, help="one size instead of all: N,D,Q,M")
    parser.add_argument("--data", type=Path, help="folder with three_phase_oil_flow.npz, for the fit")
    chosen = parser.parse_args()
    program = built()
    with tempfile.TemporaryDirectory() as name:
        for part in chosen.parts or PARTS:
            PARTS[part](program, Path(name), chosen)
