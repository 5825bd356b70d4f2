"""Linear systems whose matrix is given as a function: custom_linear_solve.

The derivative of ``x`` in ``A(theta) x = b`` needs one more solution, with the same matrix in
forward mode and with its adjoint in reverse mode:

    A xdot = bdot - Adot x        A^H lambda = xbar,  bbar = lambda,  thetabar = -(A' x)^H lambda

(M. B. Giles, "Collected matrix derivative results", 2008, section 2.2).  Both are linear systems of
the same kind, so derivatives of any order exist.

    custom_linear_solve   a system that a given function solves
    LinearSystem          the system, its solution and its derivative
    matrix                the matrix of a linear function
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import describe, shape_of
from wengert._engine.core.loop_variants import patterns
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import no_grad
from wengert._engine.core.trace_notes import note
from wengert._engine.core.validation import function
from wengert._engine.ops.linalg.condition import reciprocal_condition, refuse_singular
from wengert._engine.ops.linalg.linear_solve import adjoint
from wengert._engine.ops.linalg.linear_solve import solve as solve_dense
from wengert._engine.ops.linalg.packed_factors import definite_packed, lu_packed, solve_packed
from wengert.errors import ArgumentError, at, user_line

from .functions import GraphFunction, Leaves, cotangents_of, raveled
from .kept_graphs import by_graph
from .linear_methods import (
    MATRIX,
    KrylovSolver,
    MatrixStructure,
    Singular,
    checked_method,
    solve_definite,
    solve_structured,
    structure_of,
)
from .solver_calls import (
    UNCLEAR,
    SolverRule,
    communicator_of,
    means,
    refuse_unclear,
    shared,
    solver_call,
)

_LEAST_TRIED = 12  # unknowns of systems that are tried as positive definite
_UNROLLED = 4  # unknowns of systems that native code solves without a call of LAPACK
Solve = Callable[[Callable[[Any], Any], Any], Any]


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Solve | str | None = None,
    transpose_solve: Solve | str | None = None,
    symmetric: bool = False,
) -> Any:
    """Solve a linear system ``matvec(x) == b``, with implicitly defined derivatives.

    Parameters
    ----------
    matvec : callable
        A linear function of containers like `b`; captured tensors are differentiated.
    b : array or container of arrays
        The right-hand side.
    solve : callable or str, optional
        ``solve(matvec, b)`` returns `x`; it is not differentiated. By default ("lu") the matrix is
        computed and factorized, as a diagonal, banded, sparse or dense one, by the pattern found
        when `matvec` is traced, and as a positive definite one if its elements are those of one.
        "cholesky": it must be positive definite. "cg" (positive definite), "gmres", "bicgstab":
        SciPy's methods, which need only products.
    transpose_solve : callable or str, optional
        ``transpose_solve(vecmat, b)``, the same for the adjoint function; `solve` by default.
    symmetric : bool, default False
        Whether `matvec` is symmetric (Hermitian), so that `solve` and `matvec` are their own
        adjoints. It is not checked.

    Returns
    -------
    x : as `b`
        The solution.

    Raises
    ------
    StructureError, ShapeError, DtypeError
        `matvec` or `solve` return something else than arrays like `b`.
    SingularError
        The matrix is singular; or nearly so, and a derivative is taken (if it is factorized).
    ArgumentError
        `matvec` exchanges messages with other processes, and `solve` is not a function.
    MatrixError
        It is not positive definite ("cholesky").
    ConvergenceError
        "cg", "gmres" or "bicgstab" has not converged.

    See Also
    --------
    custom_root : nonlinear equations.

    Notes
    -----
    A derivative solves one more linear system, with the adjoint function in reverse mode; it does
    not depend on how `solve` works. If `matvec` exchanges messages (wengert.distributed), `solve`
    is needed, and the adjoint function exchanges the transposed messages.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def loss(k):
    ...     stiffness = lambda u: k * (2.0 * u - np.roll(u, 1) * np.array([0.0, 1.0]))
    ...     return np.sum(wg.custom_linear_solve(stiffness, np.array([4.0, 8.0])))
    >>> loss(2.0), wg.grad(loss)(2.0)
    (np.float64(3.5), np.float64(-1.75))
    """
    function(matvec, "custom_linear_solve")
    solve = checked_method(solve, "custom_linear_solve: solve")
    transpose_solve = checked_method(transpose_solve, "custom_linear_solve: transpose_solve")
    right = Leaves.of(b, "custom_linear_solve: b")
    fun = converted(matvec)
    what = "custom_linear_solve: the result of matvec"

    def of_leaves(*xs: Any) -> list[Any]:
        return right.like(fun(right.container(xs)), what)

    product, consts = GraphFunction.traced(of_leaves, right.specs, "matvec")
    comm = communicator_of(product, consts, right.values)
    system = LinearSystem(
        product, right.structure, right.specs, solve, transpose_solve, symmetric, comm
    )
    return right.container(system(consts, right.values))


class LinearSystem(SolverRule):
    """A linear system with a function for its matrix, whose captured values are operands.

    Parameters
    ----------
    product : GraphFunction
        The matrix times a vector.
    structure, specs
        Of the right-hand side.
    solve, transpose_solve : callable, str or None
        As in `custom_linear_solve`.
    symmetric : bool
        Whether the matrix is its own adjoint.
    comm : Communicator or None
        The processes that have the same unknowns, if `product` exchanges messages
        (solver_calls.py).
    is_adjoint : bool
        Whether the matrix of the system is the adjoint of that of `product`.
    of_derivative : bool
        Whether the solution is a derivative, which is refused if the matrix is nearly singular.
    """

    name = "custom_linear_solve"

    def __init__(
        self,
        product: GraphFunction,
        structure: Any,
        specs: Sequence[Any],
        solve: Solve | str | None = None,
        transpose_solve: Solve | str | None = None,
        symmetric: bool = False,
        comm: Any = None,
        is_adjoint: bool = False,
        of_derivative: bool = False,
    ) -> None:
        self.product, self.structure, self.specs = product, structure, tuple(specs)
        self.solve, self.transpose_solve = solve, transpose_solve
        self.symmetric, self.comm = symmetric, comm
        self.is_adjoint, self.of_derivative = is_adjoint, of_derivative
        self._key = product, solve, transpose_solve, symmetric, comm, is_adjoint, of_derivative

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearSystem) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def size_names(self) -> frozenset[str]:
        """The symbolic sizes in the matrix."""
        return self.product.body.size_names

    @property
    def sends(self) -> bool:
        """Whether `matvec` exchanges messages."""
        return self.product.sends

    def at_sizes(self, sizes: Any) -> LinearSystem:
        """The same system with numbers for symbolic sizes."""
        product = self.product.at_sizes(sizes)
        specs = [n.spec for n in product.outputs]
        return LinearSystem(product, self.structure, specs, *self._key[1:])

    @functools.cached_property
    def derivative(self) -> LinearSystem:
        """The system for a derivative of the solution."""
        if self.of_derivative:
            return self
        return self._with(self.is_adjoint, True)

    @functools.cached_property
    def adjoint(self) -> LinearSystem:
        """The system with the adjoint matrix, for a derivative of the solution."""
        if self.symmetric:
            return self.derivative
        return self._with(not self.is_adjoint, True)

    def _with(self, is_adjoint: bool, of_derivative: bool) -> LinearSystem:
        """The system with the same function, or its adjoint."""
        given = self.solve, self.transpose_solve, self.symmetric, self.comm
        return LinearSystem(
            self.product, self.structure, self.specs, *given, is_adjoint, of_derivative
        )

    def __call__(self, consts: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """The solution, as a node with this rule."""
        return solver_call(self, [*consts, *b])

    def applied(self, consts: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
        """The matrix of the system times a vector."""
        if self.is_adjoint:
            return self._adjoint_product(consts, xs, xs)
        return self.product(consts, xs)

    def _adjoint_product(
        self, consts: Sequence[Any], ys: Sequence[Any], xs: Sequence[Any]
    ) -> list[Any]:
        """The adjoint of `product` at `xs`, which do not matter, times a vector."""
        comm = self.comm
        if not self._is_shared:
            return self.product.cotangents(consts, xs, ys)
        return cotangents_of(
            lambda *v: self.product(consts, shared(v, comm)), xs, [y / comm.size for y in ys]
        )

    def adjoint_solution(self, consts: Sequence[Any], ts: Sequence[Any]) -> list[Any]:
        """The solution of the system with the adjoint matrix."""
        refuse_unclear(self.comm)
        return self.adjoint(consts, self._in_messages(ts))

    def _in_messages(self, xs: Sequence[Any]) -> Sequence[Any]:
        """Unknowns or (co)tangents; if all processes have the same, as results of messages."""
        return means(xs, self.comm) if self._is_shared else xs

    @property
    def _is_shared(self) -> bool:
        """Whether all processes have the same unknowns."""
        return self.comm is not None and self.comm is not UNCLEAR

    def values(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The solution for plain operands."""
        given = self.transpose_solve or self.solve if self.is_adjoint else self.solve
        if not isinstance(given, str | None):
            return super().values(operands)
        with no_grad():
            return tuple(by_graph(self._key, lambda *xs: self.solution(xs), operands))

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The solution by the given function, or by a factorization of the matrix."""
        captured = self.product.captured
        consts, b = operands[:captured], operands[captured:]
        solve = self.transpose_solve or self.solve if self.is_adjoint else self.solve
        right = Leaves(list(b), self.specs, self.structure)
        if self.sends and isinstance(solve, str | None):
            raise ArgumentError(
                "a linear system whose product exchanges messages with other processes has no "
                f"solver, or one by name ({solve!r}). Its matrix is that of all processes "
                "together, and inner products are sums over them. Give a function that solves it "
                "by products, such as conjugate gradients: solve= of custom_linear_solve, "
                f"tangent_solve= of custom_root and implicit{at(user_line())}."
            )
        if solve is None:
            return self._factorized(consts, b)
        if isinstance(solve, str):
            return self._by_name(solve, consts, b)

        def matvec(x: Any) -> Any:
            return right.container(self.applied(consts, right.like(x, "the argument of matvec")))

        x = converted(solve)(matvec, right.container(b))
        return right.like(x, "custom_linear_solve: the result of solve")

    def _factorized(self, consts: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        flat = raveled(b)
        size = shape_of(flat)[0]
        structure = self._structure(size)
        note("linear system", f"{self.name}: {size} unknowns; the matrix is {structure}")
        if structure.kind != "dense":
            return _split(self._structured(structure, consts, flat), self.specs)
        a = matrix(self.product, consts, self.specs)
        if isinstance(size, int) and size <= _UNROLLED:
            if self.of_derivative and size > 1:
                flat = refuse_singular(flat, _reciprocal_of_small(a), what=MATRIX)
            flat = solve_dense(adjoint(a) if self.is_adjoint else a, flat)
            return _split(flat, self.specs)
        # In a compiled function both directions share one factorization.
        is_tried = isinstance(size, int) and size >= _LEAST_TRIED
        packed, pivots = definite_packed(a) if is_tried else lu_packed(a)
        if self.of_derivative:
            flat = refuse_singular(flat, reciprocal_condition(a, packed), what=MATRIX)
        column = lookup("expand_dims")(flat, axis=1)
        flat = solve_packed(packed, pivots, column, trans=2 if self.is_adjoint else 0)
        return _split(lookup("squeeze")(flat, axis=(1,)), self.specs)

    def _structure(self, size: Any) -> MatrixStructure:
        if not isinstance(size, int) or size <= _UNROLLED:
            return MatrixStructure("dense", size)
        return structure_of(self.product.body, self.product.captured, size)

    def _by_name(self, method: str, consts: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        flat = raveled(b)
        note("linear system", f"{self.name}: {shape_of(flat)[0]} unknowns, by {method}")
        if method == "cholesky":
            if self._structure(shape_of(flat)[0]).kind != "dense":
                return self._factorized(consts, b)
            a = matrix(self.product, consts, self.specs)
            return _split(solve_definite(a, flat, self.of_derivative), self.specs)
        specs, count = [*map(_strong, consts), _strong(flat)], len(consts)

        def product(*xs: Any) -> list[Any]:
            return [raveled(self.applied(xs[:count], _split(xs[count], self.specs)))]

        body = GraphFunction.traced(product, specs, "the product")[0].body
        solver = KrylovSolver(method)
        found = patterns().operation("scipy_solver")(
            *consts, flat, functions=(body,), captured=count, solver=solver
        )
        return _split(found[0], self.specs)

    def _structured(self, structure: MatrixStructure, consts: Sequence[Any], b: Any) -> Any:
        def products(vectors: Any) -> Any:
            return vmap(lambda x: raveled(self.product(consts, _split(x, self.specs))))(vectors)

        dtype = np.result_type(*[s.dtype for s in self.specs])
        singular = Singular(checked=self.of_derivative)
        return solve_structured(structure, products, b, self.is_adjoint, dtype, singular)

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: one solution with the adjoint matrix."""
        consts = operands[: self.product.captured]
        outs = self._in_messages(outs)
        multipliers = self.adjoint_solution(consts, ts)
        if self.is_adjoint:  # x^H (A' multipliers)
            bars = self.product.cotangents_of_captured(consts, multipliers, outs)
        else:
            bars = self.product.cotangents_of_captured(consts, outs, multipliers)
        return [*[None if c is None else -c for c in bars], *multipliers]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents: one more solution with the same matrix."""
        captured = self.product.captured
        consts, specs = operands[:captured], self.specs
        outs = self._in_messages(outs)
        change = self._change(consts, outs, dots[:captured])
        right = [
            _difference(d, None if change is None else change[k], specs[k])
            for k, d in enumerate(dots[captured:])
        ]
        return self.derivative(consts, self._in_messages(right))

    def _change(
        self, consts: Sequence[Any], xs: Sequence[Any], dots: Sequence[Any]
    ) -> list[Any] | None:
        """The tangent of the matrix times a vector."""
        if not self.is_adjoint:
            return self.product.tangent_of_captured(consts, xs, dots)
        pulled, values = GraphFunction.traced(
            lambda *v: self._adjoint_product(v[: len(consts)], xs, v[len(consts) :]),
            [*[_strong(x) for x in consts], *self.specs],
            "the adjoint of matvec",
        )
        count = len(values)
        shifted = GraphFunction(pulled.body, count + len(consts), pulled.sends)
        return shifted.tangent_of_captured([*values, *consts], list(xs), [*[None] * count, *dots])


def _reciprocal_of_small(a: Any) -> Any:
    """The reciprocal condition number of a small matrix, whatever the units of rows or columns.

    It includes the error of the inverse, since pivoting does depend on the units of rows.
    """
    a = lookup("stop_gradient")(a)
    unit = np.eye(shape_of(a)[-1], dtype=a.dtype)
    inverse = solve_dense(a, unit)
    precision = float(np.finfo(a.dtype).eps)
    conditions = [
        np.max(np.sum(np.abs(x) @ np.abs(y), axis=axis)) + np.max(np.abs(x @ y - unit)) / precision
        for x, y, axis in ((inverse, a, 1), (a, inverse, 0))
    ]
    return 1.0 / np.minimum(*conditions)


def _strong(x: Any) -> Any:
    spec = describe(x)
    return type(spec)(spec.shape, spec.dtype)


def _difference(a: Any, b: Any, spec: Any) -> Any:
    if b is None:
        return lookup("zeros")(shape=spec.shape, dtype=spec.dtype) if a is None else a
    return -b if a is None else a - b


def matrix(product: GraphFunction, consts: Sequence[Any], specs: Sequence[Any]) -> Any:
    """The matrix of a linear function of leaves, by its products with the unit vectors."""
    total: Any = sum([math.prod(s.shape) for s in specs])
    dtype = np.result_type(*[s.dtype for s in specs])
    units = lookup("eye")(rows=total, columns=total, dtype=dtype)

    def column(unit: Any) -> Any:
        return raveled(product(consts, _split(unit, specs)))

    return vmap(column, out_axes=1)(units)


def _split(flat: Any, specs: Sequence[Any]) -> list[Any]:
    """A vector as leaves of these specs."""
    leaves, start = [], 0
    for s in specs:
        size = math.prod(s.shape)
        part = flat if len(specs) == 1 else flat[start : start + size]
        part = lookup("reshape")(part, shape=tuple(s.shape))
        if part.dtype != s.dtype:
            part = part.real if s.dtype.kind == "f" and part.dtype.kind == "c" else part
            part = part.astype(s.dtype)
        leaves.append(part)
        start = start + size
    return leaves
