"""One function handed to every library, compiled as its users would.

A function of a workload is written once, over a namespace ``xp`` that is NumPy's or has its names,
and takes and returns arrays.  Each helper returns a Call of its compiled value and gradient;
arguments are the library's own arrays, made beforehand.  Libraries are imported here only,
when asked for, because one that is missing is left out by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import compiled
from .case import Call, Cannot
from .environment import threads

Function = Callable[..., Any]  # of arrays, returns one number


# ---- wengert -------------------------------------------------------------------------------------


def has_jit() -> bool:
    """Whether this version of wengert compiles; one that does not is measured eagerly."""
    import wengert as wg

    return hasattr(wg, "jit")


def jit(function: Function) -> Function:
    """``wg.jit`` of a function."""
    import wengert as wg

    return wg.jit(function) if has_jit() else function


def wengert(function: Function, *arguments: Any, argnums: Any = 0, value: bool = True) -> Call:
    """``wg.jit(wg.value_and_grad(f))`` of plain arrays or numbers."""
    import wengert as wg

    transform = wg.value_and_grad if value else wg.grad
    return Call(jit(transform(function, argnums)), arguments)


# ---- JAX -----------------------------------------------------------------------------------------


def jax() -> Any:
    """JAX with float64 allowed."""
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def jax_call(function: Function, *arguments: Any) -> Call:
    """``jax.jit(f)`` of arrays on the device."""
    j = jax()
    placed = tuple(j.tree.map(j.numpy.asarray, a) for a in arguments)
    return Call(j.jit(function), placed, Ready())


class Ready:
    """Waits for JAX's results; ``of`` a first result is what waits for its like at least cost."""

    def __call__(self, result: Any) -> Any:
        """All arrays of a nest."""
        return jax().block_until_ready(result)

    def of(self, result: Any) -> Function:
        """An array's own method; of several the first array, as one program computes them all."""
        j = jax()
        if isinstance(result, j.Array):
            return type(result).block_until_ready  # type: ignore[no-any-return]
        if not isinstance(result, tuple | list) or not isinstance(result[0], j.Array):
            return self

        def first(result: Any) -> Any:
            result[0].block_until_ready()
            return result

        return first


def jax_sparse(matrix: Any) -> Function:
    """The sparse array of JAX with the structure of a matrix, as a function of the elements."""
    from jax.experimental import sparse

    j = jax()
    indices, indptr = j.numpy.asarray(matrix.indices), j.numpy.asarray(matrix.indptr)
    return lambda data: sparse.BCSR((data, indices, indptr), shape=matrix.shape)


def jax_gradient(function: Function, *arguments: Any, argnums: Any = 0, value: bool = True) -> Call:
    """``jax.jit(jax.value_and_grad(f))``."""
    j = jax()
    transform = j.value_and_grad if value else j.grad
    return jax_call(transform(function, argnums), *arguments)


# ---- PyTorch -------------------------------------------------------------------------------------


def torch() -> Any:
    """PyTorch on as many threads as this process was given."""
    import torch

    torch.set_num_threads(threads())
    return torch


def torch_gradient(
    function: Function,
    *arguments: Any,
    by: Sequence[int] = (0,),
    compile: bool = False,
    value: bool = True,
) -> Call:
    """Forward, then ``torch.autograd.grad``; of an array of values the sum is differentiated."""
    t = torch()
    placed = [t.from_numpy(np.array(a)) if isinstance(a, np.ndarray) else a for a in arguments]
    leaves = [placed[i].requires_grad_() for i in by]
    forward = t.compile(function, dynamic=False) if compile else function
    pick = (lambda gradients: gradients[0]) if len(by) == 1 else (lambda gradients: gradients)

    def run(*args: Any) -> Any:
        out = forward(*args)
        ones = None if out.ndim == 0 else t.ones_like(out)
        gradients = pick(t.autograd.grad(out, leaves, ones))
        return (out, gradients) if value else gradients

    return Call(run, tuple(placed))


# ---- HIPS autograd -------------------------------------------------------------------------------


def autograd_gradient(function: Function, *arguments: Any, value: bool = True) -> Call:
    """``autograd.value_and_grad(f)``."""
    from autograd import grad, value_and_grad

    return Call((value_and_grad if value else grad)(function), arguments)


# ---- numba ---------------------------------------------------------------------------------------


def numba_call(function: Function, *arguments: Any, fast: bool = True) -> Call:
    """``numba.njit(f)`` of a function with its derivatives by hand; ``fast`` as -ffast-math is."""
    from numba import njit

    return Call(njit(fastmath=fast)(function), arguments)


# ---- CasADi --------------------------------------------------------------------------------------


def casadi(make: Callable[[], Any], *arguments: Any) -> dict[str, Callable[[], Call]]:
    """``make()``, a ``casadi.Function``: as it is, and as C (`casadi_compiled`).

    Its arrays are columns of float64 (``casadi.DM``), which results are and arguments are made
    beforehand, as those of every library.
    """

    def called(compile: bool) -> Call:
        import casadi

        function = casadi_compiled(make()) if compile else make()
        return Call(function, tuple(casadi.DM(np.asarray(a)) for a in arguments))

    return {"CasADi": lambda: called(False), "CasADi, compiled": lambda: called(True)}


def casadi_compiled(function: Any) -> Any:
    """CasADi's generated C, compiled by gcc -O3 -march=native and loaded as its users do."""
    import casadi

    generator = casadi.CodeGenerator("generated.c")
    generator.add(function)
    return casadi.external(function.name(), str(compiled.generated(generator.dump())))


def casadi_buffers(function: Any, x: Any) -> Call:
    """A function of one array without conversions: it reads the array and writes another."""
    out = np.zeros(function.size1_out(0))
    buffer, evaluate = function.buffer()
    given = np.array(x, np.float64, ndmin=1)
    buffer.set_arg(0, memoryview(given))
    buffer.set_res(0, memoryview(out))
    # The default keeps the owners alive; the call takes nothing.
    return Call(lambda _keep=(function, buffer, given): evaluate(), (), numbers=lambda _: out)


def casadi_gradient(function: Function, *arguments: Any, by: Sequence[int] = (0,)) -> Any:
    """Contestants: value and gradient of ``function(casadi, *symbols)``, or of their sum."""

    def make() -> Any:
        import casadi

        if any(np.asarray(a).dtype == np.float32 for a in arguments):
            raise Cannot("CasADi computes in float64 alone")
        symbols = [casadi.MX.sym(f"x{i}", np.size(a)) for i, a in enumerate(arguments)]
        value = function(casadi, *symbols)
        total = casadi.sum1(value) if value.numel() > 1 else value
        gradients = [casadi.gradient(total, symbols[i]) for i in by]
        return casadi.Function("f", symbols, [value, *gradients])

    return casadi(make, *arguments)


# ---- PyTensor ------------------------------------------------------------------------------------


def pytensor_call(build: Function, *arguments: Any, mode: str = "NUMBA") -> Call:
    """A compiled function of ``build(pt, *symbols)``, which trusts the types of its arguments."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no BLAS is linked to its C code
        import pytensor
        import pytensor.tensor as pt

        placed = tuple(np.asarray(a) for a in arguments)
        symbols = [pt.tensor(dtype=str(a.dtype), shape=(None,) * a.ndim) for a in placed]
        function = pytensor.function(
            symbols, build(pt, *symbols), mode=mode, trust_input=True, on_unused_input="ignore"
        )
    return Call(function, placed)


def pytensor_gradient(
    function: Function, *arguments: Any, mode: str = "NUMBA", value: bool = True
) -> Call:
    """Value and gradient with respect to the first argument; ``function(pt, *symbols)``."""

    def build(pt: Any, *symbols: Any) -> Any:
        out = function(pt, *symbols)
        gradient = pt.grad(out, symbols[0])
        return [out, gradient] if value else gradient

    return pytensor_call(build, *arguments, mode=mode)
