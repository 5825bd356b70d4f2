"""lil_array and dok_array; sparse arrays of all classes as containers.

    lil_array, lil_matrix, dok_array, dok_matrix    to their elements tensors can be assigned

The first are SciPy's until a tensor is assigned.  Then the elements move to an array of this
package (assembled.py), which answers to all names from then on: methods of SciPy's class are
replaced by methods that ask it, and SciPy's own attributes are deleted.

Sparse arrays are containers with one leaf, their elements.  SciPy's are registered too, so
derivatives with respect to them are arrays of the same structure; in the structure of a container
they are arrays of wengert.  An array is restored as SciPy's if its leaf is a plain array of the
elements, and as one of wengert otherwise; lil and dok arrays are restored in compressed row format
(vectors: coordinate format).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import optree
import scipy.sparse as sp

from wengert._engine.core.pytree import NAMESPACE, LateContainers

from ..dispatch import holds_tensors
from . import assembled as assembled
from .arrays import CLASSES, SparseMatrix, as_sparse
from .structure import ASSEMBLED, structure_of

# What the array of this package does not answer to: what all objects have, and what makes them.
_KEPT = {*dir(object), *"__dict__ __weakref__ __slots__ __setitem__ __array_priority__".split()}
_KEPT |= {"__abstractmethods__", "__class_getitem__", "__getattr__", "__module__"}
_KEPT -= set("__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __repr__ __str__ __reduce__".split())


def _asked(name: str, original: Any) -> Any:
    """A method or property that asks the array with tensors, if there is one."""

    def own(self: Any) -> Any:
        return self.__dict__.get("assembled")

    if callable(original):

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            array = own(self)
            if array is None:
                return original(self, *args, **kwargs)
            return getattr(array, name)(*args, **kwargs)

        method.__name__ = name
        return method

    def value(self: Any) -> Any:
        array = own(self)
        return original.__get__(self, type(self)) if array is None else getattr(array, name)

    setter = getattr(original, "fset", None)
    return property(value, setter)


def _assigning(cls: Any) -> Any:
    """Make a subclass of a class of SciPy ask the array with tensors."""
    for name in dir(cls.__bases__[1]):
        is_private = name.startswith("_") and not name.startswith("__")
        if name not in _KEPT and not is_private:
            setattr(cls, name, _asked(name, getattr(cls, name)))
    setattr(cls, f"_{cls.scipy_format}_container", property(lambda self: cls))  # of copies
    return cls


class _Assigned:
    """Mixin of the subclasses of SciPy's classes."""

    assembled: Any
    format: str
    scipy_format: str

    def __setitem__(self, index: Any, value: Any) -> None:
        own = self.__dict__.get("assembled")
        if own is None and _has_tensors(value):
            given: Any = self
            own = ASSEMBLED[self.format, sp.isspmatrix(self)].of(given.tocsr(), given.dtype)
            own[index] = value  # which may raise
            self.__dict__.clear()
            self.assembled = own
        elif own is None:
            super().__setitem__(index, value)  # type: ignore[misc]
        else:
            own[index] = value

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("assembled")
        if own is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(own, name)


def _has_tensors(x: Any) -> bool:
    own = as_sparse(x)
    return holds_tensors(x) if own is None else not own.is_plain


@_assigning
class lil_array(_Assigned, sp.lil_array):
    """SciPy's array in the format of lists by rows, to whose elements tensors can be assigned.

    Then it is used as the CSR array that it makes.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.sparse import lil_array
    >>> def total(k):
    ...     A = lil_array((2, 2))
    ...     A[0, 0] = k
    ...     A[0, 0] += k
    ...     A[1, :] = np.array([1.0, 2.0]) * k
    ...     return np.sum(A.tocsr() @ np.ones(2))
    >>> wg.grad(total)(3.0)
    np.float64(5.0)
    """

    scipy_format = "lil"


@_assigning
class dok_array(_Assigned, sp.dok_array):
    """SciPy's array in the format of a dict by coordinates; as `lil_array`."""

    scipy_format = "dok"


@_assigning
class lil_matrix(_Assigned, sp.lil_matrix):
    """As `lil_array`, a matrix."""

    scipy_format = "lil"


@_assigning
class dok_matrix(_Assigned, sp.dok_matrix):
    """As `dok_array`, a matrix."""

    scipy_format = "dok"


ASSIGNED = (lil_array, dok_array, lil_matrix, dok_matrix)


# ---- containers --------------------------------------------------------------------------------


def _flatten(array: Any) -> tuple[list[Any], Any, list[str]]:
    return [array.data], structure_of(array), ["data"]


def _flatten_rows(array: Any) -> tuple[list[Any], Any, list[str]]:
    """In compressed row format."""
    return _flatten_scipys(array.tocsr() if array.ndim == 2 else array.tocoo())


def _flatten_scipys(array: Any) -> tuple[list[Any], Any, list[str]]:
    LateContainers.count += 1
    return _flatten(array)


def _restore(is_matrix: bool) -> Any:
    def restored(structure: Any, leaves: Any) -> Any:
        (data,) = leaves
        array = CLASSES[structure.format, is_matrix].made(structure, data)
        is_plain = type(data) is np.ndarray and data.shape == structure.data_shape
        return array.scipy_array(data) if is_plain and data.dtype.kind in "biufc" else array

    return restored


for _cls in CLASSES.values():
    _restored = _restore(_cls.is_matrix)
    optree.register_pytree_node(_cls, _flatten, _restored, namespace=NAMESPACE)
    optree.register_pytree_node(_cls.scipy_class, _flatten_scipys, _restored, namespace=NAMESPACE)
for _cls in (*ASSEMBLED.values(), *ASSIGNED):
    _restored = _restore(issubclass(_cls, SparseMatrix | sp.spmatrix))
    optree.register_pytree_node(_cls, _flatten_rows, _restored, namespace=NAMESPACE)
