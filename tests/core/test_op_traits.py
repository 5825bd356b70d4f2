"""Traits of operations stand in their records, and nowhere else."""

from dataclasses import fields

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.op import REGISTRY, Op, lookup
from wengert._engine.core.op_facts import Aliasing, Differentiation, Effects

FIELDS = {f.name for record in (Effects, Aliasing, Differentiation) for f in fields(record)}


def kinds(cls=Op):
    """All classes of operations."""
    return {cls}.union(*[kinds(sub) for sub in cls.__subclasses__()])


def test_no_operation_states_a_trait_outside_of_its_record():
    lookup("sin")  # every family is loaded by now
    stray = {(x, f) for x in (*REGISTRY.values(), *kinds()) for f in FIELDS if f in vars(x)}
    assert not stray


def test_records_cannot_be_changed_in_place():
    with pytest.raises(AttributeError):
        lookup("sin").effects.side_effect = True


@pytest.mark.parametrize("name", ["getitem", "scatter", "setitem", "where", "cond", "maximum"])
def test_a_choice_masks(name):
    assert lookup(name).differentiation.masks


def test_a_row_not_taken_does_not_spread_its_infinite_slope():
    f = wg.trace(lambda x: np.sum(np.sqrt(x)[1:]))(wg.spec(3)).grad()
    np.testing.assert_array_equal(f(np.array([0.0, 1.0, 4.0])), [0.0, 0.5, 0.25])
