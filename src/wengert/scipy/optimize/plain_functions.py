"""The functions of scipy.optimize that are called with plain arrays only.

A tensor that is differentiated or traced is refused, as an argument and as a result of a function
that is an argument, with the function to use instead; one that depends on nothing is its value.
Some of these functions would run with tensors, and return constants: a golden section search does
not depend on the values of the function except for comparisons.

    plain_function  SciPy's function of a name
    REMEDIES        what to use instead, by name
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import scipy.optimize

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.dim import Dim
from wengert.errors import ArgumentError, at, user_line

REMEDIES = {
    "approx_fprime": "Use wengert.grad(f)(x) or wengert.jacobian(f)(x), which are exact",
    "bracket": "Use minimize_scalar(f), which finds the bracket",
    "brute": "Use differential_evolution(f, bounds), or minimize from the best point of a grid",
    "check_grad": "Use wengert.testing.check_grads",
    "line_search": "Use minimize; or detach the arguments and the results of the functions",
    "linprog_verbose_callback": "Print with wengert.debug_print",
    "quadratic_assignment": "Detach the matrices, and index them with the result: "
    "np.sum(A * B[p[:, None], p])",
}


@functools.cache
def plain_function(name: str) -> Any:
    """SciPy's function of a name, for plain arrays; a class, or a module, as it is."""
    theirs = getattr(scipy.optimize, name)
    if not callable(theirs) or isinstance(theirs, type):
        return theirs

    def refused() -> ArgumentError:
        remedy = REMEDIES.get(name, "If no derivative is needed, detach the tensors")
        return ArgumentError(
            f"scipy.optimize.{name} takes plain arrays only. {remedy}{at(user_line())}."
        )

    def plain(x: Any) -> Any:
        if isinstance(x, Dim):
            raise refused()
        if not isinstance(x, Handle):
            return x
        if is_traced(x) or type(x.node) is Node:
            raise refused()
        return value_of(x)

    def plain_result(x: Any) -> Any:
        if not isinstance(x, Handle | tuple | list):
            return x
        leaves, structure = pytree.flatten(x)
        return pytree.unflatten(structure, [plain(leaf) for leaf in leaves])

    def plain_argument(x: Any) -> Any:
        if callable(x) and not isinstance(x, Handle | type):
            called: Callable[..., Any] = converted(x)
            return functools.wraps(x)(lambda *args, **kw: plain_result(called(*args, **kw)))
        if isinstance(x, tuple | list | scipy.optimize.OptimizeResult):
            parts = x.values() if isinstance(x, dict) else x
            checked = [plain_argument(part) for part in parts]
            if any([a is not b for a, b in zip(checked, parts, strict=True)]):
                return (
                    type(x)(zip(x, checked, strict=True))
                    if isinstance(x, dict)
                    else type(x)(checked)
                )
            return x
        return plain(x)

    @functools.wraps(theirs)
    def function(*args: Any, **kwargs: Any) -> Any:
        given = [plain_argument(x) for x in args]
        return theirs(*given, **{k: plain_argument(v) for k, v in kwargs.items()})

    return function
