"""Lists of tensors instead of arrays, in every function of `wengert.numpy`."""

import numpy as np
import pytest

import wengert as wg
import wengert.compat.autograd.numpy as anp
import wengert.numpy as wnp
from wengert._engine.tensor.operand_conversion import SEQUENCES
from wengert.errors import ConversionError, TraceError

# Errors in functions that are not converted.
pytestmark = pytest.mark.usefixtures("unconverted")

X = np.array([2.0, 1.0, 3.0])
LISTS = {
    "mixed": lambda t: [t[0], 7.0, t[2]],
    "rows": lambda t: [[t[0], t[1]], [0.5, t[2]]],
    "of rows": lambda t: [t, 2.0 * t],
}
MORE = ((), (X,), (1,), (0.5,), (np.array([[2.0, 1.0], [0.5, 3.0]]),))
# Functions that cannot be traced, that do not take arrays, or for which NumPy raises too.
NOT_MEANT = """asarray_chkfinite asmatrix block bmat compress copyto extract fill_diagonal
    from_dlpack frombuffer info intersect1d isneginf isposinf ix_ place polydiv
    polyint put put_along_axis putmask empty_like
    setdiff1d setxor1d show_config show_runtime source test trim_zeros union1d unique unique_values
    cross multi_dot eig eigvals poly roots qr""".split()
MODULES = [(wnp, np), (wnp.linalg, np.linalg), (wnp.fft, np.fft)]


def functions():
    for ours, theirs in MODULES:
        for name in sorted(theirs.__all__):
            function = getattr(theirs, name)
            is_meant = callable(function) and name not in NOT_MEANT
            if is_meant and not isinstance(function, type | np.ufunc):
                yield pytest.param(getattr(ours, name), function, id=f"{name}")


def leaves(x):
    return x if isinstance(x, tuple | list) else (x,)


@pytest.mark.sample(118)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("ours", "theirs"), list(functions()))
def test_lists_are_converted_to_arrays(ours, theirs):
    for make in LISTS.values():
        array = np.array([np.asarray(row) for row in make(X)])
        for more in MORE:
            given = make(X) if theirs.__name__ in SEQUENCES else array.copy()
            try:
                wanted = leaves(theirs(given, *more))
            except Exception:  # not with such arguments
                continue
            if not all(isinstance(w, np.ndarray | np.generic) for w in wanted):
                continue
            if not all(np.asarray(w).dtype.kind in "fc" for w in wanted):
                continue
            w = wg.tensor(X, requires_grad=True)
            for found in (
                ours(make(w), *more),
                wg.trace(lambda t, make=make, more=more: ours(make(t), *more))(wg.spec(3))(X),
            ):
                for a, b in zip(leaves(found), wanted, strict=True):
                    np.testing.assert_allclose(wg.stop_gradient(a), b, rtol=1e-12, atol=1e-14)
            break


CASES = {
    "mean": lambda n, t: n.mean([t[0], t[1]]),
    "std": lambda n, t: n.std([t[0], t[1], t[2]]),
    "var": lambda n, t: n.var([t[0], t[1]], ddof=1),
    "norm": lambda n, t: n.linalg.norm([t[0], t[1]]),
    "append": lambda n, t: n.append([t[0], 1.0], [t[1]]),
    "dot": lambda n, t: n.dot([t[0], t[1]], [3.0, 4.0]),
    "matmul": lambda n, t: n.matmul([[t[0], t[1]], [1.0, t[2]]], [t[0], 1.0]),
    "stack of lists": lambda n, t: n.stack([[t[0], t[1]], [t[2], 1.0]]),
    "r_": lambda n, t: n.r_[t[0], t[1], 5.0],
    "r_ of ranges": lambda n, t: n.r_[t, 0:3, 0:1:3j, [t[0], 2.0]],
    "r_ with a directive": lambda n, t: n.r_["0,2", t, t],
    "r_ of columns": lambda n, t: n.r_["0,2,0", t, t],
    "r_ along the last": lambda n, t: n.r_["1,3,1", t, t],
    "c_": lambda n, t: n.c_[t, 2.0 * t, [1.0, t[0], 2.0]],
    "c_ of a range": lambda n, t: n.c_[1:4, t],
    "an operand too": lambda n, t: n.dot(t, [t[0], t[1], 2.0]),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("namespace", [wnp, anp], ids=["wengert.numpy", "compat"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_values_and_derivatives(case, namespace):
    wanted = case(np, X)
    for found in (case(namespace, wg.tensor(X)), wg.jit(lambda t: case(namespace, t))(X)):
        np.testing.assert_allclose(wg.stop_gradient(found), wanted, rtol=1e-14)
    loss = lambda t: np.sum(case(namespace, t) ** 2)  # noqa: E731
    wg.check_grads(loss, (X,), order=2)
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(X), wg.grad(loss)(X), rtol=1e-13)


def test_dtypes_of_r_():
    t = wg.tensor(X.astype("f4"))
    assert wnp.r_[t, 1.0].dtype == np.r_[X.astype("f4"), 1.0].dtype == np.float32
    assert type(wnp.r_[1.0, X]) is np.ndarray
    with pytest.raises(ValueError, match="axis,ndmin"):
        wnp.r_["r", t]


@pytest.mark.parametrize("name", ["mean", "std", "var", "norm", "append", "dot", "r_", "c_"])
def test_functions_of_numpy_name_the_function_to_call(name):
    # NumPy does not dispatch on the elements of these lists; an error must be raised.
    remedy = rf"wengert\.numpy\.(linalg\.)?{name}"
    if name == "dot":  # of C: no call of Python says who asks
        remedy = r"np\.stack"
    for error, call in (
        (ConversionError, lambda: wg.grad(lambda t: np.sum(CASES[name](np, t)))(X)),
        (ConversionError, lambda: CASES[name](np, wg.tensor(X, requires_grad=True))),
        (TraceError, lambda: wg.jit(lambda t: CASES[name](np, t))(X)),
    ):
        with pytest.raises(error, match=remedy):
            call()
