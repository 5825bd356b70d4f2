"""Every function of the catalogue, swept (slow): `make test-all`; a sample of them each time.

What is claimed of a function stands in docs/coverage.json, which says whether it differentiates,
to which order, and whether it can be traced; a claim that does not hold fails here.  The figures of
all functions are printed at its end (``pytest -m slow tests/finite_differences -s``).
"""

import json
import zlib
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

from tools.coverage.calls import call_of
from tools.coverage.spaces import ours_of, theirs_of, way_of

from .exceptions import EXCEPTIONS
from .formulas import FORMULAS
from .ways import compare

FACTS = json.loads((Path(__file__).parents[2] / "docs" / "coverage.json").read_text())
SAMPLE = 85  # each so many-th is swept whenever the tests run


def claimed():
    """Namespaces, names and facts of the functions that are said to differentiate."""
    for space, facts in sorted(FACTS["spaces"].items()):
        for name, fact in sorted(facts["functions"].items()):
            if fact.get("kind") == "differentiable":
                yield space, name, fact


CLAIMED = list(claimed())
TOTALS = []


def swept(space, name, fact):
    theirs = attrgetter(name)(theirs_of(space))
    ours = attrgetter(name)(ours_of(space))
    rng = np.random.default_rng(zlib.crc32(f"{space}.{name}".encode()))
    order = 2 if fact.get("order 2") is True else 1
    traced = fact.get("traced") is True
    call = call_of(space, name, theirs)
    formula = FORMULAS.get((space, name))
    single = "float32" in (*fact.get("dtypes", ()), *fact.get("other precision", ()))
    found = compare(ours, theirs, call, way_of(space, name), rng, traced, order, single, formula)
    cases = EXCEPTIONS.get((space, name), ())
    found.faults = [f for f in found.faults if not f.startswith((*cases, "-"))]
    return found


def _ids(claims):
    return [f"{space}.{name}" for space, name, _ in claims]


@pytest.mark.slow
@pytest.mark.parametrize(("space", "name", "fact"), CLAIMED, ids=_ids(CLAIMED))
def test_every_function(space, name, fact):
    found = swept(space, name, fact)
    TOTALS.append((f"{space}.{name}", found))
    assert not found.faults, "\n".join(found.faults)
    assert found.cases >= 3, "nothing was compared"


@pytest.mark.slow
def test_figures():
    if not TOTALS:
        pytest.skip("the functions were swept by another process")
    cases = sum(found.cases for _, found in TOTALS)
    print(f"\n{len(TOTALS)} functions, {cases} cases")
    by_digits, by_complex = (sum(getattr(f, n) for _, f in TOTALS) for n in ("exact", "by_complex"))
    print(f"{by_digits} by formulas in many digits, {by_complex} by steps along the imaginary axis")
    for what in ("values", "first", "second", "single"):
        worst = sorted(TOTALS, key=lambda t: -getattr(t[1], what))[:5]
        print(what, *(f"{name} {getattr(found, what):.1e}" for name, found in worst))


@pytest.mark.sample(1)
@pytest.mark.parametrize(("space", "name", "fact"), CLAIMED[::SAMPLE], ids=_ids(CLAIMED[::SAMPLE]))
def test_a_sample(space, name, fact):
    assert not swept(space, name, fact).faults


def test_a_planted_fault_is_found():
    def wrong(x):
        return np.sin(x) + 1e-4 * x

    found = compare(wrong, np.sin, ((np.array([0.3, 0.7]),), {}), "", np.random.default_rng(0))
    assert any("forward" in f for f in found.faults) and any("value" in f for f in found.faults)
