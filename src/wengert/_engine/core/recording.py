"""Recording state: whether operations on tensors are recorded.

The state is a context variable, so threads and asyncio tasks do not see each other's `no_grad`.
Reading it costs time in every operation, hence the module also counts how many blocks of it
are open anywhere: while there are none, `apply` looks at one integer and nothing else.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Iterator
from contextlib import ContextDecorator, contextmanager
from typing import TYPE_CHECKING, Any

from .dynamic_scope import Blocks, Opening, Openings, ScopedValue
from .fork_safe_locks import lock
from .node import next_serial
from .replaced_errors import Refusals, hidden

if TYPE_CHECKING:
    from wengert._engine.core.node import Node

_enabled: Blocks[bool] = Blocks("wengert_recording", True)
_lock = lock()
switches = Openings()  # while there are any, operations and compiled functions look at the state


@contextmanager
def paused() -> Iterator[None]:
    """A block in which `apply` looks at the state."""
    opening = switches.begin()
    try:
        yield
    finally:
        switches.end(opening)


class Changes:
    """How often something of Python has changed that compiled functions were built for.

    A model's mode, whether a parameter is frozen, the options of an optimiser: whoever changes one
    counts it here, and compiled functions that have not looked since look again (`Session.guards`).
    """

    count = 0

    @classmethod
    def note(cls) -> None:
        """Something has changed."""
        with _lock:
            cls.count += 1


def is_recording() -> bool:
    """Whether operations on tensors are recorded here and now."""
    return switches.count == 0 or _enabled.get()


class Session:
    """What happens while a function is traced, beside the values that it returns.

    Attributes
    ----------
    effects : list of Node
        Nodes that are to run although nothing needs their value: prints, guards.
    written : dict
        Handles that were there before and have been written to, with the node they had.
    views : dict
        Handles that share memory with these, and have followed, with the node they had.
    reads : list of (Node, str, str)
        Values that became plain numbers: the node, by what (``"item()"``), and the user's line.
    since : int
        The serial number at which it began; older nodes are from outside.
    watching : bool
        Nothing is traced; somebody only wants to know more of what is recorded (`note_lines`).
    general : bool
        Variables will have other values whenever the list runs: none is looked at.
    isolated : bool
        Writing to traced values from outside is noted in `written`, too.
    grads : dict
        Tensors whose ``.grad`` has been written to, with the gradient they had, and whether it was
        set before anything was added to it.
    added : set
        Tensors to whose gradient something has been added.
    guards : list of (callable, object)
        What the function was told that is not an argument: how to ask again, and the answer.
    where, level
        While a derivative is recorded: the user's line that is being differentiated, the order.
    checks : Checks or None
        What is looked for in every value (`core.checking`); then nothing is traced, and nothing is
        kept that would not be kept else.
    """

    def __init__(self, watching: bool = False) -> None:
        self.since = next_serial()
        self.watching = watching
        self.general = False
        self.isolated = False
        self.where: str | None = None
        self.level = 0
        self.checks: Any = None
        self.effects: list[Any] = []
        self.written: dict[Any, Any] = {}
        self.views: dict[Any, Any] = {}
        self.reads: list[tuple[Any, str, str]] = []
        self.guards: list[tuple[Callable[[], Any], Any]] = []
        self.grads: dict[Any, tuple[Any, bool]] = {}
        self.added: set[Any] = set()

    def enter(self, node: Node) -> None:
        """The nodes to come stem from this one."""
        self.where = node.where

    @contextmanager
    def deriving(self, level: int) -> Iterator[Session]:
        """A block that records a derivative of that order of nodes that are noted."""
        outside = self.where, self.level
        self.level = level
        try:
            yield self
        finally:
            self.where, self.level = outside

    def grads_left(self) -> list[tuple[Any, Any, bool]]:
        """Tensors, the gradients they have now, and whether these were set before added to."""
        return [(x, x._grad, was_set) for x, (_, was_set) in self.grads.items()]

    def put_back(self) -> None:
        """Give what has been written to the nodes that it had."""
        for handle, node in (self.views | self.written).items():
            handle.node = node
        for handle, (grad, _) in self.grads.items():
            handle._grad = grad


_session: Blocks[Session | None] = Blocks("wengert_session", None)


def current_trace() -> Session | None:
    """The active trace, or None."""
    opened = _session.get() if switches.count else None
    return None if opened is None or opened.watching else opened


def recording_session() -> Session | None:
    """The active session, unless it only runs NaN checks; or None."""
    opened = _session.get() if switches.count else None
    return opened if opened is None or opened.checks is None else None


def innermost_session() -> Session | None:
    """The active session, of any kind; or None."""
    return _session.get() if switches.count else None


def open_session(opened: Session | None, owner: object) -> ScopedValue[Session | None]:
    """Let a session begin here, until its owner ends it (`Block.end`) or goes."""
    block = ScopedValue(opened)
    block.end_with(owner)
    _session.open(block)
    return block


@contextmanager
def tracing(watching: bool = False) -> Iterator[Session]:
    """A block that is traced; what it writes to is put back at its end."""
    opened = Session(watching)
    around = current_trace()
    opened.general = around is not None and around.general
    block: ScopedValue[Session | None] = ScopedValue(opened)
    with paused():
        try:
            _session.open(block)
            yield opened
        except Exception as error:
            ours = hidden(error)
            if ours is None:
                raise
            raise ours from None
        finally:
            block.end(True)
            Refusals.forget()
            try:
                opened.put_back()
            except BaseException:  # Ctrl-C: whatever else, nothing is left without its value
                opened.put_back()
                raise
            _session.forget()
            if around is not None:
                around.guards += opened.guards


@contextmanager
def note_lines() -> Iterator[Session]:
    """A block, or a decorated function, whose operations remember the user's file and line.

    For debugging: each operation takes about twice as long. What `no_grad`, `detach` and the like
    cut off also stays visible to `wengert.why` and to whoever looks at the graph; no derivative
    passes there, as ever.

    Yields
    ------
    Session
        What was noted beside the nodes.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> with wg.note_lines():
    ...     y = np.sum(x * x)
    >>> y.node.where is not None
    True
    """
    already = recording_session()
    if already is not None:
        yield already
        return
    with tracing(watching=True) as opened:
        yield opened


class _Switch(ContextDecorator):
    """A block, or a decorated function or generator, with recording switched on or off."""

    enabled: bool

    def __init__(self) -> None:
        self._opened: list[tuple[ScopedValue[bool], Opening]] = []

    def __enter__(self) -> _Switch:
        block = ScopedValue(self.enabled)
        block.end_with(self)
        self._opened.append((block, switches.begin()))
        try:
            _enabled.open(block)
        except BaseException:  # Ctrl-C: nobody will call __exit__
            self._close(block)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        mine = self._opened
        block = mine[-1][0]
        if len(mine) > 1:  # used in several threads, or nested: each ends its own block
            here = _enabled.innermost()
            block = next((b for b, _ in mine if b is here), block)
        self._close(block)

    def _close(self, block: ScopedValue[bool]) -> None:
        block.end(True)
        _enabled.forget()
        for opened in [x for x in self._opened if x[0] is block]:
            self._opened.remove(opened)
            switches.end(opened[1])

    def _recreate_cm(self) -> _Switch:
        return type(self)()

    def __call__(self, func: Callable[..., Any]) -> Any:
        if not inspect.isgeneratorfunction(func):
            return super().__call__(func)

        # The state holds while the generator's own code runs, and not between its items.
        @functools.wraps(func)
        def stepping(*args: Any, **kwargs: Any) -> Generator[Any, None, Any]:
            items = func(*args, **kwargs)
            while True:
                with type(self)():
                    try:
                        item = next(items)
                    except StopIteration as stop:
                        return stop.value
                yield item

        return stepping


class no_grad(_Switch):
    """Operations inside are not recorded; their results are constants.

    Usable as ``with no_grad():`` and as a decorator, also of generators.

    Examples
    --------
    >>> import wengert as wg
    >>> w = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> with wg.no_grad():
    ...     y = w * 2.0
    >>> y.requires_grad
    False
    """

    __module__ = "wengert"

    enabled = False


class enable_grad(_Switch):
    """Operations inside are recorded again, within a `no_grad` block.

    Examples
    --------
    >>> import wengert as wg
    >>> w = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> with wg.no_grad(), wg.enable_grad():
    ...     y = w * 2.0
    >>> y.requires_grad
    True
    """

    __module__ = "wengert"

    enabled = True
