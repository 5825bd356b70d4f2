"""Orders beyond the first: Hessians, their products with a direction, and fifth derivatives.

Beside benchmarks/native/higher.py, which has Rosenbrock's Hessian of 50 numbers, a dense one, a
large perceptron's product and a fifth derivative of one number:

    Rosenbrock   10 and 100 numbers: Hessian, and its product with a direction
    network      a small one (8-16-16-1, tanh, 32 samples, 433 parameters): both; CasADi's Hessian
                 is left out, as it takes a minute to build
    fifth        derivative of tanh(sin(x) exp(-x²)) of each of 1,000 numbers
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np

from native import libraries
from native.calls import rosenbrock
from native.case import Call, Case, generator

TITLE = "Hessians, products with them, fifth derivatives"
TEXT = (
    "The network has one vector of 433 parameters; its Hessian is dense (CasADi takes a minute to "
    "build it, so it is left out there). *torch* runs eagerly, *CasADi* in its own machine. "
    "Fifth: element by element, by five gradients of sums."
)
TARGET = "faster than the best"

SHAPES = ((8, 16), (16,), (16, 16), (16,), (16, 1), (1,))
Function = Callable[..., Any]


def cases(quick: bool) -> Iterator[Case]:
    """Hessians and products of both functions, and fifth derivatives."""
    for n in (10, 100):
        x, v = np.linspace(-1.2, 1.1, n), np.linspace(1.0, 2.0, n)
        f = lambda xp, array: rosenbrock  # noqa: E731
        yield Case(f"Hessian of Rosenbrock, n = {n}", hessians(f, x, casadi_rosenbrock))
        found = products(f, x, v, casadi_rosenbrock)
        yield Case(f"its product, n = {n}", found)
    x = start()
    v = generator(87).normal(size=x.size)
    yield Case("Hessian of a network", hessians(network, x, None))
    yield Case("its product", products(network, x, v, casadi_network))
    yield Case("fifth derivative, 1,000 numbers", fifth(np.linspace(-1.5, 1.5, 1000)), within=1e-8)


def start() -> Any:
    """The parameters as one vector."""
    random = generator(85)
    parts = [random.normal(size=s) / np.sqrt(s[0]) for s in SHAPES]
    return np.concatenate([p.ravel() for p in parts])


def samples() -> tuple[Any, Any]:
    """Inputs and targets."""
    random = generator(86)
    return random.normal(size=(32, 8)), random.normal(size=(32, 1))


def parts(theta: Any) -> list[Any]:
    """Weights and biases of a vector."""
    found, at = [], 0
    for s in SHAPES:
        size = int(np.prod(s))
        found.append(theta[at : at + size].reshape(s))
        at += size
    return found


def network(xp: Any, array: Function) -> Function:
    """The mean square error, of the vector."""
    x, y = map(array, samples())

    def loss(theta: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parts(theta)
        hidden = xp.tanh(xp.tanh(x @ w1 + b1) @ w2 + b2)
        return ((hidden @ w3 + b3 - y) ** 2).mean()

    return loss


def casadi_rosenbrock(casadi: Any, s: Any) -> Any:
    """The same of CasADi's symbols."""
    return casadi.sum1(100.0 * (s[1:] - s[:-1] ** 2) ** 2 + (1.0 - s[:-1]) ** 2)


def casadi_network(casadi: Any, s: Any) -> Any:
    """The same of CasADi's symbols, whose matrices are in Fortran's order."""
    x, y = samples()
    found, at = [], 0
    for shape in SHAPES:
        rows, columns = (1, *shape)[-2:]
        found.append(casadi.reshape(s[at : at + rows * columns], columns, rows).T)
        at += rows * columns
    ones = casadi.DM.ones(len(x), 1)
    w1, b1, w2, b2, w3, b3 = found
    hidden = casadi.tanh(casadi.DM(x) @ w1 + ones @ b1)
    hidden = casadi.tanh(hidden @ w2 + ones @ b2)
    return casadi.sumsqr(hidden @ w3 + ones @ b3 - casadi.DM(y)) / len(x)


def hessians(build: Any, x: Any, symbols: Any) -> dict[str, Any]:
    """Contestants; ``build(xp, array)`` is the function in a library."""

    def wengert() -> Call:
        import wengert as wg

        return Call(libraries.jit(wg.hessian(build(np, np.asarray))), (x,))

    def jax() -> Call:
        j = libraries.jax()
        return libraries.jax_call(j.hessian(build(j.numpy, j.numpy.asarray)), x)

    def torch() -> Call:
        t = libraries.torch()
        return Call(t.func.hessian(build(t, t.from_numpy)), (t.from_numpy(x),))

    def autograd() -> Call:
        import autograd.numpy as anp
        from autograd import hessian

        return Call(hessian(build(anp, np.asarray)), (x,))

    def casadi() -> Any:
        import casadi

        s = casadi.SX.sym("x", x.size)
        matrix = casadi.hessian(symbols(casadi, s), s)[0]
        return casadi.Function("h", [s], [casadi.densify(matrix)])

    found = {"wengert": wengert, "JAX": jax, "torch": torch, "autograd": autograd}
    return found | (libraries.casadi(casadi, x) if symbols else {})


def products(build: Any, x: Any, v: Any, symbols: Any) -> dict[str, Any]:
    """Contestants for the Hessian's product with a direction."""

    def wengert() -> Call:
        import wengert as wg

        f = build(np, np.asarray)
        return Call(libraries.jit(lambda x, v: wg.hvp(f, (x,), (v,))), (x, v))

    def jax() -> Call:
        j = libraries.jax()
        f = build(j.numpy, j.numpy.asarray)
        return libraries.jax_call(lambda x, v: j.jvp(j.grad(f), (x,), (v,))[1], x, v)

    def torch() -> Call:
        t = libraries.torch()
        f = build(t, t.from_numpy)
        leaf = t.from_numpy(x.copy()).requires_grad_()

        def run(x: Any, v: Any) -> Any:
            (bar,) = t.autograd.grad(f(x), x, create_graph=True)
            return t.autograd.grad(bar, x, v)[0]

        return Call(run, (leaf, t.from_numpy(v)))

    def autograd() -> Call:
        import autograd.numpy as anp
        from autograd import hessian_vector_product

        return Call(hessian_vector_product(build(anp, np.asarray)), (x, v))

    def casadi() -> Any:
        import casadi

        kind = casadi.MX if x.size > 200 else casadi.SX
        s, d = kind.sym("x", x.size), kind.sym("v", x.size)
        bar = casadi.gradient(symbols(casadi, s), s)
        return casadi.Function("p", [s, d], [casadi.jtimes(bar, s, d)])

    found = {"wengert": wengert, "JAX": jax, "torch": torch, "autograd": autograd}
    return found | libraries.casadi(casadi, x, v)


def bell(xp: Any) -> Function:
    """The function whose fifth derivative is taken."""
    return lambda x: xp.tanh(xp.sin(x) * xp.exp(-x * x))


def fifth(x: Any) -> dict[str, Any]:
    """Contestants for the fifth derivative of each number."""

    def summed(grad: Function) -> Function:
        return lambda f: grad(lambda x: f(x).sum())

    def five(grad: Function, xp: Any) -> Function:
        return reduce(lambda f, _: summed(grad)(f), range(5), bell(xp))

    def wengert() -> Call:
        import wengert as wg

        return Call(libraries.jit(five(wg.grad, np)), (x,))

    def jax() -> Call:
        j = libraries.jax()
        return libraries.jax_call(five(j.grad, j.numpy), x)

    def torch() -> Call:
        t = libraries.torch()
        leaf = t.from_numpy(x.copy()).requires_grad_()

        def run(x: Any) -> Any:
            out = bell(t)(x)
            for _ in range(5):
                (out,) = t.autograd.grad(out.sum(), x, create_graph=True)
            return out.detach()

        return Call(run, (leaf,))

    def autograd() -> Call:
        import autograd.numpy as anp
        from autograd import grad

        return Call(five(grad, anp), (x,))

    def casadi() -> Any:
        import casadi

        s = casadi.SX.sym("x")
        slope = reduce(lambda g, _: casadi.gradient(g, s), range(5), bell(casadi)(s))
        one = casadi.Function("f", [s], [slope])
        return one.map(x.size)

    found = {"wengert": wengert, "JAX": jax, "torch": torch, "autograd": autograd}
    return found | libraries.casadi(casadi, x.reshape(1, -1))
