"""Loops by rows with small matrices in their steps: Kalman filters, Newton's method."""

import numpy as np
import pytest
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.core import pytree

ROWS, STEPS = 40, 6
MOVE = np.eye(4) + 0.1 * np.eye(4, k=2)
SEEN = np.eye(2, 4)


def filtered(q, state, y):
    mean, p = state
    mean, p = MOVE @ mean, MOVE @ p @ MOVE.T + q * np.eye(4)
    gain = p @ SEEN.T
    s = SEEN @ gain + 0.04 * np.eye(2)
    away = y - SEEN @ mean
    solved = np.linalg.solve(s, away[:, None])[:, 0]
    state = mean + gain @ solved, p - gain @ np.linalg.solve(s, gain.T)
    return state, -0.5 * (away @ solved + np.linalg.slogdet(s)[1])


def likelihood(q, y):
    return np.sum(wg.scan(lambda s, y: filtered(q, s, y), (np.zeros(4), np.eye(4)), y)[1])


def newton(a, b):
    """Equations with a Jacobian matrix in each step, the loop ends at a small residual."""

    def residual(x):
        return a @ x + 0.1 * np.sin(x) - b

    def step(x):
        return x - np.linalg.solve(a + 0.1 * np.eye(3) * np.cos(x), residual(x))

    return wg.while_loop(lambda x: np.sum(residual(x) ** 2) > 1e-20, step, np.zeros_like(b))


def decomposed(a, b):
    """Steps that take a matrix apart, and use one of two results."""

    def step(i, x):
        root = np.linalg.cholesky(a @ a.T + np.eye(3) * (1.0 + np.sum(x**2)))
        y = wg.scipy.linalg.solve_triangular(root, x, lower=True)
        w = np.linalg.eigh(root @ root.T)[0]
        return y / (1.0 + w) + 0.1 * b * np.linalg.det(a + 4 * np.eye(3))

    return wg.fori_loop(0, STEPS, step, b)


def shared(b, m):
    """Inverses that are the same for all rows, another one in each step."""

    def step(i, x):
        return np.linalg.inv(m + i * np.eye(3)) @ x + np.linalg.inv(m) @ np.sin(x)

    return wg.fori_loop(0, STEPS, step, b)


def stepped_by(b, m):
    """Systems with a matrix that all rows share, and with one of each step."""

    def step(i, x):
        x = np.linalg.solve(m, np.sin(x) + 1.0)
        return np.linalg.solve(m + i * np.eye(3), x) + b

    return wg.fori_loop(0, STEPS, step, b)


def columns(b, m):
    """Several right-hand sides of each row, and triangular systems."""

    def step(i, x):
        x = np.linalg.solve(m, np.sin(x) + np.eye(3))
        return wg.scipy.linalg.solve_triangular(m, x @ np.ones(3), lower=True)[:, None] + x

    return wg.fori_loop(0, STEPS, step, np.outer(b, b))


def arguments():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(ROWS, 3, 3)) + 3 * np.eye(3)
    b = rng.normal(size=(ROWS, 3))
    series = np.cumsum(rng.normal(size=(ROWS, STEPS, 2)), axis=1)
    return {"q": rng.uniform(0.5, 2.0, ROWS), "y": series, "a": a, "b": b, "m": a[0]}


LOOPS = {
    "Kalman": (wg.vmap(likelihood), "qy"),
    "Kalman, gradients": (wg.vmap(wg.grad(likelihood)), "qy"),
    "Newton": (wg.vmap(newton), "ab"),
    "decomposed": (wg.vmap(decomposed), "ab"),
    "shared": (wg.vmap(shared, in_axes=(0, None)), "bm"),
    "one matrix": (wg.vmap(stepped_by, in_axes=(0, None)), "bm"),
    "one matrix, gradients": (
        wg.vmap(wg.grad(lambda b, m: np.sum(stepped_by(b, m) ** 2)), in_axes=(0, None)),
        "bm",
    ),
    "one matrix, columns": (wg.vmap(columns, in_axes=(0, None)), "bm"),
}


def stages(f, *args):
    """The listing of a program."""
    return wg.jit(f, backend="cuda").lower(*args).loops.splitlines()


@pytest.mark.parametrize("name", LOOPS)
def test_loops_with_matrices_are_kernels(name):
    f, letters = LOOPS[name]
    args = [arguments()[x] for x in letters]
    listed = stages(f, *args)
    assert any("a loop of 40 rows" in line for line in listed)
    assert not [line for line in listed if line.startswith(("call", "loop"))]
    with emulated_device(threads=6, seed=2):
        got = wg.device_get(wg.jit(f, backend="cuda")(*args))
    for x, y in zip(pytree.flatten(got)[0], pytree.flatten(f(*args))[0], strict=True):
        assert np.allclose(x, y, rtol=1e-10, atol=1e-13)


def test_a_singular_matrix_in_a_step():
    args = arguments()
    args["a"][17] = 0.0
    g = wg.jit(wg.vmap(lambda a, b: wg.fori_loop(0, 3, lambda i, x: np.linalg.solve(a, x), b)),
               backend="cuda")  # fmt: skip
    assert "a loop of 40 rows" in g.lower(args["a"], args["b"]).loops
    with emulated_device(), pytest.raises(wg.errors.SingularError, match="test_row_matrices"):
        g(args["a"], args["b"])


def test_one_matrix_for_any_number_of_rows():
    args = arguments()
    f = wg.vmap(lambda b: stepped_by(b, args["m"]))
    graph = wg.trace(f)(wg.spec(("n", 3))).simplify()
    run = wg.computation(graph, backend="cuda")
    for n in (1, 33):
        with emulated_device():
            assert np.allclose(wg.device_get(run(args["b"][:n])), f(args["b"][:n]), rtol=1e-12)


def test_one_singular_matrix_of_all_rows():
    args = arguments()
    g = wg.jit(wg.vmap(stepped_by, in_axes=(0, None)), backend="cuda")
    with emulated_device(), pytest.raises(wg.errors.SingularError, match="test_row_matrices"):
        g(args["b"], np.zeros((3, 3)))


def test_matrices_of_other_rows_are_not_read():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(ROWS, 3, 3)) + 4 * np.eye(3)
    cases = {
        "reversed rows": lambda x: wg.fori_loop(0, 3, lambda i, s: np.linalg.inv(s[::-1]) + s, x),
        "transposed batch": lambda x: wg.fori_loop(
            0, 3, lambda i, s: np.linalg.inv(s[:, :3, :3].mT) + s, x
        ),
        "a part": lambda x: wg.fori_loop(
            0, 3, lambda i, s: s + np.linalg.det(s[:, 1:, 1:])[:, None, None], x
        ),
    }
    for name, f in cases.items():
        with emulated_device(threads=16):
            got = wg.device_get(wg.jit(f, backend="cuda")(x))
        assert np.allclose(got, f(x), rtol=1e-11), name
    assert stages(cases["reversed rows"], x)[0] == "0 kernels"
    assert "a loop of 40 rows" in stages(cases["a part"], x)[-1]
