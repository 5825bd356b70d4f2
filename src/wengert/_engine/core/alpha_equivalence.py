"""Open names: lengths that are known only when a loop has ended have other names in each trace.

Two lists that differ in these names only say the same, so where lists are compared or kept, the
names are counted in the order in which they come.

    OpenNames    names in the place of those that are met, the same for the same
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .spec import Spec, at_sizes
from .static_params import sizes_of, substituted
from .symbolic.dim import OPEN, Dim


def counted(k: int) -> Dim:
    """The k-th such length of a list, or of a file."""
    return Dim({((f"{OPEN}f{k}", 1),): 1})


def inner(k: int) -> Dim:
    """The k-th such length of a body's own."""
    return Dim({((f"{OPEN}own{k}", 1),): 1})


class OpenNames:
    """What stands in the place of each open name.

    Parameters
    ----------
    make : callable
        The length for the k-th name that is met.
    known : iterable of str
        Names that stay as they are.

    Attributes
    ----------
    of : dict
        By the names that have been met.
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
        """A spec, or several, with these names."""
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
        """The parameters of a node with these names."""
        if params and self._met(named_in(params)):
            made: dict[str, Any] = substituted(params, self.of)
            return made
        return params


def named_in(x: Any) -> frozenset[str]:
    """The names in parameters, those that bodies take from outside among them."""
    if type(x) is dict:
        return frozenset().union(*map(named_in, x.values()))
    if type(x) is tuple:
        return frozenset().union(*map(named_in, x))
    taken: frozenset[str] | None = getattr(x, "open_names", None)
    return sizes_of(x) if taken is None else taken


def _number(name: str) -> tuple[int, str]:
    return len(name), name
