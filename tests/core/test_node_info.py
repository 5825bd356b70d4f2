"""NodeInfo: the record of what only some nodes have."""

import copy
import pickle
from dataclasses import fields

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.node import Node
from wengert._engine.core.node_properties import NodeInfo


def test_a_field_that_does_not_exist_is_refused():
    x = wg.tensor(1.0, requires_grad=True).node
    with pytest.raises(AttributeError):
        x.note(nmae="x")
    assert not hasattr(x.info, "__dict__")


def test_copies_have_every_field():
    full = NodeInfo(**{f.name: object() for f in fields(NodeInfo)})
    for again in (full.copy(), copy.copy(full)):
        assert again is not full
        assert all(getattr(again, f.name) is getattr(full, f.name) for f in fields(NodeInfo))


def test_it_is_pickled():
    again = pickle.loads(pickle.dumps(NodeInfo(name="x", level=2)))
    assert (
        again.facts() == {"name": "x", "level": 2} and repr(again) == "NodeInfo(name='x', level=2)"
    )


def test_eager_operations_make_none():
    x = wg.tensor(np.ones(3), requires_grad=True)
    assert (x * x).node.info is None and np.sum(np.tanh(x)).node.info is None


def test_a_replacement_takes_over_where_it_came_from_and_nothing_else():
    old = Node(None, info=NodeInfo(1, "x", "f.py:1", "model", {"a": 1}, 2, (0,), held=True))
    new = old.provenance(5)
    assert new.facts() == {
        "spec": 5,
        "where": "f.py:1",
        "scope": "model",
        "metadata": {"a": 1},
        "level": 2,
    }
