"""A perceptron compared with gradient-boosted trees on tabular data.

Three datasets of scikit-learn: 569 tumors with 30 measurements (W. Wolberg, W. N. Street
and O. L. Mangasarian, 1995), 178 wines with 13 (M. Forina, 1991), 442 patients with diabetes with
10 (B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, 2004).  The perceptron
(wengert.compat.sklearn) in scikit-learn's pipeline and scikit-learn's trees are evaluated by
cross-validation in the same folds; the penalty of the perceptron (`alpha`) is chosen within each
fold.

    python examples/tabular.py --folds 5 --seed 0 --out out

Prints means over folds and standard errors: accuracy, and R^2 for the patients.  Writes tabular.png
to the folder `out`.  Fails if the perceptron is below 95 % (tumors, wines) or R^2 = 0.4, or below
the trees by more than two standard errors.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from wengert.compat.sklearn import MLPClassifier, MLPRegressor

TABLES = {
    "tumors": (load_breast_cancer, 0.95),
    "wines": (load_wine, 0.95),
    "patients": (load_diabetes, 0.40),
}
ALPHAS = [0.01, 1.0, 10.0]


def perceptron(classes, epochs, seed):
    """A perceptron with scaled inputs and 32 hidden units; three folds choose the penalty."""
    common = {"hidden_layer_sizes": (32,), "max_iter": epochs, "tol": 1e-3, "random_state": seed}
    if classes:
        network = MLPClassifier(learning_rate_init=3e-3, **common)
        search, name = make_pipeline(StandardScaler(), network), "mlpclassifier__alpha"
    else:
        network = MLPRegressor(learning_rate_init=3e-3, **common)
        scaled = TransformedTargetRegressor(network, transformer=StandardScaler())
        search = make_pipeline(StandardScaler(), scaled)
        name = "transformedtargetregressor__regressor__alpha"
    return GridSearchCV(search, {name: ALPHAS}, cv=3)


def trees(classes, seed):
    """Gradient-boosted trees with default options."""
    kind = GradientBoostingClassifier if classes else GradientBoostingRegressor
    return kind(random_state=seed)


def picture(path, results):
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    for shift, model in ((-0.12, "perceptron"), (0.12, "trees")):
        scores = [results[name][model] for name in results]
        axes.errorbar(
            np.arange(len(scores)) + shift,
            [s.mean() for s in scores],
            [s.std(ddof=1) / np.sqrt(len(s)) for s in scores],
            fmt="o", capsize=4, label=model,
        )  # fmt: skip
    axes.set_xticks(range(len(results)), list(results))
    axes.set(ylabel="accuracy; R^2", title="held-out data, with standard errors")
    axes.legend()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    results, failures = {}, []
    print(f"{'':10}{'perceptron':>20}{'trees':>20}{'seconds':>16}")
    for name in options.tables:
        load, minimum = TABLES[name]
        x, y = load(return_X_y=True)
        classes = name != "patients"
        kind = StratifiedKFold if classes else KFold
        folds = kind(options.folds, shuffle=True, random_state=options.seed)
        models = {
            "perceptron": perceptron(classes, options.epochs, options.seed),
            "trees": trees(classes, options.seed),
        }
        scores, seconds = {}, []
        for model, estimator in models.items():
            begin = time.perf_counter()
            scores[model] = cross_val_score(estimator, x, y, cv=folds)
            seconds.append(time.perf_counter() - begin)
        words = [
            f"{s.mean():.4f} +- {s.std(ddof=1) / np.sqrt(len(s)):.4f}" for s in scores.values()
        ]
        print(f"{name:10}{words[0]:>20}{words[1]:>20}{seconds[0]:8.1f}{seconds[1]:8.1f}")
        results[name] = scores
        difference = scores["trees"] - scores["perceptron"]
        if difference.mean() > 2 * difference.std(ddof=1) / np.sqrt(len(difference)):
            failures.append(f"{name}: worse than the trees")
        if scores["perceptron"].mean() < minimum:
            failures.append(f"{name}: below {minimum}")
    picture(options.out / "tabular.png", results)
    print(f"wrote {options.out / 'tabular.png'}")
    if failures:
        sys.exit("; ".join(failures))


if __name__ == "__main__":
    main()
