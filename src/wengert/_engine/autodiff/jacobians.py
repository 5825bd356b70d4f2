"""Matrices of derivatives: jacobian, jacfwd, jacrev, hessian, hvp.

A Jacobian takes one forward pass per input element, or one backward pass per output element, on one
tape; the function itself runs once.  By default the mode with fewer passes is used.  Many passes
run as one batch (pullback.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, overload

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe
from wengert._engine.core.op import lookup
from wengert._engine.core.other_libraries import Labelled, calls, may_be_labelled
from wengert._engine.core.spec import Spec
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.core.validation import function
from wengert.errors import (
    ArgumentError,
    NotDifferentiableError,
    StructureError,
    TracedBranchError,
    TraceError,
    at,
    user_line,
)

from . import infinities
from .arguments import Argnums, DifferentiatedCall, check_argnums, derived, name_of
from .grad import gradient_of
from .jvp_vjp import jvp
from .messages import different_columns
from .pullback import Result, columns_of, has_no_nan, is_faster_batched, rows_of, unit_vector

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size

P = ParamSpec("P")

MODES = ("auto", "fwd", "rev")


@overload
def jacobian(
    fun: np.ufunc,
    argnums: Argnums = ...,
    *,
    argnames: str | Sequence[str] | None = ...,
    mode: str = ...,
) -> Callable[..., Any]: ...


@overload
def jacobian(
    fun: Callable[P, Any],
    argnums: Argnums = ...,
    *,
    argnames: str | Sequence[str] | None = ...,
    mode: str = ...,
) -> Callable[P, Any]: ...


def jacobian(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    mode: str = "auto",
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of a function of arrays.

    Parameters
    ----------
    fun : callable
        Takes and returns arrays or nested containers of them.
    argnums : int or sequence of int, default 0
        Positional arguments to differentiate with respect to.
    argnames : str or sequence of str, optional
        Arguments to differentiate with respect to, by name.
    mode : {"auto", "fwd", "rev"}
        A pass per input element ("fwd") or per output element ("rev"); "auto": the fewer ones.

    Returns
    -------
    callable
        For one array in and one out: an array of shape ``out.shape + in.shape`` whose entry
        ``[i..., j...]`` is the derivative of output i with respect to input j. Containers of
        outputs are outermost, containers of inputs inside them.

    Notes
    -----
    For complex inputs and real outputs each row follows the convention of `grad`. For complex
    inputs and outputs forward mode is used: column j is the derivative along the real direction of
    input j, which is the complex derivative of a holomorphic function.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.jacobian(lambda x: x * x[0])(np.array([2.0, 3.0]))
    array([[4., 0.],
           [3., 2.]])
    """
    if not isinstance(mode, str) or mode not in MODES:
        raise ArgumentError(f"mode={mode!r} is not one of {MODES}{at(user_line())}.")
    check_argnums(argnums, f"jacobian of {name_of(fun)}")
    return derived(fun, jacobian_of, fun, argnums, argnames, mode, "jacobian", name="jacobian")


def jacobian_of(
    fun: Callable[..., Any],
    argnums: Argnums,
    argnames: str | Sequence[str] | None,
    mode: str,
    name: str,
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """The Jacobian for the given arguments: what `jacobian` returns runs it."""
    what = f"{name} of {name_of(fun)}"
    try:
        call = DifferentiatedCall(fun, args, kwargs, argnums, argnames, what)
        outs, structure = pytree.flatten(call())
        result = Result(outs, call.nodes, call.variables, call.messages)
    except Labelled:
        if not may_be_labelled(fun):
            raise
        return calls().jacobian(fun, argnums, argnames, mode, name, what, args, kwargs)
    blocks = _blocks(outs, call, result, mode, what)
    rows = [call.results([result.as_given(b) for b in row]) for row in blocks]
    return pytree.unflatten(structure, rows)


@overload
def jacfwd(fun: np.ufunc, argnums: Argnums = ...) -> Callable[..., Any]: ...


@overload
def jacfwd(fun: Callable[P, Any], argnums: Argnums = ...) -> Callable[P, Any]: ...


def jacfwd(fun: Callable[P, Any], argnums: Argnums = 0) -> Callable[P, Any]:
    """`jacobian` in forward mode: one pass per input element.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.jacfwd(np.sin)(np.zeros(2))
    array([[1., 0.],
           [0., 1.]])
    """
    return derived(fun, jacobian_of, fun, argnums, None, "fwd", "jacfwd", name="jacfwd")


@overload
def jacrev(fun: np.ufunc, argnums: Argnums = ...) -> Callable[..., Any]: ...


@overload
def jacrev(fun: Callable[P, Any], argnums: Argnums = ...) -> Callable[P, Any]: ...


def jacrev(fun: Callable[P, Any], argnums: Argnums = 0) -> Callable[P, Any]:
    """`jacobian` in reverse mode: one pass per output element.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.jacrev(np.sin)(np.zeros(2))
    array([[1., 0.],
           [0., 1.]])
    """
    return derived(fun, jacobian_of, fun, argnums, None, "rev", "jacrev", name="jacrev")


@overload
def hessian(
    fun: np.ufunc,
    argnums: Argnums = ...,
    *,
    argnames: str | Sequence[str] | None = ...,
) -> Callable[..., Any]: ...


@overload
def hessian(
    fun: Callable[P, Any],
    argnums: Argnums = ...,
    *,
    argnames: str | Sequence[str] | None = ...,
) -> Callable[P, Any]: ...


def hessian(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable[P, Any]:
    """Return a function that computes the Hessian of a scalar function.

    Parameters
    ----------
    fun : callable
        Returns one real number.
    argnums : int or sequence of int, default 0
        Positional arguments to differentiate with respect to.
    argnames : str or sequence of str, optional
        Arguments to differentiate with respect to, by name.

    Returns
    -------
    callable
        For one array of shape s: an array of shape ``s + s``, symmetric up to rounding.

    Notes
    -----
    Forward over reverse: the gradient is recorded once, and differentiated by one forward pass per
    input element.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    function(fun, "hessian")
    df = gradient_of(fun, argnums, argnames, "hessian")
    return derived(df, jacobian_of, df, argnums, argnames, "fwd", "hessian", name="hessian")


def hvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of a scalar function times a vector, without forming the Hessian.

    Parameters
    ----------
    fun : callable
        Returns one real number.
    primals : sequence
        The arguments of `fun`.
    tangents : sequence
        The vector: for each primal a tangent of its structure and shapes.

    Returns
    -------
    product
        For one primal its product, of its structure and shapes; for several a tuple.

    Notes
    -----
    Forward over reverse: a small constant times one evaluation of `fun`, whatever the size.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> f = lambda x: np.sum(x**3)
    >>> wg.hvp(f, (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    array([6., 0.])
    """
    if not isinstance(primals, tuple | list):
        raise StructureError(
            f"hvp of {name_of(fun)}: primals and tangents must be tuples, one entry for each "
            f"argument. For one argument write (x,), (v,){at(user_line())}."
        )
    argnums: Argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(gradient_of(fun, argnums, None, "hvp"), primals, tangents)[1]


# ---- one block for each pair of an output and an input -----------------------------------------


def _blocks(
    outs: list[Any], call: DifferentiatedCall, result: Result, mode: str, what: str
) -> list[list[Any]]:
    out_specs = [_spec(o, what) for o in outs]
    in_specs = [n.spec for n in call.nodes]
    n_in = sum(s.size for s in in_specs)
    n_out = sum(s.size for s in out_specs)
    holomorphic = any(_is_complex(s) for s in out_specs) and any(map(_is_complex, in_specs))
    if mode == "auto":
        is_wide = not (holomorphic or _is_at_most(n_in, n_out))
        mode = "rev" if is_wide or not result.has_shared_columns() else "fwd"
    elif mode == "fwd" and not result.has_shared_columns():
        raise different_columns(what)
    if mode == "fwd":
        if is_faster_batched(result, n_in, reverse=False):
            blocks = _attempt(_columns_at_once, result, in_specs, out_specs)
            if blocks is not None:
                return blocks
        columns = _columns(result, in_specs, out_specs)
        return [
            [
                _join([c[k] for c in columns[i]], out, s, columns_first=True)
                for i, s in enumerate(in_specs)
            ]
            for k, out in enumerate(out_specs)
        ]
    if holomorphic:
        raise NotDifferentiableError(
            f"{what}: for complex inputs and outputs, reverse mode gives conjugates of the rows of "
            f'the Jacobian. Use mode="fwd"{at(user_line())}.'
        )
    if is_faster_batched(result, n_out, reverse=True):
        blocks = _attempt(_rows_at_once, result, in_specs, out_specs)
        if blocks is not None:
            return blocks
    return [_rows(result, k, out, in_specs) for k, out in enumerate(out_specs)]


def _is_at_most(n_in: Size, n_out: Size) -> bool:
    """Whether there are at most as many inputs as outputs; symbolic sizes count as larger."""
    try:
        return bool(n_in <= n_out)
    except TracedBranchError:
        return isinstance(n_in, int) or not isinstance(n_out, int)


def _is_complex(spec: Spec) -> bool:
    return spec.dtype.kind == "c"


def _spec(out: Array, what: str) -> Spec:
    spec = describe(out)
    if not isinstance(spec, Spec):
        raise StructureError(
            f"{what}: it returned a {type(out).__name__}, which has no derivative. Return arrays"
            f"{'' if out is not None else ' (`return` is missing)'}{at(user_line())}."
        )
    return spec


# ---- all unit vectors in one batch -------------------------------------------------------------


def _attempt(
    batched: Callable[..., list[list[Any]]], result: Result, *specs: list[Spec]
) -> list[list[Any]] | None:
    """The blocks; None if a rule needs concrete values, or the result needs a guarded pass."""
    try:
        blocks = batched(result, *specs)
    except TraceError:
        if result.tape.traced:
            raise
        return None
    if result.tape.traced:
        return blocks
    infinite = infinities.is_infinite([n for n in result.out_nodes if n is not None])
    return blocks if has_no_nan(blocks) and not infinite else None


def _columns_at_once(
    result: Result, in_specs: list[Spec], out_specs: list[Spec]
) -> list[list[Any]]:
    columns = columns_of(result, in_specs)
    if any(map(_is_complex, in_specs)) and any(s.dtype.kind == "f" for s in out_specs):
        imaginary = columns_of(result, in_specs, 1j)  # d/dRe + i d/dIm, as in grad
        for i, spec in enumerate(in_specs):
            for k, out in enumerate(out_specs):
                if columns[i][k] is not None and _is_complex(spec) and out.dtype.kind == "f":
                    columns[i][k] = columns[i][k] + 1j * imaginary[i][k]
    return [
        [_arranged(columns[i][k], out, s, columns_first=True) for i, s in enumerate(in_specs)]
        for k, out in enumerate(out_specs)
    ]


def _rows_at_once(result: Result, in_specs: list[Spec], out_specs: list[Spec]) -> list[list[Any]]:
    rows = rows_of(result, out_specs)
    if any(map(_is_complex, out_specs)):
        imaginary = rows_of(result, out_specs, 1j)
        for k, out in enumerate(out_specs):
            if _is_complex(out):
                pairs = zip(rows[k], imaginary[k], strict=True)
                rows[k] = [None if a is None else a + 1j * b for a, b in pairs]
    return [
        [_arranged(rows[k][i], s, out, columns_first=False) for i, s in enumerate(in_specs)]
        for k, out in enumerate(out_specs)
    ]


def _arranged(block: Array | None, space: Spec, units: Spec, columns_first: bool) -> Any:
    """Derivatives in `space`, one for each unit vector, with the axes of a Jacobian."""
    shape = (*space.shape, *units.shape) if columns_first else (*units.shape, *space.shape)
    if block is None:
        return zeros(Spec(shape, space.dtype if space.dtype.kind in "fc" else units.dtype))
    if columns_first:
        block = lookup("transpose")(block, axes=(*range(1, len(space.shape) + 1), 0))
    block = lookup("reshape")(block, shape=shape)
    return block if isinstance(block, Handle) else np.array(block, order="C")


# ---- one unit vector at a time -----------------------------------------------------------------


def _columns(result: Result, in_specs: list[Spec], out_specs: list[Spec]) -> list[list[list[Any]]]:
    no_tangents = [np.zeros(s.shape, s.dtype)[()] for s in in_specs]
    to_real = [spec.dtype.kind == "f" for spec in out_specs]
    columns = []
    for i, spec in enumerate(in_specs):
        block = []
        for k in range(spec.size):
            dots = list(no_tangents)
            dots[i] = unit_vector(spec, k)
            column = result.push(dots)
            if _is_complex(spec) and any(to_real):  # d/dRe + i d/dIm, as in grad
                dots[i] = dots[i] * spec.dtype.type(1j)
                pairs = zip(column, result.push(dots), to_real, strict=True)
                column = [a + 1j * b if real and b is not None else a for a, b, real in pairs]
            block.append(column)
        columns.append(block)
    return columns


def _rows(result: Result, k: int, out: Spec, in_specs: list[Spec]) -> list[Any]:
    node: Any = result.out_nodes[k]
    no_cotangents = [None] * len(in_specs)
    connected = node in (result.tape.nodes or ())
    rows = []
    for j in range(out.size):
        row = result.pull({node: unit_vector(out, j)}) if connected else no_cotangents
        if connected and _is_complex(out):  # the real part, then the imaginary part
            imaginary = result.pull({node: unit_vector(out, j) * out.dtype.type(1j)})
            row = [None if a is None else a + 1j * b for a, b in zip(row, imaginary, strict=True)]
        rows.append(row)
    return [
        _join([r[i] for r in rows], s, out, columns_first=False) for i, s in enumerate(in_specs)
    ]


def _join(items: list[Any], space: Spec, units: Spec, columns_first: bool) -> Any:
    """Stack derivatives in `space`, one for each unit vector."""
    shape = (*space.shape, *units.shape) if columns_first else (*units.shape, *space.shape)
    # An integer output has the derivative zero, in the dtype of the other side.
    dtype = space.dtype if space.dtype.kind in "fc" else units.dtype
    zero = np.zeros(space.shape, dtype)
    items = [zero if b is None else b for b in items]
    if not items:
        return np.zeros(shape, dtype)
    if any(isinstance(b, Handle) for b in items):
        stacked: Any = lookup("stack")(*items, axis=-1 if columns_first else 0)
    else:
        stacked = np.stack([np.asarray(b) for b in items], axis=-1 if columns_first else 0)
    return stacked.reshape(shape)
