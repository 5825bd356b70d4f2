"""The native entry: which arguments are accepted, what is read from them, what is returned."""

import numpy as np
import pytest

from wengert._engine.core.symbolic.constraints import Requirement, dim
from wengert.errors import ArgumentError

from .entry_programs import (
    code_of,
    copy_inputs,
    entry_of,
    make_entry,
    nothing,
    program,
)

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", "longdouble", "clongdouble"),
)


def missing(*args):
    return "miss", args


def is_miss(result):
    return type(result) is tuple and result[0] == "miss"


def some(dtype, size=5):
    dtype = np.dtype(dtype)
    values = np.arange(1, size + 1).astype(dtype)
    return values + values * dtype.type(1j) if dtype.kind == "c" else values


# ---- values without axes ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_and_arrays_without_axes_are_taken_and_scalars_come_back(dtype):
    entry = entry_of(program([dtype], [dtype], copy_inputs), missing, single=True)
    value = some(dtype)[2]
    for given in (value, np.array(value), some(dtype)[2:3].reshape(())):
        result = entry(given)
        assert type(result) is np.dtype(dtype).type
        assert result == value


@pytest.mark.parametrize(
    ("kind", "value"), [("float64", 1.5), ("int64", -3), ("complex128", 1.5 - 2j), ("bool", True)]
)
def test_weak_ports_take_python_numbers_of_their_type_only(kind, value):
    entry = entry_of(program([kind + "*"], [kind], copy_inputs), missing, single=True)
    assert entry(value) == value
    assert type(entry(value)) is np.dtype(kind).type
    for other in (1.5, -3, 1.5 - 2j, True, np.dtype(kind).type(value), np.array(value), "a", None):
        assert is_miss(entry(other)) == (type(other) is not type(value)), other


def test_weak_results_are_as_graphs_return_them():
    kinds = ["float64*", "int64*", "complex128*", "bool*"]
    given = 1.5, -3, 1.5 - 2j, False
    entry = entry_of(program(kinds, kinds, copy_inputs), missing)
    assert list(map(type, entry(*given))) == [np.float64, int, np.complex128, np.bool_]
    assert entry(*given) == given
    entry = entry_of(program(kinds, kinds, copy_inputs), missing, python_results=True)
    assert list(map(type, entry(*given))) == [float, int, complex, bool]
    assert entry(*given) == given


def test_small_weak_numbers_keep_their_sign():
    kinds = ["int8", "uint8", "uint64"]
    entry = entry_of(
        program(kinds, [k + "*" for k in kinds], copy_inputs), missing, python_results=True
    )
    given = np.int8(-5), np.uint8(250), np.uint64(2**64 - 1)
    assert entry(*given) == (-5, 250, 2**64 - 1)


def test_a_python_float_is_another_signature_unless_the_entry_is_lenient():
    made = program(["float64"], ["float64"], copy_inputs)
    assert is_miss(entry_of(made, missing, single=True)(1.5))
    lenient = entry_of(made, missing, single=True, accept_python_numbers=True)
    assert [lenient(x) for x in (1.5, 3, True, np.float64(2.5), np.array(2.5))] == [
        1.5,
        3.0,
        1.0,
        2.5,
        2.5,
    ]
    assert is_miss(lenient(1j))
    assert is_miss(lenient(2**63))
    assert lenient(2**62 + 1) == float(2**62 + 1)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32", "uint64"])
def test_lenient_integers_are_accepted_in_range(dtype):
    entry = entry_of(
        program([dtype], [dtype], copy_inputs), missing, single=True, accept_python_numbers=True
    )
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for value in (low, high, low - 1, high + 1, 0, 1, True, -(2**63), 2**63 - 1, 10**30):
        result = entry(value)
        if low <= value <= min(high, 2**63 - 1):
            assert result == value
            assert type(result) is np.dtype(dtype).type
        else:
            assert is_miss(result)
    assert is_miss(entry(1.0))


def test_lenient_complex_and_single_precision_round_as_numpy_does():
    made = program(["float32", "complex64"], ["float32", "complex64"], copy_inputs)
    entry = entry_of(made, missing, accept_python_numbers=True)
    for value in (0.1, 1e300, -1e-46, np.inf, 16777217, True):
        with np.errstate(all="ignore"):
            want = np.asarray(value).astype("f4")[()], np.asarray(value).astype("c8")[()]
        assert entry(value, value) == want
    assert entry(1.5, 0.1 + 0.2j)[1] == np.complex64(0.1 + 0.2j)
    half = entry_of(
        program(["float16"], ["float16"], copy_inputs), missing, accept_python_numbers=True
    )
    assert is_miss(half(0.1))


# ---- arrays ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_taken_by_their_dtype(dtype):
    made = program([f"{dtype}[5]"], [dtype], copy_inputs)
    entry = entry_of(made, missing, single=True)
    assert entry(some(dtype)) == some(dtype)[0]
    for other in DTYPES:
        given = some(other)
        assert is_miss(entry(given)) == (given.dtype != np.dtype(dtype))
    swapped = some(dtype).astype(np.dtype(dtype).newbyteorder())
    assert is_miss(entry(swapped)) == (swapped.dtype != np.dtype(dtype))


def test_arrays_with_a_dtype_object_of_their_own():
    entry = entry_of(program(["float64[n]"], ["float64[n]"], copy_inputs), missing, single=True)
    marked = np.arange(3.0).view(np.dtype("f8", metadata={"unit": "m"}))
    assert marked.dtype is not np.dtype("f8")
    np.testing.assert_array_equal(entry(marked), [0.0, 1.0, 2.0])


def test_sizes_are_bound_and_compared():
    made = program(
        ["float64[n,m]", "float64[m]", "float64[2*n+1]", "float64[n*m]", "float64[n//2]"],
        ["float64[m,n]", "float64[n*m-1]"],
        nothing,
    )
    entry = entry_of(made, missing)

    def call(n, m, **other):
        lengths = {"a": (n, m), "b": m, "c": 2 * n + 1, "d": n * m, "e": n // 2} | other
        return entry(*(np.zeros(lengths[k]) for k in "abcde"))

    for n, m in ((1, 1), (3, 4), (5, 2)):
        first, second = call(n, m)
        assert (first.shape, second.shape) == ((m, n), (n * m - 1,))
    for other in ({"b": 5}, {"c": 6}, {"c": 8}, {"d": 11}, {"e": 2}, {"a": (3, 4, 1)}):
        assert is_miss(call(3, 4, **other)), other
    assert is_miss(call(0, 4))
    assert is_miss(call(3, 0))


def test_a_size_is_at_least_one():
    entry = entry_of(program(["float64[n]"], ["float64[n]"], copy_inputs), missing, single=True)
    assert entry(np.ones(1)) == [1.0]
    assert is_miss(entry(np.zeros(0)))


def test_a_size_that_is_only_in_an_expression_is_solved_for():
    entry = entry_of(program(["float64[2*n+1]"], ["float64[n]"], nothing), missing, single=True)
    assert entry(np.zeros(7)).shape == (3,)
    for n in (0, 1, 2, 6):
        assert is_miss(entry(np.zeros(n)))


def test_a_size_that_cannot_be_found_never_serves():
    entry = entry_of(program(["float64[n*m]"], ["float64[n]"], nothing), missing, single=True)
    assert is_miss(entry(np.zeros(6)))


def test_lengths_beyond_64_bits_are_left_to_the_slow_path():
    made = program(["float64[n]"], ["float64[n*n*n*n*n*n*n*n]"], nothing)
    entry = entry_of(made, missing, single=True)
    assert entry(np.zeros(2)).shape == (256,)
    assert is_miss(entry(np.zeros(65536)))
    for n in (100, 200):
        with pytest.raises((MemoryError, ValueError), match=r"memory|too big|allocate"):
            entry(np.zeros(n))


def test_requirements_are_checked():
    needs = (Requirement(dim("n-3"), False, "at least 3"), Requirement(dim("n-m"), True, "equal"))
    made = program(["float64[n]", "float64[m]"], ["float64[n-3]"], nothing, requirements=needs)
    entry = entry_of(made, missing, single=True)
    assert entry(np.zeros(5), np.zeros(5)).shape == (2,)
    assert entry(np.zeros(3), np.zeros(3)).shape == (0,)
    assert is_miss(entry(np.zeros(2), np.zeros(2)))
    assert is_miss(entry(np.zeros(5), np.zeros(4)))


def test_fixed_lengths_zero_among_them():
    entry = entry_of(program(["float64[0,3]"], ["float64[0,3]"], nothing), missing, single=True)
    assert entry(np.zeros((0, 3))).shape == (0, 3)
    for shape in ((0, 2), (1, 3), (0,), (3, 0), (0, 3, 1), ()):
        assert is_miss(entry(np.zeros(shape)))


def test_what_lies_in_another_way_is_left_to_the_slow_path_or_strides_are_passed():
    plain = program(["float64[n]"], ["float64[n]"], copy_inputs)
    strided = program(["float64[n]"], ["float64[n]"], copy_inputs, strided={0})
    base = np.arange(20.0)
    records = np.zeros(4, [("a", "f4"), ("b", "f8")])
    records["b"] = [1.0, 2.0, 3.0, 4.0]
    askew = np.frombuffer(b"\0" + base.tobytes() + b"\0" * 7, np.uint8)[1:161].view("f8")
    fast, follows = (entry_of(made, missing, single=True) for made in (plain, strided))
    for given in (base[::2], base[::-1], np.broadcast_to(1.5, 4), np.zeros((4, 3))[:, 1]):
        assert is_miss(fast(given))
        np.testing.assert_array_equal(follows(given), given)
    for entry in (fast, follows):
        assert is_miss(entry(askew))
        assert is_miss(entry(records["b"]))
        assert not is_miss(entry(base))
    base.flags.writeable = False
    np.testing.assert_array_equal(fast(base), base)


def test_constants_stand_in_the_frame():
    def second(made, frame):
        slot, _ = made.constants[1]
        place = frame.section.value(f"getelementptr double, ptr {frame.slot(slot)}, i64 1")
        frame.write(made.outputs[0], frame.section.value(f"load double, ptr {place}"))

    held = (np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    entry = entry_of(program([], ["float64"], second, constants=held), missing, single=True)
    assert entry() == 4.0


# ---- calls ----------------------------------------------------------------------------------


def test_the_number_of_arguments_and_keywords_are_for_the_slow_path_to_judge():
    def missing(*args, **keywords):
        return "miss", args, *keywords.items()

    entry = entry_of(program(["float64"] * 2, ["float64"] * 2, copy_inputs), missing)
    x = np.float64(1.0)
    assert entry(x, x) == (1.0, 1.0)
    assert entry() == ("miss", ())
    assert entry(x) == ("miss", (x,))
    assert entry(x, x, x) == ("miss", (x, x, x))
    assert entry(x, b=x) == ("miss", (x,), ("b", x))
    assert entry(x, x, b=x) == ("miss", (x, x), ("b", x))
    assert entry(*(x, x), **{}) == (1.0, 1.0)
    chained = entry_of(program(["float64*"], ["float64"], copy_inputs), entry)
    assert chained(a=None) == ("miss", (), ("a", None))


def test_a_function_in_a_class_is_called_by_its_instances():
    made = program(["float64*"], ["float64"], copy_inputs)
    cls = type("Called", (), {"__call__": staticmethod(entry_of(made, missing, single=True))})
    assert cls()(2.0) == 2.0
    assert cls()(None) == ("miss", (None,))


def test_a_gate_closes_entries():
    made = program(["float64*"], ["float64"], copy_inputs)
    gate = np.zeros(1, np.int64)
    entry = make_entry(made, code_of(made, single=True), missing, missing, gate=gate)
    assert entry(2.0) == 2.0
    gate[0] = 3
    assert entry(2.0) == ("miss", (2.0,))
    gate[0] = 0
    assert entry(2.0) == 2.0
    for wrong in (np.zeros(2, np.int64), np.zeros(1), np.zeros(9, np.uint8)[1:].view(np.int64)):
        with pytest.raises(ArgumentError, match="int64"):
            make_entry(made, code_of(made), missing, missing, gate=wrong)


def test_what_differed_has_to_differ():
    made = program(["float64[n]", "float64[m]"], ["float64[n]"], nothing)
    entry = entry_of(made, missing, single=True, nonzero=(dim("n-3"), dim("n-m")))
    for n, m in ((3, 4), (2, 2), (2, 5)):
        assert is_miss(entry(np.zeros(n), np.zeros(m))) == (n == 3 or n == m)


def test_entries_are_chained():
    small = entry_of(program(["float64[3]"], ["float64"], copy_inputs), missing, single=True)
    middle = entry_of(program(["float64"], ["float64"], copy_inputs), small, single=True)
    entry = entry_of(program(["float64*"], ["float64*"], copy_inputs), middle, single=True)
    assert [entry(x) for x in (1.0, np.float64(2.0), np.array([3.0, 0, 0]))] == [1.0, 2.0, 3.0]
    assert is_miss(entry(np.zeros(2)))


def test_no_outputs_one_or_several():
    none = entry_of(program(["float64"], [], nothing), missing)
    assert none(np.float64(1.0)) == ()
    one = entry_of(program(["float64"], ["float64"], copy_inputs), missing)
    assert one(np.float64(1.0)) == (1.0,)
    many = ["float64"] * 30
    entry = entry_of(program(many, many, copy_inputs), missing)
    assert entry(*map(np.float64, range(30))) == tuple(range(30))


def status(number):
    return lambda made, frame: number


@pytest.mark.parametrize("slots", [None, 4000])
def test_what_a_status_leads_to(slots):
    def failed(*args):
        return "failed", args

    def raising():
        raise ZeroDivisionError("set aside")

    x, a = np.float64(1.0), np.arange(3.0)
    for number in (1, 3, -1):
        made = program(
            ["float64", "float64[n]"], ["float64", "float64[n]"], status(number), slots=slots
        )
        assert entry_of(made, missing, failed, raising)(x, a) == ("failed", (x, a))
    made = program(["float64", "float64[n]"], ["float64", "float64[n]"], status(2), slots=slots)
    with pytest.raises(ZeroDivisionError, match="set aside"):
        entry_of(made, missing, failed, raising)(x, a)
    assert entry_of(made, missing, failed)(x, a) == ("failed", (x, a))


def test_errors_of_the_slow_path_are_passed_on():
    def raising(*args):
        raise KeyError(len(args))

    entry = entry_of(program(["float64"], ["float64"], copy_inputs), raising)
    with pytest.raises(KeyError, match="2"):
        entry(1, 2)


def test_a_large_frame_is_allocated():
    made = program(["float64[n]"], ["float64[n]"], copy_inputs, slots=100_000)
    entry = entry_of(made, missing, single=True)
    np.testing.assert_array_equal(entry(np.arange(4.0)), np.arange(4.0))
    assert is_miss(entry(None))


def test_one_text_serves_several_programs_of_the_same_layout():
    made = program(["float64"], ["float64"], copy_inputs)
    code = code_of(made, single=True)
    first = make_entry(made, code, lambda *a: "first", missing, name="f", doc="What f does.")
    second = make_entry(made, code, lambda *a: "second", missing)
    assert (first(None), second(None)) == ("first", "second")
    assert (first.__name__, first.__doc__) == ("f", "What f does.")
