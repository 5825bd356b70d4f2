"""Hessians of programs that gather by index arrays and compute element by element.

Random programs read a vector at index arrays with duplicates, compute elementwise, and sum or
scatter; some also have coupled nodes, whose operands depend on many inputs.
"""

import numpy as np
import pytest

import wengert as wg

SIZE = 7
LINES = 9


def added(lines, order, x):
    """Sums of lines at targets that may repeat."""
    total = wg.tensor(np.zeros(SIZE))
    np.add.at(total, order, lines)
    return total


# Elementwise steps from lines to lines; `u`, `v` are earlier ones.
STEPS = [
    lambda u, v: np.sin(u) * v,
    lambda u, v: np.cos(u - v),
    lambda u, v: u * u + 0.5 * v,
    lambda u, v: np.exp(0.3 * u) - v,
    lambda u, v: u / (2.0 + v * v),
    lambda u, v: np.where(u > v, u * v, v**3),
    lambda u, v: np.maximum(u, v) * 0.7,
    lambda u, v: np.hypot(u, v + 3.0),
    lambda u, v: np.tanh(u)[::-1] * v,
    lambda u, v: np.stack([u, v], axis=1).sum(axis=1) * u[0],
    lambda u, v: np.where(u > 0.0, np.sqrt(np.where(u > 0.0, u, 1.0)), 0.0) + v,
]

# From lines to one number.
ENDS = [
    lambda u, weights, order, x: np.sum(u * weights),
    lambda u, weights, order, x: np.mean(u**2),
    lambda u, weights, order, x: weights @ u,
    lambda u, weights, order, x: np.sum(added(u, order, x) * weights[:SIZE]),
    lambda u, weights, order, x: np.sum(added(u, order, x) * np.cos(x)),
    lambda u, weights, order, x: np.sum(np.concatenate([u[2:], u[:4]]) * u.mean()),
]

COUPLED = [
    lambda u, weights, order, x: np.log(np.sum(np.exp(0.2 * u))) * x[0],
    lambda u, weights, order, x: np.sum((added(u, order, x) - weights[:SIZE]) ** 2),
    lambda u, weights, order, x: (u * weights) @ np.sin(u),
    lambda u, weights, order, x: np.sum(np.sort(u[:3]) * x[:3] ** 2),
    lambda u, weights, order, x: np.sum(np.outer(u[:2], x[:2]) @ np.sin(x[2:4])),
]


def program(rng, ends):
    """A function of a vector and weights, and the number of its coupled ends."""
    steps = [STEPS[k] for k in rng.integers(len(STEPS), size=rng.integers(1, 5))]
    orders = [rng.integers(SIZE, size=LINES) for _ in range(3)]
    earlier = [int(rng.integers(k + 2)) for k in range(len(steps))]
    chosen = [ends[k] for k in rng.integers(len(ends), size=2)]

    def f(x, weights):
        made = [x[orders[0]], x[orders[1]]]
        for step, k in zip(steps, earlier, strict=True):
            made.append(step(made[-1], made[k]))
        return sum(
            end(u, weights, orders[2], x) for end, u in zip(chosen, made[::-1], strict=False)
        )

    return f


def check(rng, ends):
    f = program(rng, ends)
    x, weights = rng.normal(size=SIZE), rng.normal(size=LINES)
    dense = wg.hessian(f)(x, weights)
    near = {"rtol": 1e-10, "atol": 1e-11 * max(1.0, np.abs(dense).max())}
    for triangle, part in ((None, dense), ("lower", np.tril(dense)), ("upper", np.triu(dense))):
        hess = wg.sparse_hessian(f, triangle=triangle)
        np.testing.assert_allclose(hess(x, weights).toarray(), part, **near)
    return f, hess, x, weights


def check_further_derivatives(f, hess, x, weights):
    """Derivatives of the entries with respect to the point and the weights, also second ones."""
    plan = hess.plan(x, weights)
    scale = 1.0 / max(1.0, np.abs(plan.values(x, weights)).max())

    def sparse(x, weights):
        return np.sum(np.sin(scale * plan.values(x, weights)))

    def dense(x, weights):
        return np.sum(np.sin(scale * wg.hessian(f)(x, weights)[plan.rows, plan.cols]))

    for k in (0, 1):
        expected = wg.grad(dense, k)(x, weights)
        near = {"rtol": 1e-8, "atol": 1e-9 * max(1.0, np.abs(expected).max())}
        np.testing.assert_allclose(wg.grad(sparse, k)(x, weights), expected, **near)
    twice = [wg.hessian(g, 1)(x, weights) for g in (sparse, dense)]
    np.testing.assert_allclose(*twice, rtol=1e-8, atol=1e-9 * max(1.0, np.abs(twice[1]).max()))


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
def test_gathers_and_sums(rng, seed):
    _, hess, x, weights = check(rng, ENDS[:4])
    assert "passes" not in hess.plan(x, weights).explain()


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(2))
def test_coupled_nodes(rng, seed):
    check(rng, ENDS + COUPLED)


@pytest.mark.parametrize("seed", range(1))
def test_further_derivatives(rng, seed):
    check_further_derivatives(*check(rng, ENDS + COUPLED))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_many_programs(rng, seed):
    check(rng, ENDS + COUPLED if seed % 2 else ENDS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_many_further_derivatives(rng, seed):
    check_further_derivatives(*check(rng, ENDS + COUPLED))


def test_a_line_from_a_bus_to_itself(rng):
    start, end = np.array([0, 1, 1, 2]), np.array([0, 1, 0, 1])

    def f(x):
        return np.sum(x[start] ** 2 * np.sin(x[end]))

    x = rng.normal(size=3)
    np.testing.assert_allclose(wg.sparse_hessian(f)(x).toarray(), wg.hessian(f)(x), rtol=1e-13)


def test_containers_dtypes_and_names(rng):
    index = np.array([2, 0, 2, 1])

    def f(p, scale):
        return np.sum(np.sin(p["a"][index]) * p["b"][0] * scale) + np.sum(p["b"] ** 3)

    p = {"a": rng.normal(size=3), "b": rng.normal(size=2)}
    found, dense = wg.sparse_hessian(f)(p, 2.0), wg.hessian(f)(p, 2.0)
    for i in "ab":
        for j in "ab":
            np.testing.assert_allclose(found[i][j].toarray(), dense[i][j], rtol=1e-13)
    found = wg.sparse_hessian(f, argnames="p")(p=p, scale=2.0)
    np.testing.assert_allclose(found["a"]["b"].toarray(), dense["a"]["b"], rtol=1e-13)
    single = rng.normal(size=3).astype(np.float32)
    values = wg.sparse_hessian(lambda x: np.sum(np.sin(x[index]))).values(single)
    assert values.dtype == np.float32


def test_zeros_times_infinity():
    x = np.array([0.3, 0.7, 1.1])
    for f in (
        lambda x: np.sum(np.where(x > 0.7, np.sqrt(np.maximum(x - 0.7, 0.0)), 0.0)),
        lambda x: np.sum(np.where(x > 0.7, np.sin(np.sqrt(np.maximum(x - 0.7, 0.0))), 0.0)),
        lambda x: np.sum(np.abs(x - 0.7) ** 1.5 * x),
    ):
        found = wg.sparse_hessian(f)(x).toarray()
        assert np.all(np.isfinite(found))
        np.testing.assert_allclose(found, wg.hessian(f)(x), rtol=1e-13)


def test_explanations():
    start, end = np.array([0, 1, 2, 2]), np.array([1, 2, 0, 3])

    def flows(x):
        return np.sum(np.sin(x[start] - x[end]))

    def coupled(x):
        return flows(x) + np.sum(np.cumsum(x[:2]) ** 3)

    x = np.ones(4)
    assert wg.sparse_hessian(flows).plan(x).explain().splitlines() == [
        "sparse_hessian of flows: 4 x 4, 12 entries",
        "  1 node by elements: 3 products of diagonals, each added to its entry",
    ]
    lines = wg.sparse_hessian(coupled).plan(x).explain().splitlines()
    assert lines[1].startswith("  1 node by elements")
    assert lines[2] == "  1 coupled node, 3 entries by passes: 2, mode fwd"
    assert lines[3].startswith("    power at ")
    explained = wg.sparse_hessian(lambda x: np.prod(x)).plan(x).explain()
    assert explained.endswith("4 x 4, 12 entries\n  by passes: 4, mode fwd")
    explained = wg.sparse_hessian(lambda x: flows(x) + np.sum(np.sin(x)) ** 2).plan(x).explain()
    assert "1 coupled node, 10 entries by diagonals, without passes" in explained
    explained = wg.sparse_jacobian(lambda x: x[1:] * x[:-1]).plan(x).explain()
    assert explained.endswith("3 x 4, 6 entries\n  by diagonals, without passes")


def test_nodes_with_several_results_are_coupled(rng):
    def decomposed(x):
        return np.linalg.eigvalsh(np.diag(x[:2]) + np.ones((2, 2)))[0]

    def looped(x):
        return wg.scan(lambda c, row: (np.sin(c * row), c * row), x[0], x[1:3])[0] * x[1]

    def chosen(x):
        return wg.cond(x[0] > 0, lambda x: np.sum(x[:2] ** 3), lambda x: x[0] * x[1], x)

    x = rng.normal(size=5)
    for part in (decomposed, looped, chosen):
        f = lambda x, part=part: part(x) + np.sum(np.sin(x[1:] * x[:-1]))  # noqa: E731
        hess, dense = wg.sparse_hessian(f), wg.hessian(f)(x)
        np.testing.assert_allclose(hess(x).toarray(), dense, rtol=1e-9, atol=1e-12)
        explained = hess.plan(x).explain()
        assert "by elements" in explained and "coupled" in explained


def test_coupled_nodes_of_products_with_constant_matrices(rng):
    """A constant array among the operands is not a node of the value."""
    design, fixed = np.eye(60)[np.arange(120) % 60], rng.normal(size=(120, 2))

    def f(x, b):
        return np.sum(x * x) + np.sum((1.0 - (fixed @ b + design @ x)) ** 2)

    x, b = rng.normal(size=60), np.ones(2)
    assert "coupled node" in wg.sparse_hessian(f).plan(x, b).explain()
    dense = wg.hessian(lambda x: f(x, b))(x)
    np.testing.assert_allclose(wg.sparse_hessian(f)(x, b).toarray(), dense, atol=1e-12)


def test_a_mesh(rng):
    """The elastic energy of triangles: products with known matrices, and determinants."""
    numbers = np.arange(9).reshape(3, 3)
    a, b, c, d = (
        numbers[i : i + 2, j : j + 2].ravel() for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))
    )
    triangles = np.concatenate([np.stack([a, b, d], 1), np.stack([a, d, c], 1)])
    inverse = np.linalg.inv(np.eye(2) + 0.1 * rng.normal(size=(8, 2, 2)))

    def energy(x):
        corners = x.reshape(-1, 2)[triangles]
        sides = np.stack([corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]], axis=2)
        f = np.einsum("eij,ejk->eik", sides, inverse)
        if by_hand:
            det = f[:, 0, 0] * f[:, 1, 1] - f[:, 0, 1] * f[:, 1, 0]
        else:
            det = np.linalg.det(f)
        return np.sum(np.sum(f * f, axis=(1, 2)) + np.sin(det))

    x = rng.normal(size=18)
    for by_hand in (True, False):
        hess, dense = wg.sparse_hessian(energy), wg.hessian(energy)(x)
        np.testing.assert_allclose(hess(x).toarray(), dense, rtol=1e-10, atol=1e-12)
        plan = hess.plan(x)
        assert plan.nnz < 0.75 * x.size**2  # corners that are in no common triangle
        assert ("coupled" in plan.explain()) == (not by_hand)


def test_bundle_adjustment(rng):
    """Points that cameras see: sums along an axis of three coordinates."""
    cameras, points = rng.integers(2, size=9), rng.integers(4, size=9)
    seen = rng.normal(size=(9, 2))

    def cost(x):
        camera, point = x[:14].reshape(2, 7)[cameras], x[14:].reshape(4, 3)[points]
        axis, shift, focus = camera[:, :3], camera[:, 3:6], camera[:, 6:]
        turned = point + np.cross(axis, point) + axis * np.sum(axis * point, axis=1)[:, None]
        turned = turned + shift
        return np.sum((focus * turned[:, :2] / turned[:, 2:] - seen) ** 2)

    x = np.concatenate([0.1 * rng.normal(size=14) + 1.0, rng.normal(size=12) + 4.0])
    hess = wg.sparse_hessian(cost)
    np.testing.assert_allclose(hess(x).toarray(), wg.hessian(cost)(x), rtol=1e-9, atol=1e-9)
    assert "coupled" not in hess.plan(x).explain()


def test_wide_stencils_are_diagonals_of_the_gradient(rng):
    def f(x):
        total = x[:-6] + x[1:-5] - x[2:-4] + x[3:-3] - x[4:-2] + x[5:-1] + x[6:]
        return np.sum(np.sin(total) * np.cos(0.1 * total))

    x = rng.normal(size=20)
    hess = wg.sparse_hessian(f)
    np.testing.assert_allclose(hess(x).toarray(), wg.hessian(f)(x), rtol=1e-10, atol=1e-12)
    assert hess.plan(x).explain().endswith("by diagonals, without passes")
