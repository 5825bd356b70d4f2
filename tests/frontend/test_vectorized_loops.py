"""Loops with independent iterations become operations on whole arrays; other loops remain loops."""

import numpy as np
import pytest

import wengert as wg

from .test_loops import operations

RNG = np.random.default_rng(0)
N, M = 12, 40
A = RNG.uniform(-1, 1, (N, N))
B = RNG.uniform(-1, 1, (N, M))
x = RNG.uniform(-1, 1, N)


def triangular_product(A, B, x):
    for j in range(B.shape[1]):
        B[3, j] += np.dot(A[4:, 3], B[4:, j])
    return B


def elementwise(A, B, x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = np.sin(x[i]) * A[2, i] + i * 0.1
    return y


def rows(A, B, x):
    for i in range(A.shape[0]):
        A[i, :] = A[i, :] * x[i] + x
    return A


def shifted(A, B, x):
    y = np.zeros(x.shape[0])
    for i in range(1, x.shape[0] - 1):
        y[i] = x[i - 1] - 2.0 * x[i] + x[i + 1]
    return y


def reads_what_is_written_later(A, B, x):
    for i in range(x.shape[0] - 1):
        x[i] = 0.5 * x[i + 1] + x[i]
    return x


def backward(A, B, x):
    for i in range(x.shape[0] - 1, 0, -1):
        x[i] = 0.5 * x[i - 1] * (i + 1)
    return x


def reversed_index(A, B, x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[x.shape[0] - 1 - i] = x[i] * i
    return y


def strided(A, B, x):
    A = np.concatenate([A, A, A])
    for i in range(0, A.shape[0], 3):
        A[i, 1] += A[i, 0] * A[i + 1, 2]
    return A


def other_rows(A, B, x):
    for i in range(1, A.shape[0]):
        A[i, 1:] -= A[i, 0] * A[0, 1:]
    return A


def new_axes(A, B, x):
    for i in range(1, A.shape[0]):
        A[i, None, 1:] -= A[i, 0] * A[None, 0, 1:]
    return A


def total(A, B, x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * A[i, 1]
        s -= x[i]
    return s


def product_with_matrix(A, B, x):
    y = np.zeros(B.shape[1])
    for i in range(B.shape[0]):
        y += x[i] * B[i]
    return y


def into_an_element(A, B, x):
    for k in range(A.shape[0]):
        B[2, 3] += A[1, k] * B[k, 5]
    return B


def sum_of_two_products(A, B, x):
    for k in range(A.shape[0]):
        A[0, :3] += 0.5 * B[1, k] * B[:3, k] - x[k] * B[2:5, k]
    return A


def last_value(A, B, x):
    t = 0.0
    for i in range(x.shape[0]):
        t = x[i] * 2.0
        x[i] = t * t
    return t + x


def appended(A, B, x):
    out = []
    for i in range(x.shape[0]):
        out.append(x[i] * B[i, 1:4])
    return np.array(out)


def integers(A, B, x):
    c = np.arange(x.shape[0])
    m = 0
    for i in range(x.shape[0]):
        c[i] = c[i] * 3 + i
        m += c[i]
    return c * 1.0 + m


def single_precision(A, B, x):
    f = x.astype(np.float32)
    for i in range(x.shape[0]):
        f[i] = f[i] * np.float32(0.3) + 0.1
    return f


def products_of_rows_of_growing_length(A, B, x):
    C = np.zeros(B.shape)
    for i in range(1, A.shape[0]):
        C[i] = A[i, :i] @ B[:i] + x[i]
    return C


def reads_slices_that_are_written_later(A, B, x):
    for i in range(x.shape[0]):
        x[i] -= A[i + 1 :, i] @ x[i + 1 :]
    return x


def sum_of_slice(A, B, x):
    for i in range(x.shape[0] - 1, -1, -1):
        x[i] = A[i, :i] @ x[:i]
    return x


def backward_with_slices(A, B, x):
    for i in range(B.shape[0] - 1, -1, -1):
        B[i] += A[i, :i] @ B[:i] + np.dot(B[: i + 1].T, A[: i + 1, i])
    return B


def slices_of_both_ends(A, B, x):
    C = np.zeros(B.shape)
    for i in range(2, A.shape[0] - 3):
        C[i] = A[i, i - 1 : i + 3] @ B[i - 1 : i + 3] + A[i - 2, i : A.shape[0] - 2] @ B[i:-2]
    return C


def whole_trmm(A, B, x):
    """NPBench's."""
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    return B


INDEPENDENT = [
    products_of_rows_of_growing_length, backward_with_slices, slices_of_both_ends,
    whole_trmm,
    triangular_product, elementwise, rows, shifted, reads_what_is_written_later, backward,
    reversed_index, strided, other_rows, new_axes, total, product_with_matrix, into_an_element,
    sum_of_two_products, last_value, appended, integers, single_precision,
]  # fmt: skip


def recurrence(A, B, x):
    for i in range(1, x.shape[0]):
        x[i] = x[i] + 0.5 * x[i - 1]
    return x


def recurrence_backward(A, B, x):
    for i in range(x.shape[0] - 2, -1, -1):
        x[i] = x[i] + 0.5 * x[i + 1]
    return x


def two_places(A, B, x):
    for i in range(x.shape[0] - 1):
        x[i] = 0.5 * x[i]
        x[i + 1] = x[i + 1] + 0.25
    return x


def from_the_end(A, B, x):
    y = x * 2.0
    for i in range(x.shape[0]):
        x[i - 1] = x[i] * y[i]
    return x


def at_positions(A, B, x):
    k = (np.arange(x.shape[0]) * 5) % 7
    for i in range(x.shape[0]):
        x[k[i]] += 0.5 * i
    return x


def read_at_positions(A, B, x):
    k = (np.arange(x.shape[0]) * 5) % 7
    for i in range(x.shape[0]):
        x[i] = 0.5 * x[k[i]]
    return x


def every_second(A, B, x):
    for i in range(x.shape[0]):
        x[i // 2] = x[i] * 0.5
    return x


def the_same_element(A, B, x):
    for i in range(x.shape[0]):
        x[3] = x[i] * 0.5 + x[3]
    return x


def view(A, B, x):
    v = A[:, 1]
    for i in range(1, A.shape[0]):
        v[i] = 0.5 * A[i - 1, 1]
    return A


def another_name(A, B, x):
    y = x[1:]
    for i in range(y.shape[0]):
        x[i + 1] = y[i - 1] * 0.5
    return x


def diagonal_and_column(A, B, x):
    for i in range(A.shape[0]):
        A[i, i] = A[i, 3] * 0.5
    return A


def whole_array(A, B, x):
    for i in range(x.shape[0]):
        x[i] = 0.25 * np.sum(x)
    return x


def growing_slice(A, B, x):
    for i in range(1, x.shape[0]):
        x[i] -= A[i, :i] @ x[:i]
    return x


def total_that_is_read(A, B, x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        x[i] = s
    return x


def product(A, B, x):
    s = 1.0
    for i in range(x.shape[0]):
        s = s * (1.0 + x[i])
    return s


def swapped(A, B, x):
    u, v = 1.0 * x, 2.0 * x
    for i in range(x.shape[0]):
        u[i] = 0.5 * v[i]
        u, v = v, u
    return u + 3.0 * v


def carried(A, B, x):
    t = 0.0
    for i in range(x.shape[0]):
        x[i] = x[i] + 0.5 * t
        t = x[i]
    return x


DEPENDENT = [
    reads_slices_that_are_written_later, sum_of_slice,
    recurrence, recurrence_backward, two_places, from_the_end, at_positions, read_at_positions,
    every_second, the_same_element, view, another_name, diagonal_and_column, whole_array,
    growing_slice, total_that_is_read, product, swapped, carried,
]  # fmt: skip


def compare(f, *sizes):
    """Compiled values and gradients of a function are those of Python and of the eager tape."""
    given = (A[:, :], B[:, :], x[:])
    want = f(*[a.copy() for a in given])
    modified = [a.copy() for a in given]
    found = wg.jit(f)(*modified)
    np.testing.assert_allclose(found, want, rtol=1e-6 if f is single_precision else 1e-12)
    assert np.asarray(found).dtype == np.asarray(want).dtype
    wanted = [a.copy() for a in given]
    f(*wanted)
    for a, b in zip(modified, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    weights = np.cos(np.arange(np.size(want))).reshape(np.shape(want))
    gradient = wg.grad(lambda *a: np.sum(weights * f(*a)), (0, 1, 2))
    found = wg.jit(gradient)(*[a.copy() for a in given])
    wanted = gradient(*[a.copy() for a in given])
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6 if f is single_precision else 1e-10, atol=1e-12)


@pytest.mark.sample(4)
@pytest.mark.parametrize("f", INDEPENDENT)
def test_independent(f):
    assert "scan" not in operations(wg.trace(f)(A.copy(), B.copy(), x.copy()))
    compare(f)


@pytest.mark.sample(4)
@pytest.mark.parametrize("f", DEPENDENT)
def test_dependent(f):
    assert {"scan", "while"} & set(operations(wg.trace(f)(A.copy(), B.copy(), x.copy())))
    compare(f)


def symm(A, B, x):
    """NPBench's."""
    C = B * 0.5
    temp = np.empty(C.shape[1])
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += 0.5 * B[i, j] * A[i, :i]
            temp[j] = B[:i, j] @ A[i, :i]
        C[i, :] += 0.5 * B[i, :] * A[i, i] + 0.5 * temp
    return C


def syrk(A, B, x):
    """NPBench's."""
    for i in range(A.shape[0]):
        A[i, : i + 1] *= 0.5
        for k in range(B.shape[1]):
            A[i, : i + 1] += 0.5 * B[i, k] * B[: i + 1, k]
    return A


def elimination(A, B, x):
    for k in range(A.shape[0]):
        for i in range(k + 1, A.shape[0]):
            A[i, k] /= 3.0 + A[k, k]
            for j in range(k + 1, A.shape[0]):
                A[i, j] -= A[i, k] * A[k, j]
    return A


def lower_by_sums(A, B, x):
    for i in range(A.shape[0]):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= 3.0 + A[j, j]
    return A


def parts_of_rows(A, B, x):
    for i in range(A.shape[0]):
        for j in range(i, A.shape[0]):
            A[i, j] = x[j] * A[0, j] + j
        for j in range(i - 1):
            x[j] += A[j, i] * 0.1
    return A


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", [symm, syrk, elimination, lower_by_sums, parts_of_rows])
def test_inner_loops(f):
    """One loop is left of two, and at most two of three, also with symbolic sizes."""
    graph = wg.trace(f)(A.copy(), B.copy(), x.copy())
    assert operations(graph).count("scan") == {elimination: 1, lower_by_sums: 2}.get(f, 1)
    compare(f)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "f", [symm, syrk, elimination, lower_by_sums, parts_of_rows, whole_trmm, total, shifted]
)
def test_sizes(f):
    """The program that serves all sizes after the second."""
    compiled = wg.jit(f)
    for n in (N, 9, 17, 3 if f in (shifted, total) else 1, 4):
        given = [np.resize(A, (n, n)), np.resize(B, (n, n + 30)), np.resize(x, n)]
        want = f(*[a.copy() for a in given])
        np.testing.assert_allclose(
            compiled(*[a.copy() for a in given]), want, rtol=1e-9, atol=1e-12
        )


@pytest.mark.sample(1)
@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_mask_removes_terms_that_are_not_finite(special, place):
    """Elements outside of the slices do not matter, and neither do their products with zeros."""
    given = [RNG.uniform(-1, 1, shape) for shape in ((20, 20), (20, 40), (20, 40))]
    given[0][[3, 15], [7, 3]] = 0.0
    given[place][12, 5] = special

    def f(A, B):
        return whole_trmm(A, B, None)

    def gradient(A, B, weights):
        return wg.grad(lambda A, B: np.sum(weights * f(A, B)), (0, 1))(A, B)

    A, B, weights = given
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(wg.jit(f)(A, B.copy()), f(A, B.copy()), rtol=1e-12, atol=1e-12)
        found, wanted = wg.jit(gradient)(A, B.copy(), weights), gradient(A, B.copy(), weights)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        ones = np.ones_like(A), np.ones_like(B)
        slope = wg.jit(lambda A, B: wg.jvp(f, (A, B), ones)[1])(A, B.copy())
        wanted = wg.jvp(f, (A, B.copy()), ones)[1]
        np.testing.assert_allclose(slope, wanted, rtol=1e-12, atol=1e-12)


def test_products_of_slices_in_blocks():
    """Products for many steps are computed for blocks of steps, without a mask for most terms."""
    A, B = RNG.uniform(-1, 1, (150, 150)), RNG.uniform(-1, 1, (150, 40))
    for f in (whole_trmm, products_of_rows_of_growing_length, backward_with_slices):
        names = operations(wg.trace(f)(A.copy(), B.copy(), A[0].copy()))
        assert {"scan", "concatenate"} & set(names) == {"concatenate"}
        found = wg.jit(f)(A.copy(), B.copy(), A[0].copy())
        np.testing.assert_allclose(found, f(A.copy(), B.copy(), A[0].copy()), rtol=1e-9, atol=1e-9)
        gradient = wg.grad(lambda A, B, f=f: np.sum(np.sin(f(A, B, A[0]))), (0, 1))
        found, wanted = wg.jit(gradient)(A, B.copy()), gradient(A, B.copy())
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_outer_products_that_are_too_large_remain_in_the_loop():
    """All steps together would take a thousand times the memory of the arrays."""

    def f(x):
        y = np.zeros(x.shape[0])
        for i in range(1000):
            y += np.sin(x * i)
        return y

    x = np.linspace(0.0, 1.0, 1000)
    assert "scan" in operations(wg.trace(f)(x))
    np.testing.assert_allclose(wg.jit(f)(x), f(x), rtol=1e-9)


def test_positions_out_of_bounds_raise():
    def f(x, y):
        for i in range(x.shape[0]):
            y[i] = x[i]
        return y

    with pytest.raises(IndexError, match="out of bounds"):
        wg.jit(f)(np.ones(12), np.ones(10))
