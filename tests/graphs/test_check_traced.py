"""The checker of traces finds what is planted: a wrong value, dtype, shape, size, derivative."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.handle import is_traced
from wengert._engine.core.symbolic.dim import Dim
from wengert.errors import CheckError, ShapeError, TracedBranchError
from wengert.testing import check_traced

X = np.array([[1.0, 2.0, 4.0], [0.5, -1.0, 3.0]])


def planted(right, wrong):
    return lambda x: wrong(x) if is_traced(x) else right(x)


FAULTS = {
    "value": (lambda x: x * 2, lambda x: x * 2.0001, "gives"),
    "dtype": (lambda x: x > 0, lambda x: (x > 0).astype(float), "gives float64"),
    "shape": (lambda x: x[0], lambda x: x[:1], "returns shape"),
    "number of results": (lambda x: (x, x), lambda x: x, "results"),
    "derivative": (
        lambda x: np.sum(x),
        lambda x: np.sum(wg.stop_gradient(x)) + 0 * np.sum(x),
        "gives",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name):
    right, wrong, message = FAULTS[name]
    check_traced(right, [X])
    with pytest.raises(CheckError, match=f"the graph .*{message}|the graph {message}"):
        check_traced(planted(right, wrong), [X])


def test_a_size_that_was_frozen_is_found():
    def f(x):
        n = 3 if isinstance(x.shape[1], Dim) else x.shape[1]
        return x.sum(axis=1) / n

    check_traced(f, [X], sizes=False)
    with pytest.raises(CheckError, match="at other sizes"):
        check_traced(f, [X])


def test_what_is_refused():
    f = lambda x: x * (2.0 if x.shape[0] > 1 else 1.0)  # noqa: E731
    check_traced(f, [X], sizes=False)
    check_traced(f, [X], sizes=None)
    with pytest.raises(TracedBranchError):
        check_traced(f, [X])
    with pytest.raises(ShapeError):
        check_traced(lambda x: x * np.ones((2, 3)), [X])


def test_branches_on_one_of_several_results():
    """The error names the operation, as for operations with one result."""

    def f(a):
        return np.sum(a) if np.linalg.slogdet(a)[0] > 0 else a[0, 0]

    with pytest.raises(TracedBranchError, match="cannot branch on greater"):
        wg.jit(f, source=False)(np.eye(2))
