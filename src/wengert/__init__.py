"""Exact derivatives of NumPy programs, as graphs that can be transformed, compiled and saved.

grad, value_and_grad, vjp, jvp, linearize, jet  derivatives of functions
jacobian, jacfwd, jacrev, hessian, hvp          Jacobians, Hessians and their products
sparse_jacobian, sparse_hessian, sparsity       sparse derivatives and their patterns
checkpoint, stop_gradient, no_grad              memory of backward passes, detached values
Tensor, tensor                                  arrays that record operations
linear_transpose                                transposes of linear functions
vmap                                            functions of a batch
tree                                            nested containers: map, flatten, ravel
custom_jvp, custom_vjp                          functions with custom derivatives
custom_root, custom_linear_solve, implicit      solutions of equations
scan, fori_loop, while_loop, map, unroll        loops
cond, switch, associative_scan                  branches, prefix computations
jit                                             compiled functions
trace, input, variable, spec, dim               graphs from functions, and by hand
Graph, computation, gradients                   what is built, run and differentiated
scope, named_call, policy, after, assume        names of nodes, conversions, order, known properties
explain, why, profile                           what runs, why a gradient is zero or NaN, timings
save, load                                      graphs, parameters and arrays in files
named                                           arrays with named axes
numpy, scipy, random, sparse                    NumPy's and SciPy's names, random numbers
distributed, data_parallel                      programs of several processes (MPI)
nn, optim, data, onnx, compat                   models, training, other libraries
bijectors                                       constrained parameters, log-Jacobians
extend, testing                                 custom operations, checks of derivatives
graphs, rewrite, backends, show, keep, axes     graphs, passes, backends, visualization, files
debug, memory, cache                            debugging, recycled memory, compiled code on disk
set_threads, get_threads                        threads of compiled functions
device_put, device_get                          arrays of a graphics card
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from wengert._engine import ops as _ops  # registers the operations  # noqa: F401
from wengert._engine.autodiff.checkpoint import checkpoint
from wengert._engine.autodiff.grad import grad, stop_gradient, value_and_grad
from wengert._engine.autodiff.infinities import REWRITING
from wengert._engine.autodiff.jacobians import hessian, hvp, jacfwd, jacobian, jacrev
from wengert._engine.autodiff.jet import jet
from wengert._engine.autodiff.jvp_vjp import jvp, linearize, vjp
from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core.conversion_hook import CONVERTER, NAMESPACES
from wengert._engine.core.device_arrays import KERNELS
from wengert._engine.core.extra_packages import find_extras, is_missing
from wengert._engine.core.implicit_conversions import policy
from wengert._engine.core.lazy_import import DUNDERS, FAMILIES, CallableModule, PublicModule
from wengert._engine.core.loop_variants import LATE, PATTERNS
from wengert._engine.core.other_libraries import LABELLED, PACKAGE, missing
from wengert._engine.core.pytree import LATE_CONTAINERS
from wengert._engine.core.recording import enable_grad, is_recording, no_grad, note_lines
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.core.tracing import scope
from wengert._engine.tensor import Tensor, tensor
from wengert._engine.tensor.operand_conversion import OPERATORS

from . import numpy
from .errors import WengertError

if TYPE_CHECKING:  # what `__getattr__` and the table of public modules give at first use
    from wengert._engine.backends.llvm.runtime.settings import get_threads, set_threads

    from . import bijectors as bijectors
    from . import compat as compat
    from . import data as data
    from . import distributed as distributed
    from . import errors as errors
    from . import extend as extend
    from . import integrate as integrate
    from . import nn as nn
    from . import onnx as onnx
    from . import optim as optim
    from . import random as random
    from . import scipy as scipy
    from . import sparse as sparse
    from . import testing as testing
    from ._engine import backends as backends
    from ._engine import control_flow as _control_flow
    from ._engine import graphs as graphs
    from ._engine import jit as _jit
    from ._engine import named_arrays as _named_arrays
    from ._engine import rewrite as rewrite
    from ._engine import serialization as _serialization
    from ._engine import visualization as _visualization
    from ._engine.backends import cache as cache
    from ._engine.backends import memory as memory
    from ._engine.backends.cuda import device_get, device_put
    from ._engine.control_flow import (
        associative_scan,
        cond,
        custom_jvp,
        custom_vjp,
        fori_loop,
        scan,
        switch,
        while_loop,
    )
    from ._engine.control_flow import map as map
    from ._engine.core.trace_notes import named_call
    from ._engine.diagnostics.explain import explain
    from ._engine.diagnostics.why import why
    from ._engine.frontend import unroll
    from ._engine.graphs import (
        Graph,
        computation,
        gradients,
        linear_transpose,
        load,
        save,
        spec,
        trace,
        variable,
    )
    from ._engine.graphs import input as input
    from ._engine.implicit import custom_linear_solve, custom_root, implicit
    from ._engine.jit import jit, profile
    from ._engine.named_arrays import named
    from ._engine.ops.side_effects import after
    from ._engine.rewrite import assume
    from ._engine.tensor import tree as _tree
    from .compat import sklearn as _sklearn
    from .distributed import data_parallel
    from .extend import primitive as primitive
    from .sparse import sparse_hessian, sparse_jacobian, sparsity
    from .testing import check_grads as check_grads
    from .testing import check_op as check_op

    axes = _named_arrays
    compiling = _jit
    control = _control_flow
    debug: CallableModule  # a module that is called: `with wengert.debug(nan=True)`
    estimators = _sklearn
    keep = _serialization
    show = _visualization
    tree = _tree

find_extras()
# Packages that are imported at first use.
PACKAGES = (
    "bijectors compat data distributed errors extend integrate nn onnx optim random scipy sparse "
    "testing"
).split()
# Public modules of the engine: where each stands, and names that it has from elsewhere.
_EXPLAINED = {name: f"_engine.diagnostics.{name}" for name in ("explain", "why")}
ENGINE: dict[str, tuple[str, dict[str, str]]] = {
    "axes": ("_engine.named_arrays", {}),
    "backends": ("_engine.backends", {"Transformed": "extend"}),
    "cache": ("_engine.backends.cache", {}),
    "compiling": ("_engine.jit", {}),
    "control": ("_engine.control_flow", {}),
    "debug": ("_engine.diagnostics.debug", {}),
    "estimators": ("compat.sklearn", {}),
    "graphs": ("_engine.graphs", _EXPLAINED),
    "keep": ("_engine.serialization", {}),
    "memory": ("_engine.backends.memory", {}),
    "ops": ("_engine.ops", {}),
    "rewrite": ("_engine.rewrite", {}),
    "show": ("_engine.visualization", {}),
    "show.fits": ("_engine.visualization.fit_plots", {}),
    "show.training": ("_engine.visualization.training_plots", {}),
    "tree": ("_engine.tensor.tree", {}),
    "extend.op_library": ("extend.op_classes", {}),
    "extend.operator_arithmetic": ("extend.operator_classes", {}),
    "extend.operator_library": ("extend.operator_classes", {}),
    "extend.operators": ("extend.operator_classes", {}),
}
SUBMODULES = sorted([*PACKAGES, *(name for name in ENGINE if "." not in name)])
# Operations that are registered at first use.
REWRITING.append("wengert._engine.rewrite.rules.overflowed_values")
CONVERTER.append("wengert._engine.frontend")
OPERATORS.append("wengert.scipy.sparse")
LATE_CONTAINERS["scipy.sparse."] = "wengert.scipy.sparse"
LABELLED.append("wengert._engine.labelled_arrays.calls")
KERNELS.append("wengert._engine.backends.large_array_kernels")
PATTERNS.append("wengert.sparse.coloring_and_order")
LATE.append("wengert.sparse.exported_derivatives")
NAMESPACES.update({"numpy": "wengert.numpy", "wengert.numpy": "wengert.numpy", "math": "math"})
NAMESPACES.update({f"numpy.{n}": f"wengert.numpy.{n}" for n in ("linalg", "fft", "polynomial")})
_SERIES = "polynomial chebyshev legendre laguerre hermite hermite_e".split()
NAMESPACES.update({f"numpy.polynomial.{n}": f"wengert.numpy.polynomial.{n}" for n in _SERIES})
_SCIPY = (
    ".fft .integrate .interpolate .linalg .ndimage .optimize .signal .sparse .sparse.linalg "
    ".spatial .spatial.distance .special .stats"
).split()
NAMESPACES.update({f"scipy{n}": f"wengert.scipy{n}" for n in ("", *_SCIPY)})
FAMILIES += [
    "wengert._engine.control_flow",
    "wengert._engine.rewrite",
    "wengert._engine.ops.neural.convolution",
    "wengert._engine.ops.neural.pooling",
    "wengert.random",
    *(f"wengert.scipy{n}" for n in _SCIPY),
    "wengert.scipy.register_all",
]
# Functions and classes that are imported at first use.
ELSEWHERE = {
    "after": "_engine.ops.side_effects",
    "assume": "_engine.rewrite",
    **dict.fromkeys("jit profile".split(), "_engine.jit"),
    "unroll": "_engine.frontend",
    "primitive": "extend",
    "data_parallel": "distributed",
    "named": "_engine.named_arrays",
    "named_call": "_engine.core.trace_notes",
    "check_grads": "testing",
    "check_op": "testing.op_checks",
    **dict.fromkeys(
        "Graph computation gradients input linear_transpose spec trace variable".split(),
        "_engine.graphs",
    ),
    **_EXPLAINED,
    **dict.fromkeys("sparse_hessian sparse_jacobian sparsity".split(), "sparse"),
    **dict.fromkeys(
        "associative_scan cond custom_jvp custom_vjp fori_loop map scan switch while_loop".split(),
        "_engine.control_flow",
    ),
    **dict.fromkeys("custom_linear_solve custom_root implicit".split(), "_engine.implicit"),
    **dict.fromkeys("get_threads set_threads".split(), "_engine.backends.llvm.runtime.settings"),
    **dict.fromkeys("device_get device_put".split(), "_engine.backends.cuda"),
    **dict.fromkeys(
        "save load".split(), "_engine.graphs"
    ),  # which makes the graphs that are loaded
}

__version__ = "0.1.0"

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
    "custom_linear_solve",
    "custom_root",
    "custom_vjp",
    "data_parallel",
    "device_get",
    "device_put",
    "dim",
    "enable_grad",
    "explain",
    "fori_loop",
    "get_threads",
    "grad",
    "gradients",
    "hessian",
    "hvp",
    "implicit",
    "is_recording",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jet",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "load",
    "named",
    "named_call",
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
    "unroll",
    "value_and_grad",
    "variable",
    "vjp",
    "vmap",
    "while_loop",
    "why",
]

# Names of packages that are not installed: star imports and `help` leave them out.
_MISSING = {name for name in PACKAGES if is_missing(f"{__name__}.{name}")}
_MISSING |= {name for name, place in ELSEWHERE.items() if is_missing(f"{__name__}.{place}")}
globals()["__all__"] = [name for name in __all__ if name not in _MISSING]


def __getattr__(name: str) -> Any:
    if name in PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in ELSEWHERE:
        found = getattr(importlib.import_module(f"{__name__}.{ELSEWHERE[name]}"), name)
        globals()[name] = found  # at the next use this function is not called
        return found
    raise missing(f"module {__name__!r}", name, PACKAGE)


def __dir__() -> list[str]:
    return sorted({*__all__, *SUBMODULES, *ELSEWHERE, *DUNDERS} - _MISSING)


for _name, (_place, _also) in ENGINE.items():
    _kind = CallableModule if _name == "debug" else PublicModule
    _also = {k: f"{__name__}.{v}" for k, v in _also.items()}
    _module = sys.modules[f"{__name__}.{_name}"] = _kind(
        f"{__name__}.{_name}", f"{__name__}.{_place}", _also
    )
    if "." not in _name:
        globals()[_name] = _module
