"""Stages that share a batch axis run for one item after the other; the results are the same."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.tuning import using
from wengert.scipy.special import logsumexp

RNG = np.random.default_rng(12)
ALWAYS = {
    "batch_loop_bytes": 1,
    "batch_item_flops": 1,
    "batch_loop_items": 2,
    "parallel_contraction_flops": 1000,
}
SIZES = 9, 70, 33, 40  # items, rows, columns, terms
B, M, N, K = SIZES
A, C, BIAS = (RNG.normal(size=s) for s in ((B, M, K), (B, K, N), (B, N)))
X, MEANS = RNG.normal(size=(M, K)), RNG.normal(size=(B, K))
FACTORS = RNG.normal(size=(B, N, K)) / 8


def mixture(x, means, factors):
    """Used by both passes: the centered points are computed in each."""
    y = np.einsum("kij,knj->kni", factors, x[None] - means[:, None])
    return np.sum(logsumexp(-0.5 * np.sum(y**2, axis=2), axis=0))


def attention(q, k, v):
    scores = q @ np.swapaxes(k, 1, 2) / 8.0
    weights = np.exp(scores - np.max(scores, axis=2, keepdims=True))
    return (weights / np.sum(weights, axis=2, keepdims=True)) @ v


PROGRAMS = {
    "the operand": (lambda a, c: (np.sin(a) @ c, np.cos(a)), A, C),
    "the result": (lambda a, c, b: np.tanh(a @ c + b[:, None]), A, C, BIAS),
    "both": (lambda a, c: np.sum(np.exp(-((a * a) @ c) ** 2), axis=2), A, C),
    "a chain": (lambda a, c: np.tanh(np.tanh(a @ c) @ np.swapaxes(c, 1, 2)) @ c, A, C),
    "attention": (attention, A, A + 1.0, A * 2.0),
    "mixture": (mixture, X, MEANS, FACTORS),
    "a transposed operand": (
        lambda a, c: np.swapaxes(np.sin(a), 1, 2) @ (np.cos(a) @ c), A, C,
    ),
    "a reshaped result": (
        lambda a, c: np.sum(np.reshape(np.exp(-np.abs(a @ c)), (B, M * N)), axis=1), A, C,
    ),
    "a flat result": (lambda a, c: np.reshape(np.sin(a @ c), (B * M, N)) * 2.0, A, C),
    "another row": (lambda a, c: np.sin(a @ c) + np.flip(np.sin(a @ c), axis=0), A, C),
    "a shifted row": (lambda a, c: (lambda y: y[1:] * y[:-1])(np.sin(np.sin(a) @ c)), A, C),
    "a sum over items": (lambda a, c: np.sum(np.sin(np.sin(a) @ c), axis=0), A, C),
    "a gather": (lambda a, c: np.sin(np.sin(a) @ c)[np.arange(B)[::-1]], A, C),
    "a part of each row": (lambda a, c: np.sin(a @ c)[:, 3:9] @ np.ones((B, N, 4)), A, C),
    "the last axis": (lambda a, c: np.einsum("bij,bjk->ikb", np.sin(a), c) * 2.0, A, C),
    "the second axis": (
        lambda x, m, f: np.sum(
            np.einsum("kij,nkj->nki", f, x[:, None] - m[None]) ** 2, axis=2
        ), X, MEANS, FACTORS,
    ),
    "the second axis of operands in memory": (
        lambda a, c: np.tanh(np.einsum("ibk,kbj->ibj", a, c)), A.transpose(1, 0, 2).copy(),
        C.transpose(1, 0, 2).copy(),
    ),
    "the second axis of one operand": (
        lambda a, c: np.cos(np.einsum("bik,kbj->ibj", np.sin(a), np.sin(c))) * 2.0, A,
        C.transpose(1, 0, 2).copy(),
    ),
    "two batch axes": (
        lambda a, c: np.exp(-np.abs(np.einsum("iabk,abkj->iabj", np.sin(a), c))),
        A.reshape(B, M, 2, K // 2).transpose(1, 2, 0, 3).copy(),
        RNG.normal(size=(2, B, K // 2, N)),
    ),
    "single precision": (
        lambda a, c: np.exp(-np.abs(np.sin(a) @ c)), A.astype("f4"), C.astype("f4"),
    ),
    "several results": (
        lambda a, c: (lambda y, z: (y, z, y * 2.0, y[0], np.sum(z, axis=2)))(
            np.sin(a), np.sin(a) @ c
        ),
        A, C,
    ),
    "two products of a row": (
        lambda a, c: np.sin(a) @ c + np.cos(a) @ c * np.sin(a)[:, :, :1], A, C,
    ),
}  # fmt: skip


def leaves(x):
    return x if isinstance(x, tuple) else (x,)


def check(f, *args, rtol=1e-11):
    wanted = leaves(f(*args))
    for threads in (1, 2, 4):
        with wg.set_threads(threads):
            compiled = wg.jit(f)
            for _ in range(2):
                for got, x in zip(leaves(compiled(*args)), wanted, strict=True):
                    np.testing.assert_allclose(got, x, rtol=rtol, atol=rtol)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_derivatives(name):
    f, *args = PROGRAMS[name]
    single = args[0].dtype == np.float32
    rtol = 2e-5 if single else 1e-11

    def total(*args):
        return sum([np.sum(np.sin(y)) for y in leaves(f(*args))])

    with using(**ALWAYS):
        check(f, *args, rtol=rtol)
        check(wg.grad(total, tuple(range(len(args)))), *args, rtol=20 * rtol)


def loops_of(f, *args):
    return str(wg.jit(f).lower(*[wg.spec(a.shape, a.dtype) for a in args]).loops)


def test_arrays_of_a_batch_that_leave_the_cache():
    """The whole expression is one loop, and its gradient two; nothing is needed for that."""
    x, means = np.zeros((1000, 64)), np.zeros((25, 64))
    factors = np.zeros((25, 64, 64))
    assert loops_of(mixture, x, means, factors).count("one of 25 items at a time") == 3
    gradient = loops_of(wg.grad(mixture, (1, 2)), x, means, factors)
    assert gradient.count("one of 25 items at a time") >= 6


def test_small_arrays_stay_as_they_are():
    assert "at a time" not in loops_of(mixture, X, MEANS, FACTORS)


def test_products_with_one_matrix_are_not_divided():
    """The rows of all items are those of one product."""
    a, w = np.zeros((64, 512, 64)), np.zeros((64, 64))
    assert "at a time" not in loops_of(lambda a, w: np.tanh(np.sin(a) @ w), a, w)


def test_an_update_in_place_waits_for_all_items():
    """A variable that the loop reads is not overwritten by it."""
    v = wg.tensor(A.copy(), requires_grad=True)

    @wg.jit
    def step(c):
        y = np.tanh(np.flip(v, axis=0)) @ c
        v[...] = v * 0.9 - np.tanh(y @ np.swapaxes(c, 1, 2))
        return np.sum(y * y)

    state = A.copy()
    with using(**ALWAYS, donated_bytes=1):
        for _ in range(3):
            y = np.tanh(state[::-1]) @ C
            np.testing.assert_allclose(float(step(C)), np.sum(y * y), rtol=1e-10)
            state = state * 0.9 - np.tanh(y @ np.swapaxes(C, 1, 2))
            np.testing.assert_allclose(v.detach().numpy(), state, rtol=1e-9)


def run(steps, a, c, bias):
    """Apply random operations, given as (kind, x, y, axis)."""
    unary = (np.sin, np.tanh, lambda x: x * 0.5, lambda x: np.exp(-x * x))
    made = [a @ c, np.sin(a) @ c]
    for kind, i, j, axis in steps:
        x, y = made[i], made[j]
        if kind < 4:
            made.append(unary[kind](x))
        elif kind < 6:
            made.append(x @ y / 8.0)
        elif kind == 6:
            made.append(x - np.mean(x, axis=axis, keepdims=True))
        elif kind == 7:
            made.append(np.swapaxes(x, 1, 2) * y + bias[:, None])
        elif kind == 8:
            made.append(np.einsum("bij,bkj->bik", x, y) / 8.0)
        else:
            made.append(np.where(y > 0, x, np.flip(x, axis=axis)))
    return made[-1], made[-2], np.sum(made[-3], axis=0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    steps = [
        (int(rng.integers(10)), *map(int, rng.integers(k, size=2)), int(rng.integers(3)))
        for k in range(2, 9)
    ]
    n = int(rng.integers(17, 40))
    args = rng.normal(size=(6, n, n)), rng.normal(size=(6, n, n)) / 5, rng.normal(size=(6, n))

    def f(a, c, bias):
        return run(steps, a, c, bias)

    def total(*args):
        return sum([np.sum(np.sin(y)) for y in f(*args)])

    with using(**ALWAYS):
        check(f, *args, rtol=1e-9)
        check(wg.grad(total, (0, 1, 2)), *args, rtol=1e-7)
