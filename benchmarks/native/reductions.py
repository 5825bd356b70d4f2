"""logsumexp and what is made of it: the cross-entropy of rows of logits.

Each needs the largest element before the sum; the gradient of both is the softmax, whose
exponentials a good program has already computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import by_numba, compiled, libraries
from .case import Call, Cannot, Case, generator

TITLE = "Reductions: logsumexp and cross-entropy"
TEXT = (
    "logsumexp: the value alone, and value with gradient. Cross-entropy: the mean over 4,096 rows "
    "of 1,000 logits, and its gradient, each library by its own log_softmax; *C*, *numba* and "
    "*NumPy* by hand."
)
TARGET = "1.5 times faster than the best peer"


def cases(quick: bool) -> Iterator[Case]:
    """One row, a batch of rows, a batch with labels."""
    random = generator(4)
    for shape in ((1, 1_000_000), (1_000, 1_000)):
        x = random.normal(size=shape) * 3.0
        x = x[0] if shape[0] == 1 else x
        text = f"logsumexp of {x.shape if x.ndim == 2 else '1e6'}"
        yield Case(text, summed(x, value=True, gradient=False))
        yield Case(f"{text} with gradient", summed(x, value=True, gradient=True))
    rows = 512 if quick else 4_096
    for dtype in ("float64", "float32"):
        z = (random.normal(size=(rows, 1_000)) * 3.0).astype(dtype)
        labels = random.integers(0, 1_000, size=rows)
        yield Case(f"cross-entropy of ({rows}, 1000), {dtype}", entropy(z, labels), dtype)


def numpy_logsumexp(x: Any) -> Any:
    """Along the last axis."""
    top = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=-1)) + top[..., 0]


def numpy_with_gradient(x: Any) -> Any:
    """Value, and the gradient of its sum."""
    top = x.max(axis=-1, keepdims=True)
    e = x - top
    np.exp(e, out=e)
    total = e.sum(axis=-1, keepdims=True)
    e /= total
    return (np.log(total) + top)[..., 0], e


def summed(x: Any, value: bool, gradient: bool) -> dict[str, Any]:
    """Contestants for logsumexp along the last axis; several rows' gradients are of their sum."""

    def with_vjp(vjp: Any, ones_like: Any, f: Any) -> Any:
        def run(x: Any) -> Any:
            out, pullback = vjp(f, x)
            return out, pullback(ones_like(out))[0]

        return run if gradient else f

    def wengert() -> Call:
        import wengert as wg

        def f(x: Any) -> Any:
            return wg.numpy.logsumexp(x, axis=-1)

        def vjp(f: Any, x: Any) -> Any:
            out, pullback = wg.vjp(f, x)
            return out, lambda ones: _tuple(pullback(ones))

        return Call(libraries.jit(with_vjp(vjp, np.ones_like, f)), (x,))

    def c() -> Call:
        rows, n = (1, x.size) if x.ndim == 1 else x.shape
        out, bar = np.empty(rows), np.empty_like(x)
        arguments = [compiled.size(rows), compiled.size(n), *map(compiled.address, (x, out, bar))]
        library = compiled.library("logsumexp")
        if gradient:
            return Call(library.logsumexp_gradient, tuple(arguments), numbers=lambda _: (out, bar))
        return Call(library.logsumexp, tuple(arguments[:-1]), numbers=lambda _: out)

    def jax() -> Call:
        j = libraries.jax()
        f = with_vjp(j.vjp, j.numpy.ones_like, lambda x: j.nn.logsumexp(x, axis=-1))
        return libraries.jax_call(f, x)

    def torch(compile: bool) -> Call:
        t = libraries.torch()
        if gradient:
            return libraries.torch_gradient(lambda x: t.logsumexp(x, -1), x, compile=compile)
        f = t.compile(lambda x: t.logsumexp(x, -1)) if compile else lambda x: t.logsumexp(x, -1)
        return Call(f, (t.from_numpy(x),))

    def pytensor() -> Call:
        def build(pt: Any, x: Any) -> Any:
            out = pt.logsumexp(x, axis=-1)
            return [out, pt.grad(out.sum(), x)] if gradient else out

        return libraries.pytensor_call(build, x)

    def casadi() -> Any:
        import casadi as c

        if x.ndim == 2:
            raise Cannot("CasADi has logsumexp of a vector, and not along an axis")
        s = c.MX.sym("x", x.size)
        value = c.logsumexp(s)
        return c.Function("f", [s], [value, c.gradient(value, s)] if gradient else [value])

    def autograd() -> Call:
        from autograd import make_vjp
        from autograd.scipy.special import logsumexp

        f = lambda x: logsumexp(x, axis=-1)  # noqa: E731
        if not gradient:
            return Call(f, (x,))

        def run(x: Any) -> Any:
            pullback, value = make_vjp(f)(x)
            return value, pullback(np.ones_like(value))

        return Call(run, (x,))

    hand = numpy_with_gradient if gradient else numpy_logsumexp
    loop = by_numba.logsumexp_gradient if gradient else by_numba.logsumexp
    return {
        "wengert": wengert,
        "C": c,
        "numba": lambda: libraries.numba_call(loop, np.atleast_2d(x)),
        "NumPy": lambda: Call(hand, (x,)),
        "JAX": jax,
        "torch": lambda: torch(False),
        "torch.compile": lambda: torch(True),
        "PyTensor": pytensor,
        **libraries.casadi(casadi, x),
        "autograd": autograd,
    }


def _tuple(value: Any) -> Any:
    return value if isinstance(value, tuple) else (value,)


def entropy(z: Any, labels: Any) -> dict[str, Any]:
    """Contestants for the mean cross-entropy and its gradient."""
    rows, n = z.shape
    dtype = str(z.dtype)

    def wengert() -> Call:
        import wengert as wg

        def loss(z: Any, labels: Any) -> Any:
            return -np.mean(wg.numpy.log_softmax(z, axis=1)[np.arange(rows), labels])

        return libraries.wengert(loss, z, labels)

    def hand(z: Any, labels: Any) -> Any:
        value, bar = numpy_with_gradient(z)
        at = (np.arange(rows), labels)
        loss = (value - z[at]).mean()
        bar[at] -= 1.0
        bar /= rows
        return loss, bar

    def c() -> Call:
        bar = np.empty_like(z)
        function = compiled.library("logsumexp", dtype).cross_entropy
        function.restype = type(compiled.real(0.0, dtype))
        pointers = map(compiled.address, (z, labels, bar))
        arguments = (compiled.size(rows), compiled.size(n), *pointers)
        return Call(function, arguments, numbers=lambda value: (value, bar))

    def jax() -> Call:
        j = libraries.jax()

        def loss(z: Any, labels: Any) -> Any:
            return -j.nn.log_softmax(z, axis=1)[j.numpy.arange(rows), labels].mean()

        return libraries.jax_gradient(loss, z, labels)

    def torch(compile: bool) -> Call:
        t = libraries.torch()
        at = t.from_numpy(labels)
        return libraries.torch_gradient(
            lambda z: t.nn.functional.cross_entropy(z, at), z, compile=compile
        )

    def pytensor() -> Call:
        def loss(pt: Any, z: Any, labels: Any) -> Any:
            return -pt.special.log_softmax(z, axis=1)[pt.arange(rows), labels].mean()

        return libraries.pytensor_gradient(loss, z, labels)

    def casadi() -> Call:
        raise Cannot("CasADi has no logsumexp along an axis, and reads no elements by labels")

    def autograd() -> Call:
        import autograd.numpy as anp
        from autograd.scipy.special import logsumexp

        def loss(z: Any, labels: Any) -> Any:
            return -anp.mean(z[np.arange(rows), labels] - logsumexp(z, axis=1))

        return libraries.autograd_gradient(loss, z, labels)

    return {
        "wengert": wengert,
        "C": c,
        "numba": lambda: libraries.numba_call(by_numba.cross_entropy, z, labels),
        "NumPy": lambda: Call(hand, (z, labels)),
        "JAX": jax,
        "torch": lambda: torch(False),
        "torch.compile": lambda: torch(True),
        "PyTensor": pytensor,
        "CasADi": casadi,
        "autograd": autograd,
    }
