"""Alpha equivalence: graphs that differ only in the names of lengths are equal.

Lengths that are known only when a loop has ended ("open") have new names in each trace.  When
graphs are compared or stored, these names are replaced by numbers, in order of occurrence.

    OpenNames    the replacements of open names
    counted      the k-th open length of a graph; inner: of a body's own loops
    named_in     the names in parameters
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .spec import Spec, at_sizes
from .static_params import sizes_of, substituted
from .symbolic.dim import OPEN, Dim


def counted(k: int) -> Dim:
    """The k-th open length of a graph, or of a file."""
    return Dim({((f"{OPEN}f{k}", 1),): 1})


def inner(k: int) -> Dim:
    """The k-th open length of a body's own loops."""
    return Dim({((f"{OPEN}own{k}", 1),): 1})


class OpenNames:
    """The replacements of open names.

    Parameters
    ----------
    make : callable
        The length for the k-th name that occurs.
    known : iterable of str
        Names that are not replaced.

    Attributes
    ----------
    of : dict
        The replacement of each name so far.
    """

    def __init__(self, make: Callable[[int], Any] = counted, known: Iterable[str] = ()) -> None:
        self._make = make
        self.of: dict[str, Any] = {name: Dim({((name, 1),): 1}) for name in known}

    def _met(self, names: frozenset[str]) -> bool:
        found = sorted((n for n in names if n.startswith(OPEN)), key=_number)
        for name in found:
            if name not in self.of:
                self.of[name] = self._make(len(self.of))
        return bool(found)

    def spec(self, spec: Any) -> Any:
        """A spec, or a tuple of specs, with replaced names."""
        for s in spec if type(spec) is tuple else (spec,):
            named = type(s) is Spec and any(type(n) is Dim for n in s.shape)
            if named and self._met(sizes_of(s.shape)):
                return self._renamed(spec)
        return spec

    def _renamed(self, spec: tuple[Spec, ...] | Spec) -> Any:
        if type(spec) is tuple:
            for s in spec:
                self._met(sizes_of(s.shape))
        return at_sizes(spec, self.of)

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of a node with replaced names."""
        if params and self._met(named_in(params)):
            made: dict[str, Any] = substituted(params, self.of)
            return made
        return params


def named_in(x: Any) -> frozenset[str]:
    """The names in parameters, including those that bodies take from outside."""
    if type(x) is dict:
        return frozenset().union(*map(named_in, x.values()))
    if type(x) is tuple:
        return frozenset().union(*map(named_in, x))
    taken: frozenset[str] | None = getattr(x, "open_names", None)
    return sizes_of(x) if taken is None else taken


def _number(name: str) -> tuple[int, str]:
    return len(name), name
