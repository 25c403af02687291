"""Long fits: progress, callbacks, Ctrl-C."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import latentgp as lg


@pytest.fixture(scope="module")
def many():
    return np.random.default_rng(0).normal(size=(400, 10))


def test_a_callback_sees_every_iteration_and_stops(table):
    seen = []

    def stop(progress):
        seen.append(progress)
        return progress.iteration >= 7

    model = lg.BayesianGPLVM(random_state=0, callback=stop).fit(table)
    assert [p.iteration for p in seen] == list(range(1, 8))
    assert model.n_iter_ == 7 and not model.converged_
    assert seen[-1].bound == pytest.approx(model.lower_bound_)
    assert model.trace_.shape == (7,)


HELD = [(lg.BayesianGPLVM(n_inducing=5), 50), (lg.GPLVM(), 50), (lg.VDMGPRegressor(2, n_inducing=5), 200)]


@pytest.mark.parametrize("model, held", HELD)
def test_max_iter_counts_what_comes_after_the_first_stage(model, held, table):
    calls = []
    model = clone(model).set_params(max_iter=1, random_state=0, callback=calls.append).fit(table, table[:, 0])
    assert 2 <= model.n_iter_ == len(calls) == len(model.trace_) <= 1 + held
    assert f"after up to {held} that hold" in type(model).__doc__


def test_what_a_callback_raises_comes_after_the_state_is_kept(table):
    def fail(progress):
        if progress.iteration == 3:
            raise RuntimeError("enough")

    for _ in range(20):
        model = lg.GPLVM(random_state=0, callback=fail)
        with pytest.raises(RuntimeError, match="enough"):
            model.fit(table)
        assert model.n_iter_ == 3 and model.transform(table).shape == (40, 2)


def test_verbose_tells(table, capsys):
    lg.GPLVM(random_state=0, max_iter=3, verbose=2).fit(table)
    said = capsys.readouterr().out
    assert "[GPLVM] run 1, iteration 1:" in said and "iterations in" in said


def test_other_threads_run_during_a_fit(many):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    other = threading.Thread(target=tick)
    other.start()
    lg.BayesianGPLVM(n_components=3, n_inducing=30, max_iter=10, random_state=0).fit(many)
    done.set()
    other.join()
    assert len(ticks) > 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are of POSIX")
def test_a_fork_has_threads_of_its_own():
    program = textwrap.dedent("""
        import multiprocessing
        import numpy as np
        import latentgp as lg
        # So many numbers that those of a latent space are worth the work of several threads.
        Y = np.random.default_rng(0).normal(size=(9000, 3))
        def fit(seed):
            model = lg.BayesianGPLVM(2, n_inducing=4, max_iter=2, random_state=seed).fit(Y)
            return model.lower_bound_, model.embedding_.sum()
        before = [fit(0), fit(1)]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(fit, [0, 1]) == before
    """)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr


def run_program(program, timeout=120, **environment):
    """Runs a program of its own, whose end shows whether it hung or aborted."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=timeout, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize(
    "estimator, data",
    [("lg.GPRegressor(max_iter=1)", "X, y"), ("lg.BayesianGPLVM(2, n_inducing=20, max_iter=1)", "X[:60]")],
)
def test_threads_ask_a_fresh_model_at_once(estimator, data):
    ask = "model.predict(X[:5])" if "Regressor" in estimator else "model.inverse_transform(X[:5, :2])"
    run = run_program(
        f"""
        import threading
        import numpy as np
        import latentgp as lg
        X = np.random.default_rng(0).normal(size=(400, 3))
        y = np.sin(X.sum(1))
        model = {estimator}
        for _ in range(10):
            model.fit({data})
            answers = []
            threads = [threading.Thread(target=lambda: answers.append({ask})) for _ in range(4)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            assert all(np.array_equal(a, answers[0]) for a in answers) and len(answers) == 4
        print("done")
        """,
        RAYON_NUM_THREADS="4",
    )
    assert run.stdout.split() == ["done"], run.stderr


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_kernel_may_ask_another_model(threads):
    run = run_program(
        """
        import threading
        import numpy as np
        import latentgp as lg
        X = np.linspace(0, 6, 25)[:, None]
        y = np.sin(X[:, 0])
        inner = lg.GPRegressor(max_iter=3).fit(X, y)
        def warped(X, Z, params):
            X, Z = inner.predict(X), inner.predict(Z)
            return params["variance"] * np.exp(-0.5 * (X[:, None] - Z[None]) ** 2)
        def elsewhere(X, Z, params):
            got = []
            thread = threading.Thread(target=lambda: got.append(warped(X, Z, params)))
            thread.start()
            thread.join()
            return got[0]
        fits = []
        for fn in (warped, elsewhere):
            kernel = lg.kernels.Custom(fn, None, {"variance": 1.0}) + 0.1
            fits.append(lg.GPRegressor(kernel, max_iter=2, restarts=4, random_state=0).fit(X, y).log_evidence_)
        watched = lg.GPRegressor(max_iter=3, callback=lambda p: inner.predict(X) is None).fit(X, y)
        print(fits[0] == fits[1], watched.n_iter_ > 0)
        """,
        RAYON_NUM_THREADS=threads,
    )
    assert run.stdout.split() == ["True", "True"], run.stderr


#: A kernel that a thread is in at the end of the program: between two calls, in one, or in one that has no end.
LEFT = """
    import os, signal, threading, time
    import numpy as np
    import latentgp as lg
    begun = threading.Event()
    def rbf(X, Z, params):
        begun.set()
        {wait}
        return params["variance"] * np.exp(-0.5 * (X[:, None] - Z[None]) ** 2).prod(-1)
    X = np.random.default_rng(0).normal(size=(60, 2))
    kernel = lg.kernels.Custom(rbf, None, {{"variance": 1.0}})
    def fit():
        while True:
            lg.GPRegressor(kernel).fit(X, X[:, 0])
    def interrupt():
        begun.wait()
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("wait", ["pass", "time.sleep(0.5)", "threading.Event().wait()"])
def test_a_kernel_that_still_runs_at_the_end_of_the_program(wait):
    program = LEFT.format(wait=wait)
    run = run_program(program + """
    threading.Thread(target=fit, daemon=True).start()
    begun.wait()
    time.sleep(0.1)
    print("end", flush=True)
    """)
    assert (run.returncode, run.stdout.split()) == (0, ["end"]), run.stderr
    if sys.platform != "win32":
        run = run_program(program + """
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        fit()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    """)
        assert (run.returncode, run.stdout.split()) == (0, ["interrupted"]), run.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
@pytest.mark.parametrize(
    "estimator, data",
    [
        ("lg.BayesianGPLVM(n_components=4, n_inducing=60, max_iter=100000, random_state=0)", "Y"),
        ("lg.GPRegressor(kernel='matern32', max_iter=100000)", "Y, Y[:, 0]"),
        ("lg.SparseGPRegressor(n_inducing=150, max_iter=100000, random_state=0)", "Y, Y[:, 0]"),
    ],
)
def test_ctrl_c_keeps_the_best_state(estimator, data):
    program = textwrap.dedent(f"""
        import numpy as np
        import latentgp as lg
        Y = np.random.default_rng(0).normal(size=(700, 10))
        seen = []
        model = {estimator}
        model.set_params(callback=lambda p: (seen.append(p.iteration), print(p.iteration, flush=True))[1])
        try:
            model.fit({data})
        except KeyboardInterrupt:
            print("stopped", model.n_iter_, model.stop_reason_, flush=True)
            assert not model.converged_ and np.isfinite(model.trace_).all()
    """)
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline().strip() == "1"
    os.kill(run.pid, signal.SIGINT)
    rest, _ = run.communicate(timeout=60)
    assert run.returncode == 0 and "stopped" in rest, rest


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
def test_ctrl_c_does_not_wait_for_an_iteration_to_end():
    program = textwrap.dedent("""
        import os, signal, threading
        import numpy as np
        import latentgp as lg
        stuck, never = threading.Event(), threading.Event()
        def kernel(X, Z, params):
            if stuck.is_set():
                never.wait()
            return params["variance"] * np.exp(-0.5 * (X[:, None] - Z[None]) ** 2).prod(-1)
        def watch(progress):
            if progress.iteration == 3:
                stuck.set()
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        X = np.linspace(0, 6, 30)[:, None]
        model = lg.GPRegressor(lg.kernels.Custom(kernel, None, {"variance": 2.0}), callback=watch)
        try:
            model.fit(X, np.sin(X[:, 0]))
        except KeyboardInterrupt:
            print(model.n_iter_, model.converged_, model.log_evidence_ == model.trace_[2], flush=True)
        os._exit(0)
    """)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert run.stdout.split() == ["3", "False", "True"], run.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
@pytest.mark.parametrize(
    "estimator, data",
    [
        ("lg.BayesianGPLVM(4, n_inducing=50, kernel='matern32', expectation='gauss_hermite(points=4)', random_state=0)", "Y"),
        ("lg.GPLVM(kernel='matern32', random_state=0)", "Y"),
        ("lg.GPRegressor(kernel='matern32')", "Y, Y[:, 0]"),
        ("lg.VDMGPRegressor(4, kernel='matern32', expectation='gauss_hermite(points=4)', random_state=0)", "Y, Y[:, 0]"),
        ("lg.SPGPDRRegressor(2, n_inducing=300, random_state=0)", "Y, Y[:, 0]"),
        ("lg.GPCountRegressor()", "Y, np.abs(np.round(Y[:, 0]))"),
        ("lg.GPNarx(4)", "Y[:, 0]"),
    ],
)
def test_what_an_interrupted_iteration_leaves_is_the_one_before(estimator, data):
    program = textwrap.dedent(f"""
        import os, signal, threading
        import numpy as np
        import latentgp as lg
        Y = np.random.default_rng(0).normal(size=(1000, 6))
        begun = threading.Event()
        model = {estimator}
        model.set_params(callback=lambda p: begun.set())
        def interrupt():
            begun.wait()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            model.fit({data})
        except KeyboardInterrupt:
            pass
        kept = (repr(model.kernel_), model.trace_.tolist())
        model.set_params(callback=lambda p: p.iteration >= len(kept[1])).fit({data})
        assert kept == (repr(model.kernel_), model.trace_.tolist()), (kept, model.kernel_, model.trace_)
    """)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr


#: Seconds from Ctrl-C to the end of a fit on a machine that does other things as well; one is promised.
SOON = 3.0


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
def test_ctrl_c_ends_every_fit_soon():
    program = textwrap.dedent("""
        import os, signal, threading, time
        import numpy as np
        import latentgp as lg
        rng = np.random.default_rng(0)
        Y = rng.normal(size=(1200, 12))
        holed = rng.normal(size=(9000, 30))
        holed[rng.random(holed.shape) < 0.2] = np.nan
        models = [
            (lg.BayesianGPLVM(5, kernel="matern32", random_state=0), Y),
            (lg.GPLVM(5, kernel="matern32", random_state=0), Y),
            (lg.PPCA(10), holed),
            (lg.GPRegressor("matern32"), Y, Y[:, 0]),
            (lg.SparseGPRegressor(200, random_state=0), Y, Y[:, 0]),
            (lg.SPGPDRRegressor(5, n_inducing=300, random_state=0), Y, Y[:, 0]),
            (lg.VDMGPRegressor(5, kernel="matern32", random_state=0), Y, Y[:, 0]),
            (lg.GPCountRegressor(), Y[:400], np.abs(np.round(Y[:400, 0]))),
            (lg.GPClassifier(), Y[:400], np.digitize(Y[:400, 0], [-0.5, 0.5])),
            (lg.GPNarx(12), Y[:, 0]),
        ]
        for model, *data in models:
            begun, at = threading.Event(), []
            model.set_params(callback=lambda p: begun.set(), max_iter=10**6)
            def interrupt():
                begun.wait()
                at.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            thread = threading.Thread(target=interrupt)
            thread.start()
            try:
                model.fit(*data)
            except KeyboardInterrupt:
                print(type(model).__name__, time.monotonic() - at[0], model.n_iter_, flush=True)
            thread.join()
        os._exit(0)
    """)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    told = [line.split() for line in run.stdout.splitlines()]
    assert len(told) == 10, run.stdout + run.stderr
    assert all(float(seconds) < SOON and int(iterations) >= 1 for _, seconds, iterations in told), told


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
def test_ctrl_c_before_the_first_iteration_leaves_the_estimator_as_it_was():
    program = textwrap.dedent("""
        import os, signal, threading
        import numpy as np
        import latentgp as lg
        X = np.linspace(0, 6, 30)[:, None]
        model = lg.GPClassifier(max_iter=5).fit(X, X[:, 0] > 3)
        before = model.predict_proba(X)
        never = threading.Event()
        stuck = lg.kernels.Custom(lambda X, Z, params: never.wait(), None, {"variance": 1.0}, name="stuck")
        for one in (model, lg.GPClassifier()):
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                one.set_params(kernel=stuck).fit(np.hstack([X, X]), np.repeat(["a", "b", "c"], 10))
            except KeyboardInterrupt:
                print("stopped", flush=True)
        assert not hasattr(one, "classes_") and not hasattr(one, "n_features_in_")
        assert model.classes_.tolist() == [False, True] and np.array_equal(model.predict_proba(X), before)
        print("as it was", flush=True)
        os._exit(0)
    """)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert run.stdout.splitlines() == ["stopped", "stopped", "as it was"], run.stderr


def test_a_fit_that_fails_leaves_the_estimator_as_it_was(table, wave):
    x, y = wave
    model = lg.GPRegressor(max_iter=5).fit(x, y)
    before = model.predict(x)
    with pytest.raises(ValueError):
        model.fit(table, np.full(len(table), np.nan))
    assert model.n_features_in_ == 1 and np.array_equal(model.predict(x), before)


def test_what_an_interrupted_fit_skips_is_worked_out_when_asked_for(table):
    slow, release, returned = threading.Event(), threading.Event(), []

    def kernel(X, Z, params):
        if slow.is_set():
            slow.clear()
            release.wait(30)  # longer than a fit that was asked to stop is waited for
            returned.append(True)
        return params["variance"] * np.exp(-0.5 * ((X[:, None] - Z[None]) ** 2).sum(-1))

    def fit(watch):
        own = lg.kernels.Custom(kernel, None, {"variance": 1.0}, name="own")
        return lg.BayesianGPLVM(2, n_inducing=8, kernel=own, random_state=0, callback=watch).fit(table)

    whole = fit(lambda p: p.iteration == 3)
    left = fit(lambda p: p.iteration == 3 and (slow.set(), True)[1])
    assert not returned, "the fit was not left behind"
    release.set()
    assert left.certificate_ == whole.certificate_ and left.certificate_["expectation"] == "unscented"
    assert np.array_equal(left.relevance_, whole.relevance_)
    assert np.array_equal(left.embedding_std_, whole.embedding_std_)


def test_a_search_is_no_worse_than_one_start_and_tells(table, capsys):
    one = lg.BayesianGPLVM(n_inducing=6, max_iter=60, effort="quick", random_state=0).fit(table)
    model = lg.BayesianGPLVM(n_inducing=6, max_iter=60, effort="normal", random_state=0, verbose=1).fit(table)
    assert model.lower_bound_ >= one.lower_bound_ and model._report["begun"] >= 10
    assert "within 1 nat of the best" in capsys.readouterr().out
    assert model.gradient_norm_ >= 0
    with pytest.raises(ValueError, match="effort"):
        lg.BayesianGPLVM(effort="much").fit(table)


def test_a_fit_at_its_limit_warns(table):
    with pytest.warns(ConvergenceWarning, match="limit of iterations"):
        model = lg.GPRegressor(max_iter=1).fit(table[:, :3], table[:, 3])
    assert not model.converged_
