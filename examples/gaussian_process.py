"""Gaussian process regression of sunspot numbers.

A third of the years from 1700 to 2008 is held out, in random gaps of four to twelve years, and
predicted from the others with an uncertainty.  The covariance has a quasi-periodic part, a
cycle of about eleven years whose shape varies, and a short-range part,

    k(r) = a exp(-r^2 / 2 l^2 - 2 sin^2(pi r / p) / w^2) + b exp(-r / m)

and noise; the logarithms of all parameters maximize the marginal likelihood by Newton's method with
exact gradients and Hessians through the Cholesky factorization (C. E. Rasmussen and
C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, chapter 5).  The model is one of
square roots, since the variance of the numbers grows with their size; likelihoods are those of the
numbers.

    data   yearly mean sunspot numbers, R. Wolf and followers, Zurich and Brussels, the
           international series before its revision of 2015

    python examples/gaussian_process.py --seed 0 --out out

Baselines are the mean and deviation of all years, linear interpolation (a random walk conditioned
on the ends of a gap), and a Gaussian process with a Matern covariance
(wengert.compat.sklearn).  Writes gaussian_process.png to the folder `out`.  Fails unless the model
has the largest likelihood.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import wengert as wg
from wengert import optim
from wengert.compat.sklearn import GaussianProcessRegressor

SUNSPOTS = np.array(
    """5 11 16 23 36 58 29 20 10 8 3 0 0 2 11 27 47 63 60 39 28 26 22 11 21 40 78 122 103 73 47 35
    11 5 16 34 70 81 111 101 73 40 20 16 5 11 22 40 60 80.9 83.4 47.7 47.8 30.7 12.2 9.6 10.2 32.4
    47.6 54 62.9 85.9 61.2 45.1 36.4 20.9 11.4 37.8 69.8 106.1 100.8 81.6 66.5 34.8 30.6 7 19.8
    92.5 154.4 125.9 84.8 68.1 38.5 22.8 10.2 24.1 82.9 132 130.9 118.1 89.9 66.6 60 46.9 41 21.3
    16 6.4 4.1 6.8 14.5 34 45 43.1 47.5 42.2 28.1 10.1 8.1 2.5 0 1.4 5 12.2 13.9 35.4 45.8 41.1
    30.1 23.9 15.6 6.6 4 1.8 8.5 16.6 36.3 49.6 64.2 67 70.9 47.8 27.5 8.5 13.2 56.9 121.5 138.3
    103.2 85.7 64.6 36.7 24.2 10.7 15 40.1 61.5 98.5 124.7 96.3 66.6 64.5 54.1 39 20.6 6.7 4.3 22.7
    54.8 93.8 95.8 77.2 59.1 44 47 30.5 16.3 7.3 37.6 74 139 111.2 101.6 66.2 44.7 17 11.3 12.4 3.4
    6 32.3 54.3 59.7 63.7 63.5 52.2 25.4 13.1 6.8 6.3 7.1 35.6 73 85.1 78 64 41.8 26.2 26.7 12.1
    9.5 2.7 5 24.4 42 63.5 53.8 62 48.5 43.9 18.6 5.7 3.6 1.4 9.6 47.4 57.1 103.9 80.6 63.6 37.6
    26.1 14.2 5.8 16.7 44.3 63.9 69 77.8 64.9 35.7 21.2 11.1 5.7 8.7 36.1 79.7 114.4 109.6 88.8
    67.8 47.5 30.6 16.3 9.6 33.2 92.6 151.6 136.3 134.7 83.9 69.4 31.5 13.9 4.4 38 141.7 190.2
    184.8 159 112.3 53.9 37.6 27.9 10.2 15.1 47 93.8 105.9 105.5 104.5 66.6 68.9 38 34.5 15.5 12.6
    27.5 92.5 155.4 154.6 140.4 115.9 66.6 45.9 17.9 13.4 29.4 100.2 157.6 142.6 145.7 94.3 54.6
    29.9 17.5 8.6 21.5 64.3 93.3 119.6 111 104 63.7 40.4 29.8 15.2 7.5 2.9""".split(),
    dtype=float,
)
YEARS = 1700 + np.arange(len(SUNSPOTS))
START = {
    "cycle": np.log(4.0), "decay": np.log(20.0), "period": np.log(11.0), "width": np.log(1.0),
    "rough": np.log(1.0), "rough_length": np.log(3.0), "noise": np.log(0.2),
}  # fmt: skip


def gaps(rng, share=1 / 3):
    """A mask of held-out years: gaps of four to twelve years, at least four years apart."""
    held_out = np.zeros(len(YEARS), bool)
    while held_out.mean() < share:
        length = rng.integers(4, 13)
        first = rng.integers(2, len(YEARS) - length - 2)
        if not held_out[max(first - 4, 0) : first + length + 4].any():
            held_out[first : first + length] = True
    return held_out


def covariance(logs, distance):
    """The covariance of two years at a distance, without the noise."""
    k = {name: np.exp(value) for name, value in logs.items()}
    phase = np.sin(np.pi * distance / k["period"]) / k["width"]
    return k["cycle"] * np.exp(-0.5 * (distance / k["decay"]) ** 2 - 2 * phase**2) + k[
        "rough"
    ] * np.exp(-np.abs(distance) / k["rough_length"])


def minus_log_likelihood(logs, years, y):
    """The negative log marginal likelihood, by Cholesky factorization."""
    k = covariance(logs, years[:, None] - years) + np.exp(logs["noise"]) * np.eye(len(years))
    factor = np.linalg.cholesky(k)
    z = wg.scipy.linalg.solve_triangular(factor, y, lower=True)
    return (
        0.5 * (z @ z) + np.sum(np.log(np.diagonal(factor))) + 0.5 * len(years) * np.log(2 * np.pi)
    )


def predicted(logs, years, y, at):
    """Mean and deviation of observations in other years."""
    noise = np.exp(logs["noise"])
    k = covariance(logs, years[:, None] - years) + noise * np.eye(len(years))
    across = covariance(logs, at[:, None] - years)
    mean = across @ np.linalg.solve(k, y)
    explained = np.sum(across * np.linalg.solve(k, across.T).T, axis=1)
    return mean, np.sqrt(covariance(logs, np.zeros(len(at))) + noise - explained)


def interpolated(years, y, at):
    """Linear interpolation, with the deviation of a random walk conditioned on both ends."""
    right = np.searchsorted(years, at)
    before, after = at - years[right - 1], years[right] - at
    step = np.sqrt(np.mean(np.diff(y) ** 2 / np.diff(years)))
    return np.interp(at, years, y), step * np.sqrt(before * after / (before + after))


def score(mean, deviation, root, numbers):
    """Mean log-likelihood and root mean square error of held-out numbers."""
    density = -0.5 * ((root - mean) / deviation) ** 2 - np.log(deviation * np.sqrt(2 * np.pi))
    slope = -np.log(2 * np.sqrt(numbers + 1))  # d root / d number
    return np.mean(density + slope), np.sqrt(np.mean((mean**2 - 1 - numbers) ** 2))


def picture(path, held_out, center, logs, root):
    grid = np.arange(1700, 2009, 0.25)
    observed = ~held_out
    mean, deviation = predicted(logs, YEARS[observed], root[observed] - center, grid)
    low, middle, high = (np.maximum(mean + center + s * deviation, 0) ** 2 for s in (-2, 0, 2))
    figure = Figure(figsize=(11, 8), layout="constrained")
    rows = figure.subplots(3, 1, sharey=True)
    for row, first in zip(rows, (1700, 1803, 1906), strict=True):
        row.fill_between(grid, low, high, alpha=0.25, linewidth=0)
        row.plot(grid, middle, linewidth=1)
        row.plot(YEARS[observed], SUNSPOTS[observed], "k.", markersize=4, label="known")
        row.plot(YEARS[held_out], SUNSPOTS[held_out], "rx", markersize=5, label="held out")
        row.set(xlim=(first, first + 103), ylim=(0, 260))
    rows[0].legend()
    rows[0].set_title("yearly sunspot numbers; mean and two deviations of the process")
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    held_out = gaps(np.random.default_rng(options.seed))
    root = np.sqrt(SUNSPOTS + 1)
    years, at = YEARS[~held_out].astype(float), YEARS[held_out].astype(float)
    center = root[~held_out].mean()
    y = root[~held_out] - center

    found = optim.minimize(
        minus_log_likelihood,
        START,
        (years, y),
        method="trust-exact",
        options={"maxiter": options.steps},
    )
    print(f"{len(years)} known years, {len(at)} held out, {found.nit} Newton iterations")
    scales = ", ".join(f"{name} {np.exp(value):.3g}" for name, value in found.x.items())
    print(f"  {scales}\n  log marginal likelihood {-found.fun:.3f}")

    matern = GaussianProcessRegressor("matern52").fit(years[:, None], y)
    predictions = {
        "mean of all years": (np.zeros(len(at)), np.full(len(at), y.std())),
        "linear interpolation": interpolated(years, y, at),
        "Matern covariance": matern.predict(at[:, None], return_std=True),
        "cycles": predicted(found.x, years, y, at),
    }
    scores = {}
    print(f"  {'held out':22}{'log-likelihood':>15}{'error':>9}")
    for name, (mean, deviation) in predictions.items():
        scores[name], error = score(mean + center, deviation, root[held_out], SUNSPOTS[held_out])
        print(f"  {name:22}{scores[name]:15.3f}{error:9.2f}")
    picture(options.out / "gaussian_process.png", held_out, center, found.x, root)
    print(f"wrote {options.out / 'gaussian_process.png'}")
    if max(scores, key=scores.get) != "cycles":
        sys.exit("the model with cycles does not have the largest likelihood")


if __name__ == "__main__":
    main()
