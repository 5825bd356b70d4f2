"""Products with sparse arrays and their gradients: a Laplacian on a square, and its assembly.

SciPy has no derivatives: its column has them written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case

TITLE = "Products with sparse arrays"
TEXT = (
    "The Laplacian with five points on a square grid, compressed rows, float64. *A x*: the "
    "product. *gradient*: of sum((A x)^2) with respect to the elements of A and to x. *A X*: the "
    "product with 16 vectors. *assembly*: the gradient of x'A x / 2 with respect to the factor of "
    "each of the local matrices of which A is assembled, 9 entries each, most of them added to "
    "others. *SciPy* has the derivatives written by hand, of its products; its assembly converts "
    "from coordinates in each call. *JAX* is `BCSR`, and `segment_sum` for the assembly."
)
PEERS = ("SciPy", "JAX")
TARGET = "value within 1.3 times of SciPy; gradient at most 3 times the value"


def laplacian(side: int) -> Any:
    """The matrix, as SciPy's."""
    import scipy.sparse as sp

    line = sp.diags_array(
        [-np.ones(side - 1), 2 * np.ones(side), -np.ones(side - 1)], offsets=[-1, 0, 1]
    )
    return (sp.kron(line, sp.eye_array(side)) + sp.kron(sp.eye_array(side), line)).tocsr()


def cases(quick: bool) -> Iterator[Case]:
    """Of several sizes."""
    for side in (10,) if quick else (32, 316):
        matrix = laplacian(side)
        n = matrix.shape[0]
        x = np.sin(np.arange(float(n)))
        wide = np.sin(np.arange(16.0 * n)).reshape(n, 16)
        yield Case(f"A x, n = {n}", product(matrix, x), within=1e-12)
        yield Case(f"gradient, n = {n}", gradient(matrix, x), within=1e-12)
        yield Case(f"A X, n = {n}", product(matrix, wide), within=1e-12)
        yield Case(f"assembly, n = {n}", assembly(side), within=1e-10)


def product(matrix: Any, x: Any) -> dict[str, Callable[[], Call]]:
    """The product with a vector or several."""

    def wengert() -> Call:
        from wengert.scipy.sparse import from_structure, structure_of

        structure = structure_of(matrix)
        return Call(
            libraries.jit(lambda data, x: from_structure(structure, data) @ x), (matrix.data, x)
        )

    def jax() -> Call:
        bcsr = libraries.jax_sparse(matrix)
        return libraries.jax_call(lambda data, x: bcsr(data) @ x, matrix.data, x)

    return {"wengert": wengert, "SciPy": lambda: Call(lambda x: matrix @ x, (x,)), "JAX": jax}


def gradient(matrix: Any, x: Any) -> dict[str, Callable[[], Call]]:
    """With respect to elements and vector."""

    def wengert() -> Call:
        import wengert as wg
        from wengert.scipy.sparse import from_structure, structure_of

        structure = structure_of(matrix)

        def loss(data: Any, x: Any) -> Any:
            return np.sum((from_structure(structure, data) @ x) ** 2)

        return Call(libraries.jit(wg.grad(loss, argnums=(0, 1))), (matrix.data, x))

    def scipy() -> Call:
        counts, transposed = np.diff(matrix.indptr), matrix.T

        def by_hand(x: Any) -> Any:
            y = 2.0 * (matrix @ x)
            return np.repeat(y, counts) * x[matrix.indices], transposed @ y

        return Call(by_hand, (x,))

    def jax() -> Call:
        bcsr = libraries.jax_sparse(matrix)

        def loss(data: Any, x: Any) -> Any:
            return ((bcsr(data) @ x) ** 2).sum()

        return libraries.jax_gradient(loss, matrix.data, x, argnums=(0, 1), value=False)

    return {"wengert": wengert, "SciPy": scipy, "JAX": jax}


def assembly(side: int) -> dict[str, Callable[[], Call]]:
    """Triangles of a square, a local matrix of 3 x 3 each, with a factor."""
    n = side * side
    first = np.arange((side - 1) * side).reshape(side - 1, side)[:, :-1].ravel()
    lower = np.stack([first, first + 1, first + side], 1)
    upper = np.stack([first + 1, first + side + 1, first + side], 1)
    nodes = np.concatenate([lower, upper])
    rows, columns = np.repeat(nodes, 3, axis=1).ravel(), np.tile(nodes, (1, 3)).ravel()
    local = np.array([[2.0, -1.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]) / 2
    factors, x = 1.5 + np.sin(np.arange(float(len(nodes)))), np.cos(np.arange(float(n)))

    def wengert() -> Call:
        import wengert as wg
        from wengert.scipy.sparse import coo_array, from_structure, structure_of

        structure = structure_of(coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)))

        def energy(factors: Any, x: Any) -> Any:
            elements = (factors[:, None, None] * local).ravel()
            return 0.5 * (x @ (from_structure(structure, elements).tocsr() @ x))

        return Call(libraries.jit(wg.grad(energy)), (factors, x))

    def scipy() -> Call:
        import scipy.sparse as sp

        def by_hand(factors: Any, x: Any) -> Any:
            elements = (factors[:, None, None] * local).ravel()
            sp.csr_array((elements, (rows, columns)), shape=(n, n)) @ x  # the value needs it
            bars = (0.5 * x[rows] * x[columns]).reshape(-1, 3, 3)
            return np.einsum("eij,ij->e", bars, local)

        return Call(by_hand, (factors, x))

    def jax() -> Call:
        j = libraries.jax()
        place_rows, place_columns = j.numpy.asarray(rows), j.numpy.asarray(columns)

        def energy(factors: Any, x: Any) -> Any:
            elements = (factors[:, None, None] * local).ravel()
            y = j.ops.segment_sum(elements * x[place_columns], place_rows, n)
            return 0.5 * (x @ y)

        return libraries.jax_gradient(energy, factors, x, value=False)

    return {"wengert": wengert, "SciPy": scipy, "JAX": jax}
