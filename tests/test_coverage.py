"""docs/coverage.md is up to date: its function names, its text and its results.

quick   function names, the text of the page, a sample of the results
slow    all results
"""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy

from tools.coverage import SPACES, collected, names_of, page
from tools.coverage.reasons import NOT_HERE, REASONS

DOCS = Path(__file__).resolve().parents[1] / "docs"
STORED = json.loads((DOCS / "coverage.json").read_text())
STALE = "docs/coverage.md is stale: run python docs/generate/coverage.py"
QUICK = "kind reverse forward vmap traced dtypes".split()
SAMPLE = 8  # functions checked in each namespace


def require_versions():
    """Skip the test if NumPy or SciPy have other versions than those of the page."""
    installed = {m.__name__: ".".join(m.__version__.split(".")[:2]) for m in (np, scipy)}
    if installed != STORED["versions"]:
        pytest.skip(f"the page is for {STORED['versions']}, installed are {installed}")


def test_the_page_agrees_with_the_stored_results():
    assert (DOCS / "coverage.md").read_text() == page(STORED), STALE


@pytest.mark.parametrize("space", SPACES)
def test_the_function_names_are_up_to_date(space):
    require_versions()
    both, missing = names_of(space)
    assert list(STORED["spaces"][space]["functions"]) == both, STALE
    assert STORED["spaces"][space]["missing"] == missing, STALE


def differing(space, names, keys, quick):
    stored = STORED["spaces"][space]["functions"]
    found = collected(space, names, quick)
    return {
        (name, key): (stored.get(name, {}).get(key), fact.get(key))
        for name, fact in found.items()
        for key in keys
        if _answer(stored.get(name, {}).get(key)) != _answer(fact.get(key))
    }


def _answer(result):
    return "no" if isinstance(result, str) and ": " in result else result


@pytest.mark.sample(3)
@pytest.mark.parametrize("space", SPACES)
def test_a_sample_of_the_results(space):
    require_versions()
    names = names_of(space)[0]
    chosen = np.random.default_rng(6).permutation(names)[:SAMPLE]
    assert differing(space, sorted(map(str, chosen)), QUICK, quick=True) == {}, STALE


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("space", SPACES)
def test_all_results(space):
    require_versions()
    assert differing(space, None, [*QUICK, "order 2", "native"], quick=False) == {}, STALE


def test_no_function_loses_a_derivative_silently():
    kinds = {
        f"{space}.{name}": fact["kind"]
        for space, found in STORED["spaces"].items()
        for name, fact in found["functions"].items()
    }
    assert [name for name, kind in kinds.items() if kind in ("detached", "fails")] == []


def test_every_differentiable_function_has_second_derivatives_in_both_modes():
    incomplete = [
        f"{space}.{name}"
        for space, found in STORED["spaces"].items()
        for name, fact in found["functions"].items()
        if fact["kind"] == "differentiable"
        if not all(fact[key] is True for key in ("reverse", "forward", "order 2"))
    ]
    assert incomplete == []


def test_every_reason_is_explained():
    assert {reason for table in NOT_HERE.values() for _, reason in table} <= set(REASONS)
