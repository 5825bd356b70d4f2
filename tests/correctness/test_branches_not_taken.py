"""A branch not taken has no influence, whatever its value or slope is there.

The answer is the derivative of the branch that is taken (docs/conventions.md, 4.1): the program is
a function of its inputs, and near the point it *is* that branch.  JAX, PyTorch and autograd give
NaN for most of these, and tell their users to rewrite the program (JAX's FAQ, "double where").
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

from .ways import case, check, everywhere

softmax, logsumexp = wg.numpy.softmax, wg.numpy.logsumexp
MASK = np.array([[True, True, False], [False, False, False]])
P = np.exp([1.0, 2.0]) / np.sum(np.exp([1.0, 2.0]))  # the shares of two that are not masked


def entropy(p):
    return np.sum(np.where(p > 0, -p * np.log(p), 0.0))


def nested(x):
    inner = np.where(x < 1, np.arcsin(x), x**-1.0)
    outer = np.where(x < -1, np.log(-x), np.sqrt(1.0 - 0.0 * x))
    return np.sum(np.where(x > 0, inner, outer))


def written_after(x):
    y = np.log(x)
    y[x <= 0] = 0.0
    return np.sum(y)


def written_before(x):
    y = np.zeros_like(x)
    mask = x > 0
    y[mask] = np.sqrt(x[mask])
    return np.sum(y)


def attention(scores):
    """Rows of scores, of which some or all are padding."""
    weights = softmax(np.where(MASK, scores, -np.inf), axis=-1)
    return np.sum(np.where(MASK, weights, 0.0) * np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


def evidence(scores):
    sums = logsumexp(np.where(MASK, scores, -np.inf), axis=-1)
    return np.sum(np.where(MASK.any(1), sums, 0.0))


def distances(x):
    d = x[:, None] - x[None]
    return np.sum(np.where(np.eye(3, dtype=bool), 0.0, 1.0 / np.sqrt(d**2)))


def sinc_by_hand(x):
    return np.sum(np.where(x != 0, np.sin(x) / x, 1.0))


CASES = {
    "where, log": case(
        lambda x: np.sum(np.where(x > 0, np.log(x), 0.0)),
        [-1.0, 0.0, 2.0],
        gradient=[0, 0, 0.5],
        hessian=np.diag([0, 0, -0.25]),
    ),
    "where, sqrt": case(
        lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)),
        [-1.0, 0.0, 4.0],
        gradient=[0, 0, 0.25],
        hessian=np.diag([0, 0, -1 / 32]),
    ),
    "where, quotient": case(sinc_by_hand, [0.0, 1.0], gradient=[0, np.cos(1) - np.sin(1)]),
    "where, entropy": case(
        entropy, [0.0, 0.5], gradient=[0, np.log(2) - 1], hessian=np.diag([0, -2])
    ),
    "where, overflow": case(
        lambda x: np.sum(np.where(x < 0, np.exp(x), np.exp(-x))),
        [-800.0, 800.0, -1.0],
        gradient=[0, 0, np.exp(-1)],
    ),
    "nested masks": case(
        nested, [-2.0, 0.0, 0.5, 3.0], gradient=[-0.5, 0, 1 / np.sqrt(0.75), -1 / 9]
    ),
    "singular behind a choice": case(
        lambda x: np.sum(np.exp(np.sqrt(np.where(x > 0, np.log1p(x), 1.0)))),
        [-5.0, 0.0, 1.0],
        gradient=[0, 0, np.exp(np.sqrt(np.log(2))) / (4 * np.sqrt(np.log(2)))],
    ),
    "where, pairs of points": case(
        distances, [0.0, 1.0, 3.0], gradient=[2 + 2 / 9, -2 + 0.5, -2 / 9 - 0.5]
    ),
    "maximum": case(
        lambda x: np.sum(np.maximum(np.sqrt(x), 1.0)), [0.0, 0.25, 4.0], gradient=[0, 0, 0.25]
    ),
    "maximum, -inf": case(
        lambda x: np.sum(np.maximum(np.log(x), -3.0)), [0.0, 2.0], gradient=[0, 0.5]
    ),
    "minimum, inf": case(
        lambda x: np.sum(np.minimum(1 / x, 10.0)), [0.0, 0.05, 0.5], gradient=[0, 0, -4]
    ),
    "clip outside": case(
        lambda x: np.sum(np.clip(np.sqrt(x), 1.0, 3.0)), [0.0, 4.0, 16.0], gradient=[0, 0.25, 0]
    ),
    "clip inside": case(
        lambda x: np.sum(np.sqrt(np.clip(x, 0.0, None))), [-1.0, 4.0], gradient=[0, 0.25]
    ),
    "clip, then log": case(
        lambda x: np.sum(np.log(np.clip(x, 1e-6, 1.0))), [-1.0, 0.5], gradient=[0, 2]
    ),
    "root of relu": case(
        lambda x: np.sum(np.sqrt(np.maximum(x, 0.0))), [-1.0, 4.0], gradient=[0, 0.25]
    ),
    "select": case(
        lambda x: np.sum(np.select([x < 0, x < 1], [np.log(-x), np.sqrt(x + 1)], 1 / x)),
        [-2.0, 0.0, 4.0],
        gradient=[-0.5, 0.5, -1 / 16],
    ),
    "choose": case(
        lambda x: np.sum(np.choose((x > 0).astype(int), [np.sin(x), np.log(x)])),
        [-1.0, 0.0, 2.0],
        gradient=[np.cos(1), 1, 0.5],
    ),
    "piecewise": case(
        lambda x: np.sum(np.piecewise(x, [x < 0, x >= 0], [np.negative, np.sqrt])),
        [-1.0, 4.0],
        gradient=[-1, 0.25],
        graphs=False,
    ),
    "elements by mask": case(
        lambda x: np.sum(np.log(x[x > 0])), [-1.0, 0.0, 2.0], gradient=[0, 0, 0.5], graphs=False
    ),
    "assignment by mask": case(
        written_after, [-1.0, 0.0, 2.0], gradient=[0, 0, 0.5], hessian=np.diag([0, 0, -0.25])
    ),
    "elements and assignment by mask": case(
        written_before, [-1.0, 0.0, 4.0], gradient=[0, 0, 0.25], graphs=False
    ),
    "sum where=": case(
        lambda x: np.sum(np.log(x), where=x > 0), [-1.0, 0.0, 2.0], gradient=[0, 0, 0.5]
    ),
    "mean where=": case(
        lambda x: np.mean(np.sqrt(x), where=x > 0), [-1.0, 0.0, 4.0], gradient=[0, 0, 0.25]
    ),
    "ufunc where=": case(
        lambda x: np.sum(np.log(x, where=x > 0, out=np.zeros_like(x))),
        [-1.0, 0.0, 2.0],
        gradient=[0, 0, 0.5],
    ),
    "nansum": case(lambda x: np.nansum(np.log(x)), [-1.0, 2.0], gradient=[0, 0.5]),
    "nanmean": case(lambda x: np.nanmean(np.sqrt(x)), [-1.0, 4.0], gradient=[0, 0.25]),
    "nan_to_num": case(
        lambda x: np.sum(np.nan_to_num(np.log(x), nan=0.0, neginf=0.0)),
        [-1.0, 0.0, 2.0],
        gradient=[0, 0, 0.5],
    ),
    "masked softmax": case(
        attention,
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        gradient=[[P[0] * (1 - P @ [1, 2]), P[1] * (2 - P @ [1, 2]), 0], [0, 0, 0]],
    ),
    "masked logsumexp": case(
        evidence, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], gradient=[[P[0], P[1], 0], [0, 0, 0]]
    ),
    "padding": case(
        lambda x: np.sum(np.where([True, True, False], np.sqrt(np.pad(x, (0, 1))), 0.0)),
        [1.0, 4.0],
        gradient=[0.5, 0.25],
    ),
    "length of a masked row": case(
        lambda x: np.sum(np.where(np.any(x != 0, axis=1), np.sqrt(np.sum(x * x, axis=1)), 0.0)),
        [[0.0, 0.0], [3.0, 4.0]],
        gradient=[[0, 0], [0.6, 0.8]],
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_what_was_not_chosen_has_no_influence(name):
    check(CASES[name])


def test_a_branch_of_a_loop():
    def f(x):
        return wg.scan(
            lambda c, a: (c + wg.cond(a > 0, np.log, lambda a: 0.0 * a, a), None), 0.0, x
        )[0]

    everywhere(f, [-1.0, 2.0], gradient=[0, 0.5], dtypes=(np.float64,))


def test_a_constant_beside_an_operand_has_no_tangent():
    """Not even where its slope is infinite; in a graph, which does not know that."""

    def f(x):
        return np.concatenate([x, np.array([2.0])]) * np.array([1.0, np.inf])

    graph = wg.trace(lambda x: wg.jvp(f, (x,), (np.ones(1),))[1])(np.array([3.0]))
    np.testing.assert_array_equal(graph(np.array([3.0])), [1.0, 0.0])


def test_the_other_operand_of_a_choice_is_still_differentiated():
    """Strong zeros must not swallow a slope that is really there: d sqrt(x) at 0 is inf."""
    f = lambda x: np.sum(np.where(x >= 0, np.sqrt(x), 0.0))  # noqa: E731
    everywhere(f, [0.0, 4.0, -1.0], gradient=[np.inf, 0.25, 0], orders=1)


def test_a_graph_says_that_it_cannot_read_by_a_mask():
    with pytest.raises(TraceError, match=r"np\.where"):
        wg.jit(lambda x: np.sort(x[x > 0]))(np.ones(3))
    x = np.array([-1.0, 2.0, 3.0])
    assert wg.jit(wg.grad(lambda x: np.sum(np.sqrt(x[x > 0]))))(x)[0] == 0.0


THIRD = {
    "log": (lambda x: np.where(x > 0, np.log(x), 0.0), [-1.0, 0.0, 2.0], [0, 0, 0.25]),
    "sqrt": (lambda x: np.where(x > 0, np.sqrt(x), 0.0), [-1.0, 0.0, 4.0], [0, 0, 3 / 256]),
    "entropy": (lambda p: np.where(p > 0, -p * np.log(p), 0.0), [0.0, 0.5], [0, 4]),
    "clip": (lambda x: np.sqrt(np.clip(x, 0.0, None)), [-1.0, 4.0], [0, 3 / 256]),
    "maximum": (lambda x: np.maximum(x, 0.0) ** 3, [-1.0, 2.0], [0, 6]),
}


def along_ones(f):
    return lambda x: wg.jvp(f, (x,), (np.ones(x.shape),))[1]


def back_from_ones(f):
    return lambda x: wg.grad(lambda x: np.sum(f(x)))(x)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", THIRD)
def test_third_derivatives(name):
    f, x, want = THIRD[name]
    a, b = along_ones, back_from_ones
    ways = [b(b(b(f))), a(a(a(f))), b(a(b(f))), a(b(b(f))), b(b(a(f)))]
    with np.errstate(all="ignore"):
        for run in (*ways, wg.jit(ways[0]), wg.jit(ways[2]), wg.jit(ways[4])):
            np.testing.assert_allclose(run(np.array(x)), want, rtol=1e-12, atol=1e-12)
