"""Steps whose matrices are exactly singular are rejected: in any size, structure and dtype.

The first step makes an eigenvalue of the matrix of the stages, ``M / (h gamma) - J`` or
``M - h gamma J``, zero in floating point; another size of the first step has no such matrix.  The
derivatives are those of the steps that were accepted.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.integrate import solve
from wengert.scipy.integrate.ivp.bdf_method import LEADING
from wengert.scipy.integrate.ivp.methods import NATIVE
from wengert.scipy.integrate.ivp.radau_method import COMPLEX, REAL

FIRST, END = 2.0**-4, 0.2


def singular_rate(method, is_of_pair=False):
    """A rate, and a first step, with a singular matrix."""
    if method == "Radau":
        return (COMPLEX if is_of_pair else REAL) / FIRST, FIRST
    for k in range(200):  # 1 - (h gamma) / (h gamma) is not always zero
        first = FIRST * (1.0 + k / 256)
        scale = first / LEADING[1] if method == "BDF" else first * NATIVE[method][0].table.gamma
        if 1.0 - scale * (1.0 / scale) == 0.0:
            return 1.0 / scale, first
    raise AssertionError(method)


def diagonal(rate, y):
    return rate * y


def dense(rate, y):
    return (rate * np.eye(len(y))) @ y


def banded(rate, y):
    """With a diagonal above, whose first element is zero, so that one eigenvalue is exact."""
    above = np.concatenate([y[1:], 0.0 * y[:1]])
    return rate * y + 1e-3 * above * (np.arange(len(y)) > 0)


def sparse(rate, y):
    far = (np.arange(len(y)) * 7 + 3) % len(y)
    return rate * y + 1e-3 * y[far] * (np.arange(len(y)) > 0)


def rotated(rate, y):
    """Of real states: the complex matrix of Radau is singular."""
    a, b = np.real(rate), np.imag(rate)
    u, v = np.split(y, 2)
    return np.concatenate([a * u - b * v, b * u + a * v])


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


REAL_CASES = [
    (1, float, diagonal), (4, float, dense), (5, float, dense), (9, float, diagonal),
    (33, float, dense), (40, float, banded), (40, float, diagonal), (70, float, dense),
    (300, float, sparse),
]  # fmt: skip
COMPLEX_CASES = [(3, complex, diagonal), (6, complex, dense), (40, complex, banded)]
METHODS = ("rodas5p", "kvaerno3", "BDF")
CASES = [
    ("rodas5p", 5, complex, dense),
    ("kvaerno3", 5, float, diagonal),
    slow("kvaerno3", 7, complex, dense),
    ("BDF", 2, complex, diagonal),
    *(slow(method, *case) for method in METHODS for case in (*REAL_CASES, *COMPLEX_CASES)),
    *(slow("Radau", *case) for case in REAL_CASES),
    *(slow("Radau", n, float, rotated) for n in (2, 6)),
]


@pytest.mark.parametrize(("method", "n", "dtype", "f"), CASES)
def test_a_step_with_a_singular_matrix_is_rejected(method, n, dtype, f):
    rate, first = singular_rate(method, is_of_pair=f is rotated)
    start = np.linspace(1.0, 2.0, n).astype(dtype)

    def solution(p):
        options = {"method": method, "rtol": 1e-7, "atol": 1e-7, "first_step": first}
        return solve(lambda t, y: f(p * rate, y), (0.0, END), start, check=False, **options)

    def last(p):
        return solution(p).y[0].real

    assert solution(1.0).n_rejected > 0
    value = np.exp(END * rate) * (start[0] + (1j * start[n // 2] if f is rotated else 0.0))
    wanted = [value.real, (END * rate * value).real]
    found = wg.jit(wg.value_and_grad(last))(1.0)
    np.testing.assert_allclose(found, wanted, rtol=3e-5)
    tangent = wg.jit(wg.jacfwd(last))(1.0)
    np.testing.assert_allclose(tangent, found[1], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "n", "dtype"),
    [("rodas5p", 5, float), ("kvaerno3", 6, complex), ("Radau", 5, float), ("BDF", 40, float)],
)
def test_batches_and_eager_derivatives(method, n, dtype):
    rate, first = singular_rate(method)

    def last(p):
        options = {"method": method, "rtol": 1e-7, "atol": 1e-7, "first_step": first}
        start = np.linspace(1.0, 2.0, n).astype(dtype)
        found = solve(lambda t, y: p * rate * y, (0.0, END), start, check=False, **options)
        return found.y[0].real

    ps = np.array([1.0, 0.9])
    values, slopes = np.exp(END * rate * ps), END * rate * np.exp(END * rate * ps)
    np.testing.assert_allclose(wg.vmap(last)(ps), values.real, rtol=3e-5)
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(last)))(ps), slopes.real, rtol=3e-5)
    np.testing.assert_allclose(wg.grad(last)(1.0), slopes[0].real, rtol=3e-5)
