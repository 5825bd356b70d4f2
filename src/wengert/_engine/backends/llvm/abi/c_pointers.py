"""C function pointers to native functions, for libraries that accept them.

SciPy's `LowLevelCallable` (used by integrate.quad, nquad and others), functions compiled by Numba,
and ctypes can call these without Python.  A small wrapper fills the frame and calls the kernel of
the program; it has one of these signatures:

    numbers                        R f(A, B, ...)      one argument for each input, one result
    double(double, void*)          the first input; the pointer is to the others, as doubles:
                                   numbers, and arrays of fixed shapes
    double(int, double*)           all inputs as an array of doubles: numbers, or one 1-d array
    double(int, double*, void*)    the same; the pointer is to the inputs that are not in the array
    arrays                         int64 f(void **inputs, void **outputs, int64 *sizes)
    ipopt f, g, jac_g, h           the callbacks of Ipopt (ipopt_callbacks.py)
    logp, rhs, filter ...          those of samplers, solvers and filters (vector_callbacks.py)

`arrays` works for all programs: pointers to the C-contiguous data of each input and each output,
and the symbolic sizes in alphabetical order.  Addresses must not be null and must be aligned;
lengths of arrays cannot be checked.

The function cannot raise.  If a run fails (an index out of range, a singular matrix), or the
lengths are not those that the program was compiled for, floating-point results are NaN, others the
least number of their dtype; `arrays` returns the status, 0 for success.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, BackendError, at, user_line

from ..ir import execution_engine
from ..ir.execution_engine import Code
from ..ir.ir_builder import ModuleBuilder, Name
from ..ir.llvm_types import in_memory, is_supported, literal, part_of
from . import ipopt_callbacks, vector_callbacks
from .arguments_and_results import lengths as check_lengths
from .ipopt_callbacks import FrameBuilder
from .ports import CallInterface, Port
from .vector_callbacks import VectorBuilder

_DOUBLES = {
    "double(double,void*)": [("double", "x"), ("ptr", "data")],
    "double(int,double*)": [("i32", "count"), ("ptr", "row")],
    "double(int,double*,void*)": [("i32", "count"), ("ptr", "row"), ("ptr", "data")],
}
_ARRAYS = [("ptr", "inputs"), ("ptr", "outputs"), ("ptr", "sizes")]
_C = {
    "i32": ctypes.c_int,
    "double": ctypes.c_double,
    "row": ctypes.POINTER(ctypes.c_double),
    "ptr": ctypes.c_void_p,
}
_SLOTS = 65536  # longer frames do not fit on the stack


@dataclass(frozen=True)
class Pointer:
    """A C function that runs a program.

    Attributes
    ----------
    address : int
        Valid while `function` is alive, which owns the code and the constants.
    function : ctypes function
        Its argument and result types are set, for `scipy.LowLevelCallable` and Numba.
    signature : str
    callbacks : HostCallbacks or None
        Has the error of a run that a host callback ended.
    declaration : str
        The C type of the pointer for callbacks of vectors, for `cffi.FFI.cast`.
    """

    address: int
    function: Any
    signature: str
    callbacks: Any = None
    declaration: str = ""


def pointer(
    program: CallInterface, code: Code, signature: str = "numbers", library: Any = None
) -> Pointer:
    """A C function pointer.

    Parameters
    ----------
    program : CallInterface
    code : Code
        The module with the function ``kernel`` of the program, in memory.
    signature : str
        One of the forms listed above; spaces do not matter.  ``numbers`` may be spelled out, as
        ``double(double, double)``.
    library : ctypes.CDLL, optional
        SUNDIALS, for its forms.

    Raises
    ------
    ArgumentError
        The signature is unknown, or cannot pass the inputs and outputs of the program.
    BackendError
        The frame of the program does not fit on the stack.

    Notes
    -----
    The function does not need the GIL (host callbacks acquire it for themselves), and any number of
    threads may call it at once. Compiling it takes a few milliseconds.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.backends import backend
    >>> square = backend("llvm").address(wg.trace(np.square)(wg.spec(())))
    >>> square.function(3.0)
    9.0
    >>> from scipy import LowLevelCallable, integrate
    >>> round(integrate.quad(LowLevelCallable(square.function), 0.0, 3.0)[0], 12)
    9.0
    """
    form = signature.replace(" ", "")
    if program.slots > _SLOTS:
        raise BackendError(
            f"the program needs a frame of {program.slots} slots, too many for the stack of a C "
            f"function. Call it through Python{at(user_line())}."
        )
    if form in vector_callbacks.FORMS:
        return _vectors(program, code, form, library)
    if form == "arrays":
        arguments, result = _ARRAYS, "i64"
        types: Any = [ctypes.POINTER(ctypes.c_void_p)] * 2 + [ctypes.POINTER(ctypes.c_int64)]
        restype: Any = ctypes.c_int64
    elif form in ipopt_callbacks.FORMS:
        fits = _are_for_ipopt(program, ipopt_callbacks.given_inputs(form))
        _refuse_unless(fits, program, signature, "arrays and numbers of doubles of known lengths")
        arguments, result = ipopt_callbacks.FORMS[form], "i32"
        types = [
            _C["row" if kind == "ptr" and name != "data" else kind] for kind, name in arguments
        ]
        restype = ctypes.c_bool
    elif form in _DOUBLES:
        fits = _are_floats(program, "void" in form)
        passes = (
            "doubles: an array as the first input, and after it, only by void*, numbers and "
            "float64 arrays of fixed shapes"
        )
        _refuse_unless(fits, program, signature, passes)
        arguments, result = _DOUBLES[form], "double"
        types = [_C["row" if name == "row" else kind] for kind, name in arguments]
        restype = ctypes.c_double
    else:
        if form != "numbers" and not form.startswith("double("):
            raise _unknown(signature)
        _refuse_unless(_are_numbers(program), program, signature, "0-d numbers")
        arguments = [(in_memory(p.spec.dtype), f"x{k}") for k, p in enumerate(program.inputs)]
        result = in_memory(program.outputs[0].spec.dtype)
        types = [np.ctypeslib.as_ctypes_type(p.spec.dtype) for p in program.inputs]
        restype = np.ctypeslib.as_ctypes_type(program.outputs[0].spec.dtype)
        spelled_out = f"double({','.join(['double'] * len(types))})"
        if form != "numbers" and (form != spelled_out or {*types, restype} != {ctypes.c_double}):
            raise _unknown(signature)
    module = ModuleBuilder()
    builder = _PointerBuilder(module, program, code.address("kernel"), arguments, result)
    builder.build(form)
    return _made(module, (restype, types), program, code, signature)


def _vectors(program: CallInterface, code: Code, form: str, library: Any) -> Pointer:
    vector_callbacks.check(program, form)
    described = vector_callbacks.FORMS[form]
    module = ModuleBuilder()
    arguments = described.llvm()
    builder = VectorBuilder(module, program, code.address("kernel"), arguments, "i32")
    builder.symbols = vector_callbacks.addresses(form, library)
    builder.build(described)
    types = ctypes.c_int, described.ctypes()
    return _made(module, types, program, (code, library), form, described.declaration())


def _made(
    module: ModuleBuilder,
    types: tuple[Any, list[Any]],
    program: CallInterface,
    keeps: Any,
    signature: str,
    declaration: str = "",
) -> Pointer:
    """The function of a module, which keeps its code, the program and the constants alive."""
    own = Code(execution_engine.object_of(module.text(execution_engine.heading())), {})
    address = own.address("pointer")
    result, arguments = types
    function: Any = ctypes.CFUNCTYPE(result, *arguments)(address)
    function.keeps = own, keeps, program
    callbacks = getattr(program, "callbacks", None)
    return Pointer(address, function, signature, callbacks, declaration)


def _are_floats(program: CallInterface, has_data: bool) -> bool:
    ports = (*program.inputs, *program.outputs)
    floats = all(p.spec.dtype.str[1:] in ("f4", "f8") and p.spec.dtype.isnative for p in ports)
    rows = [p for p in program.inputs if p.spec.shape]
    in_row = all(_is_row(p) if p is program.inputs[0] else has_data and _is_fixed(p) for p in rows)
    in_row = in_row and (has_data or not rows or len(program.inputs) == 1)
    of_doubles = all(p.spec.dtype.itemsize == 8 for p in rows)
    single = len(program.outputs) == 1 and not program.outputs[0].spec.shape
    return floats and in_row and of_doubles and single


def _is_row(port: Port) -> bool:
    return port.spec.ndim == 1


def _is_fixed(port: Port) -> bool:
    return all(type(n) is int for n in port.spec.shape)


def _are_for_ipopt(program: CallInterface, given: int) -> bool:
    passed = (*program.inputs[:given], *program.outputs)
    doubles = all(p.spec.dtype == np.float64 for p in passed)
    return doubles and not program.sizes and len(program.outputs) == 1


def _are_numbers(program: CallInterface) -> bool:
    ports = (*program.inputs, *program.outputs)
    simple = all(
        is_supported(p.spec.dtype) and p.spec.dtype.kind != "c" and p.spec.dtype.str[1:] != "f2"
        for p in ports
    )
    return simple and len(program.outputs) == 1 and not any(p.spec.shape for p in ports)


def _refuse_unless(fits: bool, program: CallInterface, signature: str, passes: str) -> None:
    if not fits:
        inputs = ", ".join(str(p.spec) for p in program.inputs) or "nothing"
        outputs = ", ".join(str(p.spec) for p in program.outputs) or "nothing"
        raise ArgumentError(
            f"a function from {inputs} to {outputs} cannot be called as {signature!r}, which "
            f"passes {passes}. Use signature='arrays', which passes addresses{at(user_line())}."
        )


def _unknown(signature: str) -> ArgumentError:
    return ArgumentError(
        f"{signature!r} is not a supported signature of this function. Use 'numbers', "
        "'double(double, void*)', 'double(int, double*)', 'double(int, double*, void*)', 'arrays', "
        f"{', '.join(map(repr, vector_callbacks.FORMS))}{at(user_line())}."
    )


class _PointerBuilder(FrameBuilder):
    """Builds the C function."""

    def build(self, form: str) -> None:
        """Write the body of the function."""
        program = self._program
        if form == "arrays":
            self._addresses()
            status = self._run()
            self.write(f"ret i64 {status}")
            self._return_on_miss("i64 1")
            return
        if form in ipopt_callbacks.FORMS:
            self._ipopt(form)
            return
        if form in _DOUBLES:
            self._doubles(form)
        else:
            for k, port in enumerate(program.inputs):
                self._put(port.slot, self._cell(port, f"%x{k}"), "ptr")
        output = program.outputs[0]
        cell = self.function.slot("[16 x i8]", 16)
        self._put(output.slot, cell, "ptr")
        status = self._run()
        self.check(self.same(status, "0", "i64"))
        self.branch_on_checks()
        kind = in_memory(output.spec.dtype)
        value = self.load(kind, cell)
        if kind != self._result:
            value = self.value(f"fpext {kind} {value} to {self._result}")
        self.write(f"ret {self._result} {value}")
        self._return_on_miss(f"{self._result} {self._failure_value(form)}")

    def _failure_value(self, form: str) -> Name:
        """The result returned by a failed run."""
        dtype = np.dtype(np.float64) if form in _DOUBLES else self._program.outputs[0].spec.dtype
        if dtype.kind == "f":
            return literal(np.nan, dtype)
        return "0" if dtype.kind == "b" else str(np.iinfo(dtype).min)

    def _ipopt(self, form: str) -> None:
        """A callback of Ipopt: counted, timed, and false unless the result is finite."""
        self.refuse_if_stopped()
        inputs = self._program.inputs
        given = ipopt_callbacks.given_inputs(form)
        names = ["%x", "%factor", "%lambda"][:given]
        for k, port in enumerate(inputs):
            if k >= given:
                at = self.load("ptr", "%data", 8 * (ipopt_callbacks.FIRST_INPUT + k - given))
            else:
                at = self._cell(port, names[k]) if k == 1 else names[k]
            self._put(port.slot, at, "ptr")
            self._contiguous(port)
        self._put(self._program.outputs[0].slot, "%out", "ptr")
        begin = self.time()
        status = self._run()
        elapsed = self.value(f"sub i64 {self.time()}, {begin}")
        self.add(ipopt_callbacks.CALLS, "1")
        self.add(ipopt_callbacks.NANOSECONDS, elapsed)
        self.return_whether_finite(status, int(np.prod(self._program.outputs[0].spec.shape)))
        self._return_on_miss("i32 0")

    # ---- forms ---------------------------------------------------------------------------------

    def _addresses(self) -> None:
        program = self._program
        for name, ports in (("inputs", program.inputs), ("outputs", program.outputs)):
            if ports:
                self.check_address(f"%{name}")
                self.branch_on_checks()
            for k, port in enumerate(ports):
                place = self.load("ptr", f"%{name}", 8 * k)
                self.check_address(place, part_of(port.spec.dtype).itemsize)
                self._put(port.slot, place, "ptr")
        if program.sizes:
            self.check_address("%sizes")
            self.branch_on_checks()
        for k, size_name in enumerate(program.sizes):
            size = self.load("i64", "%sizes", 8 * k)
            self.check(self.value(f"icmp sge i64 {size}, 1"))
            self.lengths.bound[size_name] = size
        self._check_requirements()
        for port in program.inputs:
            self._contiguous(port)

    def _doubles(self, form: str) -> None:
        """Read the inputs from the array of doubles, then from the data pointer."""
        program = self._program
        inputs, has_data = list(program.inputs), "void" in form
        count: Name = "1"
        row = self.function.slot("double", 8)
        if form == "double(double,void*)":
            self.store("double", "%x", row)
        else:
            count, row = self.value("sext i32 %count to i64"), "%row"
        found: list[Any] = []
        first: Name = "0"  # elements of the row that belong to an array
        if inputs and inputs[0].spec.shape:
            port = inputs.pop(0)
            self._put(port.slot, row, "ptr")
            found = [(port.spec.shape[0], count)]
            first = count
        elif has_data:
            self.check(self.value(f"icmp ule i64 {count}, {len(inputs)}"))
        else:
            self.check(self.same(count, str(len(inputs)), "i64"))
        if not check_lengths(self, found, program.sizes):
            self.go("miss")
            self.label(self.fresh("never"))
            return
        self._check_requirements()
        if found:
            self._contiguous(program.inputs[0])
        k = 0
        for port in inputs:
            if port.spec.shape:
                self._put(port.slot, self._array(k, count, first), "ptr")
                self._contiguous(port)
                k += math.prod(port.spec.shape)
            else:
                self._put(port.slot, self._number(port, k, row, count, first, has_data), "ptr")
                k += 1

    def _array(self, k: int, count: Name, first: Name) -> Name:
        """The address of an array that begins with the k-th number, in `data`."""
        index = self.value(f"add i64 {first}, {k}")
        self.check(self.value(f"icmp sge i64 {index}, {count}"))
        data_index = self.value(f"sub i64 {index}, {count}")
        return self.value(f"getelementptr double, ptr %data, i64 {data_index}")

    def _number(
        self, port: Port, k: int, row: Name, count: Name, first: Name, has_data: bool
    ) -> Name:
        """The k-th number, in a stack slot: from the row if it is long enough, else from `data`."""
        index = self.value(f"add i64 {first}, {k}")
        source = self.value(f"getelementptr double, ptr {row}, i64 {index}")
        if has_data:
            data_index = self.value(f"sub i64 {index}, {count}")
            other = self.value(f"getelementptr double, ptr %data, i64 {data_index}")
            inside = self.value(f"icmp slt i64 {index}, {count}")
            source = self.value(f"select i1 {inside}, ptr {source}, ptr {other}")
        value = self.load("double", source)
        if port.spec.dtype.itemsize == 4:
            value = self.value(f"fptrunc double {value} to float")
        return self._cell(port, value)
