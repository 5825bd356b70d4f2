"""Solutions with LU factors of few rows, which native code writes out."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.ops.linalg.packed_storage import lu_packed, solve_packed
from wengert.errors import SingularError


def solution(trans=0):
    return wg.jit(lambda a, b: solve_packed(*lu_packed(a), b[:, None], trans=trans)[:, 0])


@pytest.mark.parametrize("n", [2, 3, 8, 12, 13])
def test_systems_and_their_adjoints(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(n, n)), rng.normal(size=n)  # rows are exchanged
    for trans, op in enumerate((a, a.T, a.T)):
        np.testing.assert_allclose(solution(trans)(a, b), np.linalg.solve(op, b), rtol=1e-10)


def test_pivots_near_zero():
    run, b = solution(), np.array([1.0, 0.0, 2.0, 3.0])
    np.testing.assert_array_equal(run(np.diag([1.0, 1e-310, 1.0, 1.0]), b), b)
    assert np.isnan(run(np.diag([1.0, np.nan, 1.0, 1.0]), b)[1])
    with pytest.raises(SingularError):
        run(np.diag([1.0, 0.0, 2.0, 3.0]), b)
