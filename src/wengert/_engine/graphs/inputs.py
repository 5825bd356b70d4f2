"""Inputs of graphs that are built by hand.

spec       shape and dtype of an array
input      a tensor without a value: an argument of a graph
variable   a tensor with a value, which graphs read and update
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.device_arrays import host_values
from wengert._engine.core.handle import Handle, leaf, wrap
from wengert._engine.core.spec import Spec, is_inexact
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.symbolic.parsing import dim
from wengert._engine.core.tracing import placeholder
from wengert._engine.core.validation import spelled, word
from wengert._engine.tensor.operand_conversion import returned_value
from wengert.errors import DtypeError, ShapeError, at, user_line

Lengths = int | str | Dim | Sequence[int | str | Dim]


def spec(shape: Lengths = (), dtype: str | type[Any] | np.dtype[Any] = "float64") -> Spec:
    """Shape and dtype of an array, for tracing.

    Parameters
    ----------
    shape : length or sequence of lengths
        A length is an integer, a name (a symbolic size of at least one), or an expression of names
        such as ``"2*n + 1"``. Axes with the same name have the same length.
    dtype : dtype, default float64

    Returns
    -------
    Spec

    Raises
    ------
    ShapeError
        A length is negative, or is not a size.
    DtypeError
        The dtype is not numeric.

    Examples
    --------
    >>> import wengert as wg
    >>> print(wg.spec(("n", 3)))
    float64[n,3]
    """
    try:
        kind = np.dtype(dtype)
    except TypeError as error:
        raise DtypeError(f"dtype={dtype!r}: {error}{at(user_line())}.") from error
    if kind.kind not in "biufc":
        raise DtypeError(f"dtype={dtype!r}: its elements must be numbers{at(user_line())}.")
    single = isinstance(shape, int | str | Dim | np.integer) or not isinstance(shape, Iterable)
    lengths: Any = (shape,) if single else shape
    return Spec(tuple(map(_length, lengths)), kind)


def _length(n: Any) -> Any:
    if isinstance(n, Dim):
        return n
    if isinstance(n, str):
        return dim(n)
    try:
        number = operator.index(n)
    except TypeError as error:
        raise ShapeError(
            f"{n!r} is not a length. Give an integer, or a name in quotes{at(user_line())}."
        ) from error
    if number < 0:
        raise ShapeError(
            f"a length cannot be {number}. Give a length of 0 or more{at(user_line())}."
        )
    return number


def input(name: str, shape: Lengths = (), dtype: str = "float64") -> Any:
    """A tensor without a value: an argument of a graph that is built by hand.

    Parameters
    ----------
    name : str
        The name of the argument and of its node.
    shape, dtype
        As in `spec`.

    Returns
    -------
    Tensor
        A tensor; operations on it are recorded, not computed.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.input("x", shape=("n",))
    >>> f = wg.computation(np.sum(x * x), x)
    >>> float(f(np.array([1.0, 2.0]))), float(f(np.ones(5)))
    (5.0, 5.0)
    """
    node = placeholder(spec(shape, dtype), word(name, "the name of an input"))
    node.note(by_hand=True)  # it can be the key of a dictionary of values
    return wrap(node)


def variable(value: Any, name: str | None = None, *, differentiable: bool | None = None) -> Any:
    """A tensor with a value, which graphs read whenever they run and may update.

    Parameters
    ----------
    value : array_like
        The initial value; copied.
    name : str, optional
    differentiable : bool, optional
        Whether it is a leaf that requires a gradient; by default, if its dtype is inexact.

    Examples
    --------
    >>> import wengert as wg
    >>> count = wg.variable(0, "count")
    >>> step = wg.computation(count, updates={count: count + 1})
    >>> [int(step()) for _ in range(3)], int(count)
    ([0, 1, 2], 3)
    """
    if isinstance(value, Handle):
        value = returned_value(value, "a variable")
    try:
        array = np.array(host_values(value))
    except ValueError as error:
        raise ShapeError(
            f"a variable of {spelled(value)}: {str(error).rstrip('.')}. Give numbers in rows of "
            f"equal length{at(user_line())}."
        ) from error
    if array.dtype.kind not in "biufc":
        raise DtypeError(
            f"a variable of {array.dtype}: its elements must be numbers{at(user_line())}."
        )
    if differentiable is None:
        differentiable = is_inexact(array.dtype)
    tensor: Any = object.__new__(_handle_class())
    tensor.node = leaf(array, tensor, differentiable)
    tensor.node.note(symbolic=True)
    if name is not None:
        tensor.node.note(name=word(name, "the name of a variable"))
    return tensor


def _handle_class() -> type:
    return type(wrap(placeholder(Spec((), np.dtype(float)))))
