"""The native entry fuzzed: whatever it is given, it does what the slow path does, or calls it.

The slow path here is the one of graphs: `feeding.fitted` for each value, `sizes.solve` for all
lengths.  Where an entry answers by itself, the slow path has to give the same; a strict entry also
has to find the very spec.  Objects are made at random from what is known to be awkward.
"""

import array
import decimal
import fractions
import pickle

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.argument_conversion import fitted
from wengert._engine.core.spec import at_sizes, spec_of
from wengert._engine.core.symbolic.constraints import solve
from wengert.errors import WengertError

from .entry_programs import code_of, copy_inputs, make_entry, never, nothing, program


class Lying:
    """Says that it is an array, of another shape than it is."""

    shape, ndim, dtype = (3,), 1, np.dtype("f8")

    def __array__(self, dtype=None, copy=None):
        return np.zeros(5)

    def __len__(self):
        return 7


class Raising:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no")

    def __getattribute__(self, name):
        raise RuntimeError(name)


class Own(np.ndarray):
    pass


class Real(float):
    pass


class Whole(int):
    pass


class Wide(np.float64):
    pass


def awkward_array(rng, folder):
    """One array, in some way awkward."""
    dtype = np.dtype(str(rng.choice("? b h i l q B H I L Q e f d g F D G".split())))
    shape = tuple(rng.integers(0, 5, rng.integers(0, 4)))
    with np.errstate(all="ignore"):
        a = np.asarray(rng.normal(size=shape) * 10).astype(dtype)
    ways = [
        lambda: a,
        lambda: np.asfortranarray(a),
        lambda: a.T,
        lambda: a[..., ::-1] if a.ndim else a,
        lambda: np.repeat(a, 2, axis=0)[::2] if a.ndim else a,
        lambda: np.broadcast_to(a, (3, *a.shape)),
        lambda: a.astype(dtype.newbyteorder()),
        lambda: a.view(a.dtype.newbyteorder()),
        lambda: a.view(Own),
        lambda: np.ma.masked_array(a),
        lambda: np.ma.masked_array(a, np.ones(a.shape, bool)),
        lambda: pickle.loads(pickle.dumps(a)),
        lambda: a.astype(object),
        lambda: a[()],
        lambda: a.tolist(),
        lambda: np.lib.stride_tricks.as_strided(a, (4, 4), (0, 0)) if a.size else a,
        lambda: askew(a),
        lambda: read_only(a),
        lambda: on_disk(a, folder),
        lambda: field(a),
        lambda: wg.tensor(a) if dtype.kind == "f" and dtype.itemsize in (4, 8) else a,
        lambda: a.astype("U8"),
        lambda: a.view(np.recarray),
        lambda: memoryview(np.ascontiguousarray(a)),
    ]
    return ways[rng.integers(len(ways))]()


def askew(a):
    memory = np.zeros(a.nbytes + 1, np.uint8)
    moved = memory[1:].view(a.dtype).reshape(a.shape) if a.nbytes else a
    if a.nbytes:
        moved[...] = a
    return moved


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def on_disk(a, folder):
    if a.size == 0:
        return a
    kept = np.memmap(folder / "kept", a.dtype, "w+", shape=a.shape or (1,))
    kept[...] = a
    return kept


def field(a):
    records = np.zeros(a.shape, [("b", "i1"), ("x", a.dtype)])
    records["x"] = a
    return records["x"]


NUMBERS = [
    *(0, 1, -1, 255, 256, 2**31, -(2**31), 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 10**40),
    *(0.0, -0.0, 1.5, 1e300, 1e-320, float("inf"), -float("inf"), float("nan")),
    *(1j, 1 + 2j, complex("nan"), True, False, Real(1.5), Whole(3), Wide(2.5)),
    *(np.True_, np.int8(-3), np.longlong(7), np.uint64(2**63), np.float16(0.1), np.float32(0.1)),
    *(np.float64(0.1), np.longdouble(0.1), np.complex64(1j), np.complex128(2j)),
]
OBJECTS = [
    *(None, "text", b"bytes", [], (), {}, [1.0, 2.0], [[1.0], [2.0, 3.0]], (1, 2), {1: 2}, {1, 2}),
    *(
        np.ndarray,
        np.float64,
        float,
        len,
        Ellipsis,
        NotImplemented,
        object(),
        slice(1, 2),
        range(3),
    ),
    *(
        Lying(),
        Raising(),
        decimal.Decimal("1.5"),
        fractions.Fraction(1, 3),
        array.array("d", [1.0]),
    ),
    *(np.dtype("f8"), np.datetime64("2020-01-01"), np.str_("a"), np.bytes_(b"a"), np.void(b"abc")),
    *(np.array(None), np.array([None, 1.5]), np.array("a"), np.array(["2020"], "M8[Y]")),
    *(np.zeros(2, [("a", "f8"), ("b", "i4")]), np.rec.array([(1.0, 2)]), np.zeros(2, "V8")),
]

SPECS = [
    *("float64", "float64*", "float32", "int64", "int64*", "int32", "uint8", "uint64", "bool"),
    *("bool*", "complex64", "complex128", "complex128*", "float16", "longdouble"),
    *("float64[n]", "float64[n,m]", "float64[3]", "float64[n,3]", "float64[2*n]", "float64[m+1]"),
    *("float64[0]", "float32[n]", "int64[n]", "bool[n]", "complex128[m]", "float64[1,n,1]"),
]


def fed(made, values):
    """What the slow path makes of the values, and the sizes; None if it refuses."""
    try:
        found = [fitted(v, p.spec, "x") for v, p in zip(values, made.inputs, strict=True)]
        shapes = zip(found, made.inputs, strict=True)
        sizes = solve(
            (n, k, "an axis")
            for value, port in shapes
            for n, k in zip(port.spec.shape, np.shape(value), strict=True)
        )
    except (WengertError, RuntimeError):
        return None
    return found, sizes


def likely(rng, spec, sizes):
    """A value that may well be taken."""
    shape = at_sizes(spec, sizes).shape
    with np.errstate(all="ignore"):
        a = np.asarray(rng.normal(size=shape) * 10).astype(spec.dtype)
    if spec.weak:
        return a.item()
    return a[()] if rng.integers(2) else a


GROUPS = {
    "numbers": ["float64", "int64*", "complex128", "bool"],
    "small numbers": ["float32", "uint8", "complex64", "float16", "longdouble"],
    "weak numbers": ["float64*", "int64*", "complex128*", "bool*"],
    "rows": ["float64[n]", "float64[n]", "float32[m]", "float64"],
    "of all dtypes": ["int64[n]", "bool[n]", "complex128[m]", "uint8[3]", "float16[n]"],
    "expressions": ["float64[n]", "float64[m]", "float64[2*n+1,m]", "float64[n,3]"],
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("group", GROUPS)
def test_whatever_is_given(rng, tmp_path, group, lenient, strided):
    texts = GROUPS[group]
    simple = [t.rstrip("*") for t in texts if t.count(",") == 0]
    arrays_at = {k for k, t in enumerate(texts) if "[" in t} if strided else ()
    made = program(texts, simple, copy_inputs, strided=arrays_at)
    code, misses = code_of(made, accept_python_numbers=lenient), []
    entry = make_entry(made, code, lambda *args: misses.append(args), never)
    taken = 0
    for _ in range(500):
        values = awkward_values(rng, made, tmp_path)
        misses.clear()
        result = entry(*values)
        if misses:
            assert result is None
            assert all(a is b for a, b in zip(misses[0], values, strict=True))
        else:
            taken += 1
            check_against_slow_path(made, values, result, lenient)
    assert 100 < taken < 450


def awkward_values(rng, made, folder):
    """Values for all inputs: most of them fit, one or another may not."""
    sizes = {"n": int(rng.integers(1, 5)), "m": int(rng.integers(1, 5))}
    values = [likely(rng, p.spec, sizes) for p in made.inputs]
    if rng.integers(2):
        k, pick = rng.integers(len(values)), rng.integers(5)
        if pick < 2:
            values[k] = awkward_array(rng, folder)
        elif pick == 2:
            values[k] = np.repeat(values[k], 2, axis=0)[::2] if np.ndim(values[k]) else values[k]
        elif pick == 3:
            values[k] = NUMBERS[rng.integers(len(NUMBERS))]
        else:
            values[k] = OBJECTS[rng.integers(len(OBJECTS))]
    return values


def check_against_slow_path(made, values, result, lenient):
    slow = fed(made, values)
    assert slow is not None, values
    found, sizes = slow
    for value, port in zip(values, made.inputs, strict=True):
        assert lenient or spec_of(value) == at_sizes(port.spec, sizes)
    for value, want, port in zip(result, found, made.outputs, strict=False):
        assert value.dtype == port.spec.dtype
        assert isinstance(value, np.ndarray if port.spec.shape else np.generic)
        assert np.array_equal(value, want, equal_nan=True), (value, want)
        assert np.array_equal(np.signbit(np.real(value)), np.signbit(np.real(want)))


@pytest.mark.sample(30)
@pytest.mark.parametrize("thing", range(len(NUMBERS) + len(OBJECTS)))
def test_every_awkward_thing_at_every_kind_of_port(thing):
    value = [*NUMBERS, *OBJECTS][thing]
    for text, entry, made, misses in _entries():
        misses.clear()
        entry(value)
        if not misses:
            assert fed(made, [value]) is not None, text


_MADE = []


def _entries():
    if not _MADE:
        for text in SPECS:
            for lenient in (False, True):
                made = program([text], ["float64"], nothing)
                misses = []
                entry = make_entry(
                    made,
                    code_of(made, accept_python_numbers=lenient),
                    lambda x, m=misses: m.append(x),
                    None,
                )
                _MADE.append((text, entry, made, misses))
    return _MADE
