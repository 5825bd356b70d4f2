"""What a compiled function captures counts as it is at each call: the rule of docs/jit.md.

Every test calls the function, changes something, and compares with the function itself.
"""

import dataclasses
import enum
import functools
import gc
import types
import weakref
import zlib
from collections import OrderedDict, defaultdict, deque

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.user_functions import reads_of
from wengert._engine.graphs.captures import captured_by
from wengert._engine.jit.compiled_program import FAMILIES, MODES
from wengert.errors import ArgumentError

X = np.array([0.5, -1.0, 2.0])


def follows(fun, *changes, programs=None, args=(X,), compiled=None):
    """The compiled function equals the function, before and after each change, thrice."""
    compiled = compiled or wg.jit(fun)
    for change in (lambda: None, *changes):
        change()
        for _ in range(3):
            np.testing.assert_allclose(compiled(*args), fun(*args), rtol=1e-14)
    if programs is not None:
        assert compiled.cache_info().traces == programs


def names_fed(fun, *args):
    jitted = wg.jit(fun)
    jitted(*args)
    return [list(s.captured.feeds) for known in jitted._states.known.values() for s in known]


# ---- globals, cells, defaults -------------------------------------------------------------------

W = np.array([1.0, 2.0, 3.0])
K = 3.0
SETTINGS = {"a": np.ones(3), "b": 2.0, "deep": {"list": [1.0, np.arange(3.0)]}}


def assign(name, value):
    return lambda: globals().__setitem__(name, value)


@pytest.fixture(autouse=True)
def as_before():
    yield
    globals()["W"], globals()["K"] = np.array([1.0, 2.0, 3.0]), 3.0
    globals()["helper"] = by_w
    globals()["SETTINGS"] = {"a": np.ones(3), "b": 2.0, "deep": {"list": [1.0, np.arange(3.0)]}}


def by_w(x):
    return x * W


helper = by_w


def test_an_array_among_the_globals_is_fed():
    follows(
        lambda x: x * W,
        lambda: W.__setitem__(0, 100.0),
        assign("W", np.array([4.0, 5.0, 6.0])),
        programs=1,
    )


def test_an_array_of_another_shape_or_dtype_is_fed_too():
    follows(lambda x: x * W, assign("W", np.float32(2.0) * np.ones(3, np.float32)))
    follows(lambda x: x * W, assign("W", np.ones((2, 3))), assign("W", np.ones((4, 3))))
    follows(lambda x: x * W, assign("W", 2.0), assign("W", np.ones(3)))


def test_a_number_among_the_globals_is_compared():
    follows(lambda x: x * K, assign("K", 4.0), assign("K", 4), assign("K", 3.0), programs=3)
    follows(
        lambda x: np.sum(x) * K, assign("K", 0.0), assign("K", -0.0), assign("K", np.float32(1))
    )


def test_equal_numbers_need_no_other_program():
    follows(lambda x: x * K, *[assign("K", float("2.5")) for _ in range(4)], programs=2)


def test_functions_called_by_it_count():
    def other(x):
        return x - W

    follows(
        lambda x: helper(x) + 1.0,
        lambda: W.__setitem__(1, 7.0),
        assign("helper", other),
        lambda: W.__setitem__(1, 8.0),
        programs=2,
    )


def test_code_exchanged_in_place_counts():
    def inner(x):
        return x * 2.0

    def another(x):
        return x * 3.0

    follows(lambda x: inner(x), lambda: setattr(inner, "__code__", another.__code__))


def test_closure_cells_count():
    w, k = np.array([1.0, 2.0, 3.0]), 2

    def fun(x):
        return x * w**k

    def change(new_w=None, new_k=None):
        nonlocal w, k
        w, k = w if new_w is None else new_w, k if new_k is None else new_k

    follows(
        fun,
        lambda: w.__setitem__(0, 9.0),
        lambda: change(np.array([3.0, 3.0, 1.0])),
        lambda: change(new_k=3),
        programs=2,
    )


def test_large_arrays_are_not_copied():
    big = np.ones(100_000)
    total = wg.jit(lambda x: np.sum(x * big))
    assert total(2.0) == 200_000.0
    big[:] = 0.0
    assert total(2.0) == 0.0
    assert total.cache_info().traces == 1


def test_defaults_count():
    def fun(x, w=np.array([1.0, 2.0, 3.0]), *, more=np.ones(3)):  # noqa: B008
        return x * w + more

    follows(
        fun,
        lambda: fun.__defaults__[0].__setitem__(0, 5.0),
        lambda: fun.__kwdefaults__["more"].__setitem__(0, 5.0),
        lambda: fun.__kwdefaults__.__setitem__("more", np.zeros(3)),
        programs=1,
    )


def test_attributes_of_functions_count():
    def fun(x):
        return x * fun.scale

    fun.scale = 2.0
    follows(fun, lambda: setattr(fun, "scale", 3.0))


def test_partials_count():
    def fun(x, w, k):
        return x * w * k

    part = functools.partial(fun, w=np.ones(3), k=2.0)
    follows(part, lambda: part.keywords["w"].__setitem__(0, 5.0), programs=1)
    follows(lambda x: part(x), lambda: part.keywords["w"].__setitem__(0, 6.0), programs=1)


# ---- containers and objects ---------------------------------------------------------------------


def test_dicts_and_lists_count():
    s = SETTINGS
    follows(
        lambda x: x * SETTINGS["a"] * SETTINGS["b"] + SETTINGS["deep"]["list"][1],
        lambda: s["a"].__setitem__(0, 9.0),
        lambda: s.__setitem__("a", np.full(3, 3.0)),
        lambda: s["deep"]["list"][1].__setitem__(0, 7.0),
        lambda: s["deep"]["list"].__setitem__(1, np.ones(3)),
        programs=1,
    )
    follows(
        lambda x: x * SETTINGS["b"] + len(SETTINGS["deep"]["list"]),
        lambda: s.__setitem__("b", 5.0),
        lambda: s["deep"]["list"].append(1.0),
        lambda: s["deep"].__setitem__("list", [1.0, 2.0]),
        programs=4,
    )


@pytest.mark.parametrize("made", [OrderedDict, lambda d: defaultdict(float, d)])
def test_other_dicts_count(made):
    d = made({"a": np.ones(3), "k": 2.0})
    follows(
        lambda x: x * d["a"] * d["k"],
        lambda: d["a"].__setitem__(0, 3.0),
        lambda: d.__setitem__("k", 5.0),
        programs=2,
    )


def test_long_lists_sets_and_queues_count():
    long, some, queue = [float(i) for i in range(500)], {1.0, 2.0}, deque([1.0, 2.0])
    follows(lambda x: x * long[400], lambda: long.__setitem__(400, 0.5))
    follows(lambda x: x * sum(sorted(some)), lambda: some.add(5.0))
    follows(lambda x: x * queue[0], lambda: queue.rotate())


class Color(enum.Enum):
    RED = 1.0
    BLUE = 2.0


class Plain:
    scale = 1.0

    def __init__(self):
        self.w, self.k, self.color = np.ones(3), 2.0, Color.RED
        self.unread = []

    @property
    def twice(self):
        return 2.0 * self.w

    def step(self, x):
        return self.again(x) * self.k * self.scale * self.color.value

    def again(self, x):
        return x * self.w + W

    @wg.jit
    def run(self, x):
        return self.step(x)


def test_objects_count():
    o = Plain()
    follows(
        lambda x: o.step(x) + o.twice,
        lambda: o.w.__setitem__(0, 3.0),
        lambda: setattr(o, "w", np.full(3, 2.0)),
        lambda: setattr(o, "k", 5.0),
        lambda: setattr(o, "color", Color.BLUE),
        lambda: setattr(o, "scale", 3.0),
        lambda: o.__dict__.update(k=1.0),
    )


def test_what_the_code_does_not_name_does_not_count():
    o = Plain()
    follows(lambda x: x * o.k, lambda: o.unread.append(1), programs=1)


def test_class_attributes_count():
    class Config:
        k = 2.0
        w = np.ones(3)

    follows(
        lambda x: x * Config.k * Config.w,
        lambda: setattr(Config, "k", 3.0),
        lambda: Config.w.__setitem__(0, 4.0),
        lambda: setattr(Config, "w", np.zeros(3)),
    )


def test_a_compiled_method_sees_its_object():
    a, b = Plain(), Plain()
    b.w[0] = 7.0
    for o in (a, b, a):
        follows(o.step, lambda o=o: o.w.__setitem__(1, o.w[1] + 1), compiled=o.run)
        follows(o.step, lambda o=o: setattr(o, "k", o.k + 1), compiled=o.run)
    assert set(vars(a)) == {"w", "k", "color", "unread"}


def test_an_object_among_the_arguments_counts():
    o = Plain()
    f = wg.jit(lambda x, o: x * o.k * o.w)
    for change in (lambda: 0, lambda: setattr(o, "k", 7.0), lambda: o.w.__setitem__(2, 5.0)):
        change()
        for _ in range(2):
            np.testing.assert_allclose(f(X, o), X * o.k * o.w)
    assert f.cache_info().traces == 2


def test_an_object_is_not_kept_alive():
    o = Plain()
    Plain.run(o, X)
    Plain.run(o, X)
    gone = weakref.ref(o)
    del o
    gc.collect()
    assert gone() is None


def test_namespaces_are_containers():
    f = wg.jit(lambda s: np.sum(s.a * s.k))
    s = types.SimpleNamespace(a=np.ones(2), k=2.0)
    assert f(s) == 4.0
    s.a[0] = 5.0
    assert f(s) == 12.0
    assert f(types.SimpleNamespace(a=np.ones(2), k=7.0)) == 14.0
    assert f.cache_info().traces == 1
    follows(lambda x: x[:2] * s.a, lambda: setattr(s, "a", np.zeros(2)), programs=1)


def test_frozen_and_slotted_objects_count():
    class Slots:
        __slots__ = ("k", "w")

    @dataclasses.dataclass
    class Data:
        k: float
        w: np.ndarray

    o, d = Slots(), Data(2.0, np.ones(3))
    o.k, o.w = 2.0, np.ones(3)
    for thing in (o, d):
        follows(
            lambda x, thing=thing: x * thing.k * thing.w,
            lambda thing=thing: setattr(thing, "k", 3.0),
            lambda thing=thing: thing.w.__setitem__(0, 5.0),
        )


def test_modules_of_the_user_count():
    module = types.ModuleType("settings_of_a_test")
    module.__file__ = "/somewhere/settings_of_a_test.py"
    module.w, module.k = np.ones(3), 2.0
    follows(
        lambda x: x * module.w * module.k,
        lambda: module.w.__setitem__(0, 3.0),
        lambda: setattr(module, "k", 4.0),
        lambda: setattr(module, "w", np.zeros(3)),
        programs=2,
    )


def test_attributes_of_modules_of_networks_count():
    from wengert import nn

    class Net(nn.Module):
        def __init__(self):
            self.layer, self.scale, self.w = nn.Linear(3, 2, rng=0), 2.0, np.ones(2)

        def forward(self, x):
            return self.layer(x) * self.scale * self.w

    net = Net()
    compiled = wg.jit(lambda x: net(x))
    with wg.no_grad():
        follows(
            lambda x: net(x).numpy(),
            lambda: setattr(net, "scale", 3.0),
            lambda: net.w.__setitem__(0, 4.0),
            compiled=lambda x: compiled(x).numpy(),
        )


# ---- arrays that have to be known ---------------------------------------------------------------


def test_an_array_whose_values_are_needed_may_become_a_list():
    chosen = types.SimpleNamespace(places=np.array([0, 1]))

    def change(places):
        return lambda: setattr(chosen, "places", places)

    follows(
        lambda x: sum(x[int(k)] for k in chosen.places),
        change((2,)),
        change([0, 2]),
        change(np.array([1.0, 2.0])),
        change(np.array([1, 1])),
    )


def test_arrays_whose_values_are_needed_are_compared():
    index, mask, flag = np.array([1, 0]), np.array([True, False, True]), np.array([1.0])

    def fun(x):
        return np.sum(x[mask]) * (x[index] if flag[0] > 0 else 0.0)

    follows(
        fun,
        lambda: index.__setitem__(0, 2),
        lambda: mask.__setitem__(1, True),
        lambda: flag.__setitem__(0, -1.0),
        programs=None,
    )
    assert all("flag" not in fed for fed in names_fed(fun, X))


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")  # by NumPy 2.5
def test_shape_and_strides_changed_in_place_count():
    flag = np.array([1.0, 2.0])

    def fun(x):
        return x * float(flag.sum()) * flag.ndim

    follows(fun, lambda: setattr(flag, "shape", (2, 1)), lambda: setattr(flag, "shape", (1, 2)))


def test_arrays_in_objects_of_libraries_are_compared():
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.csr_array(np.eye(3))
    follows(lambda x: x * a.data, lambda: a.data.__setitem__(0, 5.0))
    f = wg.jit(lambda x, a: x * a.data)
    for k in (1.0, 2.0, 3.0):
        a.data[:] = k
        np.testing.assert_allclose(f(X, a), X * k)


def test_other_kinds_of_arrays_count():
    text, masked = np.array(["a", "b"]), np.ma.array([1.0, 2.0], mask=[False, True])
    follows(lambda x: x * (2.0 if text[0] == "a" else 3.0), lambda: text.__setitem__(0, "z"))
    follows(lambda x: x * float(masked.sum()), lambda: masked.__setitem__(0, 5.0))
    things = np.array([1.0, None], object)
    follows(lambda x: x * things[0], lambda: things.__setitem__(0, 2.0))


# ---- derivatives, nesting, writing --------------------------------------------------------------


def test_transformations_see_through():
    w = np.array([1.0, 2.0, 3.0])

    def f(x):
        return np.sum(np.sin(x) * w)

    for made in (
        wg.jit(wg.grad(f)),
        wg.jit(wg.hessian(f)),
        wg.jit(wg.vmap(wg.grad(f), in_axes=None, axis_size=2)),
        wg.grad(wg.jit(f)),
    ):
        w[:] = [1.0, 2.0, 3.0]
        first = np.asarray(made(X))
        w *= 2.0
        np.testing.assert_allclose(made(X), 2.0 * first, rtol=1e-14)


def test_compiled_functions_in_compiled_functions_count():
    inner = wg.jit(lambda x: x * W * K)
    follows(
        lambda x: inner(x) + 1.0,
        lambda: W.__setitem__(0, 9.0),
        assign("K", 7.0),
        compiled=wg.jit(lambda x: inner(x) + 1.0),
    )


def test_rules_of_ones_own_count():
    w, k = np.array([1.0, 2.0, 3.0]), [2.0]

    @wg.custom_vjp
    def scaled(x):
        return x * w

    scaled.defvjp(lambda x: (scaled(x), None), lambda _, bar: (bar * w * k[0],))

    @wg.custom_jvp
    def pushed(x):
        return x * k[0]

    pushed.defjvp(lambda primals, tangents: (pushed(*primals), tangents[0] * k[0] * w))

    @wg.primitive
    def own(x):
        return x * w

    changes = [lambda: w.__setitem__(0, 5.0), lambda: k.__setitem__(0, 7.0)]
    for fun in (scaled, pushed, own, lambda x: scaled(x) + pushed(x)):
        follows(lambda x, fun=fun: fun(x), *changes, compiled=wg.jit(lambda x, fun=fun: fun(x)))
        w[0], k[0] = 1.0, 2.0
    for fun in (scaled, pushed):
        gradient = wg.grad(lambda x, fun=fun: np.sum(fun(x)))
        follows(gradient, *changes, compiled=wg.jit(gradient))
        w[0], k[0] = 1.0, 2.0


def test_loops_and_bodies_count():
    w = np.array([1.0, 2.0, 3.0])

    def fun(x):
        return wg.fori_loop(0, 3, lambda i, y: y * w + K, x)

    follows(fun, lambda: w.__setitem__(0, 0.5), assign("K", 1.0))


def test_what_it_writes_while_it_is_traced_is_written():
    seen, w = {}, np.ones(3)

    class Counter:
        def __init__(self):
            self.calls, self.w, self.names = 0, w, []

    counter = Counter()

    def fun(x):
        counter.calls += 1
        counter.names.append("call")
        seen["shape"] = x.shape
        return x * w * counter.w

    wg.jit(fun)(X)
    assert seen == {"shape": (3,)}
    assert counter.calls == len(counter.names) >= 1
    assert counter.w is w and type(w) is np.ndarray


def test_a_captured_array_that_is_written_to():
    buffer = np.zeros(3)

    def fun(x):
        buffer[0] += 1.0
        return x * buffer

    compiled = wg.jit(fun)
    for k in range(1, 4):
        np.testing.assert_allclose(compiled(X), X * [k, 0.0, 0.0])
        assert buffer[0] == k


# ---- arguments ----------------------------------------------------------------------------------


def test_series_and_tables_are_fed():
    pandas = pytest.importorskip("pandas")
    s = pandas.Series([1.0, 2.0])
    f = wg.jit(lambda s: np.sum(s * s))
    assert f(s) == 5.0
    s[0] = 10.0
    assert f(s) == 104.0
    g = wg.jit(lambda t: np.sum(t * t, axis=0))
    for k in range(30):
        table = pandas.DataFrame({"a": np.full(4, float(k)), "b": np.ones(4)})
        np.testing.assert_allclose(g(table), [4.0 * k * k, 4.0])
    assert g.cache_info().traces == 1
    with pytest.raises(ArgumentError, match=r"DataFrame of dtype .*, not numbers"):
        g(pandas.DataFrame({"a": ["x", "y"]}))
    follows(lambda x: x * s.sum(), lambda: s.__setitem__(0, 3.0))


def test_arrays_of_other_libraries_are_fed():
    class Wrapped:
        def __init__(self, x):
            self.x = x

        def __array__(self, dtype=None, copy=None):
            return np.array(self.x, dtype)

    f = wg.jit(lambda a: np.sum(a * a))
    assert [f(Wrapped([1.0, k])) for k in (2.0, 3.0)] == [5.0, 10.0]
    assert f.cache_info().traces == 1


def test_what_can_be_neither_fed_nor_compared_is_refused():
    f = wg.jit(lambda x, it: x * next(it))
    with pytest.raises(ArgumentError, match=r"list_iterator.*static_argnames"):
        f(X, iter([1.0, 2.0]))


def test_explain_names_what_may_change_unnoticed():
    compressor = zlib.compressobj()
    notes = wg.explain(lambda x: x * len(compressor.flush()))(X).notes
    assert ["compressor is captured" in n.message for n in notes if n.kind == "captured"] == [True]


def test_sparse_derivatives_follow():
    w, k = np.array([1.0, 2.0, 3.0]), [2.0]
    diagonal = wg.sparse_jacobian(lambda x: x * x * w * k[0])
    for change in (lambda: 0, lambda: w.__setitem__(0, 5.0), lambda: k.__setitem__(0, 3.0)):
        change()
        np.testing.assert_allclose(diagonal(X).diagonal(), 2.0 * X * w * k[0])


# ---- memory -------------------------------------------------------------------------------------


def test_a_dropped_function_lets_go_of_what_it_captured_at_once():
    class Thing:
        k = 3.0

    def made():
        thing, w = Thing(), np.ones(3)

        def fun(x):
            return x * thing.k * w

        return wg.jit(fun), weakref.ref(thing), weakref.ref(fun)

    gc.collect()
    gc.disable()
    try:
        compiled, thing, fun = made()
        compiled(X)
        compiled(X)
        del compiled
        assert thing() is None and fun() is None
    finally:
        gc.enable()


@pytest.mark.sample(1)
def test_programs_of_static_values_are_bounded():
    f = wg.jit(lambda x, k: x * k, static_argnums=1)
    for k in range(FAMILIES + 5):
        f(X, float(k))
    assert f.cache_info().programs == FAMILIES
    ((state,),) = f._states.known.values()
    assert len(state.calls) == FAMILIES


def test_programs_of_captured_values_are_bounded():
    k = [""]
    f = wg.jit(lambda x: x * len(k[0]))
    for length in range(MODES + 4):
        k[0] = length * "a"
        f(X)
    assert f.cache_info().programs == MODES


# ---- cost ---------------------------------------------------------------------------------------


def test_captured_values_do_not_leave_native_code(compiler, monkeypatch):
    if compiler != "llvm":
        pytest.skip("native code only")
    o = Plain()
    for f, args in (
        (wg.jit(lambda x: x * W * K + helper(x)), (X,)),
        (wg.jit(lambda d: d["x"] * W), ({"x": X},)),
        (Plain.run, (o, X)),
    ):
        f(*args)
        f(*args)
        with monkeypatch.context() as patch:
            patch.setattr(type(f._layout), "call", None)  # where the slow path begins
            f(*args)


def test_reads_of_inner_functions_belong_to_the_outer():
    def outer():
        def inner():
            return W, SETTINGS.items

        return inner

    assert {"W", "SETTINGS"} <= reads_of(outer.__code__).globals
    assert "items" in reads_of(outer.__code__).attributes


_QUALIFIED = "test_only_what_is_reachable_is_captured.<locals>.<lambda>"


def test_only_what_is_reachable_is_captured():
    found = captured_by(lambda x: x * W, (), lambda array: True)
    assert list(found.feeds) == ["W"]
    found = captured_by(lambda x: np.sum(x), (), lambda array: True)
    assert [g.source.name for g in found.guards[1:]] == ["np", "the defaults of " + _QUALIFIED]


class AnswersEverything:
    __slots__ = ()
    scale = 2.0

    def __getattr__(self, name):
        return object()


ANSWERS = AnswersEverything()


def test_objects_that_answer_for_each_attribute_need_no_namespace():
    slope = wg.jit(wg.grad(lambda x: np.sum(ANSWERS.scale * x**2)))
    np.testing.assert_array_equal(slope(np.ones(2)), [4.0, 4.0])


class AnswersByKeyError:
    def __init__(self):
        self.members = {"scale": 2.0}

    def __getattr__(self, name):
        return self.__dict__["members"][name]


RAISES = AnswersByKeyError()


@pytest.mark.parametrize("captured", [True, False])
def test_objects_may_raise_any_error_for_attributes_that_are_looked_for(captured):
    here = AnswersByKeyError()
    loss = (lambda x: np.sum(here.scale * x**2)) if captured else lambda x: np.sum(RAISES.scale * x)
    slope = wg.jit(wg.grad(loss))
    np.testing.assert_array_equal(slope(np.ones(2)), [4.0, 4.0] if captured else [2.0, 2.0])
