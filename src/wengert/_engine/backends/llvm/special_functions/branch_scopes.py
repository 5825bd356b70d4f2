"""Scopes: where the instructions of a value are emitted, in a function with branches and loops.

Straight-line text is a *stage*.  A branch or a loop separates two stages of its scope, and has a
scope of its own inside:

    stage 0    branch (scope: stage 0, loop (scope ...), stage 1)    stage 1    loop    stage 2 ...

A value is emitted into the last stage of its operands.  So a value that depends on stage 0 only is
computed before the branch, whenever it is requested, and all later code may use it; a load from
memory that a branch has written belongs to the stage after it.

    Scope     its stages; `branch` and `loop` open nested scopes
    deepest   the innermost of several scopes
    sees      whether a value of one scope can be used in another
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.ir_builder import Function, Name, Section


class Scope:
    """A part of a function with its branches and loops.

    Parameters
    ----------
    container : Section
        Its text.
    homes : dict
        The scope and number of every stage; all scopes of a function share it.
    condition : str
        The i1 under which it is reached, in addition to the conditions of its parent.

    Attributes
    ----------
    stages : list of Section
    opened : int
        The number of the parent's stage that it follows.
    depth : int
    """

    def __init__(
        self,
        container: Section,
        homes: dict[Section, tuple[Scope, int]],
        parent: Scope | None = None,
        condition: Name = "",
    ) -> None:
        self.container, self.homes = container, homes
        self.parent, self.condition = parent, condition
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.opened = -1 if parent is None else len(parent.stages) - 1
        self.stages: list[Section] = []
        self._branches: list[Scope] = []
        self.advance()

    @property
    def function(self) -> Function:
        """The function that it belongs to."""
        return self.container.function

    @property
    def now(self) -> Section:
        """The last stage."""
        return self.stages[-1]

    def advance(self) -> None:
        """Begin a new stage, after all that has been emitted."""
        stage = self.container.inside()
        self.homes[stage] = (self, len(self.stages))
        self.stages.append(stage)

    def chain(self) -> Iterable[Scope]:
        """The scope and its ancestors, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def branch(self, condition: Name, stage: int) -> Scope:
        """The scope of code that runs only if a condition holds; it sees stages up to `stage`."""
        for known in self._branches:
            if known.condition == condition and known.opened >= stage:
                return known
        n = self.function.number()
        ahead = self.container.inside()
        ahead.write(f"br i1 {condition}, label %then{n}, label %done{n}")
        ahead.label(f"then{n}")
        body = Scope(self.container.inside(), self.homes, self, condition)
        behind = self.container.inside()
        behind.block(f"done{n}")
        self.advance()
        self._branches.append(body)
        return body

    def loop(self, stop: Name) -> LoopScope:
        """A loop that counts from 0 up to an i64, exclusive; `finish` closes it."""
        return LoopScope(self, stop)


class LoopScope:
    """A loop that is being emitted.

    Attributes
    ----------
    ahead : Section
        The section before it.
    body : Scope
    Its i64 counter, in the body.
        The i64 that counts, in the body.
    """

    def __init__(self, scope: Scope, stop: Name) -> None:
        self.scope, self._n = scope, scope.function.number()
        self.ahead = scope.container.inside()
        head = scope.container.inside()
        self._cell = scope.function.slot("i64")
        head.write(f"store i64 0, ptr {self._cell}")
        head.block(f"head{self._n}")
        self.counter = head.value(f"load i64, ptr {self._cell}")
        more = head.value(f"icmp slt i64 {self.counter}, {stop}")
        head.write(f"br i1 {more}, label %body{self._n}, label %done{self._n}")
        head.label(f"body{self._n}")
        self.body = Scope(scope.container.inside(), scope.homes, scope, f"body{self._n}")

    def leave_unless(self, condition: Name) -> None:
        """Leave the loop here if a condition of the body is false."""
        n, body = self.scope.function.number(), self.body
        text = body.container.inside()
        text.write(f"br i1 {condition}, label %go{n}, label %done{self._n}")
        text.label(f"go{n}")
        body.advance()

    def finish(self) -> Section:
        """The section at the end of the body; the loop is closed after it."""
        last = self.body.container.inside()
        end = self.scope.container.inside()
        following = end.value(f"add nsw i64 {self.counter}, 1")
        end.write(f"store i64 {following}, ptr {self._cell}")
        end.write(f"br label %head{self._n}")
        end.label(f"done{self._n}")
        self.scope.advance()
        return last


def deepest(scopes: Iterable[Scope]) -> Scope:
    """The innermost of nested scopes; the later of siblings."""
    return max(scopes, key=lambda s: (s.depth, s.container.rank))


def sees(scope: Scope, other: Scope, stage: int) -> bool:
    """Whether a value of a stage of another scope can be used at the end of this one."""
    if scope is other:
        return True
    return any(s.parent is other and s.opened >= stage for s in scope.chain())
