"""NumPy's products of arrays and tensors.

    dot, vdot, inner, outer, matmul, vecdot, matvec, vecmat    of vectors and matrices
    tensordot, einsum                                          over any axes
    kron, cross                                                Kronecker and cross product

All are subscripts for one of three operations (_engine/ops/linalg/matmul.py), so each is a node of
the graph, possibly with views.
"""

from __future__ import annotations

from string import ascii_letters, ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from wengert._engine.core.dispatch import apply
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import NO_PARAMS
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.ops import joining, shapes
from wengert._engine.ops.casts import astype
from wengert._engine.ops.indexing import getitem
from wengert._engine.ops.linalg import matmul as products
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart
from wengert._engine.tensor.numpy_protocols import deliver, implements
from wengert.errors import ShapeError, at, user_line

from .einsum_subscripts import diagonals, parse, view_of

__all__ = ["dot", "vdot", "inner", "outer", "matmul", "vecdot"]
__all__ += ["tensordot", "einsum", "kron", "cross"]


def _einsum(*operands: Any, subscripts: tuple[str, ...]) -> Any:
    return products.einsum(*[as_array(x) for x in operands], subscripts=subscripts)


def _delivered(result: Any, out: Any) -> Any:
    return result if out is None else deliver(result, out)


def _conj(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


# ---- vectors and matrices ----------------------------------------------------------------------


@counterpart(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The dot product, as ``numpy.dot``.

    Parameters
    ----------
    a, b : array_like
        Vectors, matrices, or arrays: the last axis of `a` is multiplied with the last but one of
        `b`.
    out : array, optional

    Raises
    ------
    ShapeError
        The axes have different lengths.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.dot(x, x))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    return _delivered(apply(products.dot, (_numeric(a), _numeric(b)), NO_PARAMS), out)


def _numeric(x: Any) -> Any:
    return x if isinstance(x, Handle | np.ndarray | float | int | complex) else np.asarray(x)


@counterpart(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    """The sum of conj(a) * b over all elements, as ``numpy.vdot``.

    Parameters
    ----------
    a, b : array_like
        Of the same size; flattened.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> z = np.array([1.0 + 2.0j])
    >>> wg.grad(lambda z: np.vdot(z, z).real)(z)
    array([2.+4.j])
    """
    a, b = (shapes.reshape(as_array(x), shape=(-1,)) for x in (a, b))
    return dot(_conj(a), b)


@counterpart(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    """The product over the last axes of both, as ``numpy.inner``.

    Parameters
    ----------
    a, b : array_like
        With last axes of the same length; a number multiplies.
    """
    a, b = as_array(a), as_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return dot(a, b)
    _check_lengths("inner", a, b, -1, -1)
    left, right = ascii_lowercase[: a.ndim - 1], ascii_uppercase[: b.ndim - 1]
    return _einsum(a, b, subscripts=(left + "z", right + "z", left + right))


@counterpart(np.outer, np.linalg.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """The products of all elements of `a` and of `b`, as ``numpy.outer``.

    Parameters
    ----------
    a, b : array_like
        Flattened.
    out : array, optional
    """
    a, b = (shapes.reshape(as_array(x), shape=(-1,)) for x in (a, b))
    return _delivered(_einsum(a, b, subscripts=("a", "b", "ab")), out)


def _ufunc_like(ufunc: np.ufunc, axes_of_core: tuple[int, int]) -> Any:
    """Add the `axis` argument of a generalized ufunc to a function (a decorator)."""

    def enter(ours: Any) -> Any:
        def general(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
            x1, x2 = as_array(x1), as_array(x2)
            if any(x.ndim < n for x, n in zip((x1, x2), axes_of_core, strict=True)):
                raise ShapeError(
                    f"{ufunc.__name__} of shapes {x1.shape} and {x2.shape}: an operand has too "
                    f"few axes. Use np.multiply for numbers{at(user_line())}."
                )
            return ours(x1, x2, axis)

        return implements(ufunc)(general)

    return enter


@_ufunc_like(np.vecdot, (1, 1))
def _vecdot(x1: Any, x2: Any, axis: int) -> Any:
    x1, x2 = _to_last(x1, axis), _to_last(x2, axis)
    _check_lengths("vecdot", x1, x2, -1, -1)
    return _broadcasting(_conj(x1), x2, "z", "z", "")


def _check_lengths(name: str, x1: Any, x2: Any, axis1: int, axis2: int) -> None:
    """Axes that are multiplied have the same length: one of length one is not broadcast here."""
    pair = x1.shape[axis1], x2.shape[axis2]
    if pair[0] != pair[1] and not is_symbolic(pair):
        raise ShapeError(
            f"{name} of shapes {x1.shape} and {x2.shape}: axes of lengths {pair[0]} and {pair[1]} "
            f"are multiplied. Make them equally long, or use np.multiply and np.sum"
            f"{at(user_line())}."
        )


def _to_last(x: Any, axis: int) -> Any:
    if axis % x.ndim == x.ndim - 1:
        return x
    rest = [i for i in range(x.ndim) if i != axis % x.ndim]
    return shapes.transpose(x, axes=(*rest, axis % x.ndim))


def _broadcasting(x1: Any, x2: Any, core1: str, core2: str, core: str) -> Any:
    batch = ascii_uppercase[: max(x1.ndim - len(core1), x2.ndim - len(core2))]
    subscripts1 = batch[len(batch) - (x1.ndim - len(core1)) :] + core1
    subscripts2 = batch[len(batch) - (x2.ndim - len(core2)) :] + core2
    return _einsum(x1, x2, subscripts=(subscripts1, subscripts2, batch + core))


@counterpart(np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The product of vectors along one axis, conj(x1) * x2 summed, as ``numpy.vecdot``.

    Parameters
    ----------
    x1, x2 : array_like
        The other axes broadcast.
    axis : int, default -1

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> wg.grad(lambda x: np.sum(np.vecdot(x, x)))(x)
    array([[2., 4.],
           [6., 8.]])
    """
    product: Any = np.vecdot  # its stubs lack `axis`
    return product(x1, x2, axis=axis)


if hasattr(np, "matvec"):  # NumPy 2.2 and later
    __all__ += ["matvec", "vecmat"]

    @_ufunc_like(np.matvec, (2, 1))
    def _matvec(x1: Any, x2: Any, axis: int) -> Any:
        _check_lengths("matvec", x1, x2, -1, -1)
        return _broadcasting(x1, x2, "ij", "j", "i")

    @_ufunc_like(np.vecmat, (1, 2))
    def _vecmat(x1: Any, x2: Any, axis: int) -> Any:
        _check_lengths("vecmat", x1, x2, -1, -2)
        return _broadcasting(_conj(x1), x2, "i", "ij", "j")

    def matvec(x1: Any, x2: Any, /) -> Any:
        """Matrix times vector, earlier axes broadcast, as ``numpy.matvec``.

        Parameters
        ----------
        x1 : array_like of shape (..., m, n)
        x2 : array_like of shape (..., n)
        """
        return np.matvec(x1, x2)

    def vecmat(x1: Any, x2: Any, /) -> Any:
        """Conjugate vector times matrix, earlier axes broadcast, as ``numpy.vecmat``.

        Parameters
        ----------
        x1 : array_like of shape (..., m)
        x2 : array_like of shape (..., m, n)
        """
        return np.vecmat(x1, x2)


def matmul(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """The matrix product over the last two axes, earlier ones broadcast, as ``numpy.matmul``.

    Parameters
    ----------
    x1, x2 : array_like
        A vector is a row on the left and a column on the right.
    out : array, optional

    Raises
    ------
    ShapeError
        The inner lengths differ, or an operand is a number.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> w = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> wg.grad(lambda x: np.sum(w @ x))(np.ones(2))
    array([4., 6.])
    """
    x1, x2 = joining.stacked(x1), joining.stacked(x2)
    return np.matmul(x1, x2) if out is None else np.matmul(x1, x2, out=out)


counterpart(np.linalg.matmul)(matmul)


# ---- any axes ----------------------------------------------------------------------------------


@counterpart(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """The product summed over chosen axes, as ``numpy.tensordot``.

    Parameters
    ----------
    a, b : array_like
    axes : int or (int or sequence of int, int or sequence of int)
        The number of last axes of `a` and first axes of `b` to sum over, or the axes of each.

    Raises
    ------
    ShapeError
        The axes do not match.
    """
    a, b = as_array(a), as_array(b)
    if isinstance(axes, int | np.integer):
        axes_a, axes_b = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        axes_a, axes_b = ([int(i) for i in np.ravel(side)] for side in axes)
    fits = len(axes_a) == len(axes_b) and all(
        -a.ndim <= i < a.ndim and -b.ndim <= j < b.ndim and a.shape[i] == b.shape[j]
        for i, j in zip(axes_a, axes_b, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"tensordot of shapes {a.shape} and {b.shape} over axes {axes_a} and {axes_b}: they do "
            f"not match. Pass pairs of axes of equal length{at(user_line())}."
        )
    left = list(ascii_letters[: a.ndim])
    right = list(ascii_letters[a.ndim : a.ndim + b.ndim])
    out = [c for i, c in enumerate(left) if i not in [j % a.ndim for j in axes_a]]
    out += [c for i, c in enumerate(right) if i not in [j % b.ndim for j in axes_b]]
    for i, j in zip(axes_a, axes_b, strict=True):
        right[j] = left[i]
    return _einsum(a, b, subscripts=("".join(left), "".join(right), "".join(out)))


@counterpart(np.einsum)
def einsum(
    *operands: Any,
    out: Any = None,
    optimize: Any = False,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
) -> Any:
    """Einstein summation, as ``numpy.einsum``.

    Parameters
    ----------
    *operands : str and array_like, or alternating array_like and lists of int
        Subscripts such as ``"ij,jk->ik"``, then the operands; or each operand followed by its
        labels, and optionally the labels of the result.
    out : array, optional
    optimize, order, casting
        Ignored: the contraction order is always optimized, and cached.
    dtype : dtype, optional
        Dtype of the computation.

    Raises
    ------
    ShapeError
        Subscripts and operands do not match.

    Notes
    -----
    A letter repeated within an operand selects its diagonal; letters that the result does not have
    are summed. If nothing is multiplied or summed, the result is a writable view:
    ``np.einsum("ii->i", x)[...] = 1.0`` assigns to the diagonal.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.einsum("ii->", x))(np.ones((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    arrays, subscripts, result = parse(operands)
    if len(arrays) == 1 and out is None and set(subscripts[0]) == set(result):
        # A view whatever the dtype, as in NumPy.
        return view_of(as_array(arrays[0]), subscripts[0], result)
    arrays = [as_array(x) if dtype is None else astype(x, dtype) for x in arrays]
    for k, axes in enumerate(subscripts):
        arrays[k], subscripts[k] = diagonals(arrays[k], axes, shapes.diagonal)
    return _delivered(_einsum(*arrays, subscripts=(*subscripts, result)), out)


# ---- Kronecker and cross -----------------------------------------------------------------------


@counterpart(np.kron)
def kron(a: Any, b: Any) -> Any:
    """The Kronecker product: blocks of `b` scaled by the elements of `a`, as ``numpy.kron``.

    Parameters
    ----------
    a, b : array_like
        Axes of length one are prepended to the operand with fewer axes.
    """
    a, b = as_array(a), as_array(b)
    n = max(a.ndim, b.ndim)
    a, b = (shapes.reshape(x, shape=(1,) * (n - x.ndim) + x.shape) for x in (a, b))
    left, right = ascii_letters[:n], ascii_letters[n : 2 * n]
    mixed = "".join(p + q for p, q in zip(left, right, strict=True))
    blocks = _einsum(a, b, subscripts=(left, right, mixed))
    full = tuple(p * q for p, q in zip(a.shape, b.shape, strict=True))
    return shapes.reshape(blocks, shape=full)


@counterpart(np.cross)
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """The cross product, as ``numpy.cross``.

    Parameters
    ----------
    a, b : array_like
        Vectors of three components along the chosen axis; the other axes broadcast.
    axisa, axisb, axisc : int, default -1
        The axes of the components in `a`, `b` and the result.
    axis : int, optional
        Sets all three.

    Raises
    ------
    ShapeError
        An operand does not have three components. (The form for two is deprecated in NumPy.)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = as_array(a), as_array(b)
    if not all(x.ndim and x.shape[i] == 3 for x, i in ((a, axisa), (b, axisb))):
        raise ShapeError(
            f"cross of shapes {a.shape} and {b.shape}: the axis of the components must have "
            "length 3. Append a zero to 2-d vectors, or write x[0]*y[1] - x[1]*y[0]"
            f"{at(user_line())}."
        )
    a, b = _to_last(a, axisa), _to_last(b, axisb)
    ahead, behind = (Ellipsis, np.array([1, 2, 0])), (Ellipsis, np.array([2, 0, 1]))
    read = getitem.read
    out = read(a, ahead) * read(b, behind) - read(a, behind) * read(b, ahead)
    n = out.ndim
    if axisc % n == n - 1:
        return out
    order = list(range(n - 1))
    order.insert(axisc % n, n - 1)
    return shapes.transpose(out, axes=tuple(order))


@counterpart(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of 3-vectors, as ``numpy.linalg.cross``.

    Parameters
    ----------
    x1, x2 : array_like
    axis : int, default -1
    """
    return cross(x1, x2, axis=axis)
