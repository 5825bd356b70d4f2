"""Missing entries of a table by matrix factorization, as in recommender systems.

The table has 1,797 handwritten digits and 64 pixels, with values from 0 to 16 (E. Alpaydin and
C. Kaynak, UCI, 1998; shipped with scikit-learn).  A random fifth of its entries is held out.  The
model is

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


def predicted(x):
    """The table of the model."""
    return x["mean"] + x["row"][:, None] + x["column"] + x["u"] @ x["v"].T


def loss(x, table, known, penalty):
    """Squared errors of known entries plus the penalty, divided by the number of known entries."""
    squares = np.sum(known * np.square(predicted(x) - table))
    size = np.sum(np.square(x["u"])) + np.sum(np.square(x["v"]))
    size = size + np.sum(np.square(x["row"])) + np.sum(np.square(x["column"]))
    return (squares + penalty * size) / np.sum(known)


def fitted_table(table, known, rank, penalty, steps, rng):
    """The table predicted with `rank` factors, fitted to the known entries."""
    rows, columns = table.shape
    start = {
        "mean": np.mean(table[known]), "row": np.zeros(rows), "column": np.zeros(columns),
        "u": 0.1 * rng.normal(size=(rows, rank)), "v": 0.1 * rng.normal(size=(columns, rank)),
    }  # fmt: skip
    weight = known.astype(float)
    found = optim.minimize(loss, start, (table, weight, penalty), options={"maxiter": steps})
    return np.clip(np.asarray(predicted(found.x)), 0, 16)


def baselines(table, known):
    """The mean, the mean of each column, and an additive model of rows and columns."""
    mean = np.full(table.shape, np.mean(table[known]))
    count = np.maximum(known.sum(axis=0), 1)
    column = np.sum(known * table, axis=0) / count + np.zeros(table.shape)
    row = np.sum(known * (table - column), axis=1) / (known.sum(axis=1) + 1.0)
    return {
        "mean": mean,
        "column mean": column,
        "rows and columns": np.clip(column + row[:, None], 0, 16),
    }


def error(prediction, table, mask):
    return np.sqrt(np.mean((prediction - table)[mask] ** 2))


def picture(path, table, known, prediction):
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    rows = [np.where(known, table, np.nan)[:10], prediction[:10], table[:10]]
    for axes, image in zip(figure.subplots(3, 10).ravel(), np.concatenate(rows), strict=True):
        axes.set_facecolor("tab:red")
        axes.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axes.set(xticks=[], yticks=[])
    figure.suptitle("known pixels (red: held out); prediction; original")
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--images", type=int, default=1797)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--at-most", type=float, default=2 / 3, help="relative to the best baseline"
    )
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    table = load_digits().data[: options.images]
    rng = np.random.default_rng(options.seed)
    part = rng.random(table.shape)
    held_out, validation, training = part < 0.2, (part >= 0.2) & (part < 0.3), part >= 0.3
    begin = time.perf_counter()
    print("factors, penalty, validation error")
    found = {}
    for rank in (10, 15, 20, 25):
        for penalty in (30.0, 60.0):
            prediction = fitted_table(table, training, rank, penalty, options.steps, rng)
            found[rank, penalty] = error(prediction, table, validation)
            print(f"  {rank:3} {penalty:6.0f} {found[rank, penalty]:8.3f}")
    rank, penalty = min(found, key=found.get)
    prediction = fitted_table(table, ~held_out, rank, penalty, options.steps, rng)
    seconds = time.perf_counter() - begin

    guesses = baselines(table, ~held_out)
    errors = {name: error(guess, table, held_out) for name, guess in guesses.items()}
    share = error(prediction, table, held_out) / min(errors.values())
    errors[f"{rank} factors"] = error(prediction, table, held_out)
    print(f"{held_out.sum():,} of {table.size:,} entries held out: root mean square error")
    for name, value in errors.items():
        print(f"  {name:20}{value:8.3f} gray levels")
    print(f"this is {share:.3f} of the best baseline; {seconds:.0f} s")
    picture(options.out / "factorization.png", table, ~held_out, prediction)
    print(f"wrote {options.out / 'factorization.png'}")
    if share > options.at_most:
        sys.exit("the error of the factorization is too large")


if __name__ == "__main__":
    main()
