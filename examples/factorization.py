"""Missing entries of a table by matrix factorization, as in recommender systems.

The table has 1,797 handwritten digits and 64 pixels, with values from 0 to 16 (E. Alpaydin and
C. Kaynak, UCI, 1998; shipped with scikit-learn).  A random fifth of its entries is held out.  The
model of the others is

    x[i, j] = mean + row[i] + column[j] + sum over k of u[i, k] v[j, k]

with a quadratic penalty (Y. Koren, R. Bell and C. Volinsky, "Matrix factorization
techniques for recommender systems", Computer 42(8), 2009), fitted by L-BFGS on a dict of
arrays; the number of factors and the penalty are chosen by validation on a part of the known
entries.

    python examples/factorization.py --steps 200 --seed 0 --out out

Baselines are the mean, the mean of the column, and an additive model of rows and columns.  Writes
factorization.png to the folder `out`.  Fails unless the error is at most two thirds of that of the
best baseline.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from wengert import optim


def explained(x):
    """The whole table."""
    return x["mean"] + x["row"][:, None] + x["column"] + x["u"] @ x["v"].T


def loss(x, table, known, penalty):
    """Squares at what is known, and the penalty; a sum, divided by how many there are."""
    squares = np.sum(known * np.square(explained(x) - table))
    size = np.sum(np.square(x["u"])) + np.sum(np.square(x["v"]))
    size = size + np.sum(np.square(x["row"])) + np.sum(np.square(x["column"]))
    return (squares + penalty * size) / np.sum(known)


def factors(table, known, rank, penalty, steps, rng):
    """The table explained by so many factors."""
    rows, columns = table.shape
    start = {
        "mean": np.mean(table[known]), "row": np.zeros(rows), "column": np.zeros(columns),
        "u": 0.1 * rng.normal(size=(rows, rank)), "v": 0.1 * rng.normal(size=(columns, rank)),
    }  # fmt: skip
    weight = known.astype(float)
    found = optim.minimize(loss, start, (table, weight, penalty), options={"maxiter": steps})
    return np.clip(np.asarray(explained(found.x)), 0, 16)


def means(table, known):
    """The mean of everything, of the place, and of place and scan together."""
    everything = np.full(table.shape, np.mean(table[known]))
    count = np.maximum(known.sum(axis=0), 1)
    place = np.sum(known * table, axis=0) / count + np.zeros(table.shape)
    scan = np.sum(known * (table - place), axis=1) / (known.sum(axis=1) + 1.0)
    return {
        "mean of everything": everything,
        "mean of the place": place,
        "of place and scan": np.clip(place + scan[:, None], 0, 16),
    }


def error(guess, table, where):
    return np.sqrt(np.mean((guess - table)[where] ** 2))


def picture(path, table, known, guess):
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    rows = [np.where(known, table, np.nan)[:10], guess[:10], table[:10]]
    for axes, scan in zip(figure.subplots(3, 10).ravel(), np.concatenate(rows), strict=True):
        axes.set_facecolor("tab:red")
        axes.imshow(scan.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axes.set(xticks=[], yticks=[])
    figure.suptitle("what is known (red: held out); what the factors say; what is there")
    figure.savefig(path, dpi=120)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--scans", type=int, default=1797)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--at-most", type=float, default=2 / 3, help="share of the means' error")
    options.add_argument("--out", type=Path, default=Path("out"))
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)

    table = load_digits().data[: given.scans]
    rng = np.random.default_rng(given.seed)
    part = rng.random(table.shape)
    held, tried, fitted = part < 0.2, (part >= 0.2) & (part < 0.3), part >= 0.3
    begin = time.perf_counter()
    print("factors, penalty, error on a part of what is known")
    found = {}
    for rank in (10, 15, 20, 25):
        for penalty in (30.0, 60.0):
            guess = factors(table, fitted, rank, penalty, given.steps, rng)
            found[rank, penalty] = error(guess, table, tried)
            print(f"  {rank:3} {penalty:6.0f} {found[rank, penalty]:8.3f}")
    rank, penalty = min(found, key=found.get)
    guess = factors(table, ~held, rank, penalty, given.steps, rng)
    took = time.perf_counter() - begin

    errors = {name: error(mean, table, held) for name, mean in means(table, ~held).items()}
    share = error(guess, table, held) / min(errors.values())
    errors[f"{rank} factors"] = error(guess, table, held)
    print(f"{held.sum():,} of {table.size:,} numbers held out: root of the mean square error")
    for name, value in errors.items():
        print(f"  {name:20}{value:8.3f} dots")
    print(f"that is {share:.3f} of the best mean's; {took:.0f} s")
    picture(given.out / "factorization.png", table, ~held, guess)
    print(f"wrote {given.out / 'factorization.png'}")
    if share > given.at_most:
        sys.exit("the factors explain too little")


if __name__ == "__main__":
    main()
