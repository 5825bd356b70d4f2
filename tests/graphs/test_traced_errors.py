"""Ways out of a traced tensor: each is an error with the user's line and the remedy."""

import copy
import math
import pickle

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert.errors import TracedBranchError, TraceError

# What is refused in functions that are not converted.
pytestmark = pytest.mark.usefixtures("unconverted")

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
TABLE = np.arange(5.0)


def traced(f, *specs):
    return wg.trace(f)(*(specs or (wg.spec(("n", 3)),)))


def branch(x):
    if x[0, 0] > 0:
        return x
    return -x


def into_plain(x):
    plain = np.zeros(3)
    plain[0] = x[0, 0]
    return plain


OUT = {
    "float": (lambda x: float(x[0, 0]), r"float\(x\).*np\.exp, not math\.exp"),
    "int": (lambda x: int(x[0, 0]), r"int\(x\)"),
    "complex": (lambda x: complex(x[0, 0]), r"complex\(x\)"),
    "math": (lambda x: math.sin(x[0, 0]), r"Write np\.sin\(x\[0, 0\]\)"),
    "floor": (lambda x: math.floor(x[0, 0]), r"math\.floor\(x\)"),
    "numpy": (lambda x: x.numpy(), r"numpy\(\).*debug\.show"),
    "data": (lambda x: x.data, r"numpy\(\)"),
    "item": (lambda x: x[0, 0].item(), r"item\(\)"),
    "tolist": (lambda x: x.tolist(), r"tolist\(\)"),
    "tobytes": (lambda x: x.tobytes(), r"tobytes\(\)"),
    "strides": (lambda x: x.strides, "strides"),
    "asarray": (np.asarray, r"plain array.*np\.stack"),
    "list of tensors": (lambda x: np.array([x[0], x[1]]), r"np\.stack"),
    "table": (lambda x: TABLE[x[0].astype(int)], r"wengert\.tensor\(TABLE\)\[x\[0\]\.astype"),
    "element of a table": (
        lambda x: TABLE[x[0, 0].astype(int)],
        r"wengert\.tensor\(TABLE\)\[x\[0, 0\]\.astype",
    ),
    "tensor": (lambda x: wg.tensor(x), r"Tensor\(x\)"),
    "pickle": (lambda x: pickle.dumps(x), "pickling"),
    "range": (lambda x: range(x[0, 0].astype(int)), "range"),
    "backward": (lambda x: np.sum(x * x).backward(), r"backward\(\).*wengert\.grad"),
    "requires_grad": (lambda x: x.requires_grad_(False), r"requires_grad.*detach\(\)"),
    "grad_fn": (lambda x: (x * x).grad_fn(1.0), "wengert.vjp"),
    "nonzero": (np.nonzero, r"returning them.*np\.where"),
    "flatnonzero": (np.flatnonzero, r"returning them.*np\.where"),
    "argwhere": (np.argwhere, r"returning them.*np\.where"),
    "where alone": (lambda x: np.where(x > 0), r"returning them.*np\.where"),
    "mask": (lambda x: x[x > 0], r"mask.*np\.where\(mask, x, 0\)"),
    "mask of plain": (lambda x: np.where(x > 0, X[x > 0], 0), r"plain array"),
    "compress": (lambda x: np.compress(x[0] > 1, x, axis=1), r"returning them.*np\.where"),
    "extract": (lambda x: np.extract(x > 1, x), r"returning them.*np\.where"),
    "unique": (np.unique, r"returning them.*np\.where"),
    "union1d": (lambda x: np.union1d(x, x), r"np\.union1d.*np\.isin"),
    "intersect1d": (lambda x: np.intersect1d(x, x), r"np\.intersect1d"),
    "setdiff1d": (lambda x: np.setdiff1d(x, x), r"np\.setdiff1d"),
    "setxor1d": (lambda x: np.setxor1d(x, x), r"np\.setxor1d"),
    "trim_zeros": (lambda x: np.trim_zeros(x[0]), r"np\.trim_zeros.*x\[start:stop\]"),
    "bincount": (lambda x: np.bincount(x[0].astype(int)), r"np\.bincount.*np\.add\.at"),
    "histogram": (lambda x: np.histogram(x, bins="auto"), r"np\.histogram.*edges"),
    "repeat": (lambda x: np.repeat(x, x[0].astype(int), axis=1), r"np\.repeat"),
    "arange": (lambda x: np.arange(0.0, x[0, 0], like=x), r"np\.arange.*np\.linspace"),
    "linspace": (lambda x: np.linspace(0.0, 1.0, x[0, 0].astype(int), like=x), "."),
    "array2string": (np.array2string, r"np\.array2string.*debug\.show"),
    "real_if_close": (lambda x: np.real_if_close(x * 1j), r"np\.real_if_close.*x\.real"),
    "order of memory": (lambda x: np.ravel(x, order="K"), r"order='K'.*order='C'"),
    "chkfinite": (wnp.asarray_chkfinite, r"np\.asarray_chkfinite"),
    "roll": (lambda x: np.roll(x, x[0, 0].astype(int)), r"np\.roll.*np\.take"),
    "maximum.at": (
        lambda x: np.maximum.at(x, (x[:, 0] > 0.0,), 1.0),
        r"np\.maximum\.at.*np\.where\(mask",
    ),
}


@pytest.mark.parametrize("name", OUT)
def test_a_value_is_needed(name):
    f, message = OUT[name]
    if name == "linspace":
        f = lambda x: wnp.linspace(0.0, 1.0, x[0, 0].astype(int))  # noqa: E731
        message = r"np\.linspace.*x\.shape\[0\]"
    for spec in (wg.spec(("n", 3)), wg.spec((2, 3))):
        with pytest.raises(TraceError, match=message) as caught:
            wg.trace(f)(spec)
        assert str(caught.value).endswith(").")
        assert "(at " in str(caught.value)


def test_into_a_plain_array():
    # NumPy puts a message of its own before ours, which must not be what is read last.
    with pytest.raises(TraceError, match=r"np\.zeros_like\(x\)"):
        traced(into_plain)


BRANCHES = {
    "if": (branch, r"branch on greater.*np\.where"),
    "while": (lambda x: [0 for _ in iter(lambda: bool(x[0, 0] > 0), False)], "branch on greater"),
    "and": (lambda x: (x[0, 0] > 0) and x, "branch on greater"),
    "max": (lambda x: max(x[0, 0], x[0, 1]), "branch on greater"),
    "in": (lambda x: 3.0 in x, "branch on any"),
    "sorted": (lambda x: sorted([x[0, 0], x[0, 1]]), "branch on less"),
    "vectorize": (wnp.vectorize(lambda v: v if v > 0 else 0.0), "branch on greater"),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_on_a_value(name):
    f, message = BRANCHES[name]
    with pytest.raises(TracedBranchError, match=message) as caught:
        wg.trace(f)(wg.spec((2, 3)))
    assert "np.where" in str(caught.value)
    assert "test_traced_errors.py" in str(caught.value)


SIZES = {
    "iteration": (lambda x: [row for row in x], "size n was needed as a number"),
    "unpacking": (lambda x: np.add(*x), "size n was needed"),
    "len": (lambda x: len(x), "size n was needed"),
    "range": (lambda x: list(range(x.shape[0])), "size n was needed"),
    "int": (lambda x: int(x.shape[0]), "size n was needed"),
    "float": (lambda x: float(x.shape[0]), "size n was needed"),
    "math": (lambda x: math.sqrt(x.shape[0]), "size n was needed"),
    "order": (lambda x: x if x.shape[0] > 7 else -x, "whether n > 7 depends on the sizes"),
    "arange": (lambda x: np.arange(x.shape[0]), r"np\.arange\(n, like=x\)"),
    "eye": (lambda x: np.eye(x.shape[0]), "like=x"),
    "zeros": (lambda x: np.zeros((x.shape[0], 2)), "like=x"),
    "ndindex": (lambda x: list(np.ndindex(*x.shape)), "depends on the sizes"),
    "concatenate": (lambda x: np.concatenate(x), "size n was needed"),
    "apply_along_axis": (lambda x: np.apply_along_axis(np.sum, 1, x), "size n was needed"),
    "reduce": (lambda x: np.hypot.reduce(x), "size n was needed"),
    "tril_indices_from": (lambda x: np.tril_indices_from(x), r"np\.tri\(n, like=x\)"),
    "shares_memory": (
        lambda x: np.shares_memory(x, x[0]),
        "depends on sizes.*Pass concrete lengths",
    ),
    "split": (lambda x: np.split(x, 2), r"Use the symbolic size '2\*m'"),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_is_needed_as_a_number(name):
    f, message = SIZES[name]
    with pytest.raises(TraceError, match=message) as caught:
        wg.trace(f)(wg.spec(("n", 3)))
    assert "test_traced_errors.py" in str(caught.value)


def test_what_is_fine():
    seen = []

    def f(x):
        twin, deep = copy.copy(x), copy.deepcopy(x)
        seen.extend([repr(x), str(x), f"{x:}", f"{x.shape[0]}", repr(x.shape)])
        assert x.ndim == 2 and x.dtype == float and x.shape[1] == 3 and x.requires_grad
        assert x.size == x.shape[0] * 3 and len(x[0]) == 3
        twin[0] = 0.0
        return twin + deep + x

    graph = traced(f)
    want = 3 * X
    want[0] -= X[0]
    np.testing.assert_array_equal(graph(X), want)
    assert "traced" in seen[0] and seen[3] == "n"


def test_nothing_is_left_of_a_failed_trace():
    w = wg.variable(np.ones(2), "w")

    def f(x):
        w.__imul__(x)
        return float(x)

    with pytest.raises(TraceError):
        wg.trace(f)(wg.spec())
    np.testing.assert_array_equal(w.numpy(), [1.0, 1.0])
    assert float(wg.grad(lambda x: np.sin(x))(0.0)) == 1.0


def test_a_message_with_a_traced_number_in_it_says_what_it_is(capsys):
    def f(x):
        print(f"x = {x:.3f} {x:>9}")
        return x * 2.0

    assert wg.trace(f)(1.5)(2.0) == 4.0
    assert "x = Tensor(float64[], 'x' input, traced)" in capsys.readouterr().out
