"""Sources: how a captured value is read again.

A source refers to the object that holds the value (a cell, a dict, a list); guards on the path to
this object check that the function still reaches it.

    CaptureSource  a holder, the read, and the name of the value in messages
    FedNumber      a number that is an input of the program
    Location       what a source reads, as a key
    ABSENT         the result of reading a value that no longer exists
"""

from __future__ import annotations

import weakref
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand
    from wengert._engine.tensor.tensor import Tensor


class _Absent(Enum):
    ABSENT = 0


ABSENT = _Absent.ABSENT
Location = tuple["Kind", int, Any]  # the kind of a read, the identity of the holder, and the key


class Kind(Enum):
    """The kinds of reads of a value."""

    CONSTANT = "constant"  # the holder itself
    CELL = "cell"  # the contents of a closure cell
    ITEM = "item"  # an entry of a dict: of globals, of an instance, of a class
    INDEX = "index"  # an element of a list
    DICT = "dict"  # the __dict__ of an object
    CODE = "code"  # the code of a function
    DEFAULTS = "defaults"  # the defaults of a function, a tuple or None
    KWDEFAULTS = "kwdefaults"  # those of its keyword-only parameters, a dict or None
    TYPE = "type"  # the class of an object
    LENGTH = "length"  # the number of elements
    ATTRIBUTE = "attribute"  # a member of a class with __slots__


class CaptureSource(NamedTuple):
    """Reads a captured value.

    Attributes
    ----------
    kind : Kind
    holder : object
        The object that holds the value; a weak reference for the ``__dict__`` and the class of an
        argument.
    key : object
        The key of a dict, index of a list, or name of an attribute.
    name : str
        As the user writes it: ``self.weights['a']``.
    """

    kind: Kind
    holder: Any
    key: Any
    name: str

    def read(self) -> Any:
        """The current value, or ABSENT."""
        holder, kind = self.holder, self.kind
        if kind is Kind.CONSTANT:
            return holder
        if kind is Kind.ITEM:
            return dict.get(holder, self.key, ABSENT)
        if kind is Kind.CELL:
            try:
                return holder.cell_contents
            except ValueError:
                return ABSENT
        if kind is Kind.INDEX:
            return list.__getitem__(holder, self.key) if self.key < len(holder) else ABSENT
        if kind in (Kind.DICT, Kind.TYPE):
            if isinstance(holder, weakref.ref):
                holder = holder()
            return type(holder) if kind is Kind.TYPE else getattr(holder, "__dict__", ABSENT)
        if kind is Kind.CODE:
            return holder.__code__
        if kind is Kind.DEFAULTS:
            return holder.__defaults__
        if kind is Kind.KWDEFAULTS:
            return holder.__kwdefaults__
        if kind is Kind.LENGTH:
            return len(holder)
        return getattr(holder, self.key, ABSENT)

    @property
    def location(self) -> Location:
        """Equal for sources that read the same part of an object that is alive."""
        return self.kind, id(self.holder), self.key

    def item(
        self, holder: dict[Any, Any], key: Operand | str | Tensor | None, name: str | None = None
    ) -> CaptureSource:
        """The source of an entry of the dict that this source reads."""
        return CaptureSource(
            Kind.ITEM, holder, key, f"{self.name}[{key!r}]" if name is None else name
        )


class FedNumber(NamedTuple):
    """A number that is an input of the program.

    source : CaptureSource
    kind : type
        The class that it must have.
    parent : int
        The identity of the object that has it.
    """

    source: CaptureSource
    kind: type
    parent: int
