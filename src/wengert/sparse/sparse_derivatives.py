"""sparse_jacobian, sparse_hessian and sparsity.

Each takes a function and returns another, as `jacobian` does.  The result caches a plan
(compiled_plan.py) for each combination of shapes and dtypes, so that every call but the first runs
a compiled program.

    SparseDerivative    the callable that they return, with `values` and `plan`
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wengert._engine.autodiff.arguments import Argnums, derived, name_in_module, name_of
from wengert._engine.autodiff.grad import value_and_grad
from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe
from wengert._engine.core.spec import Spec
from wengert._engine.core.validation import function as check_function
from wengert._engine.jit.call_signature import static_key
from wengert.errors import ArgumentError, TraceError, at, user_line

from .coloring_and_order import EntryOrder, Given
from .compiled_plan import Plan, planned, traced

MODES = ("auto", "fwd", "rev")
FORMATS = ("csr", "csc", "coo")
PLANS = 64  # size of the cache of plans
_ARRAYS = frozenset((np.ndarray,))


class SparseDerivative:
    """A sparse Jacobian or Hessian of a function; see `sparse_jacobian`.

    A call with arrays returns the matrix; `values` returns the vector of its entries, and `plan`
    the pattern and the compiled program for some arguments.
    """

    __name__: str

    def __init__(self, fun: Callable[..., Any], given: Given, format: str) -> None:
        self._fun, self._given, self._format = fun, given, format
        self._plans: dict[Hashable, Plan] = {}
        functools.update_wrapper(self, fun, updated=())
        self.__name__ = name_of(fun)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the matrix at these arguments."""
        plan = self.plan(*args, **kwargs)
        values = plan.values(*args, **kwargs)
        if isinstance(values, Handle):
            if values.node.is_traced or values.node.args:
                raise TraceError(
                    f"{self._given.what}: a SciPy matrix cannot be part of a graph or be "
                    "differentiated. Use the vector of its entries, .values(...); or, if no "
                    "derivative is needed, pass arrays, under wengert.no_grad() if it reads "
                    f"parameters{at(user_line())}."
                )
            values = values.node.value
        return plan.matrix(values, self._format)

    def values(self, /, *args: Any, **kwargs: Any) -> Any:
        """The entries in the order of ``plan(...).rows`` and ``.cols``: row by row by default.

        Returns
        -------
        ndarray of shape (nnz,)
            A tensor if tensors are given; it can be traced and differentiated.
        """
        return self.plan(*args, **kwargs).values(*args, **kwargs)

    def plan(self, /, *args: Any, **kwargs: Any) -> Plan:
        """The pattern, passes and compiled function for arguments of these shapes.

        Parameters
        ----------
        *args, **kwargs
            Arrays, or specs (`wengert.spec`).

        Returns
        -------
        Plan
        """
        key: Any = None
        if not kwargs and _ARRAYS.issuperset(map(type, args)):  # the fast path
            key = tuple([(x.dtype, x.shape) for x in args])
            plan = self._plans.get(key)
            if plan is not None and plan.is_valid():
                return plan
        leaves, structure = pytree.flatten((args, kwargs))
        specs = [_spec(x) for x in leaves]
        if key is None:
            key = (structure, *[x if type(x) is Spec else static_key(x) for x in specs])
        plan = self._plans.get(key)
        if plan is None or not plan.is_valid():
            given_args, given_kwargs = pytree.unflatten(structure, specs)
            others = [p for p in self._plans.values() if p.is_valid()]
            plan = planned(self._given, given_args, given_kwargs)
            for other in others:  # tracing does not invalidate these
                other.rebase()
            if len(self._plans) >= PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return name_in_module(self) or (SparseDerivative, (self._fun, self._given, self._format))

    def __repr__(self) -> str:
        return f"<{self._given.what}>"


def _spec(x: Any) -> Any:
    """The spec of an argument; objects that are not numbers unchanged."""
    spec = x if isinstance(x, Spec) else describe(x)
    return spec if isinstance(spec, Spec) else x


def sparse_jacobian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    mode: str = "auto",
    format: str = "csr",
    order: str = "csr",
    rows: ArrayLike | None = None,
    cols: ArrayLike | None = None,
    triangle: str | None = None,
) -> SparseDerivative:
    """Return a function that computes the Jacobian of a function as a sparse matrix.

    Parameters
    ----------
    fun : callable
        Takes and returns arrays or nested containers of them, and can be traced.
    argnums : int or sequence of int, default 0
        Which positional arguments to differentiate with respect to.
    argnames : str or sequence of str, optional
        Arguments to differentiate with respect to, by name.
    mode : {"auto", "fwd", "rev"}
        Passes for columns, or for rows; "auto" uses the mode with fewer passes, and both modes if a
        few rows or columns are full.
    format : {"csr", "csc", "coo"}
        The format of the `scipy.sparse` arrays that are returned.
    order : {"csr", "csc", "coo"}
        The order of the vector of entries: row by row, column by column, or that of `rows` and
        `cols`.
    rows, cols : array_like of int, optional
        The positions of the entries, for ``order="coo"``. They contain all entries of the pattern
        once; others are zero.
    triangle : {"lower", "upper"}, optional
        Only entries on and below, or on and above, the diagonal of a square matrix.

    Returns
    -------
    SparseDerivative
        For one array in and one out: a matrix of shape ``(out.size, in.size)``, elements in C
        order. With containers a matrix for each pair, nested as in `jacobian`. Its ``.values`` is
        the vector of entries alone, its ``.plan`` the pattern.

    Raises
    ------
    TracedBranchError
        When it is called: a branch of code that is not converted depends on a value.
    ShapeError
        A length depends on values, so that there is no pattern.
    ArgumentError
        An invalid option.

    Notes
    -----
    *The pattern* is computed once for each combination of shapes and dtypes, from the graph. It is
    valid for all values, so it may contain entries that happen to be zero, and never lacks one. The
    results of opaque operations are taken to depend on all elements of all operands.

    *Cost.* The first call traces, finds the pattern (time and memory linear in the entries of every
    node's pattern), colors it (linear in the entries) and compiles. Later calls run one compiled
    program of as many passes as there are colors: for a band matrix its width, whatever the size.

    *Source:* A. R. Curtis, M. J. D. Powell, J. K. Reid, "On the estimation of sparse Jacobian
    matrices", IMA J. Appl. Math. 13 (1974); A. H. Gebremedhin, F. Manne, A. Pothen, "What color is
    your Jacobian?", SIAM Review 47 (2005).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> jac = wg.sparse_jacobian(lambda x: x[1:] * x[:-1])
    >>> matrix = jac(np.array([1.0, 2.0, 3.0, 4.0]))
    >>> matrix.toarray()
    array([[2., 1., 0., 0.],
           [0., 3., 2., 0.],
           [0., 0., 4., 3.]])
    >>> jac.plan(np.ones(1000)).passes
    2
    """
    what = f"sparse_jacobian of {name_of(fun)}"
    check_function(fun, "sparse_jacobian")
    if not isinstance(mode, str) or mode not in MODES:
        raise ArgumentError(f"{what}: mode={mode!r} is not one of {MODES}{at(user_line())}.")
    _check_format(format, what)
    in_order = EntryOrder(order, rows, cols, triangle, what)
    given = Given(fun, argnums, argnames, mode, False, what, in_order)
    return SparseDerivative(fun, given, format)


def sparse_hessian(
    fun: Callable[..., Any],
    argnums: int = 0,
    *,
    argnames: str | None = None,
    format: str = "csr",
    order: str = "csr",
    rows: ArrayLike | None = None,
    cols: ArrayLike | None = None,
    triangle: str | None = None,
) -> SparseDerivative:
    """Return a function that computes the Hessian of a scalar function as a sparse matrix.

    Parameters
    ----------
    fun : callable
        Returns one real number, and can be traced.
    argnums : int, default 0
        The argument to differentiate with respect to, an array.
    argnames : str, optional
        The same, by name.
    format : {"csr", "csc", "coo"}
        The format of the `scipy.sparse` arrays that are returned.
    order : {"csr", "csc", "coo"}
        The order of the vector of entries: row by row, column by column, or that of `rows` and
        `cols`.
    rows, cols : array_like of int, optional
        The positions of the entries, for ``order="coo"``. They contain all entries of the pattern
        once; others are zero.
    triangle : {"lower", "upper"}, optional
        Only entries on and below, or on and above, the diagonal of a square matrix.

    Returns
    -------
    SparseDerivative
        For an argument of n numbers a matrix of shape ``(n, n)``; ``.values`` and ``.plan`` as of
        `sparse_jacobian`.

    Notes
    -----
    Forward over reverse: the Jacobian of the gradient. Full rows are computed as columns, which are
    equal by symmetry, so that an arrow matrix takes two passes.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> hess = wg.sparse_hessian(lambda x: np.sum(x[1:] ** 2 * x[:-1]))
    >>> hess(np.array([1.0, 2.0, 3.0])).toarray()
    array([[0., 4., 0.],
           [4., 2., 6.],
           [0., 6., 4.]])
    """
    what = f"sparse_hessian of {name_of(fun)}"
    check_function(fun, "sparse_hessian")
    _check_format(format, what)
    single = isinstance(argnums, int) and (argnames is None or isinstance(argnames, str))
    if not single:
        raise ArgumentError(
            f"{what}: argnums={argnums!r}, argnames={argnames!r}: only one argument is supported. "
            f"Pass several in a container{at(user_line())}."
        )
    both = value_and_grad(fun, argnums, argnames=argnames, _what="sparse_hessian")
    in_order = EntryOrder(order, rows, cols, triangle, what)
    given = Given(both, argnums, argnames, "fwd", True, what, in_order)
    return SparseDerivative(fun, given, format)


def sparsity(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Return a function that computes the sparsity pattern of the Jacobian of a function.

    Parameters
    ----------
    fun, argnums, argnames
        As in `sparse_jacobian`.

    Returns
    -------
    callable
        Takes the arguments, or specs, and returns a `scipy.sparse.csr_array` of bool: a row for
        each output element, a column for each input element.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.sparsity(lambda x: np.cumsum(x) * x[0])(wg.spec(3)).toarray().astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    given = Given(fun, argnums, argnames, "auto", False, f"sparsity of {name_of(fun)}")
    return derived(fun, _sparsity, given)


def _sparsity(given: Given, /, *args: Any, **kwargs: Any) -> Any:
    specs = pytree.tree_map(_spec, (args, kwargs))
    return traced(given, *specs).pattern


def _check_format(format: str, what: str) -> None:
    if not isinstance(format, str) or format not in FORMATS:
        raise ArgumentError(f"{what}: format={format!r} is not one of {FORMATS}{at(user_line())}.")
