"""wengert.tree: names and meaning of jax.tree, on arrays and tensors."""

import operator
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import wengert as wg
from wengert import tree
from wengert.errors import ArgumentError, DtypeError, ShapeError, StructureError

Pair = namedtuple("Pair", "x y")


@dataclass
class Model:
    weights: object
    bias: object


NESTED = {"b": [1.0, (2.0, None)], "a": Pair(3.0, {"k": 4.0}), "m": Model(5.0, 6.0)}


def test_flatten_and_unflatten():
    leaves, structure = tree.flatten(NESTED)
    assert leaves == [3.0, 4.0, 1.0, 2.0, None, 5.0, 6.0] == tree.leaves(NESTED)
    assert tree.unflatten(structure, leaves) == NESTED
    assert structure == tree.structure(NESTED) and hash(structure) == hash(tree.structure(NESTED))
    assert tree.unflatten(structure, iter(leaves)) == NESTED
    assert tree.flatten([]) [0] == [] and tree.leaves(2.0) == [2.0]  # fmt: skip
    with pytest.raises(StructureError, match="6 leaves for a structure of 7"):
        tree.unflatten(structure, leaves[1:])
    with pytest.raises(StructureError, match="first argument must be a structure"):
        tree.unflatten(leaves, structure)


def test_is_leaf():
    def is_pair(x):
        return isinstance(x, tuple)

    assert tree.leaves(NESTED, is_leaf=is_pair)[0] == Pair(3.0, {"k": 4.0})
    found = tree.map(len, {"a": (1, 2), "b": [(3,)]}, is_leaf=is_pair)
    assert found == {"a": 2, "b": [1]}


def test_map():
    doubled = tree.map(lambda x: None if x is None else 2 * x, NESTED)
    assert doubled["m"] == Model(10.0, 12.0) and doubled["b"] == [2.0, (4.0, None)]
    assert tree.map(operator.add, (1, [2]), (3, [4])) == (4, [6])
    # where the first tree has a leaf, the others may have containers
    assert tree.map(lambda x, pair: x * sum(pair), [2.0, 3.0], [(1, 1), (2, 2)]) == [4.0, 12.0]
    with pytest.raises(StructureError, match="different structure"):
        tree.map(operator.add, (1, 2), [1, 2])


def test_paths():
    assert tree.leaves_with_path(Pair(1.0, {"k": [2.0]})) == [((0,), 1.0), ((1, "k", 0), 2.0)] or (
        tree.leaves_with_path(Pair(1.0, {"k": [2.0]})) == [(("x",), 1.0), (("y", "k", 0), 2.0)]
    )
    found = tree.map_with_path(lambda p, x, y: (p[-1], x + y), {"a": 1, "b": 2}, {"a": 3, "b": 4})
    assert found == {"a": ("a", 4), "b": ("b", 6)}


def test_reduce_and_all():
    assert tree.reduce(operator.add, [1, (2, 3)]) == 6
    assert tree.reduce(lambda total, x: [*total, x], {"b": 1, "a": 2}, []) == [2, 1]
    assert tree.reduce(operator.add, [], 5) == 5
    assert tree.all([]) and tree.all({"a": True}) and not tree.all([1, (0,)])
    with pytest.raises(ArgumentError, match="initializer"):
        tree.reduce(operator.add, [])


def test_transpose():
    inner, outer = tree.structure({"x": 0, "y": 0}), tree.structure((0, 0, 0))
    rows = ({"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 6})
    columns = tree.transpose(outer, inner, rows)
    assert columns == {"x": (1, 3, 5), "y": (2, 4, 6)}
    assert tree.transpose(inner, outer, columns) == rows
    assert tree.transpose(outer, None, rows) == columns
    with pytest.raises(StructureError):
        tree.transpose(outer, inner, rows[:2])


PARAMETERS = {"w": np.arange(6.0).reshape(2, 3), "b": (np.float32(1.5), 2.0), "z": 1.0 + 2.0j}


def test_ravel():
    vector, unravel = tree.ravel(PARAMETERS)
    assert vector.dtype == complex and vector.tolist() == [1.5, 2.0, *range(6), 1.0 + 2.0j]
    back = unravel(vector)
    assert tree.structure(back) == tree.structure(PARAMETERS)
    for one, two in zip(tree.leaves(back), tree.leaves(PARAMETERS), strict=True):
        assert np.array_equal(one, two) and np.asarray(one).dtype == np.asarray(two).dtype
    assert tree.ravel([])[0].shape == (0,) and tree.ravel([])[1](np.zeros(0)) == []
    assert tree.ravel(np.int64(3))[0].dtype == np.int64
    for wrong in ("text", None):
        with pytest.raises(DtypeError, match="not a number"):
            tree.ravel([1.0, wrong])
    with pytest.raises(ShapeError, match="vector of length 9"):
        unravel(vector[1:])
    with pytest.raises(ShapeError, match="vector of length 9"):
        unravel(vector[None])


def test_derivatives_of_ravel():
    point = {"w": np.ones((2, 2)), "b": 2.0}
    vector, unravel = tree.ravel(point)

    def loss(p):
        return np.sum(np.sin(p["w"])) * p["b"]

    def of_vector(v):
        return loss(unravel(v))

    expected = tree.ravel(wg.grad(loss)(point))[0]
    for grad in (wg.grad(of_vector), wg.jit(wg.grad(of_vector))):
        np.testing.assert_allclose(grad(vector), expected)
    rows = wg.vmap(of_vector)(np.stack([vector, 2 * vector]))
    np.testing.assert_allclose(rows, [of_vector(vector), of_vector(2 * vector)])
    through = wg.jit(wg.grad(lambda p: np.sum(tree.ravel(p)[0] ** 2)))(point)
    np.testing.assert_allclose(through["w"], 2 * point["w"])
    assert through["b"] == 4.0
    hessian = wg.hessian(of_vector)(vector)
    assert hessian.shape == (5, 5) and hessian[0, 1] == pytest.approx(np.cos(1.0))


def test_steps_of_a_fit():
    params = {"a": np.array(3.0), "b": [np.zeros(2)]}
    for _ in range(200):
        g = wg.grad(lambda p: p["a"] ** 2 + np.sum((p["b"][0] - 1.0) ** 2))(params)
        params = tree.map(lambda p, d: p - 0.1 * d, params, g)
    np.testing.assert_allclose(tree.ravel(params)[0], [0.0, 1.0, 1.0], atol=1e-12)
