"""Sparse arrays as containers with one leaf, their elements.

SciPy's arrays are registered too, so derivatives with respect to them are arrays of the same
structure; in the structure of a container they are arrays of wengert.  An array is restored as
SciPy's if its leaf is a plain array of the elements, and as one of wengert otherwise; lil and dok
arrays are restored in compressed row format (vectors: coordinate format).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import optree
import scipy.sparse as sp

from wengert._engine.core.pytree import NAMESPACE, LateContainers

from .arrays import CLASSES, SparseMatrix
from .lil_dok import ASSIGNED
from .structure import ASSEMBLED, structure_of


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
