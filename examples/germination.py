"""Germination of seeds: a logistic regression with random effects, sampled by nutpie.

On 21 plates r of n seeds germinated; there were two kinds of seed and two root extracts, in all
combinations.  Plates differ more than binomial numbers do, so each has an effect of its own:

    r_i ~ Binomial(n_i, p_i)
    logit p_i = a0 + a1 kind_i + a2 extract_i + a12 kind_i extract_i + b_i
    b_i ~ N(0, sigma^2),  a ~ N(0, 1000^2),  1 / sigma^2 ~ Gamma(0.001, 0.001)

The log-density is NumPy; wengert compiles it with its gradient as a C function, which nutpie calls.
Posterior means are compared with the published ones.  The picture has the proportion of each plate,
observed and in the posterior, which shrinks it towards that of its treatment.

    data        M. J. Crowder, "Beta-binomial anova for proportions", Applied Statistics 27, 34-37,
                1978, table 3
    published   N. E. Breslow, D. G. Clayton, "Approximate inference in generalized linear mixed
                models", JASA 88, 9-25, 1993; the means are those of the example "Seeds" of BUGS

    python examples/germination.py [--draws 4000] [--out out/germination]

It needs nutpie: pip install wengert[samplers].
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from wengert.bijectors import Positive, Real
from wengert.compat.samplers import Posterior
from wengert.scipy import special, stats

GERMINATED = np.array(
    [10, 23, 23, 26, 17, 5, 53, 55, 32, 46, 10, 8, 10, 8, 23, 0, 3, 22, 15, 32, 3], float
)
SEEDS = np.array(
    [39, 62, 81, 51, 39, 6, 74, 72, 51, 79, 13, 16, 30, 28, 45, 4, 12, 41, 30, 51, 7], float
)
KIND = np.repeat([0.0, 1.0], [11, 10])  # of seed
EXTRACT = np.repeat([0.0, 1.0, 0.0, 1.0], [5, 6, 5, 5])
DESIGN = np.stack([np.ones(21), KIND, EXTRACT, KIND * EXTRACT], axis=1)
NAMES = ["intercept", "kind", "extract", "both"]
PUBLISHED = np.array([-0.5525, 0.08382, 1.346, -0.8165]), 0.267  # coefficients, sigma


def logits(p):
    """The log-odds of germination on each plate."""
    return DESIGN @ p["coefficients"] + p["sigma"] * p["effects"]


def log_density(p):
    """The logarithm of the density of coefficients, sigma and scaled effects."""
    eta, precision = logits(p), p["sigma"] ** -2.0
    likelihood = GERMINATED * special.log_expit(eta) + (SEEDS - GERMINATED) * special.log_expit(
        -eta
    )
    return (
        np.sum(likelihood)
        + np.sum(stats.norm.logpdf(p["coefficients"], 0.0, 1000.0))
        + np.sum(stats.norm.logpdf(p["effects"]))
        + stats.gamma.logpdf(precision, 0.001, scale=1000.0)
        - 3.0 * np.log(p["sigma"])  # d precision / d sigma, up to a constant
    )


def posterior():
    """The model: its parameters and what is recorded."""
    parameters = {"coefficients": Real(4), "sigma": Positive(), "effects": Real(21)}
    return Posterior(
        log_density, parameters, generated=lambda p: {"proportion": special.expit(logits(p))}
    )


def draw(proportions, path):
    """The proportions of the plates: observed, means and 90 % intervals of the posterior."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8.0, 3.6), layout="constrained")
    plates = np.arange(1, 22)
    low, high = np.quantile(proportions, [0.05, 0.95], axis=0)
    axes.vlines(plates, low, high, color="tab:blue", lw=3, alpha=0.5, label="90 % of the posterior")
    axes.plot(plates, proportions.mean(axis=0), "o", color="tab:blue", label="posterior mean")
    axes.plot(plates, GERMINATED / SEEDS, "x", color="black", label="observed")
    for end in (5, 11, 16):
        axes.axvline(end + 0.5, color="gray", lw=0.6)
    axes.set(xlabel="plate", ylabel="proportion that germinates", xticks=plates, ylim=(-0.02, 1.0))
    axes.legend(loc="upper right", ncols=3, fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=4000, help="in each of four chains")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/germination"))
    options = parser.parse_args()
    try:
        import nutpie
    except ImportError:
        sys.exit("nutpie is not installed: pip install wengert[samplers]")
    model = posterior().nutpie(
        coords={"term": NAMES, "plate": np.arange(1, 22)},
        dims={"coefficients": ["term"], "effects": ["plate"], "proportion": ["plate"]},
    )
    begin = time.perf_counter()
    trace = nutpie.sample(
        model, draws=options.draws, tune=1000, chains=4, seed=options.seed, progress_bar=False
    )
    seconds = time.perf_counter() - begin
    found = trace.posterior.mean(("chain", "draw"))
    spread = trace.posterior.std(("chain", "draw"))
    coefficients, sigma = PUBLISHED
    print(f"seconds for 4 x {options.draws} draws after 1000 of adaptation {seconds:.2f}")
    print(f"{'':12}{'mean':>8}{'deviation':>12}{'published mean':>16}")
    for name, value in zip(NAMES, coefficients, strict=True):
        mean, sd = (float(x["coefficients"].sel(term=name)) for x in (found, spread))
        print(f"{name:12}{mean:8.3f}{sd:12.3f}{value:16.3f}")
    print(f"{'sigma':12}{float(found['sigma']):8.3f}{float(spread['sigma']):12.3f}{sigma:16.3f}")
    errors = np.abs(found["coefficients"].values - coefficients) / spread["coefficients"].values
    worst = max(errors.max(), float(abs(found["sigma"] - sigma) / spread["sigma"]))
    print(f"largest difference from a published mean {worst:.3f} deviations")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "germination.png"
    draw(trace.posterior["proportion"].values.reshape(-1, 21), path)
    print(f"wrote {path}")
    return int(worst > 0.25)


if __name__ == "__main__":
    sys.exit(main())
