"""Comparison of derivatives with finite differences, by autograd's names.

check_grads        both modes, to order two
check_vjp, check_jvp, check_equivalent
combo_check        check_grads of all combinations of arguments
scalar_close       whether two numbers agree to six digits
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from wengert._engine.core import pytree

from ...errors import CheckError
from ...testing import check_grads as _check_grads
from .vspace import vspace
from .wrap_util import unary_to_nary

__all__ = [
    "check_equivalent",
    "check_grads",
    "check_jvp",
    "check_vjp",
    "combo_check",
    "scalar_close",
]
TOLERANCE = 1e-6


@unary_to_nary
def check_grads(
    f: Callable[..., Any], x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2
) -> None:
    """``check_grads(f, argnum=0, modes=("fwd", "rev"), order=2)(*args)``.

    Like autograd's it checks one random direction, to which every entry contributes.

    Raises
    ------
    CheckError
        An AssertionError; the message says what differs.
    """
    try:
        _check_grads(f, (x,), order=order, modes=modes, entries=False)
    except CheckError as error:
        raise CheckError(_named_as_in_autograd(str(error))) from None


def _named_as_in_autograd(message: str) -> str:
    """A message with its beginning as in autograd: "Derivative (VJP) check of vjp_f failed"."""
    found = re.match(r"((?:the [vj][jv]p of )*)(.*?), (reverse|forward) mode", message)
    if found is None:
        return message
    outer, name, mode = found.groups()
    name = outer.replace("the ", "").replace(" of ", "_") + name
    return f"Derivative ({'VJP' if mode == 'reverse' else 'JVP'}) check of {name} failed: {message}"


def check_vjp(f: Callable[..., Any], x: Any) -> None:
    """Compare reverse mode with finite differences."""
    check_grads(f, modes=["rev"], order=1)(x)


def check_jvp(f: Callable[..., Any], x: Any) -> None:
    """Compare forward mode with finite differences."""
    check_grads(f, modes=["fwd"], order=1)(x)


def check_equivalent(x: Any, y: Any) -> None:
    """Require two values of one vector space that are equal up to rounding.

    Raises
    ------
    CheckError
        They differ.
    """
    if vspace(x) != vspace(y):
        raise CheckError(f"{vspace(x)} and {vspace(y)} are different vector spaces.")
    for a, b in zip(pytree.flatten(x)[0], pytree.flatten(y)[0], strict=True):
        if not np.allclose(a, b, rtol=1e-6, atol=1e-6):
            raise CheckError(f"{a} and {b} differ.")


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """``combo_check(fun, argnums, modes=...)(args0, args1, ..., option=[...])``.

    Checks all combinations of the elements of the arguments, which are lists.
    """

    def of_lists(*lists: Any, **options: Any) -> None:
        for chosen in product(*lists):
            for values in product(*options.values()):
                given = dict(zip(options, values, strict=True))
                check_grads(fun, *args, **kwargs)(*chosen, **given)

    return of_lists


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers differ by at most 1e-6, absolutely or relative to their sum."""
    return bool(abs(a - b) < TOLERANCE or abs(a - b) / abs(a + b) < TOLERANCE)
