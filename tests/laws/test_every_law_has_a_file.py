"""No law of `wengert.testing` is left out here, and no operation is left without a witness."""

from collections import Counter
from pathlib import Path

from wengert.testing.laws.common import LAWS, arguments_of, laws_of


def test_every_law_has_a_file():
    files = {p.stem.removeprefix("test_") for p in Path(__file__).parent.glob("test_*.py")}
    assert set(LAWS) <= files


def test_every_law_speaks_of_many_operations(request):
    counted = Counter(law for op in request.config.operations.values() for law in laws_of(op))
    assert min(counted[law] for law in LAWS) > 80, counted


def test_an_operation_states_how_to_check_it(op, rng):
    assert op.oracle is not None, f"{op.name} has no oracle: an independent way to its value"
    assert any(True for _ in arguments_of(op, rng)), f"{op.name} yields no examples"
