"""Every public name of scipy.optimize, called with tensors: it works, or is refused by name."""

import numpy as np
import pytest
import scipy.optimize as theirs

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError
from wengert.scipy import optimize
from wengert.testing import check_grads

X0, P = np.array([1.2, 0.7]), np.array([1.0, 2.0])
CLASSES = {
    "BFGS", "Bounds", "BroydenFirst", "HessianUpdateStrategy", "InverseJacobian",
    "KrylovJacobian", "LbfgsInvHessProduct", "LinearConstraint", "NoConvergence",
    "NonlinearConstraint", "OptimizeResult", "OptimizeWarning", "RootResults", "SR1",
}  # fmt: skip
MODULES = {
    "cobyla", "lbfgsb", "linesearch", "minpack", "minpack2", "moduleTNC", "nonlin", "optimize",
    "slsqp", "tnc", "zeros",
}  # fmt: skip


def valley(p):
    return lambda x: np.sum((x - p) ** 2) + 0.1 * np.sum(x**4)


def slope(p):
    return lambda x: 2 * (x - p) + 0.4 * x**3


def cubic(p):
    return lambda x: x**3 + x - p


def square(p):
    return lambda x: (x - p[0]) ** 2


# name: a call of it with a parameter on which it depends, and what the error advises
REFUSED = {
    "approx_fprime": (lambda p: theirs.approx_fprime(p, valley(P)), "grad"),
    "bracket": (lambda p: theirs.bracket(square(p)), "minimize_scalar"),
    "brute": (lambda p: theirs.brute(valley(p), [(0, 2), (0, 2)], Ns=3), "differential_evolution"),
    "check_grad": (lambda p: theirs.check_grad(valley(p), slope(p), X0), "check_grads"),
    "line_search": (lambda p: theirs.line_search(valley(p), slope(p), X0, -X0), "minimize"),
    "linprog_verbose_callback": (
        lambda p: theirs.linprog_verbose_callback(
            theirs.OptimizeResult(
                x=p, nit=1, phase=1, complete=True, fun=0.0, con=0.0, slack=p, status=0,
                message="", success=True,
            )
        ),
        "debug_print",
    ),
    "quadratic_assignment": (
        lambda p: theirs.quadratic_assignment(np.outer(p, p), np.eye(2)),
        "Detach",
    ),
}  # fmt: skip

_TIGHT = {"f_tol": 1e-12, "maxiter": 400}
_MIXING = {"alpha": -0.2}
_STEPS = {
    "anderson": {"M": 2}, "broyden1": {}, "broyden2": {}, "newton_krylov": {},
    "linearmixing": _MIXING, "diagbroyden": _MIXING,
}  # fmt: skip

# name: a function of a parameter; its derivatives are compared with differences
WORKING = {
    **{
        name: lambda p, name=name, more=more: getattr(theirs, name)(cubic(p), X0, **_TIGHT, **more)
        for name, more in _STEPS.items()
    },
    "excitingmixing": lambda p: theirs.excitingmixing(
        lambda x: p - x - x**3, X0, alpha=0.2, **_TIGHT
    ),
    "leastsq": lambda p: theirs.leastsq(cubic(p), X0, xtol=1e-13, ftol=1e-13)[0],
    "fmin": lambda p: theirs.fmin(valley(p), X0, xtol=1e-10, ftol=1e-14, disp=0),
    "fmin_bfgs": lambda p: theirs.fmin_bfgs(valley(p), X0, slope(p), gtol=1e-9, disp=0),
    "fmin_cg": lambda p: theirs.fmin_cg(valley(p), X0, gtol=1e-9, disp=0),
    "fmin_cobyla": lambda p: theirs.fmin_cobyla(
        valley(p), X0, [lambda x, *args: x[0] + 9.0], rhoend=1e-10, maxfun=5000
    ),
    "fmin_l_bfgs_b": lambda p: theirs.fmin_l_bfgs_b(
        valley(p), X0, slope(p), bounds=[(-5, 5)] * 2, factr=10.0, pgtol=1e-10
    )[0],
    "fmin_ncg": lambda p: theirs.fmin_ncg(valley(p), X0, slope(p), avextol=1e-12, disp=0),
    "fmin_powell": lambda p: theirs.fmin_powell(valley(p), X0, xtol=1e-10, ftol=1e-15, disp=0),
    "fmin_slsqp": lambda p: theirs.fmin_slsqp(
        valley(p), X0, [lambda x: x[0] + x[1] - 1.0], acc=1e-16, iprint=0
    ),
    "fmin_tnc": lambda p: theirs.fmin_tnc(
        valley(p), X0, approx_grad=True, bounds=[(-5, 5)] * 2, pgtol=1e-10, ftol=1e-16, disp=0
    )[0],
    "brent": lambda p: theirs.brent(square(p)),
    "golden": lambda p: theirs.golden(square(p), brack=(0.0, 0.4, 3.0)),
    "fminbound": lambda p: theirs.fminbound(square(p), 0.0, 3.0, xtol=1e-10),
    "rosen": theirs.rosen,
    "rosen_der": theirs.rosen_der,
    "rosen_hess": theirs.rosen_hess,
    "rosen_hess_prod": lambda p: theirs.rosen_hess_prod(p, X0),
    "LinearConstraint": lambda p: (
        theirs.minimize(
            valley(P), X0, constraints=theirs.LinearConstraint(np.ones((1, 2)), p[0], p[0] + 0.3)
        ).x
    ),
    "NonlinearConstraint": lambda p: (
        theirs.minimize(
            valley(P),
            X0,
            tol=1e-12,
            constraints=theirs.NonlinearConstraint(lambda x: x @ x, -5, p[0]),
        ).x
    ),
    "Bounds": lambda p: theirs.minimize(valley(P), X0, bounds=theirs.Bounds(-p, p / 9)).x,
    "OptimizeResult": lambda p: theirs.OptimizeResult(x=p**2).x,
    "RootResults": lambda p: theirs.RootResults(p[0] ** 2, 1, 1, 0, "brentq").root,
}
SAME = {"show_options"}


def test_each_public_name_has_a_case():
    """A name that SciPy adds fails here until it has a derivative or a refusal."""
    known = {*CLASSES, *MODULES, *REFUSED, *WORKING, *SAME, *optimize.__all__}
    assert set(theirs.__all__) <= known, set(theirs.__all__) - known
    for name in theirs.__all__:
        ours = getattr(optimize, name)
        assert name in {*optimize.__all__, *REFUSED, *SAME} or ours is getattr(theirs, name)
    with pytest.raises(AttributeError, match="no attribute"):
        optimize.nothing  # noqa: B018


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_by_name(name):
    """In a derivative and in a graph, the error says what to use instead."""
    call, advice = REFUSED[name]
    for transform in (wg.jacobian, wg.jit):
        with pytest.raises(ArgumentError, match=rf"scipy\.optimize\.{name} takes plain.*{advice}"):
            transform(call)(P)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "fmin_cobyla" else ())
        for name in sorted(WORKING)
    ],
)
@pytest.mark.sample(len(WORKING) // 2)
def test_working_names(name):
    """Both modes against differences, eager and compiled."""
    check_grads(wg.jit(WORKING[name]), (P,), order=1, rtol=2e-5)
    got, compiled = wg.jacobian(WORKING[name])(P), wg.jit(wg.jacobian(WORKING[name]))(P)
    np.testing.assert_allclose(compiled, got, rtol=1e-6, atol=1e-8)


def test_searches_return_what_scipys_do():
    """All results, and plain calls."""
    for name, more in (("brent", ()), ("golden", ()), ("fminbound", (0.0, 3.0))):
        want = getattr(theirs, name)(lambda x: (x - 1.0) ** 2, *more, full_output=True)
        call = lambda a, n=name, m=more: getattr(optimize, n)(  # noqa: E731
            lambda x: (x - a) ** 2, *m, full_output=True
        )
        np.testing.assert_allclose(call(1.0), want)
        np.testing.assert_allclose(wg.jit(call)(1.0), want, atol=1e-12)


def _plain(x):
    """Results of SciPy's functions as arrays; messages and dicts by their numbers."""
    if isinstance(x, tuple):
        return [v for part in x for v in _plain(part)]
    return [] if isinstance(x, str | dict) else [np.asarray(x, float)]


@pytest.mark.parametrize("name", [n for n in WORKING if n.startswith("fmin_") or n == "fmin"])
def test_all_results_of_minimizers(name):
    """Results with tensors are those without, in number, order and value."""
    more = {"disp": 0, "full_output": True}
    if name in ("fmin_l_bfgs_b", "fmin_tnc"):
        more = {"fprime": slope(P)} | ({"disp": 0} if name == "fmin_tnc" else {})
    elif name == "fmin_ncg":
        more["fprime"] = slope(P)
    elif name == "fmin_cobyla":
        more = {"cons": lambda x: x[0] + 9.0}

    def call(p):
        return getattr(optimize, name)(valley(p), X0, **more)

    wanted, got = _plain(call(P)), _plain(call(wg.tensor(P)))
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        if np.shape(b) != () and np.shape(b) != (2, 2) and np.max(np.abs(b)) > 1e-3:
            np.testing.assert_allclose(a, b, rtol=1e-3)


def test_all_results_of_leastsq():
    """The covariance has a derivative; codes are MINPACK's."""

    def covariance(p):
        return optimize.leastsq(cubic(p), X0, full_output=True)[1]

    wanted = theirs.leastsq(cubic(P), X0, full_output=True)
    np.testing.assert_allclose(covariance(wg.tensor(P)), wanted[1], rtol=1e-6)
    check_grads(covariance, (P,), order=1, rtol=1e-5)
    x, code = optimize.leastsq(cubic(wg.tensor(P)), X0)
    assert code == wanted[-1]
    np.testing.assert_allclose(x, wanted[0], rtol=1e-7)


def test_failures_of_named_roots():
    """An error as in SciPy; in a graph the derivative is refused."""

    def solved(p):
        return optimize.broyden1(lambda x: x**2 + p, X0, maxiter=5)[0]

    with pytest.raises(theirs.NoConvergence):
        wg.grad(solved)(P)
    with pytest.raises(ConvergenceError):
        wg.jit(wg.grad(solved))(P)
    with pytest.raises(ArgumentError, match="hess_inv is not known"):
        wg.jit(lambda p: optimize.fmin_bfgs(valley(p), X0, full_output=True, disp=0)[0])(P)


def test_refused_functions_with_plain_arrays():
    """Without tensors they are SciPy's, inside of differentiated functions too."""

    def f(p):
        return p * theirs.brute(lambda x: np.sum((x - P) ** 2), [(0, 3), (0, 3)], finish=None)[1]

    np.testing.assert_allclose(wg.grad(f)(1.0), 2.0, atol=0.2)
    assert optimize.approx_fprime(P, theirs.rosen).shape == (2,)
