"""A neural ordinary differential equation fitted to one noisy trajectory.

The trajectory is van der Pol's oscillator (1926), x'' = (1 - x^2) x' - x, observed 200 times in 20
units of time, position and velocity, with noise.  The right-hand side of y' = f(y) is a network.
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

APART, SEEN, AHEAD, FINE, NOISE = 0.1, 200, 200, 2, 0.02


def record(rng):
    """What is seen, with noise, and what is to come, without."""
    times = APART * np.arange(SEEN + AHEAD)
    path = solve_ivp(
        lambda t, y: [y[1], (1 - y[0] ** 2) * y[1] - y[0]],
        (0, times[-1]), [0.5, 0.0], t_eval=times, rtol=1e-9, atol=1e-9,
    ).y.T  # fmt: skip
    return path[:SEEN] + NOISE * rng.normal(size=(SEEN, 2)), path[SEEN:]


class Law(nn.Module):
    """y' for any number of states y."""

    def __init__(self, width, rng):
        sizes = [2, width, width, 2]
        self.layers = [nn.Linear(a, b, rng=rng) for a, b in itertools.pairwise(sizes)]

    def forward(self, y):
        """The velocity of each state."""
        for layer in self.layers[:-1]:
            y = np.tanh(layer(y))
        return self.layers[-1](y)


def follow(law, start, count):
    """The states after 0, 1, ... `count` - 1 times APART, along a new first axis."""
    h = APART / FINE

    def onward(y, _):
        after = y
        for _ in range(FINE):
            k1 = law(after)
            k2 = law(after + 0.5 * h * k1)
            k3 = law(after + 0.5 * h * k2)
            k4 = law(after + h * k3)
            after = after + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return after, y

    return wg.scan(onward, start, length=count, memory=32)[1]


def fit(law, seen, steps, length=20):
    """Short stretches from smoothed starts, then the whole record; weights and its start."""
    first = np.arange(0, SEEN - length + 1, 5)
    stretches = np.stack([seen[i : i + length] for i in first], axis=1)

    def by_stretches(x):
        def move(y):
            return nn.functional_call(law, x["law"], y)

        return np.mean(np.square(follow(move, x["starts"], length) - stretches))

    def by_all(x):
        def move(y):
            return nn.functional_call(law, x["law"], y)

        return np.mean(np.square(follow(move, x["start"], SEEN) - seen))

    limit = {"maxiter": steps}
    short = optim.minimize(
        by_stretches, {"law": law.state_dict(), "starts": stretches[0]}, options=limit
    )
    whole = {"law": short.x["law"], "start": short.x["starts"][0]}
    found = optim.minimize(by_all, whole, options=limit)
    law.load_state_dict(found.x["law"])
    return found.x["start"], short.fun, found.fun


def linear_law(seen):
    """What the best linear law says of the time to come."""
    step = np.linalg.lstsq(seen[:-1], seen[1:], rcond=None)[0]
    path, y = [], seen[-1]
    for _ in range(AHEAD):
        y = y @ step
        path.append(y)
    return np.array(path)


def picture(path, seen, ahead, whole):
    times = APART * np.arange(SEEN + AHEAD)
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    left.plot(times[:SEEN], seen[:, 0], "k.", markersize=3, label="seen")
    left.plot(times[SEEN:], ahead[:, 0], "r", linewidth=4, alpha=0.3, label="to come")
    left.plot(times, whole[:, 0], linewidth=1, label="the learnt law")
    left.set(xlabel="time", ylabel="position")
    left.legend(loc="upper left")
    right.plot(*seen.T, "k.", markersize=3)
    right.plot(*ahead.T, "r", linewidth=4, alpha=0.3)
    right.plot(*whole.T, linewidth=1)
    right.set(xlabel="position", ylabel="velocity")
    figure.savefig(path, dpi=120)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=400)
    options.add_argument("--width", type=int, default=24)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--at-most", type=float, default=0.1, help="share of its size off")
    options.add_argument("--out", type=Path, default=Path("out"))
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)

    rng = np.random.default_rng(given.seed)
    seen, ahead = record(rng)
    law = Law(given.width, rng)
    begin = time.perf_counter()
    start, short, whole = fit(law, seen, given.steps)
    took = time.perf_counter() - begin
    with wg.no_grad():
        path = wg.jit(lambda y: follow(law, y, SEEN + AHEAD))(start).numpy()

    def off(guess):
        return np.sqrt(np.mean((guess - ahead) ** 2) / np.mean((ahead - ahead.mean(axis=0)) ** 2))

    share = off(path[SEEN:])
    print(f"{SEEN} states with noise {NOISE}, {AHEAD} to come; fitted in {took:.0f} s")
    print(f"  root of the mean square left: stretches {short**0.5:.4f}, all of it {whole**0.5:.4f}")
    print("how far off in the time to come, as a share of the motion")
    print(f"  the last value repeated  {100 * off(seen[-1]):8.2f} %")
    print(f"  the best linear law      {100 * off(linear_law(seen)):8.2f} %")
    print(f"  the learnt law           {100 * share:8.2f} %")
    picture(given.out / "neural_ode.png", seen, ahead, path)
    print(f"wrote {given.out / 'neural_ode.png'}")
    if share > given.at_most:
        sys.exit(f"the learnt law is off by more than {100 * given.at_most:g} %")


if __name__ == "__main__":
    main()
