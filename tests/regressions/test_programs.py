"""Programs as a scientist writes them, differentiated unchanged.

Each is plain NumPy and returns one number (PROGRAMS) or an array.  Every one is run as it is and
under a derivative (same value), its gradient compared with differences in both modes, and forward
over reverse with reverse over reverse.  Some have a formula for the answer, below.
"""

import dataclasses

import numpy as np
import pytest

import wengert as wg
from wengert.testing import check_grads

RNG = np.random.default_rng(7)
PROGRAMS = []


def program(*args):
    """Register a program with the arguments to differentiate by."""

    def enter(f):
        PROGRAMS.append(pytest.param(f, args, id=f.__name__))
        return f

    return enter


# ---- differential equations --------------------------------------------------------------------


@program(np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.1, 0.4]))
def lotka_volterra_runge_kutta(y, rates):
    a, b, c, d = rates

    def field(y):
        prey, hunters = y
        return np.array([a * prey - b * prey * hunters, c * prey * hunters - d * hunters], like=y)

    total = 0.0
    h = 0.1
    for _ in range(12):
        k1 = field(y)
        k2 = field(y + 0.5 * h * k1)
        k3 = field(y + 0.5 * h * k2)
        k4 = field(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        total += y[0] * h
    return total + np.log(y).sum()


@program(np.array([0.2, -0.3]), 0.7)
def adaptive_steps_with_a_while_loop(y, stiffness):
    t, h, end = 0.0, 0.1, 1.0
    while t < end:
        h = min(h, end - t)
        slope = -stiffness * y + np.array([0.1, 0.2])
        full = y + h * slope
        half = y + 0.5 * h * slope
        better = half + 0.5 * h * (-stiffness * half + np.array([0.1, 0.2]))
        error = np.max(np.abs(better - full))
        if error > 1e-3:
            h = h * 0.5
            continue
        y, t = 2 * better - full, t + h
        if error < 1e-4:
            h = h * 1.5
    return np.sum(y**2)


@program(RNG.normal(size=(6, 7)) * 0.3, 0.1)
def heat_equation_in_place(u, rate):
    u = u.copy()
    for _ in range(4):
        u[1:-1, 1:-1] += rate * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
        u[0, :] = u[1, :]
        u[:, -1] = 0.5 * u[:, -2]
        u[-1] *= 0.9
    return np.sum(u**3) + u[2, 3]


@program(RNG.normal(size=8), 0.4)
def upwind_with_shrinking_limiter(u, courant):
    for _ in range(3):
        left, right = u - np.roll(u, 1), np.roll(u, -1) - u
        slope = np.where(left * right > 0, np.where(np.abs(left) < np.abs(right), left, right), 0.0)
        face = u + 0.5 * (1 - courant) * slope
        flux = courant * face
        u = u - (flux - np.roll(flux, 1))
    return np.sum(u**2)


@program(RNG.normal(size=9))
def thomas_algorithm(b):
    n = len(b)
    diagonal = 2.0 + 0.1 * b**2
    c, d = np.zeros_like(b), np.zeros_like(b)
    c[0], d[0] = -1.0 / diagonal[0], b[0] / diagonal[0]
    for i in range(1, n):
        m = diagonal[i] + c[i - 1]
        c[i] = -1.0 / m
        d[i] = (b[i] + d[i - 1]) / m
    x = np.empty_like(b)
    x[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x @ x


# ---- statistics --------------------------------------------------------------------------------

TIMES = np.linspace(0.0, 1.0, 7)
SEEN = np.sin(3 * TIMES) + 0.1 * RNG.normal(size=7)


@program({"length": -0.5, "signal": 0.1, "noise": -1.0})
def gaussian_process_likelihood(log):
    length, signal, noise = (np.exp(log[k]) for k in ("length", "signal", "noise"))
    apart = TIMES[:, None] - TIMES[None, :]
    k = signal**2 * np.exp(-0.5 * (apart / length) ** 2) + noise**2 * np.eye(7)
    lower = np.linalg.cholesky(k)
    z = np.linalg.solve(lower, SEEN)
    return 0.5 * z @ z + np.sum(np.log(np.diag(lower))) + 3.5 * np.log(2 * np.pi)


@dataclasses.dataclass
class Motion:
    process: float
    measurement: float
    start: np.ndarray


@program(Motion(0.3, 0.2, np.array([0.1, -0.2])))
def kalman_filter(m):
    x, p = m.start, np.eye(2)
    f = np.array([[1.0, 0.1], [0.0, 1.0]])
    h = np.array([[1.0, 0.0]])
    loss = 0.0
    for z in SEEN:
        x = f @ x
        p = f @ p @ f.T + m.process * np.eye(2)
        s = h @ p @ h.T + m.measurement**2
        gain = p @ h.T @ np.linalg.inv(s)
        innovation = z - h @ x
        x = x + gain @ innovation
        p = (np.eye(2) - gain @ h) @ p
        _, logdet = np.linalg.slogdet(s)
        loss = loss + 0.5 * (logdet + innovation @ np.linalg.solve(s, innovation))
    return loss


POINTS = np.concatenate([RNG.normal(size=(6, 2)), RNG.normal(size=(6, 2)) + 3])


@program(np.array([0.2, -0.1, 0.3]), RNG.normal(size=(3, 2)) * 2, np.stack([np.eye(2)] * 3) + 0.1)
def gaussian_mixture(logits, means, factors):
    weights = logits - np.log(np.sum(np.exp(logits)))
    apart = POINTS[:, None, :] - means
    scaled = np.einsum("kij,nkj->nki", np.tril(factors), apart)
    logdet = np.log(np.abs(np.diagonal(factors, axis1=1, axis2=2))).sum(-1)
    each = weights + logdet - 0.5 * np.sum(scaled**2, axis=-1)
    top = each.max(axis=1, keepdims=True)
    return -np.sum(top[:, 0] + np.log(np.sum(np.exp(each - top), axis=1)))


@program(RNG.normal(size=3))
def robust_regression(beta):
    x = np.vander(TIMES, 3)
    r = SEEN - x @ beta
    size = np.abs(r)
    huber = np.where(size <= 0.5, 0.5 * r**2, 0.5 * (size - 0.25))
    spread = np.median(size)
    return np.mean(huber) + np.log1p((r / (0.1 + spread)) ** 2).sum()


@program(np.array([0.3, -0.8, 1.2, 0.1, 2.0, -1.1]))
def order_statistics(x):
    s = np.sort(x)[::-1]
    gaps = -np.diff(s)
    lorenz = np.cumsum(s) / np.sum(np.abs(s))
    rank = np.argsort(np.argsort(x))
    low, high = np.quantile(x, [0.25, 0.75])
    return gaps @ np.arange(1, 6) + lorenz @ lorenz + (x * rank).sum() + (high - low) ** 2


@program(np.array([0.2, -0.4, 0.3]), np.array([0.1, 0.7]))
def cox_partial_likelihood(x, beta):
    z = np.stack([x, x**2], axis=1) @ beta
    order = np.array([2, 0, 1])
    risk = np.cumsum(np.exp(z[order])[::-1])[::-1]
    return np.sum(np.log(risk)) - z.sum()


@program(np.array([100.0, 0.2, 0.05]))
def black_scholes_by_a_tree(p):
    spot, sigma, rate = p
    n, dt = 8, 1.0 / 8
    up = np.exp(sigma * np.sqrt(dt))
    q = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    prices = spot * up ** (2.0 * np.arange(n + 1) - n)
    value = np.maximum(101.3 - prices, 0.0)
    for step in range(n, 0, -1):
        value = np.exp(-rate * dt) * (q * value[1:] + (1 - q) * value[:-1])
        exercise = 101.3 - spot * up ** (2.0 * np.arange(step) - step + 1)
        value = np.maximum(value, exercise)
    return value[0]


# ---- learning ----------------------------------------------------------------------------------

PATIENTS = RNG.normal(size=(5, 4))
CLASSES = np.array([0, 2, 1, 1, 0])


@program(
    [(RNG.normal(size=(4, 6)) * 0.5, np.zeros(6) + 0.1), (RNG.normal(size=(6, 3)), np.ones(3))]
)
def perceptron(layers):
    h = PATIENTS
    for w, b in layers[:-1]:
        h = np.tanh(h @ w + b)
    w, b = layers[-1]
    logits = h @ w + b
    logits -= logits.max(axis=1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(axis=1))[:, np.newaxis]
    return -log_p[np.arange(5), CLASSES].mean() + 1e-2 * sum((w**2).sum() for w, _ in layers)


@program(RNG.normal(size=(2, 5, 4)) * 0.5, RNG.normal(size=(3, 4, 4)) * 0.5)
def attention(x, weights):
    q, k, v = (np.einsum("bti,ij->btj", x, w).reshape(2, 5, 2, 2) for w in weights)
    scores = np.einsum("bthd,bshd->bhts", q, k) / np.sqrt(2.0)
    scores = np.where(np.tril(np.ones((5, 5), dtype=bool)), scores, -np.inf)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    scores /= scores.sum(-1, keepdims=True)
    out = np.einsum("bhts,bshd->bthd", scores, v).reshape(2, 5, 4)
    mean = out.mean(-1, keepdims=True)
    out = (out - mean) / np.sqrt(out.var(-1, keepdims=True) + 1e-3)
    return np.sum(out * np.arange(4.0)) + np.sum(out[:, -1] ** 3)


@program(RNG.normal(size=(5, 5)), RNG.normal(size=(2, 3, 3)) * 0.5)
def image_filter_with_pooling(image, kernels):
    padded = np.pad(image, 1, mode="reflect")
    windows = np.stack([padded[i : i + 5, j : j + 5] for i in range(3) for j in range(3)], axis=-1)
    maps = np.maximum(windows @ kernels.reshape(2, 9).T, 0.05 * (windows @ kernels.reshape(2, 9).T))
    pooled = maps[:4, :4].reshape(2, 2, 2, 2, 2).max(axis=(1, 3))
    return np.sum(pooled**2) + np.sum(maps[::2, ::-2]) * 0.1


@program(RNG.normal(size=(3, 3)) * 0.5, RNG.normal(size=(4, 3)))
def recurrent_cell(w, inputs):
    state = np.zeros(3)
    outputs = []
    for x in inputs:
        gate = 1 / (1 + np.exp(-(x + state)))
        state = gate * np.tanh(w @ state + x) + (1 - gate) * state
        outputs.append(state)
    return np.linalg.norm(np.stack(outputs), axis=1).sum()


EDGES = np.array([[0, 1], [1, 2], [2, 0], [0, 3], [3, 1]])


@program(RNG.normal(size=(4, 2)))
def messages_on_a_graph(h):
    for _ in range(2):
        sent = np.tanh(h[EDGES[:, 0]] - 0.5 * h[EDGES[:, 1]])
        received = np.zeros_like(h)
        np.add.at(received, EDGES[:, 1], sent)
        degree = np.bincount(EDGES[:, 1], minlength=4)
        h = h + received / np.maximum(degree, 1)[:, None]
    best = h.argmax(axis=0)
    return h[best, [0, 1]].sum() + np.sum(h**2)


# ---- physics, signals, geometry ----------------------------------------------------------------


@program(RNG.normal(size=(5, 3)))
def lennard_jones(r):
    i, j = np.triu_indices(5, k=1)
    d2 = np.sum((r[i] - r[j]) ** 2, axis=-1) + 0.5
    inverse = 1.0 / d2**3
    return np.sum(4 * (inverse**2 - inverse))


@program(RNG.normal(size=(4, 3)))
def torsion_angle(r):
    b1, b2, b3 = np.diff(r, axis=0)
    n1, n2 = np.cross(b1, b2), np.cross(b2, b3)
    m = np.cross(n1, b2 / np.linalg.norm(b2))
    return np.arctan2(m @ n2, n1 @ n2)


@program(np.array([0.5, 1.5, -0.3, 0.8, 0.1, -0.9, 0.4, 0.0]))
def power_spectrum_by_a_matrix(x):
    k = np.arange(8)
    dft = np.exp(-2j * np.pi * np.outer(k, k) / 8)
    spectrum = dft @ (x * np.hanning(8))
    power = np.abs(spectrum[:5]) ** 2
    phase = np.angle(spectrum[1] * np.exp(0.3j))
    return np.log(power + 1e-3).sum() + phase


@program(np.array([0.3, 0.2, 0.5]))
def quantum_walk(angles):
    state = np.array([1.0, 0.0], dtype=complex)
    for a in angles:
        turn = np.array([[np.cos(a), -1j * np.sin(a)], [-1j * np.sin(a), np.cos(a)]], like=angles)
        state = turn @ state
        state = state * np.exp(1j * a * np.array([1, -1]))
    return (np.conj(state) @ np.array([[0, 1 - 0.5j], [1 + 0.5j, 0]]) @ state).real


@program(np.array([1.0, 2.0, 0.5]))
def newton_solves_an_implicit_equation(p):
    x = 1.0
    for _ in range(30):
        step = (p[0] * x**3 + p[1] * x - p[2]) / (3 * p[0] * x**2 + p[1])
        x = x - step
        if abs(step) < 1e-14:
            break
    return x * x + np.exp(x)


def horner(coefficients, x):
    if len(coefficients) == 1:
        return coefficients[0]
    return coefficients[0] + x * horner(coefficients[1:], x)


@program(np.array([1.0, -0.5, 0.25, 0.1, 0.7]), 0.3)
def recursion_over_slices(c, x):
    return horner(c, x) * horner(c[::-1], x)


@program(RNG.normal(size=(3, 3)), np.array([1.0, 0.5, -0.2]))
def power_iteration(a, v):
    a = a + a.T + 6 * np.eye(3)
    for _ in range(10):
        v = a @ v
        v /= np.linalg.norm(v)
    values, vectors = np.linalg.eigh(a)
    return v @ a @ v + values[0] + np.abs(vectors[:, 1]).sum()


@program(RNG.normal(size=(4, 5)))
def masks_and_repeats(x):
    y = x.copy()
    y[y < -0.5] = -0.5 + 0.1 * y[y < -0.5]
    y[[0, 2, 0]] = x[[1, 1, 3]] ** 2
    y[:, x[0] > 0] *= 2.0
    top = y[np.arange(4), y.argmax(1)]
    picked = y.ravel()[[0, 5, 5, -1]]
    return (
        np.prod(1 + 0.1 * top)
        + picked @ picked
        + np.take_along_axis(y, y.argsort(1), 1)[:, 2].sum()
    )


@program(np.array([0.4, 0.1, 0.8, 0.6]))
def dynamic_time_warping(x):
    other = np.array([0.5, 0.3, 0.7])
    cost = np.full((5, 4), np.inf, like=x)
    cost[0, 0] = 0.0
    for i in range(1, 5):
        for j in range(1, 4):
            best = min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
            cost[i, j] = (x[i - 1] - other[j - 1]) ** 2 + best
    return np.sqrt(cost[4, 3])


@program(np.array([0.5, -1.0, 2.0]))
def generators_closures_and_sums(x):
    def terms(x):
        for k, xk in enumerate(x, start=1):
            yield xk**k / k

    weights = {i: np.exp(-i) for i in range(3)}
    total = sum(terms(x)) + sum(w * x[i] for i, w in weights.items())
    return total * max(x) + min(abs(v) for v in x) + np.hypot(*x[:2])


# ---- what is asked of each ---------------------------------------------------------------------


def leaves_of(tree):
    return [np.asarray(x) for x in wg._engine.core.pytree.flatten(tree)[0]]


@pytest.mark.parametrize("f, args", PROGRAMS)
def test_program(f, args):
    argnums = tuple(range(len(args)))
    plain = f(*args)
    value, slopes = wg.value_and_grad(f, argnums)(*args)
    assert np.allclose(value, plain, rtol=1e-13)
    for x, slope in zip(leaves_of(args), leaves_of(slopes), strict=True):
        assert slope.shape == x.shape and slope.dtype == x.dtype
        assert np.isfinite(slope).all()
    check_grads(f, args, order=1, rtol=1e-5)
    rng = np.random.default_rng(0)
    v = wg._engine.core.pytree.tree_map(
        lambda x: np.asarray(rng.normal(size=np.shape(x)))[()], args
    )
    forward = leaves_of(wg.hvp(f, args, v))

    def slope_along_v(*args):
        slopes = wg.grad(f, argnums)(*args)
        pairs = zip(
            wg._engine.core.pytree.flatten(slopes)[0],
            wg._engine.core.pytree.flatten(v)[0],
            strict=True,
        )
        return sum(np.sum(s * d) for s, d in pairs)

    reverse = leaves_of(wg.grad(slope_along_v, argnums)(*args))
    across = wg.jvp(slope_along_v, args, v)[1]
    for a, b in zip(forward, reverse, strict=True):
        assert np.allclose(a, b, rtol=1e-8, atol=1e-10 * max(1.0, np.abs(b).max()))
    assert np.allclose(
        across, sum(np.sum(a * b) for a, b in zip(forward, leaves_of(v), strict=True))
    )


@pytest.mark.parametrize("f, args", PROGRAMS)
def test_program_in_single_precision(f, args):
    args = wg._engine.core.pytree.tree_map(lambda x: np.asarray(x, np.float32)[()], args)
    argnums = tuple(range(len(args)))
    slopes = leaves_of(wg.grad(f, argnums)(*args))
    double = wg._engine.core.pytree.tree_map(lambda x: np.asarray(x, np.float64)[()], args)
    for x, a, b in zip(
        leaves_of(args), slopes, leaves_of(wg.grad(f, argnums)(*double)), strict=True
    ):
        assert a.dtype == np.float32 and a.shape == x.shape
        assert np.allclose(a, b, rtol=0.01, atol=0.005 * max(1.0, np.abs(b).max()))


@pytest.mark.sample(10)
@pytest.mark.parametrize("f, args", PROGRAMS)
def test_program_of_a_batch(f, args):
    """vmap of a program and of its gradient, and the gradient of vmap, are what loops give."""
    argnums = tuple(range(len(args)))
    scales = (1.0, 1.02, 0.99)
    rows = [wg._engine.core.pytree.tree_map(lambda x, k=k: np.asarray(x) * k, args) for k in scales]
    columns = wg._engine.core.pytree.tree_map(lambda *xs: np.stack(xs), *rows)
    slope = wg.grad(f, argnums)
    want = [wg.value_and_grad(f, argnums)(*row) for row in rows]
    assert np.allclose(wg.vmap(f)(*columns), [value for value, _ in want], rtol=1e-11)
    weighted = wg.grad(lambda *xs: np.sum(wg.vmap(f)(*xs) * np.array(scales)), argnums)(*columns)
    for k, (_, slopes) in enumerate(want):
        for a, b, c in zip(
            leaves_of(wg.vmap(slope)(*columns)),
            leaves_of(weighted),
            leaves_of(slopes),
            strict=True,
        ):
            tolerance = {"rtol": 1e-9, "atol": 1e-11 * max(1.0, np.abs(c).max())}
            assert np.allclose(a[k], c, **tolerance)
            assert np.allclose(b[k], scales[k] * c, **tolerance)


def test_rows_of_a_batch_that_have_other_extremes():
    """max and min of Python choose another element in each row."""
    f = generators_closures_and_sums
    x = np.array([[0.5, -1.0, 2.0], [1.5, 0.2, -0.4], [-0.3, 0.9, 0.6], [0.7, 0.8, -0.1]])
    assert set(x.argmax(1)) == set(np.abs(x).argmin(1)) == {0, 1, 2}
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    step = 1e-6 * np.eye(3)
    slopes = np.array([[(f(row + h) - f(row - h)) / 2e-6 for h in step] for row in x])
    np.testing.assert_allclose(wg.vmap(f)(x), [f(row) for row in x], rtol=1e-13)
    np.testing.assert_allclose(wg.vmap(wg.grad(f))(x), slopes, rtol=1e-7, atol=1e-8)
    weighted = wg.grad(lambda x: np.sum(weights * wg.vmap(f)(x)))(x)
    np.testing.assert_allclose(weighted, weights[:, None] * slopes, rtol=1e-7, atol=1e-8)
