"""Functions with rules of their own: custom_vjp, custom_jvp and primitives, traced and compiled."""

import functools

import numpy as np
import pytest
from wengert.rewrite import without_calls

import wengert as wg
from wengert.errors import (
    ArgumentError,
    ConversionError,
    MutatedError,
    NotDifferentiableError,
    RuleError,
    StructureError,
    TraceError,
)
from wengert.extend import jvp, primitive, vjp
from wengert.testing import check_grads

X = np.array([0.3, 0.7, 1.9])
Y = np.array([1.0, -2.0, 0.5])


def plain(x, y):
    return np.sin(x) * y


@wg.custom_vjp
def reverse(x, y):
    return plain(x, y)


reverse.defvjp(
    lambda x, y: (reverse(x, y), (x, y)),
    lambda res, g: (g * np.cos(res[0]) * res[1], g * np.sin(res[0])),
)


@wg.custom_jvp
def forward(x, y):
    return plain(x, y)


@forward.defjvp
def _(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return forward(x, y), np.cos(x) * y * dx + np.sin(x) * dy


@wg.custom_jvp
def one_by_one(x, y):
    return plain(x, y)


one_by_one.defjvps(lambda t, out, x, y: np.cos(x) * y * t, lambda t, out, x, y: np.sin(x) * t)


@primitive(name="tests.custom.primitive")
def by_vjp(x, y):
    return plain(x, y)


vjp[by_vjp] = lambda g, p, x, y: (g * np.cos(x) * y, g * np.sin(x))


@primitive(name="tests.custom.forward")
def by_jvp(x, y):
    return plain(x, y)


@jvp(by_jvp)
def _(dots, p, x, y):
    dx, dy = dots
    zero = np.zeros_like(p)
    return (zero if dx is None else np.cos(x) * y * dx) + (zero if dy is None else np.sin(x) * dy)


ALL = [reverse, forward, one_by_one, by_vjp, by_jvp]
NAMES = ["custom_vjp", "custom_jvp", "defjvps", "primitive, vjp", "primitive, jvp"]
every = pytest.mark.parametrize("f", ALL, ids=NAMES)
WAYS = {
    "eager": lambda f: f,
    "jit": wg.jit,
    "graph": lambda f: lambda *a: wg.trace(f)(*a)(*a),
    "interpreted": lambda f: wg.jit(f, backend="interpret"),
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
two_ways = pytest.mark.parametrize("way", [WAYS["eager"], WAYS["jit"]], ids=["eager", "jit"])


def called_back(f, *args):
    """The lines of a compiled function that call back into Python."""
    compiled = f if hasattr(f, "lower") else wg.jit(f)
    return [n.op.name for n in compiled.lower(*args)._of_program("host_callbacks")]


def close(a, b):
    if isinstance(a, tuple):
        for u, v in zip(a, b, strict=True):
            close(u, v)
        return
    a = a.numpy() if isinstance(a, wg.Tensor) else a
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def loss(f):
    return lambda x, y: np.sum(f(x, y) ** 3)


DERIVATIVES = {
    "gradient": lambda f: wg.grad(loss(f), (0, 1)),
    "tangent": lambda f: lambda x, y: wg.jvp(loss(f), (x, y), (y, x)),
    "Hessian": lambda f: wg.hessian(loss(f)),
    "forward over reverse": lambda f: wg.jacfwd(wg.grad(loss(f))),
    "reverse over forward": lambda f: wg.jacrev(wg.jacfwd(loss(f))),
    "third": lambda f: wg.grad(lambda x, y: np.sum(wg.hessian(loss(f))(x, y) ** 2)),
    "vmap of grad": lambda f: wg.vmap(wg.grad(loss(f), (0, 1))),
    "grad of vmap": lambda f: wg.grad(
        lambda x, y: np.sum(wg.vmap(f, in_axes=(0, None))(x, y[1]) ** 2), (0, 1)
    ),
    "vmap twice": lambda f: wg.grad(
        lambda x, y: np.sum(wg.vmap(lambda a: wg.vmap(lambda b: f(a, b))(y))(x) ** 2), (0, 1)
    ),
    "jvp of vmap": lambda f: lambda x, y: wg.jvp(wg.vmap(f), (x, y), (y, x)),
    "checkpoint": lambda f: wg.grad(wg.checkpoint(loss(f)), (0, 1)),
    "fori_loop": lambda f: wg.grad(
        lambda x, y: np.sum(wg.fori_loop(0, 3, lambda i, c: f(c, y), x)), (0, 1)
    ),
    "scan": lambda f: wg.grad(
        lambda x, y: wg.scan(lambda c, row: (f(c, row), c), x[0], y)[0], (0, 1)
    ),
    "while_loop": lambda f: wg.grad(
        lambda x, y: wg.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1], y[1])), (0, x[1])
        )[1],
        (0, 1),
    ),
    "cond": lambda f: wg.grad(lambda x, y: np.sum(wg.cond(x[0] > 0.0, f, lambda x, y: x, x, y))),
}


# Each derivative of one of the functions; of all of them in `make test-all`.
SOME = [pytest.param(w, ALL[k % len(ALL)], id=n) for k, (n, w) in enumerate(DERIVATIVES.items())]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("what", "f"), SOME)
def test_a_right_rule_gives_the_right_derivative(what, f):
    compiled, expected = wg.jit(what(f)), what(plain)(X, Y)
    close(what(f)(X, Y), expected)
    close(compiled(X, Y), expected)
    assert called_back(compiled, X, Y) == []


@pytest.mark.slow
@every
@ways
@pytest.mark.parametrize("what", DERIVATIVES.values(), ids=DERIVATIVES)
def test_all_right_rules_give_the_right_derivatives(f, way, what):
    close(way(what(f))(X, Y), what(plain)(X, Y))


@every
def test_checkers_work(f):
    check_grads(f, (X, Y), order=2)


def test_newton_with_a_rule_is_the_program_without_one():
    def newton(a):
        return wg.fori_loop(0, 20, lambda i, x: 0.5 * (x + a / x), a)

    root = wg.custom_vjp(newton)
    root.defvjp(lambda a: (lambda r: (r, r))(root(a)), lambda r, g: (g / (2.0 * r),))
    made = primitive(newton, name="tests.custom.newton")
    vjp[made] = lambda g, r, a: (g / (2.0 * r),)
    a = np.linspace(1.0, 2.0, 1000)
    count = len(wg.jit(wg.vmap(newton)).lower(a).graph)
    for f in (root, made):
        assert len(wg.jit(wg.vmap(f)).lower(a).graph) == count
        pulled = wg.jit(wg.vmap(wg.grad(f)))
        # One loop, as of the value alone: the rule needs its result only.
        assert [n.op.name for n in pulled.lower(a).graph].count("scan") == 1
        assert called_back(pulled, a) == []
        np.testing.assert_allclose(pulled(a), 0.5 / np.sqrt(a), rtol=1e-14)
        np.testing.assert_allclose(wg.jit(wg.grad(lambda a, f=f: np.sum(f(a))))(a), pulled(a))


# ---- the rule replaces the derivative of the function --------------------------------------------


@wg.custom_vjp
def cross_entropy(logits, target):
    """Softmax with cross-entropy: its gradient is softmax minus one at the target."""
    exps = np.exp(logits)
    return -np.log(exps[target] / np.sum(exps))


def _cross_entropy_fwd(logits, target):
    shifted = logits - np.max(logits)
    total = np.sum(np.exp(shifted))
    return np.log(total) - shifted[target], (np.exp(shifted) / total, target)


cross_entropy.defvjp(
    _cross_entropy_fwd,
    lambda res, g: (g * (res[0] - (np.arange(len(res[0])) == res[1])), None),
)


@ways
def test_softmax_with_cross_entropy_has_the_derivative_of_its_rule(way):
    small, large = np.array([1.0, 2.0, 0.5]), np.array([800.0, 0.0, -800.0])
    close(way(wg.grad(cross_entropy))(small, 1), np.exp(small) / np.exp(small).sum() - [0, 1, 0])
    # Its own lines overflow there; the rule does not.
    close(way(wg.grad(cross_entropy))(large, 1), [1.0, -1.0, 0.0])


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp", "primitive"])
@ways
def test_a_function_without_a_derivative_has_that_of_its_rule(kind, way):
    if kind == "primitive":
        through = primitive(lambda x: np.round(x), name="tests.custom.through")
        vjp[through] = lambda g, p, x: (2.0 * g,)
    elif kind == "custom_vjp":
        through = wg.custom_vjp(lambda x: np.round(x))
        through.defvjp(lambda x: (np.round(x), None), lambda _, g: (2.0 * g,))
    else:
        through = wg.custom_jvp(lambda x: np.round(x))
        through.defjvp(lambda x, dx: (np.round(x[0]), 2.0 * dx[0]))
    f = lambda x: np.sum(through(x) ** 2)  # noqa: E731
    close(way(f)(X), np.sum(np.round(X) ** 2))
    close(way(wg.grad(f))(X), 4.0 * np.round(X))
    close(way(wg.vmap(wg.grad(f)))(X), 4.0 * np.round(X))
    close(way(lambda x: wg.jvp(f, (x,), (Y,))[1])(X), np.sum(4.0 * np.round(X) * Y))
    close(wg.sparse_jacobian(through)(X).toarray(), 2.0 * np.eye(3))


def test_the_rule_lives_until_all_derivatives_are_taken():
    three = wg.custom_vjp(lambda x: x * 1.0)
    three.defvjp(lambda x: (x, None), lambda _, g: (3.0 * g,))
    f = lambda x: np.sum(three(x) ** 2)  # noqa: E731
    graph = wg.trace(f)(X).simplify()
    close(wg.grad(graph)(X), 6.0 * X)
    close(wg.grad(wg.jit(f))(X), 6.0 * X)
    close(wg.grad(without_calls(graph))(X), 2.0 * X)
    x = wg.tensor(X, requires_grad=True)
    wg.jit(f)(x).backward()
    f(x).backward()
    close(x.grad, 12.0 * X)
    assert "<rule of <lambda>>" in str(graph)
    assert "custom_call" not in str(wg.jit(f).lower(X))


@ways
def test_what_was_not_chosen_stays_zero(way):
    root = wg.custom_vjp(np.sqrt)
    root.defvjp(lambda x: (np.sqrt(x),) * 2, lambda r, g: (g / (2.0 * r),))
    f = lambda x: np.where(x > 0.0, root(x), 0.0)  # noqa: E731
    close(way(wg.vmap(wg.grad(f)))(np.array([0.0, 4.0])), [0.0, 0.25])
    assert way(wg.grad(f))(0.0) == 0.0


def test_a_file_keeps_rules(tmp_path):
    f = lambda x, y: np.sum(reverse(x, y) * forward(x, y) * by_vjp(y, x))  # noqa: E731
    wg.save(wg.trace(f)(wg.spec("n"), wg.spec("n")), tmp_path / "graph")
    graph = wg.load(tmp_path / "graph")
    wg.save(graph, tmp_path / "again")
    for made in (graph, wg.load(tmp_path / "again")):
        close(made(X, Y), f(X, Y))
        close(wg.hessian(made)(X, Y), wg.hessian(f)(X, Y))
    through = wg.custom_jvp(lambda x: np.round(x))
    through.defjvp(lambda x, dx: (through(x[0]), dx[0]))
    wg.save(wg.trace(lambda x: np.sum(through(x) ** 3))(X), tmp_path / "graph")
    close(wg.hessian(wg.load(tmp_path / "graph"))(X), np.diag(6.0 * np.round(X)))


# ---- arguments ----------------------------------------------------------------------------------


@two_ways
def test_arguments_that_are_not_differentiated(way):
    @functools.partial(wg.custom_vjp, nondiff_argnums=(0,), nondiff_argnames="power")
    def apply(f, x, power=2):
        return f(x) ** power

    apply.defvjp(
        lambda f, x, power: (f(x) ** power, x),
        lambda f, power, x, g: (g * power * f(x) ** (power - 1) * np.cos(x),),
    )
    close(way(wg.grad(lambda x: np.sum(apply(np.sin, x))))(X), 2 * np.sin(X) * np.cos(X))
    g = lambda x: np.sum(apply(f=np.sin, power=3, x=x))  # noqa: E731
    close(way(wg.grad(g))(X), 3 * np.sin(X) ** 2 * np.cos(X))

    @functools.partial(wg.custom_jvp, nondiff_argnums=0)
    def called(f, x):
        return f(x)

    @called.defjvp
    def _(f, primals, tangents):
        return f(*primals), 5.0 * tangents[0]

    close(way(wg.grad(lambda x: np.sum(called(np.sin, x))))(X), [5.0] * 3)


def test_a_method():
    class Scale:
        by = 3.0

        @functools.partial(wg.custom_vjp, nondiff_argnums=(0,))
        def __call__(self, x):
            return self.by * x

        __call__.defvjp(lambda self, x: (self.by * x, None), lambda self, _, g: (-self.by * g,))

    close(wg.jit(wg.grad(lambda x: np.sum(Scale()(x))))(X), [-3.0] * 3)


@two_ways
def test_containers_and_integers(way):
    @wg.custom_vjp
    def f(tree, n):
        return {"a": tree["w"] * n, "b": (tree["b"], n)}

    def bwd(res, g):
        _, n = res
        assert set(g) == {"a", "b"}
        return {"w": g["a"] * n + 1.0, "b": None}, None

    f.defvjp(lambda tree, n: (f(tree, n), (tree, n)), bwd)

    def h(tree):
        out = f(tree, 3)
        return np.sum(out["a"]) + np.sum(out["b"][0])

    found = way(wg.grad(h))({"w": X, "b": Y})
    close(found["w"], [4.0] * 3)
    close(found["b"], [0.0] * 3)


@two_ways
def test_several_results_of_which_one_is_used(way):
    @wg.custom_jvp
    def f(x):
        return np.sin(x), np.cos(x)

    @f.defjvp
    def _(primals, tangents):
        (x,), (dx,) = primals, tangents
        return f(x), (np.cos(x) * dx, -np.sin(x) * dx)

    close(way(wg.grad(lambda x: np.sum(f(x)[1])))(X), -np.sin(X))
    close(way(lambda x: wg.jvp(f, (x,), (x,))[1])(X), (np.cos(X) * X, -np.sin(X) * X))


def test_precision_stays():
    x = X.astype(np.float32)
    for f in (reverse, forward):
        for way in (WAYS["eager"], WAYS["jit"]):
            assert way(wg.grad(lambda x, f=f: np.sum(f(x, x))))(x).dtype == np.float32


# ---- what is refused ----------------------------------------------------------------------------


def made(fwd, bwd, fun=lambda x, y: x * y):
    f = wg.custom_vjp(fun)
    f.defvjp(fwd, bwd)
    return f


def _fwd(x, y):
    return x * y, (x, y)


WRONG = [
    (_fwd, lambda r, g: (g,), RuleError, "returned 1 cotangents for 2 arguments"),
    (_fwd, lambda r, g: g, RuleError, "returned a .* for 2 arguments"),
    (_fwd, lambda r, g: (np.sum(g), g), RuleError, r"shape \(\) for argument 0"),
    (_fwd, lambda r, g: (1j * g, g), RuleError, "argument 0, which is float64"),
    (_fwd, lambda r, g: ((g, g), g), RuleError, "nested as its argument"),
    (_fwd, lambda r, g: ("text", g), RuleError, "returned dtype"),
    (lambda x, y: x * y, lambda r, g: (g, g), RuleError, "Return a pair"),
    (lambda x, y: ((x, y), None), lambda r, g: (g, g), RuleError, None),
]


@pytest.mark.parametrize(("fwd", "bwd", "error", "match"), WRONG)
def test_wrong_rules_are_refused(fwd, bwd, error, match):
    f = made(fwd, bwd)
    for way in (WAYS["jit"], WAYS["eager"]):
        if match is None and way is WAYS["eager"]:
            continue  # there `fwd` alone says what is returned
        with pytest.raises(error, match=match or "Return the same as") as caught:
            way(wg.grad(lambda x: np.sum(f(x, Y)), 0))(X)
        assert "test_custom.py" in str(caught.value)


def test_a_function_without_a_rule_runs_and_has_no_derivative():
    for f in (wg.custom_vjp(np.sin), wg.custom_jvp(np.sin)):
        for way in (WAYS["jit"], WAYS["eager"]):
            close(way(f)(X), np.sin(X))
            with pytest.raises(NotDifferentiableError, match=r"no rule.*defjvp|no rule.*defvjp"):
                way(wg.grad(lambda x, f=f: np.sum(f(x))))(X)


def test_a_rule_that_is_not_linear_has_no_transpose():
    clipped = made(lambda x, y: (x, None), lambda _, g: (np.clip(g, -1, 1), None), lambda x, y: x)
    for way in (WAYS["jit"], WAYS["eager"]):
        close(way(wg.grad(lambda x, y: np.sum(5.0 * clipped(x, y))))(X, Y), [1.0] * 3)
        with pytest.raises(RuleError, match=r"not linear.*custom_jvp"):
            way(lambda x, y: wg.jvp(lambda x: clipped(x, y), (x,), (x,)))(X, Y)


def _closing(w, both=True):
    f = wg.custom_vjp(lambda x: x * w if both else 3.0 * x)
    f.defvjp(lambda x: (x * w if both else 3.0 * x, None), lambda _, g: (g * w,))
    return f


def test_what_is_closed_over_has_no_derivative_and_never_a_silent_zero():
    for way in (WAYS["jit"], WAYS["eager"]):
        with pytest.raises(NotDifferentiableError, match="argument"):
            way(wg.grad(lambda w, x: np.sum(_closing(w)(x))))(3.0, X)
        with pytest.raises(NotDifferentiableError, match="argument"):
            way(wg.grad(lambda w: _closing(w)(2.0)))(3.0)
        with pytest.raises(NotDifferentiableError, match="argument"):
            way(wg.grad(lambda w, x: np.sum(wg.vmap(_closing(w))(x))))(3.0, X)
        with pytest.raises(RuleError, match="lost silently"):
            way(wg.grad(lambda w: wg.grad(_closing(w, both=False))(2.0)))(3.0)
        # By the arguments there is one, and what is closed over is as it is at each call.
        f = way(lambda w, x: wg.grad(_closing(w))(x))
        assert [float(f(3.0, 2.0)), float(f(4.0, 2.0))] == [3.0, 4.0]
    with pytest.raises(TraceError, match="without being an operand"):
        wg.jit(
            lambda w, x: wg.grad(lambda x: wg.fori_loop(0, 3, lambda i, c: _closing(w)(c), x))(x)
        )(3.0, 2.0)


def test_arguments_that_are_refused():
    f = wg.custom_vjp(lambda how, x: x)
    f.defvjp(lambda how, x: (x, None), lambda _, g: (None, g))
    with pytest.raises(StructureError, match="nondiff_argnums"):
        wg.grad(lambda x: f("text", x))(1.0)
    g = wg.custom_vjp(lambda x, y: x * y, nondiff_argnums=(1,))
    g.defvjp(lambda x, y: (x * y, None), lambda y, _, t: (t * y,))
    for way in (WAYS["jit"], WAYS["eager"]):
        with pytest.raises(TraceError, match="nondiff_argnums"):
            way(wg.grad(lambda x, y: g(x, y), (0, 1)))(1.0, 2.0)

    @wg.custom_vjp
    def writes(x):
        x[0] = 0.0
        return x

    writes.defvjp(lambda x: (writes(x), None), lambda _, g: (g,))
    for way in (WAYS["jit"], WAYS["eager"]):
        with pytest.raises(MutatedError, match="Copy it first"):
            way(wg.grad(lambda x: np.sum(writes(2.0 * x))))(X)
    with pytest.raises(ArgumentError, match="symbolic_zeros"):
        writes.defvjp(lambda x: (x, None), lambda _, g: (g,), symbolic_zeros=True)
    with pytest.raises(ArgumentError, match="nondiff_argnames"):
        wg.custom_jvp(lambda x: x, nondiff_argnames="y")
    with pytest.raises(ArgumentError, match="custom_vjp of 3"):
        wg.custom_vjp(3)


# ---- primitives that cannot be traced ------------------------------------------------------------


def test_a_body_that_cannot_be_traced_is_called_back_once():
    calls = []

    @primitive(name="tests.custom.called_back")
    def cube(x, y):
        calls.append(np.shape(x))
        return np.asarray(x) ** 3 * np.asarray(y)

    vjp[cube] = lambda g, p, x, y: (3.0 * g * x**2 * y, g * x**3)
    f = lambda x, y: np.sum(wg.vmap(cube, in_axes=(0, None))(x, y) ** 2)  # noqa: E731
    plainly = lambda x, y: np.sum((x**3 * y) ** 2)  # noqa: E731
    for way in (WAYS["jit"], WAYS["eager"]):
        close(way(wg.grad(f, (0, 1)))(X, 2.0), wg.grad(plainly, (0, 1))(X, 2.0))
        close(way(wg.jacfwd(wg.grad(f)))(X, 2.0), wg.hessian(plainly)(X, 2.0))
    compiled = wg.jit(f)
    assert called_back(compiled, X, 2.0) == ["row_by_row"]
    close(
        wg.vmap(wg.vmap(cube, in_axes=(0, None)))(np.outer(X, X), Y),
        np.outer(X, X) ** 3 * Y[:, None],
    )
    cube.batch(lambda args, batched, size: np.asarray(args[0]) ** 3 * args[1])

    whole = primitive(lambda x: np.asarray(x) ** 2, name="tests.custom.whole")

    @whole.batch
    def _(args, batched, size):
        return whole(*args)

    vjp[whole] = lambda g, p, x: (2.0 * g * x,)
    compiled = wg.jit(wg.vmap(wg.grad(whole)))
    close(compiled(X), 2.0 * X)
    assert called_back(wg.jit(wg.vmap(whole)), X) == ["tests.custom.whole"]


def test_primitives_say_whether_they_are_called_back():
    host = primitive(lambda x: x * x, name="tests.custom.host", callback=True)
    assert called_back(wg.jit(host), X) == ["tests.custom.host"]
    strict = primitive(lambda x: x if x > 0 else -x, name="tests.custom.strict", callback=False)
    with pytest.raises(TraceError, match=r"callback=False.*cannot be traced"):
        wg.jit(strict)(2.0)


def test_a_rule_that_would_lose_a_derivative_is_refused_of_all_operations():
    w = wg.tensor(2.0, requires_grad=True)
    op = wg.extend.opaque(lambda x: x * 2.0, name="tests.custom.losing", replace=True)
    op.define_vjp(lambda t, out, x: (t * w,))
    with pytest.raises(ConversionError, match="silently be lost"):
        wg.grad(op)(1.0)
