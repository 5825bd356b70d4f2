"""The vector space of a value and of its gradient.

Values are numbers, arrays and nested containers of them; complex numbers are pairs of real ones.
User-defined classes are containers if they are registered with optree.

    vspace        the vector space of a value
    VSpace        zeros, ones, a basis, sums, products
    conjugated    a pytree with its complex leaves conjugated
    fitted        a pytree in the dtypes of another
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from wengert import numpy as wnp
from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe, is_traced
from wengert.errors import DtypeError, StructureError, at, user_line

__all__ = ["VSpace", "conjugated", "fitted", "vspace"]


class VSpace:
    """The vector space of a value, created by `vspace`.

    Attributes
    ----------
    shape, dtype
        Those of an array; None for a container.
    size : int
        Dimension over the real numbers.
    iscomplex : bool
    is_discrete : bool
        Whether it has integers or booleans.
    """

    def __init__(self, value: Any) -> None:
        leaves, self._structure = pytree.flatten(value)
        self._specs = [_spec(x) for x in leaves]
        is_array = self._structure.is_leaf()
        self.shape = self._specs[0].shape if is_array else None
        self.dtype = self._specs[0].dtype if is_array else None
        self.iscomplex = any(s.dtype.kind == "c" for s in self._specs)
        self.is_discrete = any(s.dtype.kind in "biu" for s in self._specs)
        self.size = sum(int(s.size) * (1 + (s.dtype.kind == "c")) for s in self._specs)

    def _made(self, make: Any) -> Any:
        return pytree.unflatten(self._structure, [make(s) for s in self._specs])

    def zeros(self) -> Any:
        """The zero vector."""
        return self._made(lambda s: np.zeros(s.shape, s.dtype))

    def ones(self) -> Any:
        """Ones; 1 + 1i for complex numbers."""
        return self._made(lambda s: np.full(s.shape, 1 + 1j if s.dtype.kind == "c" else 1, s.dtype))

    def randn(self) -> Any:
        """Normal random numbers, from NumPy's global generator."""
        return self._made(_normal)

    def standard_basis(self) -> Iterator[Any]:
        """The vectors with one real component 1 and the others 0."""
        for k, spec in enumerate(self._specs):
            for index in np.ndindex(*spec.shape):
                for unit in (1, 1j) if spec.dtype.kind == "c" else (1,):
                    leaves = [np.zeros(s.shape, s.dtype) for s in self._specs]
                    leaves[k][index] = unit
                    yield pytree.unflatten(self._structure, leaves)

    def add(self, x: Any, y: Any) -> Any:
        """x + y."""
        return y if x is None else pytree.tree_map(lambda a, b: a + b, x, y)

    def mut_add(self, x: Any, y: Any) -> Any:
        """x + y; unlike in autograd, x is not modified."""
        return self.add(x, y)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """a x."""
        return pytree.tree_map(lambda leaf: leaf * a, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The inner product of real vectors."""
        pairs = zip(pytree.flatten(x)[0], pytree.flatten(y)[0], strict=True)
        return sum(np.sum(np.real(np.conj(a) * b)) for a, b in pairs)

    def covector(self, x: Any) -> Any:
        """x as a linear form, in autograd's convention: complex numbers conjugated."""
        return conjugated(x)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, VSpace)
            and self._structure == other._structure
            and [(s.shape, s.dtype) for s in self._specs]
            == [(s.shape, s.dtype) for s in other._specs]
        )

    def __hash__(self) -> int:
        return hash(tuple([(s.shape, s.dtype) for s in self._specs]))

    def __repr__(self) -> str:
        return f"<vector space of {', '.join(map(str, self._specs))}>"


def _spec(x: Any) -> Any:
    spec = describe(x)
    if spec is None or isinstance(spec, tuple) or spec.dtype.kind not in "biufc":
        raise DtypeError(
            f"a {type(x).__name__} has no vector space. Use numbers, arrays and containers of "
            f"them; register your own classes with optree{at(user_line())}."
        )
    return spec


def _normal(spec: Any) -> Any:
    x = np.array(np.random.randn(*spec.shape))
    if spec.dtype.kind == "c":
        x = x + 1j * np.random.randn(*spec.shape)
    return x.astype(spec.dtype)


def vspace(value: Any) -> VSpace:
    """The vector space of a number, an array, a tensor, or a nested container of them.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.autograd.extend import vspace
    >>> vspace({"a": np.ones(2), "b": 1.0}).size
    3
    """
    return VSpace(value)


def conjugated(x: Any) -> Any:
    """A pytree with its complex leaves conjugated."""
    return pytree.tree_map(_conjugate, x)


def _conjugate(x: Any) -> Any:
    spec = describe(x)
    is_complex = spec is not None and not isinstance(spec, tuple) and spec.dtype.kind == "c"
    return np.conj(x) if is_complex else x


def fitted(g: Any, like: Any) -> Any:
    """A cotangent passed by the user, converted to the dtypes of the value.

    Raises
    ------
    StructureError
        The containers differ.
    """
    return pytree.tree_map(_cast, g, like)


def _cast(g: Any, like: Any) -> Any:
    spec = describe(like)
    if g is None or spec is None or isinstance(spec, tuple):
        return g
    g = g if isinstance(g, Handle) else np.asarray(g)
    if g.dtype == spec.dtype:
        return g
    if g.dtype.kind == "c" and spec.dtype.kind != "c":
        if not is_traced(g) and np.any(np.imag(g)):
            raise StructureError(
                "a complex cotangent was passed for a real value. Pass its real part"
                f"{at(user_line())}."
            )
        g = wnp.real(g)
    return g.astype(spec.dtype)
