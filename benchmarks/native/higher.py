"""Derivatives of second order and beyond.

Hessian   of Rosenbrock's function of 50 numbers, which is tridiagonal, and of one that is dense
product   of the Hessian of a perceptron's loss with a direction, without the Hessian
fifth     derivative of sin(x) exp(x^2), which must not grow as the terms of the formula do
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

from . import by_numba, calls, compiled, libraries, perceptron
from .case import Call, Cannot, Case, generator

TITLE = "Higher derivatives"
TEXT = (
    "The dense function is sum(tanh(A x)²) + log(1 + sum(x²)), A of 50 by 50. The product is that "
    "of the perceptron 784-256-256-10, batch 64, float32. *C* and *numba* are by hand."
)
TARGET = "faster than the best"


def cases(quick: bool) -> Iterator[Case]:
    """Hessians, product, fifth derivative."""
    x = np.linspace(-1.2, 1.1, 50)
    yield Case("Hessian of Rosenbrock, n = 50", rosenbrock(x))
    matrix = generator(8).normal(size=(50, 50)) / 7.0
    yield Case("Hessian of a dense function, n = 50", dense(matrix, x))
    yield Case("Hessian-vector product of a perceptron", product(), "float32")
    yield Case("fifth derivative of sin(x) exp(x²)", fifth(0.6))


def rosenbrock(x: Any) -> dict[str, Any]:
    """Contestants for a sparse Hessian."""
    f = calls.rosenbrock

    def hand(x: Any) -> Any:
        n = x.size
        out = np.zeros((n, n))
        flat = out.reshape(-1)
        flat[: -1 : n + 1] = 2.0 + 1200.0 * x[:-1] ** 2 - 400.0 * x[1:]
        flat[n + 1 :: n + 1] += 200.0
        flat[1 :: n + 1] = flat[n :: n + 1] = -400.0 * x[:-1]
        return out

    def casadi() -> Any:
        import casadi

        s = casadi.SX.sym("x", x.size)
        value = casadi.sum1(100.0 * (s[1:] - s[:-1] ** 2) ** 2 + (1.0 - s[:-1]) ** 2)
        return casadi.Function("h", [s], [casadi.hessian(value, s)[0]])

    def pytensor() -> Call:
        def build(pt: Any, x: Any) -> Any:
            from pytensor.gradient import hessian

            return hessian(f(x), x)

        return libraries.pytensor_call(build, x, mode="CVM")

    def autograd() -> Call:
        from autograd import hessian

        return Call(hessian(f), (x,))

    return {
        **common(f, x),
        "NumPy": lambda: Call(hand, (x,)),
        "numba": lambda: libraries.numba_call(by_numba.rosenbrock_hessian, x),
        **libraries.casadi(casadi, x),
        "PyTensor": pytensor,
        "autograd": autograd,
    }


def common(f: Any, x: Any, xp_for_jax: Any = None) -> dict[str, Any]:
    """The libraries that have a ``hessian``; ``f`` of one array, or a function of a namespace."""

    def of(xp: Any, *convert: Any) -> Any:
        return f(xp, *convert) if xp_for_jax else f

    def wengert() -> Call:
        import wengert as wg

        return Call(libraries.jit(wg.hessian(of(np, np.asarray))), (x,))

    def jax() -> Call:
        j = libraries.jax()
        return libraries.jax_call(j.hessian(of(j.numpy, j.numpy.asarray)), x)

    def torch() -> Call:
        t = libraries.torch()
        g = of(t, t.from_numpy)
        return Call(t.func.hessian(g), (t.from_numpy(x),))

    return {"wengert": wengert, "JAX": jax, "torch": torch}


def dense(matrix: Any, x: Any) -> dict[str, Any]:
    """Contestants for a dense Hessian."""

    def f(xp: Any, convert: Any) -> Any:
        a = convert(matrix)
        return lambda x: (xp.tanh(a @ x) ** 2).sum() + xp.log(1.0 + (x * x).sum())

    def hand(x: Any) -> Any:
        t = np.tanh(matrix @ x)
        slope = 1.0 - t * t
        out = (matrix.T * (2.0 * slope * (1.0 - 3.0 * t * t))) @ matrix
        inner = 1.0 / (1.0 + x @ x)
        out -= np.outer(x * (4.0 * inner * inner), x)
        out.reshape(-1)[:: x.size + 1] += 2.0 * inner
        return out

    def casadi() -> Any:
        import casadi

        s = casadi.SX.sym("x", x.size)
        value = casadi.sumsqr(casadi.tanh(casadi.DM(matrix) @ s)) + casadi.log(
            1.0 + casadi.sumsqr(s)
        )
        return casadi.Function("h", [s], [casadi.hessian(value, s)[0]])

    by_numpy = {"NumPy": lambda: Call(hand, (x,))}
    return {**common(f, x, True), **by_numpy, **libraries.casadi(casadi, x)}


def product() -> dict[str, Any]:
    """Contestants for a product with a Hessian."""
    parameters, x, labels = perceptron.data(64)
    random = generator(9)
    direction = [random.normal(size=p.shape).astype(np.float32) for p in parameters]

    def wengert() -> Call:
        import wengert as wg

        f = perceptron.wengert_loss()

        def run(p: Any, v: Any, x: Any, labels: Any) -> Any:
            return wg.hvp(lambda p: f(p, x, labels), (p,), (v,))

        return Call(libraries.jit(run), (parameters, direction, x, labels))

    def jax() -> Call:
        j = libraries.jax()
        f = perceptron.loss(j.numpy, lambda z: j.nn.log_softmax(z, axis=1))

        def run(p: Any, v: Any, x: Any, labels: Any) -> Any:
            return j.jvp(lambda p: j.grad(f)(p, x, labels), (p,), (v,))[1]

        return libraries.jax_call(run, parameters, direction, x, labels)

    def torch() -> Call:
        t = libraries.torch()
        f = perceptron.torch_loss(t)
        p, v = ([t.from_numpy(a) for a in arrays] for arrays in (parameters, direction))
        at = (t.from_numpy(x), t.from_numpy(labels))

        def run(p: Any, v: Any) -> Any:
            leaves = [a.requires_grad_() for a in p]
            bars = t.autograd.grad(f(leaves, *at), leaves, create_graph=True)
            return t.autograd.grad(bars, leaves, v)

        return Call(run, (p, v))

    def casadi() -> Call:
        raise Cannot("CasADi computes in float64 alone")

    def autograd() -> Call:
        import autograd.numpy as anp
        from autograd import grad
        from autograd.scipy.special import logsumexp

        f = perceptron.loss(anp, lambda z: z - logsumexp(z, axis=1, keepdims=True))

        def run(p: Any, v: Any, x: Any, labels: Any) -> Any:
            def along(p: Any) -> Any:
                bars = grad(f)(p, x, labels)
                return sum(anp.sum(a * b) for a, b in zip(bars, v, strict=True))

            return grad(along)(p)

        return Call(run, (parameters, direction, x, labels))

    return {"wengert": wengert, "JAX": jax, "torch": torch, "CasADi": casadi, "autograd": autograd}


def fifth(x: float) -> dict[str, Any]:
    """Contestants for the fifth derivative at a number."""

    def f(xp: Any) -> Any:
        return lambda x: xp.sin(x) * xp.exp(x * x)

    def times(grad: Any, f: Any) -> Any:
        return reduce(lambda g, _: grad(g), range(5), f)

    def wengert() -> Call:
        import wengert as wg

        return Call(libraries.jit(times(wg.grad, f(np))), (x,))

    def c() -> Call:
        function = compiled.library("fifth").fifth
        function.restype = ctypes.c_double
        return Call(function, (ctypes.c_double(x),))

    def jax() -> Call:
        j = libraries.jax()
        call = libraries.jax_call(times(j.grad, f(j.numpy)), x)
        return Call(call.function, (x,), call.ready)

    def torch() -> Call:
        t = libraries.torch()
        g = f(t)

        def run(x: float) -> Any:
            leaf = t.tensor(x, dtype=t.float64, requires_grad=True)
            out = g(leaf)
            for _ in range(5):
                (out,) = t.autograd.grad(out, leaf, create_graph=True)
            return out

        return Call(run, (x,))

    def pytensor() -> Call:
        def build(pt: Any, x: Any) -> Any:
            return reduce(lambda g, _: pt.grad(g, x), range(5), f(pt)(x))

        return libraries.pytensor_call(build, np.array(x), mode="CVM")

    def casadi() -> Any:
        import casadi

        s = casadi.SX.sym("x")
        g = reduce(lambda g, _: casadi.gradient(g, s), range(5), f(casadi)(s))
        return casadi.Function("f", [s], [g])

    def autograd() -> Call:
        import autograd.numpy as anp
        from autograd import grad

        return Call(times(grad, f(anp)), (x,))

    return {
        "wengert": wengert,
        "C": c,
        "numba": lambda: libraries.numba_call(by_numba.fifth, x),
        "JAX": jax,
        "torch": torch,
        "PyTensor": pytensor,
        **libraries.casadi(casadi, x),
        "autograd": autograd,
    }
