"""Complex numbers: holomorphic functions, others, and both at 0 and on branch cuts.

The gradient of a real J by z is dJ/dRe z + i dJ/dIm z (docs/conventions.md, 7): conj(f'(z)) for the
real part of a holomorphic f, i conj(f'(z)) for its imaginary part (K. Kreutz-Delgado,
arXiv:0906.4835).  On a cut the derivative is that of the side that the sign of zero chooses.
"""

import numpy as np
import pytest

import wengert as wg

Z = np.array([1.0 + 2.0j, -3.0 + 0.5j, 2.0 - 1.0j])
M = np.array([[1.0 + 1.0j, 2.0], [3.0j, 4.0 - 1.0j]])
softmax = np.exp(Z) / np.exp(Z).sum()

HOLOMORPHIC = {
    "square": (np.square, lambda z: 2 * z),
    "exp": (np.exp, np.exp),
    "exp2": (np.exp2, lambda z: np.log(2) * 2.0**z),
    "expm1": (np.expm1, np.exp),
    "log": (np.log, lambda z: 1 / z),
    "log2": (np.log2, lambda z: 1 / (z * np.log(2))),
    "log10": (np.log10, lambda z: 1 / (z * np.log(10))),
    "log1p": (np.log1p, lambda z: 1 / (1 + z)),
    "sqrt": (np.sqrt, lambda z: 0.5 / np.sqrt(z)),
    "reciprocal": (np.reciprocal, lambda z: -1 / z**2),
    "sin": (np.sin, np.cos),
    "cos": (np.cos, lambda z: -np.sin(z)),
    "tan": (np.tan, lambda z: 1 + np.tan(z) ** 2),
    "sinh": (np.sinh, np.cosh),
    "cosh": (np.cosh, np.sinh),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "arcsin": (np.arcsin, lambda z: 1 / np.sqrt(1 - z * z)),
    "arccos": (np.arccos, lambda z: -1 / np.sqrt(1 - z * z)),
    "arctan": (np.arctan, lambda z: 1 / (1 + z * z)),
    "arcsinh": (np.arcsinh, lambda z: 1 / np.sqrt(1 + z * z)),
    "arccosh": (np.arccosh, lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1))),
    "arctanh": (np.arctanh, lambda z: 1 / (1 - z * z)),
    "sinc": (np.sinc, lambda z: (np.cos(np.pi * z) - np.sinc(z)) / z),
    "power, whole": (lambda z: z**3, lambda z: 3 * z**2),
    "power, fraction": (lambda z: z**0.5, lambda z: 0.5 * z**-0.5),
    "power, complex": (lambda z: z ** (1 + 1j), lambda z: (1 + 1j) * z**1j),
    "exponent": (lambda z: 2.0**z, lambda z: np.log(2) * 2.0**z),
}
OTHERS = {
    "abs": (np.abs, [3 + 4j, 0, -2], [0.6 + 0.8j, 0, -1]),
    "angle": (np.angle, [3 + 4j, 0], [1j * (3 + 4j) / 25, 0]),
    "angle in degrees": (
        lambda z: np.angle(z, deg=True),
        [3 + 4j],
        [1j * (3 + 4j) / 25 * 180 / np.pi],
    ),
    "square of abs": (lambda z: np.abs(z) ** 2, [3 + 4j, 0], [6 + 8j, 0]),
    "z conj(z)": (lambda z: (z * z.conj()).real, [3 + 4j, 0], [6 + 8j, 0]),
    "real": (lambda z: z.real**2, Z, 2 * Z.real),
    "imag": (lambda z: z.imag**2, Z, 2j * Z.imag),
    "sign": (lambda z: np.sign(z).real, [3 + 4j, 0], [(16 - 12j) / 125, 0]),
    "norm": (np.linalg.norm, [3 + 4j, 0], [0.6 + 0.8j, 0]),
    "norm at 0": (np.linalg.norm, [0j, 0], [0, 0]),
    "var": (np.var, Z, 2 / 3 * (Z - Z.mean())),
    "largest": (lambda z: np.max(np.abs(z)), [3 + 4j, 1], [0.6 + 0.8j, 0]),
    "inner product": (lambda z: np.vdot(z, z).real, Z, 2 * Z),
    "root behind a choice": (
        lambda z: np.where(z == 0, 0, np.sqrt(z)).real,
        [0, -4 + 0j],
        [0, np.conj(0.5 / 2j)],
    ),
    "logarithm behind a choice": (
        lambda z: np.where(np.abs(z) > 0, np.log(z), 0).real,
        [0, 2j],
        [0, np.conj(1 / 2j)],
    ),
    "root on its cut": (
        lambda z: np.sqrt(z).imag,
        [complex(-4, -0.0), complex(-4, 0.0)],
        [1j * np.conj(0.5 / -2j), 1j * np.conj(0.5 / 2j)],
    ),
    "logarithm on its cut": (
        lambda z: np.log(z).imag,
        [complex(-4, -0.0), complex(-4, 0.0)],
        [-0.25j, -0.25j],
    ),
    "0 to the power 2": (lambda z: (z**2).real, [0j], [0]),
    "0 to the power 1": (lambda z: (z**1).real, [0j], [1]),
    "0 to the power 0": (lambda z: (z**0).real, [0j], [0]),
    "product with a zero": (
        lambda z: np.prod(z).real,
        [1 + 1j, 0, 2j],
        [0, np.conj((1 + 1j) * 2j), 0],
    ),
    "running product": (
        lambda z: np.cumprod(z)[-1].real,
        Z,
        np.conj([Z[1] * Z[2], Z[0] * Z[2], Z[0] * Z[1]]),
    ),
    "logsumexp": (lambda z: wg.numpy.logsumexp(z).real, Z, np.conj(softmax)),
    "determinant": (
        lambda m: np.linalg.det(m).real,
        M,
        np.conj(np.linalg.det(M) * np.linalg.inv(M).T),
    ),
    "Fourier transform": (lambda z: np.abs(np.fft.fft(z)) ** 2, Z, 2 * 3 * Z),  # Parseval
    "half a Fourier transform": (
        lambda z: np.abs(np.fft.rfft(z.real)[0]) ** 2,
        Z,
        np.full(3, 2 * Z.real.sum()),
    ),
}


def forward(f):
    """The gradient by forward mode: along 1 and along i, element by element."""

    def gradient(z):
        found = []
        for k in range(z.size):
            unit = np.zeros(z.shape, z.dtype)
            unit.reshape(-1)[k] = 1
            along = [wg.jvp(f, (z,), (u.astype(z.dtype),))[1] for u in (unit, 1j * unit)]
            found.append(along[0] + 1j * along[1])
        return wg.numpy.stack(found).reshape(z.shape)

    return gradient


def check(f, z, want):
    """In both modes, rows of `vmap`, graphs, native code; double and single precision."""
    total = lambda z: np.sum(f(z))  # noqa: E731
    reverse, z = wg.grad(total), np.asarray(z, complex)
    narrow = z.astype(np.complex64)
    along = np.exp(1j * np.arange(1.0, z.size + 1)).reshape(z.shape)

    def native(z):
        slope = wg.jvp(total, (z,), (along,))[1]
        return slope, reverse(z), wg.vmap(reverse)(wg.numpy.stack([z, z]))[1]

    with np.errstate(all="ignore"):
        slopes, *graphs = zip(wg.trace(native)(z)(z), wg.jit(native)(z), strict=True)
        found = [reverse(z), forward(total)(z), *graphs[0], *graphs[1]]
        single = [reverse(narrow), wg.jit(reverse)(narrow)]
    for way, slope in zip(("interpreted", "native"), slopes, strict=True):
        np.testing.assert_allclose(slope, np.vdot(want, along).real, 1e-12, 1e-12, err_msg=way)
    for k, g in enumerate(found):
        np.testing.assert_allclose(g, want, rtol=1e-12, atol=1e-12, err_msg=str(k))
    for k, g in enumerate(single):
        assert g.dtype == np.complex64
        np.testing.assert_allclose(g, want, rtol=1e-5, atol=1e-5, err_msg=f"single {k}")


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic_functions(name):
    f, slope = HOLOMORPHIC[name]
    check(lambda z: f(z).real + 2 * f(z).imag, Z, (1 + 2j) * np.conj(slope(Z)))


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", OTHERS)
def test_functions_that_are_not(name):
    check(*OTHERS[name])


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["exp", "sin", "sqrt", "tanh", "power, complex"])
def test_second_derivatives_of_holomorphic_functions(name):
    """f''(z) by differences of f', which the first test has compared with its closed form."""
    f, slope = HOLOMORPHIC[name]
    curve = (slope(Z + 1e-5) - slope(Z - 1e-5)) / 2e-5

    def of_gradient(z):
        return wg.grad(lambda z: np.sum(f(z).real))(z)

    for g in (wg.grad(lambda z: np.sum(of_gradient(z).real))(Z),
              wg.jit(wg.grad(lambda z: np.sum(of_gradient(z).real)))(Z)):  # fmt: skip
        np.testing.assert_allclose(g, np.conj(curve), rtol=1e-8)


def test_a_real_operand_has_a_real_gradient():
    x, z = np.array([1.0, 2.0]), np.array([1.0 + 1.0j, 2.0j])
    g = wg.grad(lambda x: np.sum(x * z).real)(x)
    assert g.dtype == np.float64
    np.testing.assert_array_equal(g, z.real)
    g = wg.grad(lambda x: np.sum(np.abs(np.exp(1j * x * z))))(x)
    np.testing.assert_allclose(g, (-z.imag) * np.exp(-x * z.imag))
