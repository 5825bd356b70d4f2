"""What depends on CPython's, NumPy's or SciPy's internals: CONTRIBUTING.md lists it.

Each row of the table names its tests, most of them here.  They compare what the code reads with
what the public interface says, and check that the fallback gives the same results; they fail first
when a new version of CPython, NumPy or SciPy changes a layout.
"""

import ctypes
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import wengert as wg
from wengert._engine.autodiff import eager_passes
from wengert._engine.backends import argument_conversion, interpreter, variable_updates
from wengert._engine.backends.llvm.abi import cpython_layout, guarded_entries
from wengert._engine.backends.llvm.runtime import library_symbols
from wengert._engine.core import array_states
from wengert._engine.core.handle import Handle

# ---- reference counts ----------------------------------------------------------------------------


def test_a_gradient_is_copied_only_if_something_else_refers_to_it():
    held = np.ones(3)
    assert eager_passes.owned([held])[0] is not held
    address = []

    def fresh():
        results = [np.ones(3)]
        address.append(results[0].ctypes.data)
        return results

    assert eager_passes.owned(fresh())[0].ctypes.data == address[0]
    twice = np.ones(3)
    results = [twice, twice]
    del twice
    first, second = eager_passes.owned(results)
    assert not np.shares_memory(first, second)


def test_results_of_a_run_are_copied_only_if_something_else_refers_to_them():
    held = np.ones(3)
    assert argument_conversion.own([held])[0] is not held
    results = [np.ones(3)]
    address = results[0].ctypes.data
    assert argument_conversion.own(results)[0].ctypes.data == address
    base = np.ones((4, 4))
    (row,) = argument_conversion.own([base[0]])
    assert not np.shares_memory(row, base)


def test_memory_of_the_interpreter_is_reused_only_if_nothing_refers_to_it():
    held = [np.empty(4)]
    assert interpreter._is_free(held, 0, (4,), np.float64)
    keep = held[0]
    assert not interpreter._is_free(held, 0, (4,), np.float64)
    del keep
    assert interpreter._is_free(held, 0, (4,), np.float64)


def test_variables_are_updated_in_place_only_if_nothing_refers_to_their_arrays():
    owner = Handle()
    owner.node = variable_updates.leaf(np.empty(1), owner)
    assert variable_updates._is_alone(owner, [owner.node.value], 0)
    keep = owner.node.value
    assert not variable_updates._is_alone(owner, [owner.node.value], 0)
    del keep
    assert variable_updates._is_alone(owner, [owner.node.value], 0)


def test_stores_copy_arrays_that_something_else_refers_to():
    array = np.empty(2)
    assert array_states.is_unshared(array)
    other = array
    assert not array_states.is_unshared(array)
    del other
    assert not array_states.is_unshared(array[:1])


def test_a_view_is_converted_only_if_nothing_else_refers_to_its_base():
    view = np.empty(3)[::-1]
    assert array_states.is_unshared_view(view)
    base = view.base
    assert not array_states.is_unshared_view(view)
    del base
    same = view
    assert not array_states.is_unshared_view(view)
    del same


# ---- layouts of CPython and NumPy ----------------------------------------------------------------


def test_objects_are_laid_out_as_the_entry_points_read_them():
    if sys.implementation.name == "cpython" and sys.maxsize > 2**32:
        assert cpython_layout._objects_are_known() and cpython_layout._arrays_are_known()
    array = np.zeros((2, 5), np.float32)[:, ::2]
    assert cpython_layout._word(array, cpython_layout.DATA) == array.ctypes.data
    address = cpython_layout._word(array, cpython_layout.STRIDES)
    assert tuple((ctypes.c_int64 * 2).from_address(address)) == array.strides
    assert ctypes.py_object.from_address(id(array) + cpython_layout.DESCR).value is array.dtype


def test_numbers_in_the_table_of_numpy_are_those_of_its_header():
    folder = Path(np.get_include()) / "numpy"
    header = (folder / "__multiarray_api.h").read_text(encoding="utf-8")
    numbers = {**cpython_layout.NUMPY, "_PyDataType_GetArrFuncs": library_symbols._TABLE_OF_DTYPE}
    for name, index in numbers.items():
        (found,) = re.findall(rf"#define {name} \\\n.*?\n\s*PyArray_API\[(\d+)\]", header)
        assert int(found) == index, name


@pytest.mark.parametrize("kind", library_symbols.SORTS)
def test_the_sorting_functions_of_numpy_sort(kind):
    values = np.array([3.0, 1.0, 2.0, 1.5])
    positions = np.arange(4)
    signature = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_ssize_t,
                                 ctypes.c_void_p)  # fmt: skip
    address = library_symbols.address_of(f"argsort.{kind}.float64")
    assert signature(address)(values.ctypes.data, positions.ctypes.data, 4, None) == 0
    assert positions.tolist() == [1, 3, 2, 0]


def test_the_loops_of_a_ufunc_are_found_in_its_structure():
    ufunc, dtypes = scipy.special.erfcx, (np.dtype(np.float64),) * 2
    _, function, data = library_symbols.loop(ufunc, dtypes)
    x, out = np.array([0.5, 2.0]), np.empty(2)
    pointers = (ctypes.c_void_p * 2)(x.ctypes.data, out.ctypes.data)
    counts, steps = (ctypes.c_ssize_t * 1)(2), (ctypes.c_ssize_t * 2)(8, 8)
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(function)
    run(*(ctypes.cast(p, ctypes.c_void_p) for p in (pointers, counts, steps)), data)
    np.testing.assert_array_equal(out, ufunc(x))
    assert library_symbols.loop(ufunc, (np.dtype(np.int8),) * 2) is None


def test_the_loops_of_the_fft_are_found():
    compiled, z = wg.jit(lambda z: np.fft.fft(z) * 2.0), np.arange(4.0) + 1j
    assert "call fft" in compiled.lower(z).loops
    np.testing.assert_array_equal(compiled(z), np.fft.fft(z) * 2.0)


def test_without_known_layouts_compiled_functions_run_by_python(monkeypatch):
    for module in (cpython_layout, guarded_entries):
        for name in ("is_known", "is_available"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, lambda: False)
    scale = np.array([2.0, 3.0])
    compiled = wg.jit(lambda x: np.sum(scale * x))
    assert compiled(np.ones(2)) == 5.0
    scale[0] = 4.0
    assert compiled(np.ones(2)) == 7.0
    assert type(compiled).__name__ == "Jitted" and type(compiled.__call__).__name__ == "method"


# ---- classes and modules that are replaced -------------------------------------------------------


def test_a_compiled_function_keeps_its_class_for_other_functions():
    first, second = wg.jit(lambda x: x + 1.0), wg.jit(lambda x: x * 2.0)
    for _ in range(3):
        assert first(np.ones(2))[0] == 2.0
    assert type(first) is not type(second)
    assert isinstance(first, type(second)), "what stands in its place is still a Jitted"
    for _ in range(3):
        assert second(np.full(2, 3.0))[0] == 6.0 and first(np.full(2, 3.0))[0] == 4.0
    assert first(np.ones(2, np.float32)).dtype == np.float32, "another dtype: traced again"
    first.clear_cache()
    assert type(first) is type(wg.jit(abs)) and type(first) in type(second).__mro__


def test_debug_is_a_module_that_can_be_called():
    import wengert.debug

    assert wengert.debug is sys.modules["wengert.debug"]
    with np.errstate(all="ignore"), wg.debug(nan=True), pytest.raises(wg.errors.NotFiniteError):
        np.log(wg.tensor([-1.0], requires_grad=True))
