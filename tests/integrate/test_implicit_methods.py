"""Rosenbrock methods, Kvaerno's methods and Radau: orders, stiff problems, derivatives.

The derivative of a stage is that of its equation: it is compared with differences on fixed steps,
with the iteration converged to rounding.
"""

import functools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import wengert as wg
from wengert.errors import ArgumentError, DtypeError, ShapeError
from wengert.integrate import solve
from wengert.scipy.integrate.ivp.method import IvpProblem, Tolerance
from wengert.scipy.integrate.ivp.methods import NATIVE

from .stiff_problems import PROBLEMS, RATES, robertson, robertson_dae

IMPLICIT = ["rodas4", "rodas5p", "kvaerno3", "kvaerno4", "kvaerno5", "Radau"]
QUICK, OTHERS = ["rodas4", "kvaerno3", "Radau"], ["rodas5p", "kvaerno4", "kvaerno5"]
ORDERS = {"rodas4": 4, "rodas5p": 5, "kvaerno3": 3, "kvaerno4": 4, "kvaerno5": 5, "Radau": 5}
ORDERS_OF_INTERPOLANTS = {"rodas4": 3, "rodas5p": 4, "Radau": 3}  # the others: cubic, 3
# of Robertson's first component at 40, by differences of solutions of SciPy with rtol 1e-11
SLOPE = [-4.2475588, 1.3730808e-5, -2.2883551e-9]
# More of the error of many short steps is left at the end.
RTOL = {name: 1e-6 for name in IMPLICIT} | {"BDF": 1e-7}
CONVERGED = Tolerance(1e-8, 1e-8)  # the iterations end at 1e-12


def slow(name):
    """A method of a kind that others are tested of already; compiling takes the time."""
    return pytest.param(name, marks=pytest.mark.slow)


def on_grid(name, f, y0, steps, h, repeat=False):
    """The state after equal steps, and the one in the middle of the last."""
    method, problem = NATIVE[name][0], IvpProblem(f)

    def step(_, state):
        t, y, carry, _ = state
        found = method.step(problem, t, h, y, carry, CONVERGED)
        if repeat:  # a method that keeps its Jacobian repeats the step with a new one
            again = method.step(problem, t, h, y, found.rejected, CONVERGED)
            found = found._replace(
                y=np.where(found.converged, found.y, again.y),
                carry=wg.cond(found.converged, lambda: found.carry, lambda: again.carry),
            )
        prepared = method.prepared(problem, t, h, y, found.y, found.dense)
        return t + h, found.y, found.carry, method.interpolate(0.5, h, y, found.y, prepared)

    t, y = np.zeros(()), y0 * np.ones(())
    start = (t, y, method.start(problem, t, y), 0.0 * y)
    _, last, _, middle = wg.fori_loop(0, steps, step, start)
    return last, middle


def coupled(t, y):
    """Nonlinear, and dependent on time; see `solution`."""
    first = -(y[0] ** 2) * np.cos(t)
    return np.stack([first, 2.0 * (np.sin(t) * y[0] - y[1]) + np.cos(t) * y[0] + np.sin(t) * first])


def solution(t):
    return np.array([1.0, np.sin(t)]) / (1.0 + np.sin(t))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", IMPLICIT)
def test_halving_the_steps_shows_the_order(name):
    end = 1.5
    run = wg.jit(lambda n, h: on_grid(name, coupled, solution(0.0), n, h, name == "Radau"))
    errors = []
    for n in (20, 40):
        y, middle = run(n, end / n)
        errors.append(
            [np.abs(y - solution(end)).max(), np.abs(middle - solution(end - 0.5 * end / n)).max()]
        )
    found = np.log2(np.divide(*errors))
    wanted = np.array([ORDERS[name], ORDERS_OF_INTERPOLANTS.get(name, 3) + 1])
    wanted[1] = min(wanted)  # the error of the last step is added to that of the steps before
    assert np.all(found > wanted - 0.3), found


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("method", ["rodas5p", "kvaerno5", "Radau", "BDF"])
@pytest.mark.sample(4)  # each method, and each problem
def test_stiff_problems(problem, method):
    f, y0, end, expected = PROBLEMS[problem]
    found = solve(f, (0.0, end), np.array(y0), method=method, rtol=RTOL[method], atol=1e-10)
    np.testing.assert_allclose(found.y, expected, rtol=2e-5)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rodas4", "kvaerno3", "kvaerno4"])
def test_robertson(method):
    f, y0, end, expected = PROBLEMS["robertson"]
    found = solve(f, (0.0, end), np.array(y0), method=method, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(found.y, expected, rtol=1e-6)


@pytest.mark.parametrize("method", ["Radau", "BDF"])
@pytest.mark.parametrize(("problem", "end"), [("robertson", 1e5), ("hires", 321.8122)])
@pytest.mark.sample(2)  # each method, and each problem
def test_the_steps_of_scipy(problem, end, method):
    f, y0, *_ = PROBLEMS[problem]
    jac = wg.jit(wg.jacobian(lambda y: f(0.0, y)))
    options = {"rtol": 1e-6, "atol": 1e-10}
    found = solve(f, (0.0, end), np.array(y0), method=method, saveat="steps", **options)
    theirs = solve_ivp(f, (0.0, end), y0, method, jac=lambda t, y: jac(y), **options)
    np.testing.assert_allclose(found.t, theirs.t, rtol=1e-7)
    np.testing.assert_allclose(found.y.T, theirs.y, rtol=1e-7, atol=1e-14)
    assert (found.nfev, found.njev, found.nlu) == (theirs.nfev, theirs.njev, theirs.nlu)


def with_an_equation(rates, method):
    """Robertson's problem with the sum of the components in place of a differential equation."""
    found = solve(
        robertson_dae, (0.0, 40.0), np.array([1.0, 0.0, 0.0]), (rates,), method=method,
        rtol=RTOL[method], atol=1e-10, saveat=np.array([0.4, 40.0]), mass=np.diag([1.0, 1.0, 0.0]),
    )  # fmt: skip
    return found.y[1, 0], found.y


def assert_solved(found):
    options = {"rtol": 1e-10, "atol": 1e-14}
    expected = solve_ivp(robertson, (0, 40), [1.0, 0.0, 0.0], "Radau", [0.4, 40.0], **options)
    np.testing.assert_allclose(found, expected.y.T, rtol=1e-4)
    np.testing.assert_allclose(found[1], expected.y[:, 1], rtol=1e-6)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", [*QUICK, "BDF", *map(slow, OTHERS)])
def test_an_equation_between_the_components(method):
    slope, found = wg.jit(wg.grad(lambda p: with_an_equation(p, method), has_aux=True))(RATES)
    np.testing.assert_allclose(slope, SLOPE, rtol=1e-4)
    assert_solved(found)


@pytest.mark.slow
@pytest.mark.parametrize("method", [*QUICK, "BDF", *OTHERS])
def test_an_equation_between_the_components_without_derivatives(method):
    assert_solved(with_an_equation(RATES, method)[1])
    assert_solved(wg.jit(lambda p: with_an_equation(p, method)[1])(RATES))


def heat(t, y, p):
    """Heat conduction with a source; the Jacobian depends on the state."""
    flow = np.diff(y, prepend=0.0, append=0.0) * 60.0
    return np.diff(flow) + p[0] * np.sin(t) * y - p[1] * y**3


P = np.array([3.0, 0.5])


@functools.cache
def heat_of_scipy(end, size):
    """The state at the end, from the sine that tests of several methods begin with."""
    y0 = np.sin(np.linspace(0.2, 3.0, size))
    found = solve_ivp(heat, (0.0, end), y0, "Radau", args=(P,), rtol=1e-10, atol=1e-12)
    return found.y[:, -1]


def steps_of(name, size):
    """A number that depends on parameters and the initial state, after three steps."""
    y0 = np.linspace(0.5, 1.0, size)

    def last(q):
        y, middle = on_grid(name, lambda t, y: heat(t, y, q[:2]), y0 * q[2], 3, 0.02)
        return np.sum(y**2) + middle[0]

    return last


Q = np.array([*P, 1.2])
STEPS = 1e-3 * np.eye(3)


@pytest.mark.parametrize("name", [*QUICK, *map(slow, OTHERS)])
@pytest.mark.parametrize("size", [2, 6])
@pytest.mark.sample(4)  # each method, and both sizes
def test_derivatives_of_steps_are_exact(name, size):
    """Beside differences on the same steps, of order 4."""
    last = steps_of(name, size)
    both = wg.jit(wg.value_and_grad(last))
    slope = both(Q)[1]
    near = np.array([both(Q + d)[0] - both(Q - d)[0] for d in STEPS])
    far = np.array([both(Q + 2 * d)[0] - both(Q - 2 * d)[0] for d in STEPS])
    np.testing.assert_allclose(slope, (8 * near - far) / 12e-3, rtol=1e-7, atol=1e-9)
    if size == 2:
        np.testing.assert_allclose(wg.jit(wg.jacfwd(last))(Q), slope, rtol=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name", ["rodas4", "kvaerno3", pytest.param("Radau", marks=pytest.mark.slow)]
)
def test_second_derivatives_of_steps(name):
    last = steps_of(name, 2)
    direction = np.array([1.0, -2.0, 0.5])
    both = wg.jit(lambda q: wg.jvp(wg.grad(last), (q,), (direction,)))  # one program
    second = both(Q)[1]
    near, far = [both(Q + k * direction)[0] - both(Q - k * direction)[0] for k in (1e-3, 2e-3)]
    np.testing.assert_allclose(second, (8 * near - far) / 12e-3, rtol=1e-7, atol=1e-9)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", [*QUICK, "BDF", *map(slow, OTHERS)])
def test_a_system_that_is_factorized(method):
    y0 = np.sin(np.linspace(0.2, 3.0, 12))
    options = {"rtol": 1e-7, "atol": 1e-9}
    found = solve(heat, (0.0, 2.0), y0, (P,), method=method, **options)
    np.testing.assert_allclose(found.y, heat_of_scipy(2.0, 12), rtol=1e-4, atol=1e-7)
    if method.startswith("kvaerno"):
        assert found.nlu < found.n_steps and found.njev < found.nlu


@pytest.mark.parametrize("method", ["rodas5p", slow("kvaerno5")])
def test_the_gradient_in_both_modes(method):
    """The discrete adjoint of an adaptive solution, beside differences of tight solutions."""

    def last(rates, **options):
        options = {"rtol": 1e-8, "atol": 1e-12, **options}
        return solve(robertson, (0.0, 40.0), np.array([1.0, 0.0, 0.0]), (rates,), **options).y[0]

    slope = wg.jit(wg.grad(last), static_argnames="method")(RATES, method=method)
    forward = wg.jit(wg.jacfwd(last), static_argnames="method")(RATES, method=method)
    np.testing.assert_allclose(slope, forward, rtol=1e-9)
    np.testing.assert_allclose(slope, SLOPE, rtol=1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rodas4", slow("kvaerno4"), slow("Radau"), "BDF"])
def test_rows_of_a_batch_have_their_own_steps(method):
    def last(scale):
        y0 = np.array([1.0, 0.0, 0.0])
        found = solve(robertson, (0.0, 4.0), y0, (RATES * scale,), method=method)
        return found.y, found.n_steps

    scales = np.array([0.5, 1.0, 20.0])
    ys, steps = wg.jit(wg.vmap(last))(scales)
    one = wg.jit(last)
    for scale, y, count in zip(scales, ys, steps, strict=True):
        alone, wanted = one(scale)
        np.testing.assert_allclose(y, alone, rtol=1e-7)
        assert count == wanted


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["rodas4", "kvaerno3", "Radau", "BDF"])
def test_a_mass_matrix_that_is_not_singular(method):
    mass = np.array([[2.0, 1.0], [0.5, 3.0]])
    found = solve(
        lambda t, y: mass @ coupled(t, y), (0.0, 1.5), solution(0.0), method=method, mass=mass
    )
    np.testing.assert_allclose(found.y, solution(1.5), rtol=1e-5)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", [slow("rodas4"), "kvaerno3", "BDF"])
def test_a_banded_jacobian(method):
    y0 = np.sin(np.linspace(0.2, 3.0, 40))

    def last(p):
        return solve(heat, (0.0, 0.2), y0, (p,), method=method, rtol=1e-6, atol=1e-8).y

    def total(p):
        y = last(p)
        return np.sum(y), y

    slope, compiled = wg.jit(wg.grad(total, has_aux=True))(P)
    np.testing.assert_allclose(compiled, heat_of_scipy(0.2, 40), rtol=1e-4, atol=1e-7)
    forward = wg.jit(wg.jacfwd(lambda p: np.sum(last(p))))(P)
    np.testing.assert_allclose(slope, forward, rtol=1e-9)
    notes = wg.explain(lambda p: last(p))(P).notes
    assert any("banded" in n.message for n in notes if n.kind == "linear system")


MATRIX = 2.0 * np.eye(2)


def decay(t, y):
    return -y


def solved_with(method, y0=(1.0, 1.0), **options):
    return solve(decay, (0.0, 1.0), np.array(y0), method=method, **options).y


@pytest.mark.parametrize("method", ["tsit5", "RK23", "RK45", "DOP853", "vern7"])
def test_explicit_methods_refuse_a_mass_matrix(method):
    with pytest.raises(ArgumentError, match=r"explicit.*rodas4, rodas5p, kvaerno3.*Radau"):
        solved_with(method, mass=MATRIX)
    with pytest.raises(ArgumentError, match="explicit"):
        wg.jit(lambda m: solved_with(method, mass=m))(MATRIX)


@pytest.mark.parametrize(
    ("mass", "error", "match"),
    [
        (np.ones(2), ShapeError, r"\(2,\).*\(2, 2\)"),
        (2.0, ShapeError, r"\(2, 2\)"),
        (np.eye(3), ShapeError, r"\(3, 3\).*\(2, 2\)"),
        (2j * np.eye(2), DtypeError, "complex.*y0"),
        (np.array([["a", "b"]] * 2), DtypeError, "numbers"),
        (np.diag([1.0, np.nan]), ArgumentError, "finite"),
    ],
)
def test_mass_matrices_that_cannot_be(mass, error, match):
    with pytest.raises(error, match=match):
        solved_with("rodas4", mass=mass)


def test_mass_matrices_of_integers_and_lists():
    expected = solved_with("rodas4", mass=MATRIX)
    assert solved_with("rodas4", mass=MATRIX.astype(int)).tolist() == expected.tolist()
    assert solved_with("rodas4", mass=MATRIX.tolist()).tolist() == expected.tolist()
    np.testing.assert_allclose(expected, np.exp(-0.5), rtol=1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rodas4", "Radau"])
def test_jacobians_that_cannot_be(method):
    with pytest.raises(ShapeError, match=r"jac has shape \(3,\).*\(2, 2\)"):
        solved_with(method, jac=lambda t, y: np.ones(3))
    with pytest.raises(DtypeError, match="jac is complex"):
        solved_with(method, jac=lambda t, y: 1j * np.eye(2))
    given = solved_with(method, jac=lambda t, y: [[-1.0, 0.0], [0.0, -1.0]])
    np.testing.assert_allclose(given, solved_with(method), rtol=1e-12)


def test_radau_is_for_real_states():
    with pytest.raises(DtypeError, match=r"Radau.*real states.*rodas4.*kvaerno5"):
        solved_with("Radau", (1.0 + 0j, 2.0 + 0j))


@pytest.mark.parametrize("method", ["rodas4", slow("kvaerno5")])
def test_complex_states(method):
    def last(q):
        mass = np.array([[2j, 0.0], [0.0, 1.0]])
        found = solve(
            lambda t, y: 1j * q * y, (0.0, 1.0), [1.0 + 0j, 1.0 + 0j], method=method, mass=mass
        )
        return found.y.real

    values, slopes = np.stack([last(0.7), wg.jit(wg.jacfwd(last))(0.7)])
    np.testing.assert_allclose(values, [np.exp(0.35), np.cos(0.7)], rtol=1e-5)
    np.testing.assert_allclose(slopes, [np.exp(0.35) / 2, -np.sin(0.7)], rtol=1e-5)
