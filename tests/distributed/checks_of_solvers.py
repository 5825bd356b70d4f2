"""Solutions of equations that exchange messages: values and derivatives, compared with serial ones.

Each process has a part of the unknowns (a grid divided into blocks), or all have the same unknowns
and a part of the data.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.distributed.sampling import by_turns, sampled, ways

import wengert as wg
from wengert import distributed as d
from wengert.errors import ArgumentError, NotDifferentiableError

_CELLS = 4  # of each process


def _dot(a, b):
    return d.allreduce(np.sum(a * b))


def _conjugate_gradients(dot):
    def solve(matvec, b):
        def goes_on(state):
            return (state[3] > 1e-26) & (state[4] < 200)

        def step(state):
            x, p, residual, squared, k = state
            q = matvec(p)
            alpha = squared / dot(p, q)
            residual = residual - alpha * q
            new = dot(residual, residual)
            return x + alpha * p, residual + new / squared * p, residual, new, k + 1

        return wg.while_loop(goes_on, step, (0.0 * b, b, b, dot(b, b), 0))[0]

    return solve


def _richardson(rate, count):
    """Steps without inner products, for matrices that need not be symmetric."""

    def solve(matvec, b):
        return wg.fori_loop(0, count, lambda _, x: x + rate * (b - matvec(x)), 0.0 * b)

    return solve


def _neighbors(u, comm):
    """The elements before and after those of this process, zero at the ends."""
    before, after = comm.rank - 1, comm.rank + 1
    before, after = before if before >= 0 else None, after if after < comm.size else None
    return np.concatenate([d.sendrecv(u[-1:], after, before), u, d.sendrecv(u[:1], before, after)])


def _of_band(u, left, middle, right):
    return middle * u[1:-1] - left * u[:-2] - right * u[2:]


def _band(left, middle, right):
    ones = np.eye(np.shape(middle)[0])
    lower, upper = np.eye(ones.shape[0], k=-1), np.eye(ones.shape[0], k=1)
    return middle[:, None] * ones - left * lower - right * upper


def _compare(comm, f, serial, arguments, own, directions, number=0):
    """Value, gradient, tangent and Hessian products, compiled and eager (`sampling`)."""
    every = tuple(range(len(arguments)))
    value, gradient = wg.value_and_grad(serial, argnums=every)(*arguments)
    tangent = wg.jvp(serial, arguments, directions)[1]
    product = wg.hvp(serial, arguments, directions)
    mine, moved = tuple(map(own, arguments)), tuple(map(own, directions))
    numbers = [(f, value, 1e-9), (lambda *x: wg.jvp(f, x, moved)[1], tangent, 1e-7)]
    arrays = [
        (wg.grad(f, argnums=every), gradient, 1e-7, 1e-9),
        (lambda *x: wg.hvp(f, x, moved), product, 1e-6, 1e-8),
    ]
    for run in ways(number // 2):
        for function, wanted, rtol in by_turns(number, numbers):
            np.testing.assert_allclose(run(function)(*mine), wanted, rtol=rtol)
        for functions, wanted, rtol, atol in by_turns(number, arrays):
            for a, b in zip(run(functions)(*mine), wanted, strict=True):
                np.testing.assert_allclose(a, own(b), rtol=rtol, atol=atol)


def _on_a_line(comm):
    """Two fields and two directions, and the part of this process."""
    rng = np.random.default_rng(3)
    n = _CELLS * comm.size
    part = slice(comm.rank * _CELLS, (comm.rank + 1) * _CELLS)
    fields = rng.normal(size=n), 1.0 + rng.uniform(size=n)
    return fields, (rng.normal(size=n), rng.normal(size=n)), lambda x: x[part]


def check_conjugate_gradients_of_a_divided_grid(comm):
    """The classical solver: messages of borders in products, sums in inner products."""
    fields, directions, own = _on_a_line(comm)
    solve = _conjugate_gradients(_dot)

    def f(b, k):
        def matvec(u):
            return _of_band(_neighbors(u, comm), 1.0, 2.0 + k, 1.0)

        x = wg.custom_linear_solve(matvec, b, solve, symmetric=True)
        return d.allreduce(np.sum(np.sin(x)))

    def serial(b, k):
        return np.sum(np.sin(np.linalg.solve(_band(1.0, 2.0 + k, 1.0), b)))

    _compare(comm, f, serial, fields, own, directions)


def check_adjoint_products_have_the_transposed_messages(comm):
    """A matrix that is not symmetric, in a loop and in a branch."""
    fields, directions, own = _on_a_line(comm)
    solve = _richardson(0.3, 70)

    def f(b, k):
        def matvec(u):
            return _of_band(_neighbors(u, comm), 1.4, 2.0 + k, 0.3)

        def step(_, x):
            return x + 0.1 * wg.custom_linear_solve(matvec, b + x**2, solve)

        x = wg.fori_loop(0, 2, step, 0.0 * b)
        x = wg.cond(_dot(x, x) > 0.0, lambda x: step(0, x), lambda x: x, x)
        return d.allreduce(np.sum(np.sin(x)))

    def serial(b, k):
        x = 0.0 * b
        for _ in range(3):
            x = x + 0.1 * np.linalg.solve(_band(1.4, 2.0 + k, 0.3), b + x**2)
        return np.sum(np.sin(x))

    _compare(comm, f, serial, fields, own, directions, 1)


def check_roots_of_a_divided_grid(comm):
    """custom_root, whose linear systems have the messages of the residual."""
    fields, directions, own = _on_a_line(comm)

    def f(b, k):
        def residual(u):
            return _of_band(_neighbors(u, comm), 1.4, 2.0 + k, 0.3) + 0.2 * u**3 - b

        def solve(g, u):
            return wg.fori_loop(0, 90, lambda _, u: u - 0.25 * g(u), u)

        x = wg.custom_root(residual, np.zeros(_CELLS), solve, _richardson(0.25, 90))
        return d.allreduce(np.sum(np.sin(x)))

    def serial(b, k):
        a = _band(1.4, 2.0 + k, 0.3)

        def solve(g, u):
            return wg.fori_loop(0, 90, lambda _, u: u - 0.25 * g(u), u)

        return np.sum(np.sin(wg.custom_root(lambda u: a @ u + 0.2 * u**3 - b, 0.0 * b, solve)))

    _compare(comm, f, serial, fields, own, directions, 3)


def check_the_same_unknowns_in_all_processes(comm):
    """Least squares with rows of this process: each process uses the solution in its own way."""
    rng = np.random.default_rng(4)
    rows = np.linalg.qr(rng.normal(size=(3 * comm.size, 2)))[0]
    y = rng.normal(size=3 * comm.size)
    part = slice(3 * comm.rank, 3 * comm.rank + 3)
    turned = np.array([[1.0, 0.3], [-0.2, 1.0]])  # makes the matrix not symmetric
    cases = [(True, np.eye(2), _conjugate_gradients(lambda a, b: np.sum(a * b)))]
    cases.append((False, turned, _richardson(0.6, 30)))
    for number, (symmetric, mix, solve) in enumerate(cases):
        for marks in sampled([True, False]):

            def f(x, y, mix=mix, solve=solve, symmetric=symmetric, marks=marks):
                def matvec(w):
                    w = d.replicated(w) if marks else w
                    return mix @ d.allreduce(x.T @ (x @ w)) + 0.5 * w

                b = d.allreduce(x.T @ y)
                mix = d.replicated(mix)
                w = wg.custom_linear_solve(matvec, b, solve, symmetric=symmetric)
                return d.allreduce(np.sum(np.sin(x @ w)))

            def serial(x, y, mix=mix):
                w = np.linalg.solve(mix @ (x.T @ x) + 0.5 * np.eye(2), x.T @ y)
                return np.sum(np.sin(x @ w))

            directions = np.cos(rows), np.sin(y)
            _compare(comm, f, serial, (rows, y), lambda x: x[part], directions, 2 + number)


def check_systems_that_are_refused(comm):
    """Without a solver; and where it is not known whether the unknowns are the same."""
    x, b = np.ones((3, 2)) + np.eye(3, 2), np.ones(2)

    def by(method):
        return lambda b: np.sum(wg.custom_linear_solve(lambda u: d.allreduce(u) + u, b, method))

    for method in (None, "cg"):
        for run in (by(method), wg.jit(by(method))):
            with pytest.raises(ArgumentError, match="product exchanges messages"):
                run(b)

    def unclear(b):
        def matvec(w):
            return d.allreduce(x.T @ (x @ w)) + w

        w = wg.custom_linear_solve(matvec, b, _richardson(0.01, 10))
        return d.allreduce(np.sum(w), "mean")

    for run in (wg.grad(unclear), wg.jit(wg.grad(unclear))):
        with pytest.raises(NotDifferentiableError, match="whether each process has a part"):
            run(b)
