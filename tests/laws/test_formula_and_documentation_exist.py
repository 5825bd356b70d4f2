"""The body reads as text, and the operation says what it is."""

from wengert.testing.laws.common import formula_and_documentation_exist


def test_formula_and_documentation_exist(op, rng):
    formula_and_documentation_exist(op, rng)
