"""Facts about a function, found by calling it: values, derivatives, batches, graphs, native code.

    facts       all of them, as a dictionary that can be saved
    Program     a call as a function of its floating arrays alone

What a fact says has been seen: "order 2" is that derivatives of both modes to second order agree
with differences of the function, "vmap" that a batch gives what a loop gives, "native"
that compiled code gives the same values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.autodiff.jvp_vjp import vjp
from wengert._engine.autodiff.vmap import vmap
from wengert._engine.backends.registry import backend
from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, dtype_of, value_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.graphs import trace
from wengert._engine.jit import jit
from wengert.errors import WengertError
from wengert.testing.grad_checks import check_grads

from .calls import Call

DTYPES = ("float16", "float32", "float64", "complex64", "complex128")
Facts = dict[str, Any]


# What is looked at of results of which a part is not determined, or is left over.
LOOKED_AT: dict[str, Callable[[Any], Any]] = {
    "basis": lambda made: made @ made.T.conj(),
    "upper": lambda made: np.triu(made[0]),
    "band": lambda made: made[1:],
    "significance": lambda made: (made.statistic, made.pvalue),
    "line": lambda made: (*made[:5], made.intercept_stderr),
    "directions": lambda made: (made.mean_direction, made.mean_resultant_length),
    "eigenvectors": lambda made: (made[0], made[1] * np.sign(made[1][:1])),
}


class Program:
    """A call of a function, as a function of the floating arrays in it, each of which counts once.

    Parameters
    ----------
    function : callable
    call : tuple
        Its arguments, and those by name.
    way : str
        ``"changed"``: it changes its first argument, which is what is looked at; ``"called"``: it
        makes what is called with the last argument; ``"symmetric 0 2"``: it is a function of
        symmetric matrices there, of which it may read one half; else a name of `LOOKED_AT`.
    """

    def __init__(self, function: Callable[..., Any], call: Call, way: str = "") -> None:
        self.function, self.way = function, way
        self.leaves, self.structure = pytree.flatten(call)
        places: dict[int, list[int]] = {}
        for i, x in enumerate(self.leaves):
            if isinstance(x, np.ndarray | np.inexact) and x.dtype.kind in "fc":
                places.setdefault(id(x), []).append(i)
        self.slots = list(places.values())
        self.inputs = [np.array(self.leaves[found[0]]) for found in self.slots]

    def __call__(self, *inputs: Any) -> Any:
        """What the call gives with these arrays."""
        full = list(self.leaves)
        for found, x in zip(self.slots, inputs, strict=True):
            for i in found:
                full[i] = x
        args, named = pytree.unflatten(self.structure, full)
        how, *places = self.way.split() or [""]
        for k in map(int, places):  # symmetric
            args = (*args[:k], (args[k] + args[k].T.conj()) * 0.5, *args[k + 1 :])
        if how == "called":
            return self.function(*args[:-1], **named)(args[-1])
        if how != "changed":
            return LOOKED_AT.get(how, lambda made: made)(self.function(*args, **named))
        target = args[0].copy()
        self.function(target, *args[1:], **named)
        return target


def facts(
    ours: Callable[..., Any], theirs: Any, call: Call, way: str, quick: bool, real: bool = False
) -> Facts:
    """What a function can do.

    Parameters
    ----------
    ours, theirs : callable
        Of wengert, and of NumPy or SciPy.
    call : tuple
        The arguments.
    way : str
        As of `Program`.
    quick : bool
        Without order two and native code, which take most of the time.
    real : bool
        It is a function of real numbers, though a formula may give something of complex ones.
    """
    program, reference = Program(ours, call, way), Program(theirs, call, way)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _facts(program, reference, quick, DTYPES[:3] if real else DTYPES)


def _facts(program: Program, reference: Program, quick: bool, dtypes: Sequence[str]) -> Facts:
    if not program.inputs:
        return {"kind": "no floating argument"}
    inputs = program.inputs
    try:
        want = reference(*inputs)
    except Exception:
        return {"kind": "not called"}
    try:
        tensors = [wrap(constant(x.copy() if x.ndim else x[()])) for x in inputs]
        got = program(*tensors)
        _compare(got, want)
    except Exception as error:
        kind = "refused" if isinstance(error, WengertError) else "fails"
        return {"kind": kind, "error": _said(error)}
    found: Facts = {"kind": "differentiable"}
    if not any(isinstance(part, Handle) for part in pytree.flatten(got)[0]):
        return _plain_answer(program, want)
    if not any(_is_floating(part) for part in pytree.flatten(got)[0]):
        found["kind"] = "steps"
    else:
        found["reverse"], found["forward"] = (_seen(_grads, program, 1, m) for m in ("rev", "fwd"))
        if found["reverse"] is True and _is_detached(program):
            found["kind"] = "steps"
        elif not quick:
            found["order 2"] = _seen(_grads, program, 2, "rev", "fwd")
    found["vmap"] = _seen(_batched, program)
    found["traced"] = _seen(_traced, program, want)
    if not quick:
        found["native"] = _native(program, want, found["kind"] == "differentiable")
    taken = [d for d in dtypes if _takes(reference, np.dtype(d))]
    found["dtypes"] = [d for d in taken if _keeps(program, reference, np.dtype(d), True)]
    others = [d for d in taken if d not in found["dtypes"]]
    found["other precision"] = [d for d in others if _keeps(program, reference, np.dtype(d), False)]
    found["of theirs"] = [d for d in others if d not in found["other precision"]]
    return found


def _plain_answer(program: Program, want: Any) -> Facts:
    """Of what gives no tensor: whether it is an answer, or numbers whose derivative is refused."""
    numbers = [
        part for part in pytree.flatten(want)[0] if isinstance(part, np.ndarray | np.inexact)
    ]
    if not any(part.dtype.kind in "fc" for part in numbers):
        return {"kind": "says"}
    try:
        vjp(program, *program.inputs)
    except WengertError as error:
        return {"kind": "refused", "error": _said(error)}
    return {"kind": "detached"}


def _seen(check: Callable[..., Any], *args: Any) -> Any:
    """True, or what was said instead."""
    try:
        check(*args)
    except Exception as error:
        return _said(error)
    return True


def _said(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else "nothing"
    return f"{type(error).__name__}: {text.split(' (at ')[0]}"[:160]


def _is_floating(part: Any) -> bool:
    return isinstance(part, Handle) and np.asarray(value_of(part)).dtype.kind in "fc"


def _compare(got: Any, want: Any, single: bool = False, strict: bool = True) -> None:
    """Raise if results differ: to rounding of single precision; not strict, in their precision."""
    gots, wants = pytree.flatten(got)[0], pytree.flatten(want)[0]
    assert len(gots) == len(wants), f"{len(gots)} results instead of {len(wants)}"
    for g, w in zip(gots, wants, strict=True):
        g, w = value_of(g), value_of(w)
        if isinstance(w, np.ndarray | np.generic | float | int | complex):
            g, w = np.asarray(g), np.asarray(w)
            assert g.shape == w.shape, f"shape {g.shape} instead of {w.shape}"
            same = g.dtype == w.dtype or (g.dtype.kind == w.dtype.kind and g.dtype.kind in "i")
            same = same or (not strict and g.dtype.kind == w.dtype.kind)
            assert same, f"{g.dtype} instead of {w.dtype}"
            tolerance = 2e-3 if single else 1e-11
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


def _floating(program: Program) -> Callable[..., Any]:
    def of(*inputs: Any) -> Any:
        return [part for part in pytree.flatten(program(*inputs))[0] if _is_floating(part)]

    return of


def _grads(program: Program, order: int, *modes: str) -> None:
    check_grads(program, program.inputs, order=order, modes=modes)


def _is_detached(program: Program) -> bool:
    """Whether no derivative arrives, where differences say that there is none."""
    out, pull = vjp(_floating(program), *program.inputs)
    bars = pull([_uneven(value_of(part)) for part in out])  # ones would not see what adds to zero
    return all(not np.any(value_of(bar)) for bar in bars)


def _uneven(x: Any) -> Any:
    return np.cos(1.0 + np.arange(np.size(x))).reshape(np.shape(x)).astype(np.asarray(x).dtype)


def _batched(program: Program) -> None:
    rows = [np.stack([x, x * 0.875, x * 1.0625]) for x in program.inputs]
    many = [part for part in pytree.flatten(vmap(program)(*rows))[0] if part is not None]
    for k in range(3):
        one = [
            part for part in pytree.flatten(program(*[r[k] for r in rows]))[0] if part is not None
        ]
        _compare([np.asarray(value_of(part))[k] for part in many], one)


def _traced(program: Program, want: Any) -> None:
    graph = trace(program)(*program.inputs)
    _compare(graph(*program.inputs), want)


def _native(program: Program, want: Any, differentiable: bool) -> Any:
    """``True``: native code, the derivative too; the names of host callbacks; or what was said."""
    try:
        _compare(jit(program)(*program.inputs), want)
        native: Any = backend("llvm")
        callbacks = {
            n.op.name for n in native.program(trace(program)(*program.inputs)).host_callbacks
        }
        if differentiable:
            graph = trace(_pulled(program))(*program.inputs)
            callbacks |= {n.op.name for n in native.program(graph).host_callbacks}
    except Exception as error:
        return _said(error)
    return sorted(callbacks) or True


def _pulled(program: Program) -> Callable[..., Any]:
    def pulled(*inputs: Any) -> Any:
        out, pull = vjp(_floating_traced(program), *inputs)
        return pull([np.ones_like(part) for part in out])

    return pulled


def _floating_traced(program: Program) -> Callable[..., Any]:
    def of(*inputs: Any) -> Any:
        parts: list[Any] = pytree.flatten(program(*inputs))[0]
        return [part for part in parts if isinstance(part, Handle) and dtype_of(part).kind in "fc"]

    return of


def _cast(program: Program, dtype: np.dtype[Any]) -> list[Any]:
    scale = 1.0 + 0.125j if dtype.kind == "c" else 1.0
    return [(x * scale).astype(dtype) for x in program.inputs]


def _takes(reference: Program, dtype: np.dtype[Any]) -> bool:
    try:
        made = reference(*_cast(reference, dtype))
    except Exception:
        return False
    parts = [np.asarray(part) for part in pytree.flatten(made)[0] if part is not None]
    return all(np.isfinite(p).all() for p in parts if p.dtype.kind in "fc")


def _keeps(program: Program, reference: Program, dtype: np.dtype[Any], strict: bool) -> bool:
    """Whether values are NumPy's in that dtype, and gradients of it."""
    inputs = _cast(program, dtype)
    single = dtype.name in ("float16", "float32", "complex64")
    try:
        tensors = [wrap(constant(x if x.ndim else x[()])) for x in inputs]
        _compare(program(*tensors), reference(*inputs), single, strict)
        out, pull = vjp(_floating(program), *inputs)
        bars = pull([np.ones_like(value_of(part)) for part in out]) if out else []
    except Exception:
        return False
    return all(value_of(bar).dtype == dtype for bar in bars)
