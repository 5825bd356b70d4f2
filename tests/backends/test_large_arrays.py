"""Eager operations on large arrays: kernels of single operations, beside NumPy's results."""

import threading

import numpy as np
import pytest
import scipy.special

import wengert as wg
import wengert._engine.backends.llvm.backend  # which loads thresholds
from wengert._engine.backends import large_array_kernels as kernels
from wengert._engine.backends.llvm import tuning
from wengert._engine.backends.llvm.abi import array_fingerprint
from wengert._engine.core.device_arrays import LEAST_ELEMENTS
from wengert._engine.core.node import Fingerprints, Node, Watched
from wengert._engine.core.op import REGISTRY, RuleContext, lookup
from wengert._engine.ops.elementwise.error_function import erf
from wengert.errors import MutatedError

N = LEAST_ELEMENTS  # the tests' threshold: the smallest that is possible


@pytest.fixture(autouse=True)
def threshold():
    with tuning.using(native_elements=N, native_rule_elements=N):
        yield


@pytest.fixture
def by_numpy(monkeypatch):
    """A function that is run without kernels."""

    def run(f, *args):
        with tuning.using(native_elements=10**8), monkeypatch.context() as patch:
            patch.setattr(kernels, "cotangents", lambda *args: None)
            return f(*args)

    return run


@pytest.fixture
def native_fingerprints(monkeypatch):
    monkeypatch.setattr(Fingerprints, "native", array_fingerprint.fingerprint)


def elementwise_operations():
    """The package's own, of one or two real operands."""
    return sorted(
        name
        for name, op in REGISTRY.items()
        if op.kind == "elementwise" and op.is_built_in and op.pulls is not None
    )


def operands(op, rng, n=N):
    """Numbers of the domain of an operation."""
    found = []
    for low, high in op.domain:
        low, high = max(low, -3.0), min(high, 3.0)
        if isinstance(op.domain[len(found)][0], int):
            found.append(rng.integers(int(low), int(high), size=n))
        else:
            found.append(rng.uniform(low + 0.01, high - 0.01, size=n))
    return found


def differing(found, expected):
    """How far apart, relative to the largest."""
    scale = np.max(np.abs(expected)) or 1.0
    return np.max(np.abs(found - expected)) / scale


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", elementwise_operations())
def test_values_and_cotangents_are_those_of_numpy(name, rng):
    op = lookup(name)
    xs = operands(op, rng)
    if any(x.dtype != float for x in xs):
        pytest.skip("operands of integers are left to NumPy")
    out = op.run(*xs)
    np.testing.assert_allclose(kernels.value_of_large(op, *xs), out, rtol=1e-13, atol=1e-300)
    if out.dtype != float:
        return
    t = rng.normal(size=N)
    nodes = tuple([Node(op, (), {}, x) for x in xs])
    expected = op.vjp(Node(op, nodes, {}, out), t, out, xs, RuleContext())
    found = kernels.cotangents(op, {}, t, out, xs, [True] * len(xs))
    if found is None:
        return
    for bar, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(bar, right, rtol=1e-11, atol=1e-13 * np.max(np.abs(right)))


@pytest.mark.parametrize("name", ["logsumexp", "log_softmax", "softmax"])
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_reductions_and_softmax(name, axis, rng, by_numpy):
    op = lookup(name)
    x, t = rng.normal(size=(2, 128, 128)) * 9.0
    weights = np.sum(t, axis=axis) if name == "logsumexp" else t

    def run(x):
        return wg.value_and_grad(lambda x: np.sum(op(x, axis=axis) * weights))(x)

    value, bar = run(x)
    right, expected = by_numpy(run, x)
    assert value == pytest.approx(right, rel=1e-13)
    assert differing(bar, expected) < 1e-13


def test_the_kernels_are_used(rng, monkeypatch):
    used = []
    run = kernels._run

    def noting(what, *args):
        found = run(what, *args)
        used.extend([[what[0], what[1].name]] if found is not None else [])
        return found

    monkeypatch.setattr(kernels, "_run", noting)
    x = rng.normal(size=N)
    wg.grad(lambda x: np.sum(erf(x) * x))(x)
    assert ["value", "erf"] in used
    assert ["vjp", "erf"] in used


def test_functions_of_scipy_that_are_vector_functions(rng, monkeypatch):
    x = rng.normal(size=N) * 3.0
    value, bar = wg.value_and_grad(lambda x: np.sum(scipy.special.ndtr(x)))(x)
    assert value == pytest.approx(np.sum(scipy.special.ndtr(x)), rel=1e-13)
    np.testing.assert_allclose(bar, np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi), rtol=1e-13)
    assert lookup("special.ndtr").native
    # Their rules would take seconds to compile.
    assert not any([lookup(f"special.{name}").is_built_in for name in ("psi", "chndtrix", "iv")])


def test_smaller_arrays_are_those_of_numpy(monkeypatch):
    def fail(*args):
        raise AssertionError("a kernel was asked for")

    monkeypatch.setattr(kernels, "value_of_large", fail)
    monkeypatch.setattr(kernels, "cotangents", fail)
    x = np.linspace(0.0, 1.0, N - 1)
    np.testing.assert_array_equal(wg.grad(lambda x: np.sum(np.exp(x)))(x), np.exp(x))


def test_values_of_plain_arrays_are_those_of_numpy():
    x = np.linspace(-2.0, 2.0, N)
    np.testing.assert_array_equal(wg.numpy.tanh(x), np.tanh(x))
    np.testing.assert_array_equal(erf(x), erf.run(x))


# ---- gradients of programs -----------------------------------------------------------------------


def program(x, y):
    d = np.log(x / y) + np.sqrt(x) * 0.5 - y**2
    return np.sum(erf(d) * np.exp(-d * d) + np.tanh(x) * np.maximum(d, 0.0) - d * d / x)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_program_in_both_precisions(dtype, rng, by_numpy):
    x, y = rng.uniform(0.5, 2.0, size=(2, N)).astype(dtype)
    gradient = wg.grad(program, (0, 1))
    for bar, expected in zip(gradient(x, y), by_numpy(gradient, x, y), strict=True):
        assert bar.dtype == dtype
        assert differing(bar, expected) < 40 * np.finfo(dtype).eps


def test_define_by_run(rng, by_numpy):
    x, y = rng.uniform(0.5, 2.0, size=(2, N))
    a, b = wg.tensor(x, requires_grad=True), wg.tensor(y, requires_grad=True)
    program(a, b).backward()
    for tensor, expected in zip((a, b), by_numpy(wg.grad(program, (0, 1)), x, y), strict=True):
        assert differing(np.asarray(tensor.grad), expected) < 1e-14


def test_a_cotangent_that_is_broadcast_along_some_axes(rng, by_numpy):
    x, y = rng.normal(size=(2, 16, 128, 8))

    def f(x, y):
        return np.sum(np.sum(np.sin(x) * y * y, axis=2) ** 2)

    gradient = wg.grad(f, (0, 1))
    for bar, expected in zip(gradient(x, y), by_numpy(gradient, x, y), strict=True):
        assert differing(bar, expected) < 1e-14


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.reshape(128, 128),
        lambda x: x.reshape(4, 64, 64),
        lambda x: x.reshape(128, 128).T,
        lambda x: np.repeat(x, 2)[::2],
        lambda x: x[::-1],
        lambda x: np.asfortranarray(x.reshape(128, 128)),
        lambda x: x.astype(">f8"),
    ],
)
def test_layouts(change, rng):
    x = change(rng.normal(size=N))
    bar = wg.grad(lambda x: np.sum(np.sin(x) * x))(x)
    np.testing.assert_allclose(bar, np.cos(x) * x + np.sin(x), rtol=1e-12, atol=1e-12)
    assert bar.shape == x.shape
    assert bar.base is None
    assert bar.flags.writeable


def test_broadcasting_is_undone(rng):
    x, row, number = rng.normal(size=(128, 128)), rng.normal(size=128), 0.7

    def f(x, row, number):
        return np.sum(np.sin(x * row) * number + np.exp(number * x))

    bars = wg.grad(f, (0, 1, 2))(x, row, number)
    slope = np.cos(x * row) * number
    np.testing.assert_allclose(bars[0], slope * row + number * np.exp(number * x), rtol=1e-12)
    np.testing.assert_allclose(bars[1], np.sum(slope * x, axis=0), rtol=1e-11)
    right = np.sum(np.sin(x * row) + x * np.exp(number * x))
    assert float(bars[2]) == pytest.approx(right, rel=1e-12)


def test_numbers_of_other_types(rng):
    x = rng.uniform(1.0, 2.0, size=N)
    for number in (3, 3.0, np.float64(3.0), np.array(3.0), True, np.float32(3.0)):
        bar = wg.grad(lambda x, c=number: np.sum(np.sin(x / c) * (c * x)))(x)
        c = float(number)
        right = np.cos(x / c) * x + np.sin(x / c) * c
        np.testing.assert_allclose(bar, right, rtol=1e-12)
    y = x.astype(np.float32)
    bar = wg.grad(lambda y: np.sum(np.sin(y * np.float64(2.0))))(y)
    assert bar.dtype == np.float32
    np.testing.assert_allclose(bar, 2.0 * np.cos(2.0 * y), rtol=1e-6, atol=1e-6)


def test_powers_by_numbers_keep_their_rules(rng):
    x = rng.normal(size=N)
    for exponent in (0, 1, 2, 3, 2.0):
        bar = wg.grad(lambda x, y=exponent: np.sum(np.power(x, y)))(x)
        right = exponent * x ** float(exponent - 1) if exponent else np.zeros(N)
        np.testing.assert_allclose(bar, right, rtol=1e-13)


def test_complex_numbers_are_left_to_numpy(rng):
    z = rng.normal(size=N) + 1j * rng.normal(size=N)
    bar = wg.grad(lambda z: np.sum(np.exp(z).real))(z)
    np.testing.assert_allclose(bar, np.exp(z).conj(), rtol=1e-13)


def test_nested_derivatives(rng):
    x, v = rng.normal(size=(2, N))

    def f(x):
        return np.sum(np.tanh(x) * np.sin(x))

    c, s, h = np.cos(x), np.sin(x), np.tanh(x)
    second = -2.0 * h * (1.0 - h * h) * s + 2.0 * (1.0 - h * h) * c - h * s
    assert differing(wg.hvp(f, (x,), (v,)), second * v) < 1e-13
    double = wg.grad(lambda x: np.sum(wg.grad(f)(x) * v))
    assert differing(double(x), second * v) < 1e-13


def test_a_branch_not_taken(rng):
    x = rng.normal(size=N)
    bar = wg.grad(lambda x: np.sum(np.where(x > 0.0, np.sqrt(np.abs(x)) * x, 0.0)))(x)
    np.testing.assert_allclose(bar, np.where(x > 0.0, 1.5 * np.sqrt(np.abs(x)), 0.0), rtol=1e-13)


# ---- what NumPy reports --------------------------------------------------------------------------


def test_warnings_and_errors_are_those_of_numpy():
    x = np.ones(N)
    x[7] = 0.0
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
        value = wg.value_and_grad(lambda x: np.sum(np.log(x)))(x)[0]
    assert value == -np.inf
    t = wg.tensor(x, requires_grad=True)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        np.log(t)
    with np.errstate(under="raise"), pytest.raises(FloatingPointError, match="underflow"):
        np.exp(t * -1e3)
    with np.errstate(divide="ignore"):
        assert np.log(t).numpy()[7] == -np.inf


def test_values_that_are_not_numbers(rng):
    x = rng.normal(size=N)
    x[3] = np.nan
    bar = wg.grad(lambda x: np.sum(np.tanh(x) * x))(x)
    assert np.isnan(bar[3])
    assert np.isfinite(np.delete(bar, 3)).all()


def test_sums_that_overflow_are_finite_values():
    x = np.full(N, 708.0)
    assert kernels._is_finite(np.exp(x))
    assert not kernels._is_finite(np.array([1.0, np.inf, -np.inf]))


# ---- memory --------------------------------------------------------------------------------------


def test_results_share_memory_with_nothing(rng):
    x = rng.normal(size=N)
    kept = []

    def f(x):
        y = np.sin(x)
        z = y * x
        kept.extend([y.detach().numpy(), z.detach().numpy()])
        return np.sum(z * y + z * z)

    gradient = wg.grad(f)
    first = gradient(x)
    copies = [np.array(a) for a in (first, *kept)]
    second = gradient(x)
    for a, b in zip((first, *kept[:2]), copies, strict=False):
        np.testing.assert_array_equal(a, b)
    assert not np.shares_memory(first, second)
    for array in kept:
        assert not np.shares_memory(array, first)
        assert not np.shares_memory(array, second)


def test_earlier_contributions_are_not_overwritten(rng):
    op, x, t = lookup("sin"), rng.normal(size=N), rng.normal(size=N)
    so_far = rng.normal(size=N)
    before = so_far.copy()
    (bar,) = kernels.cotangents(op, {}, t, np.sin(x), [x], [True], False, [so_far])
    np.testing.assert_array_equal(so_far, before)
    np.testing.assert_allclose(bar, before + t * np.cos(x), rtol=1e-13, atol=1e-13)


def test_hooks_see_the_whole_cotangent(rng):
    x = wg.tensor(rng.normal(size=N), requires_grad=True)
    y = np.sin(x)
    seen = []
    y.register_hook(lambda t: seen.append(t.numpy().copy()))
    (np.sum(y * y) + np.sum(np.exp(y))).backward()
    s = np.sin(x.numpy())
    np.testing.assert_allclose(seen[0], 2.0 * s + np.exp(s), rtol=1e-13, atol=1e-13)


# ---- interrupts, threads -------------------------------------------------------------------------


def test_an_interrupt_while_compiling_leaves_no_state(rng, monkeypatch):
    op, x = lookup("arctan"), rng.normal(size=N)
    monkeypatch.setattr(kernels, "_kernels", {})

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kernels, "backend", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kernels.value_of_large(op, x)
    assert not kernels._kernels
    np.testing.assert_allclose(kernels.value_of_large(op, x), np.arctan(x), rtol=1e-14)


def test_threads(rng, monkeypatch):
    monkeypatch.setattr(kernels, "_kernels", {})
    xs = rng.normal(size=(4, N))
    found = [None] * 4

    def run(k):
        found[k] = wg.grad(lambda x: np.sum(np.sin(x) * x))(xs[k])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for bar, x in zip(found, xs, strict=True):
        np.testing.assert_allclose(bar, np.cos(x) * x + np.sin(x), rtol=1e-12, atol=1e-12)


def test_rules_of_users_are_not_compiled(rng):
    from wengert.extend import elementwise

    calls = []
    cubed = elementwise(lambda s, x: x * x * x, name="cubed_of_test", oracle="x**3", replace=True)
    cubed.partials(lambda t, out, x: (calls.append(type(x)), t * (3.0 * x * x))[1])
    x = rng.normal(size=N)
    np.testing.assert_allclose(wg.grad(lambda x: np.sum(cubed(x)))(x), 3.0 * x * x, rtol=1e-14)
    assert calls == [np.ndarray]
    del REGISTRY["cubed_of_test"]


def test_operations_with_several_outputs(rng):
    a = rng.normal(size=(128, 128))
    a = a + a.T
    bar = wg.grad(lambda a: np.sum(np.linalg.eigh(a)[0] ** 2))(a)  # the sum of squares of a
    np.testing.assert_allclose(bar, 2.0 * a, rtol=1e-9, atol=1e-9)

    def f(x):
        return np.sum(wg.scan(lambda c, _: (np.sin(c), np.sum(c)), x, length=2)[0])

    x = rng.normal(size=N)
    np.testing.assert_allclose(wg.grad(f)(x), np.cos(np.sin(x)) * np.cos(x), rtol=1e-12)


# ---- memory and changes of plain arrays ----------------------------------------------------------


allocator_of = np._core.multiarray.get_handler_name  # of an array, or of new ones


def test_new_arrays_of_a_derivative_are_in_recycled_memory():
    names = []

    def f(x):
        names.append(allocator_of())
        return np.sum(x * 2.0)

    def g(x):
        if x[0] > 0:
            raise ValueError("an error")
        return f(x)

    wg.grad(f)(np.ones(N))  # the first call does not load native code
    names.clear()
    for x in (np.ones(N), np.ones(3)):
        wg.grad(f)(x)
    assert names == ["wengert", "default_allocator"]
    with pytest.raises(ValueError, match="an error"):
        wg.grad(g)(np.ones(N))
    assert allocator_of() == "default_allocator"
    bar = wg.grad(lambda x: np.sum(x * x))(np.ones(N))
    assert bar.flags.owndata and bar.flags.writeable
    x = wg.tensor(np.ones(N), requires_grad=True)
    np.sum(x * 3.0).backward()
    assert allocator_of(x.grad.node.value) == "wengert"


def test_a_changed_array_is_detected_whether_native_code_was_loaded_before_or_between(monkeypatch):
    for native in (None, array_fingerprint.fingerprint):
        monkeypatch.setattr(Fingerprints, "native", native)
        x, y = wg.tensor(np.ones(N), requires_grad=True), np.arange(float(N))
        total = np.sum(x * y)
        monkeypatch.setattr(Fingerprints, "native", array_fingerprint.fingerprint)
        total.backward()
        assert (np.asarray(x.grad) == y).all()
        total = np.sum(x * y)
        y[3], y[5] = y[5], y[3]
        with pytest.raises(MutatedError):
            total.backward()


OPERATORS = {
    "a * x": lambda a, x: a * x,
    "x * a": lambda a, x: x * a,
    "a + x": lambda a, x: a + x,
    "x - a": lambda a, x: x - a,
    "a - x": lambda a, x: a - x,
    "multiply(a, x)": np.multiply,
    "x / a": lambda a, x: x / a,
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_plain_arrays_are_kept_in_the_pass_of_the_operation(name, dtype, rng, native_fingerprints):
    f = OPERATORS[name]
    a, values = rng.uniform(0.5, 2.0, size=(2, N + 3)).astype(dtype)
    x = wg.tensor(values, requires_grad=True)
    y = f(a, x)
    np.testing.assert_array_equal(y.node.value, f(a, values))
    assert [type(z) for z in y.node.args if z is not x.node] == [Watched]
    t = rng.normal(size=N + 3).astype(dtype)
    np.sum(y * t + y).backward()
    right = dict.fromkeys(("a * x", "x * a", "multiply(a, x)"), a) | {"x / a": 1 / a, "a - x": -1.0}
    expected = (t + 1) * right.get(name, 1.0)
    np.testing.assert_allclose(
        x.grad.numpy(), expected, rtol=1e-6 if dtype == np.float32 else 1e-13
    )


@pytest.mark.parametrize("name", ["a * x", "x * a", "multiply(a, x)"])
@pytest.mark.parametrize("place", [0, N // 2, N, N + 2])
def test_a_plain_factor_that_changed_is_an_error(name, place, rng, native_fingerprints):
    a, values = rng.normal(size=(2, N + 3))
    x = wg.tensor(values, requires_grad=True)
    total = np.sum(OPERATORS[name](a, x) * x)
    before = a[place]
    a[place] = np.nextafter(before, 9.0)
    with pytest.raises(MutatedError, match="overwritten after a recorded operation"):
        total.backward()
    a[place] = before
    total.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * a * values, rtol=1e-13)


def test_a_factor_that_is_overwritten_between_two_uses(rng, native_fingerprints):
    buffer, values = rng.normal(size=(2, N))
    x = wg.tensor(values, requires_grad=True)
    first = buffer * x
    buffer[:] = 2.0
    second = buffer * x
    second.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2.0)
    with pytest.raises(MutatedError):
        first.sum().backward()


def test_contributions_of_several_products_are_added(rng):
    a, b, x = rng.normal(size=(3, N))
    for f, expected in (
        (lambda x: np.sum(a * x) + np.sum(x * b) + np.sum(np.sin(x)), a + b + np.cos(x)),
        (lambda x: np.sum((a * x + b) ** 2) + np.sum(x), 2 * a * (a * x + b) + 1),
        (lambda x: np.sum(a * x) * np.sum(b * x), a * np.sum(b * x) + b * np.sum(a * x)),
    ):
        for _ in range(3):  # the first call does not use recycled memory
            np.testing.assert_allclose(wg.grad(f)(x), expected, rtol=1e-12, atol=1e-12)


def test_overflow_warns_and_nothing_is_kept_without_recording(rng, native_fingerprints):
    a, x = np.full(N, 1e200), wg.tensor(np.full(N, 1e200), requires_grad=True)
    with pytest.warns(RuntimeWarning, match="overflow"):
        a * x
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        a * x
    with np.errstate(under="raise"), pytest.raises(FloatingPointError):
        (a * 0.0 + 1e-300) * (x * 0.0 + 1e-300)
    with wg.no_grad():
        y = a * (x * 1e-200)
    np.testing.assert_allclose(y.numpy(), 1e200)
    assert not y.requires_grad


def test_nan_in_a_large_gradient_is_found(rng):
    x = rng.uniform(0.5, 2.0, size=N)
    x[N // 3] = 0.0
    f = lambda x: np.sum(np.where(x > 0, np.sqrt(x) * x, 0.0))  # noqa: E731
    expected = np.where(x > 0, 1.5 * np.sqrt(x), 0.0)
    for _ in range(3):
        np.testing.assert_allclose(wg.grad(f)(x), expected, rtol=1e-13)


def test_a_sum_does_not_read_a_plain_array_again():
    x, y = wg.tensor(np.ones(N), requires_grad=True), np.ones(N)
    total = np.sum((x + y) - 2.0 * y)
    y[0] = 7.0
    total.backward()
    assert (np.asarray(x.grad) == 1.0).all()


@pytest.mark.parametrize("shape", [(N,), (N + 3,), (64, N // 64), (N // 64, 64, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_fingerprints_change_with_any_element_and_with_the_order(shape, dtype, rng):
    x = rng.integers(-3, 4, size=shape).astype(dtype)
    x.reshape(-1)[[0, 1]] = 1, 2
    for array in (x, np.asfortranarray(x)):
        before = array_fingerprint.fingerprint(array)
        assert before == array_fingerprint.fingerprint(array.copy(order="K"))
        for k in (0, x.size // 2, x.size - 1):
            array.flat[k] += 1
            assert array_fingerprint.fingerprint(array) != before
            array.flat[k] -= 1
        for k in (1, 32, 1024, x.size - 1):
            other = array.copy(order="K")
            other.flat[0], other.flat[k] = array.flat[k], array.flat[0]
            if other.flat[0] != array.flat[0]:
                assert array_fingerprint.fingerprint(other) != before
        assert array_fingerprint.fingerprint(array) == before


def test_a_large_second_operand_has_a_kernel_too(by_numpy, rng):
    x = rng.normal(size=N)
    for f in (lambda x: np.sum(np.logaddexp(0.0, x)), lambda x: np.sum(np.arctan2(2.0, x))):
        np.testing.assert_allclose(wg.grad(f)(x), by_numpy(wg.grad(f), x), rtol=1e-13)


@pytest.mark.parametrize("exponent", [2, 2.0, 3, -1, 0.5, 0, 1, 2.25, -3.5, 7])
def test_powers_with_common_exponents(exponent, by_numpy, rng):
    x = rng.uniform(0.5, 2.0, size=N)
    gradient = wg.grad(lambda x: np.sum(x**exponent * np.cos(x)))
    np.testing.assert_allclose(gradient(x), by_numpy(gradient, x), rtol=1e-13, atol=1e-13)
