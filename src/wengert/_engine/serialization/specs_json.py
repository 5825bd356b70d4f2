"""Sizes and specs in files: read within limits, and verified.

Symbolic sizes as text, read within limits.

A size is stored as text, "2*n + 1" (core/symbolic/dim.py).  Expanding a polynomial can take much
more time and memory than the length of its text suggests: "(a + b)**16" has 17 terms, a product of
four of these 83521.  Therefore only the syntax that `spelled` writes is read (powers of names, but
not of sums), and neither a size nor the product of a shape may have more than MAX_TERMS terms.

spelled, read   a length as JSON, and the inverse
weight, fits    bounds of the number of terms

Verification of the specs in a file, by comparison with the specs that operations infer.

Most operations have a shape rule, which is evaluated.  Operations of the library without a rule are
run on an example, if that is small (a hostile file may claim any size).  Specs that cannot be
verified in these ways are marked in the node, and checked by the backend after the node has run.

Budget           verifies the specs of a graph, at limited cost
has_shape_rule   whether an operation has a shape rule
is_library       whether it is defined by the library
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import PART
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import Op
from wengert._engine.core.spec import Spec, has_sizes
from wengert._engine.core.symbolic.constraints import Demands, dim
from wengert._engine.core.symbolic.dim import Dim, Quotient
from wengert._engine.core.tracing import infer
from wengert.errors import ShapeError, WengertError

from .errors import Damage, brief, need

if TYPE_CHECKING:
    from wengert._engine.core.types import Size

MAX_TERMS = 2000
_MAX_CHARACTERS = 1000
_MAX_POWER = 16
# The names of lengths that are known after a loop, and within a step of a loop.
_OPEN = re.compile(r"\b(steps|trip)\.(f?\d{1,9})\b", re.ASCII)


def spelled(length: Any) -> Any:
    """The JSON of a length: an int or a string."""
    return str(length) if isinstance(length, Dim) else int(length)


def read(x: Any, signed: bool = False) -> Any:
    """The length from its JSON.

    Parameters
    ----------
    x : int or str
    signed : bool
        Whether it may be negative, as a parameter of an operation may.
    """
    if type(x) is int:
        need(-(2**62) < x < 2**62 and (signed or x >= 0), f"a length of {brief(x)}")
        return x
    need(type(x) is str and len(x) <= _MAX_CHARACTERS, f"the length {brief(x)}")
    try:
        text = _OPEN.sub(r"\1__\2", x)
        _check(ast.parse(text, mode="eval").body)
        length = dim(text)
    except (ShapeError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Damage(f"{brief(x)} is not a size") from error
    need(isinstance(length, Dim), f"{brief(x)} is not a symbolic size")
    if text != x:
        need("steps__" not in x and "trip__" not in x, f"{brief(x)} is not a size")
        names = [n for n in length.names if n.startswith(("steps__", "trip__"))]
        length = length.replace({n: Dim({((n.replace("__", "."), 1),): 1}) for n in names})
    need(weight(length) <= MAX_TERMS, f"the size {brief(x)} has too many terms")
    return length


def _check(tree: ast.expr) -> None:
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return _check(tree.operand)
    if isinstance(tree, ast.BinOp):
        if isinstance(tree.op, ast.Pow):
            power = tree.right.value if isinstance(tree.right, ast.Constant) else None
            need(type(power) is int and 0 < power <= _MAX_POWER, "a power of a size")
            need(not isinstance(tree.left, ast.Constant), "a power of a number")
            atom = isinstance(tree.left, ast.Name) or _is_quotient(tree.left)
            need(atom, "a power of a sum or product")
            return _check(tree.left)
        if isinstance(tree.op, ast.Mult):
            for side in (tree.left, tree.right):
                is_sum = isinstance(side, ast.BinOp) and isinstance(side.op, ast.Add | ast.Sub)
                need(not is_sum, "a product of sums")
        _check(tree.left)
        return _check(tree.right)
    need(isinstance(tree, ast.Name | ast.Constant), "an expression that is not a size")
    if isinstance(tree, ast.Constant):
        need(type(tree.value) is int, "a number that is not an integer")
    return None


def _is_quotient(tree: ast.expr) -> bool:
    return isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.FloorDiv)


def weight(length: Size) -> int:
    """An upper bound of the number of terms of a size after substituting sums of two names."""
    if not isinstance(length, Dim):
        return 1
    total = 0
    for product in length._terms:
        terms = 1
        for atom, power in product:
            if isinstance(atom, Quotient):
                terms *= (1 + weight(atom.above) * weight(atom.below)) ** power
            else:
                terms *= power + 1
        total += terms
    return total


def fits(lengths: Iterable[Any]) -> bool:
    """Whether the product of some lengths has at most LIMIT terms."""
    total = 1
    for length in lengths:
        total *= weight(length)
        if total > MAX_TERMS:
            return False
    return True


_LOCATION = re.compile(r"\.?( \(at .*\))?\.?$", re.DOTALL)  # at the end of a message
_KINDS_WITH_RULES = ("elementwise", "reduction", "contraction")
_COPYING_KINDS = ("view", "indexing")
_RUN_ELEMENTS = 1 << 16  # limit of the elements of an example
_COPIED_ELEMENTS = 1 << 22  # limit for operations that only copy
_PROBE = 39  # the largest size in a probe (core/spec.py)
_TERMS, _ALL_TERMS = 100_000, 1_000_000  # limits of terms of sizes: of one node, of one graph


class Budget:
    """The remaining cost that the verification of one graph may have; repeated nodes are free.

    Attributes
    ----------
    small, large : int
        Elements of examples, for operations of any cost, and for operations that only copy.
    terms : int
        Terms of symbolic sizes after expansion.
    """

    def __init__(self) -> None:
        self.small, self.large, self.terms = 1 << 21, 1 << 26, _ALL_TERMS
        self._known: set[Any] = set()

    def spec_of_node(
        self, op: Op, specs: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, Demands] | None:
        """The inferred spec and the requirements of an operation; None if it cannot be inferred.

        Raises
        ------
        ValueError
            The operands or parameters are invalid; the message says why.
        """
        of_one: Any = getattr(op, "of_one", None)
        if of_one is not None:  # it applies another operation to each row, which is verified too
            try:
                inner = of_one(specs, params)
            except Exception as error:
                raise ValueError(repr(error)) from error
            if not inner[0].effects.serializable or inner[0].effects.side_effect:
                raise ValueError(
                    f"{inner[0].name} has external effects, which are not allowed in a file"
                )
            if self.spec_of_node(*inner) is None:
                return None
        has_rule = has_shape_rule(op)
        if not has_rule and not is_library(op):
            return None
        try:
            has_symbolic_sizes = has_sizes(specs, params)
            if has_symbolic_sizes or not has_rule:
                key = (op, tuple(specs), frozen(params))
                if key not in self._known:
                    if has_symbolic_sizes:
                        self._charge_terms(op, specs, params)
                    if not has_rule and not self._charge_example(op, specs, params):
                        return None
                    self._known.add(key)
            return infer(op, tuple(specs), params)
        except Exception as error:  # a hostile file may pass anything to an operation
            text = _LOCATION.sub("", str(error)) if isinstance(error, WengertError) else repr(error)
            raise ValueError(text) from error

    def _charge_terms(self, op: Op, specs: Sequence[Any], params: dict[str, Any]) -> None:
        weights = [_weight(s) for s in specs]
        # Sizes of two or three operands may be multiplied; operands of more are concatenated.
        is_additive = op.kind in ("elementwise", "control", "call") or len(weights) > 3
        terms = sum(weights) if is_additive else math.prod(weights)
        terms += _weight(params)
        self.terms -= terms
        if terms > _TERMS or self.terms < 0:
            raise ShapeError("its sizes have too many terms")

    def _charge_example(self, op: Op, specs: Sequence[Any], params: dict[str, Any]) -> bool:
        only_copies = op.kind in _COPYING_KINDS
        limit = min(_COPIED_ELEMENTS, self.large) if only_copies else min(_RUN_ELEMENTS, self.small)
        # Parameters may make the result larger than the operands.
        cost = sum(map(_elements, specs)) + _extent(params, limit)
        if cost > limit:
            return False
        if only_copies:
            self.large -= cost
        else:
            self.small -= cost
        return True


def has_shape_rule(op: Op) -> bool:
    """Whether an operation has a shape rule."""
    return (
        op is PART
        or op.kind in _KINDS_WITH_RULES
        or op.spec_rule is not None
        or type(op).infer is not Op.infer
    )


def is_library(op: Op) -> bool:
    """Whether an operation is defined by the library, and not by a user."""
    run = getattr(op.run, "__module__", None) or type(op.run).__module__
    return _is_ours(type(op).__module__) and _is_ours(run)


def _is_ours(module: str) -> bool:
    root = module.partition(".")[0]
    return root in ("numpy", "scipy") or (
        root == "wengert" and not module.startswith("wengert.extend")
    )


def _weight(x: Any) -> int:
    """An upper bound of the terms in the product of all lengths in specs or parameters."""
    if isinstance(x, Dim):
        return weight(x)
    if isinstance(x, tuple) and x and all(isinstance(part, Spec) for part in x):
        return sum(map(_weight, x))  # several outputs
    total = 1
    for part in x.shape if isinstance(x, Spec) else _parts(x):
        total *= _weight(part)
        if total > _ALL_TERMS:
            break
    return total


def _parts(x: Any) -> Iterable[Any]:
    """The items of a container parameter; empty for other parameters."""
    if isinstance(x, dict):
        return x.values()
    if isinstance(x, slice):
        return x.start, x.stop, x.step
    return x if isinstance(x, tuple | list) else ()


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
    """An upper bound of the size that parameters request: the product of all integers in them."""
    if type(x) is int:
        return max(1, abs(x))
    if isinstance(x, Dim):
        return max(1, abs(x({name: _PROBE for name in x.names})))
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "iu":
        return max(1, int(np.sum(np.abs(np.asarray(x, float)))))
    total = 1
    for part in _parts(x):
        total *= _extent(part, limit)
        if total > limit:
            break
    return total
