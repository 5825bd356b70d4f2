"""wengert.debug.print, breakpoint and callback: once for each step, in the order of the program."""

import bdb
import io

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core import message_order
from wengert.errors import ArgumentError


@pytest.fixture(params=["first use", "used before"], autouse=True)
def used(request, monkeypatch):
    """Whether a loop with a call has been traced before in the process, which changes traces."""
    monkeypatch.setattr(message_order._MessageUse, "count", int(request.param == "used before"))


def counted(x):
    def body(i, c):
        wg.debug.print("c={c} i={i}", c=c, i=i)
        return c * 2.0

    return wg.fori_loop(0, 3, body, x)


def python_loop(x):
    for _ in range(3):
        wg.debug.print("x={}", x)
        x = x * x
    return x


def long_loop(x):
    wg.debug.print("before")
    for i in range(300):
        if i % 100 == 0:
            wg.debug.print("x={}", x)
        x = x * 1.001
    wg.debug.print("after {:.4f}", x)
    return x


def unknown_number_of_steps(x):
    while x < 10.0:
        wg.debug.print("x={x}", x=x)
        x = x * x
    return x


def scanned(x):
    def step(c, i):
        wg.debug.print("c={0}", c)
        return c * i, c

    wg.debug.print("start")
    out = wg.scan(step, x, np.arange(1.0, 4.0))[0]
    wg.debug.print("end {}", out)
    return out


def nested(x):
    def inner(j, c):
        wg.debug.print("{}", c)
        return c + 1.0

    return wg.fori_loop(0, 2, lambda i, c: wg.fori_loop(0, 2, inner, c) * x, x)


def branches(x):
    def yes(x):
        wg.debug.print("yes {}", x)
        return x * 2.0

    def no(x):
        wg.debug.print("no {}", x)
        return x * 3.0

    return wg.cond(x > 1.0, yes, no, x)


def python_branch(x):
    wg.debug.print("here")
    if x > 1.0:
        wg.debug.print("big {}", x)
        return x * 2.0
    return x * 3.0


def unused(x):
    wg.debug.print("{}", np.sin(0.0 * x))
    return 3.0 * x


FUNCTIONS = [
    (counted, "c=1.5 i=0\nc=3.0 i=1\nc=6.0 i=2\n"),
    (python_loop, "x=1.5\nx=2.25\nx=5.0625\n"),
    (long_loop, "before\nx=1.5\nx=1.6576735465811328\nx=1.83192"),
    (unknown_number_of_steps, "x=1.5\nx=2.25\nx=5.0625\n"),
    (scanned, "start\nc=1.5\nc=1.5\nc=3.0\nend 9.0\n"),
    (nested, "1.5\n2.5\n5.25\n6.25\n"),
    (branches, "yes 1.5\n"),
    (python_branch, "here\nbig 1.5\n"),
    (unused, "0.0\n"),
]
WAYS = {
    "eager": lambda f: f,
    "jit": wg.jit,
    "grad": wg.grad,
    "jit of grad": lambda f: wg.jit(wg.grad(f)),
    "grad of jit": lambda f: wg.grad(wg.jit(f)),
    "second derivative": lambda f: wg.jit(wg.grad(wg.grad(f))),
    "jvp": lambda f: wg.jit(lambda x: wg.jvp(f, (x,), (1.0,))[1]),
    "interpreted": lambda f: wg.jit(f, backend="interpret"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("f", "lines"), FUNCTIONS)
def test_lines_are_printed_once_in_order(f, lines, way, capsys):
    function = WAYS[way](f)
    value = function(1.5)
    written = capsys.readouterr().out
    assert written.startswith(lines) and written.count("\n") == (5 if f is long_loop else
                                                                 lines.count("\n"))  # fmt: skip
    if "jit" in way:
        assert function(1.5) == value  # and at each run
        assert capsys.readouterr().out == written


def test_derivatives_are_those_without_prints():
    assert wg.grad(scanned)(1.5) == 6.0 and wg.jit(wg.grad(counted))(1.5) == 8.0
    assert wg.jit(wg.grad(python_loop))(1.5) == pytest.approx(8 * 1.5**7)
    assert wg.jit(wg.grad(wg.grad(python_loop)))(1.5) == pytest.approx(56 * 1.5**6)
    assert wg.jit(wg.grad(nested))(2.0) == wg.grad(
        lambda x: ((x + 2.0) * x + 2.0) * x
    )(2.0)  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", [counted, python_loop, scanned])
def test_each_element_of_a_batch_is_printed(f, compiled, capsys):
    expected = [f(x) for x in (1.5, 0.5)]
    alone = sorted(capsys.readouterr().out.splitlines())
    batched = wg.jit(wg.vmap(f)) if compiled else wg.vmap(f)
    np.testing.assert_allclose(batched(np.array([1.5, 0.5])), expected)
    found = capsys.readouterr().out.splitlines()
    assert sorted(x for x in found if x != "start") == [x for x in alone if x != "start"]


def test_nested_batches(capsys):
    def f(x, y):
        wg.debug.print("{} {}", x, y)
        return x * y

    rows = wg.vmap(lambda x: wg.vmap(lambda y: f(x, y))(np.array([3.0, 4.0])))
    assert rows(np.array([1.0, 2.0])).tolist() == [[3.0, 4.0], [6.0, 8.0]]
    assert capsys.readouterr().out == "1.0 3.0\n1.0 4.0\n2.0 3.0\n2.0 4.0\n"


def test_containers_and_constants(capsys):
    x = np.array([1.0, 2.0])
    f = wg.jit(lambda p: wg.debug.print("{p} {n} {0[k]:.1f}", {"k": p["a"]}, p=p, n="name"))
    f({"a": 1.0, "b": (2.0,)})
    expected = "{'a': np.float64(1.0), 'b': (np.float64(2.0),)} name 1.0\n"
    assert capsys.readouterr().out == expected
    g = wg.jit(lambda y: wg.debug.print("{} {}", x, y))
    g(1.0)
    x[0] = 5.0  # an array from outside has its value at the time of the run
    g(1.0)
    assert capsys.readouterr().out == "[1. 2.] 1.0\n[5. 2.] 1.0\n"


def test_callback():
    seen = []

    @wg.jit
    def f(x):
        for _ in range(3):
            x = x + np.ones(2)
            wg.debug.callback(lambda a, tag: seen.append((tag, a)), x, tag="t")
        return np.sum(x)

    assert f(np.zeros(2)) == 6.0
    assert [(t, a.tolist()) for t, a in seen] == [("t", [k, k]) for k in (1.0, 2.0, 3.0)]

    def fails(x):
        wg.debug.callback(lambda x: {}[x], 3)
        return x

    with pytest.raises(KeyError):
        wg.jit(fails)(1.0)
    with pytest.raises(ArgumentError, match="not a function"):
        wg.debug.callback(3.0, 1.0)


@pytest.mark.parametrize(
    ("fmt", "args", "kwargs", "message"),
    [
        (3.0, (), {}, "must be a format string"),
        ("{", (), {}, "'{'"),
        ("{} {}", (1.0,), {}, "names 1, which is not given"),
        ("{x}", (), {"y": 1.0}, "names x, which is not given"),
        ("{}", (1.0, 2.0), {}, "does not name 1, which is given"),
        ("x", (), {"x": 1.0}, "does not name x, which is given"),
    ],
)
def test_formats_are_checked(fmt, args, kwargs, message):
    with pytest.raises(ArgumentError, match=message):
        wg.debug.print(fmt, *args, **kwargs)


@pytest.mark.parametrize("way", ["eager", "jit", "jit of grad"])
def test_breakpoint(way):
    written = io.StringIO()

    def f(x):
        for k in range(2):  # noqa: B007 - the debugger prints it
            y = 3.0 * x
            commands = io.StringIO("p y, k\nw\np float(y) + 1\nc\n")
            wg.debug.breakpoint(stdin=commands, stdout=written)
            x = x + y
        return x

    assert WAYS[way](f)(2.0) == (16.0 if "grad" in way else 32.0)
    text = written.getvalue()
    assert "test_runtime_calls.py" in text and "wg.debug.breakpoint(stdin=commands" in text
    assert ", 0)" in text and ", 1)" in text and "6.0" in text and "25.0" in text


def test_breakpoints_see_values_of_a_loop():
    written = io.StringIO()

    def body(i, c):
        wg.debug.breakpoint(stdin=io.StringIO("p (int(i), float(c))\nc\n"), stdout=written)
        return c * 2.0

    assert wg.jit(lambda x: wg.fori_loop(0, 1, body, x))(1.5) == 3.0
    assert "(0, 1.5)" in written.getvalue()


def test_quitting_a_breakpoint_ends_the_program():
    def f(x):
        wg.debug.breakpoint(stdin=io.StringIO("q\n"), stdout=io.StringIO())
        return x

    with pytest.raises(bdb.BdbQuit):
        wg.jit(f)(1.0)


def test_what_a_derivative_runs_again_is_printed_again(capsys):
    def f(x):
        wg.debug.print("{}", x)
        return np.sin(x)

    assert wg.jit(wg.grad(wg.checkpoint(f)))(0.0) == 1.0
    assert set(capsys.readouterr().out.splitlines()) == {"0.0"}


def test_calls_in_rules_of_derivatives(capsys):
    @wg.custom_vjp
    def f(x):
        return x * x

    def backward(residuals, t):
        wg.debug.print("t={}", t)
        return (2.0 * residuals * t,)

    f.defvjp(lambda x: (f(x), x), backward)
    assert wg.grad(lambda x: 3.0 * f(x))(2.0) == 12.0
    assert wg.jit(wg.grad(lambda x: 3.0 * f(x)))(2.0) == 12.0
    assert capsys.readouterr().out == "t=3.0\nt=3.0\n"
