"""Recording state: whether operations on tensors are recorded.

The state is a context variable, so threads and asyncio tasks do not see each other's `no_grad`.
Reading it costs time in every operation, so the module also counts the blocks that are open in any
thread: while there are none, `apply` reads one integer only.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Iterator
from contextlib import ContextDecorator, contextmanager
from typing import TYPE_CHECKING, Any

from .node import next_serial
from .replaced_errors import Refusals, hidden
from .thread_state import Blocks, Opening, Openings, ScopedValue, lock

if TYPE_CHECKING:
    from wengert._engine.core.node import Node

_enabled: Blocks[bool] = Blocks("wengert_recording", True)
_lock = lock()
switches = Openings()  # while a block is open, operations and compiled functions read the state


@contextmanager
def paused() -> Iterator[None]:
    """A block in which `apply` reads the state."""
    opening = switches.begin()
    try:
        yield
    finally:
        switches.end(opening)


class Changes:
    """The number of changes to Python state that compiled functions depend on.

    Changes of the mode of a model, of the set of frozen parameters, or of the options of an
    optimizer are counted; compiled functions then check their guards again (`Session.guards`).
    """

    count = 0

    @classmethod
    def note(cls) -> None:
        """Count a change."""
        with _lock:
            cls.count += 1


def is_recording() -> bool:
    """Whether operations on tensors are currently recorded."""
    return switches.count == 0 or _enabled.get()


class Session:
    """The effects of a traced function, in addition to its results.

    Attributes
    ----------
    effects : list of Node
        Nodes that run although no output needs their value: prints, runtime checks.
    written : dict
        Handles older than the trace that have been written to, with their previous nodes.
    views : dict
        Handles that share memory with these and were updated, with their previous nodes.
    reads : list of (Node, str, str)
        Values that became plain numbers: the node, the method (``"item()"``), and the source line.
    since : int
        The serial number at which the session began; older nodes are captured.
    watching : bool
        Nothing is traced; only source lines are recorded (`note_lines`).
    general : bool
        Variables will have other values when the graph runs, so their values are not used.
    isolated : bool
        Writes to captured traced values are also recorded in `written`.
    grads : dict
        Tensors whose ``.grad`` has been written to, with the previous gradient, and whether it was
        set before anything was added to it.
    added : set
        Tensors to whose gradient something has been added.
    guards : list of (callable, object)
        Captured state that the function depends on: a function that reads it, and its value.
    where, level
        While a derivative is recorded: the source line that is being differentiated, and the
        order of the derivative.
    lengths : dict or None
        In a loop body: by name, the sizes that are known only in a step of the loop, as nodes of
        the size plus one (ops/indexing/traced_slices.py). `length_names` has the name for each
        expression; names in the enclosing sessions (`around`) are used too.
    aliased : list of weak references
        New arrays that share memory on conditions (branch_aliases.py).
    checks : Checks or None
        The NaN checks of every value (`nonfinite_checks`); then nothing is traced.
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
        self.lengths: dict[str, Node] | None = None
        self.length_names: dict[Any, str] = {}
        self.around: Session | None = None
        self.aliased: list[Any] = []

    def enter(self, node: Node) -> None:
        """Start recording derivatives of this node."""
        self.where = node.where

    @contextmanager
    def deriving(self, level: int) -> Iterator[Session]:
        """A block that records a derivative of that order."""
        previous = self.where, self.level
        self.level = level
        try:
            yield self
        finally:
            self.where, self.level = previous

    def grads_left(self) -> list[tuple[Any, Any, bool]]:
        """Tensors, their current gradients, and whether these were set before additions."""
        return [(x, x._grad, was_set) for x, (_, was_set) in self.grads.items()]

    def put_back(self) -> None:
        """Restore the nodes of handles that have been written to."""
        for handle, node in (self.views | self.written).items():
            handle.node = node
        for handle, (grad, _) in self.grads.items():
            handle._grad = grad


_session: Blocks[Session | None] = Blocks("wengert_session", None)


def current_trace() -> Session | None:
    """The active trace, or None."""
    session = _session.get() if switches.count else None
    return None if session is None or session.watching else session


def recording_session() -> Session | None:
    """The active session, or None; None also for one that only runs NaN checks."""
    session = _session.get() if switches.count else None
    return session if session is None or session.checks is None else None


def innermost_session() -> Session | None:
    """The active session of any kind, or None."""
    return _session.get() if switches.count else None


def open_session(session: Session | None, owner: object) -> ScopedValue[Session | None]:
    """Open a session until its owner ends it (`ScopedValue.end`) or is freed."""
    block = ScopedValue(session)
    block.end_with(owner)
    _session.open(block)
    return block


@contextmanager
def tracing(watching: bool = False) -> Iterator[Session]:
    """A block that is traced; tensors that it writes to are restored at its end."""
    session = Session(watching)
    around = current_trace()
    session.general = around is not None and around.general
    block: ScopedValue[Session | None] = ScopedValue(session)
    with paused():
        try:
            _session.open(block)
            yield session
        except Exception as error:
            ours = hidden(error)
            if ours is None:
                raise
            raise ours from None
        finally:
            block.end(True)
            Refusals.forget()
            try:
                session.put_back()
            except BaseException:  # after an interrupt, restore the remaining tensors too
                session.put_back()
                raise
            _session.forget()
            if around is not None:
                around.guards += session.guards


@contextmanager
def note_lines() -> Iterator[Session]:
    """A block, or a decorated function, whose operations record the user's file and line.

    For debugging: each operation takes about twice as long. Operations under `no_grad` and operands
    of `detach` also stay in the graph, for `wengert.why`; their gradient is still stopped.

    Yields
    ------
    Session

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
    with tracing(watching=True) as session:
        yield session


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
        except BaseException:  # after an interrupt __exit__ is not called
            self._close(block)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        opened = self._opened
        block = opened[-1][0]
        if len(opened) > 1:  # used in several threads, or nested: each ends its own block
            innermost = _enabled.innermost()
            block = next((b for b, _ in opened if b is innermost), block)
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

        # The state is set only while the code of the generator runs, not while it is suspended.
        @functools.wraps(func)
        def generator(*args: Any, **kwargs: Any) -> Generator[Any, None, Any]:
            items = func(*args, **kwargs)
            while True:
                with type(self)():
                    try:
                        item = next(items)
                    except StopIteration as stop:
                        return stop.value
                yield item

        return generator


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


@contextmanager
def tracing_body() -> Iterator[Session]:
    """A block that is traced for the body of a node.

    It is recorded also within `no_grad`, and for all values of variables and captured arrays.
    """
    with tracing() as session, enable_grad():
        session.isolated = session.general = True
        yield session
