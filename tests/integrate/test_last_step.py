"""solve_ivp without t_eval in a graph: the last step can be used, the others cannot."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError
from wengert.scipy.integrate import solve_ivp

RATE = np.array([0.5, 2.0])


def solution(rate):
    return solve_ivp(lambda t, y: [-rate[0] * y[0], y[0] - rate[1] * y[1]], (0.0, 1.5), [1.0, 0.2])


USES = {
    "y[:, -1]": lambda s: s.y[:, -1].sum(),
    "y[..., -1]": lambda s: s.y[..., -1].sum(),
    "y[0, -1]": lambda s: s.y[0, -1],
    "y[1][-1]": lambda s: s.y[1][-1],
    "y[-1, -1]": lambda s: s.y[-1, -1],
    "an array of rows": lambda s: s.y[np.array([1, 0]), -1] @ np.array([1.0, 3.0]),
    "a computed row": lambda s: s.y[np.argmax(s.y[:, -1]), np.int64(-1)],
    "y[:, -1:]": lambda s: (s.y[:, -1:] * np.array([[1.0], [2.0]])).sum(),
    "y[::-1][:, -1]": lambda s: s.y[::-1][:, -1] @ np.array([1.0, 3.0]),
    "y.T[-1]": lambda s: s.y.T[-1] @ np.array([1.0, 3.0]),
    "y.T[-1, 1]": lambda s: s.y.T[-1, 1],
    "y.T[-1:]": lambda s: s.y.T[-1:].sum(),
    "rows": lambda s: (lambda u, v: u[-1] * v[-1])(*s.y),
    "t[-1]": lambda s: s.t[-1] * s.y[0, -1],
    "len": lambda s: len(s.y) * s.y[0, -1],
}


@pytest.mark.parametrize("name", USES)
def test_the_last_step(name):
    f = lambda rate: USES[name](solution(rate))  # noqa: E731
    value, gradient = wg.value_and_grad(f)(RATE)
    compiled, compiled_gradient = wg.jit(wg.value_and_grad(f))(RATE)
    np.testing.assert_allclose(compiled, value, rtol=1e-14)
    np.testing.assert_allclose(compiled_gradient, gradient, rtol=1e-13)


def test_batches():
    f = lambda rate: solution(rate).y[0, -1]  # noqa: E731
    rates = np.stack([RATE, 2 * RATE, RATE[::-1]])
    expected = [wg.grad(f)(rate) for rate in rates]
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(f)))(rates), expected, rtol=1e-12)


REFUSED = {
    "y[0]": lambda s: s.y[0].sum(),
    "an element": lambda s: s.y[0, 3],
    "the first": lambda s: s.y[:, 0],
    "some": lambda s: s.y[:, -3:],
    "sum": lambda s: np.sum(s.y),
    "plus": lambda s: s.y + 1.0,
    "plus from the left": lambda s: RATE[:, None] * s.y,
    "an attribute": lambda s: s.y.shape,
    "max": lambda s: np.max(s.t),
    "len": lambda s: len(s.t),
    "array": lambda s: np.asarray(s.y),
    "a list": lambda s: list(s.t),
    "interp": lambda s: np.interp(0.5, s.t, s.y[0]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_steps_are_refused(name):
    message = r"solve_ivp: .*sol\.[ty].* in a graph the number of steps .*t_eval.*test_last_step"
    with pytest.raises(TraceError, match=message):
        wg.jit(lambda rate: REFUSED[name](solution(rate)))(RATE)


def test_its_text():
    texts = []
    wg.jit(lambda rate: (texts.append(repr(solution(rate).y)), rate)[1])(RATE)
    assert texts[0].startswith("<sol.y, of which only the last step is known: ")
    with pytest.raises(IndexError, match=r"too many indices for sol\.y, which has 2 axes"):
        wg.jit(lambda rate: solution(rate).y[0, 0, -1])(RATE)
