"""Values that are immutable, with those of modules that the package does not import."""

import datetime
import uuid
from decimal import Decimal
from fractions import Fraction

import pytest

from wengert._engine.core.conversion_hook import is_immutable, same_value


@pytest.mark.parametrize(
    "x", [1, "a", 1.5, Fraction(1, 3), Decimal("0.1"), uuid.UUID(int=7), datetime.date(2026, 1, 2)]
)
def test_immutable(x):
    assert is_immutable(x)
    assert is_immutable((x, frozenset([x])))
    assert same_value(x, x)


@pytest.mark.parametrize("x", [[1], {}, object, lambda: 1, ([],)])
def test_mutable(x):
    assert not is_immutable(x)
