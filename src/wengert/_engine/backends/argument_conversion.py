"""Argument conversion: arrays fed to a graph, checked and cast to the specs of its inputs.

An array of the right shape and dtype is used unchanged.  A Python number or a list is converted to
the dtype of the input if that can represent it; an array is cast only if no information is lost.
Otherwise an error names the input and the remedy.

Copy on return: results that share memory with no other array.

A result of a run may be an input, a view of a variable, the same array as another result, or an
array with overlapping elements (`np.broadcast_to`); writing to it would change something else.
Reference counts tell whether an array or its base has other references, which is cheaper than an
analysis of the graph; only such arrays are copied.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.device_arrays import is_on_device
from wengert._engine.core.handle import Handle
from wengert._engine.core.spec import Spec
from wengert._engine.core.types import Array, Operand
from wengert.errors import ConversionError, DtypeError, ShapeError, TraceError, at, user_line

_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}  # a number may be converted to a higher rank
_PYTHON = (float, int, complex, bool)


def fitted(value: Any, spec: Spec, name: str) -> Any:
    """Convert a value to the spec of an input.

    Parameters
    ----------
    value : array_like or Tensor
    spec : Spec
        The spec of the input; its shape may have symbolic sizes.
    name : str
        The name of the input, for messages.

    Raises
    ------
    ShapeError, DtypeError
        The value does not match; the message names the input and the remedy.
    """
    kind = type(value)
    if kind is np.ndarray and value.dtype == spec.dtype and value.shape == spec.shape:
        return value if value.ndim else value[()]
    if kind is float and spec.weak and spec.dtype.kind == "f":
        return value
    if isinstance(value, Handle):
        value = _known(value, name)
        kind = type(value)
    array = _array(value, name)
    if array.ndim != len(spec.shape) or not _may_be(array.shape, spec.shape):
        raise ShapeError(
            f"{name} has shape {array.shape}, but the graph was built for {spec}. Trace again "
            f"for this shape, or name the lengths that vary{at(user_line())}."
        )
    if spec.weak:
        return _number(array, spec, name)
    if array.dtype != spec.dtype:
        array = _cast(array, spec, name, not isinstance(value, np.ndarray | np.generic))
    return array if array.ndim else array[()]


def _known(value: Handle, name: str) -> Any:
    node = value.node
    if node.is_traced:
        raise TraceError(
            f"{name} was given a tensor of a graph, {node.spec}, which has no value yet. Feed an "
            f"array, or call the graph itself{at(user_line())}."
        )
    return node.value


def _array(value: Operand | list[float], name: str) -> Any:
    if is_on_device(value):
        raise ConversionError(
            f"{name} was given an array in the memory of a graphics card, but this function runs "
            "on the processor. Compile it with backend='cuda', or pass a copy on the host, "
            f"wengert.device_get(x){at(user_line())}."
        )
    if isinstance(value, np.ma.MaskedArray) and value.mask is not np.ma.nomask:
        raise ConversionError(
            f"{name} was given a masked array, which is not supported. Fill it, x.filled(0.0), or "
            f"pass the mask as a separate input{at(user_line())}."
        )
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ShapeError(
            f"{name} cannot be converted to an array: {str(error).rstrip('.')}. Pass numbers in "
            f"rows of equal length{at(user_line())}."
        ) from error
    if array.dtype.kind not in _RANK:
        raise DtypeError(
            f"{name} was given {_spelled(value)}, which is neither a number nor a numeric array"
            f"{at(user_line())}."
        )
    return array


def _spelled(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"a {type(value).__name__}"


def _number(array: Any, spec: Spec, name: str) -> Any:
    """A Python number for an input that was one when the graph was built."""
    if _RANK[array.dtype.kind] > _RANK[spec.dtype.kind]:
        raise _refusal(array, spec, name)
    kind = next(t for t in _PYTHON if np.dtype(t).kind == spec.dtype.kind)
    return kind(array.item())


def _cast(array: Array, spec: Spec, name: str, weak: bool) -> Any:
    """An array in the dtype of the input; `weak` if its dtype is that of Python numbers."""
    if weak:
        if _RANK[array.dtype.kind] > _RANK[spec.dtype.kind] or not _in_range(array, spec.dtype):
            raise _refusal(array, spec, name)
    elif not np.can_cast(array.dtype, spec.dtype, "safe"):
        raise _refusal(array, spec, name)
    with np.errstate(all="ignore"):
        return array.astype(spec.dtype)


def _in_range(array: Any, dtype: np.dtype[Any]) -> bool:
    if dtype.kind not in "iu" or array.dtype.kind not in "iu" or array.size == 0:
        return True
    limits = np.iinfo(dtype)
    return bool(limits.min <= int(array.min()) and int(array.max()) <= limits.max)


def _refusal(array: Array, spec: Spec, name: str) -> DtypeError:
    given = f"{array.dtype}{list(array.shape) if array.ndim else ''}"
    return DtypeError(
        f"{name} is {given}, but the graph was built for {spec}. Cast it, "
        f"np.asarray(x, {str(spec.dtype)!r}), or build the graph for {array.dtype}"
        f"{at(user_line())}."
    )


def _may_be(shape: Sequence[int], wanted: Sequence[Any]) -> bool:
    return all(not isinstance(n, int) or n == m for m, n in zip(shape, wanted, strict=True))


_SCALARS: dict[type, type] = {float: np.float64, complex: np.complex128, bool: np.bool_}


def own(results: list[Any]) -> list[Any]:
    """Copy every array of a list that has other references; convert Python numbers to NumPy's.

    The caller must have no other reference to the results.
    """
    for i in range(len(results)):
        kind = type(results[i])
        if kind is np.ndarray:
            if not _is_alone(results, i):
                results[i] = results[i].copy()
        elif kind in _SCALARS:
            results[i] = _SCALARS[kind](results[i])
    return results


def _is_alone(results: list[Any], i: int) -> bool:
    if sys.getrefcount(results[i]) > _ALONE or not results[i].flags.writeable:
        return False
    base = results[i].base
    if base is None:
        return True
    if type(base) is not np.ndarray or base.base is not None:
        return False
    # A view: its base must have no other reference, and not be much larger.
    return sys.getrefcount(base) <= _BASE and 2 * results[i].nbytes >= base.nbytes


def _found(limit: str, results: list[Any]) -> int:
    """The reference count of an array with a single reference, as seen inside `_is_alone`."""
    for n in range(1, 20):
        globals()[limit] = n
        if _is_alone(results, 0):
            return n
    raise AssertionError("unknown behavior of reference counts in this Python interpreter")


_ALONE = _BASE = 0
_ALONE = _found("_ALONE", [np.empty(1)])
_BASE = _found("_BASE", [np.empty(2).reshape(1, 2)])
