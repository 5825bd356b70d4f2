"""Containers: modules made of modules.

    Sequential                     modules applied one after the other
    Parallel                       modules applied to the same input
    Residual                       x + body(x)
    ModuleList, ModuleDict         a list and a dict of modules
    ParameterList, ParameterDict   a list and a dict of parameters

Modules and parameters in plain lists, tuples and dicts are found, too.  These classes provide
PyTorch's names, a base for models that are lists, and changes that compiled functions notice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from wengert._engine.core.recording import Changes

from ..errors import ArgumentError, at, user_line
from .module import Module
from .parameter import Parameter, contents

__all__ = [
    "ModuleDict",
    "ModuleList",
    "Parallel",
    "ParameterDict",
    "ParameterList",
    "Residual",
    "Sequential",
]


def _callable(step: Any, what: str) -> Any:
    if not callable(step):
        raise ArgumentError(
            f"{what} is a {type(step).__name__}, which is not callable. "
            f"Give modules or functions, not a list of them{at(user_line())}."
        )
    return step


class _ListModule(Module):
    """Base of modules that are lists of `_items`, named by their indices."""

    _items: list[Any]

    def _checked(self, item: Any, i: int) -> Any:
        return item

    def _with_items(self, items: list[Any]) -> Any:
        make: Any = type(self)
        return make(items)

    def named_items(self) -> Iterator[tuple[str, Any]]:
        """The items by index (``0``, ``1``, ...), and all other attributes."""
        yield from contents(dict(enumerate(self._items)))
        yield from contents({k: v for k, v in vars(self).items() if k != "_items"})

    def append(self, item: Any) -> Any:
        """Append an item; return the module."""
        return self.insert(len(self._items), item)

    def extend(self, items: Iterable[Any]) -> Any:
        """Append several items; return the module."""
        for item in list(items):
            self.append(item)
        return self

    def insert(self, index: int, item: Any) -> Any:
        """Insert an item before an index; return the module."""
        self._items.insert(index, self._checked(item, index))
        Changes.note()
        return self

    def pop(self, index: int = -1) -> Any:
        """Remove and return an item."""
        Changes.note()
        return self._items.pop(index)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __getitem__(self, index: Any) -> Any:
        return (
            self._with_items(self._items[index]) if isinstance(index, slice) else self._items[index]
        )

    def __setitem__(self, index: int, item: Any) -> None:
        self._items[index] = self._checked(item, index)
        Changes.note()

    def __delitem__(self, index: Any) -> None:
        del self._items[index]
        Changes.note()


class Sequential(_ListModule):
    """Modules (or plain functions) applied one after the other.

    Parameters
    ----------
    *steps : callable, or one mapping from name to callable
        Each is called with the result of the previous one. With names, ``{"body": ...,
        "head": ...}``, parameters are called ``body.weight`` instead of ``0.weight``, and the
        steps are also attributes with these names.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> model = nn.Sequential(nn.Linear(4, 3, rng=0), nn.ReLU(), nn.Linear(3, 1, rng=1))
    >>> model
    Sequential(
      (0): Linear(in_features=4, out_features=3, bias=True)
      (1): ReLU()
      (2): Linear(in_features=3, out_features=1, bias=True)
    )
    >>> model(np.ones((2, 4))).shape
    (2, 1)
    >>> [name for name, _ in nn.Sequential({"head": nn.Linear(2, 1)}).named_parameters()]
    ['head.weight', 'head.bias']
    """

    _names: list[str] | None = None

    def __init__(self, *steps: Any) -> None:
        if len(steps) == 1 and isinstance(steps[0], Mapping):
            self._names, steps = [*map(str, steps[0])], tuple(steps[0].values())
        self._items = [self._checked(step, i) for i, step in enumerate(steps)]

    @property
    def steps(self) -> list[Any]:
        """The steps, in order."""
        return self._items

    def forward(self, x: Any) -> Any:
        """The result of the last step."""
        for step in self._items:
            x = step(x)
        return x

    def named_items(self) -> Iterator[tuple[str, Any]]:
        """The steps by index or name, ``0`` or ``head``."""
        if self._names is None:
            yield from super().named_items()
            return
        yield from contents(dict(zip(self._names, self._items, strict=True)))

    def insert(self, index: int, item: Any) -> Any:
        """Insert a step before an index, named by its number; return the module."""
        if self._names is not None:
            self._names.insert(index, str(len(self._items)))
        return super().insert(index, item)

    def pop(self, index: int = -1) -> Any:
        """Remove and return a step."""
        if self._names is not None:
            self._names.pop(index)
        return super().pop(index)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return self._items[self._index_of(index)]
        if self._names is not None and isinstance(index, slice):
            return Sequential(dict(zip(self._names[index], self._items[index], strict=True)))
        return super().__getitem__(index)

    def __delitem__(self, index: Any) -> None:
        if self._names is not None:
            del self._names[index]
        super().__delitem__(index)

    def __getattr__(self, name: str) -> Any:
        if name in (self.__dict__.get("_names") or ()):
            return self._items[self._index_of(name)]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _index_of(self, name: str) -> int:
        if name not in (self._names or ()):
            raise ArgumentError(
                f"Sequential: no step is named {name!r}; the names are {self._names or 'indices'}"
                f"{at(user_line())}."
            )
        return (self._names or []).index(name)

    def _checked(self, item: Any, i: int) -> Any:
        return _callable(item, f"Sequential: step {i}")

    def _with_items(self, items: list[Any]) -> Any:
        return Sequential(*items)


class Parallel(_ListModule):
    """Modules (or plain functions) applied to the same input, with joined results.

    Parameters
    ----------
    *branches : callable
    join : callable or None, default ``numpy.concatenate`` along the last axis
        Called with the list of results; None returns them as a tuple.
    axis : int, default -1
        The axis of concatenation, if `join` is not given.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> both = nn.Parallel(nn.Linear(4, 3, rng=0), nn.Linear(4, 2, rng=1))
    >>> both(np.ones((5, 4))).shape
    (5, 5)
    """

    def __init__(self, *branches: Any, join: Any = "concatenate", axis: int = -1) -> None:
        self._items = [self._checked(branch, i) for i, branch in enumerate(branches)]
        self.join, self.axis = join, axis

    def forward(self, *args: Any) -> Any:
        """The results of all branches, joined."""
        results = [branch(*args) for branch in self._items]
        if self.join is None:
            return tuple(results)
        return (
            np.concatenate(results, self.axis) if isinstance(self.join, str) else self.join(results)
        )

    def _checked(self, item: Any, i: int) -> Any:
        return _callable(item, f"Parallel: branch {i}")

    def _with_items(self, items: list[Any]) -> Any:
        return Parallel(*items, join=self.join, axis=self.axis)


class Residual(Module):
    """``x + body(x)``, or ``shortcut(x) + body(x)``.

    Parameters
    ----------
    body : callable
    shortcut : callable, optional
        Needed if the body changes the shape.

    References
    ----------
    .. [1] K. He et al., "Deep residual learning for image recognition", arXiv:1512.03385.
    """

    def __init__(self, body: Any, shortcut: Any = None) -> None:
        self.body = _callable(body, "Residual: the body")
        self.shortcut = shortcut if shortcut is None else _callable(shortcut, "Residual: shortcut")

    def forward(self, x: Any) -> Any:
        """The sum."""
        return (x if self.shortcut is None else self.shortcut(x)) + self.body(x)


class ModuleList(_ListModule):
    """A list of modules, without a `forward`.

    Parameters
    ----------
    modules : iterable of Module, optional

    Examples
    --------
    >>> from wengert import nn
    >>> layers = nn.ModuleList(nn.Linear(3, 3, rng=i) for i in range(2))
    >>> [name for name, _ in layers.append(nn.ReLU()).named_children()]
    ['0', '1', '2']
    """

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        self._items = list(modules)


class ParameterList(_ListModule):
    """A list of parameters; arrays become parameters.

    Parameters
    ----------
    parameters : iterable of Parameter or array_like, optional
    """

    def __init__(self, parameters: Iterable[Any] = ()) -> None:
        self._items = [self._checked(p, i) for i, p in enumerate(parameters)]

    def _checked(self, item: Any, i: int) -> Any:
        return item if isinstance(item, Parameter) else Parameter(item)


class _DictModule(Module):
    """Base of modules that are dicts, in insertion order."""

    _items: dict[str, Any]

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        self._items = {}
        self.update(items)

    def _checked(self, item: Any) -> Any:
        return item

    def named_items(self) -> Iterator[tuple[str, Any]]:
        """The items by name, and all other attributes."""
        yield from contents(self._items)
        yield from contents({k: v for k, v in vars(self).items() if k != "_items"})

    def update(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Set several items."""
        for name, item in dict(items).items():
            self[name] = item

    def keys(self) -> Any:
        """The names."""
        return self._items.keys()

    def values(self) -> Any:
        """The items."""
        return self._items.values()

    def items(self) -> Any:
        """Names and items."""
        return self._items.items()

    def pop(self, name: str) -> Any:
        """Remove and return an item."""
        Changes.note()
        return self._items.pop(name)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __setitem__(self, name: str, item: Any) -> None:
        self._items[str(name)] = self._checked(item)
        Changes.note()

    def __delitem__(self, name: str) -> None:
        del self._items[name]
        Changes.note()


class ModuleDict(_DictModule):
    """A dict of modules, without a `forward`.

    Parameters
    ----------
    modules : mapping from str to Module, optional
    """


class ParameterDict(_DictModule):
    """A dict of parameters; arrays become parameters.

    Parameters
    ----------
    parameters : mapping from str to Parameter or array_like, optional
    """

    def _checked(self, item: Any) -> Any:
        return item if isinstance(item, Parameter) else Parameter(item)
