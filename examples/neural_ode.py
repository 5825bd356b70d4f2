"""A neural ordinary differential equation fitted to one noisy trajectory.

The trajectory is van der Pol's oscillator (1926), x'' = (1 - x^2) x' - x, observed 200 times in 20
units of time, in position and velocity, with noise.  The right-hand side of y' = f(y) is a network.
The Runge-Kutta method of order four is a `wg.scan`, so its gradient is a compiled backward loop;
`memory=` bounds the stored states (R. T. Q. Chen, Y. Rubanova, J. Bettencourt and D. Duvenaud,
"Neural ordinary differential equations", 2018).

The network is first fitted to many short segments, then to the whole trajectory from an
unknown initial state.  The measure is the error in the next 20 units of time, relative to the size
of the motion; baselines are the best linear equation and the last value.

    python examples/neural_ode.py --steps 400 --seed 0 --out out

Writes neural_ode.png to the folder `out`.  Fails if the error is more than 10 %.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

import wengert as wg
from wengert import nn, optim

INTERVAL, OBSERVED, FUTURE, SUBSTEPS, NOISE = 0.1, 200, 200, 2, 0.02


def data(rng):
    """Observed states, with noise, and future states, without noise."""
    times = INTERVAL * np.arange(OBSERVED + FUTURE)
    path = solve_ivp(
        lambda t, y: [y[1], (1 - y[0] ** 2) * y[1] - y[0]],
        (0, times[-1]), [0.5, 0.0], t_eval=times, rtol=1e-9, atol=1e-9,
    ).y.T  # fmt: skip
    return path[:OBSERVED] + NOISE * rng.normal(size=(OBSERVED, 2)), path[OBSERVED:]


class Field(nn.Module):
    """y' for a batch of states y."""

    def __init__(self, width, rng):
        sizes = [2, width, width, 2]
        self.layers = [nn.Linear(a, b, rng=rng) for a, b in itertools.pairwise(sizes)]

    def forward(self, y):
        """The velocity of each state."""
        for layer in self.layers[:-1]:
            y = np.tanh(layer(y))
        return self.layers[-1](y)


def trajectory(field, start, count):
    """The states after 0, 1, ... `count` - 1 times INTERVAL, along a new first axis."""
    h = INTERVAL / SUBSTEPS

    def advance(y, _):
        after = y
        for _ in range(SUBSTEPS):
            k1 = field(after)
            k2 = field(after + 0.5 * h * k1)
            k3 = field(after + 0.5 * h * k2)
            k4 = field(after + h * k3)
            after = after + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return after, y

    return wg.scan(advance, start, length=count, memory=32)[1]


def fit(field, observed, steps, length=20):
    """Fit short segments with unknown initial states, then the whole trajectory.

    Returns the initial state and the losses of both fits.
    """
    first = np.arange(0, OBSERVED - length + 1, 5)
    segments = np.stack([observed[i : i + length] for i in first], axis=1)

    def segment_loss(x):
        def velocity(y):
            return nn.functional_call(field, x["field"], y)

        return np.mean(np.square(trajectory(velocity, x["starts"], length) - segments))

    def trajectory_loss(x):
        def velocity(y):
            return nn.functional_call(field, x["field"], y)

        return np.mean(np.square(trajectory(velocity, x["start"], OBSERVED) - observed))

    limit = {"maxiter": steps}
    short = optim.minimize(
        segment_loss, {"field": field.state_dict(), "starts": segments[0]}, options=limit
    )
    whole = {"field": short.x["field"], "start": short.x["starts"][0]}
    result = optim.minimize(trajectory_loss, whole, options=limit)
    field.load_state_dict(result.x["field"])
    return result.x["start"], short.fun, result.fun


def linear_forecast(observed):
    """Future states by the best linear map from a state to the next."""
    step = np.linalg.lstsq(observed[:-1], observed[1:], rcond=None)[0]
    path, y = [], observed[-1]
    for _ in range(FUTURE):
        y = y @ step
        path.append(y)
    return np.array(path)


def picture(path, observed, future, whole):
    times = INTERVAL * np.arange(OBSERVED + FUTURE)
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    left.plot(times[:OBSERVED], observed[:, 0], "k.", markersize=3, label="observed")
    left.plot(times[OBSERVED:], future[:, 0], "r", linewidth=4, alpha=0.3, label="future")
    left.plot(times, whole[:, 0], linewidth=1, label="neural ODE")
    left.set(xlabel="time", ylabel="position")
    left.legend(loc="upper left")
    right.plot(*observed.T, "k.", markersize=3)
    right.plot(*future.T, "r", linewidth=4, alpha=0.3)
    right.plot(*whole.T, linewidth=1)
    right.set(xlabel="position", ylabel="velocity")
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-most", type=float, default=0.1, help="relative error allowed")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    rng = np.random.default_rng(options.seed)
    observed, future = data(rng)
    field = Field(options.width, rng)
    begin = time.perf_counter()
    start, short, whole = fit(field, observed, options.steps)
    seconds = time.perf_counter() - begin
    with wg.no_grad():
        path = wg.jit(lambda y: trajectory(field, y, OBSERVED + FUTURE))(start).numpy()

    def relative_error(forecast):
        variance = np.mean((future - future.mean(axis=0)) ** 2)
        return np.sqrt(np.mean((forecast - future) ** 2) / variance)

    error = relative_error(path[OBSERVED:])
    print(f"{OBSERVED} states with noise {NOISE}, {FUTURE} future states; {seconds:.0f} s")
    print(f"  root mean square residual: segments {short**0.5:.4f}, whole {whole**0.5:.4f}")
    print("relative error of future states")
    print(f"  last value    {100 * relative_error(observed[-1]):8.2f} %")
    print(f"  linear model  {100 * relative_error(linear_forecast(observed)):8.2f} %")
    print(f"  neural ODE    {100 * error:8.2f} %")
    picture(options.out / "neural_ode.png", observed, future, path)
    print(f"wrote {options.out / 'neural_ode.png'}")
    if error > options.at_most:
        sys.exit(f"the relative error is more than {100 * options.at_most:g} %")


if __name__ == "__main__":
    main()
