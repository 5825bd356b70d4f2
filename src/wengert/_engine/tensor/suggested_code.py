"""The user's expression, rewritten so that it accepts tensors, for error messages.

NumPy converts lists, and values written into a plain array, before it dispatches
(docs/design/0016-plain-numpy-lists.md).  The error message then shows the code to write: the
expression that is being evaluated is read from the user's source by its position, and rewritten
with `np.stack`, with wengert's function of the same name, or with the array converted to a tensor.

    suggestion    the code, or '' without source and for other expressions
"""

from __future__ import annotations

import ast
import itertools
import linecache
import math
import re
from dis import opname
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle
from wengert.errors import user_frame

from .numpy_protocols import FUNCTIONS, NAMESPACE
from .operand_conversion import SEQUENCES

_CONVERSIONS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require")
_WRITING_FUNCTIONS = ("put", "place", "putmask", "copyto", "fill_diagonal", "put_along_axis")
_WRITING_METHODS = ("fill", "put", "setfield", "itemset")
_NOT_DISPATCHED = ("full",)  # NumPy does not look for tensors among their arguments
_MATH_REPLACEMENTS = {
    "pow": "np.power",
    "fsum": "np.sum",
    "dist": "np.linalg.norm",
    "erf": "wengert.scipy.special.erf",
    "erfc": "wengert.scipy.special.erfc",
    "gamma": "wengert.scipy.special.gamma",
    "lgamma": "wengert.scipy.special.gammaln",
}
_MAX_LENGTH = 100  # limit of an expression in a message


def suggestion() -> str:
    """Code to use instead of the expression that the user's frame is evaluating."""
    frame, _ = user_frame()
    if frame is None:
        return ""
    text = _source(frame)
    if not text:
        return ""
    try:
        code = _Expression(text, frame).remedy()
    except (SyntaxError, ValueError, RecursionError):  # a fragment, or unusual characters
        return ""
    return code if len(code) <= 4 * _MAX_LENGTH else ""


def _source(frame: FrameType) -> str:
    """The source of the expression that a frame is evaluating, on one line."""
    code = frame.f_code
    position = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    first, last, start, end = position
    if first is None or last is None or start is None or end is None:
        return ""
    lines = [
        linecache.getline(code.co_filename, k, frame.f_globals).encode()
        for k in range(first, last + 1)
    ]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return re.sub(r"\s*\n\s*", " ", b"".join(lines).decode())


class _Expression:
    """A user's expression, and the frame in which it is evaluated.

    Parameters
    ----------
    text : str
    frame : FrameType
    """

    def __init__(self, text: str, frame: FrameType) -> None:
        self._text = f"({text})"
        self._frame = frame
        self._tree = ast.parse(self._text, mode="eval").body

    def remedy(self) -> str:
        """The code to write instead, as a sentence without its period; '' if unknown."""
        tree = self._tree
        if isinstance(tree, ast.Call):
            return self._of_call(tree)
        if isinstance(tree, ast.Subscript):
            return self._of_subscript(tree)
        if isinstance(tree, ast.BinOp) and any(map(self._has_tensors, (tree.left, tree.right))):
            left, right = (self._stacked(side) for side in (tree.left, tree.right))
            between = self._text.encode()[tree.left.end_col_offset : tree.right.col_offset]
            return f"Write {left}{between.decode()}{right}"
        return ""

    # ---- calls ---------------------------------------------------------------------------------

    def _of_call(self, call: ast.Call) -> str:
        """The remedy for a call of a function."""
        function = self._value(call.func)
        if isinstance(call.func, ast.Call) and self._value(call.func.func) is np.vectorize:
            return f"Write wengert.vmap{self._arguments(call.func)}{self._arguments(call)}"
        if isinstance(function, np.vectorize):
            return f"Write wengert.vmap({self._source_of(call.func)}.pyfunc){self._arguments(call)}"
        if function is None:
            return self._of_method(call)
        name = getattr(function, "__name__", "")
        if getattr(math, name, None) is function:
            ours = _MATH_REPLACEMENTS.get(name, f"np.{name}" if hasattr(np, name) else "")
            return f"Write {ours}{self._arguments(call)}" if ours else ""
        module = _module_of(function, name)
        if module is None or not call.args:
            return ""
        first = call.args[0]
        if function is np.arange:
            return "The length of np.arange depends on values: use np.linspace(a, b, n)"
        if function is np.fromiter:
            return f"Write np.stack(list({self._source_of(first)}))"
        if name in _WRITING_FUNCTIONS and self._is_array(first):
            return self._convert_to_tensor(first)
        suggestions = []
        if name in _CONVERSIONS and module is np:
            if self._has_tensors(first):
                suggestions.append(self._stacked(first))
        elif _is_dispatched(function) and self._is_changed(call, name):
            suggestions.append(
                self._source_of(call.func) + self._arguments(call, stacked=True, inside=name)
            )
        ours = module.__name__.replace("numpy", "wengert.numpy", 1)
        if getattr(_resolved(ours), name, function) is not function:
            suggestions.append(f"{ours}.{name}{self._arguments(call)}")
        return f"Write {', or '.join(suggestions)}" if suggestions else ""

    def _of_method(self, call: ast.Call) -> str:
        """The remedy for a method of a plain array or of a ufunc."""
        if not isinstance(call.func, ast.Attribute):
            return ""
        if isinstance(self._value(call.func.value), np.ufunc) and self._is_changed(call):
            return f"Write {self._source_of(call.func)}{self._arguments(call, stacked=True)}"
        if not self._is_array(call.func.value):
            return ""
        name, array = call.func.attr, self._source_of(call.func.value)
        if name in _WRITING_METHODS:
            return self._convert_to_tensor(call.func.value)
        if getattr(np, name, None) not in FUNCTIONS:
            return ""
        return f"Write np.{name}({array}, {self._arguments(call, stacked=True)[1:]}"

    def _is_changed(self, call: ast.Call, inside: str = "") -> bool:
        """Whether the arguments of a call include a list of tensors."""
        return self._arguments(call) != self._arguments(call, stacked=True, inside=inside)

    def _arguments(self, call: ast.Call, stacked: bool = False, inside: str = "") -> str:
        """The source of the arguments of a call; if `stacked`, with lists of tensors converted."""
        arguments = []
        for k, a in enumerate(call.args):
            if stacked and k == 0 and inside in SEQUENCES:
                arguments.append(self._items(a))
            else:
                arguments.append(self._stacked(a) if stacked else self._source_of(a))
        for keyword in call.keywords:
            value = self._stacked(keyword.value) if stacked else self._source_of(keyword.value)
            arguments.append(f"{keyword.arg}={value}" if keyword.arg else f"**{value}")
        return f"({', '.join(arguments)})"

    # ---- subscripts ----------------------------------------------------------------------------

    def _of_subscript(self, tree: ast.Subscript) -> str:
        """The remedy for `np.r_`, `np.c_`, and for reading or writing elements of plain arrays."""
        base, index = tree.value, tree.slice
        joiner = self._value(base)
        name = "r_" if joiner is np.r_ else "c_" if joiner is np.c_ else ""
        if name:
            ours = f"wengert.numpy.{name}[{self._source_of(index)}]"
            items = index.elts if isinstance(index, ast.Tuple) else [index]
            if any(isinstance(a, ast.Slice | ast.Constant) for a in items):
                return f"Write {ours}"
            join = "np.hstack" if name == "r_" else "np.column_stack"
            return f"Write {join}([{', '.join(map(self._stacked, items))}]), or {ours}"
        code = self._frame.f_code.co_code
        if opname[code[self._frame.f_lasti]].startswith("STORE"):
            if isinstance(base, ast.Attribute) and base.attr == "flat":
                base = base.value
            return self._convert_to_tensor(base) if self._is_array(base) else ""
        if self._is_array(base) and not isinstance(index, ast.Slice):
            return f"Write wengert.tensor({self._source_of(base)})[{self._source_of(index)}]"
        return ""

    def _convert_to_tensor(self, array: ast.expr) -> str:
        """The advice to convert an array to a tensor before it is written to."""
        name = self._source_of(array)
        if not isinstance(array, ast.Name | ast.Attribute):
            return f"Convert {name} to a tensor first, wengert.tensor({name})"
        return (
            f"{name} is a plain array, which holds plain numbers. Convert it to a tensor first, "
            f"{name} = wengert.tensor({name}), or where it is created, np.zeros_like(x), "
            "np.zeros(n, like=x)"
        )

    # ---- lists of tensors ----------------------------------------------------------------------

    def _has_tensors(self, tree: ast.expr) -> bool:
        """Whether an expression is a list of tensors."""
        return self._stacked(tree) != self._source_of(tree)

    def _stacked(self, tree: ast.expr) -> str:
        """An expression, with `np.stack` around lists that contain more than plain numbers."""
        text = self._source_of(tree)
        if isinstance(tree, ast.List | ast.Tuple):
            if not tree.elts or all(map(_is_plain, tree.elts)):
                return text
            if any(map(self._has_tensors, tree.elts)):
                return f"np.stack({self._items(tree)})"
            is_nested = any(isinstance(a, ast.List | ast.Tuple | ast.ListComp) for a in tree.elts)
            return text if is_nested or self._are_settings(tree) else f"np.stack({text})"
        if isinstance(tree, ast.ListComp):
            is_nested = isinstance(tree.elt, ast.List | ast.Tuple | ast.ListComp)
            return text if is_nested else f"np.stack({text})"
        constructor = self._value(tree.func) if isinstance(tree, ast.Call) else None
        if constructor is list or constructor is tuple:
            return f"np.stack({text})"
        value = self._value(tree)
        if isinstance(value, list | tuple) and any(isinstance(a, Handle) for a in value):
            return f"np.stack({text})"
        return text

    def _items(self, tree: ast.expr) -> str:
        """A list of arrays, with `np.stack` around nested lists."""
        if not isinstance(tree, ast.List | ast.Tuple):
            return self._source_of(tree)
        return f"[{', '.join(map(self._stacked, tree.elts))}]"

    def _are_settings(self, tree: ast.List | ast.Tuple) -> bool:
        """Whether all items are names of values other than tensors: a shape, axes."""
        values = [self._value(a) if not _is_plain(a) else 0 for a in tree.elts]
        return all(a is not None and not isinstance(a, Handle) for a in values)

    # ---- names ---------------------------------------------------------------------------------

    def _source_of(self, tree: ast.expr) -> str:
        """The source of an expression."""
        return ast.get_source_segment(self._text, tree) or ""

    def _value(self, tree: ast.expr) -> Any:
        """The value of a name, or of a name in a module; None for other expressions."""
        if isinstance(tree, ast.Name):
            frame = self._frame
            for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
                if tree.id in names:
                    return names[tree.id]
        if isinstance(tree, ast.Attribute):
            module = self._value(tree.value)
            if isinstance(module, ModuleType):
                return getattr(module, tree.attr, None)
        return None

    def _is_array(self, tree: ast.expr) -> bool:
        """Whether it is a plain array: the value of a name, or a result of NumPy."""
        if isinstance(tree, ast.Call):
            function = self._value(tree.func)
            return (
                function is not None
                and getattr(np, getattr(function, "__name__", ""), None) is function
            )
        if isinstance(tree, ast.Attribute) and self._value(tree) is None:
            owner = self._value(tree.value)
            return isinstance(vars(owner).get(tree.attr), np.ndarray) if _has_dict(owner) else False
        return isinstance(self._value(tree), np.ndarray)


def _is_dispatched(function: Any) -> bool:
    """Whether NumPy dispatches on its arguments."""
    if isinstance(function, np.ufunc):
        return True
    return function in FUNCTIONS and function.__name__ not in _NOT_DISPATCHED


def _has_dict(x: Any) -> bool:
    return hasattr(x, "__dict__")


def _is_plain(tree: ast.expr) -> bool:
    """Whether it is a literal number."""
    if isinstance(tree, ast.UnaryOp):
        tree = tree.operand
    return isinstance(tree, ast.Constant)


def _module_of(function: Any, name: str) -> Any:
    """The namespace of NumPy that has a function of a given name."""
    for module in (np, np.linalg, np.fft):
        if getattr(module, name, None) is function:
            return module
    return None


def _resolved(name: str) -> Any:
    """The wengert namespace with a given name."""
    namespace = NAMESPACE[0] if NAMESPACE else None
    for part in name.split(".")[2:]:
        namespace = getattr(namespace, part, None)
    return namespace
