"""Functions passed to `wengert.debug.callback`: what they read is not guarded, which they are is.

Each program is compared with itself without compilation, which calls the functions at once.
"""

import functools
import linecache

import numpy as np
import pytest
import scipy.optimize
from wengert.debug import callback
from wengert.debug import callback as call_later

import wengert as wg
from wengert import debug

W = np.array([1.0, 2.0, 3.0])
K = 3.0
COUNT = 0
LOG = []


class Counter:
    def __init__(self):
        self.count, self.values, self.w = 0, [], np.ones(3)

    def record(self, v):
        self.count += 1
        self.values.append((self.count, float(v)))

    def attribute(self, x):
        loss = x * np.sum(self.w)
        wg.debug.callback(self.record, loss)
        return loss

    def in_a_lambda(self, x):
        loss = x * np.sum(self.w)
        wg.debug.callback(lambda v: self.record(v), loss)
        return loss


class Callable(Counter):
    def __call__(self, v):
        self.record(v)

    def itself(self, x):
        wg.debug.callback(self, x)
        return x * 2.0


COUNTER = Callable()


@pytest.fixture(autouse=True)
def as_before():
    yield
    globals()["W"], globals()["K"], globals()["COUNT"] = np.array([1.0, 2.0, 3.0]), 3.0, 0
    globals()["COUNTER"], globals()["record"] = Callable(), append
    LOG.clear()


def count(v):
    global COUNT
    COUNT += 1
    LOG.append((COUNT, float(v)))


def append(v, tag=None):
    LOG.append((len(LOG), tag, float(v)))


def attributes(v):
    COUNTER.count += 1
    COUNTER.values.append(float(v) * COUNTER.count)


def weighted(v):
    LOG.append(float(v) * W.sum() + len(LOG))


record = append
tagged = functools.partial(append, tag="t")


def a_global(x):
    wg.debug.callback(count, x)
    return x * K


def by_keyword(x):
    debug.callback(callback=count, v=x)
    return x * K


def imported(x):
    callback(attributes, x)
    call_later(append, x * x)
    return x * K


def with_arrays(x):
    wg.debug.callback(weighted, x)
    return x * np.sum(W)


def a_lambda(x):
    wg.debug.callback(lambda v, k=K: LOG.append(float(v) * W.sum() + len(LOG) + k), x)
    return x * np.sum(W)


def a_nested_function(x):
    def helper(v):
        attributes(v)

    def report(v):
        global COUNT
        COUNT += 1
        LOG.append(COUNT * W[0])
        helper(v)

    for _ in range(3):
        x = x * W[1]
        wg.debug.callback(report, x)
    return x


def in_a_body(x):
    def report(v):
        LOG.append((len(LOG), float(v)))

    def body(i, c):
        wg.debug.callback(report, c)
        wg.debug.callback(count, c)
        return c * W[1]

    return wg.fori_loop(0, 3, body, x)


def in_a_branch(x):
    if x > 1.0:
        wg.debug.callback(count, x)
        return x * 2.0
    wg.debug.callback(lambda v: LOG.append((v, len(LOG))), x)
    return x * 3.0


def a_method(x):
    wg.debug.callback(COUNTER.record, x)
    return x * np.sum(W)


def an_object(x):
    wg.debug.callback(COUNTER, x)
    return x * 2.0


def partials(x):
    wg.debug.callback(functools.partial(append, tag="u"), x)
    wg.debug.callback(tagged, x)
    return x * 2.0


def either(x):
    wg.debug.callback(count if K > 2.0 else append, x)
    return x * 2.0


def several_arguments(x):
    wg.debug.callback(
        lambda a, b, m: LOG.append((float(a), b, *m["n"])), x, [v for v in (1, 2)], m={"n": W}
    )
    return x * np.sum(W)


PROGRAMS = [
    a_global, by_keyword, imported, with_arrays, a_lambda, a_nested_function, in_a_body,
    in_a_branch, a_method, an_object, partials, either, several_arguments,
]  # fmt: skip
METHODS = [(Counter, "attribute"), (Counter, "in_a_lambda"), (Callable, "itself")]


def state():
    return COUNT, list(LOG), COUNTER.count, list(COUNTER.values)


def runs(f, calls=4):
    """The results of some calls, and the state after each."""
    globals()["COUNT"], globals()["COUNTER"] = 0, Callable()
    LOG.clear()
    found = []
    for k in range(calls):
        y = f(float(1 + k % 2))
        found.append((float(y), state()))
    return found


@pytest.mark.parametrize("way", ["value", "gradient"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_what_a_callback_reads_and_assigns_is_not_part_of_the_program(f, way):
    expected = runs(f)
    compiled = wg.jit(f) if way == "value" else wg.jit(wg.value_and_grad(f))
    compiled(1.0)
    traces = compiled.cache_info().traces  # COUNTER is another object after this call
    found = runs(compiled if way == "value" else lambda x: compiled(x)[0])
    assert found == expected
    assert compiled.cache_info().traces <= traces + ("COUNTER" in f.__code__.co_names)


@pytest.mark.parametrize(("cls", "method"), METHODS)
def test_methods_act_on_the_object(cls, method):
    expected, counter = cls(), cls()
    compiled = wg.jit(getattr(counter, method))
    for k in range(4):
        assert compiled(float(k)) == getattr(expected, method)(float(k))
        assert (counter.count, counter.values) == (expected.count, expected.values)
    # What the class's __call__ reads is guarded: an object that is an argument may be called.
    assert compiled.cache_info().traces == (4 if method == "itself" else 1)


def test_variables_of_enclosing_functions():
    total, history = 0.0, []

    def add(v):
        nonlocal total
        total += float(v)

    def f(x):
        wg.debug.callback(add, x)
        wg.debug.callback(lambda v: history.append(v * total), x)
        return x * K

    compiled = wg.jit(f)
    for k in range(4):
        assert compiled(2.0) == 6.0 and total == 2.0 * (k + 1)
    history_before, history = history, []  # the variable is read when the lambda runs
    compiled(2.0)
    assert history_before == [4.0, 8.0, 12.0, 16.0] and history == [20.0]
    assert compiled.cache_info().traces == 1


STEPS = []


def note_step(*args):
    STEPS.append(np.array(getattr(args[0], "x", args[0])))


def minimized(a):
    def distance(x):
        return np.sum((x - a) ** 2 * (x + W[0]) ** 2)

    return scipy.optimize.minimize(distance, np.full(2, 1.3), callback=note_step).x


def found_root(a):
    def residual(x):
        return x**2 - a * W[:2]

    return scipy.optimize.root(
        residual, np.ones(2), method="krylov", callback=note_step, options={"fatol": 1e-9}
    ).x


def fitted(a):
    def residuals(x):
        return np.concatenate([x - a, x**2 - W[:2]])

    return scipy.optimize.least_squares(residuals, np.ones(2), callback=note_step).x


@pytest.mark.parametrize("f", [minimized, found_root, fitted], ids=lambda f: f.__name__)
def test_callbacks_of_solvers_act_on_the_objects_of_the_program(f):
    compiled = wg.jit(f)
    for a in (2.0, 3.0, 4.0):  # STEPS is captured, with arrays that are inputs from now on
        before = len(STEPS)
        f(a)
        expected = len(STEPS) - before
        compiled(a)
        assert expected > 0 and len(STEPS) - before == 2 * expected
        np.testing.assert_allclose(STEPS[-1], STEPS[before + expected - 1], rtol=1e-6)
    STEPS.clear()


# ---- values that are known only when the program runs --------------------------------------------


def in_a_cell(x):
    for i in range(300):
        y = np.sin(x) + i
        if i % 100 == 0:
            wg.debug.callback(lambda v: LOG.append((float(v), float(y), int(i))), x)  # noqa: B023
        x = x * 1.001
    return x


def in_a_default(x):
    y, z = x * x, np.sin(x)
    wg.debug.callback(lambda v, y=y, *, w=W, z=z: LOG.append((v, y, *w, z)), x)
    return y


def in_a_partial(x):
    y = x * x
    wg.debug.callback(functools.partial(functools.partial(append, y), tag=float(x)))
    return y


def number_in_a_cell(x):
    k, w = K, W

    def report(v):
        LOG.append((float(v), float(k), *map(float, w)))

    wg.debug.callback(report, x)
    return x * k * w[0]


@pytest.mark.parametrize("way", ["value", "gradient"])
@pytest.mark.parametrize(
    "f", [in_a_cell, in_a_default, in_a_partial, number_in_a_cell], ids=lambda f: f.__name__
)
def test_values_that_a_callback_holds(f, way):
    compiled = wg.jit(f) if way == "value" else wg.jit(wg.value_and_grad(f))
    for k in (3.0, 4.0, 5.0):
        globals()["K"], globals()["W"] = k, np.array([k, 1.0])
        LOG.clear()
        expected = f(2.0 * k)
        log = list(LOG)
        LOG.clear()
        found = compiled(2.0 * k)
        np.testing.assert_allclose(found if way == "value" else found[0], expected, rtol=1e-14)
        np.testing.assert_allclose(np.array(LOG, float), np.array(log, float), rtol=1e-14)


def test_elements_of_a_batch_that_a_callback_holds():
    def f(x):
        y = np.sum(x) * x
        wg.debug.callback(lambda: LOG.append(y.tolist()))
        return y

    wg.jit(wg.vmap(f))(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert LOG == [[3.0, 6.0], [21.0, 28.0]]


# ---- another function, and functions that are used in another way --------------------------------


def through_record(x):
    wg.debug.callback(record, x)
    return x * K


def test_another_function_is_called():
    compiled = wg.jit(through_record)
    compiled(1.0)
    globals()["record"] = count
    compiled(1.0)
    compiled(1.0)
    assert LOG == [(0, None, 1.0), (1, 1.0), (2, 1.0)]
    assert compiled.cache_info().traces == 2


def test_another_function_in_a_cell():
    report = LOG.append

    def f(x):
        wg.debug.callback(report, x)
        return x * K

    compiled = wg.jit(f)
    compiled(1.0)
    report = lambda v: LOG.append(-v)  # noqa: E731
    compiled(1.0)
    assert LOG == [1.0, -1.0] and compiled.cache_info().traces == 2


@pytest.mark.parametrize("where", ["object", "class", "subclass", "slot"])
def test_another_method(where):
    class Base:
        __slots__ = ("__dict__", "in_slot")

        def record(self, v):
            LOG.append(("base", v))

    class Derived(Base):
        pass

    x = Derived()
    x.in_slot = x.record

    def f(v):
        wg.debug.callback(x.in_slot if where == "slot" else x.record, v)
        return v * K

    def other(*args):
        LOG.append(("other", args[-1]))

    compiled = wg.jit(f)
    compiled(1.0)
    if where == "object":
        x.record = other
    elif where == "slot":
        x.in_slot = other
    else:
        (Base if where == "class" else Derived).record = other
    compiled(1.0)
    compiled(1.0)
    assert LOG == [("base", 1.0), ("other", 1.0), ("other", 1.0)]
    assert compiled.cache_info().traces == 2


def scaled(x):
    return x * K


def called_too(x):
    wg.debug.callback(scaled, x)
    return scaled(x)


def passed_on(x):
    wg.debug.callback(scaled, x)
    return sum(map(scaled, [x, x]))


def through_an_alias(x):
    f = scaled
    wg.debug.callback(f, x)
    return f(x)


def called_in_a_body(x):
    def by_k(v):
        return v * K

    wg.debug.callback(by_k, x)
    return wg.fori_loop(0, 2, lambda i, c: by_k(c), x)


def lambda_called(x):
    by_k = lambda v: v * K  # noqa: E731
    wg.debug.callback(by_k, x)
    return by_k(x)


def its_attribute(x):
    wg.debug.callback(scaled, x)
    return x * scaled.factor


def not_the_first_argument(x):
    seen = []
    wg.debug.callback(seen.append, scaled(x))
    return scaled(x)


def a_function_of_another_name(x):
    def callback(f, v):
        return f(v)

    return callback(scaled, x)


class Passing:
    def callback(self, f, v):
        return f(v)


debugging = Passing()


def a_method_of_this_name(x):
    return debugging.callback(scaled, x)


def a_default(x):
    wg.debug.callback(lambda v, k=K: k, x)
    return x * W[0]


@pytest.mark.parametrize(
    "f",
    [
        called_too, passed_on, through_an_alias, called_in_a_body, lambda_called, its_attribute,
        not_the_first_argument, a_function_of_another_name, a_method_of_this_name, a_default,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_what_is_read_while_it_is_traced_is_guarded(f):
    scaled.factor = 2.0
    compiled = wg.jit(f)
    for k in (3.0, 4.0, 5.0):
        globals()["K"] = scaled.factor = k
        globals()["W"] = np.full(3, k)
        assert compiled(2.0) == f(2.0)


def test_a_default_of_a_lambda_is_read_when_it_is_defined():
    compiled = wg.jit(lambda x: wg.debug.callback(lambda v, k=K: LOG.append(k), x))
    compiled(1.0)
    globals()["K"] = 4.0
    compiled(1.0)
    assert [float(k) for k in LOG] == [3.0, 4.0]


def test_without_source_it_is_guarded_as_a_whole():
    source = (
        "def f(x):\n    wg.debug.callback(count, x)\n    return x * k\n"
        "def count(v):\n    counts.append(len(counts))\n"
    )
    namespace = {"wg": wg, "k": 2.0, "counts": [], "__name__": "made"}
    exec(source, namespace)
    compiled = wg.jit(namespace["f"])
    assert [compiled(1.0) for _ in range(3)] == [2.0] * 3
    assert namespace["counts"] == [0, 1, 2]
    namespace["k"] = 3.0
    assert compiled(1.0) == 3.0
    # As a notebook does.
    name = "<cell 1>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), namespace)
    compiled = wg.jit(namespace["f"])
    assert [compiled(1.0) for _ in range(3)] == [3.0] * 3
    assert compiled.cache_info().traces == 1
    del linecache.cache[name]


def test_variables_that_are_inspected_are_guarded():
    compiled = wg.jit(looks_around)
    for k in (3.0, 4.0):
        globals()["K"] = k
        assert compiled(2.0) == 2.0 * k


def looks_around(x):
    def by_k(v):
        return v * K

    wg.debug.callback(by_k, x)
    return locals()["by_k"](x)
