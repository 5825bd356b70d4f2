"""Alpha equivalence: graphs that differ only in the names of lengths are equal.

Lengths that are known only when a loop has ended ("open" lengths) get new names in each trace.
When graphs are compared or stored, these names are replaced by numbers, in order of occurrence.

    OpenNames    the replacements of open names
    counted      the k-th open length of a graph; inner: of the loops inside a body
    named_in     the names of lengths in parameters
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
    """The k-th open length of the loops inside a body."""
    return Dim({((f"{OPEN}own{k}", 1),): 1})


class OpenNames:
    """The replacements of open names.

    Parameters
    ----------
    make : callable
        ``make(k)`` returns the replacement of the k-th name that occurs.
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

    def _number(self, names: frozenset[str]) -> bool:
        """Define replacements of the open names among these; whether there are any."""
        open_names = sorted((n for n in names if n.startswith(OPEN)), key=_by_length)
        for name in open_names:
            if name not in self.of:
                self.of[name] = self._make(len(self.of))
        return bool(open_names)

    def spec(self, spec: Any) -> Any:
        """A spec, or a tuple of specs, with replaced names."""
        for s in spec if type(spec) is tuple else (spec,):
            is_symbolic = type(s) is Spec and any(type(n) is Dim for n in s.shape)
            if is_symbolic and self._number(sizes_of(s.shape)):
                return self._renamed(spec)
        return spec

    def _renamed(self, spec: tuple[Spec, ...] | Spec) -> Any:
        if type(spec) is tuple:
            for s in spec:
                self._number(sizes_of(s.shape))
        return at_sizes(spec, self.of)

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of a node with replaced names."""
        if params and self._number(named_in(params)):
            renamed: dict[str, Any] = substituted(params, self.of)
            return renamed
        return params


def named_in(x: Any) -> frozenset[str]:
    """The names of lengths in parameters, including those that bodies capture."""
    if type(x) is dict:
        return frozenset().union(*map(named_in, x.values()))
    if type(x) is tuple:
        return frozenset().union(*map(named_in, x))
    captured: frozenset[str] | None = getattr(x, "open_names", None)
    return sizes_of(x) if captured is None else captured


def _by_length(name: str) -> tuple[int, str]:
    """The sort key of numbered names: steps.9 comes before steps.10."""
    return len(name), name
