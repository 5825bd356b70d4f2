"""NumPy's own functions of lists of tensors: the code that the error suggests is correct.

Why they cannot work as they are is shown here too (docs/design/0016-plain-numpy-lists.md).
"""

import linecache
import math
import re

import numpy as np
import pytest

import wengert
import wengert as wg
import wengert.scipy.special
from wengert.errors import ConversionError, TraceError

# Errors in functions that are not converted.
pytestmark = pytest.mark.usefixtures("unconverted")

X = np.array([2.0, 1.0, 3.0])
NAMES = {"np": np, "wengert": wengert, "math": math}
LISTS = [
    "np.mean([x[0], x[1]])",
    "np.mean([x, 2.0 * x], axis=0)",
    "np.mean([[x[0], x[1]], [x[2], 1.0]])",
    "np.mean([[x[0], 1.0], [2.0, 3.0]])",
    "np.mean([2.0 * v for v in x])",
    "np.mean(list(x))",
    "np.mean(items)",
    "np.mean([items, items])",
    "np.mean((x[0], x[1]))",
    "np.mean([\n    x[0],\n    x[1],\n])",
    "np.std([x[0], x[1]])",
    "np.var([x[0], x[1]], ddof=1)",
    "np.median([x[0], x[1]])",
    "np.average([x[0], x[1]], weights=[0.3, 0.7])",
    "np.sum([x[0], x[1]])",
    "np.prod([x[0], x[1]])",
    "np.max([x[0], x[1]])",
    "np.min([x[0], x[1]])",
    "np.ptp([x[0], x[1]])",
    "np.cumsum([x[0], x[1]])",
    "np.diff([x[0], x[1]])",
    "np.sort([x[0], x[1]])",
    "np.linalg.norm([x[0], x[1]])",
    "np.linalg.det([[x[0], x[1]], [x[1], x[2]]])",
    "np.linalg.solve([[x[0], x[1]], [x[1], x[2]]], [1.0, 2.0])",
    "np.append([x[0]], [x[1]])",
    "np.append([1.0, 2.0], [x[0]])",
    "np.concatenate([[x[0]], [x[1]]])",
    "np.r_[x[0], x[1]]",
    "np.r_[x, [x[0], 1.0]]",
    "np.r_[x, 0:3]",
    "np.c_[x, 2.0 * x]",
    "np.array([x[0], x[1]])",
    "np.asarray([[x[0], x[1]], [x[2], 1.0]])",
    "np.array(x)",
    "np.asarray(x)",
    "np.dot([x[0], x[1]], [1.0, 2.0])",
    "np.outer([x[0], x[1]], [1.0, 2.0])",
    "np.einsum('i,i', [x[0], x[1]], [1.0, 2.0])",
    "np.cross([x[0], x[1], x[2]], [1.0, 2.0, 3.0])",
    "np.interp(0.5, [0.0, 1.0], [x[0], x[1]])",
    "np.where([True, False], [x[0], x[1]], 0.0)",
    "np.reshape([x[0], x[1]], (2, 1))",
    "np.clip([x[0], x[1]], 0.0, 1.5)",
    "np.diag([x[0], x[1]])",
    "np.tile([x[0], x[1]], 2)",
    "np.repeat([x[0], x[1]], 2)",
    "np.fft.irfft([x[0], x[1]])",
    "np.full(3, x[0])",
    "np.full_like(plain, x[0])",
    "np.fromiter((v for v in x), float)",
    "np.exp([x[0], x[1]])",
    "np.add([x[0], x[1]], 1.0)",
    "np.add.reduce([x[0], x[1]])",
    "np.multiply.outer([x[0], x[1]], [1.0, 2.0])",
    "np.ones(2) * [x[0], x[1]]",
    "np.ones(2) @ [x[0], x[1]]",
    "plain.dot(x)",
    "np.array([1.0, 2.0]).dot([x[0], x[1]])",
    "np.vectorize(lambda v: v * v)(x)",
    "math.sin(x[0])",
    "math.pow(x[0], 2.0)",
    "math.atan2(x[0], x[1])",
    "math.gamma(x[0])",
]


def evaluated(text, x):
    """The value of an expression, whose source can be found like that of a file."""
    place = f"<expression {text}>"
    linecache.cache[place] = (len(text), None, text.splitlines(True), place)
    names = {"x": x, "plain": np.array([1.0, 2.0, 4.0]), "items": [x[0], x[1]]}
    return eval(compile(text, place, "eval"), NAMES | names)


@pytest.mark.sample(26)
@pytest.mark.parametrize("text", LISTS)
def test_suggested_code_is_correct(text):
    wanted = evaluated(text, X)
    said = []
    for error, call in (
        (ConversionError, wg.grad),
        (ConversionError, lambda f: lambda x: wg.vjp(f, x)),
        ((TraceError, ConversionError), wg.trace),
    ):
        with pytest.raises(error, match="Write ") as caught:
            call(lambda t: np.sum(evaluated(text, t)))(X)
        assert "(at <expression" in str(caught.value)
        said.append(re.search(r"Write (.*?)(?:;| \(at)", str(caught.value))[1].split(", or "))
    assert said[0] == said[1] == said[2]
    for way in said[0]:
        np.testing.assert_allclose(wg.trace(lambda t, w=way: evaluated(w, t))(X)(X), wanted, 1e-14)
        wg.check_grads(lambda t, w=way: np.sum(evaluated(w, t) ** 2), (X,), order=1)


def test_both_ways_are_named():
    with pytest.raises(ConversionError, match=r"Write wengert\.numpy\.asarray\(x\); .*detach"):
        evaluated("np.asarray(x)", wg.tensor(X, requires_grad=True))
    for text, way in (
        ("np.mean([x[0], x[1]])", "np.mean(np.stack([x[0], x[1]])), or wengert.numpy.mean("),
        ("np.r_[x[0], x[1]]", "np.hstack([x[0], x[1]]), or wengert.numpy.r_[x[0], x[1]]"),
        ("np.array([x[0], 1.0])", "np.stack([x[0], 1.0]), or wengert.numpy.array("),
    ):
        with pytest.raises(ConversionError, match=re.escape(f"Write {way}")):
            evaluated(text, wg.tensor(X, requires_grad=True))


WRITES = [
    "plain[0] = x[0]",
    "plain[:] = x",
    "plain[plain > 1.0] = x[:2]",
    "plain.flat[0] = x[0]",
    "plain.fill(x[0])",
    "plain.put(0, x[0])",
    "np.put(plain, [0], [x[0]])",
    "np.place(plain, plain > 0.0, [x[0]])",
    "np.copyto(plain, x)",
]


@pytest.mark.parametrize("text", WRITES)
def test_suggested_code_for_writes_creates_a_tensor(text):
    code = "def f(x):\n    plain = np.array([1.0, 2.0, 4.0])\n    {}\n    return plain * x\n"

    def function(made):
        place = f"<function {text} {made}>"
        source = code.format(made + text)
        linecache.cache[place] = (len(source), None, source.splitlines(True), place)
        names = dict(NAMES)
        exec(compile(source, place, "exec"), names)
        return names["f"]

    remedy = "plain = wengert.tensor(plain)"
    for call in (wg.jacobian, wg.trace):
        with pytest.raises((ConversionError, TraceError), match=re.escape(remedy)):
            call(function(""))(X)
    done = function(f"{remedy}; ")
    wanted = function("")(X)
    assert np.array_equal(wg.trace(done)(X)(X), wanted)
    wg.check_grads(lambda x: np.sum(done(x) ** 2), (X,), order=1)


def test_traced_index_of_a_plain_array():
    plain = np.array([1.0, 2.0, 4.0])
    with pytest.raises(TraceError, match=r"wengert\.tensor\(plain\)\[n\].*static_argnames='n'"):
        wg.trace(lambda n: plain[n])(1)
    assert wg.trace(lambda n: wg.tensor(plain)[n])(1)(2) == 4.0


def test_traced_step():
    for f in (math.floor, math.ceil, math.trunc):
        with pytest.raises(TraceError, match=rf"np\.{f.__name__}\(x\)"):
            wg.trace(f)(1.5)
    with pytest.raises(TraceError, match=r"Write np\.floor\(x\[0\]\)"):
        wg.trace(lambda x: math.floor(x[0]))(X)


def helper(values):
    return np.std(values)


def test_in_functions_that_are_called():
    with pytest.raises(ConversionError, match=r"np\.std\(np\.stack\(values\)\).*in helper"):
        wg.grad(lambda x: helper([x[0], x[1]]))(X)


def test_without_source():
    names = {"np": np}
    exec("def f(x):\n    return np.mean([x[0], x[1]])", names)
    with pytest.raises(ConversionError, match=r"wengert\.numpy\.mean"):
        wg.grad(names["f"])(X)
    exec("def f(x):\n    return np.dot([x[0], x[1]], [1.0, 2.0])", names)
    with pytest.raises(ConversionError, match=r"np\.stack"):
        wg.grad(names["f"])(X)


def test_cases_without_a_suggestion():
    for f, remedy in (
        (lambda x: np.arange(x[0], x[1]), r"np\.linspace"),
        (lambda x: np.ma.array([x[0], x[1]]), r"np\.where"),
    ):
        with pytest.raises(ConversionError, match=remedy):
            wg.grad(f)(X)


# ---- why it cannot be helped -------------------------------------------------------------------


class Asked:
    """An element that reports the attributes that NumPy reads."""

    dtype = np.dtype(float)

    def __init__(self):
        self.seen = []

    def __array_function__(self, function, types, args, kwargs):
        self.seen.append(function)

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        self.seen.append((ufunc, method))

    def __array__(self, dtype=None, copy=None):
        self.seen.append("array")
        held = np.empty((), object)
        held[()] = self
        return held

    def __add__(self, other):
        return self

    __truediv__ = __add__

    def __float__(self):
        raise TypeError("the derivative would be lost")


class Subclass(np.ndarray):
    pass


def test_numpy_asks_elements_for_an_array_only():
    asked = Asked()
    for function in (np.append, lambda a, b: np.array([*a, *b])):
        asked.seen.clear()
        function([asked], [asked])
        assert set(asked.seen) == {"array"}
    # As objects: the mean converts the sum of the objects to its dtype.
    with pytest.raises(TypeError, match="the derivative would be lost"):
        np.mean([asked, asked])


def test_array_subclasses_are_lost_in_lists():
    x = np.zeros(2).view(Subclass)
    assert type(np.asanyarray(x)) is Subclass
    assert type(np.asanyarray([x, x])) is np.ndarray
