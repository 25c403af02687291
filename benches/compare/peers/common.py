"""What every peer's program does: read a case, time one evaluation, print one line of JSON."""

import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from cases import NOISE, read  # noqa: E402, F401

SECONDS = 3.0
MAX_ITERATIONS = 1000


def best(evaluate):
    """The shortest of as many evaluations as fit in a few seconds, at least two, after one that is not counted."""
    value = evaluate()
    shortest, began, count = float("inf"), time.perf_counter(), 0
    while count < 2 or time.perf_counter() - began < SECONDS:
        start = time.perf_counter()
        value = evaluate()
        shortest = min(shortest, time.perf_counter() - start)
        count += 1
    return shortest, float(value)


def main(tasks):
    """Runs the task named on the command line on the folder named after it."""
    name, folder = sys.argv[1:3]
    if name not in tasks:
        print(json.dumps({"skipped": "not in this library"}))
        return
    seconds, value, *extra = tasks[name](read(folder))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "value": value, "megabytes": memory, **(extra[0] if extra else {})}))


def timed_fit(optimise):
    """Seconds of a whole fit, and the bound that it reached."""
    start = time.perf_counter()
    value, iterations = optimise()
    return time.perf_counter() - start, float(value), {"iterations": int(iterations)}
