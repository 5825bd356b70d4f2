"""Pass manager: the order of passes, their traversals and their verification.

    fold        computes nodes whose operands are constants
    merge       merges equal nodes
    algebra     replaces expressions by equal ones that are cheaper
    derivatives removes guards of backward passes that are not needed
    matrices    uses the structure of matrices; computes fewer products (rules/contractions.py)
    stabilise   avoids overflow and cancellation
    shapes      merges and moves broadcasts, transposes and reshapes; forwards stores
    messages    numbers from messages multiply sums, not their terms (whole_graph.py)
    loops       removes dead code in loops, and fuses loops (loops/)
    prune       removes nodes that nothing needs, and dead stores (whole_graph.py)

A pass maps a graph to a graph, or is a list of rules.  The library's rules share one traversal to a
fixed point; users' passes run separately, in order; all are repeated until nothing changes.
Before each round, bodies of loops and branches are simplified by the same passes.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wengert._engine.core.graph import AnyGraph, check_graph
from wengert._engine.core.graph_classes import bodies_of
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import Node
from wengert.errors import ArgumentError, RegistryError, at, user_line

from .driver import Applied, Driver
from .loops import loop_passes
from .loops.loop_passes import Bodies
from .pass_history import PassHistory, PassRun, check
from .rule import AnyRule, NodeRule, Rule
from .rule_index import RuleIndex
from .rules import (
    algebra,
    constant_folding,
    contractions,
    derivative_guards,
    exponentials,
    shapes,
    stabilize,
    store_forwarding,
)
from .whole_graph import pruned, with_late_factors

Function = Callable[[Any], Any]
ROUNDS = 10


class Pass:
    """A named step of a simplification.

    Parameters
    ----------
    name : str
    rules : sequence of rules
        For a pass that rewrites one node at a time.
    merges : bool
        Whether equal nodes become one.
    function : callable, optional
        ``function(graph) -> graph``, for any other pass.
    joins : bool
        Whether it may share a traversal with adjacent passes; by default users' passes do not.
    settles : bool
        Whether it is idempotent; passes that consist of rules are.
    enters : bool
        Whether it also runs on bodies of loops and branches; by default passes with a function do
        not.
    """

    __module__ = "wengert.rewrite"

    def __init__(
        self,
        name: str,
        rules: Sequence[AnyRule] = (),
        *,
        merges: bool = False,
        function: Function | None = None,
        joins: bool = False,
        settles: bool = False,
        enters: bool = False,
    ) -> None:
        self.name, self.rules, self.merges, self.joins = name, tuple(rules), merges, joins
        self.function, self.settles = function, settles or function is None
        self.enters = enters or function is None
        self._index: RuleIndex | None = None

    def __repr__(self) -> str:
        return f"<pass {self.name}>"

    def run(self, graph: AnyGraph) -> tuple[AnyGraph, tuple[Applied, ...]]:
        """The graph after this pass, and the rules that were applied."""
        if self.function is not None:
            return self.function(graph), ()
        if self._index is None:
            self._index = RuleIndex(self.rules)
        driver = Driver(graph, self._index, self.merges)
        return driver.run(graph), tuple(driver.applied)

    def __call__(self, graph: AnyGraph) -> AnyGraph:
        """The graph after this pass; the given graph is not changed."""
        result = self.run(graph)[0]
        check(self.name, graph, result, True, set())
        return result


class _Loops(Pass):
    """The loop passes, with the rewrites that they applied."""

    def run(self, graph: AnyGraph) -> tuple[AnyGraph, tuple[Applied, ...]]:
        """The graph after this pass, and the rewrites."""
        return loop_passes.rewritten(graph)


def _joined(passes: Sequence[Pass]) -> Pass:
    """Passes that rewrite one node at a time, joined into one."""
    if len(passes) == 1:
        return passes[0]
    key = tuple(passes)
    joined = _JOINED.get(key)
    if joined is None:
        name = " + ".join(p.name for p in passes)
        rules = [r for p in passes for r in p.rules]
        if len(_JOINED) >= 64:
            _JOINED.clear()
        merges = any(p.merges for p in passes)
        joined = _JOINED[key] = Pass(name, rules, merges=merges, joins=True)
    return joined


_JOINED: dict[tuple[Pass, ...], Pass] = {}


_REGISTRY: dict[str, Pass] = {}


def register_pass(name: str, definition: Callable[..., Any], *, replace: bool = False) -> Pass:
    """Register a pass under a name.

    Parameters
    ----------
    name : str
    made : callable, sequence of rules, or Pass
        ``definition(graph)`` returns a graph.
    replace : bool
        Whether it may replace another pass of that name.

    Raises
    ------
    RegistryError
        Another pass has that name.
    ArgumentError
        `definition` is neither callable nor a sequence of rules.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.rewrite import register_pass, simplify
    >>> def count_nodes(graph):
    ...     print(len(graph), "nodes")
    ...     return graph
    >>> register_pass("count nodes", count_nodes, replace=True)
    <pass count nodes>
    >>> graph = simplify(wg.trace(lambda x: x * 1.0)(2.0), ["count nodes"])
    3 nodes
    """
    if name in _REGISTRY and not replace:
        raise RegistryError(
            f"a pass named {name!r} is registered already. Choose another name, or pass "
            f"replace=True{at(user_line())}."
        )
    registered = _REGISTRY[name] = _as_pass(definition, name)
    return registered


def passes() -> list[str]:
    """The names of all registered passes."""
    return list(_REGISTRY)


def _as_pass(definition: Any, name: str | None = None) -> Pass:
    if isinstance(definition, str):
        if definition in _REGISTRY:
            return _REGISTRY[definition]
        similar = difflib.get_close_matches(definition, _REGISTRY, 1)
        hint = f" Did you mean {similar[0]!r}?" if similar else ""
        raise RegistryError(
            f"there is no pass {definition!r}; choose among {', '.join(_REGISTRY)}.{hint}"
            f"{at(user_line())}"
        )
    if isinstance(definition, Pass):
        return definition
    if isinstance(definition, Rule | NodeRule):
        return Pass(name or definition.name, [definition])
    if callable(definition):
        return Pass(name or str(getattr(definition, "__name__", "pass")), function=definition)
    if isinstance(definition, Iterable):
        rules = list(definition)
        if rules and all(isinstance(r, Rule | NodeRule) for r in rules):
            return Pass(name or ", ".join(r.name for r in rules), rules)
    raise ArgumentError(
        f"a pass is a name, a function of a graph, or a list of rules, not {definition!r}"
        f"{at(user_line())}."
    )


class Passes:
    """An ordered list of passes, repeated until nothing changes; immutable.

    Parameters
    ----------
    passes : iterable
        Names of registered passes, functions of a graph, rules, or lists of rules.
    joined : bool
        Whether adjacent passes share one traversal if they may (`Pass.joins`), which is faster; if
        not, each runs, and is timed and verified, separately.
    rounds : int
        The maximum number of repetitions of the list.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.rewrite import DEFAULT, Rule
    >>> mine = Rule("sinc", lambda x: np.sin(x) / x, lambda x: np.sinc(x / np.pi), reason="at 0")
    >>> longer = DEFAULT.add([mine], "mine", after="algebra")
    >>> longer.names[2:4]
    ['algebra', 'mine']
    >>> float(longer(wg.trace(lambda x: np.sin(x) / x)(1.0))(0.0))
    1.0
    """

    __module__ = "wengert.rewrite"

    def __init__(self, passes: Iterable[Any], *, joined: bool = True, rounds: int = ROUNDS) -> None:
        self._passes = [_as_pass(p) for p in passes]
        self.joined, self.rounds = joined, rounds
        names = [p.name for p in self._passes]
        duplicates = {n for n in names if names.count(n) > 1}
        if duplicates:
            raise ArgumentError(
                f"the pass {min(duplicates)!r} is listed twice. Remove or rename one of them"
                f"{at(user_line())}."
            )
        self._bodies: Bodies | None = None

    def __repr__(self) -> str:
        return f"<passes {', '.join(self.names)}>"

    @property
    def names(self) -> list[str]:
        """The names of the passes, in order."""
        return [p.name for p in self._passes]

    def add(
        self,
        definition: Callable[..., Any] | list[Any],
        name: str | None = None,
        *,
        before: str | None = None,
        after: str | None = None,
    ) -> Passes:
        """The list with one more pass: before or after another, by default at the end.

        Raises
        ------
        RegistryError
            There is no pass of that name in this list.
        """
        position = len(self._passes)
        if before is not None:
            position = self._index(before)
        elif after is not None:
            position = self._index(after) + 1
        extended = [*self._passes[:position], _as_pass(definition, name), *self._passes[position:]]
        return Passes(extended, joined=self.joined, rounds=self.rounds)

    def without(self, *names: str) -> Passes:
        """The list without some passes."""
        removed = {self._index(n) for n in names}
        remaining = [p for i, p in enumerate(self._passes) if i not in removed]
        return Passes(remaining, joined=self.joined, rounds=self.rounds)

    def one_by_one(self) -> Passes:
        """The same list, in which each pass runs, and is timed and verified, separately."""
        return Passes(self._passes, joined=False, rounds=self.rounds)

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise RegistryError(
                f"there is no pass {name!r} in this list: {', '.join(self.names)}{at(user_line())}."
            )
        return self.names.index(name)

    def steps(self) -> list[Pass]:
        """The passes of one round, adjacent ones joined if `joined`."""
        if not self.joined:
            return self._passes
        steps: list[Pass] = []
        group: list[Pass] = []
        for p in self._passes:
            if p.function is None and p.joins:
                group.append(p)
                continue
            steps += [_joined(group)] if group else []
            steps.append(p)
            group = []
        return steps + ([_joined(group)] if group else [])

    def __call__(
        self, graph: AnyGraph, *, verify: bool = True, history: PassHistory | None = None
    ) -> AnyGraph:
        """The graph after all passes, repeated until nothing changes."""
        steps = self.steps()
        trusted: set[Node] = set(graph.nodes)
        traversals = sum(p.function is None for p in steps)
        for _ in range(self.rounds):
            graph = self._within(graph, verify, trusted, history)
            repeat = False
            for p in steps:
                start = time.perf_counter()
                after, applied = _run(p, graph)
                changed = after is not graph
                if changed:
                    check(p.name, graph, after, verify, trusted)
                    repeat = repeat or not p.settles or traversals > 1
                if history is not None:
                    seconds = time.perf_counter() - start
                    history.steps.append(PassRun(p.name, seconds, graph, after, applied))
                graph = after
            if not repeat:
                break
        return graph

    def _within(
        self, graph: AnyGraph, verify: bool, trusted: set[Node], history: PassHistory | None
    ) -> AnyGraph:
        """The graph with bodies of loops and branches simplified."""
        if not any([node.params and bodies_of(node) for node in graph.nodes]):
            return graph
        if self._bodies is None:
            body_passes = [p for p in self._passes if p.enters]
            inner = self if len(body_passes) == len(self._passes) else None
            inner = inner or Passes(body_passes, joined=self.joined, rounds=self.rounds)
            self._bodies = Bodies(lambda body, body_history: inner(body, history=body_history))
        start = time.perf_counter()
        after, body_histories = self._bodies.of(graph, None if history is None else PassHistory)
        if after is not graph:
            check("bodies", graph, after, verify, trusted)
            if history is not None:
                seconds = time.perf_counter() - start
                history.steps.append(PassRun("bodies", seconds, graph, after, (), body_histories))
        return after


def _run(p: Pass, graph: AnyGraph) -> tuple[AnyGraph, tuple[Applied, ...]]:
    try:
        return p.run(graph)
    except Exception as error:
        error.add_note(f"in the rewriting pass {p.name!r}")
        raise


_LIBRARY = (
    Pass("fold", constant_folding.RULES, joins=True),
    Pass("merge", merges=True, joins=True),
    Pass("algebra", algebra.RULES, joins=True),
    Pass("derivatives", derivative_guards.RULES, joins=True),
    Pass("matrices", contractions.RULES, joins=True),
    Pass("stabilise", [*stabilize.RULES, *exponentials.RULES], joins=True),
    Pass("shapes", [*shapes.RULES, *store_forwarding.RULES], joins=True),
    Pass("messages", function=with_late_factors, settles=True, enters=True),
    _Loops("loops", function=loop_passes.rewritten, enters=True),
    Pass("prune", function=pruned, settles=True, enters=True),
)
_REGISTRY.update({p.name: p for p in _LIBRARY})

DEFAULT = Passes(_LIBRARY)


def simplify(
    graph: AnyGraph, passes: Passes = DEFAULT, *, verify: bool = True, history: bool = False
) -> AnyGraph:
    """Simplify a graph: the same function with fewer, cheaper and more accurate nodes.

    Parameters
    ----------
    graph : Graph
        Not changed.
    passes : Passes, or iterable of passes
        Names, functions of a graph, lists of rules; by default all of `DEFAULT`.
    verify : bool
        Whether the spec of every new node is inferred again after each pass.
    history : bool
        Whether to record the rewrites of each pass, as ``graph.history`` of the result.

    Returns
    -------
    Graph
        Of the same class; the graph itself if nothing changed and no history is requested.

    Raises
    ------
    GraphError
        A pass returned something that is not such a graph; the message names it. Rules that undo
        each other.
    RegistryError
        An unknown pass.

    Notes
    -----
    The time is linear in the number of nodes: about 10 microseconds each.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.rewrite import simplify
    >>> graph = wg.trace(lambda x: np.log(np.sum(np.exp(x * 1.0))))(np.ones(3))
    >>> [node.op.name for node in simplify(graph)]
    ['input', 'logsumexp']
    """
    check_graph(graph, "simplify")
    chosen = passes if isinstance(passes, Passes) else Passes(_listed(passes))
    if not history:
        return chosen(graph, verify=verify)
    steps = PassHistory()
    result = chosen(graph, verify=verify, history=steps)
    if result is graph:
        result = graph.with_nodes({})
    result.history = steps  # type: ignore[attr-defined]
    return result


def _listed(passes: Any) -> list[Any]:
    is_list = isinstance(passes, Iterable) and not isinstance(passes, str | Pass | Handle)
    return list(passes) if is_list else [passes]
