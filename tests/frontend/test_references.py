"""How programs refer to numpy, scipy, math and their own functions, and that all are replaced."""

import functools
import math
import operator

import numpy as np
import pytest

import wengert as wg

X = np.array([0.5, 1.5, 2.5])


def fill(x):
    y = np.zeros(2)
    y[0] = x[0] ** 2
    return y.sum()


TABLE = {"sq": lambda x: fill(x), "zeros": np.zeros, "sin": math.sin, "inner": [np.zeros]}
THREE_ZEROS = functools.partial(np.zeros, 3)
ONES = functools.partial(np.full, fill_value=1.0)
SUM = np.add.reduce


def function_of_a_local_import(x):
    from math import cos

    return cos(x[0]) + x[1]


def local_import(x):
    import numpy

    y = numpy.zeros(2)
    y[0] = x[0] ** 2
    return y.sum() + numpy.sum([x[1], x[2]])


def local_submodules(x):
    import numpy as onp
    import numpy.linalg as la
    import scipy.special as sp

    y = onp.zeros(2)
    y[0] = x[0] ** 2
    return la.norm(y) + sp.gammaln(x[1]) + onp.linalg.norm([x[0], x[1]])


def creation_function_of_a_local_import(x):
    from numpy import zeros

    y = zeros(2)
    y[1] = x[0] ** 2
    return y.sum()


def scipy_of_a_local_import(x):
    from scipy import special
    from scipy.special import erf

    return erf(x[0]) + special.erf(x[1])


def import_in_an_inner_function(x):
    def inner(v):
        import math as m

        return m.sin(v)

    return inner(x[0]) + sum(map(inner, x))


def default(x, make=np.zeros):
    y = make(2)
    y[0] = x[0] ** 2
    return y.sum()


def keyword_default(x, *, make=np.zeros, sin=math.sin):
    y = make(2)
    y[0] = sin(x[0])
    return y.sum()


def functions_of_a_dict(x):
    y = TABLE["zeros"](2)
    y[0] = TABLE["sq"](x)
    return y.sum() + TABLE["sin"](x[1]) + TABLE.get("sq")(x)


def functions_of_a_list(x):
    y = TABLE["inner"][0](2)
    y[0] = x[0] ** 2
    return y.sum()


def functions_in_a_loop(x):
    s = 0.0
    for f in (math.sin, fill, TABLE["sq"]):
        s = s + (f(x[0]) if f is math.sin else f(x))
    return s


def found_by_name(x):
    return globals()["fill"](x) + globals().get("fill")(x)


def module_found_by_name(x):
    y = globals()["np"].zeros(2)
    y[0] = getattr(np, "square")(x[0])  # noqa: B009
    z = getattr(np, "zeros")(1)  # noqa: B009
    z[0] = x[1]
    return y.sum() + z.sum()


def partials(x):
    y = THREE_ZEROS()
    y[0] = x[0] ** 2
    z = ONES(2)
    z[0] = x[1]
    w = functools.partial(np.zeros, 1)()
    w[0] = x[2]
    return y.sum() + z.prod() + w.sum()


def functions_of_operator(x):
    y = np.zeros(3)
    operator.setitem(y, 0, x[0])
    y[1] = operator.mul(x[1], x[1])
    y = operator.iadd(y, x)
    product = functools.reduce(operator.mul, [x[0], x[1]])
    return operator.itemgetter(0)(y) + product + operator.methodcaller("sum")(y)


def methods_of_ufuncs(x):
    y = np.zeros(3)
    np.add.at(y, [0, 0, 1], x)
    return SUM(x * x) + np.multiply.reduce(y[:2]) + np.multiply.outer(x, x).sum()


def mapped(x):
    s = 0.0
    if x[0] > 0:
        s = sum(map(fill, [x, 2 * x])) + sum(map(math.sin, x))
    return s + functools.reduce(lambda a, b: a + fill(b), [x, x], 0.0)


class Model:
    zeros = np.zeros
    sin = math.sin
    table = {"zeros": np.zeros}  # noqa: RUF012
    made = staticmethod(np.zeros)

    def __init__(self):
        self.make, self.exp = np.zeros, math.exp

    def of_the_object(self, x):
        y = self.make(2)
        y[0] = x[0] ** 2
        return y.sum() + self.exp(x[1])

    def of_the_class(self, x):
        y = self.made(2)
        y[0] = x[0] ** 2
        return y.sum() + Model.sin(x[1]) + Model.table["zeros"](1)[0]

    @classmethod
    def of_a_class_method(cls, x):
        y = cls.made(2)
        y[0] = x[0] ** 2
        return y.sum()


class State:
    def __init__(self, x):
        self.values = np.zeros(2)
        self.values[0] = x[0] * x[1]

    def __call__(self, x):
        z = np.zeros(1)
        z[0] = x[2]
        return self.values.sum() * z[0]


MODEL = Model()
STATE = State(X)


def attribute_of_a_class(x):
    y = Model.zeros(2)
    y[0] = x[0] ** 2
    return y.sum() + MODEL.of_the_object(x) + Model.of_a_class_method(x)


def object_made_inside(x):
    return State(x)(x)


def object_that_is_called(x):
    return STATE(x)


FUNCTIONS = [
    function_of_a_local_import, local_import, local_submodules, scipy_of_a_local_import,
    creation_function_of_a_local_import, import_in_an_inner_function, default, keyword_default,
    functions_of_a_dict, functions_of_a_list, functions_in_a_loop, found_by_name,
    module_found_by_name, partials, functions_of_operator, methods_of_ufuncs, mapped,
    MODEL.of_the_object, MODEL.of_the_class, Model.of_a_class_method, attribute_of_a_class,
    object_made_inside, object_that_is_called,
]  # fmt: skip


@pytest.mark.sample(14)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_references(f):
    steps = 1e-6 * np.eye(X.size)
    want = np.array([(f(X + h) - f(X - h)) / 2e-6 for h in steps])
    np.testing.assert_allclose(wg.grad(f)(X), want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wg.vjp(f, X)[1](1.0)[0], want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wg.trace(f)(X)(X), f(X), rtol=1e-13)
    np.testing.assert_allclose(wg.jit(f)(X), f(X), rtol=1e-13)


def test_code_without_source():
    space = {}
    exec(
        "import numpy as np, math\n"
        "def f(x):\n"
        "    from numpy import zeros\n"
        "    import scipy.special\n"
        "    y = zeros(2)\n"
        "    y[0] = scipy.special.erf(math.sin(x[0]))\n"
        "    return y.sum()\n",
        space,
    )
    want = wg.grad(lambda x: wg.scipy.special.erf(np.sin(x[0])))(X)
    np.testing.assert_allclose(wg.grad(space["f"])(X), want)
    np.testing.assert_allclose(wg.jit(wg.grad(space["f"]))(X), want)


def test_globals_are_those_of_the_module():
    def f(x):
        globals()["written_by_f"] = 2.0
        return x * globals()["written_by_f"]

    assert wg.grad(f)(1.0) == 2.0 and globals().pop("written_by_f") == 2.0


def test_classes_are_values_to_libraries():
    def f(x):
        kind = np.dtype(float)
        return sum(map(float, [1, 2])) * x * np.ones(2, kind).sum() * kind.itemsize

    assert wg.grad(f)(2.0) == 48.0
    assert wg.jit(wg.grad(f))(2.0) == 48.0
