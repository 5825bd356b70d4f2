"""Slices whose bounds are computed in loops: lengths at run time, in place, in both modes."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.loops.loop_body import LoopBody
from wengert._engine.backends.llvm.program import Program
from wengert._engine.core.graph_classes import bodies_of

RNG = np.random.default_rng(3)
N = 20
A = RNG.normal(size=(N, N)) + N * np.eye(N)
V = RNG.normal(size=N)


def forward_substitution(L, b):
    x = np.zeros_like(b)
    for i in range(b.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def backward_substitution(U, b):
    n = b.shape[0]
    x = b.copy()
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - np.dot(U[i, i + 1 :], x[i + 1 :])) / U[i, i]
    return x


def factored(A, b):
    A = A.copy()
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return A * b


def rank_one_updates(A, b):
    C = np.ones_like(A)
    for i in range(A.shape[0]):
        C[i, : i + 1] *= 0.5
        for k in range(A.shape[1]):
            C[i, : i + 1] += b[k] * A[i, k] * A[: i + 1, k]
    return C


def columns(A, b):
    C = A * 1.0
    for j in range(1, A.shape[1]):
        C[: j + 1, j] = np.sin(C[: j + 1, j - 1]) * b[j]
        C[j, :j] = C[:j, j]
    return C


def reflections(A, r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y * A


def shifted(A, b):
    x = b * 1.0
    for i in range(1, b.shape[0]):
        x[i:] = x[i - 1 : -1] * A[i, i:]
    return x


def prefixes(A, b):
    s = 0.0
    for i in range(1, b.shape[0]):
        s += A[i, :i].max() * b[:i].mean() + np.sum(A[:i, :i]) * np.prod(b[:i])
    return s


def by_twos(A, b):
    x = b * 1.0
    for i in range(b.shape[0] - 1, 0, -2):
        x[:i] *= x[i] * A[i, :i]
    return x


def guarded(A, b):
    x = b * 1.0
    for i in range(1, b.shape[0]):
        if A[i, 0] > 0:
            x[:i] += A[i, :i] * x[i]
        else:
            x[i] = np.sum(x[:i] * 2.0)
    return x


def repeated_rows(A, b):
    for t in range(3):
        for i in range(1, b.shape[0]):
            A[i, :i] = np.tanh(A[i, :i]) * A[i - 1, :i] + b[t]
    return A


PROGRAMS = [
    forward_substitution, backward_substitution, factored, rank_one_updates, columns, shifted,
    prefixes, by_twos, guarded, repeated_rows,
]  # fmt: skip


def total(f):
    weights = np.random.default_rng(5).uniform(0.5, 1.5, size=(N, N))

    def value(A, b):
        out = f(A.copy(), b.copy())
        return np.sum(np.cos(out) * weights[0]) if np.ndim(out) else np.sin(out)

    return value


def arguments(f):
    return A.copy() / (4.0 if f is columns else 1.0), V.copy()


@pytest.mark.parametrize("f", [*PROGRAMS, reflections], ids=lambda f: f.__name__)
def test_values_are_those_of_numpy(f):
    a, b = arguments(f)
    if f is reflections:
        b = b / 20.0
    np.testing.assert_allclose(wg.jit(f)(a.copy(), b), f(a.copy(), b), rtol=1e-10, atol=1e-12)


@pytest.mark.sample(3)
@pytest.mark.parametrize("f", [*PROGRAMS, reflections], ids=lambda f: f.__name__)
def test_gradients_are_those_of_the_eager_tape(f):
    a, b = arguments(f)
    if f is reflections:
        b = b / 20.0
    g = total(f)
    compiled = wg.jit(wg.grad(g, argnums=(0, 1)))(a, b)
    eager = wg.grad(g, argnums=(0, 1))(a, b)
    for found, wanted in zip(compiled, eager, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("f", [rank_one_updates, by_twos])
def test_second_derivatives_agree_in_both_orders(f):
    a, b = arguments(f)
    a, b = a[:9, :9], b[:9]
    weights = np.random.default_rng(5).uniform(0.5, 1.5, size=9)
    g = lambda b: np.sum(np.cos(f(a.copy(), b.copy())) * weights)  # noqa: E731
    v = np.random.default_rng(1).normal(size=9)
    gradient = wg.jit(wg.grad(g))
    forward = wg.jit(lambda b: wg.jvp(wg.grad(g), (b,), (v,))[1])(b)
    backward = wg.jit(wg.grad(lambda b: np.sum(wg.grad(g)(b) * v)))(b)
    h = 1e-5
    differences = (gradient(b + h * v) - gradient(b - h * v)) / (2 * h)
    np.testing.assert_allclose(forward, backward, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(forward, differences, rtol=1e-5, atol=1e-6)


def names_of(graph):
    found = set()
    pending = list(graph.nodes)
    while pending:
        node = pending.pop()
        found.add(node.op.name)
        for body in bodies_of(node):
            pending += body.nodes
    return found


@pytest.mark.parametrize(
    "f", [forward_substitution, factored, rank_one_updates, columns, shifted, by_twos]
)
def test_lengths_are_computed_and_nothing_is_masked(f):
    names = names_of(wg.trace(f)(A.copy(), V.copy()))
    assert "sized" in names
    assert "where" not in names


def test_slices_that_may_differ_in_length_are_masks():
    def f(x, k):
        s = 0.0
        for i in range(12):
            s += np.sum(x[: k + i] * x[i : 2 * i + k])
        return s

    x = np.arange(40.0)
    assert wg.jit(f)(x, np.int64(3)) == f(x, 3)
    with pytest.raises(ValueError, match="differ in length"):
        wg.jit(f)(x[:20], np.int64(3))


class Recorded(LoopBody):
    """A body that is remembered."""

    made: list["Recorded"] = []  # noqa: RUF012

    def __init__(self, context, body, name, updates, *rest):
        super().__init__(context, body, name, updates, *rest)
        shapes = [body.inputs[k].spec.shape for k, _ in updates]
        self.arrays = [x for x, shape in zip(self.in_place, shapes, strict=True) if shape]
        self.made.append(self)


@pytest.mark.parametrize(
    ("f", "argnums"),
    [
        (factored, None), (rank_one_updates, None), (forward_substitution, None),
        (factored, (0, 1)), (rank_one_updates, (0, 1)), (forward_substitution, (0, 1)),
    ],
)  # fmt: skip
def test_no_step_copies_an_array(f, argnums, monkeypatch):
    fun = f if argnums is None else wg.grad(total(f), argnums=argnums)
    graph = wg.trace(fun)(A.copy(), V.copy())
    monkeypatch.setattr("wengert._engine.backends.llvm.loops.loop_body.LoopBody", Recorded)
    monkeypatch.setattr(Recorded, "made", [])
    Program(graph)
    assert Recorded.made
    assert all(all(body.arrays) for body in Recorded.made)


def numbers_stored(f, n):
    """How many floating-point numbers the loops of a gradient store for its backward pass."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(n, n)) + n * np.eye(n), rng.normal(size=n)
    graph = wg.trace(wg.grad(lambda a, b: np.sum(f(a, b)), argnums=(0, 1)))(a, b)
    loops = [node for node in graph.nodes if node.op.name == "scan"]
    stacks = [s for node in loops for s in node.spec[node.params["carried"] :]]
    return sum(s.size for s in stacks if s.dtype.kind == "f")


def test_linear_updates_store_nothing():
    assert numbers_stored(rank_one_updates, 10) == 0


@pytest.mark.parametrize("f", [factored, repeated_rows])
def test_memory_grows_with_the_elements_that_are_overwritten(f):
    small, large = numbers_stored(f, 10), numbers_stored(f, 20)
    assert large <= 4.6 * small


# ---- views of new arrays -------------------------------------------------------------------------

COUNT = 20


def write_scalar_view(x):
    c = np.zeros(COUNT)
    for k in range(1, COUNT):
        v = c[k : k + 1].reshape(())
        v[...] = x[0] * k
    return c


def write_view_of_one(x):
    c = np.zeros(COUNT)
    for k in range(1, COUNT):
        v = c[k : k + 1]
        v[0] = x[0] * k
    return c


def write_out_of_a_ufunc(x):
    c = np.zeros(COUNT)
    for k in range(1, COUNT):
        np.add(x[0:1], k, out=c[k : k + 1])
    return c


def write_flat_view(x):
    c = np.zeros((COUNT, COUNT))
    for k in range(1, COUNT):
        v = c[k, :k].reshape(-1)
        v[:] = x[:k]
    return c


def write_reversed_view(x):
    c = np.zeros((COUNT, COUNT))
    for k in range(1, COUNT):
        v = c[k, :k][::-1]
        v[:] = x[:k]
    return c


def write_transposed_view(x):
    c = np.zeros((COUNT, COUNT))
    for k in range(1, COUNT):
        v = c[:k, k : k + 2].T
        v[0] = x[:k]
    return c


def write_augmented_view(x):
    c = np.zeros(COUNT)
    for k in range(1, COUNT):
        v = c[k : k + 1]
        v += x[k]
    return c


def write_view_with_an_axis(x):
    c = np.zeros(COUNT)
    for k in range(1, COUNT):
        v = c[k : k + 1][:, None]
        v[...] = x[0] * k
    return c


def write_view_of_a_view(x):
    c = np.zeros((COUNT, COUNT))
    for k in range(1, COUNT):
        v = c[k]
        w = v[:k]
        w[:] = x[:k]
        w[0] += 1
    return c


def write_reshaped_view(x):
    c = np.zeros(COUNT)
    for k in range(1, COUNT):
        c[k : k + 1].reshape(1, 1)[0, 0] = x[k]
    return c


VIEWS = [
    write_scalar_view,
    write_view_of_one,
    write_out_of_a_ufunc,
    write_flat_view,
    write_reversed_view,
    write_transposed_view,
    write_augmented_view,
    write_view_with_an_axis,
    write_view_of_a_view,
    write_reshaped_view,
]


@pytest.mark.parametrize("f", VIEWS, ids=lambda f: f.__name__)
def test_writes_to_views_of_new_arrays(f):
    x = np.random.default_rng(7).uniform(0.5, 1.5, COUNT)
    np.testing.assert_allclose(wg.jit(f)(x), f(x), rtol=1e-14)


def test_explain_counts_operations_of_unknown_number():
    """The slices have as many elements as the counter says."""

    def f(a):
        for k in range(COUNT - 1):
            p = k + np.argmax(np.abs(a[k:, k]))
            for i in range(k + 1, COUNT):
                a[i, k:] -= a[p, k:] * a[i, k]
        return a.sum()

    assert "floating-point operations" in str(wg.explain(f)(np.eye(COUNT)))


def rows_of_a_slice(a, x):
    s = 0.0
    for i in range(1, a.shape[0]):
        for r in a[i:]:
            r *= 0.5
            s += r[0] * x[i]
        for k, (r, t) in enumerate(zip(a[:, i:], x[i:], strict=False)):
            x[k] += t * r[0]
        for t in x[i::-1]:
            x[0] += 0.25 * t
    return s + a.sum()


def lengths_of_slices(a, x):
    s = 0.0
    for i in range(1, x.shape[0]):
        s += x[:i].shape[0] * x[i] + len(a[i:])
    return s


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", [rows_of_a_slice, lengths_of_slices], ids=lambda f: f.__name__)
def test_the_lengths_of_slices_are_values(f):
    rng = np.random.default_rng(2)
    a, x = rng.random((12, 12)), rng.random(12)
    np.testing.assert_allclose(wg.jit(f)(a.copy(), x.copy()), f(a.copy(), x.copy()), rtol=1e-12)
    gradient = wg.grad(f, (0, 1))
    for found, want in zip(
        wg.jit(gradient)(a.copy(), x.copy()), gradient(a.copy(), x.copy()), strict=True
    ):
        np.testing.assert_allclose(found, want, rtol=1e-10)


def alternating(m):
    for _ in range(12):
        for color in range(2):
            for r in range(1, COUNT - 1):
                s = (r + color) % 2 + 1
                left, right = m[r, s - 1 : COUNT - 2 : 2], m[r, s + 1 : COUNT : 2]
                m[r, s : COUNT - 1 : 2] = np.tanh(
                    0.3 * (m[r - 1, s : COUNT - 1 : 2] + left + right)
                )
    return (m**2).sum()


def halves(m):
    for i in range(2, COUNT):
        k = max(i // 2, i - 7, 1)
        m[i, k:i] = 0.5 * m[i - 1, k - 1 : i - 1] + m[k, k:i]
    return (m**2).sum()


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", [alternating, halves], ids=lambda f: f.__name__)
def test_slices_between_computed_positions(f):
    """Whose lengths are equal, since remainders and quotients are known to be positive."""
    m = np.random.default_rng(8).normal(size=(COUNT, COUNT))
    assert len(wg.trace(f)(m.copy()).nodes) < 16
    np.testing.assert_allclose(wg.jit(f)(m.copy()), f(m.copy()), rtol=1e-13)
    np.testing.assert_allclose(
        wg.jit(wg.grad(f))(m.copy()), wg.grad(f)(m.copy()), rtol=1e-10, atol=1e-12
    )


def rows_of_a_sparse_matrix(ends, columns, values, x):
    y = np.empty(ends.size - 1)
    for i in range(ends.size - 1):
        row = slice(ends[i], ends[i + 1])
        y[i] = values[row] @ x[columns[row]]
    return y


def test_slices_of_arrays_of_unknown_but_equal_length_are_equally_long():
    """A program for all sizes has no masks over the whole arrays."""
    compiled, traces = wg.jit(rows_of_a_sparse_matrix), set()
    for n, count in ((20, 90), (30, 200), (40, 250)):
        rng = np.random.default_rng(n)
        ends = np.r_[0, np.sort(rng.integers(0, count, n - 1)), count]
        arguments = ends, rng.integers(0, n, count), rng.normal(size=count), rng.normal(size=n)
        expected = rows_of_a_sparse_matrix(*arguments)
        np.testing.assert_allclose(compiled(*arguments), expected, rtol=1e-12)
        traces.add(compiled.cache_info().traces)
    assert max(traces) == 2
    (loop,) = [n for n in compiled.lower(*arguments).graph.nodes if n.op.name == "scan"]
    assert not any(n.op.name == "arange" for n in loop.params["body"].nodes)
