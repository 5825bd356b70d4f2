"""docs/coverage.md says what is the case: its names, its text, and the facts in it.

quick   the names are those that there are, the page is what the facts make, a sample of facts
slow    every fact, found anew
"""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy

from tools.coverage import SPACES, collected, names_of, page
from tools.coverage.reasons import NOT_HERE, REASONS

DOCS = Path(__file__).resolve().parents[1] / "docs"
KEPT = json.loads((DOCS / "coverage.json").read_text())
STALE = "docs/coverage.md is stale: run python docs/generate/coverage.py"
QUICK = "kind reverse forward vmap traced dtypes".split()
SAMPLE = 8  # functions of each namespace are looked at


def here():
    """Skip, by name, where NumPy or SciPy are not of the versions that the page is about."""
    found = {m.__name__: ".".join(m.__version__.split(".")[:2]) for m in (np, scipy)}
    if found != KEPT["versions"]:
        pytest.skip(f"the page is about {KEPT['versions']}, and here are {found}")


def test_the_page_is_what_the_facts_make():
    assert (DOCS / "coverage.md").read_text() == page(KEPT), STALE


@pytest.mark.parametrize("space", SPACES)
def test_the_names_are_those_that_there_are(space):
    here()
    both, missing = names_of(space)
    assert list(KEPT["spaces"][space]["functions"]) == both, STALE
    assert KEPT["spaces"][space]["missing"] == missing, STALE


def differing(space, names, keys, quick):
    kept = KEPT["spaces"][space]["functions"]
    found = collected(space, names, quick)
    return {
        (name, key): (kept.get(name, {}).get(key), fact.get(key))
        for name, fact in found.items()
        for key in keys
        if _answer(kept.get(name, {}).get(key)) != _answer(fact.get(key))
    }


def _answer(said):
    return "no" if isinstance(said, str) and ": " in said else said


@pytest.mark.sample(7)
@pytest.mark.parametrize("space", SPACES)
def test_a_sample_of_the_facts_is_so(space):
    here()
    names = names_of(space)[0]
    chosen = np.random.default_rng(6).permutation(names)[:SAMPLE]
    assert differing(space, sorted(map(str, chosen)), QUICK, quick=True) == {}, STALE


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("space", SPACES)
def test_every_fact_is_so(space):
    here()
    assert differing(space, None, [*QUICK, "order 2", "native"], quick=False) == {}, STALE


def test_nothing_loses_a_derivative_in_silence():
    kinds = {
        f"{space}.{name}": fact["kind"]
        for space, found in KEPT["spaces"].items()
        for name, fact in found["functions"].items()
    }
    assert [name for name, kind in kinds.items() if kind in ("detached", "fails")] == []


def test_every_function_that_differentiates_does_so_twice_in_both_modes():
    odd = [
        f"{space}.{name}"
        for space, found in KEPT["spaces"].items()
        for name, fact in found["functions"].items()
        if fact["kind"] == "differentiable"
        if not all(fact[key] is True for key in ("reverse", "forward", "order 2"))
    ]
    assert odd == []


def test_every_reason_is_one_that_is_explained():
    assert {reason for table in NOT_HERE.values() for _, reason in table} <= set(REASONS)
