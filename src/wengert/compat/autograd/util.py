"""Helpers of `autograd.util`: tuples with some elements replaced, and a check of a gradient.

subval, subvals   a tuple with one element, or some elements, replaced
func              the function of an unbound method: itself
quick_grad_check  check_grads of the first argument
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .test_util import check_grads

__all__ = ["func", "quick_grad_check", "subval", "subvals"]


def subvals(x: Sequence[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """`x` as a tuple, with the elements of these indices replaced."""
    replaced = list(x)
    for i, v in ivs:
        replaced[i] = v
    return tuple(replaced)


def subval(x: Sequence[Any], i: int, v: Any) -> tuple[Any, ...]:
    """`x` as a tuple, with element `i` replaced by `v`."""
    return subvals(x, [(i, v)])


def func(f: Any) -> Any:
    """The function itself."""
    return f


def quick_grad_check(
    fun: Callable[..., Any],
    arg0: Any,
    extra_args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    **tolerances: Any,
) -> None:
    """Compare the gradient with respect to the first argument with finite differences.

    Parameters
    ----------
    fun : callable
    arg0 : array or container of arrays
        The first argument.
    extra_args, kwargs
        The other arguments.
    **tolerances
        ``eps``, ``rtol``, ``atol``, ``verbose`` and ``rs`` are accepted and not used: steps and
        tolerances follow from the error of the differences.

    Raises
    ------
    CheckError
        They differ.
    """
    check_grads(lambda x: fun(x, *extra_args, **dict(kwargs or {})), modes=["rev"], order=1)(arg0)
