"""Changes, between calls, of what a compiled function reads besides its arguments.

A case is a function that reads something in a loop, and a change of it. The compiled function and
its gradient agree with the function itself before and after each of two changes.
"""

import argparse
import array
import collections
import contextvars
import ctypes
import dataclasses
import enum
import functools
import itertools
import operator
import os
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import wengert as wg

from . import captured_module

X = np.linspace(0.1, 1.0, 12)
K, N, FLAG = 2.0, 5, True
WEIGHTS, ORDER = np.ones(12), np.arange(12)
counted = itertools.count(3.0)
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def reassigned(name, change):
    """A change of a global variable of this module."""

    def run():
        globals()[name] = change(globals()[name])

    return run


def summed(term):
    """A function with a loop over the elements, each with a term."""

    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += term(x[i], i)
        return s

    return f


class Thing:
    """An object with attributes."""

    def __init__(self, **members):
        vars(self).update(members)


# ---- globals ------------------------------------------------------------------------------------


def by_k(v):
    return v * K


@case
def a_number():
    return summed(lambda v, i: v * K), reassigned("K", lambda k: k + 1)


@case
def a_range_bound():
    def f(x):
        s = 0.0
        for i in range(N):
            s += x[i] ** 2
        return s

    return f, reassigned("N", lambda n: n + 1)


@case
def a_flag_in_a_branch():
    def f(x):
        s = 0.0
        for i in range(12):
            if x[i] > 0.5:
                if FLAG:
                    s += x[i]
                else:
                    s += x[i] ** 3
        return s

    return f, reassigned("FLAG", operator.not_)


@case
def an_array():
    return summed(lambda v, i: v * WEIGHTS[i]), reassigned("WEIGHTS", lambda w: w * 2)


@case
def elements_of_an_array():
    return summed(lambda v, i: v * WEIGHTS[i]), lambda: operator.iadd(WEIGHTS[3:], 1.0)


@case
def an_index_array():
    def f(x):
        s = 0.0
        for i in range(12):
            s += x[ORDER[i]] * (i + 1.0)
        return s

    return f, lambda: ORDER.__setitem__(0, ORDER[0] + 3)


@case
def a_length_in_an_array():
    def f(x):
        s = 0.0
        for i in range(int(ORDER[5]) + 2):
            s += x[i]
        return s

    return f, lambda: ORDER.__setitem__(5, ORDER[5] + 1)


@case
def a_function():
    def change():
        c = next(counted)
        globals()["by_k"] = lambda v: v * c

    return summed(lambda v, i: by_k(v)), change


@case
def a_name_that_hides_a_builtin():
    def change():
        if "abs" in globals():
            del globals()["abs"]
        else:
            globals()["abs"] = lambda v: v * v

    return summed(lambda v, i: abs(v) * 2), change


@case
def a_name_that_did_not_exist():
    def f(x):
        try:
            k = LATE
        except NameError:
            k = 1.0
        return k * np.sum(x)

    return f, lambda: globals().__setitem__("LATE", globals().get("LATE", 1.0) + 1)


@case
def globals_by_name():
    return lambda x: np.sum(x) * globals()["K"], reassigned("K", lambda k: k + 1)


@case
def evaluated_text():
    return lambda x: np.sum(x) * eval("K * 2"), reassigned("K", lambda k: k + 1)


# ---- functions ----------------------------------------------------------------------------------


@case
def defaults():
    def h(v, w=2.0):
        return v * w

    def change():
        h.__defaults__ = (h.__defaults__[0] + 1,)

    return summed(lambda v, i: h(v)), change


@case
def keyword_defaults():
    def h(v, *, w=2.0):
        return v * w

    def change():
        h.__kwdefaults__ = {"w": h.__kwdefaults__["w"] + 1}

    return summed(lambda v, i: h(v)), change


@case
def code():
    def h(v):
        return v * 2

    def another(v):
        return v**3

    return summed(lambda v, i: h(v)), lambda: setattr(h, "__code__", another.__code__)


@case
def a_closure_of_an_inner_function():
    k = 2.0

    def f(x):
        def inner(v):
            def innermost(u):
                return k * u

            return innermost(v)

        s = 0.0
        for i in range(12):
            s += inner(x[i])
        return s

    def change():
        nonlocal k
        k += 1

    return f, change


@case
def a_decorator():
    k = 2.0

    def scaling(g):
        @functools.wraps(g)
        def run(v):
            return g(v) * k

        return run

    @scaling
    def h(v):
        return v + 1

    def change():
        nonlocal k
        k += 1

    return summed(lambda v, i: h(v)), change


@case
def a_wrapped_function():
    @functools.wraps(by_k)
    def h(v):
        return h.__wrapped__(v)

    def change():
        c = next(counted)
        h.__wrapped__ = lambda v: v * c

    return summed(lambda v, i: h(v)), change


@case
def an_attribute_of_a_function():
    def h(v):
        return v * h.k

    h.k = 2.0
    return summed(lambda v, i: h(v)), lambda: setattr(h, "k", h.k + 1)


@case
def a_dispatched_function():
    @functools.singledispatch
    def h(v):
        return 2.0

    def change():
        c = next(counted)
        h.register(str, lambda v: c)

    return summed(lambda v, i: v * h("a")), change


@case
def a_compiled_function():
    k = 2.0

    @wg.jit
    def h(v):
        return v * k

    def change():
        nonlocal k
        k += 1

    return summed(lambda v, i: h(v)), change


@case
def a_gradient():
    k = 2.0

    def h(v):
        return k * v**3

    def change():
        nonlocal k
        k += 1

    return summed(lambda v, i: wg.grad(h)(v)), change


@case
def an_attribute_getter():
    thing, get = Thing(k=2.0), operator.attrgetter("k")
    return summed(lambda v, i: v * get(thing)), lambda: setattr(thing, "k", thing.k + 1)


@case
def a_method_caller():
    class Getter:
        k = 2.0

        def get(self):
            return self.k

    call = operator.methodcaller("get")
    return summed(lambda v, i: v * call(Getter())), lambda: setattr(Getter, "k", Getter.k + 1)


# ---- modules ------------------------------------------------------------------------------------


def rescale():
    captured_module.SCALE += 1


@case
def a_function_of_a_module():
    return summed(lambda v, i: captured_module.scaled(v)), rescale


@case
def an_array_of_a_module():
    return (
        summed(lambda v, i: captured_module.weighted(v, i)),
        lambda: operator.iadd(captured_module.ARRAY[5:], 1.0),
    )


@case
def an_import_inside():
    def f(x):
        from . import captured_module as here
        from .captured_module import SCALE

        return np.sum(x) * SCALE + here.SCALE

    return f, rescale


@case
def a_module_by_name():
    module = sys.modules["listed_by_hand"] = types.ModuleType("listed_by_hand")
    module.k = 2.0
    return (
        lambda x: np.sum(x) * sys.modules["listed_by_hand"].k,
        lambda: setattr(module, "k", module.k + 1),
    )


@case
def a_module_made_by_hand():
    module = types.ModuleType("made_by_hand")
    module.k = 2.0
    return lambda x: np.sum(x) * module.k, lambda: setattr(module, "k", module.k + 1)


@case
def an_environment_variable():
    os.environ["WENGERT_TEST"] = "2"

    def change():
        os.environ["WENGERT_TEST"] += "1"

    return lambda x: np.sum(x) * float(os.environ["WENGERT_TEST"]), change


# ---- objects and classes ------------------------------------------------------------------------


@case
def attributes_of_an_argument_of_a_method():
    class Model:
        def __init__(self):
            self.k, self.w = 2.0, np.ones(12)

        def term(self, v, i):
            return v * self.k * self.w[i]

        def f(self, x):
            s = 0.0
            for i in range(12):
                s += self.term(x[i], i)
            return s

    model = Model()

    def change():
        model.k += 1
        model.w[2] = 7.0
        model.w = model.w * 3

    return model.f, change


@case
def the_class_of_an_object():
    class A:
        k = 2.0

    class B:
        k = 5.0

    thing = A()

    def change():
        thing.__class__ = B if type(thing) is A else A

    return summed(lambda v, i: v * thing.k), change


@case
def an_attribute_of_a_metaclass():
    class Meta(type):
        k = 2.0

    class A(metaclass=Meta):
        pass

    return summed(lambda v, i: v * A.k), lambda: setattr(Meta, "k", Meta.k + 1)


@case
def an_attribute_that_hides_that_of_a_base():
    class Base:
        k = 2.0

    class A(Base):
        pass

    thing = A()
    return summed(lambda v, i: v * thing.k), lambda: setattr(A, "k", thing.k + 1)


@case
def an_attribute_that_did_not_exist():
    thing = Thing()

    def f(x):
        k = thing.late if hasattr(thing, "late") else 1.0
        return np.sum(x) * k

    return f, lambda: setattr(thing, "late", getattr(thing, "late", 1.0) + 1)


@case
def computed_attributes():
    class Computed:
        def __init__(self):
            self.members = {"k": 2.0}

        def __getattr__(self, name):
            return self.__dict__["members"][name]

    thing = Computed()
    return (
        summed(lambda v, i: v * thing.k),
        lambda: thing.members.__setitem__("k", thing.members["k"] + 1),
    )


@case
def members_of_slots():
    @dataclasses.dataclass(slots=True)
    class Slotted:
        k: float
        w: np.ndarray

    thing = Slotted(2.0, np.ones(12))

    def change():
        thing.k += 1
        thing.w[2] += 3

    return summed(lambda v, i: v * thing.k * thing.w[i]), change


@case
def defaults_of_a_dataclass():
    @dataclasses.dataclass
    class Scaled:
        v: object
        k: float = 2.0

    def change():
        Scaled.__init__.__defaults__ = (Scaled.__init__.__defaults__[0] + 1,)

    return summed(lambda v, i: Scaled(v).v * Scaled(v).k), change


@case
def a_partial_method():
    class A:
        k = 2.0

        def g(self, a, v):
            return v * a * self.k

        h = functools.partialmethod(g, 3.0)

    thing = A()
    return summed(lambda v, i: thing.h(v)), lambda: setattr(A, "k", A.k + 1)


@case
def a_method_of_an_enumeration():
    class Mode(enum.Enum):
        A = 1

        def g(self, v):
            return v * K * self.value

    return summed(lambda v, i: Mode.A.g(v)), reassigned("K", lambda k: k + 1)


@case
def a_method_of_a_tuple():
    class Pair(collections.namedtuple("Pair", "a")):
        k = 2.0

        def g(self, v):
            return v * self.k * self.a

    pair = Pair(1.5)
    return summed(lambda v, i: pair.g(v)), lambda: setattr(Pair, "k", Pair.k + 1)


@case
def an_attribute_of_a_dict():
    class Table(dict):
        pass

    table = Table(k=2.0)
    table.extra = 3.0
    return (
        summed(lambda v, i: v * table["k"] * table.extra),
        lambda: setattr(table, "extra", table.extra + 1),
    )


@case
def a_weak_reference():
    thing = Thing(k=2.0)
    ref = weakref.ref(thing)
    return summed(lambda v, i: v * ref().k), lambda: setattr(thing, "k", thing.k + 1)


@case
def a_context_variable():
    var = contextvars.ContextVar("var", default=2.0)
    return summed(lambda v, i: v * var.get()), lambda: var.set(var.get() + 1)


@case
def a_variable_of_a_thread():
    local = threading.local()
    local.k = 2.0
    return summed(lambda v, i: v * local.k), lambda: setattr(local, "k", local.k + 1)


@case
def parsed_arguments():
    given = argparse.Namespace(k=2.0)
    return summed(lambda v, i: v * given.k), lambda: setattr(given, "k", given.k + 1)


# ---- containers and arrays ----------------------------------------------------------------------


@case
def the_order_of_a_dict():
    table = {"a": 1.0, "b": 2.0}

    def f(x):
        s = x[0]
        for value in table.values():
            s = s * value + x[3]
        return s

    def change():
        key = next(iter(table))
        table[key] = table.pop(key)

    return f, change


@case
def the_order_of_an_ordered_dict():
    table = collections.OrderedDict(a=1.0, b=2.0)

    def f(x):
        s = x[0]
        for value in table.values():
            s = s * value + x[3]
        return s

    return f, lambda: table.move_to_end(next(iter(table)))


@case
def a_view_of_a_dict():
    table = {"k": 2.0}
    view = types.MappingProxyType(table)
    return summed(lambda v, i: v * view["k"]), lambda: table.__setitem__("k", table["k"] + 1)


@case
def a_chain_of_dicts():
    table = {"k": 2.0}
    chain = collections.ChainMap({}, table)
    return summed(lambda v, i: v * chain["k"]), lambda: chain.__setitem__("k", chain["k"] + 1)


@case
def a_list_of_collections():
    values = collections.UserList([2.0])
    return summed(lambda v, i: v * values[0]), lambda: values.__setitem__(0, values[0] + 1)


@case
def a_tensor_that_is_modified():
    w = wg.tensor(np.ones(12))
    return summed(lambda v, i: v * w[i]), lambda: w.__setitem__(3, w[3] + 7.0)


@case
def the_mask_of_an_array():
    w = np.ma.masked_array(np.ones(12), mask=np.zeros(12, bool))
    hidden = iter(range(12))
    return lambda x: np.sum(x * w.filled(0.0)), lambda: w.__setitem__(next(hidden), np.ma.masked)


@case
def arrays_of_other_libraries():
    one, other = array.array("d", [1.0] * 12), (ctypes.c_double * 12)(*[1.0] * 12)

    def change():
        one[3] += 1
        other[4] += 1

    return summed(lambda v, i: v * one[i] * other[i]), change


# ---- the tests ----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def as_before():
    names = ("K", "N", "FLAG", "by_k")
    before = {n: globals()[n] for n in names}
    yield
    globals().update(before)
    globals().pop("abs", None)
    globals().pop("LATE", None)
    os.environ.pop("WENGERT_TEST", None)
    sys.modules.pop("listed_by_hand", None)


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", CASES)
def test_the_compiled_function_follows(name):
    f, change = CASES[name]()
    value, gradient = wg.jit(f), wg.jit(wg.grad(f))
    for _ in range(3):
        for _ in range(2):
            np.testing.assert_allclose(value(X), f(X), rtol=1e-13)
        np.testing.assert_allclose(gradient(X), wg.grad(f)(X), rtol=1e-13)
        change()


def test_an_iterator_gives_each_call_its_next_item():
    numbers = iter([2.0, 3.0, 5.0])
    f = wg.jit(lambda x: x * next(numbers))
    assert [f(1.0), f(1.0), f(1.0)] == [2.0, 3.0, 5.0]


def test_imports_while_tracing_cause_no_retrace():
    def f(x):
        import colorsys

        return np.sum(x) * colorsys.ONE_THIRD

    sys.modules.pop("colorsys", None)
    compiled = wg.jit(f)
    assert compiled(X) == compiled(X)
    assert compiled.cache_info().traces == 1
