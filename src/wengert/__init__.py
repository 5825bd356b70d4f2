"""wengert differentiates NumPy programs exactly and shows the graph that it differentiates.

grad, value_and_grad, vjp, jvp, linearize      derivatives of functions
jacobian, jacfwd, jacrev, hessian, hvp         matrices of derivatives
sparse_jacobian, sparse_hessian, sparsity      those with few entries, and where these are
checkpoint, stop_gradient, no_grad             what is remembered, what is passed
Tensor, tensor                                 arrays that remember how they were computed
vmap                                           many rows at once
custom_jvp, custom_vjp                         functions with derivatives of your own
scan, fori_loop, while_loop, cond, switch      loops and choices; map, associative_scan
jit                                            functions, compiled
trace, input, variable, spec, dim              graphs from functions, and by hand
Graph, computation, gradients                  what is built, run and derived
scope, policy, after, assume                   names for its lines, rules, order, known facts
explain, why, profile                          what runs where, and how long; why a gradient is so
save, load                                     graphs, parameters and arrays in files
named                                          arrays whose axes have names
numpy, scipy, nn, optim, data, extend, testing  submodules: operations, models, your own operations,
graphs, rewrite, backends, show, keep, axes    checks; what graphs are built, simplified, run, drawn
debug, random, compiling                       and kept by; values on their way, random numbers
set_threads, get_threads                       how many processors native functions use
memory, cache                                  what native code keeps: memory, files
compat                                         programs written for HIPS autograd
"""

import importlib
from typing import Any

from . import numpy, ops
from .autodiff.batch import vmap
from .autodiff.checkpoint import checkpoint
from .autodiff.directional import jvp, linearize, vjp
from .autodiff.matrices import hessian, hvp, jacfwd, jacobian, jacrev
from .autodiff.overflows import REWRITING
from .autodiff.transforms import grad, stop_gradient, value_and_grad
from .core.foreign_names import PACKAGE, missing
from .core.late import DUNDERS, FAMILIES
from .core.policy import policy
from .core.recording import enable_grad, is_recording, no_grad, note_lines
from .core.size_text import dim
from .core.tracing import scope
from .errors import WengertError
from .tensor import Tensor, tensor

# Imported at first use.
SUBMODULES = [
    *"axes backends cache compat compiling control data debug errors extend graphs keep".split(),
    *"memory nn onnx optim random rewrite scipy show sparse testing".split(),
]
# Operations that are registered at first use.
REWRITING.append("wengert.rewrite.overflows")
FAMILIES += ["wengert.scipy.families", "wengert.ops.convolution", "wengert.ops.pooling"]
ELSEWHERE = {
    "after": "ops.effects",
    "assume": "rewrite",
    **dict.fromkeys("jit profile".split(), "compiling"),
    "primitive": "extend",
    "named": "axes",
    "check_grads": "testing",
    "check_op": "testing",
    **dict.fromkeys("Graph computation gradients input spec trace variable".split(), "graphs"),
    **dict.fromkeys("explain why".split(), "graphs"),
    **dict.fromkeys("sparse_hessian sparse_jacobian sparsity".split(), "sparse"),
    **dict.fromkeys(
        "associative_scan cond custom_jvp custom_vjp fori_loop map scan switch while_loop".split(),
        "control",
    ),
    **dict.fromkeys("get_threads set_threads".split(), "backends.llvm.runtime.threads"),
    **dict.fromkeys("save load".split(), "graphs"),  # which makes the graphs that are loaded
}

__version__ = "0.1.0.dev0"

# Without `input` and `map`, which would hide Python's own; the lazy names are in it too.
__all__ = [
    "Graph",
    "Tensor",
    "WengertError",
    "after",
    "associative_scan",
    "assume",
    "checkpoint",
    "computation",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "dim",
    "enable_grad",
    "explain",
    "fori_loop",
    "get_threads",
    "grad",
    "gradients",
    "hessian",
    "hvp",
    "is_recording",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linearize",
    "load",
    "named",
    "no_grad",
    "note_lines",
    "numpy",
    "ops",
    "policy",
    "profile",
    "save",
    "scan",
    "scope",
    "set_threads",
    "sparse_hessian",
    "sparse_jacobian",
    "sparsity",
    "spec",
    "stop_gradient",
    "switch",
    "tensor",
    "trace",
    "value_and_grad",
    "variable",
    "vjp",
    "vmap",
    "while_loop",
    "why",
]


def __getattr__(name: str) -> Any:
    if name in SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in ELSEWHERE:
        return getattr(importlib.import_module(f"{__name__}.{ELSEWHERE[name]}"), name)
    raise missing(f"module {__name__!r}", name, PACKAGE)


def __dir__() -> list[str]:
    return sorted({*__all__, *SUBMODULES, *ELSEWHERE, *DUNDERS})
