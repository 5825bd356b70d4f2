"""Runs of functions passed to `debug.callback`: exceptions, Ctrl-C, re-entrancy, threads."""

import signal
import sys
import threading

import numpy as np
import pytest

import wengert as wg

LOG = []
LIMIT = 3.0


@pytest.fixture(autouse=True)
def as_before():
    yield
    LOG.clear()
    globals()["LIMIT"] = 3.0


def too_large(v):
    if v > LIMIT:
        try:
            {}["missing"]
        except KeyError as error:
            raise ValueError(f"{v:.1f} is too large") from error


def plain(x):
    wg.debug.callback(too_large, x)
    return x * 2.0


def python_loop(x):
    for i in range(300):
        x = x * 1.01
        if i % 10 == 0:
            wg.debug.callback(too_large, x)
    return x


def scanned(x):
    def step(c, k):
        wg.debug.callback(too_large, c)
        return c * k, c

    return wg.scan(step, x, np.arange(1.0, 9.0))[0]


def repeated(x):
    def body(c):
        wg.debug.callback(too_large, c)
        return c * 1.5

    return wg.while_loop(lambda c: c < 10.0, body, x)


def in_a_branch(x):
    return wg.cond(x > 1.0, plain, lambda x: x, x)


WAYS = {
    "jit": wg.jit,
    "grad": wg.grad,
    "jit of grad": lambda f: wg.jit(wg.grad(f)),
    "second derivative": lambda f: wg.jit(wg.grad(wg.grad(f))),
    "vmap": lambda f: lambda x: wg.vmap(f)(np.array([0.1 * x, x])),
    "jit of vmap": lambda f: lambda x: wg.jit(wg.vmap(f))(np.array([0.1 * x, x])),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "f", [plain, python_loop, scanned, repeated, in_a_branch], ids=lambda f: f.__name__
)
def test_an_exception_is_raised_as_it_is(f, way):
    function = WAYS[way](f)
    for _ in range(2):
        with pytest.raises(ValueError, match="is too large") as caught:
            function(1.0 if f in (python_loop, scanned, repeated) else 4.0)
        assert type(caught.value) is ValueError and type(caught.value.__cause__) is KeyError
        last = caught.traceback[-1]
        assert last.path.name == "test_callback_runs.py" and last.frame.code.name == "too_large"
        if "jit" in way:  # which call it was, cannot be seen in the traceback
            (note,) = caught.value.__notes__
            assert "test_callback_runs.py:" in note
    globals()["LIMIT"] = np.inf
    assert np.all(np.isfinite(function(2.0)))  # and nothing is left


class Stop(BaseException):
    """No `Exception`, as KeyboardInterrupt."""


def test_what_is_not_an_exception_is_raised_too():
    def stop(v):
        raise Stop

    with pytest.raises(Stop):
        wg.jit(lambda x: (wg.debug.callback(stop, x), x)[1])(1.0)


# ---- Ctrl-C --------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of POSIX")
@pytest.mark.parametrize("way", ["value", "gradient"])
def test_a_signal_ends_an_endless_loop_of_callbacks(way, monkeypatch):
    # Of an exception at the first instruction of a callback, ctypes tells this function too.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)

    def interrupt(*_):
        raise KeyboardInterrupt

    def f(x):
        def body(c):
            wg.debug.callback(nothing, c)
            return c * 1.0

        return wg.while_loop(lambda c: c < 2.0, body, x, max_steps=None)

    compiled = wg.jit(f) if way == "value" else wg.jit(lambda x: wg.jvp(f, (x,), (1.0,))[1])
    compiled(3.0)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(3):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with pytest.raises(KeyboardInterrupt):
                compiled(1.0)  # runs until the signal comes
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def nothing(v):
    """A function without effect."""


def test_an_interrupt_at_the_first_instruction_of_a_callback_ends_the_run(monkeypatch, compiler):
    if compiler != "llvm":
        pytest.skip("native code only")

    @wg.jit
    def f(x):
        def step(i, c):
            wg.debug.callback(LOG.append, c)
            return c + 1.0

        return wg.fori_loop(0, 10, step, x)

    assert f(0.0) == 10.0
    LOG.clear()
    ignored, count = [], 0
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)

    def profile(frame, event, _):
        nonlocal count
        if event == "call" and frame.f_code.co_name == "_called":
            count += 1
            if count == 4:
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        with pytest.raises(KeyboardInterrupt):
            f(0.0)
    finally:
        sys.setprofile(before)
    assert LOG == [0.0, 1.0, 2.0] and len(ignored) == 1
    assert f(0.0) == 10.0


# ---- re-entrancy and threads ---------------------------------------------------------------------


def test_a_callback_calls_compiled_functions():
    inner = wg.jit(wg.grad(lambda x: np.sin(x) * x))

    def report(v):
        made_here = wg.jit(lambda q: q * q)
        LOG.append((float(inner(v)), float(made_here(v)), float(wg.grad(np.exp)(v))))

    def f(x):
        for i in range(200):
            x = x * 1.001
            if i % 100 == 0:
                wg.debug.callback(report, x)
        return x

    value = wg.jit(f)(1.0)
    found = LOG.copy()
    LOG.clear()
    assert value == pytest.approx(f(1.0), rel=1e-14)
    np.testing.assert_allclose(found, LOG, rtol=1e-14)
    x = np.array([1.001, 1.001**101])
    expected = np.transpose([np.cos(x) * x + np.sin(x), x * x, np.exp(x)])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_callback_calls_its_own_function():
    def again(v):
        LOG.append(float(v))
        if v < 3.0:
            LOG.append(-float(f(v + 1.0)))

    @wg.jit
    def f(x):
        wg.debug.callback(again, x)
        return np.sum(np.arange(10.0) * x)

    assert f(0.0) == 0.0
    assert LOG == [0.0, 1.0, 2.0, 3.0, -135.0, -90.0, -45.0]


def test_an_exception_in_an_inner_call_ends_the_outer_one():
    inner = wg.jit(plain)
    outer = wg.jit(lambda x: (wg.debug.callback(inner, 2.0 * x), x)[1])
    assert outer(1.0) == 1.0
    with pytest.raises(ValueError, match=r"6\.0 is too large"):
        outer(3.0)


def test_threads_call_one_function():
    def report(v, k):
        LOG.append((int(k), float(v), threading.get_ident()))
        if k % 3 == 2 and v > 5.0:
            raise ValueError(int(k))

    @wg.jit
    def f(x, k):
        for i in range(400):
            x = x * 1.001
            if i % 100 == 0:
                wg.debug.callback(report, x, k)
        return x

    f(1.0, 0)
    LOG.clear()
    results = {}

    def work(k):
        results[k] = []
        for _ in range(20):
            try:
                results[k].append(f(k + 4.0, k))
            except ValueError as error:
                results[k].append(error.args[0])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(6):
        steps = [(k + 4.0) * 1.001 ** (100 * i + 1) for i in range(4)]
        fails = k % 3 == 2
        mine = [(v, ident) for n, v, ident in LOG if n == k]
        expected = steps[:1] if fails else steps
        np.testing.assert_allclose([v for v, _ in mine], expected * 20, rtol=1e-12)
        assert len({ident for _, ident in mine}) == 1
        np.testing.assert_allclose(
            results[k], [k if fails else (k + 4.0) * 1.001**400] * 20, rtol=1e-12
        )
