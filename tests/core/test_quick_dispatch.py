"""The common case of operators, which skips `apply`: the same nodes and errors as `apply`."""

import operator
import subprocess
import sys

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.dispatch import apply
from wengert._engine.core.node import NO_PARAMS, DiscreteLeaf, Node
from wengert._engine.core.op import lookup
from wengert._engine.tensor.operators import BINARY, COMPARISONS, UNARY
from wengert.errors import ShapeError

INTEGERS_ONLY = {"and", "or", "xor", "lshift", "rshift", "invert"}
BINARY_OPERATORS = sorted({*BINARY, *COMPARISONS} - INTEGERS_ONLY - {"matmul"})


def tensor(x, requires_grad=True):
    return wg.tensor(np.asarray(x, float), requires_grad=requires_grad)


SECOND = {
    "tensor": lambda: tensor([0.5, 2.0, 3.0]),
    "constant": lambda: tensor([0.5, 2.0, 3.0], requires_grad=False),
    "condition": lambda: tensor([0.5, -2.0, 3.0]) > 0,
    "single precision": lambda: tensor([0.5, 2.0, 3.0]).astype(np.float32),
    "column": lambda: tensor([[1.0], [2.0]]),
    "number": lambda: tensor(2.0),
    "array": lambda: np.array([0.5, 2.0, 3.0]),
    "NumPy scalar": lambda: np.float32(2.0),
    "float": lambda: 2.0,
    "int": lambda: 2,
    "bool": lambda: True,
    "complex": lambda: 1.5 + 0j,
}


def described(y):
    """What is recorded."""
    node = y.node
    operands = [a if isinstance(a, Node | int | float | complex) else type(a) for a in node.args]
    return type(node), node.op, operands, node.params, node.info, node.version


def same(found, expected):
    assert described(found) == described(expected)
    value, right = found.node.value, expected.node.value
    assert type(value) is type(right)
    assert value.dtype == right.dtype
    np.testing.assert_array_equal(value, right)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("first", [[1.0, -2.0, 3.5], 1.5, [[4.0, 5.0, 6.0]]])
@pytest.mark.parametrize(
    "name, kind",
    [
        (name, kind)
        for name in BINARY_OPERATORS
        for kind in SECOND
        # NumPy has no such functions of complex numbers.
        if kind != "complex" or name not in (*COMPARISONS, "mod", "floordiv")
    ],
)
def test_operators_record_what_apply_records(name, kind, first):
    x, y = tensor(first), SECOND[kind]()
    run = getattr(operator, f"__{name}__")
    op = lookup((BINARY | COMPARISONS)[name])
    same(run(x, y), apply(op, (x, y), NO_PARAMS, run))
    if not isinstance(y, np.ndarray | np.generic):
        same(run(y, x), apply(op, (y, x), NO_PARAMS, run)) if name in BINARY else None


@pytest.mark.parametrize("x", [[1.0, -2.0], -1.5])
@pytest.mark.parametrize("name", sorted(set(UNARY) - INTEGERS_ONLY))
def test_unary_operators_record_what_apply_records(name, x):
    x, run = tensor(x), getattr(operator, f"__{name}__")
    same(run(x), apply(lookup(UNARY[name]), (x,), NO_PARAMS, run))


@pytest.mark.parametrize("x", [[1.0, 0.5], 0.5])
@pytest.mark.parametrize("name", ["sin", "exp", "log", "tanh", "floor", "isnan"])
def test_ufuncs_record_what_apply_records(name, x):
    x = tensor(x)
    same(getattr(np, name)(x), apply(lookup(name), (x,)))


@pytest.mark.parametrize("f", [np.sin, operator.neg, lambda x: x * x, lambda x: 2.0 * x])
def test_blocks_are_respected(f):
    x = tensor([1.0, 2.0])
    with wg.no_grad():
        y = f(x)
    assert not y.requires_grad
    assert isinstance(f(x.detach()).node, DiscreteLeaf) is False
    with wg.note_lines():
        assert f(x).node.where is not None


def test_errors_name_the_operation():
    x = tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"add of float64\[2\], float64\[3\]"):
        x + tensor([1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match=r"multiply of float64\[2\], float64\[3\]"):
        x *= tensor([1.0, 2.0, 3.0])


def test_warnings_are_given_once():
    x = tensor([1.0, 0.0])
    for f in (np.log, lambda x: 1.0 / x, lambda x: x / (x - x)):
        with pytest.warns(RuntimeWarning) as caught:
            f(x)
        assert len({str(w.message) for w in caught}) == len(caught)


def test_operands_that_were_written_to_keep_their_values():
    x = tensor(np.ones(1000))
    y = x * 1.0
    z = y * y
    y[3] = 5.0  # takes over the array
    w = y * y + z
    w.sum().backward()
    expected = np.full(1000, 4.0)
    expected[3] = 2.0
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_reading_attributes_of_nodes_is_fast_until_an_array_is_taken_over():
    program = """
import numpy as np, wengert as wg
from wengert._engine.core.node import Node
x = wg.tensor(np.ones(1000), requires_grad=True)
y = x * 1.0
old = y.node
(y * y).sum().backward()
assert not hasattr(Node, "__getattr__")
y[3] = 5.0
assert old.value[3] == 1.0 and y.node.value[3] == 5.0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
