"""C function pointers: each form, against the same program through Python, and in SciPy."""

import ctypes
import gc
import math

import numpy as np
import pytest
import scipy
import scipy.integrate

import wengert as wg
from wengert._engine.backends.llvm.abi import pointer
from wengert._engine.core.symbolic.constraints import Requirement, dim
from wengert.errors import ArgumentError, BackendError

from .entry_programs import code_of, copy_inputs, program


def polynomial(made, frame):
    """The inputs as coefficients of powers of 2: x0 + 2 x1 + 4 x2 + ..."""
    section, total = frame.section, "0.0"
    for k, port in enumerate(made.inputs):
        value = frame.read(port)
        if port.spec.dtype == np.float32:
            value = section.value(f"fpext float {value} to double")
        term = section.value(f"fmul double {value}, {2.0**k}")
        total = section.value(f"fadd double {total}, {term}")
    if made.outputs[0].spec.dtype == np.float32:
        total = section.value(f"fptrunc double {total} to float")
    frame.write(made.outputs[0], total)


def row_sum(made, frame):
    """The sum of the first input, times all that follow."""
    section = frame.section
    cell = section.function.slot("double")
    section.write(f"store double 0.0, ptr {cell}")
    count = frame.slot(made.size_slots[0], "i64") if made.sizes else "3"
    base = frame.slot(made.inputs[0].slot)
    with section.loop("0", count) as (body, i):
        place = body.value(f"getelementptr double, ptr {base}, i64 {i}")
        element = body.value(f"load double, ptr {place}")
        before = body.value(f"load double, ptr {cell}")
        after = body.value(f"fadd double {before}, {element}")
        body.write(f"store double {after}, ptr {cell}")
    total = section.value(f"load double, ptr {cell}")
    for port in made.inputs[1:]:
        total = section.value(f"fmul double {total}, {frame.read(port)}")
    frame.write(made.outputs[0], total)


def fails(made, frame):
    return 1


def pointer_of(made, signature="numbers"):
    return pointer(made, code_of(made), signature)


def doubles(*values):
    return (ctypes.c_double * len(values))(*values)


def address(array):
    return ctypes.cast(array, ctypes.c_void_p)


def test_numbers_in_their_own_types():
    made = program(["float64", "float32", "float64"], ["float64"], polynomial)
    p = pointer_of(made)
    assert p.function(1.0, 0.5, 3.0) == 1.0 + 2 * 0.5 + 4 * 3.0
    assert p.address == ctypes.cast(p.function, ctypes.c_void_p).value
    single = pointer_of(program(["float32"], ["float32"], polynomial))
    assert single.function(0.1) == np.float32(0.1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64"])
def test_integers_are_returned(dtype):
    made = program(
        ["float64", dtype], [dtype], lambda m, f: f.write(m.outputs[0], f.read(m.inputs[1]))
    )
    p = pointer_of(made)
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max, 3)
    for value in limits:
        assert p.function(0.0, value) == value


def test_written_out_doubles():
    made = program(["float64"] * 2, ["float64"], polynomial)
    assert pointer_of(made, "double(double, double)").function(1.0, 2.0) == 5.0
    for wrong in ("double(double)", "double(double, double, double)", "float(float)", "", "what"):
        with pytest.raises(ArgumentError, match="signature"):
            pointer_of(made, wrong)


def test_numbers_in_a_row():
    made = program(["float64", "float32", "float64"], ["float64"], polynomial)
    p = pointer_of(made, "double(int, double*)")
    assert p.function(3, doubles(1.0, 0.5, 3.0)) == 14.0
    for count in (-1, 0, 2, 4):
        assert math.isnan(p.function(count, doubles(1.0, 0.5, 3.0, 4.0)))


def test_numbers_in_a_row_and_in_data():
    made = program(["float64", "float32", "float64"], ["float64"], polynomial)
    p = pointer_of(made, "double(int, double*, void*)")
    row, data = doubles(1.0, 0.5, 3.0), doubles(0.5, 3.0)
    assert p.function(3, row, None) == 14.0
    assert p.function(1, row, address(data)) == 14.0
    assert p.function(0, None, address(row)) == 14.0
    for count in (-1, 4):
        assert math.isnan(p.function(count, row, address(data)))
    one = pointer_of(made, "double(double, void*)")
    assert one.function(1.0, address(data)) == 14.0


def test_an_array_in_a_row():
    made = program(["float64[n]"], ["float64"], row_sum)
    p = pointer_of(made, "double(int, double*)")
    assert p.function(4, doubles(1.0, 2.0, 3.0, 4.0)) == 10.0
    assert math.isnan(p.function(0, doubles(1.0)))
    assert math.isnan(p.function(-1, doubles(1.0)))
    with_data = program(["float64[3]", "float64", "float64"], ["float64"], row_sum)
    p = pointer_of(with_data, "double(int, double*, void*)")
    assert p.function(3, doubles(1.0, 2.0, 3.0), address(doubles(0.5, 4.0))) == 12.0
    assert math.isnan(p.function(2, doubles(1.0, 2.0), address(doubles(0.5, 4.0))))
    with pytest.raises(ArgumentError, match="arrays"):
        pointer_of(with_data, "double(int, double*)")


def test_arrays_in_data():
    """Arrays of fixed shapes follow each other in the data."""
    f = wg.jit(lambda x, s, a, t: x * s + np.sum(a * np.array([[1.0, 2.0], [3.0, 4.0]])) + t)
    number, matrix = wg.spec(()), wg.spec((2, 2))
    one = f.address(number, number, matrix, number, signature="double(double, void*)")
    data = doubles(3.0, 1.0, 0.0, 0.0, 2.0, 0.25)
    assert one.function(2.0, address(data)) == 6.0 + 9.0 + 0.25
    row = f.address(number, number, matrix, number, signature="double(int, double*, void*)")
    assert row.function(2, doubles(2.0, 3.0), address(doubles(1.0, 0.0, 0.0, 2.0, 0.25))) == 15.25
    assert math.isnan(row.function(3, doubles(2.0, 3.0, 1.0), address(data)))
    with pytest.raises(ArgumentError, match="fixed shapes"):
        wg.jit(lambda x, a: x + np.sum(a)).address(
            number, wg.spec((2, "n")), signature="double(double, void*)"
        )


def test_requirements_of_sizes():
    needs = (Requirement(dim("n-3"), False, "at least 3"),)
    made = program(["float64[n]"], ["float64"], row_sum, requirements=needs)
    p = pointer_of(made, "double(int, double*)")
    assert p.function(3, doubles(1.0, 2.0, 3.0)) == 6.0
    assert math.isnan(p.function(2, doubles(1.0, 2.0, 3.0)))


@pytest.mark.parametrize("strided", [(), {0}])
def test_arrays_by_address(strided):
    made = program(
        ["float32[n]", "float64"], ["float32[n]", "float64"], copy_inputs, strided=strided
    )
    p = pointer_of(made, "arrays")
    x, number = np.arange(5.0, dtype=np.float32), np.array(2.5)
    y, result = np.zeros(5, np.float32), np.zeros(())
    inputs = (ctypes.c_void_p * 2)(x.ctypes.data, number.ctypes.data)
    outputs = (ctypes.c_void_p * 2)(y.ctypes.data, result.ctypes.data)
    assert p.function(inputs, outputs, (ctypes.c_int64 * 1)(5)) == 0
    np.testing.assert_array_equal(y, x)
    assert result == 2.5


def test_no_result():
    assert math.isnan(pointer_of(program(["float64"], ["float64"], fails)).function(1.0))
    assert math.isnan(pointer_of(program(["float64"], ["float32"], fails)).function(1.0))
    assert pointer_of(program(["float64"], ["int16"], fails)).function(1.0) == -(2**15)
    made = program(["float64"], ["float64"], fails)
    assert math.isnan(pointer_of(made, "double(int, double*)").function(1, doubles(1.0)))
    assert pointer_of(made, "arrays").function(
        (ctypes.c_void_p * 1)(), (ctypes.c_void_p * 1)(), None
    )


def test_what_cannot_be_passed_is_refused():
    for inputs, outputs in (
        (["float64[n]"], ["float64"]),
        (["complex128"], ["float64"]),
        (["float64"], ["complex128"]),
        (["float64"], ["float64", "float64"]),
        (["float64"], []),
        (["float16"], ["float64"]),
    ):
        with pytest.raises(ArgumentError, match="arrays"):
            pointer_of(program(inputs, outputs, fails))
    for inputs, outputs in (
        (["int64"], ["float64"]),
        (["float64[n,m]"], ["float64"]),
        (["float64", "float64[n]"], ["float64"]),
        (["float32[n]"], ["float64"]),
        (["float64[n]"], ["float64[n]"]),
    ):
        with pytest.raises(ArgumentError, match="arrays"):
            pointer_of(program(inputs, outputs, fails), "double(int, double*, void*)")
    with pytest.raises(BackendError, match="stack"):
        pointer_of(program(["float64"], ["float64"], fails, slots=100_000))


def test_a_size_that_cannot_be_found_is_no_result():
    made = program(["float64[n*m]"], ["float64"], row_sum)
    p = pointer_of(made, "double(int, double*)")
    assert math.isnan(p.function(4, doubles(1.0, 2.0, 3.0, 4.0)))


def test_constants():
    def second(made, frame):
        place = frame.section.value(
            f"getelementptr double, ptr {frame.slot(made.constants[0][0])}, i64 1"
        )
        frame.write(made.outputs[0], frame.section.value(f"load double, ptr {place}"))

    made = program([], ["float64"], second, constants=(np.array([1.0, 2.0]),))
    function = pointer_of(made).function
    del made
    gc.collect()
    assert function() == 2.0


def square(made, frame):
    x = frame.read(made.inputs[0])
    frame.write(made.outputs[0], frame.section.value(f"fmul double {x}, {x}"))


def test_integrals_by_scipy():
    def integral(made, signature, *args, **more):
        function = pointer_of(made, signature).function
        return scipy.integrate.quad(scipy.LowLevelCallable(function, **more), *args)[0]

    one = program(["float64"], ["float64"], square)
    for signature in ("numbers", "double(double)", "double(int, double*)"):
        assert integral(one, signature, 0.0, 3.0) == pytest.approx(9.0)
    two = program(["float64", "float64"], ["float64"], polynomial)
    data = address(doubles(5.0))
    for signature in ("double(double, void*)", "double(int, double*, void*)"):
        found = integral(two, signature, 0.0, 2.0, user_data=data)
        assert found == pytest.approx(2.0 + 20.0)
    both = pointer_of(two, "double(int, double*)").function
    area, _ = scipy.integrate.nquad(scipy.LowLevelCallable(both), [(0.0, 1.0), (0.0, 2.0)])
    assert area == pytest.approx(0.5 * 2 + 2 * 2.0)
