"""RewriteContext: the interface through which rules inspect and create nodes.

The driver (driver.py) implements it; rules, their conditions and the rules for properties of values
use nothing else of the driver.

Rewrite rules as data: pattern, replacement, reason and example.

    Rule         a pattern and its replacement, as two Python functions of NumPy
    Match        a match of a pattern, the argument of conditions
    NodeRule     a function of a node, for rules that are not patterns; made by `rule`
    NodeBuilder  creates the nodes that such a function returns

A rule never changes a node; it returns a replacement.  The driver (driver.py) ensures that the
replacement has the same shape and dtype, is not differentiable if the node was not, and has the
source location of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from wengert._engine.core.node import Node
from wengert._engine.core.op import Op, lookup
from wengert._engine.core.spec import Spec
from wengert.errors import ArgumentError, at, user_line

from .pattern import (
    SAMPLES,
    NumberPattern,
    OperationPattern,
    WildcardBindings,
    matches,
    signature,
    traced,
    variants,
)

if TYPE_CHECKING:
    from wengert._engine.core.dispatch import Operation


class RewriteContext(Protocol):
    """Specs, numbers and properties of nodes, and new nodes."""

    def spec(self, node: Node) -> Any:
        """The spec of a node."""

    def number(self, node: Node) -> Any:
        """The number that all elements of a node equal, or None."""

    def number_key(self, node: Node) -> str | None:
        """That number as a key of patterns (pattern.py), or None."""

    def has(self, node: Node, *facts: str) -> bool:
        """Whether a node is known to have all of these properties."""

    def constant(self, value: Any) -> Node:
        """A node that holds a value."""

    def filled(self, value: Any, like: Node) -> Node:
        """An array of one number with the shape and dtype of a node."""

    def new_node(self, op: Op, operands: Sequence[Any], params: dict[str, Any], like: Node) -> Node:
        """A new node in its simplest form, with the user's line of another."""

    def built(self, tree: Any, bindings: Any, like: Node) -> Node:
        """The nodes of a pattern with bound wildcards and parameters."""


Descriptor = Any  # of an operand in the rule index: its operation, or a string like "number 1.0"


class Match:
    """A match of a pattern; the argument of conditions.

    Attributes
    ----------
    node : Node
        The node to be replaced.
    params : dict
        The parameters of the pattern.
    """

    __module__ = "wengert.rewrite"

    def __init__(
        self,
        node: Node,
        operands: Mapping[str, Node],
        params: dict[Any, Any],
        context: RewriteContext,
    ) -> None:
        self.node = node
        self.params: dict[str, Any] = params
        self._operands = operands
        self._context = context

    def __getitem__(self, name: str) -> Node:
        """The node bound to a wildcard."""
        return self._operands[name]

    def spec(self, name: str) -> Any:
        """The spec of the node bound to a wildcard."""
        return self._context.spec(self._operands[name])

    def value(self, name: str) -> Any:
        """The number that all elements of the node bound to a wildcard equal, or None."""
        return self._context.number(self._operands[name])

    def has(self, name: str, *facts: str) -> bool:
        """Whether the node bound to a wildcard is known to have these properties (`FACTS`)."""
        return self._context.has(self._operands[name], *facts)


class Rule:
    """A pattern and its replacement.

    Parameters
    ----------
    name : str
        Its name in histories.
    pattern : callable
        A Python function that calls NumPy. An argument matches any node, the same one wherever it
        is used. A number matches that number in any dtype; operands of commutative operations match
        in either order. Keyword-only arguments are parameters of operations: ``lambda x, *, axis:
        ...``.
    replacement : callable
        The same arguments, or fewer of them.
    reason : str
        Why the replacement is correct, and better.
    example : tuple of arrays, or of (arrays, params)
        Arguments at which pattern and replacement are compared.
    condition : callable, optional
        ``condition(match) -> bool``: whether the rule applies to a match.
    exact : bool
        Whether the results have the same bits for all operands; if not, the replacement is at least
        as accurate.
    kinds : str
        The kinds of dtypes that operands may have: "f" floats (default), "c" complex, "i" and "u"
        integers, "b" booleans. Integers must all have the dtype of the result, because they wrap
        around.
    samples : mapping, optional
        Two values to trace the functions with, for each parameter other than axis and keepdims.
    dtypes : mapping, optional
        The dtypes of wildcards while tracing; float64 by default. A wildcard of ``bool`` is a
        condition, and matches nodes of any dtype.
    ndim : int
        The number of axes of wildcards while tracing.

    Raises
    ------
    ArgumentError
        The functions depend on shapes or values, or do not take the same arguments.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.rewrite import Rule, simplify
    >>> pythagoras = Rule(
    ...     "pythagoras",
    ...     lambda x: np.sin(x) ** 2 + np.cos(x) ** 2,
    ...     lambda x: 1.0 + 0.0 * x,
    ...     reason="it is one",
    ... )
    >>> graph = wg.trace(lambda u, v: np.cos(u * v) ** 2 + np.sin(u * v) ** 2)(1.0, 2.0)
    >>> print(simplify(graph, [[pythagoras]]).outputs[0].op.name)
    add
    """

    __module__ = "wengert.rewrite"

    def __init__(
        self,
        name: str,
        pattern: Callable[..., Any],
        replacement: Callable[..., Any],
        *,
        reason: str = "",
        example: tuple[Any, ...] = (),
        condition: Callable[[Match], bool] | None = None,
        exact: bool = False,
        kinds: str = "f",
        samples: Mapping[str, tuple[Any, Any]] | None = None,
        dtypes: Mapping[str, Any] | None = None,
        ndim: int = 2,
    ) -> None:
        self.name, self.reason, self.example = name, reason, example
        self.pattern, self.replacement = pattern, replacement
        self.condition, self.exact, self.kinds = condition, exact, kinds
        self.operands, self.params = signature(pattern)
        names, params = signature(replacement)
        extra = {*names, *params} - {*self.operands, *self.params}
        if extra:
            raise ArgumentError(
                f"rule {name!r}: the replacement takes {', '.join(sorted(extra))}, which the "
                f"pattern does not. Take arguments of the pattern only{at(user_line())}."
            )
        self._options = ({**SAMPLES, **(samples or {})}, dtypes or {}, ndim)
        self._orders: list[OperationPattern] | None = None
        self._replacement: Any = None

    def __repr__(self) -> str:
        return f"<rule {self.name}>"

    @property
    def orders(self) -> list[OperationPattern]:
        """The pattern with commutative operands in all orders; traced at first use."""
        if self._orders is None:
            pattern = traced(self.pattern, self.operands, *self._options)
            if type(pattern) is not OperationPattern:
                raise ArgumentError(
                    f"rule {self.name!r}: the pattern is not an operation, so it would match every "
                    f"node. Apply at least one operation in it{at(user_line())}."
                )
            self._orders = variants(pattern)
        return self._orders

    @property
    def replacement_tree(self) -> Any:
        """The replacement as a tree; traced at first use, because most rules never apply."""
        if self._replacement is None:
            self._replacement = traced(self.replacement, self.operands, *self._options)
        return self._replacement

    @property
    def trees(self) -> tuple[list[OperationPattern], Any]:
        """The orders of the pattern, and the replacement."""
        return self.orders, self.replacement_tree

    def apply(self, tree: OperationPattern, node: Node, context: RewriteContext) -> Node | None:
        """The replacement of a node that matches one order of the pattern, or None."""
        bindings = WildcardBindings([None] * len(self.operands), {})
        if not matches(tree, node, bindings, context.number_key) or not self._fits(
            node, bindings, context
        ):
            return None
        if self.condition is not None:
            operands = dict(zip(self.operands, bindings.operands, strict=True))
            if not self.condition(Match(node, operands, bindings.params, context)):
                return None
        replacement = self.replacement_tree
        if type(replacement) is NumberPattern:
            return context.filled(replacement.value, node)
        return context.built(replacement, bindings, node)

    def _fits(self, node: Node, bindings: WildcardBindings, context: RewriteContext) -> bool:
        """Whether the rule applies to the dtypes of the operands and the result."""
        root = context.spec(node)
        if type(root) is not Spec:
            return False
        dtypes = set()
        for name, a in zip(self.operands, bindings.operands, strict=True):
            if a is not None and self._options[1].get(name) is not bool:
                spec = context.spec(a)
                if type(spec) is not Spec or (spec.dtype.kind not in self.kinds and not spec.weak):
                    return False
                if not spec.weak:
                    dtypes.add(spec.dtype)
        if not any(d.kind in "iub" for d in dtypes):
            return True
        return len(dtypes) == 1 and (root.dtype in dtypes or root.dtype.kind == "b")


class NodeBuilder:
    """Creates nodes for the function of a `NodeRule`, and gives access to properties of nodes.

    Attributes
    ----------
    context : RewriteContext
        Specs, numbers and properties of nodes.
    """

    __slots__ = ("_like", "context")

    def __init__(self, context: RewriteContext, like: Node) -> None:
        self.context = context
        self._like = like

    def __call__(self, op: str | Operation, *operands: Any, **params: Any) -> Node:
        """The simplest form of a new node; `op` is an operation or its name."""
        operation: Op = lookup(op) if isinstance(op, str) else op
        return self.context.new_node(operation, operands, params, self._like)


class NodeRule:
    """A rule that is a function of a node; made by `rule`.

    Attributes
    ----------
    function : callable
        ``function(node, new)`` returns the replacement of `node`, or None. ``new(op, *operands,
        **params)`` creates a node (`NodeBuilder`): `op` is an operation or its name, operands are
        nodes or plain numbers.
    """

    __module__ = "wengert.rewrite"

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        may: Callable[[Op, tuple[Descriptor, ...]], bool],
        *,
        reason: str = "",
        exact: bool = False,
        example: tuple[Any, ...] = (),
    ) -> None:
        self.name, self.function, self.may = name, function, may
        self.reason, self.exact, self.example = reason, exact, example

    def __repr__(self) -> str:
        return f"<rule {self.name}>"


def rule(
    name: str,
    on: str | Iterable[str],
    over: str | Iterable[str] | None = None,
    *,
    operand: int | None = None,
    reason: str = "",
    exact: bool = False,
    example: tuple[Any, ...] = (),
) -> Callable[[Callable[..., Any]], NodeRule]:
    """Make a rule of a function of a node (a decorator).

    Parameters
    ----------
    name : str
    on : str or sequence of str
        The names of the operations that it applies to, or of their kinds (``"elementwise"``).
    over : str or sequence of str, optional
        It applies only to nodes with at least one operand that is a node of these operations.
    operand : int, optional
        The position of that operand; any by default. Use 0 if the function assumes that
        ``node.args[0]`` is a node of these operations.
    reason, exact, example
        As for `Rule`; the example is ``(function, *arrays)``.

    Returns
    -------
    callable
        Makes a `NodeRule` of ``function(node, new)``, which returns a node, a tensor, or None.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.rewrite import rule, simplify
    >>> @rule("flip twice", on="flip", over="flip", reason="the elements are back", exact=True)
    ... def flip_twice(node, new):
    ...     inner = node.args[0]
    ...     return inner.args[0] if node.params == inner.params else None
    >>> graph = wg.trace(lambda x: np.flip(np.flip(x)))(np.ones(3))
    >>> print(simplify(graph, [[flip_twice]]))
    %0 = input x   float64[3]
    return %0
    """
    operations = frozenset([on] if isinstance(on, str) else on)
    operand_operations = (
        None if over is None else frozenset([over] if isinstance(over, str) else over)
    )

    def may(op: Op, operands: tuple[Descriptor, ...]) -> bool:
        if op.name not in operations and op.kind not in operations:
            return False
        if operand_operations is None:
            return True
        candidates = operands if operand is None else operands[operand : operand + 1]
        return any(name_of(d) in operand_operations for d in candidates)

    return lambda f: NodeRule(name, f, may, reason=reason, exact=exact, example=example)


def name_of(d: Descriptor) -> str:
    """The name of the operation of a descriptor; "number" for a constant."""
    return d.partition(" ")[0] if isinstance(d, str) else d.name


AnyRule = Rule | NodeRule
