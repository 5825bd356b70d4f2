"""The first step of QUADPACK's `qags` as operations, for integrals that need no more.

`qags` evaluates the function at 21 points, and ends if the difference of the Kronrod and Gauss sums
is small (R. Piessens et al., QUADPACK, 1983).  Then value, estimate and count are these sums, which
a compiled function computes itself, in vectors; a host callback takes ten times as long.

    is_short         whether the operations are written for an integrand and its routine
    kronrod_sums     value, estimate, and whether QUADPACK ends here
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core.node import LeafOp
from wengert._engine.core.op import lookup
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body

# Positive Kronrod nodes on [-1, 1], their weights, and the Gauss weights of every other node.
_NODES = (
    0.995657163025808080735527280689003,
    0.973906528517171720077964012084452,
    0.930157491355708226001207180059508,
    0.865063366688984510732096688423493,
    0.780817726586416897063717578345042,
    0.679409568299024406234327365114874,
    0.562757134668604683339000099272694,
    0.433395394129247190799265943165784,
    0.294392862701460198131126603103866,
    0.148874338981631210884826001129720,
)
_KRONROD = (
    0.011694638867371874278064396062192,
    0.032558162307964727478818972459390,
    0.054755896574351996031381300244580,
    0.075039674810919952767043140916190,
    0.093125454583697605535065465083366,
    0.109387158802297641899210590325805,
    0.123491976262065851077958109585166,
    0.134709217311473325928054001771707,
    0.142775938577060080797094273138717,
    0.147739104901338491374841515972068,
)
_KRONROD_MIDDLE = 0.149445554002916905664936468389821
_GAUSS = (
    0.066671344308688137593568809893332,
    0.149451349150580593145863396957698,
    0.219086362515982043995534934228163,
    0.269266719309996355091226921569469,
    0.295524224714752870173815619188769,
)
NODES = np.array([*[-x for x in _NODES], 0.0, *_NODES[::-1]])
KRONROD = np.array([*_KRONROD, _KRONROD_MIDDLE, *_KRONROD[::-1]])
GAUSS = np.zeros(21)
GAUSS[1::2] = [*_GAUSS, *_GAUSS[::-1]]
_EPSILON = float(np.finfo(float).eps)
_SMALLEST_NORMAL = float(np.finfo(float).tiny)
_MAX_NODES = 300  # of the graph of an integrand
_MAX_ELEMENTS = 256  # of a node of that graph, at each point
_KINDS = frozenset({"elementwise", "view", "indexing", "reduction", "contraction", "creation"})


def is_short(body: Body) -> bool:
    """Whether an integrand is a graph of operations that are computed for all points together."""
    if body.size_names or len(body.nodes) > _MAX_NODES or len(body.outputs[0].spec.shape) > 1:
        return False
    if body.outputs[0].spec.dtype != np.float64:
        return False
    sizes = [n.spec.size for n in body.nodes if isinstance(n.spec, Spec)]
    if max(sizes) > _MAX_ELEMENTS:
        return False
    operations: list[Any] = [n.op for n in body.nodes if not isinstance(n.op, LeafOp)]
    return all(op.kind in _KINDS and not op.host_callback for op in operations)


def kronrod_sums(
    body: Body, consts: Sequence[Any], a: Any, b: Any, epsabs: float, epsrel: float
) -> tuple[Any, Any, Any]:
    """The integral, its estimate, and whether QUADPACK ends with them; as `qk21` and `qags`."""
    center, half = 0.5 * (a + b), 0.5 * (b - a)

    def function(x: Any) -> Any:
        return inline_graph(body, [*consts, x])[0]

    values = vmap(function)(center + half * NODES)
    shape = (21,) + (1,) * (values.ndim - 1)
    kronrod, gauss = KRONROD.reshape(shape), GAUSS.reshape(shape)
    sum_of = lookup("sum")
    mean = sum_of(kronrod * values, axis=0)
    difference = np.abs((mean - sum_of(gauss * values, axis=0)) * half)
    size = sum_of(kronrod * np.abs(values), axis=0) * np.abs(half)
    spread = sum_of(kronrod * np.abs(values - 0.5 * mean), axis=0) * np.abs(half)
    choose, both, either = lookup("where"), lookup("logical_and"), lookup("logical_or")
    varies = both(spread != 0.0, difference != 0.0)
    ratio = 200.0 * difference / choose(varies, spread, 1.0)
    error = choose(varies, spread * np.minimum(1.0, ratio * np.sqrt(ratio)), difference)
    rounding = 50.0 * _EPSILON * size
    is_normal = size > _SMALLEST_NORMAL / (50.0 * _EPSILON)
    error = choose(is_normal, np.maximum(rounding, error), error)
    value = mean * half
    bound = np.maximum(epsabs, epsrel * np.abs(value))
    ends = either(both(error <= bound, error != spread), error == 0.0)
    is_finite = both(both(np.isfinite(a), np.isfinite(b)), a != b)  # SciPy treats others first
    return value, error, both(lookup("all")(ends, axis=None), is_finite)
