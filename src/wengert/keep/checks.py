"""Checks: whether the spec of a line is what its operation gives, without running the file.

Most operations state a rule for the spec, which is asked.  The others are run on an example (the
library's own only, and only if the example is small: a hostile file may claim any size); what
cannot be asked so is noted at the line, and checked by the backend when the line has run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.apply import PART
from ..core.dims import Dim
from ..core.op import Op
from ..core.sizes import Demands
from ..core.spec import Spec
from ..core.tracing import infer
from ..errors import WengertError

_PLACE = re.compile(r"\.?( \(at .*\))?\.?$", re.DOTALL)  # the end of a message
_RULED = ("elementwise", "reduction", "contraction")
_MOVING = ("view", "indexing")
_SMALL, _LARGE = 1 << 16, 1 << 22  # elements, of operations of any cost and of those that copy
_PROBE = 39  # no size is larger in a probe (core/probing.py)


class Budget:
    """The elements that examples may still have in the check of one list."""

    def __init__(self) -> None:
        self.left = 1 << 26

    def spec_of_line(
        self, op: Op, specs: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Demands] | None:
        """The spec that an operation gives, and what it demands; None if it cannot be asked.

        Raises
        ------
        ValueError
            It refuses these operands or parameters; the message says why.
        """
        if not self._may_ask(op, specs, params):
            return None
        try:
            return infer(op, tuple(specs), params)
        except Exception as error:  # operations meet here what no program would give them
            text = _PLACE.sub("", str(error)) if isinstance(error, WengertError) else repr(error)
            raise ValueError(text) from error

    def _may_ask(self, op: Op, specs: Sequence[Any], params: dict[str, Any]) -> bool:
        if op is PART or op.kind in _RULED or op.spec_rule is not None:
            return True
        if type(op).infer is not Op.infer:
            return True
        run = getattr(op.run, "__module__", None) or type(op.run).__module__
        if not _is_ours(type(op).__module__) or not _is_ours(run):
            return False
        limit = _LARGE if op.kind in _MOVING else _SMALL
        cost = sum(map(_elements, specs))
        # The parameters of an index choose, those of others may ask for more than there is.
        extent = 1 if op.name in ("getitem", "setitem") else _extent(params, limit)
        if op.name in ("getitem", "setitem") and len(specs) > 2:
            for s in specs:
                extent *= max(1, _elements(s))
        cost += extent
        if cost > min(limit, self.left):
            return False
        self.left -= cost
        return True


def _is_ours(module: str) -> bool:
    root = module.partition(".")[0]
    return root in ("numpy", "scipy") or (
        root == "wengert" and not module.startswith("wengert.extend")
    )


def _elements(spec: Any) -> int:
    if isinstance(spec, tuple):
        return sum(map(_elements, spec))
    if not isinstance(spec, Spec):
        return 1
    count = 1
    for n in spec.shape:
        count *= n({name: _PROBE for name in n.names}) if isinstance(n, Dim) else n
        if abs(count) > 1 << 62:
            break
    return abs(count)


def _extent(x: Any, limit: int) -> int:
    """A bound of the size that parameters may ask for: the product of all whole numbers in them."""
    if type(x) is int:
        return max(1, abs(x))
    if isinstance(x, Dim):
        return max(1, abs(x({name: _PROBE for name in x.names})))
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "iu":
        return max(1, int(np.sum(np.abs(np.asarray(x, float)))))
    parts: Sequence[Any] = ()
    if isinstance(x, dict):
        parts = list(x.values())
    elif isinstance(x, slice):
        parts = (x.start, x.stop, x.step)
    elif isinstance(x, tuple | list):
        parts = x
    total = 1
    for part in parts:
        total *= _extent(part, limit)
        if total > limit:
            break
    return total


def bare(spec: Any) -> Any:
    """Shape and dtype alone, to compare."""
    if isinstance(spec, tuple):
        return tuple(map(bare, spec))
    return None if spec is None else (spec.shape, spec.dtype)
