"""Progress bars of solutions: eager, compiled, in derivatives and in batches."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError
from wengert.integrate import solve, solve_dde, solve_sde
from wengert.scipy.integrate import solve_ivp


class Bar:
    """A bar with the interface of tqdm."""

    all: list["Bar"]

    def __init__(self, total, desc):
        self.total, self.desc, self.done, self.text, self.closed = total, desc, [0], "", False
        Bar.all.append(self)

    def update(self, n):
        self.done.append(self.done[-1] + n)

    def set_postfix_str(self, text, refresh):
        self.text = text

    def close(self):
        self.closed = True


@pytest.fixture(autouse=True)
def bars():
    Bar.all = []
    return Bar.all


def decayed(rate, **options):
    steps = {"first_step": 0.0625, "max_step": 0.0625}  # sums of them are exact
    return solve(lambda t, y: -rate * y, (0.0, 10.0), np.ones(1), **steps, **options).y[0]


shown = lambda rate: decayed(rate, progress=Bar)  # noqa: E731
CALLS = {
    "eager": (shown, 0.3),
    "jit": (wg.jit(shown), 0.3),
    "grad": (wg.grad(shown), 0.3),
    "jit grad": (wg.jit(wg.grad(shown)), 0.3),
    "second derivative": (wg.hessian(shown), 0.3),
    "vmap": (wg.vmap(shown), np.array([0.1, 0.3])),
    "jit vmap grad": (wg.jit(wg.vmap(wg.grad(shown))), np.array([0.1, 0.3])),
    "continuous adjoint": (
        wg.grad(lambda rate: decayed(rate, progress=Bar, adjoint="continuous")),
        0.3,
    ),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if "adjoint" in name else []) for name in CALLS],
)
def test_one_bar_for_each_run(bars, name):
    run, rate = CALLS[name]
    for _ in range(2):
        bars.clear()
        run(rate)
        (bar,) = bars
        assert bar.closed and bar.total == bar.done[-1] == 100 and bar.desc == "solve"
        assert len(bar.done) == 101  # 160 steps, and a call for each part
        assert bar.text == "t 10"


def test_the_solution_is_the_same_with_a_bar():
    plain, rate = decayed, 0.3
    for transform in (lambda f: f, wg.grad, wg.hessian, lambda f: wg.jit(wg.grad(f))):
        assert transform(shown)(rate) == transform(plain)(rate)


def test_a_batch_shows_the_element_that_is_last(bars):
    def end(rate):
        # Fast elements take more steps: they are behind.
        return solve(lambda t, y: -rate * y, (0.0, 1.0), np.ones(1), progress=Bar).y[0]

    rates = np.array([0.1, 200.0])
    wg.jit(wg.vmap(end))(rates)
    of_batch = bars.pop().done
    end(rates[1])
    assert of_batch == bars.pop().done


@pytest.mark.parametrize("interval", [(0.0, 4.0), (4.0, 0.0), (-2.0, 2.0)])
def test_of_solve_ivp(bars, interval):
    found = solve_ivp(lambda t, y: -y, interval, [1.0], max_step=0.5, progress=Bar)
    (bar,) = bars
    assert found.success and bar.desc == "solve_ivp" and bar.closed
    assert bar.done[-1] == 100 and bar.done == sorted(bar.done)
    assert bar.text == f"t {interval[1]:.4g}"


def test_lines_without_a_terminal(capsys):
    decayed(0.3, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[4].startswith("solve  50/100  t 5  ")


def test_a_solution_that_fails_closes_its_bar(bars):
    def fails(t, y):
        return np.where(t > 3, np.nan, -y)

    with pytest.raises(ConvergenceError):
        solve(fails, (0.0, 10.0), np.ones(1), progress=Bar)
    (bar,) = bars
    assert bar.closed and 20 <= bar.done[-1] <= 30


@pytest.mark.parametrize("transform", [lambda f: f, wg.jit, wg.grad, lambda f: wg.jit(wg.grad(f))])
def test_an_interrupt_closes_the_bar(bars, transform):
    class Interrupted(Bar):
        def update(self, n):
            super().update(n)
            if self.done[-1] == 50:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        transform(lambda rate: decayed(rate, progress=Interrupted))(0.3)
    assert bars[-1].closed and bars[-1].done[-1] == 50
    transform(shown)(0.3)
    assert bars[-1].done[-1] == 100


def test_fixed_steps(bars):
    def price(volatility, key):
        drift, diffusion = (lambda t, y: 0.05 * y), (lambda t, y: volatility * y)
        times = np.array([0.0, 1.0, 3.0])
        return solve_sde(drift, diffusion, times, np.ones(1), key=key, steps=70, progress=Bar).y[-1]

    keys = wg.random.split(wg.random.key(0), 3)
    wg.jit(wg.vmap(lambda key: wg.grad(lambda v: price(v, key)[0])(0.2)))(keys)
    delayed = solve_dde(
        lambda t, y, d: -d[0], (0.0, 2.0), lambda t: np.ones(1), 1.0, steps=20, progress=Bar
    )
    assert delayed.y.shape == (21, 1)
    sde, dde = bars
    assert sde.closed and sde.done[-1] == 100 and len(sde.done) == 101 and sde.text == "t 3"
    assert dde.closed and dde.done == list(range(0, 101, 5)) and dde.text == "t 2"


def test_what_cannot_show_progress():
    with pytest.raises(ArgumentError, match="must be True, False, or a class of bars"):
        decayed(0.3, progress=3)
    with pytest.raises(ArgumentError, match=r"LSODA.* has no dense_output, events or progress"):
        solve_ivp(lambda t, y: -y, (0, 1), [1.0], "LSODA", progress=True)
