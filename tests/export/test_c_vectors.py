"""C with vector types of GNU C: without warnings, with sanitizers, the same numbers as eagerly."""

import shutil
import subprocess

import numpy as np
import pytest
from tests.backends.llvm.random_programs import Bundle, differing, is_differentiable

import wengert as wg

from .c_drivers import compiled, run
from .exported_calls import Library

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
FLAGS = ("-std=gnu99", "-Wall", "-Wextra", "-Werror", "-Wno-psabi")
SANITIZED = (*FLAGS, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover")
TARGETS = ("x86-64", "x86-64-v3", "x86-64-v4", "aarch64")


@pytest.mark.sample(1, first=0)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["values", "gradient"])
def test_random_programs(seed, kind, tmp_path):
    bundle = Bundle(seed, named=seed % 3 == 2)
    if kind == "gradient" and not is_differentiable(bundle):
        pytest.skip("NumPy has no gradient")
    function = getattr(bundle, kind)
    exported = wg.jit(lambda *xs: function(*xs)).export(
        tmp_path / "f.c", tuple(bundle.specs), name="f", target=TARGETS[seed % 4]
    )
    for world in bundle.worlds:
        got = run(exported, "f", world, compiled(exported, "f", world, "gcc", *SANITIZED))
        with np.errstate(all="ignore"):
            wanted = function(*world)
        eps = bundle.eps if kind == "values" else bundle.coarse
        assert not differing(got, wanted, eps), str(bundle)


def smooth(x):
    y = np.tanh(x) * np.exp(-x * x) + np.sqrt(np.abs(x) + 1.0) + np.floor(3.0 * x) * np.rint(x)
    return np.where(x > 0.3, y, np.minimum(x, 0.1) * np.sin(x)) + np.copysign(np.log1p(x * x), x)


def reduced(x):
    return np.sum(x * x), np.max(x), np.min(np.abs(x)), np.mean(np.cumsum(x)), np.sum(x > 0.1)


def gathered(x):
    k = np.argsort(x)
    return x[k[::-1]] * 2.0, np.sum(x[k // 2])


def library(exported, compiler, *flags):
    path = exported.path.with_suffix(".so")
    done = subprocess.run(
        [*compiler, *FLAGS, *flags, "-shared", "-fPIC", "-o", str(path), str(exported.path), "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:3000]
    return Library(exported, path)


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("options", [("-O1",), ("-O3", "-march=native")])
def test_values_of_all_lengths(target, options, tmp_path):
    functions = {"smooth": smooth, "reduced": reduced, "gathered": gathered}
    for name, f in functions.items():
        exported = wg.jit(f).export(
            tmp_path / f"{name}.c", (wg.spec("n"),), name=name, target=target
        )
        made = library(exported, ["gcc"], *options)
        for n in (1, 2, 7, 8, 9, 16, 33, 100):
            x = np.random.default_rng(n).normal(size=n)
            wanted = f(x)
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            for got, want in zip(made(name, x), wanted, strict=True):
                assert np.allclose(got, want, rtol=1e-13, atol=1e-14), (name, n)


def test_single_precision(tmp_path):
    exported = wg.jit(smooth).export(
        tmp_path / "f.c", (wg.spec("n", np.float32),), name="f", target="x86-64-v4"
    )
    made = library(exported, ["gcc"], "-O2", "-march=native")
    x = np.random.default_rng(0).normal(size=77).astype(np.float32)
    assert np.allclose(made("f", x)[0], smooth(x), rtol=1e-5, atol=1e-6)


def test_special_values(tmp_path):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300, -1e-310, 0.5, -2.5])
    f = lambda x: (np.maximum(x, 0.0), np.exp(x), np.isnan(x), np.sign(x), np.fmax(x, 1.0), -x)  # noqa: E731
    exported = wg.jit(f).export(tmp_path / "f.c", (wg.spec("n"),), name="f", target="x86-64-v4")
    made = library(exported, ["gcc"], "-O2")
    with np.errstate(all="ignore"):
        wanted = f(x)
    found = made("f", x)
    assert np.array_equal(np.signbit(found[-1][3:5]), [True, False])
    for got, want in zip(found, wanted, strict=True):
        assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f")


def test_clang(tmp_path):
    pytest.importorskip("ziglang", reason="needs ziglang, whose compiler is Clang")
    import sys

    exported = wg.jit(smooth).export(
        tmp_path / "f.c", (wg.spec("n"),), name="f", target="x86-64-v4"
    )
    made = library(exported, [sys.executable, "-m", "ziglang", "cc"], "-O2", "-mavx2", "-mfma")
    x = np.random.default_rng(0).normal(size=77)
    assert np.allclose(made("f", x)[0], smooth(x), rtol=1e-13)


def test_the_file_names_its_vectors(tmp_path):
    wide = wg.jit(smooth).export(tmp_path / "w.c", (wg.spec("n"),), target="x86-64-v4")
    assert "vector_size(64)" in wide.path.read_text()
    narrow = wg.jit(smooth).export(tmp_path / "n.c", (wg.spec("n"),), target="aarch64")
    assert "vector_size(16)" in narrow.path.read_text()
    assert "vector_size(64)" not in narrow.path.read_text()
    plain = wg.jit(smooth).export(tmp_path / "p.c", (wg.spec("n"),))
    assert "vector_size" not in plain.path.read_text()
