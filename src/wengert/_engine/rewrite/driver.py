"""Driver: one traversal of a graph that replaces every node by its simplest form.

Nodes are visited in order, so that their operands are already simplified.  A node is looked up
among the existing ones (common subexpressions are merged); if it is new, the rules that can apply
are tried (rule_index.py), and the nodes that a rule returns are simplified in the same way.  So no
rule applies to any node of the resulting graph, and the time is linear in the number of nodes.

For all rules, the driver ensures that a replacement has the spec of the node, and is not
differentiable if the node was not.  The original graph is not changed.

A derivative traces a function again, and makes identity matrices and copies of tables anew, which
have to become one node (`EqualConstants`).  Their bytes are read only if another constant of the
same shape has the same elements at some places.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.graph import AnyGraph, BaseGraph
from wengert._engine.core.graph_copies import with_args
from wengert._engine.core.graph_fingerprint import is_stopped, leaf_key
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import (
    CONSTANT,
    NO_PARAMS,
    ConstantLeaf,
    DiscreteLeaf,
    LeafOp,
    Node,
    constant,
    next_serial,
)
from wengert._engine.core.node_properties import frozen, sizes_of
from wengert._engine.core.op import Op, linear_in, lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import SIZE, infer
from wengert.errors import GraphError, OperandError, at

from .pattern import OperationPattern, ParameterWildcard, Wildcard, WildcardBindings, number_key
from .rule import NodeBuilder, NodeRule
from .rule_index import RuleIndex
from .value_properties import Facts

_SAMPLES = 16  # elements that are compared first


class EqualConstants:
    """Constant nodes, by content."""

    def __init__(self) -> None:
        self._known: dict[Any, list[tuple[Any, Node]]] = {}

    def first(self, value: np.ndarray[Any, Any], node: Node) -> Node:
        """The first node that has an array with the same dtype, shape and bytes; or this one."""
        if value.dtype.kind not in "biufc":
            return node
        every = max(value.size // _SAMPLES, 1)
        key = value.dtype.str, value.shape, value.flat[::every].tobytes()
        candidates = self._known.setdefault(key, [])
        for other, known in candidates:
            if other is value or _have_same_bytes(other, value):
                return known
        candidates.append((value, node))
        return node


def _have_same_bytes(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Signs of zeros and payloads of NaN count."""
    one, two = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b)]
    return bool(np.array_equal(one, two))


_MAX_DEPTH = 50  # nested applications of rules, each to the result of another
_SMALL_BYTES = 1 << 14  # of constants whose bytes are keys


class Applied(NamedTuple):
    """One application of a rule: its name, the node, and the replacement."""

    rule: str
    node: Node
    replacement: Node


class Driver:
    """One traversal of a graph.

    Parameters
    ----------
    graph : Graph
    index : RuleIndex
        The rules.
    merge : bool
        Whether equal nodes become one.

    Attributes
    ----------
    applied : list of Applied
    """

    def __init__(self, graph: BaseGraph, index: RuleIndex, merge: bool) -> None:
        self.graph, self.index, self.merge = graph, index, merge
        self.applied: list[Applied] = []
        self.facts = Facts(self)
        self._known: dict[Hashable, Node] = {}
        self._large = EqualConstants()
        self._place: dict[Node, Node] = {}
        self._specs: dict[Node, Any] = {}
        self._numbers: dict[Node, tuple[str, str | None, Any]] = {}
        self._frozen: dict[int, tuple[Any, Hashable]] = {}
        self._active_rules: list[str] = []
        self._full = lookup("full")
        self._final: set[Node] = set()
        self._linear: set[Node] = set()  # (co)tangents, and nodes computed from them

    def run(self, graph: AnyGraph) -> AnyGraph:
        """The simplified graph; the graph itself if nothing changes."""
        replacements, final, reordered = self._place, self._final, False
        linear = _linear_nodes(graph)
        for node in graph.nodes:
            op, args = node.op, node.args
            if isinstance(op, LeafOp):
                replacements[node] = self._leaf(node)
                if node in linear:
                    self._linear.add(replacements[node])
                continue
            new_args = tuple([replacements[a] for a in args])
            # Side effects are ordered: if one is rebuilt, all later ones are rebuilt after it.
            if op.effects.side_effect:
                reordered = reordered or new_args != args
                simplified = _with_operands(node, new_args) if reordered else node
            else:
                simplified = self.simplest(
                    node if new_args == args else _with_operands(node, new_args)
                )
            replacements[node] = simplified
            final.add(simplified)
            if node in linear:
                self._linear.add(simplified)
        changed = {old: new for old, new in replacements.items() if old is not new}
        return graph.with_nodes(changed) if changed else graph

    def _leaf(self, node: Node) -> Node:
        if not self.merge:
            return node
        if node.op is CONSTANT and type(node) is ConstantLeaf and node.info is None:
            value = node.value
            if type(value) is np.ndarray and value.nbytes > _SMALL_BYTES:
                return self._large.first(value, node)
            return self._known.setdefault(leaf_key(node), node)
        return self._known.setdefault(leaf_key(node), node) if node.op is SIZE else node

    # ---- properties of nodes -------------------------------------------------------------------

    def spec(self, node: Node) -> Any:
        """The spec of a node."""
        info = node.info
        if info is not None and info.spec is not None:
            return info.spec
        spec = self._specs.get(node)
        if spec is None:
            spec = self._specs[node] = node.spec
        return spec

    def _number(self, node: Node) -> tuple[str, str | None, Any]:
        """Description, key and value of a node whose elements may all equal one number."""
        number = self._numbers.get(node)
        if number is None:
            is_full = node.op is self._full
            kind = "full" if is_full else "number"
            value = node.params["value"] if is_full else same_everywhere(node.value)
            key = None
            if value is not None and not isinstance(value, complex | np.complexfloating):
                key = number_key(value)
            in_pattern = key is not None and key in self.index.numbers
            number = self._numbers[node] = (f"{kind} {key}" if in_pattern else kind, key, value)
        return number

    def describe(self, node: Node) -> Any:
        """The description of an operand by which rules are looked up (rule_index.py)."""
        op = node.op
        return self._number(node)[0] if op is CONSTANT or op is self._full else op

    def number_key(self, node: Node) -> str | None:
        """The key of the real number that all elements of a node equal, or None."""
        op = node.op
        return self._number(node)[1] if op is CONSTANT or op is self._full else None

    def number(self, node: Node) -> Any:
        """The number that all elements of a node equal, or None."""
        op = node.op
        return self._number(node)[2] if op is CONSTANT or op is self._full else None

    def has(self, node: Node, *facts: str) -> bool:
        """Whether a node is known to have all of these properties (value_properties.py)."""
        return self.facts.has(node, *facts)

    # ---- simplest forms ------------------------------------------------------------------------

    def simplest(self, node: Node) -> Node:
        """The simplest form of a node with simplified operands."""
        if not self.merge:
            result = self._rewritten(node)
            return node if result is None else result
        key = self._key(node)
        known = self._known.get(key)
        if known is not None:
            if known is not node:
                self.applied.append(Applied("merge", node, known))
            return known
        result = self._rewritten(node)
        if result is None:
            result = node
        self._known[key] = result
        return result

    def _key(self, node: Node) -> Hashable:
        op, args, params = node.op, node.args, node.params
        if len(args) == 2 and op.commutative and args[1].serial < args[0].serial:
            args = args[::-1]
        elif op.kind == "collective":
            args = self._operands_of_message(args)
        weak = getattr(self.spec(node), "weak", False)
        if not params:
            return op, type(node), args, weak
        known = self._frozen.get(id(params))
        if known is None:  # the reference to `params` prevents that its id is reused
            known = self._frozen[id(params)] = (params, frozen(params))
        return op, type(node), known[1], args, weak

    def _operands_of_message(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The operands of a message; constants by their values, whatever is known of their origin.

        A derivative that computes values again has their messages again, on the same token. All
        processes must merge them, also those that send constants. Messages of other operands may
        begin with the same token: both branches of a batch do.
        """
        return tuple([leaf_key(a) if a.op is CONSTANT else a for a in args])

    def _rewritten(self, node: Node) -> Node | None:
        """The replacement of a node by the first rule that applies."""
        args = node.args
        operands = tuple([self.describe(a) for a in args])
        same = len(args) == 2 and args[0] is args[1]
        candidates = self.index.candidates(node.op, operands, same)
        if not candidates:
            return None
        since = next_serial()
        for rule, tree in candidates:
            count = len(self.applied)
            self._enter_rule(rule.name, node)
            try:
                replacement = (
                    self._by_function(rule, node) if tree is None else rule.apply(tree, node, self)
                )
                if replacement is not None:
                    widens = tree is not None and type(rule.replacement_tree) is Wildcard
                    replacement = self._with_spec_of(replacement, node, widens)
            finally:
                self._active_rules.pop()
            if replacement is not None and replacement is not node:
                if replacement.serial > since:
                    _copy_name(replacement, node)
                self.applied.append(Applied(rule.name, node, replacement))
                return replacement
            del self.applied[count:]
        return None

    def _enter_rule(self, name: str, node: Node) -> None:
        """Record that a rule is being applied; deep nesting means that rules undo each other."""
        self._active_rules.append(name)
        if len(self._active_rules) > _MAX_DEPTH:
            last = ", ".join(dict.fromkeys(self._active_rules[-6:]))
            self._active_rules.pop()
            raise GraphError(
                f"rules undo each other: after {_MAX_DEPTH} replacements of one node rules still "
                f"apply (the last were {last}). Give one of them a condition{at(node.where)}."
            )

    def _by_function(self, rule: NodeRule, node: Node) -> Node | None:
        if type(node) is Node and any(map(is_stopped, node.args)):
            return None  # a rule may use the operands of stop_gradient, which are differentiable
        replacement = rule.function(node, NodeBuilder(self, node))
        if replacement is None:
            return None
        if isinstance(replacement, Handle):
            replacement = replacement.node
        if not isinstance(replacement, Node):
            return self.constant(replacement)
        return self._simplest_traced(replacement, node)

    def _simplest_traced(self, result: Node, like: Node) -> Node:
        """The simplest form of a node that a user's rule computed by calling NumPy."""
        stack, replacements = [result], self._place
        while stack:
            node = stack[-1]
            if node in replacements or node in self._final or not node.args:
                stack.pop()
                continue
            pending = [a for a in node.inputs if not self._is_simplified(a)]
            if pending:
                stack += pending
                continue
            args = [replacements.get(a, a) for a in node.args]
            replacements[node] = self.new_node(node.op, args, node.params, like)
            stack.pop()
        return replacements.get(result, result)

    def _is_simplified(self, node: Node) -> bool:
        return node in self._place or node in self._final or not node.args

    def _with_spec_of(self, replacement: Node, node: Node, widens: bool) -> Node | None:
        """A replacement with the spec of the node; None if that is not possible.

        It may be broadcast. It is cast only if it is itself an operand (`widens`): otherwise it was
        computed in another precision, and its value would differ.
        """
        spec, required = self.spec(replacement), self.spec(node)
        if spec is not required and spec != required:
            if type(spec) is not Spec or type(required) is not Spec:
                return None
            if spec.dtype != required.dtype:
                if not widens or not can_represent(required.dtype, spec.dtype):
                    return None
                params = {"dtype": required.dtype}
                replacement = self.new_node(lookup("cast"), (replacement,), params, node)
            if spec.shape != required.shape:
                try:
                    replacement = self.new_node(
                        lookup("broadcast_to"), (replacement,), {"shape": required.shape}, node
                    )
                except OperandError:
                    return None
            if self.spec(replacement) != required:
                return None
        if type(replacement) is Node and type(node) is not Node:
            return None  # the replacement would be differentiable, the node is not
        return replacement

    # ---- creating nodes ------------------------------------------------------------------------

    def constant(self, value: Any) -> Node:
        """A node that holds a value."""
        return self._leaf(constant(value))

    def filled(self, value: Any, like: Node) -> Node:
        """An array of one number with the shape and dtype of a node."""
        spec = self.spec(like)
        number = value if spec.weak else np.asarray(value, spec.dtype)[()]
        if spec.shape == ():
            return self.constant(type(spec.dtype.type(0).item())(value) if spec.weak else number)
        params = {"shape": spec.shape, "value": number.item(), "dtype": spec.dtype}
        return self.new_node(self._full, (), params, like)

    def new_node(self, op: Op, operands: Sequence[Any], params: dict[str, Any], like: Node) -> Node:
        """A new node in its simplest form, with the user's line of another."""
        args = tuple([a if isinstance(a, Node) else self._operand(a) for a in operands])
        spec, needs = infer(op, tuple([self.spec(a) for a in args]), params)
        if like.op is op and type(spec) is Spec and getattr(self.spec(like), "weak", False):
            spec = Spec(spec.shape, spec.dtype, weak=True)
        cls: type[Node] = DiscreteLeaf if params and sizes_of(params) else ConstantLeaf
        for a in args:
            if type(a) is Node:
                cls = Node if type(like) is Node and not op.discrete else DiscreteLeaf
                break
            if type(a) is DiscreteLeaf:
                cls = DiscreteLeaf
        info = like.provenance(spec)
        if like.info is not None:
            info.requires = like.info.requires
        if needs.needs:
            info.requires = [*(info.requires or ()), *needs.needs]
        info.probed = needs.probed
        linear = linear_in(like) and [k for k, a in enumerate(args) if a in self._linear]
        if linear and not op.discrete:
            info.linear = tuple(linear)
        node = self.simplest(cls(op, args, params or NO_PARAMS, None, info))
        self._final.add(node)
        if info.linear:
            self._linear.add(node)
        return node

    def _operand(self, x: Any) -> Node:
        return x.node if isinstance(x, Handle) else self.constant(x)

    def built(self, tree: Any, bindings: WildcardBindings, like: Node) -> Node:
        """The nodes of a pattern with bound wildcards and parameters."""
        pattern_type = type(tree)
        if pattern_type is Wildcard:
            return bindings.operands[tree.number]  # type: ignore[no-any-return]
        if pattern_type is not OperationPattern:
            return self.constant(tree.value)
        args = [self.built(a, bindings, like) for a in tree.args]
        params = {k: _bound_param(v, bindings) for k, v in tree.params.items()}
        return self.new_node(tree.op, args, params, like)


def _linear_nodes(graph: AnyGraph) -> set[Node]:
    """The nodes of derivatives that are marked as linear in operands, and these operands."""
    marked = {n for n in graph.nodes if n.info is not None and n.info.linear}
    return marked.union(*[[n.args[k] for k in linear_in(n)] for n in marked])


def _bound_param(value: Any, bindings: WildcardBindings) -> Any:
    return bindings.params[value.name] if type(value) is ParameterWildcard else value


def _copy_name(replacement: Node, node: Node) -> None:
    """Give a new node the name of the node that it replaces."""
    if node.name is not None and replacement.args:
        replacement.note(name=node.name)


def _with_operands(node: Node, args: tuple[Node, ...]) -> Node:
    """The same node with other operands of the same specs."""
    if node.value is None and node.info is not None:
        return type(node)(node.op, args, node.params, None, node.info)
    return with_args(node, args)


def same_everywhere(value: Any) -> Any:
    """The number that all elements of a constant equal, or None."""
    if isinstance(value, bool | int | float | complex):
        return value
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "biufc":
        return None
    if isinstance(value, np.generic):
        return value
    if value.ndim == 0:
        return value[()]
    if value.size == 0 or value.size > _SMALL_BYTES:
        return None
    first = value.flat[0]
    equal = value == first
    if not equal.all() or (first == 0 and np.signbit(value.real).any() != np.signbit(first.real)):
        return None
    return first


def can_represent(wide: np.dtype[Any], narrow: np.dtype[Any]) -> bool:
    """Whether every number of one dtype can be represented in the other."""
    if wide.kind == "f" and narrow.kind in "iub":
        bits = 8 * narrow.itemsize
        return narrow.kind == "b" or bits <= np.finfo(wide).nmant + 1
    return wide.kind in "fc" and narrow.kind in "fc" and np.can_cast(narrow, wide, "safe")
