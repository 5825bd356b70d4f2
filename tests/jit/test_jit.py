"""Compiled functions: containers, keywords, static arguments, closures, results of all sorts."""

import contextlib
import copy
import dataclasses
import functools
import inspect
import pickle
import sys
import threading
import types
from typing import NamedTuple

import numpy as np
import pytest

import wengert as wg
from wengert._engine.jit.programs import States
from wengert.errors import (
    ArgumentError,
    BackendError,
    ConversionError,
    ShapeError,
    StructureError,
    TracedBranchError,
    TraceError,
)

X = np.array([0.5, -1.0, 2.0])


def equal(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-14)


def same(a, b):
    """Equal values, dtypes and classes, in equal containers."""
    if isinstance(a, dict):
        assert list(a) == list(b)
        return all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        assert type(a) is type(b) and len(a) == len(b)
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    if a is None or b is None:
        assert a is b
        return True
    assert isinstance(a, wg.Tensor) == isinstance(b, wg.Tensor)
    x, y = (
        np.asarray(wg._engine.core.handle.value_of(a)),
        np.asarray(wg._engine.core.handle.value_of(b)),
    )
    assert x.dtype == y.dtype and x.shape == y.shape
    np.testing.assert_allclose(x, y, rtol=1e-14)
    return True


class Pair(NamedTuple):
    first: object
    second: object


@dataclasses.dataclass
class State:
    place: object
    speed: object


CONTAINERS = {
    "dict": (lambda p: {"sum": p["a"] + p["b"], "a": p["a"]}, ({"b": X, "a": 2.0 * X},)),
    "list": (lambda p: [p[0] * p[1][0]], ([X, [X + 1.0]],)),
    "named tuple": (lambda p: Pair(p.second, p.first * 2.0), (Pair(X, X + 1.0),)),
    "two": (lambda x, y: (x + y, x * y), (X, X + 3.0)),
    "none inside": (lambda p: (p[0] * 2.0, None), ((X, None),)),
    "scalars": (lambda x, n: x * n + 1.0, (X, 3)),
    "number of numpy": (lambda x, n: x * n, (X.astype("f4"), np.float32(3))),
    "python number": (lambda x, n: x * n, (X.astype("f4"), 3.0)),
    "complex": (lambda x: np.exp(x * 1j), (X,)),
    "no arguments": (lambda: np.arange(3.0) + 1.0, ()),
    "input comes back": (lambda x: (x, x), (X,)),
    "constant": (lambda x: (np.ones(2), x), (X,)),
    "nothing depends on it": (lambda x: np.ones(2), (X,)),
    "none": (lambda x: None, (X,)),
    "empty": (lambda x: (), (X,)),
    "integers": (lambda x: x // 2 + np.argmax(x), (np.array([3, 9, 4]),)),
    "truth": (lambda x: x > 0, (X,)),
    "no axes": (lambda x: np.sin(x), (np.array(0.5),)),
    "strided": (lambda x: x * 2.0, (np.arange(12.0).reshape(3, 4)[::-2, ::2],)),
}


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", CONTAINERS)
def test_containers(name):
    f, args = CONTAINERS[name]
    j = wg.jit(f)
    for _ in range(2):
        got, want = j(*args), f(*args)
        assert same(got, want)
    assert j.cache_info().traces == 1


def test_dataclasses():
    @wg.jit
    def step(s, dt):
        return State(s.place + dt * s.speed, s.speed)

    s = step(State(X, X + 1.0), 0.5)
    assert type(s) is State
    equal(s.place, X + 0.5 * (X + 1.0))


def test_keywords_and_defaults():
    @wg.jit
    def f(x, y=2.0, *, z=1.0):
        return x * y + z

    equal(f(X), X * 2.0 + 1.0)
    equal(f(X, y=3.0), X * 3.0 + 1.0)
    equal(f(X, 3.0, z=X), X * 3.0 + X)
    equal(f(y=X, x=X), X * X + 1.0)
    with pytest.raises(TypeError):
        f()


def test_numbers_are_fed():
    j = wg.jit(lambda x, k: x * k)
    for k in (1.0, 2.0, -0.0):
        equal(j(X, k), X * k)
    assert j.cache_info().traces == 1
    assert j(X.astype("f4"), 2.0).dtype == np.float32
    assert j(X.astype("f4"), np.float64(2.0)).dtype == np.float64


def test_static_arguments():
    @wg.jit(static_argnames="n")
    def f(x, n):
        out = x
        for _ in range(n):
            out = out * x
        return out

    for n in (0, 1, 3):
        np.testing.assert_allclose(f(X, n), X ** (n + 1))
        np.testing.assert_allclose(f(X, n=n), X ** (n + 1))
    g = wg.jit(lambda x, mode: np.sin(x) if mode == "sin" else np.cos(x))
    equal(g(X, "sin"), np.sin(X))
    equal(g(X, "cos"), np.cos(X))
    h = wg.jit(lambda x, k: x * k, static_argnums=1)
    for k in (1, 1.0, True, 0.0, -0.0):
        assert same(h(X, k), X * k)
    assert h.cache_info().traces == 5
    last = wg.jit(lambda *xs: xs[0] * xs[-1], static_argnums=-1)
    equal(last(X, 2), X * 2)
    p = wg.jit(lambda x, axes: np.sum(x, axis=tuple(axes)), static_argnums=(1,))
    assert p(np.ones((2, 3)), [0, 1]) == 6.0
    with pytest.raises(ArgumentError, match="static argument is a ndarray"):
        h(X, X)


def test_static_objects_go_by_identity():
    class Scale:
        def __init__(self, k):
            self.k = k

    f = wg.jit(lambda x, s: x * s.k)
    a, b = Scale(2.0), Scale(3.0)
    for s in (a, b, a):
        equal(f(X, s), X * s.k)
    assert f.cache_info().traces == 2


def test_results_are_the_callers_own():
    f = wg.jit(lambda x: (x, x, x[1:]))
    x = X.copy()
    for r in f(x):
        r[0] = 99.0
    equal(x, X)
    g = wg.jit(lambda: np.arange(3.0))
    g()[0] = 9.0
    assert g()[0] == 0.0


def test_arguments_that_are_written_to():
    def f(x, y):
        x[0] = 5.0
        x[1:] *= y
        y = y + x[0]
        return x * 2.0, y

    j = wg.jit(f)
    for make in (np.copy, wg.tensor):
        a, b, y = make(X), make(X), 3.0
        assert same(j(a, y), f(b, y))
        equal(np.asarray(a), np.asarray(b))
    a, b = np.arange(6.0), np.arange(6.0)  # two views of one array
    assert same(j(a[:3], a[2:4]), f(b[:3], b[2:4]))
    equal(a, b)
    fixed = np.ones(3)
    fixed.flags.writeable = False
    with pytest.raises(ValueError):
        j(fixed, 1.0)
    number = wg.jit(lambda x: sum_up(x))
    assert number(2.0) == 3.0
    equal(wg.grad(lambda x: np.sum(j(x * 1.0, 2.0)[0]))(X), [0.0, 4.0, 4.0])


def sum_up(x):
    x += 1.0
    return x


def test_variables_are_read_and_written():
    w = wg.variable([1.0, 2.0, 3.0], "w")
    count = wg.variable(0, "count")

    @wg.jit
    def f(x):
        out = np.sum(w * x)
        with wg.no_grad():
            count[...] = count + 1
        return out

    assert f(X).item() == np.sum(w.numpy() * X)
    with wg.no_grad():
        w *= 10.0
    assert f(X).item() == np.sum(w.numpy() * X)
    assert int(count) == 2
    assert f.cache_info().traces == 1


def test_tensors_in_tensors_out():
    f = lambda x, y: (x * 2.0, y * 3.0, x + y)  # noqa: E731
    j = wg.jit(f)
    t = wg.tensor(X)
    assert same(j(t, X), f(t, X))
    r = wg.tensor(X, requires_grad=True)
    assert [a.requires_grad for a in j(r, t)] == [a.requires_grad for a in f(r, t)]
    a, b = j(r, X)[1], f(r, X)[1]
    assert type(a) is type(b) is np.ndarray
    with wg.no_grad():
        assert not j(r, X)[0].requires_grad


class Model:
    def __init__(self, k):
        self.k = k

    @wg.jit
    def scaled(self, x):
        return x * self.k

    @wg.jit(static_argnames=("n",))
    def powered(self, x, n=2):
        return x**n * self.k


def test_methods():
    a, b = Model(2.0), Model(5.0)
    equal(a.scaled(X), X * 2.0)
    equal(b.scaled(X), X * 5.0)
    equal(a.powered(X, n=3), X**3 * 2.0)
    equal(wg.jit(a.scaled)(X), X * 2.0)
    assert Model.scaled.__name__ == "scaled"


def test_other_callables():
    equal(wg.jit(np.sin)(X), np.sin(X))
    equal(wg.jit(functools.partial(np.multiply, 2.0))(X), 2.0 * X)
    graph = wg.trace(lambda x: x * 2.0)(wg.spec("n"))
    equal(wg.jit(graph)(X), 2.0 * X)

    class Callable:
        def __call__(self, x):
            return x + 1.0

    assert wg.jit(Callable()).__name__ == "Callable"
    equal(wg.jit(Callable())(X), X + 1.0)


def test_bears_the_name_of_its_function():
    @wg.jit
    def area(width, height=2.0):
        """Of a rectangle."""
        return width * height

    assert area.__name__ == "area" and area.__doc__ == "Of a rectangle."
    assert list(inspect.signature(area).parameters) == ["width", "height"]
    assert "jit of" in repr(area) and "area" in repr(area)


def module_level(x):
    return x * 2.0


decorated = wg.jit(module_level)


@wg.jit
def standing(x):
    return x * 3.0


def test_copies_and_pickles():
    for f in (copy.copy(decorated), copy.deepcopy(decorated)):
        equal(f(X), 2.0 * X)
    again = pickle.loads(pickle.dumps(wg.jit(np.sin, simplify=False)))
    equal(again(X), np.sin(X))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, __name__, sys.modules.get(__name__, this_module()))
        assert pickle.loads(pickle.dumps(standing)) is standing


def this_module():
    module = types.ModuleType(__name__)
    vars(module).update(globals())
    return module


class Matrix(np.ndarray):
    """Not of numpy, which warns of its own."""

    def __mul__(self, other):
        return self @ other


@pytest.mark.usefixtures("unconverted")
def test_refusals():
    with pytest.raises(TracedBranchError, match=r"test_jit\.py"):
        wg.jit(lambda x: x if x[0] > 0 else -x)(X)
    with pytest.raises(StructureError, match="returned a str"):
        wg.jit(lambda x: "text")(X)
    with pytest.raises(ConversionError, match="Matrix"):
        wg.jit(lambda x: x)(np.ones((2, 2)).view(Matrix))
    with pytest.raises(ArgumentError, match="generator"):
        wg.jit(lambda x: (yield x))
    with pytest.raises(ArgumentError, match="class"):
        wg.jit(Model)
    with pytest.raises(ArgumentError, match="host_callbacks"):
        wg.jit(np.sin, host_callbacks="maybe")
    with pytest.raises(ArgumentError, match="threads"):
        wg.jit(np.sin, threads=0)
    with pytest.raises(ArgumentError, match="not a function"):
        wg.jit(3)
    with pytest.raises(LookupError, match="no backend"):
        wg.jit(np.sin, backend="fortran")
    with pytest.raises(ArgumentError, match="lower"):
        wg.jit(np.sin)(wg.spec(3))


def test_errors_of_runs():
    f = wg.jit(lambda x, y: x + y)
    f(X, X)
    with pytest.raises(ShapeError):
        f(X, np.ones(5))
    equal(f(X, X), 2 * X)
    g = wg.jit(lambda x, i: x[i])
    assert g(X, np.array(2)) == X[2]
    with pytest.raises(IndexError):
        g(X, np.array(7))
    assert g(X, np.array(2)) == X[2]


def test_recursion():
    @wg.jit(static_argnames="n")
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    np.testing.assert_allclose(power(X, 5), X**5)

    @wg.jit
    def endless(x):
        return endless(x) + 1.0

    with pytest.raises(TraceError, match="recurses infinitely"):
        endless(X)


def test_an_interrupt_leaves_it_usable():
    strike = [True]

    @wg.jit
    def f(x):
        y = x * 2.0
        if strike:
            strike.clear()
            raise KeyboardInterrupt
        return y

    with pytest.raises(KeyboardInterrupt):
        f(X)
    equal(f(X), 2.0 * X)


def test_threads_compile_once():
    gate = threading.Barrier(8)

    @wg.jit
    def f(x):
        return np.sum(np.sin(x) ** 2)

    found = []

    def work():
        gate.wait()
        found.extend(float(f(X)) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 160 and len(set(found)) == 1
    assert f.cache_info().traces == 1


def test_threads_that_find_no_program_at_the_same_time_compile_once(monkeypatch):
    """Whoever looks at what the function captures waits for the other, if it may come there."""
    meeting = threading.Barrier(2)
    discovered = States.discovered

    def late(self, call, level):
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(0.1)
        return discovered(self, call, level)

    monkeypatch.setattr(States, "discovered", late)
    f = wg.jit(lambda x: np.sum(np.sin(x) ** 2))
    threads = [threading.Thread(target=f, args=(X,)) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert f.cache_info().traces == 1


def test_random_numbers_are_refused():
    gen = np.random.default_rng(0)
    with pytest.raises(TraceError, match="draws random numbers"):
        wg.jit(lambda x: x + gen.normal(size=3))(X)
    with pytest.raises(TraceError, match=r"wengert\.random\.Stream"):
        wg.jit(lambda x: x + np.random.rand())(X)
    with pytest.raises(TraceError, match="draws"):
        wg.jit(lambda x, g: x + g.normal())(X, gen)
    stream = wg.random.Stream(0)
    f = wg.jit(lambda x: x + stream.normal(3))
    again = wg.random.Stream(0)
    for _ in range(3):
        equal(f(X), X + again.normal(3))


def test_random_numbers_that_other_threads_draw():
    """Event loops do, so that compiling in a worker thread was refused now and then."""
    import random

    def elsewhere():
        for target in (random.random, random.getrandbits):
            thread = threading.Thread(target=target, args=(8,) * (target is random.getrandbits))
            thread.start()
            thread.join()

    def draws(x):
        elsewhere()
        return x * random.uniform(1.0, 2.0)

    def does_not(x):
        elsewhere()
        return x * 2.0

    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        f = wg.jit(does_not)
        equal(f(X), X * 2.0)
        assert f.cache_info().programs == 1
        with pytest.raises(TraceError, match=r"draws draws random numbers \(random\)"):
            wg.jit(draws)(X)
    finally:
        done.set()
        other.join()


def test_lowering_and_ahead_of_time():
    f = wg.jit(lambda x: np.sum(x * 1.0 + 0.0))
    lowered = f.lower(wg.spec(3))
    assert lowered.graph.outputs[0].spec.shape == ()
    assert "sum" in str(lowered)
    assert f.cache_info().traces == 1
    f(X)
    assert f.cache_info().traces == 1
    g = wg.jit(lambda x: np.sum(x * 2.0), backend="interpret")
    assert g.compile(wg.spec("n")) is g
    for n in (1, 2, 5):
        assert g(np.ones(n)) == 2.0 * n
    assert g.cache_info().programs == g.cache_info().general == g.cache_info().traces == 1
    with pytest.raises(BackendError, match="llvm"):
        _ = g.lower(X).llvm_ir
    with pytest.raises(BackendError, match="no address"):
        g.address(X)
    g.clear_cache()
    assert g.cache_info().programs == 0


def test_policies_have_programs_of_their_own():
    f = wg.jit(lambda x: x * np.float64(2.0))
    x = X.astype("f4")
    assert f(x).dtype == np.float64
    with wg.policy(max_float="float32"):
        assert f(x).dtype == np.float32
    assert f(x).dtype == np.float64


def test_inputs_of_graphs_by_hand():
    x = wg.input("x", 3)
    f = wg.jit(lambda y: x * y)
    out = f(X)
    got = wg.computation(out, x)(np.ones(3))
    equal(got, X)
    equal(wg.computation(wg.jit(np.sin)(x), x)(X), np.sin(X))


def test_noted_lines_are_seen():
    f = wg.jit(lambda x: np.sum(np.sin(x) * x))
    t = wg.tensor(X, requires_grad=True)
    f(t)
    with wg.note_lines():
        y = f(t)
    assert {n.op.name for n in wg.Graph(y).nodes} >= {"sin", "multiply", "sum"}


def test_the_old_name_of_host_callbacks_still_works():
    with pytest.warns(DeprecationWarning, match="host_callbacks"):
        compiled = wg.jit(np.tanh, islands="forbid")
    equal(compiled(X), np.tanh(X))


def test_host_callbacks_can_be_forbidden(compiler):
    @wg.primitive(callback=True)
    def reversed_twice(x):
        return x[::-1] * 2.0

    f = lambda x: reversed_twice(x) + 1.0  # noqa: E731
    equal(wg.jit(f)(X), f(X))
    strict = wg.jit(f, host_callbacks="forbid")
    if compiler == "interpret":
        equal(strict(X), f(X))
        return
    with pytest.raises(
        BackendError, match=r"reversed_twice.*test_jit\.py.*host_callbacks='forbid'"
    ):
        strict(X)
    equal(wg.jit(np.tanh, host_callbacks="forbid")(X), np.tanh(X))


def test_conditions_that_raise_are_no_host_callbacks():
    @wg.jit(host_callbacks="forbid")
    def total(x):
        assert np.all(x < 5)
        return np.sum(x)

    equal(total(X), np.sum(X))
    with pytest.raises(AssertionError):
        total(X + 5)


def test_native_text(compiler):
    lowered = wg.jit(lambda x: np.sum(x * x)).lower(wg.spec("n"))
    if compiler == "llvm":
        assert "double" in lowered.llvm_ir and lowered.loops and lowered.assembly
    assert "lowered" in repr(lowered)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"fallback": "host"}, r"fallback='host'.*host_callbacks='allow'.*host_callbacks='forbid'"),
        ({"host_callback": "allow"}, "Did you mean host_callbacks"),
        ({"device": "cuda"}, "backend='cuda'"),
        ({"inlining": True}, r"Its options are static_argnums, .*source \("),
    ],
)
def test_options_that_there_are_not(options, advice):
    with pytest.raises(TypeError, match=advice) as caught:
        wg.jit(np.sin, **options)
    assert "test_jit.py" in str(caught.value)
