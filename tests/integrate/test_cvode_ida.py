"""CVODE and IDA of SUNDIALS as methods: values and derivatives beside our own and closed forms."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, BackendError, ConvergenceError, DtypeError, ShapeError
from wengert.extend import primitive, vjp
from wengert.integrate import Event, solve, solve_dae

pytest.importorskip("sksundae", reason="scikit-sundae is not installed")
TIGHT = {"rtol": 1e-9, "atol": 1e-12}
SOLVERS = ["CVODE", "CVODE_Adams", "IDA"]
RATES, START = np.array([1.5, 1.0, 3.0]), np.array([1.0, 0.7])


def species(t, y, p):
    met = y[0] * y[1]
    return np.stack((p[0] * y[0] - p[1] * met, met - p[2] * y[1]))


def states(p, y0, times, method):
    return solve(species, times, y0, (p,), method=method, **TIGHT).y


def pendulum(p, y0, t0, t1, method):
    def rhs(t, y):
        return np.stack((y[1], -p * np.sin(y[0]) * np.cos(0.3 * t)))

    return solve(rhs, (t0, t1), y0, method=method, **TIGHT).y[0]


# ---- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*SOLVERS, "cvodes", "idas", "CVODE_BDF"])
def test_values_are_those_of_other_methods(method):
    for times in (np.array([0.0, 0.0, 0.5, 2.0, 2.0]), np.array([2.0, 1.0, 0.0])):
        found = solve(species, times, START, (RATES,), method=method, **TIGHT)
        np.testing.assert_allclose(found.y, states(RATES, START, times, "vern7"), rtol=3e-7)
        assert found.success and found.nfev > 10 and found.njev > 0 and found.nlu == -1


def test_the_number_of_steps_is_known_for_the_end():
    found = solve(species, (0.0, 2.0), START, (RATES,), method="CVODE")
    assert 20 < found.n_steps < 200 and found.n_rejected == -1
    assert solve(species, (1.0, 1.0), START, (RATES,), method="CVODE").y.tolist() == START.tolist()


def test_compiled_functions_and_batches():
    def f(p, method):
        return states(p, START, (0.0, 2.0), method)

    many = np.stack((RATES, 1.1 * RATES))
    expected = np.stack([f(p, "vern7") for p in many])
    for method in SOLVERS[::2]:
        np.testing.assert_allclose(wg.jit(f, static_argnums=1)(RATES, method), expected[0], 3e-7)
        batch = wg.vmap(lambda p, m=method: f(p, m))
        np.testing.assert_allclose(batch(many), expected, rtol=3e-7)
        np.testing.assert_allclose(wg.jit(batch)(many), expected, rtol=3e-7)


def test_states_are_containers():
    def swing(t, s):
        return {"angle": s["speed"], "speed": -np.sin(s["angle"])}

    first = {"angle": 1.0, "speed": 0.0}
    found = solve(swing, (0.0, 1.0), first, method="CVODE", **TIGHT).y
    assert found["angle"] == pytest.approx(solve(swing, (0.0, 1.0), first, **TIGHT).y["angle"])

    def residual(t, s, d):
        return {"angle": d["angle"] - s["speed"], "speed": d["speed"] + np.sin(s["angle"])}

    same = solve_dae(residual, (0.0, 1.0), first, **TIGHT).y
    assert same["angle"] == pytest.approx(found["angle"], rel=1e-7)


# ---- derivatives -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", SOLVERS)
def test_first_derivatives_in_both_modes(method):
    times = np.array([0.0, 0.5, 2.0])
    for argnum in (0, 1):
        right = wg.jacfwd(states, argnums=argnum)(RATES, START, times, "vern7")
        for jacobian in (wg.jacfwd(states, argnums=argnum), wg.jacrev(states, argnums=argnum)):
            found = jacobian(RATES, START, times, method)
            np.testing.assert_allclose(found, right, rtol=3e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("method", SOLVERS[::2])
def test_derivatives_with_respect_to_times_and_of_second_order(method):
    numbers, arguments = (0, 1, 2, 3), (1.3, np.array([1.0, 0.2]), 0.1, 2.0)

    def of(f, method):
        return [np.asarray(x) for x in wg.tree.leaves(f(*arguments, method))]

    gradient = wg.grad(pendulum, argnums=numbers)
    for f in (gradient, wg.jit(gradient, static_argnums=4)):
        for a, b in zip(of(f, method), of(f, "vern7"), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    right = of(wg.jacfwd(gradient, argnums=numbers), "vern7")
    for outer in (wg.jacfwd, wg.jacrev):
        for a, b in zip(of(outer(gradient, argnums=numbers), method), right, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("method", SOLVERS[::2])
def test_derivatives_with_respect_to_the_ends(method):
    arguments = (1.3, np.array([1.0, 0.2]), 0.1, 2.0)
    right = wg.jacfwd(pendulum, argnums=(2, 3))(*arguments, "vern7")
    for jacobian in (wg.jacfwd, wg.grad):
        found = jacobian(pendulum, argnums=(2, 3))(*arguments, method)
        np.testing.assert_allclose(found, right, rtol=1e-6)


def test_second_derivatives():
    def f(p, method):
        return pendulum(p, np.array([1.0, 0.2]), 0.1, 2.0, method)

    right = wg.jacfwd(wg.grad(f))(1.3, "vern7")
    for outer in (wg.jacfwd, wg.jacrev):
        assert outer(wg.grad(f))(1.3, "CVODE") == pytest.approx(right, rel=1e-6)


@pytest.mark.slow
def test_third_derivatives():
    def f(p, method):
        return pendulum(p, np.array([1.0, 0.2]), 0.1, 2.0, method)

    third = wg.grad(wg.grad(wg.grad(f)))
    forward = wg.jacfwd(wg.jacfwd(wg.jacfwd(f)))
    for method in SOLVERS[::2]:
        assert third(1.3, method) == pytest.approx(third(1.3, "vern7"), rel=1e-6)
        assert forward(1.3, method) == pytest.approx(third(1.3, "vern7"), rel=1e-6)


def test_gradients_in_batches_and_loops():
    def f(p, method):
        return np.sum(states(p, START, (0.0, 2.0), method) ** 2)

    many = np.stack((RATES, 1.1 * RATES))
    right = np.stack([wg.grad(f)(p, "vern7") for p in many])
    found = wg.jit(wg.vmap(wg.grad(lambda p: f(p, "CVODE"))))(many)
    np.testing.assert_allclose(found, right, rtol=1e-6)

    def repeated(p):
        def step(y, _):
            return solve(species, (0.0, 1.0), y, (p,), method="CVODE", **TIGHT).y, None

        return np.sum(wg.scan(step, START, None, length=2)[0] ** 2)

    np.testing.assert_allclose(wg.jit(wg.grad(repeated))(RATES), right[0], rtol=1e-6)


# ---- algebraic equations -----------------------------------------------------------------------

CONSTANTS = np.array([0.04, 3e7, 1e4])
MASS = np.diag([1.0, 1.0, 0.0])


def conserved(t, y, k):
    slow, fast, back = k[0] * y[0], k[1] * y[1] ** 2, k[2] * y[1] * y[2]
    return np.stack((back - slow, slow - fast - back, y.sum() - 1.0))


def robertson(k, y0, method, **options):
    given = {"rtol": 1e-7, "atol": 1e-11, **options}
    return solve(conserved, (0.0, 100.0), y0, (k,), method=method, mass=MASS, **given).y


def as_residual(k, y0):
    def residual(t, y, ydot):
        return MASS @ ydot - conserved(t, y, k)

    return solve_dae(residual, (0.0, 100.0), y0, rtol=1e-7, atol=1e-11).y


def test_robertson_with_an_equation_and_a_wrong_guess():
    start, guess = np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.4])
    right = robertson(CONSTANTS, start, "rodas5p", rtol=1e-10, atol=1e-14)
    slopes = wg.jacfwd(robertson)(CONSTANTS, start, "rodas5p", rtol=1e-10, atol=1e-14) * CONSTANTS
    for f in (lambda k, y: robertson(k, y, "IDA"), as_residual):
        np.testing.assert_allclose(f(CONSTANTS, guess), right, rtol=1e-5)
        for jacobian in (wg.jacfwd(f), wg.jacrev(f)):
            found = jacobian(CONSTANTS, guess) * CONSTANTS
            np.testing.assert_allclose(found, slopes, rtol=3e-4, atol=1e-9)
    by_start = wg.jacrev(as_residual, argnums=1)(CONSTANTS, guess)
    assert (by_start[:, 2] == 0.0).all()
    other = wg.jacfwd(as_residual, argnums=1)(CONSTANTS, guess)
    np.testing.assert_allclose(by_start, other, rtol=1e-4, atol=1e-8)


def test_a_mass_matrix_without_zero_columns():
    """A capacitor between two nodes: their difference has a derivative, their sum an equation."""

    def nodes(resistance, supply, first):
        def currents(t, v):
            return np.stack((-(v[0] - supply) / resistance, -v[1] / resistance))

        start = np.stack((first, -first + 0.3))  # only the difference counts
        mass = np.array([[1.0, -1.0], [-1.0, 1.0]])
        return solve(currents, (0.0, 1.0), start, method="IDA", mass=mass, **TIGHT).y

    def exact(resistance, supply, first):
        difference = supply - (supply - 2.0 * first + 0.3) * np.exp(-0.5 / resistance)
        return np.stack((supply + difference, supply - difference)) / 2.0

    point = (0.7, 2.0, 0.4)
    np.testing.assert_allclose(nodes(*point), exact(*point), rtol=1e-7)
    for jacobian in (wg.jacfwd, wg.jacrev):
        found = jacobian(nodes, argnums=(0, 1, 2))(*point)
        for a, b in zip(found, wg.jacfwd(exact, argnums=(0, 1, 2))(*point), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def implicit_growth(p, first, end):
    """exp(y') = 1 + p z, with an algebraic component z, the square of y."""

    def residual(t, y, ydot):
        return np.stack((np.exp(ydot[0]) - 1.0 - p * y[1], y[1] - y[0] ** 2))

    return solve_dae(residual, (0.0, end), np.stack((first, 0.0 * first)), **TIGHT).y


def explicit_growth(p, first, end):
    y = solve(lambda t, y: np.log(1.0 + p * y * y), (0.0, end), np.stack((first,)), **TIGHT).y[0]
    return np.stack((y, y * y))


def test_a_residual_that_is_nonlinear_in_the_derivative():
    numbers, point = (0, 1, 2), (0.8, 1.5, 2.0)
    np.testing.assert_allclose(implicit_growth(*point), explicit_growth(*point), rtol=3e-7)
    right = wg.jacfwd(explicit_growth, argnums=numbers)(*point)
    for jacobian in (wg.jacfwd, wg.jacrev):
        found = jacobian(implicit_growth, argnums=numbers)(*point)
        for a, b in zip(found, right, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.slow
def test_second_derivatives_of_a_residual():
    numbers, point = (0, 1, 2), (0.8, 1.5, 2.0)
    right = wg.hessian(lambda *x: explicit_growth(*x)[1], argnums=numbers)(*point)
    for outer in (wg.jacfwd, wg.jacrev):
        inner = wg.grad(lambda *x: implicit_growth(*x)[1], argnums=numbers)
        found = outer(inner, argnums=numbers)(*point)
        for a, b in zip(wg.tree.leaves(found), wg.tree.leaves(right), strict=True):
            assert a == pytest.approx(b, rel=3e-6)


def test_algebraic_components_may_be_given():
    def residual(t, y, ydot):
        return np.stack((ydot[0] + y[1], y[1] - y[0] + 0.0 * ydot[1]))

    for algebraic in (None, [False, True]):
        found = solve_dae(residual, (0.0, 1.0), [1.0, 5.0], algebraic=algebraic, **TIGHT)
        np.testing.assert_allclose(found.y, [np.exp(-1.0)] * 2, rtol=1e-7)
    with pytest.raises(ShapeError, match="algebraic"):
        solve_dae(residual, (0.0, 1.0), [1.0, 5.0], algebraic=[True])


# ---- failures ----------------------------------------------------------------------------------


def test_an_index_above_one_is_an_error():
    """A pendulum in Cartesian coordinates, whose length is an equation."""

    def residual(t, y, ydot):
        a, b, u, v, tension = y
        moved = np.stack(
            (ydot[0] - u, ydot[1] - v, ydot[2] + tension * a, ydot[3] + tension * b + 1)
        )
        return np.concatenate((moved, np.stack((a * a + b * b - 1.0,))))

    start = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(ConvergenceError, match=r"consistent initial values.*index"):
        solve_dae(residual, (0.0, 1.0), start)


@pytest.mark.parametrize("method", SOLVERS)
def test_solutions_that_fail(method, capsys):
    def blows_up(t, y):
        return y * y

    with pytest.raises(ConvergenceError, match=r"solve failed at t = 0\.99"):
        solve(blows_up, (0.0, 2.0), np.array([1.0]), method=method)
    assert capsys.readouterr().out == ""
    found = solve(blows_up, [0.0, 0.5, 2.0], np.array([1.0]), method=method, check=False)
    assert found.status == -1 and found.t.tolist() == [0.0, 0.5]
    compiled = wg.jit(lambda y: solve(blows_up, [0.0, 0.5, 2.0], y, method=method, check=False).y)
    assert np.isfinite(compiled(np.array([1.0]))).ravel().tolist() == [True, True, False]
    with pytest.raises(ConvergenceError, match="largest number of steps"):
        solve(species, (0.0, 10.0), START, (RATES,), method=method, max_steps=5)
    with pytest.raises(ConvergenceError, match="not finite"):
        solve(lambda t, y: np.log(y), (0.0, 1.0), np.array([-1.0]), method=method)


@pytest.mark.parametrize(
    "options",
    [
        {"events": Event(lambda t, y: y[0] - 1.0)},
        {"dense": True},
        {"saveat": "steps"},
        {"jump_ts": [1.0]},
        {"adjoint": "continuous"},
        {"mass": np.eye(2)},
    ],
)
def test_what_is_not_supported_is_refused(options):
    with pytest.raises(ArgumentError, match=r"method='CVODE' takes no.*own methods|Use method"):
        solve(lambda t, y: -y, (0.0, 1.0), START, method="CVODE", **options)


def test_other_arguments_that_cannot_be():
    with pytest.raises(DtypeError, match="real states"):
        solve(lambda t, y: 1j * y, (0.0, 1.0), np.array([1j]), method="CVODE")
    with pytest.raises(ShapeError, match="rtol"):
        solve(lambda t, y: -y, (0.0, 1.0), START, method="IDA", rtol=np.full(2, 1e-6))
    with pytest.raises(ShapeError, match="mass has shape"):
        solve(lambda t, y: -y, (0.0, 1.0), START, method="IDA", mass=np.eye(3))
    with pytest.raises(ArgumentError, match="solve_dae"):
        wg.grad(
            lambda m: solve(lambda t, y: -y, (0.0, 1.0), START, method="IDA", mass=m * np.eye(2)).y[
                0
            ]
        )(1.0)


@primitive(callback=True)
def raising(y):
    if y[0] < 0.9:
        raise KeyError("mine")
    return -y


vjp[raising] = lambda g, out, y: (-g,)


@pytest.mark.parametrize("method", SOLVERS[::2])
def test_exceptions_of_the_function_are_those_of_the_user(method):
    def f(y):
        return solve(lambda t, y: raising(y), (0.0, 1.0), y, method=method).y

    for run in (f, wg.jit(f)):
        with pytest.raises(KeyError, match="mine"):
            run(np.array([1.0]))


def test_the_error_if_it_is_not_installed(monkeypatch):
    library = pytest.importorskip("wengert.integrate.sundials.library")
    monkeypatch.setattr(library, "is_installed", lambda: False)
    for run in (
        lambda: solve(lambda t, y: -y, (0.0, 1.0), START, method="CVODE"),
        lambda: solve_dae(lambda t, y, d: d + y, (0.0, 1.0), START),
    ):
        with pytest.raises(BackendError, match=r"pip install 'wengert\[sundials\]'"):
            run()
