"""Keys: known answers of the generator, disjoint counters, equal numbers on all backends."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.ops.random import bits
from wengert.errors import ArgumentError, DtypeError, ShapeError

# Known answers for philox4x64 with ten rounds, from the authors' library Random123 (kat_vectors).
WHOLE = 2**64 - 1
KNOWN = [
    ([0] * 6, "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b"),
    ([WHOLE] * 6, "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0"),
    (
        [
            *(0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89),
            *(0x452821E638D01377, 0xBE5466CF34E90C6C),
        ],
        "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6",
    ),
]
ROOT = wg.random.key(0)


@pytest.mark.parametrize(("given", "want"), KNOWN)
def test_blocks_agree_with_known_answers(given, want):
    found = bits.blocks(given[:4], np.array(given[4:], np.uint64))
    assert " ".join(f"{int(w):016x}" for w in found) == want


def test_blocks_of_many_keys_agree_with_numpy():
    rng = np.random.default_rng(0)
    key = rng.integers(0, 2**64, (5, 2), np.uint64)
    words = np.stack(bits.blocks((np.arange(1, 4), 9, 0, 3), key[:, None]), -1)
    for row, want in zip(words, key, strict=True):
        assert np.array_equal(row.ravel(), bits.raw(want, 12, 9, 3))


def test_purposes_have_distinct_counters():
    assert len({bits.DRAWS, bits.SPLIT, bits.FOLD, bits.TRIALS}) == 4


def test_uses_of_a_key_share_no_words():
    words = [wg.random.bits(ROOT, 4096), wg.random.split(ROOT, 4096)]
    words += [wg.random.fold_in(ROOT, np.arange(4096))]
    words += [bits.raw(ROOT, 4096, trial, bits.TRIALS) for trial in range(3)]
    together = np.concatenate([np.ravel(w) for w in words])
    assert len(np.unique(together)) == together.size


def test_first_split_keys_do_not_depend_on_num():
    few, many = wg.random.split(ROOT), wg.random.split(ROOT, (4, 3))
    assert np.array_equal(few, many.reshape(-1, 2)[:2])
    assert many.shape == (4, 3, 2)
    again = [wg.random.fold_in(ROOT, n) for n in (0, 5, -1)]
    assert np.array_equal(again, wg.random.fold_in(ROOT, np.array([0, 5, -1])))


def test_keys_from_seeds():
    for seed in (0, 1, 2**200, [1, 2], np.int32(7)):
        key = wg.random.key(seed)
        assert key.shape == (2,)
        assert key.dtype == np.uint64
        assert np.array_equal(key, wg.random.key(seed))
    assert len({tuple(wg.random.key(n)) for n in range(1000)}) == 1000
    # A stream and the key of its seed begin with the same numbers.
    first = np.asarray(wg.random.Stream(3).uniform(5))
    assert np.array_equal(wg.random.uniform(wg.random.key(3), 5), first)


def test_same_numbers_in_graphs_loops_and_vmap():
    def program(key, x):
        first, second = wg.random.split(key)

        def step(key, _):
            key, now = wg.random.split(key)
            return key, wg.random.normal(now, (2,)) * x

        last, rows = wg.scan(step, first, None, length=3)
        return rows, wg.random.uniform(wg.random.fold_in(second, 4), (3,), minval=x), last

    want = program(ROOT, 2.0)
    for backend in ("llvm", "interpret"):
        got = wg.jit(program, backend=backend)(ROOT, 2.0)
        for a, b in zip(got, want, strict=True):
            assert np.array_equal(a, b)
    keys = wg.random.split(ROOT, 4)
    rows = wg.vmap(lambda key: program(key, 2.0)[1])(keys)
    assert np.array_equal(rows, [program(key, 2.0)[1] for key in keys])
    compiled = wg.jit(
        wg.vmap(lambda key: program(key, 2.0)[1]), backend="llvm", host_callbacks="forbid"
    )
    assert np.array_equal(rows, compiled(keys))


def test_gradients_of_functions_that_draw():
    def loss(scale):
        first, second = wg.random.split(ROOT)
        return np.sum(scale * wg.random.normal(first, (5,)) + wg.random.uniform(second) * scale**2)

    x = wg.random.normal(wg.random.split(ROOT)[0], (5,))
    u = wg.random.uniform(wg.random.split(ROOT)[1])
    assert np.isclose(wg.grad(loss)(3.0), x.sum() + 6.0 * 5 * u, rtol=1e-14)
    assert np.isclose(wg.grad(wg.grad(loss))(3.0), 2.0 * 5 * u, rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda r: r.normal(0, (3,)), ArgumentError, "is not a key"),
        (lambda r: r.normal(np.zeros(2), (3,)), ArgumentError, "is not a key"),
        (lambda r: r.normal(r.split(ROOT, 3), (3,)), ArgumentError, "expected one key"),
        (lambda r: r.normal(ROOT, (-3,)), ShapeError, "cannot be -3"),
        (lambda r: r.normal(ROOT, (2.5,)), ShapeError, "is not a length"),
        (lambda r: r.normal(ROOT, 3, "int32"), DtypeError, "float64 or float32"),
        (lambda r: r.key(-1), ArgumentError, "at least zero"),
        (lambda r: r.key(1.5), ArgumentError, "integer"),
        (lambda r: r.fold_in(ROOT, 1.5), DtypeError, "integer"),
        (lambda r: r.uniform(ROOT, (2,), minval=np.zeros(3)), ShapeError, "does not broadcast"),
        (lambda r: r.randint(ROOT, 3, 5, 5), ArgumentError, "no integer"),
        (lambda r: r.choice(ROOT, 3, 4, replace=False), ArgumentError, "without replacement"),
        (lambda r: r.gamma(ROOT, 1j), DtypeError, "not real"),
        (lambda r: r.bits(ROOT, 3, "int8"), DtypeError, "uint64 or uint32"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(wg.random)


def test_traced_seed_is_rejected():
    with pytest.raises(ArgumentError, match="fold the number into"):
        wg.trace(lambda n: wg.random.key(n))(wg.spec((), "int64"))
