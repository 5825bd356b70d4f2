"""Random numbers of keys have the same bits in eager execution, native code, C and on a device."""

import shutil
import subprocess

import numpy as np
import pytest
from tests.export.exported_calls import Library
from wengert.backends import emulated_device

import wengert as wg
from wengert import random

KEY = np.array([3, 5], np.uint64)
KEYS = np.array([[k, 7 * k + 1] for k in range(5)], np.uint64)
SHAPES = ((), (0,), (1,), (37,), (9, 31))
BOUNDS = np.linspace(-2.0, 3.0, 31)

# Functions of a key, a shape whose last axis has a length of 31, and a dtype.
OF_TAILS = {
    "normal": random.normal,
    "exponential": random.exponential,
    "gumbel": random.gumbel,
    "laplace": random.laplace,
    "logistic": random.logistic,
    "cauchy": random.cauchy,
}
DERIVED = {
    "uniform": lambda k, n, d: random.uniform(k, n, d, BOUNDS, BOUNDS + 1.7),
    "scaled normal": lambda k, n, d: BOUNDS.astype(d) + d(0.3) * random.normal(k, n, d),
    "halfnormal": random.halfnormal,
    "rayleigh": lambda k, n, d: random.rayleigh(k, 2.1, n, d),
    "triangular": lambda k, n, d: random.triangular(k, 0.1, 0.3, 1.7, n, d),
    "orthogonal": lambda k, n, d: random.orthogonal(k, 3, n[:-1], d),
}
# The same, and the number of ulp to which they agree; a negative number is in ulp of 1.
NEARLY = {
    "lognormal": (lambda k, n, d: random.lognormal(k, 1.3, n, d), 2),
    "weibull_min": (lambda k, n, d: random.weibull_min(k, 2.0, 1.7, n, d), 2),
    "pareto": (lambda k, n, d: random.pareto(k, 2.3, n, d), 2),
    "gamma": (lambda k, n, d: random.gamma(k, BOUNDS + 2.5, n, d), 10),
    "t": (lambda k, n, d: random.t(k, 3.0, n, d), 10),
    "truncated_normal": (lambda k, n, d: random.truncated_normal(k, -1.0, 2.0, n, d), -5),
    "von_mises": (lambda k, n, d: random.von_mises(k, 2.0, n, d), -5),
}
OF_WORDS = {
    "bits": lambda k: random.bits(k, (9, 31)),
    "split": lambda k: random.split(k, 3),
    "fold": lambda k: random.fold_in(k, 11),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (400,)),
    "rademacher": lambda k: random.rademacher(k, (400,)),
    "randint": lambda k: random.randint(k, (400,), -3, 2**61),
    "geometric": lambda k: random.geometric(k, 0.2, (400,)),
    "categorical": lambda k: random.categorical(k, np.array([0.1, 0.6, 0.3]), shape=(400,)),
    "permutation": lambda k: random.permutation(k, 100),
    "choice": lambda k: random.choice(k, 1000, (50,)),
    "choice without replacement": lambda k: random.choice(k, 100, (50,), replace=False),
}


def of_shapes(dtype):
    """All distributions that are functions of tails, for several shapes."""
    return lambda key: [f(key, n, dtype) for f in OF_TAILS.values() for n in SHAPES]


def derived(dtype):
    """Functions of these, and of uniform numbers."""
    return lambda key: [f(key, (4, 31), dtype) for f in DERIVED.values()]


def on_device(f, *args):
    with emulated_device(threads=7):
        return wg.device_get(wg.jit(f, backend="cuda")(*args))


def same(found, wanted):
    """Whether arrays have the same shape, dtype and bits."""
    return all(
        np.shape(a) == np.shape(b) and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(map(np.asarray, found), map(np.asarray, wanted), strict=True)
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("family", [of_shapes, derived])
def test_distributions(family, dtype):
    f = family(dtype)
    wanted = f(KEY)
    assert same(wg.jit(f, backend="interpret")(KEY), wanted)
    assert same(wg.jit(f, backend="llvm", host_callbacks="forbid")(KEY), wanted)
    assert same(on_device(f, KEY), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_other_distributions(dtype):
    """As docs/random.md says."""
    f = lambda key: [f(key, (13, 31), dtype) for f, _ in NEARLY.values()]  # noqa: E731
    wanted = f(KEY)
    for found in (wg.jit(f, backend="llvm")(KEY), on_device(f, KEY)):
        for a, b, (_, limit) in zip(found, wanted, NEARLY.values(), strict=True):
            unit = np.spacing(np.abs(b)) if limit > 0 else np.finfo(dtype).eps
            assert np.all(np.abs(a - b) <= abs(limit) * unit)


def test_integers_and_choices():
    f = lambda key: [g(key) for g in OF_WORDS.values()]  # noqa: E731
    wanted = f(KEY)
    for backend in ("interpret", "llvm"):
        assert same(wg.jit(f, backend=backend)(KEY), wanted)
    assert same(on_device(f, KEY), wanted)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_vmapped_keys(dtype):
    one = lambda key: [f(key, (3, 31), dtype) for f in OF_TAILS.values()]  # noqa: E731
    f = wg.vmap(one)
    wanted = [np.stack(x) for x in zip(*[one(k) for k in KEYS], strict=True)]
    assert same(f(KEYS), wanted)
    assert same(wg.jit(f, backend="llvm")(KEYS), wanted)
    assert same(on_device(f, KEYS), wanted)


@pytest.mark.parametrize("name", OF_TAILS)
def test_long_arrays(name):
    """Eager execution of plain arrays, of tensors and of blocks; native code of several threads."""
    f = lambda key: OF_TAILS[name](key, (70_001,))  # noqa: E731
    wanted = f(KEY)
    assert same([f(wg.tensor(KEY))], [wanted])
    assert same([wg.jit(f, backend="llvm")(KEY)], [wanted])
    short = [OF_TAILS[name](KEY, (n,)) for n in (5, 1000)]
    assert same(short, [wanted[: x.size] for x in short])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "target", [None, pytest.param("x86-64-v3", marks=pytest.mark.slow)], ids=["scalar", "v3"]
)
def test_exported_c(dtype, target, tmp_path):
    """gcc may contract everything that the file does not forbid."""
    distributions = [*OF_TAILS.values(), *[DERIVED[n] for n in DERIVED if n != "orthogonal"]]
    f = lambda key: tuple(g(key, (9, 31), dtype) for g in distributions)  # noqa: E731
    options = {} if target is None else {"target": target}
    exported = wg.jit(f).export(tmp_path / "f.c", (wg.spec((2,), np.uint64),), name="f", **options)
    path = tmp_path / "f.so"
    how = ["-std=gnu11", "-O2", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC"]
    how += ["-Wall", "-Wextra", "-Werror"] if target is None else ["-w"]
    subprocess.run(["gcc", *how, "-o", path, exported.path, "-lm"], check=True)
    assert same(Library(exported, path)("f", KEY), f(KEY))
