"""Arguments that are treated differently: objects with labels or units, and Python numbers.

Calls of compiled functions with objects of pandas, xarray and pint.

Another compiled function runs them: one of containers of labels and values (labelled_arrays), so
that labels and units are part of the structure of a call, and values are inputs.

    called    the result of such a call

Static numbers: Python numbers that become constants of a compiled function.

The values of Python numbers are inputs of a program, so that one program serves all.  They become
constants, and each new value compiles another program, if

* the function cannot be traced otherwise: a number is a length, or a number of steps;
* integers are bounds of slices whose lengths differ otherwise, so that loops would compute whole
  axes with masks (core/implicit_conversions.py).  For such a function they are inputs again after
  `_MOST_VALUES` different values.

    StaticNumbers    which numbers of a function are static
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wengert._engine.core.conversion_hook import is_converting
from wengert._engine.core.implicit_conversions import IntegersWanted
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.other_libraries import Labelled, may_be_labelled

from .call_signature import StaticArguments

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


_MOST_VALUES = 4  # for which a program is compiled only because it is faster
_ALL = (int, float, bool, complex)


class StaticNumbers:
    """Which Python numbers of a function are static.

    Parameters
    ----------
    layout : StaticArguments
        Its `numbers` are the classes of these numbers.
    converts : bool
        Whether the sources of functions are read.
    """

    def __init__(self, layout: StaticArguments, converts: bool) -> None:
        self._layout, self._converts = layout, converts
        self._values: set[tuple[Any, ...]] = set()  # of integers that are static by choice
        self._may_choose = True
        self._chosen = False  # whether they are static only because programs are faster

    def may_be_wanted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether integers may become static because the program is faster with their values."""
        may_be = self._may_choose and not self._layout.numbers
        return may_be and bool(self._candidates(args, kwargs))

    def after_error(self, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Make numbers static, or inputs again, after a call could not be traced.

        First integers; then all numbers, if all arguments are numbers and one is an integer.

        Returns
        -------
        bool
            Whether to trace again.
        """
        if self._chosen:
            self._reset()
            return True
        self._chosen = isinstance(error, IntegersWanted)
        self._layout.numbers = self._candidates(args, kwargs)
        return bool(self._layout.numbers)

    def note_compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note that a program has been compiled for these arguments."""
        if self._chosen:
            self._values.add(tuple([x for x in (*args, *kwargs.values()) if type(x) is int]))
            if len(self._values) >= _MOST_VALUES:
                self._reset()

    def _reset(self) -> None:
        """Make all numbers inputs, also of later calls."""
        self._may_choose = self._chosen = False
        self._layout.numbers = ()

    def _candidates(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[type, ...]:
        """The classes of the numbers to make static next; empty if there are none."""
        kinds = set(map(type, (*args, *kwargs.values())))
        if not (self._converts and is_converting() and int in kinds):
            return ()
        if not self._layout.numbers:
            return (int,)
        return _ALL if kinds <= set(_ALL) and self._layout.numbers != _ALL else ()
