"""The user's expression, rewritten so that it accepts tensors, for error messages.

NumPy converts lists, and values written into a plain array, before it dispatches
(docs/design/0016-plain-numpy-lists.md).  The error message then shows the code to write: the
expression that is being evaluated is read from the user's source by its position, and rewritten
with `np.stack`, with wengert's function of the same name, or with the array converted to a tensor.

    written_instead    the suggestion, or '' without source or for other expressions
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
_WRITE = ("put", "place", "putmask", "copyto", "fill_diagonal", "put_along_axis")
_METHODS_THAT_WRITE = ("fill", "put", "setfield", "itemset")
_NOT_DISPATCHED = ("full",)  # NumPy does not look for tensors among their arguments
_OF_MATH = {
    "pow": "np.power",
    "fsum": "np.sum",
    "dist": "np.linalg.norm",
    "erf": "wengert.scipy.special.erf",
    "erfc": "wengert.scipy.special.erfc",
    "gamma": "wengert.scipy.special.gamma",
    "lgamma": "wengert.scipy.special.gammaln",
}
_LENGTH = 100  # limit of an expression in a message


def written_instead() -> str:
    """Code to use instead of the expression that the user's frame is evaluating."""
    frame, _ = user_frame()
    if frame is None:
        return ""
    text = _source(frame)
    if not text:
        return ""
    try:
        found = _Expression(text, frame).remedy()
    except (SyntaxError, ValueError, RecursionError):  # a fragment, or unusual characters
        return ""
    return found if len(found) <= 4 * _LENGTH else ""


def _source(frame: FrameType) -> str:
    """The source of the expression that a frame is evaluating, on one line."""
    code = frame.f_code
    place = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    first, last, start, end = place
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
        if isinstance(tree, ast.BinOp) and any(map(self._changed, (tree.left, tree.right))):
            left, right = (self._stacked(side) for side in (tree.left, tree.right))
            between = self._text.encode()[tree.left.end_col_offset : tree.right.col_offset]
            return f"Write {left}{between.decode()}{right}"
        return ""

    # ---- calls ---------------------------------------------------------------------------------

    def _of_call(self, call: ast.Call) -> str:
        function = self._value(call.func)
        if isinstance(call.func, ast.Call) and self._value(call.func.func) is np.vectorize:
            return f"Write wengert.vmap{self._arguments(call.func)}{self._arguments(call)}"
        if isinstance(function, np.vectorize):
            return f"Write wengert.vmap({self._of(call.func)}.pyfunc){self._arguments(call)}"
        if function is None:
            return self._of_method(call)
        name = getattr(function, "__name__", "")
        if getattr(math, name, None) is function:
            ours = _OF_MATH.get(name, f"np.{name}" if hasattr(np, name) else "")
            return f"Write {ours}{self._arguments(call)}" if ours else ""
        module = _module_of(function, name)
        if module is None or not call.args:
            return ""
        first = call.args[0]
        if function is np.arange:
            return "The length of np.arange depends on values: use np.linspace(a, b, n)"
        if function is np.fromiter:
            return f"Write np.stack(list({self._of(first)}))"
        if name in _WRITE and self._is_array(first):
            return self._made_a_tensor(first)
        ways = []
        if name in _CONVERSIONS and module is np:
            if self._changed(first):
                ways.append(self._stacked(first))
        elif _is_dispatched(function) and self._is_changed(call, name):
            ways.append(self._of(call.func) + self._arguments(call, stacked=True, inside=name))
        ours = module.__name__.replace("numpy", "wengert.numpy", 1)
        if getattr(_resolved(ours), name, function) is not function:
            ways.append(f"{ours}.{name}{self._arguments(call)}")
        return f"Write {', or '.join(ways)}" if ways else ""

    def _of_method(self, call: ast.Call) -> str:
        """The remedy for a method of a plain array or of a ufunc."""
        if not isinstance(call.func, ast.Attribute):
            return ""
        if isinstance(self._value(call.func.value), np.ufunc) and self._is_changed(call):
            return f"Write {self._of(call.func)}{self._arguments(call, stacked=True)}"
        if not self._is_array(call.func.value):
            return ""
        name, array = call.func.attr, self._of(call.func.value)
        if name in _METHODS_THAT_WRITE:
            return self._made_a_tensor(call.func.value)
        if getattr(np, name, None) not in FUNCTIONS:
            return ""
        return f"Write np.{name}({array}, {self._arguments(call, stacked=True)[1:]}"

    def _is_changed(self, call: ast.Call, inside: str = "") -> bool:
        """Whether the arguments of a call include a list of tensors."""
        return self._arguments(call) != self._arguments(call, stacked=True, inside=inside)

    def _arguments(self, call: ast.Call, stacked: bool = False, inside: str = "") -> str:
        """The arguments of a call in parentheses, with lists of tensors converted or not."""
        said = []
        for k, a in enumerate(call.args):
            if stacked and k == 0 and inside in SEQUENCES:
                said.append(self._items(a))
            else:
                said.append(self._stacked(a) if stacked else self._of(a))
        for word in call.keywords:
            value = self._stacked(word.value) if stacked else self._of(word.value)
            said.append(f"{word.arg}={value}" if word.arg else f"**{value}")
        return f"({', '.join(said)})"

    # ---- subscripts ----------------------------------------------------------------------------

    def _of_subscript(self, tree: ast.Subscript) -> str:
        base, index = tree.value, tree.slice
        joins = self._value(base)
        name = "r_" if joins is np.r_ else "c_" if joins is np.c_ else ""
        if name:
            ours = f"wengert.numpy.{name}[{self._of(index)}]"
            items = index.elts if isinstance(index, ast.Tuple) else [index]
            if any(isinstance(a, ast.Slice | ast.Constant) for a in items):
                return f"Write {ours}"
            join = "np.hstack" if name == "r_" else "np.column_stack"
            return f"Write {join}([{', '.join(map(self._stacked, items))}]), or {ours}"
        code = self._frame.f_code.co_code
        if opname[code[self._frame.f_lasti]].startswith("STORE"):
            if isinstance(base, ast.Attribute) and base.attr == "flat":
                base = base.value
            return self._made_a_tensor(base) if self._is_array(base) else ""
        if self._is_array(base) and not isinstance(index, ast.Slice):
            return f"Write wengert.tensor({self._of(base)})[{self._of(index)}]"
        return ""

    def _made_a_tensor(self, array: ast.expr) -> str:
        name = self._of(array)
        if not isinstance(array, ast.Name | ast.Attribute):
            return f"Convert {name} to a tensor first, wengert.tensor({name})"
        return (
            f"{name} is a plain array, which holds plain numbers. Convert it to a tensor first, "
            f"{name} = wengert.tensor({name}), or where it is created, np.zeros_like(x), "
            "np.zeros(n, like=x)"
        )

    # ---- lists of tensors ----------------------------------------------------------------------

    def _changed(self, tree: ast.expr) -> bool:
        """Whether an expression is a list of tensors."""
        return self._stacked(tree) != self._of(tree)

    def _stacked(self, tree: ast.expr) -> str:
        """An expression, with `np.stack` around lists that contain more than plain numbers."""
        text = self._of(tree)
        if isinstance(tree, ast.List | ast.Tuple):
            if not tree.elts or all(map(_is_plain, tree.elts)):
                return text
            if any(map(self._changed, tree.elts)):
                return f"np.stack({self._items(tree)})"
            is_nested = any(isinstance(a, ast.List | ast.Tuple | ast.ListComp) for a in tree.elts)
            return text if is_nested or self._are_settings(tree) else f"np.stack({text})"
        if isinstance(tree, ast.ListComp):
            is_nested = isinstance(tree.elt, ast.List | ast.Tuple | ast.ListComp)
            return text if is_nested else f"np.stack({text})"
        made = self._value(tree.func) if isinstance(tree, ast.Call) else None
        if made is list or made is tuple:
            return f"np.stack({text})"
        held = self._value(tree)
        if isinstance(held, list | tuple) and any(isinstance(a, Handle) for a in held):
            return f"np.stack({text})"
        return text

    def _items(self, tree: ast.expr) -> str:
        """A list of arrays, with `np.stack` around nested lists."""
        if not isinstance(tree, ast.List | ast.Tuple):
            return self._of(tree)
        return f"[{', '.join(map(self._stacked, tree.elts))}]"

    def _are_settings(self, tree: ast.List | ast.Tuple) -> bool:
        """Whether all items are names of values other than tensors: a shape, axes."""
        held = [self._value(a) if not _is_plain(a) else 0 for a in tree.elts]
        return all(a is not None and not isinstance(a, Handle) for a in held)

    # ---- names ---------------------------------------------------------------------------------

    def _of(self, tree: ast.expr) -> str:
        return ast.get_source_segment(self._text, tree) or ""

    def _value(self, tree: ast.expr) -> Any:
        """The value of a name, or of a name in a module; None for other expressions."""
        if isinstance(tree, ast.Name):
            frame = self._frame
            for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
                if tree.id in names:
                    return names[tree.id]
        if isinstance(tree, ast.Attribute):
            inside = self._value(tree.value)
            if isinstance(inside, ModuleType):
                return getattr(inside, tree.attr, None)
        return None

    def _is_array(self, tree: ast.expr) -> bool:
        """Whether it is a plain array: the value of a name, or a result of NumPy."""
        if isinstance(tree, ast.Call):
            made = self._value(tree.func)
            return made is not None and getattr(np, getattr(made, "__name__", ""), None) is made
        if isinstance(tree, ast.Attribute) and self._value(tree) is None:
            held = self._value(tree.value)
            return isinstance(vars(held).get(tree.attr), np.ndarray) if _has_dict(held) else False
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
    for module in (np, np.linalg, np.fft):
        if getattr(module, name, None) is function:
            return module
    return None


def _resolved(name: str) -> Any:
    """The wengert namespace with a given name."""
    space = NAMESPACE[0] if NAMESPACE else None
    for part in name.split(".")[2:]:
        space = getattr(space, part, None)
    return space
