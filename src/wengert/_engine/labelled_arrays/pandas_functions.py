"""NumPy's functions of `SeriesTensor` and `TableTensor`: what they do to objects of pandas.

`np.sum` and a few others call the method of the object, so that NaN is skipped; `np.std` and
`np.var` divide by n, also for objects of pandas.  `np.flip` and others return objects of pandas,
and are refused here.  All others convert their arguments to arrays.

    call_function   the result of a function of NumPy
    call_ufunc      the result of a ufunc
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.labelled_arrays import LabelledTensor, is_of_pandas
from wengert.errors import OperandError, at, user_line

from .pandas_operands import elementwise, given, product
from .pandas_reductions import METHODS

_OF_METHODS = {*METHODS, "cumsum", "cumprod", "clip", "round"} - {"median"}
_SPELLED = {"amin": "min", "amax": "max", "around": "round"}
_OF_PANDAS = frozenset(
    """argmax argmin argpartition argsort choose compress diagonal flip nonzero partition put ravel
    repeat resize searchsorted squeeze swapaxes take trace transpose""".split()
)


def call_function(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``func(*args, **kwargs)``, where an argument is a SeriesTensor or a TableTensor."""
    name = _SPELLED.get(func.__name__, func.__name__)
    if args and isinstance(args[0], LabelledTensor):
        if name in _OF_METHODS:
            return _method(name, args, kwargs)
        if name in _OF_PANDAS:
            raise OperandError(
                f"numpy.{name} of a {args[0].__class__.__name__} with traced values is not "
                "supported, since its result would be an object of pandas. Use the values, "
                f"x.to_numpy(){at(user_line())}."
            )
    return func(*map(_values, args), **{k: _values(a) for k, a in kwargs.items()})


def _method(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, *rest = args
    options = {k: a for k, a in kwargs.items() if a is not None and k not in ("keepdims", "where")}
    if kwargs.get("keepdims") is True or "where" in kwargs or "out" in options:
        raise OperandError(
            f"numpy.{name} of an object of pandas takes neither keepdims, where nor out. Use the "
            f"values, x.to_numpy(){at(user_line())}."
        )
    if name in ("clip", "round"):
        return getattr(x, name)(*rest, **options)
    if "axis" not in options and not rest:
        options["axis"] = None if name not in ("cumsum", "cumprod") else 0
    if name in ("std", "var"):
        options.setdefault("ddof", 0)
    return getattr(x, name)(*rest, **options)


def _values(x: Any) -> Any:
    if isinstance(x, LabelledTensor) or is_of_pandas(x):
        return given(x)[1]
    if type(x) in (list, tuple):
        return type(x)(map(_values, x))
    return x


def call_ufunc(ufunc: np.ufunc, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a ufunc, with the labels of its operands."""
    if method != "__call__":
        return getattr(ufunc, method)(*map(_values, args), **kwargs)
    if kwargs:
        raise OperandError(
            f"numpy.{ufunc.__name__} of an object of pandas with traced values takes no "
            f"{', '.join(kwargs)}. Use the values, x.to_numpy(){at(user_line())}."
        )
    if ufunc is np.matmul:
        return product(*args)
    return elementwise(ufunc, *args)
