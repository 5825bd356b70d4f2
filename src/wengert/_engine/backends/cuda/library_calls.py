"""Calls: operations that are computed as a whole, by functions of a library on the device.

An operation runs as it does in the interpreter: its NumPy functions are called with arrays of the
device, which has its own (cuBLAS, cuSOLVER, cuFFT, sorting). Where the device has no such function,
the operation is a host callback: its operands are copied to the host and its results back.

Loops and branches without kernels are run by the host (stepped_loops.py).

    called             the results of a node
    runs_on_host       whether its operation runs on the host
    is_run_by_steps    whether the steps of a loop run on the device
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.backends.interpreter import refusal
from wengert._engine.core.node_properties import substituted
from wengert._engine.core.op import lookup
from wengert._engine.core.replaced_errors import raise_for
from wengert._engine.core.thread_state import call_ignoring_errors
from wengert.errors import MatrixError

from ..registry import backend
from .convolutions import convolved, correlated
from .device import Device, Failed
from .host_callbacks import is_on_host
from .normal_kernels import normal_numbers
from .packed_factors import (
    factorized,
    factorized_or_nan,
    ordered,
    solved,
    solved_packed,
    solved_triangular,
)
from .random_kernels import bounded_integers, drawn, folded_key, integers_below, split_keys
from .run_status import checked
from .scan_kernels import scanned
from .scatter_kernels import OutOfRange, scattered, scattered_along, written
from .sparse_kernels import sparse_product
from .stepped_loops import BodyRuns, checkpointed, choice, replay, scan, while_
from .window_kernels import pooled

if TYPE_CHECKING:
    from wengert._engine.core.node import Node


# What CuPy raises where it lacks a function, a dtype, or an argument of one; a plain RuntimeError
# where cuSOLVER is too old for it (eig). An error of its linear
# algebra does not say what is wrong with a matrix; that of the host does.
_LACKING = (TypeError, AttributeError, NotImplementedError, ValueError, MatrixError)


def called(program: BodyRuns, node: Node, operands: Sequence[Any], sizes: Mapping[str, int]) -> Any:
    """The result of a node, or a tuple of them; on the device or on the host."""
    op: Any = node.op
    params = substituted(node.params, sizes)
    try:
        if hasattr(op, "run_by"):
            return _of_bodies(program, node, operands, params, sizes)
        own = _OWN.get(op.name)
        if own is not None:
            try:
                made = own(op.name, program.device, operands, _with_result(node, params, sizes))
            except _LACKING as error:
                return _on_host(program, node, operands, params, error)
            if made is not NotImplemented:
                return made
        with_status = _WITH_STATUS.get(op.name)
        if with_status is not None:
            made = with_status(op.name, program.device, program.status, operands, params)
            if made is not NotImplemented:
                return made
        if is_on_host(node):
            return _on_host(program, node, operands, params)
        try:
            with program.device.calling():
                return call_ignoring_errors(op.run, *operands, **params)
        except _LACKING as error:
            return _on_host(program, node, operands, params, error)
        except RuntimeError as error:
            if type(error) is not RuntimeError:  # an error of CUDA, which the host may not hide
                raise
            return _on_host(program, node, operands, params, error)
    except (OutOfRange, Failed, MemoryError):
        raise
    except Exception as error:
        raise_for(error, refusal(node, 0, error))


def _on_host(
    program: BodyRuns,
    node: Node,
    operands: Sequence[Any],
    params: Mapping[str, Any],
    reason: Exception | None = None,
) -> Any:
    """The result of a node whose operands are copied to the host."""
    device, op = program.device, node.op
    program.callbacks.note(node, reason)
    values = [device.get(x)[()] if device.owns(x) else x for x in operands]
    run: Any = op.run
    if op.effects.side_effect and "placed" in dir(op):
        run = op.placed(node)
    return call_ignoring_errors(run, *values, **params)


# ---- loops and branches --------------------------------------------------------------------------


def _of_bodies(
    program: BodyRuns,
    node: Node,
    operands: Sequence[Any],
    params: dict[str, Any],
    sizes: Mapping[str, int],
) -> Any:
    op: Any = node.op
    if is_run_by_steps(node):
        return _LOOPS[op.name](program, operands, params, sizes)
    device = program.device
    program.callbacks.note(node)
    values = [device.get(x)[()] if device.owns(x) else x for x in operands]
    interpreter: Any = backend("interpret")
    runs = functools.partial(interpreter.compile_body, sizes=sizes)
    return call_ignoring_errors(op.run_by, functools.lru_cache(runs), *values, **params)


def _with_result(node: Node, params: dict[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Parameters with the shape and dtype of a draw, or of the result."""
    given = dict(params)
    if "number" not in params and type(node.spec) is not tuple:
        result = {"shape": node.spec.shape, "dtype": node.spec.dtype}
        given |= {**substituted(result, sizes), "of_op": params}
    return given


def _by_library(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """An operation of the kind "indexing" that reads at no positions."""
    op: Any = lookup(name)
    with device.calling():
        return call_ignoring_errors(op.run, *map(device.put, operands), **params["of_op"])


_OWN: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("random_uniform", "random_tail", "random_bits"), drawn),
    "random_normal": normal_numbers,
    "random_integers": bounded_integers,
    "random_below": integers_below,
    "random_split": split_keys,
    "random_fold": folded_key,
    "argsort": _by_library,
    "searchsorted": _by_library,
    **dict.fromkeys(("scatter", "scatter_add", "setitem"), scattered),
    "solve": solved,
    "solve_triangular": solved_triangular,
    "writes": written,
    "scatter_along": scattered_along,
    **dict.fromkeys(
        ("csr_matmul", "csr_transposed_matmul", "csr_sampled_matmul", "csr_cotangents"),
        sparse_product,
    ),
    **dict.fromkeys(("signal.convolve", "signal.slide"), correlated),
    **dict.fromkeys(("running", "recurrence", "ndimage.decaying_sum"), scanned),
    "lu_packed": factorized,
    "lu_or_nan": factorized_or_nan,
    "rows_exchanged": ordered,
    **dict.fromkeys(("convolution", "convolution_input", "convolution_weight"), convolved),
    **dict.fromkeys(
        (
            *("sum_pool", "sum_pool_adjoint", "max_pool", "max_pool_indices"),
            *("max_pool_tangent", "max_pool_adjoint"),
        ),
        pooled,
    ),
}
# Those that say in the status of the run that they have failed.
_WITH_STATUS: dict[str, Callable[..., Any]] = {
    "solve_packed": solved_packed,
    **dict.fromkeys(("accepted", "refuse_residual", "refuse_singular"), checked),
}
# Loops and branches whose bodies are programs of the device.
_LOOPS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "scan": scan,
    "while": while_,
    "cond": choice,
    "switch": choice,
    "checkpointed": checkpointed,
    "replay": replay,
}


def runs_on_host(node: Node) -> bool:
    """Whether the operation of a node always runs on the host."""
    return _OWN.get(node.op.name) is None and is_on_host(node)


def is_run_by_steps(node: Node) -> bool:
    """Whether the steps of a loop, or the branch, run on the device."""
    return _LOOPS.get(node.op.name) is not None and "names" not in node.params
