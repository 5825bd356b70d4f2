"""Errors for conversions of tensors to plain data, with the code to use instead.

    conversion   a plain array was about to be made of a tensor: by NumPy, by SciPy, by somebody
    of_library   what is to be called in the place of a function of NumPy's or SciPy's
    refuse_as_key    a number that a dict or set would look for by its value
    setting      a number that decides shapes or branches: static_argnames

Which function of a library made the array is found in the calls between the user's line and here,
so that the message can name ours of the same name.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from wengert._engine.core.concretization import is_differentiated
from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.node import INPUT, Node, owner_of
from wengert._engine.core.recording import current_trace
from wengert.errors import ConversionError, TraceError, WengertError, at, user_line

from .numpy_protocols import FUNCTIONS
from .operand_conversion import SEQUENCES
from .suggested_code import written_instead

_NAMESPACES = {np: "np", np.linalg: "np.linalg", np.fft: "np.fft"}


def conversion(node: Node) -> WengertError:
    """The error for a plain array of a tensor, recorded or traced."""
    why = (
        f"a plain array was about to be made of {node.spec}, whose values are not known while a "
        "graph is built. "
        if node.is_traced
        else "a recorded tensor was about to become a plain array, which would lose its "
        "derivative silently. "
    )
    zeros = "np.zeros_like(x)" if node.is_traced else "np.zeros(n, like=x)"
    table = (
        "for table[i] of a plain array say wengert.numpy.take(table, i); " if node.is_traced else ""
    )
    number = setting(node)
    remedy = of_library()
    if remedy and node.is_traced:
        remedy += setting(node)
    elif remedy and "detach" not in remedy:
        remedy += "; where no derivative is wanted say x.detach().numpy()"
    remedy = remedy or (
        f"For a list of tensors use np.stack or wengert.numpy.array; {table}to write into a plain "
        f"array make it a tensor first, {zeros}; "
        + (
            f"and use functions that know tensors{number}"
            if node.is_traced
            else "where no derivative is wanted say x.detach().numpy()"
        )
    )
    cls = TraceError if node.is_traced else ConversionError
    return cls(f"{why}{remedy}{at(user_line())}.")


def setting(node: Node) -> str:
    """How to make the inputs of a traced number static; empty if they are arrays."""
    found: dict[str, None] = {}
    seen, stack = {node}, [node]
    while stack:
        line = stack.pop()
        if line.spec is None or getattr(line.spec, "shape", None) != ():
            return ""
        if line.op is INPUT and line.is_traced:
            if line.spec.dtype.kind not in "biu":
                return ""
            found[line.name or "n"] = None
        for a in line.args:
            if isinstance(a, Node) and a not in seen and a.is_traced:
                seen.add(a)
                stack.append(a)
    if not found:
        return ""
    names = repr(next(iter(found))) if len(found) == 1 else repr(list(found))
    return f"; if it is a setting with few values, wengert.jit(f, static_argnames={names})"


def refuse_as_key(x: Handle) -> None:
    """Raise if a number is used as the key of a dict, where it cannot be found by value.

    What Python hashes by value, and a dict holds by value, is found by identity here, so that
    `table.get(n, 0)` would silently give 0.  Arrays have no hash in NumPy, and no such meaning;
    variables and parameters, which were there before the function that runs, are kept by identity.

    Raises
    ------
    TraceError
        Its value is not known while a graph is built.
    ConversionError
        It is being differentiated.
    """
    node = x.node
    if node.value is None:
        if node.spec is None or node.spec.shape != () or _is_from_before(x):
            return
        raise TraceError(
            f"a dict or set was about to look for {node.spec} by its value, which is not known "
            "while a graph is built. For a table of numbers say wengert.numpy.take(array, i), for "
            "functions wengert.switch(i, [f, g], x), to choose one of two np.where(i == 1, a, b)"
            f"{setting(node)}{at(user_line())}."
        )
    if shape_of(x) == () and not _is_from_before(x) and is_differentiated(node):
        raise ConversionError(
            f"a dict or set was about to look for {node.spec}, which is being differentiated: "
            "tensors are compared by identity there, and no number would be found. Say "
            "table[x.detach().item()], whose derivative is zero, or id(x) where the tensor itself "
            f"is meant{at(user_line())}."
        )


def _is_from_before(x: Handle) -> bool:
    """Whether a tensor existed before the running function, or the caller is one of our modules."""
    node, asking = x.node, sys._getframe(3).f_globals.get("__name__")
    if owner_of(node) is x or str(asking).startswith("wengert."):
        return True
    if node.value is not None:
        return False
    # None while a graph is built by hand, whose inputs are fed as keys.
    open_session = current_trace()
    by_hand = node.info is not None and node.info.by_hand
    return open_session is None or by_hand or x in open_session.written


def of_library() -> str:
    """What to call instead of the function of NumPy or SciPy that was called; '' if none.

    It is asked where the error is made: two calls above the method that the library has called.
    """
    calls = _calls()
    if not any(package != "numpy" for package, _, _ in calls):
        instead = written_instead()
        if instead:
            return instead
    if any(path[:1] == ("ma",) for _, path, _ in calls):
        return "Masked arrays hold plain numbers only: choose with np.where(mask, value, x)"
    for package, path, name in calls:  # the outermost first
        if package == "numpy":
            return _of_numpy(name)
        if package == "scipy":
            found = _of_scipy(path, name)
            if found:
                return found
        if package == "pandas":
            return (
                "pandas keeps plain arrays only. Take the values out first: table.to_numpy() @ x, "
                "series.to_numpy() * x"
            )
    for package, path, name in calls:
        if package == "scipy":
            where = ".".join(("scipy", *[p for p in path if not p.startswith("_")]))
            return (
                f"{name} of {where} knows plain arrays only, and wengert has no counterpart. Where "
                "no derivative is wanted give it x.detach().numpy(); else give it a derivative "
                "with wengert.primitive"
            )
    return ""


def _calls() -> list[tuple[str, tuple[str, ...], str]]:
    """Functions of libraries between the user's line and here: package, module, name."""
    found = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        package, *path = str(frame.f_globals.get("__name__")).split(".")
        if package in ("numpy", "scipy", "pandas"):
            found += [(package, tuple(path), name) for name in _names(frame)]
        elif package != "wengert":
            break
        frame = frame.f_back
    return found[::-1]


def _names(frame: FrameType) -> list[str]:
    """Names of a call, the best one last: a class, what a decorator wraps."""
    name, local = frame.f_code.co_name, frame.f_locals
    if name.startswith("__") and "self" in local:
        return [name, type(local["self"]).__name__]
    if name in ("wrapper", "wrapped", "inner", "func"):
        return [f.__name__ for f in local.values() if isinstance(f, FunctionType)] or [name]
    return [name]


def _of_numpy(name: str) -> str:
    for module, short in _NAMESPACES.items():
        function = getattr(module, name, None)
        if function in FUNCTIONS and name not in SEQUENCES:
            ours = short.replace("np", "wengert.numpy")
            return (
                f"{short}.{name} converts its arguments before a tensor in them is asked. Say "
                f"{short}.{name}(np.stack([x, y])) for a list, or {ours}.{name} with the same "
                "arguments"
            )
    if name in ("RClass", "CClass"):
        short = name[0].lower() + "_"
        return f"For np.{short}[x, y] say wengert.numpy.{short}[x, y], or np.concatenate"
    return ""


def _of_scipy(path: tuple[str, ...], name: str) -> str:
    """The name of our function, if there is one of that name."""
    parts = [p for p in path if not p.startswith("_")]
    if not parts:  # a decorator: of SciPy's linear algebra
        parts = ["linalg"]
    while parts:
        module = ".".join(parts)
        if parts[0] == "sparse":
            return "Matrices of scipy.sparse know plain arrays only: make it dense, a.toarray() @ x"
        try:
            ours: Any = import_module(f"wengert.scipy.{module}")
        except ImportError:
            if module != "optimize":
                parts.pop()
                continue
            ours = None
        if name in getattr(ours, "__all__", ()) and not name.startswith("_"):
            return (
                f"scipy.{module}.{name} knows plain arrays only: call wengert.scipy.{module}.{name}"
                ", which takes the same arguments"
            )
        if module == "optimize":
            if name in import_module("wengert").optim.__all__:
                return (
                    f"scipy.optimize.{name} knows plain arrays only: call wengert.optim.{name}, "
                    "which takes the derivative itself"
                )
            return (
                f"scipy.optimize.{name} knows plain arrays only. Give it f(x) and wengert.grad(f) "
                "of plain arrays, outside of what is differentiated"
            )
        if module == "stats":
            return (
                "Distributions of scipy.stats know plain arrays only: import those of "
                "wengert.scipy.stats, which have the same names and methods"
            )
        return ""
    return ""
