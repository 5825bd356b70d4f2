"""Every differentiable solver, as functions of three parameters: cases of test_solver_derivatives.

A case is a function of a vector `p` near P.  The tolerances of the solvers are as small as they
reach; `ACCURACY` has the relative accuracy of the solutions of those that end earlier.
"""

import numpy as np
import scipy.optimize as theirs
import scipy.sparse as sp

import wengert as wg
from wengert import optim
from wengert.scipy import integrate, optimize
from wengert.scipy.sparse import csr_array, linalg

P = np.array([1.3, 0.8, 0.5])
CASES = {}
ACCURACY = {}


def case(name, accuracy=None):
    def add(f):
        CASES[name] = f
        if accuracy is not None:
            ACCURACY[name] = accuracy
        return f

    return add


# ---- equations ---------------------------------------------------------------------------------


def pair(x, p):
    """Two coupled equations with a dominant diagonal."""
    return np.stack([2.0 * x[0] + 0.3 * np.sin(x[1]) - p[0], 2.0 * x[1] + p[2] * x[0] ** 2 - p[1]])


X0 = np.array([0.4, 0.3])
FATOL = {"fatol": 1e-12}
MIXING = {"fatol": 1e-12, "jac_options": {"alpha": 0.4}}
ROOT_OPTIONS = {
    "hybr": {"xtol": 1e-13},
    "lm": {"xtol": 1e-14, "ftol": 1e-14},
    "df-sane": FATOL,
    "krylov": FATOL,
    "broyden1": FATOL,
    "broyden2": FATOL,
    "anderson": {"fatol": 1e-9},
    "linearmixing": MIXING,
    "diagbroyden": FATOL,
    "excitingmixing": MIXING,
}
for method, options in ROOT_OPTIONS.items():
    case(f"root, {method}", 1e-7 if method == "anderson" else None)(
        lambda p, m=method, o=options: optimize.root(lambda x: -pair(x, p), X0, (), m, options=o).x
    )
case("fsolve")(lambda p: optimize.fsolve(pair, X0, (p,), xtol=1e-13))
case("fixed_point")(
    lambda p: optimize.fixed_point(
        lambda x: np.stack([p[0] * np.cos(x[1]) / 3, p[1] * np.sin(x[0]) + p[2] / 4]),
        X0,
        xtol=1e-13,
    )
)


def cubic(x, p):
    return p[0] * x**3 + p[1] * x - p[2] - 1.0


for name in ("brentq", "brenth", "ridder", "bisect", "toms748"):
    case(name)(lambda p, n=name: getattr(optimize, n)(cubic, 0.0, 2.0, (p,), xtol=1e-14))
case("newton")(lambda p: optimize.newton(cubic, 0.9, args=(p,), tol=1e-14))
case("newton, vector")(
    lambda p: optimize.newton(lambda x: x**3 + p * x - 2.0, np.ones(3), tol=1e-14)
)
for method in ("brentq", "newton", "secant", "halley"):
    more = {"bracket": (0.0, 2.0)} if method == "brentq" else {"x0": 0.9}
    more |= {"x1": 1.0} if method == "secant" else {}
    case(f"root_scalar, {method}")(
        lambda p, m=method, more=more: (
            optimize.root_scalar(lambda x: cubic(x, p), method=m, xtol=1e-14, **more).root
        )
    )


def bisected(f, start):
    def step(_, ends):
        low, high = ends
        middle = (low + high) / 2
        right = f(middle) > 0.0
        return np.where(right, low, middle), np.where(right, middle, high)

    return wg.fori_loop(0, 60, step, (start - 2.0, start + 2.0))[0]


case("custom_root")(lambda p: wg.custom_root(lambda x: cubic(x, p), 0.5, bisected))


@wg.implicit(residual=lambda y, a, b: y**2 + a * y - b)
def quadratic_root(y, a, b):
    return (np.sqrt(a * a + 4.0 * b) - a) / 2.0


case("implicit")(lambda p: quadratic_root(np.ones(2), p[1:], p[0]))


def chain(p):
    return lambda u: (2.0 + p[0]) * u - p[1] * np.concatenate([u[1:], 0.0 * u[:1]]) + p[2] * u[0]


case("custom_linear_solve")(lambda p: wg.custom_linear_solve(chain(p), p[1] * np.ones(5)))
case("custom_linear_solve, gmres")(
    lambda p: wg.custom_linear_solve(chain(p), p[1] * np.arange(1.0, 5.0), "gmres")
)

# ---- minima ------------------------------------------------------------------------------------


def bowl(x, p):
    """Convex, with a minimum near p[:2] / 2."""
    return np.sum((x - p[:2]) ** 2) + p[2] * x[0] * x[1] + 0.25 * np.sum(x**4)


OPTIONS = {
    "bfgs": {"gtol": 1e-7},
    "cg": {"gtol": 1e-7},
    "newton-cg": {"xtol": 1e-13},
    "l-bfgs-b": {"gtol": 1e-7, "ftol": 1e-14},
    "slsqp": {"ftol": 1e-15},
    "tnc": {"gtol": 1e-9, "ftol": 1e-15, "xtol": 1e-12},
    "trust-constr": {"gtol": 1e-11},
    "trust-ncg": {"gtol": 1e-7},
    "trust-exact": {"gtol": 1e-7},
    "trust-krylov": {"gtol": 1e-7},
    "dogleg": {"gtol": 1e-7},
    "nelder-mead": {"xatol": 1e-9, "fatol": 1e-14},
    "powell": {"xtol": 1e-10, "ftol": 1e-16},
    "cobyqa": {"final_tr_radius": 1e-9},
}
# With function values only, minima are accurate to the square root of the precision.
ACCURACY_OF = dict.fromkeys(OPTIONS, 3e-7) | {"nelder-mead": 1e-6, "powell": 1e-6, "cobyqa": 1e-6}


def minimized(p, method, get="x", **more):
    return optimize.minimize(
        bowl, np.array([0.4, 0.3]), (p,), method, options=OPTIONS[method], **more
    )[get]


for method in OPTIONS:
    case(f"minimize, {method}", ACCURACY_OF[method])(lambda p, m=method: minimized(p, m))
case("minimize, value", 1e-7)(lambda p: minimized(p, "bfgs", "fun"))
for method in ("l-bfgs-b", "tnc", "slsqp", "trust-constr", "nelder-mead", "powell"):
    case(f"minimize, bounds, {method}", 1e-6)(
        lambda p, m=method: minimized(p, m, bounds=theirs.Bounds(-p[:2], np.stack([p[2], 3.0])))
    )


def limited(p, kind):
    return {"type": kind, "fun": lambda x: p[2] - x @ x + p[0] * x[1] / 9}


for method in ("slsqp", "trust-constr"):
    for kind in ("eq", "ineq"):
        for get in ("x", "fun"):
            case(f"minimize, {kind}, {method}, {get}", 1e-6)(
                lambda p, m=method, k=kind, g=get: minimized(p, m, g, constraints=limited(p, k))
            )
for method in ("brent", "golden", "bounded"):
    more = {"bounds": (0.0, 2.0), "options": {"xatol": 1e-10}} if method == "bounded" else {}
    for get in ("x", "fun"):
        case(f"minimize_scalar, {method}, {get}", 1e-6)(
            lambda p, m=method, more=more, g=get: optimize.minimize_scalar(
                lambda x: np.cosh(x - p[0]) + p[1] * x**2, method=m, **more
            )[g]
        )
BOX = [(-1.0, 2.0), (-1.0, 2.0)]
GLOBAL = {
    "differential_evolution": {"bounds": BOX, "rng": 1, "tol": 1e-10},
    "dual_annealing": {"bounds": BOX, "rng": 1, "maxiter": 60},
    "shgo": {"bounds": BOX, "options": {"minimize_every_iter": True}},
    "basinhopping": {"x0": np.zeros(2), "rng": 1, "niter": 5},
}
for name, options in GLOBAL.items():
    case(name, 1e-4)(lambda p, n=name, o=options: getattr(optimize, n)(lambda x: bowl(x, p), **o).x)
case("nlp")(
    lambda p: (
        optim.nlp(lambda x: bowl(x, p), X0, lambda x: x @ x, lower=-np.inf, upper=p[2], tol=1e-11).x
    )
)
# ---- least squares -----------------------------------------------------------------------------

T = np.linspace(0.0, 2.0, 9)
Y = 1.7 * np.exp(-0.9 * T) + 0.3 * np.sin(7.0 * T)


def decay(t, a, b):
    return a * np.exp(-b * t)


for method in ("trf", "dogbox", "lm"):
    case(f"least_squares, {method}")(
        lambda p, m=method: optimize.least_squares(
            lambda q: decay(T, *q) * p[0] - Y * p[1] - p[2] * T, np.ones(2), method=m,
            ftol=1e-15, xtol=1e-15, gtol=1e-15,
        ).x
    )  # fmt: skip
case("least_squares, bounds")(
    lambda p: optimize.least_squares(
        lambda q: decay(T, *q) - Y * p[1], np.array([1.0, 0.55]),
        bounds=([-5.0, p[2]], [5.0, p[2] + 0.1]),
        ftol=1e-15, xtol=1e-15, gtol=1e-15,
    ).x
)  # fmt: skip
TIGHT = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
for k, name in enumerate(("popt", "pcov")):
    case(f"curve_fit, {name}")(
        lambda p, k=k: optimize.curve_fit(
            decay, T * p[0], Y * p[1] + p[2] * T, np.ones(2), **TIGHT
        )[k]
    )
A = np.random.default_rng(3).normal(size=(5, 3))
case("nnls")(lambda p: optimize.nnls(A + p[0] * np.eye(5, 3), np.arange(5.0) * p[1] + p[2])[0])
case("lsq_linear")(
    lambda p: (
        optimize.lsq_linear(
            A + p[0] * np.eye(5, 3), np.arange(5.0) * p[1] + p[2], (-0.5, p[2]), tol=1e-15
        ).x
    )
)
case("isotonic_regression")(
    lambda p: optimize.isotonic_regression(np.concatenate([p**2, p + 1.0]), weights=np.exp(Y[:6])).x
)
# ---- linear programs ---------------------------------------------------------------------------

ROWS = np.array([[1.0, 2.0, 0.5], [0.3, 1.0, 1.0]])
for get in ("x", "fun"):
    case(f"linprog, {get}")(
        lambda p, g=get: optimize.linprog(
            -p - 1.0, ROWS * (1.0 + 0.1 * p[0]), np.stack([p[0] + 1.0, p[1] + 2.0])
        )[g]
    )
    case(f"milp, {get}")(
        lambda p, g=get: optimize.milp(
            -p - 1.0,
            integrality=[0, 1, 0],
            constraints=(ROWS, -np.inf, np.stack([p[0] + 2, p[1] + 2])),
        )[g]
    )


@case("linear_sum_assignment")
def assignment(p):
    costs = np.outer(p, np.array([1.0, 3.0, 2.0])) ** 2
    rows, columns = optimize.linear_sum_assignment(costs)
    return np.sum(costs[rows, columns])


# ---- integrals ---------------------------------------------------------------------------------

case("quad")(lambda p: integrate.quad(lambda x: np.exp(-p[0] * x) * np.sin(p[1] * x), 0.0, p[2])[0])
case("quad_vec")(lambda p: integrate.quad_vec(lambda x: np.exp(-p * x * x), 0.0, p[0])[0])
case("nquad")(
    lambda p: integrate.nquad(lambda x, y: np.exp(-p[0] * x * y) + p[1], [(0, p[2]), (0, 1)])[0]
)
case("fixed_quad")(lambda p: integrate.fixed_quad(lambda x: np.sin(p[0] * x), p[1], p[2], n=7)[0])

# ---- sparse systems ----------------------------------------------------------------------------

N = 5
LAPLACE = sp.diags_array(
    [-np.ones(N - 1), 2 * np.ones(N), -np.ones(N - 1)], offsets=[-1, 0, 1]
).tocsr()
WEIGHTS = np.linspace(0.5, 1.5, LAPLACE.nnz)


def matrix(p, symmetric=True):
    data = LAPLACE.data * (p[0] + 0.0 * WEIGHTS) + p[1] * (LAPLACE.data > 0)
    data = data if symmetric else data + 0.1 * p[2] * WEIGHTS
    return csr_array((data, LAPLACE.indices, LAPLACE.indptr), shape=(N, N))


def right(p):
    return np.sin(np.arange(1.0, N + 1) * p[2])


for name in ("cg", "gmres", "bicgstab", "minres"):
    case(name)(
        lambda p, n=name: getattr(linalg, n)(
            matrix(p, n in ("cg", "minres")), right(p), rtol=1e-14
        )[0]
    )
case("spsolve")(lambda p: linalg.spsolve(matrix(p, False), right(p)))
case("splu")(lambda p: linalg.splu(matrix(p, False)).solve(right(p)))
case("eigsh")(lambda p: linalg.eigsh(matrix(p), 2, return_eigenvectors=False))
case("eigsh, vectors")(lambda p: linalg.eigsh(matrix(p) @ matrix(p), 1, which="LA")[1] ** 2)
case("logdet")(lambda p: linalg.logdet(matrix(p, False)))
case("expm_multiply")(lambda p: linalg.expm_multiply(matrix(p, False) * 0.3, right(p)))
case("lsqr")(lambda p: linalg.lsqr(matrix(p, False), right(p), atol=1e-14, btol=1e-14)[0])

# ---- random effects ----------------------------------------------------------------------------


def joint(q):
    u = q["u"]
    return (
        np.sum(np.exp(u + q["p"][0]) - 2.0 * u)
        + np.sum((u - q["p"][1]) ** 2) / 2
        + (np.exp(q["p"][2]) * np.sum((u[1:] - u[:-1] - 0.3) ** 2))
    )


MARGINAL = optim.laplace(joint, random="u", params={"u": np.zeros(4), "p": P})
case("laplace")(lambda p: MARGINAL({"p": p}))
case("laplace, mode")(lambda p: MARGINAL.mode({"p": p})["u"])
