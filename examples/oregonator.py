"""The period of an oscillating reaction and its derivatives: a stiff problem with events.

The oregonator (Field and Noyes, 1974) has three concentrations that change by five orders of
magnitude within a period of 302.  The period is the distance of two events, the maxima of the
first concentration; its derivative with respect to the three constants is that of the times of
these events.  Along the solution the sensitivity of the concentrations is a compiled Jacobian,
computed in forward mode.

    compared with  differences of periods with smaller tolerances

    python examples/oregonator.py --out out

Writes oregonator.png to the folder `out`.  Fails unless both derivatives agree.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import wengert as wg
from wengert.integrate import Event, solve

CONSTANTS = np.array([77.27, 8.375e-6, 0.161])
START = np.array([1.0, 2.0, 3.0])
TOLERANCES = {"method": "rodas5p", "rtol": 1e-9, "atol": 1e-10}
STEP = 1e-4  # relative, of the differences


def oregonator(t, y, k):
    """Bromous acid, bromide, cerium, in units of their own."""
    return np.stack((
        k[0] * (y[1] + y[0] * (1.0 - k[1] * y[0] - y[1])),
        (y[2] - (1.0 + y[0]) * y[1]) / k[0],
        k[2] * (y[0] - y[2]),
    ))  # fmt: skip


def period(logs):
    """From the second maximum of the first concentration to the third."""
    k = np.exp(logs)
    summit = Event(lambda t, y, k: oregonator(t, y, k)[0], direction=-1, count=3)
    found = solve(oregonator, (0.0, 2000.0), START, (k,), events=summit, **TOLERANCES)
    times = found.t_events[0]
    return times[2] - times[1]


def concentrations(logs, times):
    """Logarithms along the solution."""
    found = solve(oregonator, times, START, (np.exp(logs),), **TOLERANCES)
    return np.log(found.y)


def picture(path, times, logs, slopes):
    figure = Figure(figsize=(7, 5), layout="constrained")
    above, below = figure.subplots(2, sharex=True)
    for name, values in zip(("HBrO2", "Br-", "Ce(IV)"), logs.T, strict=True):
        above.semilogy(times, np.exp(values), label=name)
    above.set(ylabel="concentration")
    above.legend(loc="upper center")
    for name, values in zip(("s", "q", "w"), slopes.T, strict=True):
        below.plot(times, values, label=f"with respect to {name}")
    below.set_yscale("symlog", linthresh=1.0)
    below.set(xlabel="time", ylabel="relative sensitivity of Ce(IV)")
    below.legend(loc="upper left", ncols=3)
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    logs = np.log(CONSTANTS)
    value, slopes = wg.jit(wg.value_and_grad(period))(logs)
    compiled = wg.jit(period)
    steps = STEP * np.eye(3)
    differences = [(compiled(logs + d) - compiled(logs - d)) / (2.0 * STEP) for d in steps]
    off = np.max(np.abs(slopes / value - np.array(differences) / value))
    times = np.linspace(0.0, 700.0, 1401)
    states = wg.jit(lambda x: concentrations(x, times))(logs)
    sensitivities = wg.jit(wg.jacfwd(lambda x: concentrations(x, times)[:, 2]))(logs)
    picture(options.out / "oregonator.png", times, states, sensitivities)
    print(f"period {value:.4f}; relative derivatives {np.round(slopes / value, 5)}")
    print(f"differences: {np.round(np.array(differences) / value, 5)}, {off:.1e} off")
    return int(not off < 1e-4)


if __name__ == "__main__":
    sys.exit(main())
