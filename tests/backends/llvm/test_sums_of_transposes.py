"""Sums along the first axis of what is computed from transposed matrices go along their rows."""

import numpy as np
import pytest

import wengert as wg

PROGRAMS = {
    "product": lambda A, x: np.sum(np.sin(A.T) * x[:, None], axis=0),
    "matrices": lambda A, x: np.sum(np.cos(A.T) + A.T * 2.0, axis=0, keepdims=True),
    "columns": lambda A, x: np.sum(np.sin(A) * x, axis=0),
    "both": lambda A, x: np.sum(A[:90, :90].T * np.cos(A[:90, :90]), axis=0),
    "part": lambda A, x: np.sum(A[3:100, 10:150].T * x[10:150, None], axis=0),
    "single": lambda A, x: np.sum((A.astype("f4").T * 2), axis=0),
}


def given():
    rng = np.random.default_rng(0)
    return rng.normal(size=(120, 200)), rng.normal(size=200)


@pytest.mark.parametrize("name", PROGRAMS)
def test_sums(name):
    A, x = given()
    program = PROGRAMS[name]
    compiled = wg.jit(program)
    tolerance = 1e-5 if name == "single" else 1e-12
    for n in (200, 190, 180):  # the last ones with a symbolic size
        wanted = program(A[:, :n].copy(), x[:n])
        found = compiled(A[:, :n].copy(), x[:n])
        assert found.shape == wanted.shape
        assert np.allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["product", "matrices", "columns", "both"])
def test_derivatives(name):
    A, x = given()
    rng = np.random.default_rng(1)
    t, u = rng.normal(size=A.shape), rng.normal(size=x.shape)

    def total(A, x):
        return np.sum(np.sin(PROGRAMS[name](A, x)))

    eager = wg.grad(total, argnums=(0, 1))(A, x)
    for a, b in zip(wg.jit(wg.grad(total, argnums=(0, 1)))(A, x), eager, strict=True):
        assert np.allclose(a, b, rtol=1e-11, atol=1e-11)
    along = wg.jit(lambda *z: wg.jvp(total, z[:2], z[2:])[1])(A, x, t, u)
    assert np.isclose(along, np.sum(eager[0] * t) + eager[1] @ u, rtol=1e-10, atol=1e-9)


def test_order_of_loops():
    A, x = given()
    text = {n: str(wg.jit(f).lower(A, x).loops) for n, f in PROGRAMS.items()}
    assert "nest over [120,200]" in text["product"]
    assert "nest over [120,200]" in text["matrices"]
    assert "nest over the rows of [120]" in text["columns"]  # rows are added
    assert "nest over [97,140]" in text["part"]


def test_rows_of_bounded_lengths_need_no_blocks():
    def sums(A):
        y = np.zeros(A.shape[0])
        for i in range(A.shape[0]):
            y[i] = np.where(y[i - 1] == 0.5, 0.0, np.sum(A[i, :i]))
        return y

    short, long = np.ones((60, 60)), np.ones((2000, 2000))
    text = [str(wg.jit(sums).lower(A).llvm_ir) for A in (short, long)]
    assert [t.count("fsub <32 x double>") > 0 for t in text] == [False, True]
    for A in (short, long):
        assert np.array_equal(wg.jit(sums)(A), np.arange(len(A)))
