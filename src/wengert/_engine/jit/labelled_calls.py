"""Calls of compiled functions with objects of pandas, xarray and pint.

Another compiled function runs them: one of containers of labels and values (labelled_arrays), so
that labels and units are part of the structure of a call, and values are inputs.

    called    the result of such a call
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wengert._engine.core.labelled_arrays import Labelled, may_be_labelled
from wengert._engine.core.lazy_import import LazyModule

if TYPE_CHECKING:
    from wengert._engine.labelled_arrays import calls
else:
    calls = LazyModule("wengert._engine.labelled_arrays.calls")


def called(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    found: Labelled | None = None,
) -> Any:
    """The result of a call of a function with such objects among its arguments or results.

    Parameters
    ----------
    function : Jitted
    args, kwargs : tuple, dict
    found : Labelled, optional
        What told so; if it is a result, later calls come here directly.
    """
    if found is not None:
        if not may_be_labelled(function._fun):
            raise found
        function._returns_labels = function._returns_labels or found.is_result
    if function._of_labelled is None:
        function._of_labelled = function._like(calls.function_of(function._fun))
    positions, names = function._layout.static(args)
    what = f"{function.__name__}: a compiled function was given"
    new_args = [a if i in positions else calls.with_containers(a, what) for i, a in enumerate(args)]
    new_kwargs = {k: a if k in names else calls.with_containers(a, what) for k, a in kwargs.items()}
    return calls.without(function._of_labelled(*new_args, **new_kwargs))
