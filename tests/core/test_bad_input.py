"""Bad input: a clear error of the tree, naming the user's line, and no harm done.

What belongs to one function is tested beside it (test_transforms.py, test_tensor.py); here are the
faults that reach the engine: graphs built by hand, rules that return nonsense, missing rules,
exceptions and interrupts inside a user's rule, numbers that are not finite, nothing at all.
"""

import contextlib

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.node import Node
from wengert._engine.core.op import REGISTRY, lookup
from wengert._engine.kinds.opaque import opaque
from wengert.errors import (
    ArgumentError,
    CycleError,
    GraphError,
    NotDifferentiableError,
    RegistryError,
    RuleError,
    WengertError,
)


@contextlib.contextmanager
def operation(run, **rules):
    """An operation that is gone from the registry afterwards."""
    op = opaque(run, **rules)
    try:
        yield op
    finally:
        del REGISTRY[op.name]


def twice(x):
    """2 x."""
    return x * 2.0


def healthy():
    """The engine still works."""
    assert wg.is_recording()
    assert float(wg.grad(lambda x: x * x)(3.0)) == 6.0


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda t, out, x: (t, t), "returned 2 cotangents for 1 operands"),
        (lambda t, out, x: (), "returned 0 cotangents"),
        (lambda t, out, x: (np.ones(7),), r"returned shape \(7,\) for operand 0.*shape \(3,\)"),
        (lambda t, out, x: (np.array(["a"]),), "returned dtype"),
        (lambda t, out, x: ("text",), "returned dtype"),
    ],
)
def test_a_rule_that_returns_nonsense(rule, words):
    with operation(twice, vjp=rule) as op:
        with pytest.raises(RuleError, match=words) as error:
            wg.grad(lambda x: op(x).sum())(np.ones(3))
        assert "test_bad_input.py" in str(error.value) and "twice" in str(error.value)
    healthy()


def test_a_rule_that_returns_none_is_a_known_zero():
    with operation(twice, vjp=lambda t, out, x: (None,)) as op:
        assert wg.grad(lambda x: op(x).sum())(np.ones(3)).tolist() == [0.0, 0.0, 0.0]


def test_a_rule_of_another_float_is_cast():
    with operation(twice, vjp=lambda t, out, x: (np.asarray(t * 2, np.float64),)) as op:
        g = wg.grad(lambda x: op(x).sum())(np.ones(3, np.float32))
        assert g.dtype == np.float32


def test_an_operation_without_a_rule_works_forward_and_is_refused_by_name():
    with operation(twice) as op:
        x = wg.tensor([1.0], requires_grad=True)
        y = op(x)
        assert y.tolist() == [2.0]
        for derivative in (
            lambda: y.backward(),
            lambda: wg.jvp(op, (np.ones(1),), (np.ones(1),)),
            lambda: wg.hessian(lambda x: op(x).sum())(np.ones(1)),
        ):
            with pytest.raises(NotDifferentiableError, match="derivative of twice") as error:
                derivative()
            assert "test_bad_input.py" in str(error.value)
            assert "stop_gradient" in str(error.value)
    healthy()


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, MemoryError])
def test_exceptions_inside_a_rule_or_a_run_pass_through(error):
    def explode(*_):
        raise error

    with operation(twice, vjp=explode) as op:
        x = wg.tensor(np.ones(2), requires_grad=True)
        with pytest.raises(error):
            (op(x) * x).sum().backward()
        assert x.grad is None
    with operation(lambda x: explode(), name="explode") as op, pytest.raises(error):
        op(x)
    healthy()


def test_a_rule_in_plain_numbers_cannot_give_the_other_mode_or_a_second_derivative():
    def rule(t, out, x):
        return (2.0 * np.asarray(t.numpy() if isinstance(t, wg.Tensor) else t),)

    with operation(twice, vjp=rule) as op:
        assert wg.grad(lambda x: op(x).sum())(np.ones(2)).tolist() == [2.0, 2.0]
        with pytest.raises(NotDifferentiableError, match="or define both"):
            wg.jvp(op, (np.ones(2),), (np.ones(2),))
    healthy()


def test_names_are_taken_once_and_near_misses_are_shown():
    with operation(twice), pytest.raises(RegistryError, match="registered already"):
        opaque(twice)
    with pytest.raises(RegistryError, match=r"Did you mean.*sin"):
        lookup("sinn")


def test_a_cyclic_graph_built_by_hand():
    x = wg.tensor(1.0, requires_grad=True)
    a = x * 2.0
    b = a * 3.0
    a.node.args = (b.node, 2.0)
    for use in (lambda: b.backward(), lambda: wg.Graph(b), lambda: wg.Graph(b).verify()):
        with pytest.raises(CycleError, match="cycle"):
            use()
    with pytest.raises(CycleError, match="cycle"):
        b.backward(inputs=[x])
    healthy()


def test_a_graph_whose_line_lies_about_its_value():
    x = wg.tensor(np.ones(3), requires_grad=True)
    y = x * 2.0
    lying = Node(lookup("sin"), (y.node,), value=np.ones(4))
    with pytest.raises(GraphError, match=r"has the spec float64\[4\].*give float64\[3\]"):
        wg.Graph(lying).verify()


def test_foreign_nodes_are_not_nodes_of_a_graph():
    x = wg.tensor(1.0, requires_grad=True)
    graph = wg.Graph(x * 2.0)
    with pytest.raises(GraphError, match="not a node"):
        graph.index(wg.tensor(1.0, requires_grad=True))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_stay_visible(value):
    with np.errstate(all="ignore"):
        g = wg.grad(lambda x: np.sum(x * x))(np.array([1.0, value]))
    assert g[0] == 2.0 and (np.isnan(g[1]) if np.isnan(value) else g[1] == 2 * value)


def test_a_branch_not_taken_does_not_poison_the_one_that_was():
    x = np.array([0.0, 4.0, -1.0])
    f = lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0))  # noqa: E731
    with np.errstate(invalid="ignore"):
        assert wg.grad(f)(x).tolist() == [0.0, 0.25, 0.0]
        assert wg.jvp(f, (x,), (np.ones(3),))[1] == 0.25
        np.testing.assert_allclose(np.diag(wg.hessian(f)(x)), [0.0, -1 / 32, 0.0])


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2)])
def test_empty_arrays(shape):
    x = np.zeros(shape)
    g = wg.grad(lambda x: np.sum(np.sin(x) * x))(x)
    assert g.shape == shape and g.dtype == np.float64
    assert wg.jacobian(np.sin)(x).shape == shape + shape


def test_nothing_to_differentiate_by():
    assert wg.grad(lambda x: 1.0)({}) == {}
    assert wg.grad(lambda x: 1.0)([]) == []


def test_every_deliberate_error_is_in_the_tree():
    classes = [c for c in vars(wg.errors).values() if isinstance(c, type)]
    errors = [c for c in classes if issubclass(c, Exception) and not issubclass(c, Warning)]
    for cls in errors:
        if cls.__module__ == "wengert.errors":
            assert issubclass(cls, WengertError) and cls.__doc__


TRANSFORMATIONS = {
    "grad": lambda: wg.grad(3),
    "value_and_grad": lambda: wg.value_and_grad(3),
    "jacobian": lambda: wg.jacobian(3),
    "hessian": lambda: wg.hessian(3),
    "vjp": lambda: wg.vjp(3, 1.0),
    "jvp": lambda: wg.jvp(3, (1.0,), (1.0,)),
    "linearize": lambda: wg.linearize(3, 1.0),
    "vmap": lambda: wg.vmap(3),
    "checkpoint": lambda: wg.checkpoint(3),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_transformation_of_something_else_than_a_function(name):
    with pytest.raises(ArgumentError, match=f"^{name} of 3, which is not a function"):
        TRANSFORMATIONS[name]()
