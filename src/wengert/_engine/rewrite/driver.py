"""Driver: one traversal of a graph that replaces every node by its simplest form.

Nodes are visited in order, so that their operands have been simplified.  A node is looked up
among the existing ones (common subexpressions are merged); if it is new, the rules that can apply
are tried (rule_index.py), and the nodes that a rule returns are simplified in the same way.  So the
resulting graph has no node to which a rule applies, in time linear in its length.

A replacement has the spec of the node, and is not differentiable if the node was not; this is
ensured here, for all rules.  The original graph is not changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.copy_graph import with_args
from wengert._engine.core.graph import AnyGraph, BaseGraph
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
from wengert._engine.core.op import Op, linear_in, lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.static_params import frozen, sizes_of
from wengert._engine.core.tracing import SIZE, infer
from wengert.errors import GraphError, OperandError, at

from .pattern import OperationPattern, ParameterWildcard, Wildcard, WildcardBindings, number_key
from .rule import NodeBuilder, NodeRule
from .rule_index import RuleIndex
from .value_properties import Facts

_DEPTH = 50  # nested applications of rules, each to the result of another
_SMALL_BYTES = 1 << 14  # bytes; larger constants are compared by identity


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
    index : Index
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
        self._place: dict[Node, Node] = {}
        self._specs: dict[Node, Any] = {}
        self._numbers: dict[Node, tuple[str, str | None, Any]] = {}
        self._frozen: dict[int, tuple[Any, Hashable]] = {}
        self._chain: list[str] = []  # the rules being applied
        self._full = lookup("full")
        self._final: set[Node] = set()
        self._linear: set[Node] = set()  # (co)tangents, and nodes computed from them

    def run(self, graph: AnyGraph) -> AnyGraph:
        """The graph in its simplest form; itself if nothing changes."""
        place, final, reordered = self._place, self._final, False
        linear = _linear_nodes(graph)
        for node in graph.nodes:
            op, args = node.op, node.args
            if isinstance(op, LeafOp):
                place[node] = self._leaf(node)
                if node in linear:
                    self._linear.add(place[node])
                continue
            new = tuple([place[a] for a in args])
            if op.effects.side_effect:  # side effects are ordered: all after a replaced one
                reordered = reordered or new != args
                made = _moved(node, new) if reordered else node
            else:
                made = self.simplest(node if new == args else _moved(node, new))
            place[node] = made
            final.add(made)
            if node in linear:
                self._linear.add(made)
        changed = {old: new for old, new in place.items() if old is not new}
        return graph.with_nodes(changed) if changed else graph

    def _leaf(self, node: Node) -> Node:
        if not self.merge:
            return node
        if node.op is CONSTANT and type(node) is ConstantLeaf and node.info is None:
            value = node.value
            if type(value) is np.ndarray and value.nbytes > _SMALL_BYTES:
                return node
            return self._known.setdefault(leaf_key(node), node)
        return self._known.setdefault(leaf_key(node), node) if node.op is SIZE else node

    # ---- properties of nodes -------------------------------------------------------------------

    def spec(self, node: Node) -> Any:
        """The spec of a node."""
        info = node.info
        if info is not None and info.spec is not None:
            return info.spec
        found = self._specs.get(node)
        if found is None:
            found = self._specs[node] = node.spec
        return found

    def _number(self, node: Node) -> tuple[str, str | None, Any]:
        """Description, key and value of a constant or of an array of one number."""
        found = self._numbers.get(node)
        if found is None:
            is_full = node.op is self._full
            word = "full" if is_full else "number"
            value = node.params["value"] if is_full else same_everywhere(node.value)
            key = None
            if value is not None and not isinstance(value, complex | np.complexfloating):
                key = number_key(value)
            asked = key is not None and key in self.index.numbers
            found = self._numbers[node] = (f"{word} {key}" if asked else word, key, value)
        return found

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
            made = self._rewritten(node)
            return node if made is None else made
        key = self._key(node)
        known = self._known.get(key)
        if known is not None:
            if known is not node:
                self.applied.append(Applied("merge", node, known))
            return known
        made = self._rewritten(node)
        if made is None:
            made = node
        self._known[key] = made
        return made

    def _key(self, node: Node) -> Hashable:
        op, args, params = node.op, node.args, node.params
        if len(args) == 2 and op.commutative and args[1].serial < args[0].serial:
            args = args[::-1]
        weak = getattr(self.spec(node), "weak", False)
        if not params:
            return op, type(node), args, weak
        known = self._frozen.get(id(params))
        if known is None:  # kept alive, so that its id is not reused
            known = self._frozen[id(params)] = (params, frozen(params))
        return op, type(node), known[1], args, weak

    def _rewritten(self, node: Node) -> Node | None:
        """The replacement of a node by the first rule that applies."""
        args = node.args
        operands = tuple([self.describe(a) for a in args])
        same = len(args) == 2 and args[0] is args[1]
        found = self.index.candidates(node.op, operands, same)
        if not found:
            return None
        since = next_serial()
        for rule, tree in found:
            count = len(self.applied)
            self._entered(rule.name, node)
            try:
                made = (
                    self._by_function(rule, node) if tree is None else rule.apply(tree, node, self)
                )
                if made is not None:
                    widens = tree is not None and type(rule.made) is Wildcard
                    made = self._fitted(made, node, widens)
            finally:
                self._chain.pop()
            if made is not None and made is not node:
                if made.serial > since:
                    _named(made, node)
                self.applied.append(Applied(rule.name, node, made))
                return made
            del self.applied[count:]
        return None

    def _entered(self, name: str, node: Node) -> None:
        """Note that a rule is being applied; deep nesting means that rules undo each other."""
        self._chain.append(name)
        if len(self._chain) > _DEPTH:
            last = ", ".join(dict.fromkeys(self._chain[-6:]))
            self._chain.pop()
            raise GraphError(
                f"rules that undo each other: after {_DEPTH} replacements of one node rules still "
                f"apply (the last were {last}). Give one of them a condition{at(node.where)}."
            )

    def _by_function(self, rule: NodeRule, node: Node) -> Node | None:
        if type(node) is Node and any(map(is_stopped, node.args)):
            return None  # the rule would look through it, and its result would be differentiable
        made = rule.function(node, NodeBuilder(self, node))
        if made is None:
            return None
        if isinstance(made, Handle):
            made = made.node
        return self._absorbed(made, node) if isinstance(made, Node) else self.constant(made)

    def _absorbed(self, made: Node, like: Node) -> Node:
        """The simplest form of a node that a user's rule made with NumPy."""
        waiting, place = [made], self._place
        while waiting:
            node = waiting[-1]
            if node in place or node in self._final or not node.args:
                waiting.pop()
                continue
            later = [a for a in node.inputs if not self._is_ours(a)]
            if later:
                waiting += later
                continue
            args = [place.get(a, a) for a in node.args]
            place[node] = self.new_node(node.op, args, node.params, like)
            waiting.pop()
        return place.get(made, made)

    def _is_ours(self, node: Node) -> bool:
        return node in self._place or node in self._final or not node.args

    def _fitted(self, made: Node, node: Node, widens: bool) -> Node | None:
        """A replacement with the spec of the node; None if that is not possible.

        It may be broadcast; it is cast only if it is itself an operand (`widens`), because
        computing in lower precision would change the value.
        """
        have, wanted = self.spec(made), self.spec(node)
        if have is not wanted and have != wanted:
            if type(have) is not Spec or type(wanted) is not Spec:
                return None
            if have.dtype != wanted.dtype:
                if not widens or not holds(wanted.dtype, have.dtype):
                    return None
                made = self.new_node(lookup("cast"), (made,), {"dtype": wanted.dtype}, node)
            if have.shape != wanted.shape:
                try:
                    made = self.new_node(
                        lookup("broadcast_to"), (made,), {"shape": wanted.shape}, node
                    )
                except OperandError:
                    return None
            if self.spec(made) != wanted:
                return None
        if type(made) is Node and type(node) is not Node:
            return None  # the replacement would be differentiable, the node is not
        return made

    # ---- writing nodes -------------------------------------------------------------------------

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
        made = self.simplest(cls(op, args, params or NO_PARAMS, None, info))
        self._final.add(made)
        if info.linear:
            self._linear.add(made)
        return made

    def _operand(self, x: Any) -> Node:
        return x.node if isinstance(x, Handle) else self.constant(x)

    def built(self, tree: Any, found: WildcardBindings, like: Node) -> Node:
        """The nodes of a pattern with bound wildcards and parameters."""
        kind = type(tree)
        if kind is Wildcard:
            return found.operands[tree.number]  # type: ignore[no-any-return]
        if kind is not OperationPattern:
            return self.constant(tree.value)
        args = [self.built(a, found, like) for a in tree.args]
        params = {k: _slotted(v, found) for k, v in tree.params.items()}
        return self.new_node(tree.op, args, params, like)


def _linear_nodes(graph: AnyGraph) -> set[Node]:
    """The nodes of derivatives that are marked as linear in operands, and these operands."""
    found = {n for n in graph.nodes if n.info is not None and n.info.linear}
    return found.union(*[[n.args[k] for k in linear_in(n)] for n in found])


def _slotted(value: Any, found: WildcardBindings) -> Any:
    return found.params[value.name] if type(value) is ParameterWildcard else value


def _named(made: Node, node: Node) -> None:
    """Give a new node the name of the one that it replaces."""
    if node.name is not None and made.args:
        made.note(name=node.name)


def _moved(node: Node, args: tuple[Node, ...]) -> Node:
    """A node on other operands of the same specs."""
    if node.value is None and node.info is not None:
        return type(node)(node.op, args, node.params, None, node.info)
    return with_args(node, args)


def same_everywhere(value: Any) -> Any:
    """The number that a constant has everywhere, or None."""
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
    same = value == first
    if not same.all() or (first == 0 and np.signbit(value.real).any() != np.signbit(first.real)):
        return None
    return first


def holds(wide: np.dtype[Any], narrow: np.dtype[Any]) -> bool:
    """Whether every number of one dtype can be represented in the other."""
    if wide.kind == "f" and narrow.kind in "iub":
        bits = 8 * narrow.itemsize
        return narrow.kind == "b" or bits <= np.finfo(wide).nmant + 1
    return wide.kind in "fc" and narrow.kind in "fc" and np.can_cast(narrow, wide, "safe")
