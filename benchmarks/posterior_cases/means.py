"""Posterior means by nutpie beside the reference means of posteriordb, or those of Stan's sampler.

    main    prints a table, and returns 1 if a mean is off by more than ERRORS standard errors

Reference means have standard errors in the database; ours are by ArviZ, from effective sample
sizes.  Models that have no reference are sampled by stanli too, where it is installed.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from . import database
from .models import MODELS, Model

ERRORS = 4.0  # standard errors of the difference; 229 parameters are compared
DRAWS, TUNE, CHAINS = 2500, 1000, 4
LARGE = 1.01  # of rhat


def sampled(model: Model, data: dict[str, Any]) -> Any:
    """Draws of ours, and the seconds that they took."""
    from time import perf_counter

    import nutpie

    compiled = model.compiled(data)
    begin = perf_counter()
    trace = nutpie.sample(
        compiled.nutpie(), draws=DRAWS, tune=TUNE, chains=CHAINS, seed=1, progress_bar=False
    )
    return trace.posterior, perf_counter() - begin


def of_stan(model: Model, data: dict[str, Any]) -> tuple[dict[str, float], dict[str, float]] | None:
    """Means and their standard errors by stanli's own sampler; None if it is not installed."""
    try:
        import stanli
    except ImportError:
        return None
    plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()}
    compiled = stanli.Model(stan_file=str(database.program(model.posterior)), data=plain)
    fit = compiled.sample(chains=CHAINS, warmup=TUNE, samples=DRAWS, seed=1, refresh=0)
    found = fit.summary()
    return dict(zip(found.names, found.mean, strict=True)), dict(
        zip(found.names, found.mcse_mean, strict=True)
    )


def element(values: Any, name: str) -> Any:
    """The draws of ``theta[3]``, which counts from 1."""
    found = re.fullmatch(r"(\w+)\[(\d+)\]", name)
    return values[name] if found is None else values[found[1]][..., int(found[2]) - 1]


def compared(model: Model, data: dict[str, Any], known: Any) -> tuple[int, float, float]:
    """How many means, the largest difference in standard errors, and the seconds."""
    import arviz

    values, seconds = sampled(model, data)
    means, errors = known
    worst, count = 0.0, 0
    for name, mean in means.items():
        base = name.partition("[")[0]
        if base not in values:
            continue
        draws = element(values, name).values
        own = float(arviz.mcse(draws, method="mean"))
        if float(arviz.rhat(draws)) > LARGE:
            print(f"  {name}: the chains have not mixed")
        worst = max(worst, abs(draws.mean() - mean) / np.hypot(own, errors[name]))
        count += 1
    return count, float(worst), seconds


def main() -> int:
    """Compare all models."""
    print(f"{'':20} {'seconds':>8} {'means':>6} {'largest difference, standard errors':>36}")
    failed = 0
    for name, model in MODELS.items():
        data = database.data(model.posterior)
        known, source = database.reference(model.posterior), "posteriordb"
        if known is None:
            known, source = of_stan(model, data), "stanli"
        if known is None:
            print(f"{name:20} no reference means, and stanli is not installed")
            continue
        count, worst, seconds = compared(model, data, known)
        failed += worst > ERRORS or count == 0
        print(f"{name:20} {seconds:8.2f} {count:6} {worst:20.2f}  of {source}", flush=True)
    return int(failed > 0)
