"""Errors for conversions of tensors to plain data, with the code to use instead.

    conversion     conversion of a tensor to a plain array, by NumPy, SciPy or another library
    of_library     the replacement of a function of NumPy or SciPy
    refuse_as_key  raises if a number is used as the key of a dict or set
    is_number      whether a key is a constant number
    setting        a number that determines shapes or branches: static_argnames

The library function that converts the tensor is found in the call stack between the user's line and
this module, so that the message can name wengert's function of the same name.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.implicit_conversions import is_differentiated
from wengert._engine.core.node import INPUT, ConstantLeaf, Node, owner_of
from wengert._engine.core.recording import current_trace
from wengert.errors import ConversionError, TraceError, WengertError, at, user_line

from .numpy_protocols import FUNCTIONS
from .operand_conversion import SEQUENCES
from .suggested_code import suggestion

_NAMESPACES = {np: "np", np.linalg: "np.linalg", np.fft: "np.fft"}


def conversion(node: Node) -> WengertError:
    """The error for the conversion of a recorded or traced tensor to a plain array."""
    why = (
        f"{node.spec} cannot be converted to a plain array: its values are not known while a "
        "graph is built. "
        if node.is_traced
        else "a recorded tensor cannot be converted to a plain array, which would lose its "
        "derivative silently. "
    )
    zeros = "np.zeros_like(x)" if node.is_traced else "np.zeros(n, like=x)"
    table = (
        "for table[i] of a plain array use wengert.numpy.take(table, i); " if node.is_traced else ""
    )
    number = setting(node)
    remedy = of_library()
    if remedy and node.is_traced:
        remedy += setting(node)
    elif remedy and "detach" not in remedy:
        remedy += "; where no derivative is needed use x.detach().numpy()"
    remedy = remedy or (
        f"For a list of tensors use np.stack or wengert.numpy.array; {table}to write into a plain "
        f"array convert it to a tensor first, {zeros}; "
        + (
            f"and use functions that accept tensors{number}"
            if node.is_traced
            else "where no derivative is needed use x.detach().numpy()"
        )
    )
    cls = TraceError if node.is_traced else ConversionError
    return cls(f"{why}{remedy}{at(user_line())}.")


def setting(node: Node) -> str:
    """The advice to make the inputs of a traced number static; empty if they are arrays."""
    inputs: dict[str, None] = {}
    seen, stack = {node}, [node]
    while stack:
        current = stack.pop()
        if current.spec is None or getattr(current.spec, "shape", None) != ():
            return ""
        if current.op is INPUT and current.is_traced:
            if current.spec.dtype.kind not in "biu":
                return ""
            inputs[current.name or "n"] = None
        for operand in current.args:
            if isinstance(operand, Node) and operand not in seen and operand.is_traced:
                seen.add(operand)
                stack.append(operand)
    if not inputs:
        return ""
    names = repr(next(iter(inputs))) if len(inputs) == 1 else repr(list(inputs))
    return f"; if it is a setting with few values, wengert.jit(f, static_argnames={names})"


def refuse_as_key(x: Handle) -> None:
    """Raise if a number is used as a key of a dict, which would compare it by identity.

    Python numbers are hashed by value but tensors by identity, so that `table.get(n, 0)` would
    silently return 0.  Arrays have no hash in NumPy and are allowed; so are variables and
    parameters that existed before the running function.

    Raises
    ------
    TraceError
        The value is not known while a graph is built.
    ConversionError
        The number is being differentiated.
    """
    node = x.node
    if node.value is None:
        if node.spec is None or node.spec.shape != () or _is_from_before(x):
            return
        raise TraceError(
            f"{node.spec} cannot be the key of a dict or set: its value is not known "
            "while a graph is built. For a table of numbers use wengert.numpy.take(array, i), for "
            "functions wengert.switch(i, [f, g], x), for a selection np.where(i == 1, a, b)"
            f"{setting(node)}{at(user_line())}."
        )
    if shape_of(x) == () and not _is_from_before(x) and is_differentiated(node):
        raise ConversionError(
            f"{node.spec} cannot be the key of a dict or set while it is differentiated: "
            "tensors are compared by identity there, not by value. Use "
            "table[x.detach().item()], whose derivative is zero, or id(x) if the tensor itself "
            f"is meant{at(user_line())}."
        )


def is_number(x: Handle) -> bool:
    """Whether a tensor used as a key is a constant number, as an element of a plain array is."""
    node = x.node
    if node.value is None or not isinstance(node, ConstantLeaf) or shape_of(x) != ():
        return False
    caller = str(sys._getframe(2).f_globals.get("__name__"))
    return owner_of(node) is not x and not caller.startswith("wengert.")


def _is_from_before(x: Handle) -> bool:
    """Whether a tensor existed before the running function, or the caller is in wengert."""
    node, caller = x.node, sys._getframe(3).f_globals.get("__name__")
    if owner_of(node) is x or str(caller).startswith("wengert."):
        return True
    if node.value is not None:
        return False
    # None while a graph is built by hand, whose inputs are fed as keys.
    open_session = current_trace()
    by_hand = node.info is not None and node.info.by_hand
    return open_session is None or by_hand or x in open_session.written


def of_library() -> str:
    """The advice for the function of NumPy or SciPy that was called; '' if none.

    Called where the error is created: two frames above the method that the library called.
    """
    calls = _calls()
    if not any(package != "numpy" for package, _, _ in calls):
        suggested = suggestion()
        if suggested:
            return suggested
    if any(path[:1] == ("ma",) for _, path, _ in calls):
        return "Masked arrays accept plain numbers only: select with np.where(mask, value, x)"
    for package, path, name in calls:  # the outermost first
        if package == "numpy" and path[:1] == ("polynomial",):
            return _of_series(calls)
        if package == "numpy":
            return _of_numpy(name)
        if package == "scipy":
            advice = _of_scipy(path, name)
            if advice:
                return advice
        if package == "pandas":
            return (
                "pandas accepts plain arrays only. Use the values: table.to_numpy() @ x, "
                "series.to_numpy() * x"
            )
    for package, path, name in calls:
        if package == "scipy":
            where = ".".join(("scipy", *[p for p in path if not p.startswith("_")]))
            return (
                f"{name} of {where} accepts plain arrays only, and wengert has no counterpart. "
                "Where no derivative is needed pass x.detach().numpy(); else define a derivative "
                "with wengert.primitive"
            )
    return ""


def _calls() -> list[tuple[str, tuple[str, ...], str]]:
    """Library functions on the stack between the user's line and here: package, module, name."""
    calls = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        package, *path = str(frame.f_globals.get("__name__")).split(".")
        if package in ("numpy", "scipy", "pandas"):
            calls += [(package, tuple(path), name) for name in _names(frame)]
        elif package != "wengert":
            break
        frame = frame.f_back
    return calls[::-1]


def _names(frame: FrameType) -> list[str]:
    """Names of a call, the most specific last: a class, the function that a decorator wraps."""
    name, local_values = frame.f_code.co_name, frame.f_locals
    if name.startswith("__") and "self" in local_values:
        return [name, type(local_values["self"]).__name__]
    if frame.f_globals["__name__"] == "numpy.polynomial._polybase":  # methods of the classes
        return [name, *[c.__name__ for c in (local_values.get("cls"),) if isinstance(c, type)]]
    if name in ("wrapper", "wrapped", "inner", "func"):
        return [f.__name__ for f in local_values.values() if isinstance(f, FunctionType)] or [name]
    return [name]


def _of_numpy(name: str) -> str:
    """The advice for a function of NumPy that does not dispatch on lists of tensors."""
    for module, short in _NAMESPACES.items():
        function = getattr(module, name, None)
        if function in FUNCTIONS and name not in SEQUENCES:
            ours = short.replace("np", "wengert.numpy")
            return (
                f"{short}.{name} converts its arguments before it dispatches on tensors. Use "
                f"{short}.{name}(np.stack([x, y])) for a list, or {ours}.{name} with the same "
                "arguments"
            )
    if name in ("RClass", "CClass"):
        short = name[0].lower() + "_"
        return f"For np.{short}[x, y] use wengert.numpy.{short}[x, y], or np.concatenate"
    return ""


def _of_series(calls: list[tuple[str, tuple[str, ...], str]]) -> str:
    """The advice for the classes and functions of `numpy.polynomial`."""
    polynomial = np.polynomial
    for _, path, name in calls:
        family = path[-1]
        cls: Any = getattr(polynomial, name, None)
        if hasattr(cls, "_val"):  # a class of series, or its base
            family = cls.__module__.rpartition(".")[2]
            prefix = cls._val.__name__.removesuffix("val")
            return (
                f"np.polynomial.{name} accepts plain arrays only: call the functions of "
                f"wengert.numpy.polynomial.{family} with the coefficients, {prefix}val(x, c), "
                f"{prefix}der(c), {prefix}mul(a, b); those of a series p are p.convert().coef"
            )
        if name in getattr(getattr(polynomial, family, None), "__all__", ()):
            return (
                f"np.polynomial.{family}.{name} does not dispatch on tensors: call "
                f"wengert.numpy.polynomial.{family}.{name}, which takes the same arguments"
            )
    return ""


def _of_scipy(path: tuple[str, ...], name: str) -> str:
    """The advice to call wengert's function of the same name, if there is one."""
    parts = [p for p in path if not p.startswith("_")]
    if not parts:  # a decorator of scipy.linalg
        parts = ["linalg"]
    while parts:
        module = ".".join(parts)
        if parts[0] == "sparse":
            return (
                "This function of scipy.sparse accepts plain arrays only: call that of "
                "wengert.scipy.sparse; make an array of its elements and their coordinates, "
                "csr_array((data, (row, col))), or assign to its lil_array"
            )
        try:
            ours: Any = import_module(f"wengert.scipy.{module}")
        except ImportError:
            if module != "optimize":
                parts.pop()
                continue
            ours = None
        if name in getattr(ours, "__all__", ()) and not name.startswith("_"):
            return (
                f"scipy.{module}.{name} accepts plain arrays only: call "
                f"wengert.scipy.{module}.{name}, which takes the same arguments"
            )
        if module == "optimize":
            if name in import_module("wengert").optim.__all__:
                return (
                    f"scipy.optimize.{name} accepts plain arrays only: call wengert.optim.{name}, "
                    "which computes the derivative itself"
                )
            return (
                f"scipy.optimize.{name} accepts plain arrays only. Pass f(x) and wengert.grad(f) "
                "of plain arrays, outside of differentiated functions"
            )
        if module == "stats":
            return (
                "Distributions of scipy.stats accept plain arrays only: use those of "
                "wengert.scipy.stats, which have the same names and methods"
            )
        return ""
    return ""
