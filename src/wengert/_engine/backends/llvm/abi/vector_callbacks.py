"""Callbacks of samplers, solvers and filters: C functions of vectors, an integer as the result.

    FORMS           the forms, by name
    VectorForm      a form: the arguments of the C function, and its results
    check           refuses programs that a form cannot call
    VectorBuilder   builds the C function

Each argument of a form is a number, the address of an input or output, or the length of one.  The
program may have further inputs, numbers and float64 arrays of fixed shapes, which are one after
another in the memory at `data`.  All is checked before the program runs: null and unaligned
addresses, lengths, and overlaps of outputs with other arrays.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import names_in
from wengert.errors import ArgumentError, at, user_line

from ..ir.ir_builder import Name
from .arguments_and_results import lengths as check_lengths
from .ipopt_callbacks import RAISED, FrameBuilder
from .ports import CallInterface, Port

_C = {
    "double": ("double", "double", ctypes.c_double),
    "size_t": ("size_t", "i64", ctypes.c_size_t),
    "intptr_t": ("intptr_t", "i64", ctypes.c_ssize_t),
    "int": ("int", "i32", ctypes.c_int),
    "doubles": ("double *", "ptr", ctypes.POINTER(ctypes.c_double)),
    "integers": ("intptr_t *", "ptr", ctypes.POINTER(ctypes.c_ssize_t)),
    "void": ("void *", "ptr", ctypes.c_void_p),
    "N_Vector": ("N_Vector", "ptr", ctypes.c_void_p),
    "SUNMatrix": ("SUNMatrix", "ptr", ctypes.c_void_p),
}
_VECTOR = ("N_VGetArrayPointer", "N_VGetLength")
_MATRIX = ("SUNDenseMatrix_Data", "SUNDenseMatrix_Rows", "SUNDenseMatrix_Columns")


@dataclass(frozen=True)
class VectorForm:
    """The arguments of a C function, and its results.

    Attributes
    ----------
    arguments : sequence of (str, str)
        The C type of each argument, and what it is: ``"x0"`` the first input, ``"y1"`` the second
        output, ``"nx0"`` the length of an input, ``"data"``, or ``"-"`` for one that is not used.
    success, failure, refused : int
        The results after a run, after a run that failed, and if the arguments cannot be.
    is_finite : bool
        Whether a run has failed if an element of an output is not finite.
    shapes : mapping from str to str
        Outputs that have the shape of an input: ``{"y1": "x0"}``; ``"()"`` for numbers.
    symbols : tuple of str
        Functions of the caller's library that read its vectors.
    """

    arguments: Sequence[tuple[str, str]]
    success: int = 0
    failure: int = 1
    refused: int = -1
    is_finite: bool = True
    shapes: Mapping[str, str] = field(default_factory=dict)
    symbols: tuple[str, ...] = ()

    def declaration(self) -> str:
        """The type of a pointer to the function, in C."""
        return f"int (*)({', '.join(_C[t][0] for t, _ in self.arguments)})"

    def llvm(self) -> list[tuple[str, str]]:
        """Types and names of the arguments in LLVM."""
        named = [n if n != "-" else f"unused{k}" for k, (_, n) in enumerate(self.arguments)]
        return [(_C[t][1], n) for (t, _), n in zip(self.arguments, named, strict=True)]

    def ctypes(self) -> list[Any]:
        """Types of the arguments in ctypes."""
        return [_C[t][2] for t, _ in self.arguments]

    def passed(self, letter: str) -> list[str]:
        """The names of the inputs ("x") or outputs ("y") that are arguments, in order."""
        return sorted(n for _, n in self.arguments if n[0] == letter)


_T, _DATA, _UNUSED = ("double", "x0"), ("void", "data"), ("N_Vector", "-")
FORMS = {
    "logp": VectorForm(
        [("size_t", "nx0"), ("doubles", "x0"), ("doubles", "y1"), ("doubles", "y0"), _DATA],
        shapes={"y0": "()", "y1": "x0"},
    ),
    "hvp": VectorForm(
        [("size_t", "nx0"), ("doubles", "x0"), ("doubles", "x1"), ("doubles", "y0"), _DATA],
        shapes={"x1": "x0", "y0": "x0"},
    ),
    "expand": VectorForm(
        [("size_t", "nx0"), ("size_t", "ny0"), ("doubles", "x0"), ("doubles", "y0"), _DATA],
        is_finite=False,
    ),
    "rhs": VectorForm([_T, ("doubles", "x1"), ("doubles", "y0"), _DATA]),
    "CVRhsFn": VectorForm(
        [_T, ("N_Vector", "x1"), ("N_Vector", "y0"), _DATA], shapes={"y0": "x1"}, symbols=_VECTOR
    ),
    "CVLsJacFn": VectorForm(
        [_T, ("N_Vector", "x1"), _UNUSED, ("SUNMatrix", "y0"), _DATA, *[_UNUSED] * 3],
        symbols=(*_VECTOR, *_MATRIX),
    ),
    "generic_filter": VectorForm(
        [("doubles", "x0"), ("intptr_t", "nx0"), ("doubles", "y0"), _DATA],
        success=1, failure=0, refused=0, is_finite=False, shapes={"y0": "()"},
    ),
    "generic_filter1d": VectorForm(
        [("doubles", "x0"), ("intptr_t", "nx0"), ("doubles", "y0"), ("intptr_t", "ny0"), _DATA],
        success=1, failure=0, refused=0, is_finite=False,
    ),
    "geometric_transform": VectorForm(
        [("integers", "x0"), ("doubles", "y0"), ("int", "ny0"), ("int", "nx0"), _DATA],
        success=1, failure=0, refused=0, is_finite=False,
    ),
}  # fmt: skip


def addresses(signature: str, library: Any) -> dict[str, int]:
    """The addresses of the functions of the caller's library that a form calls.

    Raises
    ------
    ArgumentError
        The library is not given, or lacks one.
    """
    found = {}
    for symbol in FORMS[signature].symbols:
        if library is None or not hasattr(library, symbol):
            lacks = "is not given" if library is None else f"has no function {symbol}"
            raise ArgumentError(
                f"signature={signature!r} reads vectors by functions of SUNDIALS, but the library "
                f"{lacks}. Pass it, library=ctypes.CDLL('libsundials_...'){at(user_line())}."
            )
        found[symbol] = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value or 0
    return found


def check(program: CallInterface, signature: str) -> None:
    """Refuse a program that a form cannot call.

    Raises
    ------
    ArgumentError
        It has other numbers of inputs and outputs, other dtypes, shapes, or lengths that the
        arguments of the C function do not tell.
    """
    form = FORMS[signature]
    ports = _ports(program)
    wanted = form.passed("x"), form.passed("y")
    outputs = [n for n in ports if n[0] == "y"]
    problem = ""
    if not set(wanted[0]) <= ports.keys() or outputs != wanted[1]:
        problem = f"which has {_count(wanted[0], 'input')} and {_count(wanted[1], 'output')}"
    else:
        problem = _problem(form, ports) or _unknown_sizes(program, form, ports)
    if problem:
        inputs = ", ".join(str(p.spec) for p in program.inputs) or "nothing"
        results = ", ".join(str(p.spec) for p in program.outputs) or "nothing"
        raise ArgumentError(
            f"a function from {inputs} to {results} cannot be called as {signature!r}, "
            f"{form.declaration()}, {problem}{at(user_line())}."
        )


def _ports(program: CallInterface) -> dict[str, Port]:
    inputs = {f"x{k}": p for k, p in enumerate(program.inputs)}
    return inputs | {f"y{k}": p for k, p in enumerate(program.outputs)}


def _count(names: Sequence[str], what: str) -> str:
    return f"{len(names)} {what}{'s' if len(names) != 1 else ''}"


def _problem(form: VectorForm, ports: Mapping[str, Port]) -> str:
    """Why the dtypes and shapes are not those of a form, or ""."""
    kinds = {n: t for t, n in form.arguments}
    for name, port in ports.items():
        spec = port.spec
        kind = kinds.get(name, "data")
        wanted = np.dtype(np.int64 if kind == "integers" else np.float64)
        if spec.dtype != wanted and (kind != "data" or spec.shape or spec.dtype != np.float32):
            return f"which passes {wanted}, not {spec.dtype} ({_shown(name)})"
        if kind == "double" and spec.shape:
            return f"which passes a number, not {spec} ({_shown(name)})"
        if (kind == "N_Vector" or f"n{name}" in kinds) and spec.ndim != 1:
            return f"which passes a vector, not {spec} ({_shown(name)})"
        if kind == "SUNMatrix" and spec.ndim != 2:
            return f"which passes a matrix, not {spec} ({_shown(name)})"
        if kind == "data" and names_in(spec.shape):
            return f"which passes further arrays of fixed shapes only, not {spec}"
    for name, other in form.shapes.items():
        shape = () if other == "()" else ports[other].spec.shape
        if ports[name].spec.shape != shape:
            return f"in which {_shown(name)} has the shape {Spec(shape, np.dtype(np.float64))}"
    return ""


def _shown(name: str) -> str:
    return f"{'input' if name[0] == 'x' else 'output'} {int(name[1:]) + 1}"


def _unknown_sizes(program: CallInterface, form: VectorForm, ports: Mapping[str, Port]) -> str:
    told = [ports[n[1:]].spec for _, n in form.arguments if n[0] == "n"]
    told += [ports[n].spec for t, n in form.arguments if t == "N_Vector" and n != "-"]
    known = set(names_in([n for spec in told for n in spec.shape]))
    unknown = [n for n in program.sizes if n not in known]
    if not unknown:
        return ""
    return f"whose arguments do not tell the size {unknown[0]}. Give shapes of integers"


class VectorBuilder(FrameBuilder):
    """Builds the C function of a form."""

    symbols: Mapping[str, int]  # addresses of functions of the caller's library

    def build(self, form: VectorForm) -> None:
        """Write the body of the function."""
        program = self._program
        ports = _ports(program)
        places, found = self._arguments(form, ports)
        for place in places.values():
            self.check_address(place)
        if not check_lengths(self, found, program.sizes):
            raise AssertionError("a size that no argument tells")
        self._check_requirements()
        self._check_overlaps(ports, places)
        further = [n for n in ports if n[0] == "x" and n not in places]
        self._read_data([ports[n] for n in further])
        for name, place in places.items():
            self._put(ports[name].slot, place, "ptr")
            if name[0] == "x":
                self._contiguous(ports[name])
        status = self._run()
        self._return_result(form, status, {n: places[n] for n in form.passed("y")}, ports)
        self._return_on_miss(f"i32 {form.refused}")

    # ---- arguments -----------------------------------------------------------------------------

    def _arguments(
        self, form: VectorForm, ports: Mapping[str, Port]
    ) -> tuple[dict[str, Name], list[tuple[Any, Name]]]:
        """The address of each input and output, and the lengths that arguments tell."""
        places: dict[str, Name] = {}
        found: list[tuple[Any, Name]] = []
        for kind, name in form.arguments:
            if name[0] == "n":
                number = f"%{name}"
                if kind == "int":
                    number = self.value(f"sext i32 {number} to i64")
                found.append((ports[name[1:]].spec.shape[0], number))
            elif kind == "double":
                places[name] = self._cell(ports[name], f"%{name}")
            elif kind in ("doubles", "integers"):
                places[name] = f"%{name}"
            elif kind in ("N_Vector", "SUNMatrix") and name != "-":
                self.check_address(f"%{name}")
                self.branch_on_checks()
                symbols = _VECTOR if kind == "N_Vector" else _MATRIX
                data, *lengths = symbols
                places[name] = self._call("ptr", data, f"%{name}")
                shape = ports[name].spec.shape
                shape = shape if kind == "N_Vector" else shape[::-1]  # it is stored by columns
                for length, symbol in zip(shape, lengths, strict=True):
                    found.append((length, self._call("i64", symbol, f"%{name}")))
        return places, found

    def _call(self, kind: str, symbol: str, argument: Name) -> Name:
        function = f"inttoptr (i64 {self.symbols[symbol]} to ptr)"
        return self.value(f"call {kind} {function}(ptr {argument})")

    def _check_overlaps(self, ports: Mapping[str, Port], places: Mapping[str, Name]) -> None:
        """Check that no output overlaps another array."""
        ends = {}
        for name, place in places.items():
            count = self.lengths.number(8 * math.prod(ports[name].spec.shape))
            ends[name] = self.value(f"getelementptr i8, ptr {place}, i64 {count}")
        names = list(places)
        for k, one in enumerate(names):
            for other in names[k + 1 :]:
                if "y" in (one[0], other[0]):
                    before = self.value(f"icmp ule ptr {ends[one]}, {places[other]}")
                    behind = self.value(f"icmp ule ptr {ends[other]}, {places[one]}")
                    self.check(self.value(f"or i1 {before}, {behind}"))

    def _read_data(self, ports: Sequence[Port]) -> None:
        """The inputs in the memory at `data`."""
        if not ports:
            return
        self.check_address("%data")
        self.branch_on_checks()
        k = 0
        for port in ports:
            place = self.at("%data", 8 * k)
            if port.spec.dtype.itemsize == 4:
                value = self.value(f"fptrunc double {self.load('double', place)} to float")
                place = self._cell(port, value)
            self._put(port.slot, place, "ptr")
            self._contiguous(port)
            k += math.prod(port.spec.shape)

    # ---- results -------------------------------------------------------------------------------

    def _return_result(
        self,
        form: VectorForm,
        status: Name,
        outputs: Mapping[str, Name],
        ports: Mapping[str, Port],
    ) -> None:
        """Return what a run means for the caller."""
        raised = self.same(status, str(RAISED), "i64")
        failed = self.value(f"select i1 {raised}, i32 {form.refused}, i32 {form.failure}")
        stopped = self.fresh("failed")
        self.unless(self.same(status, "0", "i64"), stopped)
        result = str(form.success)
        if form.is_finite:
            flag = self.function.slot("i1")
            self.write(f"store i1 true, ptr {flag}")
            for name, place in outputs.items():
                count = self.lengths.number(math.prod(ports[name].spec.shape))
                with self.section.loop("0", count) as (body, k):
                    element = body.value(f"getelementptr double, ptr {place}, i64 {k}")
                    value = body.value(f"load double, ptr {element}")
                    rest = body.value(f"fsub double {value}, {value}")
                    finite = body.value(f"fcmp oeq double {rest}, 0.0")
                    before = body.value(f"load i1, ptr {flag}")
                    body.write(f"store i1 {body.value(f'and i1 {before}, {finite}')}, ptr {flag}")
            found = self.load("i1", flag)
            result = self.value(f"select i1 {found}, i32 {form.success}, i32 {form.failure}")
        self.write(f"ret i32 {result}")
        self.label(stopped)
        self.write(f"ret i32 {failed}")
