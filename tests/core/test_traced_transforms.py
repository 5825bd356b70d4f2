"""Every transformation of a traced function gives what the transformation of the function gives."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core import pytree

X = np.array([1.0, 2.0, 3.0])
A = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]])


def f(x):
    return A @ (x * x) * np.exp(-x[0])


def scalar(x):
    return np.sum(f(np.sin(x)) ** 2)


CASES = {
    "value and grad": lambda x: wg.value_and_grad(scalar)(x),
    "vjp, a fixed cotangent": lambda x: wg.vjp(f, x)[1](np.array([1.0, -2.0])),
    "vjp, a traced cotangent": lambda x: wg.vjp(f, x)[1](x[:2]),
    "jvp": lambda x: wg.jvp(f, (x,), (np.cos(x),)),
    "linearize": lambda x: [wg.linearize(f, x)[1](v) for v in (x, np.ones(3))],
    "jacobian": lambda x: wg.jacobian(f)(x),
    "jacfwd": lambda x: wg.jacfwd(f)(x),
    "jacrev": lambda x: wg.jacrev(f)(x),
    "jacobian of jacobian": lambda x: wg.jacobian(wg.jacobian(f))(x),
    "hessian": lambda x: wg.hessian(scalar)(x),
    "jacrev of grad": lambda x: wg.jacrev(wg.grad(scalar))(x),
    "hvp": lambda x: wg.hvp(scalar, (x,), (np.array([1.0, 0.0, 2.0]),)),
    "hvp, a traced vector": lambda x: wg.hvp(scalar, (x,), (x,)),
    "third order": lambda x: wg.grad(lambda y: np.sum(wg.hessian(scalar)(y)[0] * y))(x),
    "complex to complex": lambda x: wg.jacobian(lambda z: z * z * (1 + 2j))(x + 1j * x[::-1]),
    "complex to real": lambda x: wg.jacobian(lambda z: np.abs(z) ** 2)(x + 1j * x[::-1]),
    "real to complex": lambda x: wg.jacrev(lambda y: y * y * (1 + 2j))(x),
    "containers": lambda x: wg.jacobian(lambda d: {"a": d["u"] * 2.0, "b": d["u"].sum() * d["v"]})(
        {"u": x, "v": x[0]}
    ),
    "nothing depends": lambda x: wg.jacobian(lambda y: np.ones(2))(x),
    "checkpoint": lambda x: wg.checkpoint(f)(x),
    "grad of checkpoint": lambda x: wg.grad(wg.checkpoint(scalar))(x),
    "hessian of checkpoint": lambda x: wg.hessian(wg.checkpoint(scalar))(x),
    "checkpoint of what is outside": lambda x: wg.grad(
        lambda s: wg.checkpoint(lambda: np.sum(s * x))()
    )(x),
    "stop gradient": lambda x: wg.grad(lambda y: np.sum(y * wg.stop_gradient(y)))(x),
    "outer variable": lambda x: wg.grad(
        lambda y: np.sum(y * wg.grad(lambda z: np.sum(y * z * z))(x))
    )(x),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_traced_transformation_is_the_transformation(case):
    want, shape = pytree.flatten(case(X))
    graph = wg.trace(case)(X)
    graph.verify()
    got, same = pytree.flatten(graph(X))
    assert same == shape
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-14)
        assert np.asarray(g).dtype == np.asarray(w).dtype


def test_orders_are_levels():
    graph = wg.trace(wg.hessian(scalar))(X)
    assert {n.level for n in graph.nodes} == {0, 1, 2}
    assert graph.outputs[0].level == 2


@pytest.mark.parametrize(
    ("program", "at"),
    [
        (lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), [0.0, 4.0, -1.0]),
        (lambda x: np.sum(np.where(x > 0, x * np.log(x), 0.0)), [0.0, 1.0, 2.0]),
        (lambda x: np.sum(np.where(x > 0, np.sum(1.0 / x) * 0.0 + x, x)), [1.0, 2.0, 4.0]),
        (lambda x: x[0] * np.sqrt(x[1]), [0.0, 0.0]),
        (lambda x: np.max(np.stack([np.sqrt(x[0]), x[1]])), [0.0, 1.0]),
        (lambda x: np.sort(np.stack([np.log(x[0]) * 0.5, x[1]]))[1], [0.0, 1.0]),
        (lambda x: np.sum((np.diag(np.outer(1.0 / x, x)))[1:]), [0.0, 1.0, 2.0]),
        (lambda x: np.sum((1.0 / x)[1:] @ np.ones(2)), [0.0, 1.0, 2.0]),
        (lambda x: np.sum(np.where(x == 0, 0.0, np.ones((3, 3)) @ (1.0 / x))), [0.0, 0.0, 0.0]),
        (lambda x: np.sum(np.triu(np.outer(1.0 / x, x), 1)[1]), [0.0, 1.0, 2.0]),
        (lambda x: np.take_along_axis(1.0 / x, np.array([1]), 0)[0], [0.0, 1.0]),
        (lambda x: np.maximum.accumulate(np.stack([x[0], np.sqrt(x[1])]))[1], [1.0, 0.0]),
        (lambda x: np.arctan2(x[0], x[1]) + np.hypot(x[0], x[1]) + np.linalg.norm(x), [0.0, 0.0]),
        (lambda x: np.std(x) + np.prod(x), [0.0, 0.0, 0.0]),
        (lambda x: np.logaddexp(x[0], x[1]) + np.log(np.sum(np.exp(x))), [-np.inf, 0.0]),
    ],
)
def test_what_was_not_chosen_stays_without_influence(program, at):
    at = np.array(at)
    with np.errstate(all="ignore"):
        want = wg.grad(program)(at)
        columns = wg.jacfwd(program)(at)
    np.testing.assert_allclose(wg.trace(wg.grad(program))(at)(at), want, rtol=1e-13)
    np.testing.assert_allclose(wg.trace(wg.jacfwd(program))(at)(at), columns, rtol=1e-13)


def test_a_singular_matrix_has_a_second_derivative_of_its_determinant():
    a = np.outer([1.0, 2.0, -1.0], [0.5, 1.0, 3.0])
    want = wg.hessian(np.linalg.det)(a)
    np.testing.assert_allclose(wg.trace(wg.hessian(np.linalg.det))(a)(a), want, atol=1e-10)
    assert np.max(np.abs(want)) > 0.1


def test_equal_eigenvalues_in_a_graph():
    def f(a):
        return np.sum(np.exp(np.linalg.eigh(a)[0]))

    a = np.diag([1.0, 1.0, 2.0])
    np.testing.assert_allclose(wg.trace(wg.grad(f))(a)(a), wg.grad(f)(a), atol=1e-13)


def test_a_constant_exponent_stays_short():
    graph = wg.trace(wg.grad(lambda x: np.sum(x**2)))(X)
    assert not graph.select(op="where")
    assert not wg.trace(lambda x: np.sum(x**2))(X).grad().select(op="where")


def test_divisors_of_a_mean_are_sizes():
    graph = wg.trace(wg.grad(lambda x: np.var(x, ddof=1) + np.mean(x) + np.std(x)))(wg.spec("n"))
    for k in (2, 5):
        x = np.arange(1.0, k + 1) ** 2
        want = wg.grad(lambda y: np.var(y, ddof=1) + np.mean(y) + np.std(y))(x)
        np.testing.assert_allclose(graph(x), want, rtol=1e-13)
