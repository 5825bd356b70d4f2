"""Static numbers: Python numbers that become constants of a compiled function.

The values of Python numbers are inputs of a program, so that one program serves all.  They become
constants, and each new value compiles another program, if

* the function cannot be traced otherwise: a number is a length, or a number of steps;
* integers are bounds of slices whose lengths differ otherwise, so that loops would compute whole
  axes with masks (core/concretization.py).  For such a function they are inputs again after
  `_MOST_VALUES` different values.

    StaticNumbers    which numbers of a function are static
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.concretization import IntegersWanted
from wengert._engine.core.conversion_hook import is_converting

from .call_signature import StaticArguments

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
