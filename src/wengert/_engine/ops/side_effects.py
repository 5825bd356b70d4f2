"""Side effects: identity operations that print, log, store or check a value; ordering.

Value and derivative pass unchanged.  An eager effect acts immediately.  In a graph it is a node
that acts whenever the graph runs, in the order in which the nodes were recorded, even if its value
is unused; passes neither merge nor remove it (``op.effects.side_effect``).

    Effect                      the class of these operations, with one function
                                `act(value, where, **params)`
    show, log, guard, retrieve  the operations behind wengert.debug
    raise_if                    an exception on a condition: asserts, raises in branches
    after                       a control dependency: a value, after others are computed

With ``gradient=True`` the effect also acts on the cotangent in the backward pass.
"""

from __future__ import annotations

import builtins
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import Example, Operation, apply
from wengert._engine.core.handle import Handle, is_traced, shape_of, value_of
from wengert._engine.core.node import Node
from wengert._engine.core.node_properties import short
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.op_facts import ACTS, Aliasing, Effects
from wengert._engine.core.recording import current_trace
from wengert._engine.core.spec import spec_of
from wengert._engine.core.thread_state import lock
from wengert.errors import GuardError, RegistryError, at, user_line

from .debug_callbacks import entry, write_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

Act = Callable[..., None]


def _same(x: Operand, *others: Any, **params: Any) -> Any:
    return x


class Effect(Operation):
    """The identity with a side effect.

    Parameters
    ----------
    name : str
    act : callable
        ``act(value, where, *, label, ...)``: the effect, given a plain value and the user's line.

    Attributes
    ----------
    is_users_exception : bool
        Whether it raises exceptions of the user's program, which are not converted or annotated.
    """

    effects = Effects(side_effect=True)
    aliasing = Aliasing(view=True)
    host_callback = ACTS
    notes_where = True
    is_users_exception = False
    oracle = staticmethod(_same)

    def __init__(self, name: str, act: Act) -> None:
        super().__init__(name, act.__doc__)
        self.act = act

    def run(self, x: Operand, **params: Any) -> Any:
        """Act, and return the operand."""
        self._act(x, user_line(), params)
        return x

    def placed(self, node: Node) -> Callable[..., Any]:
        """`run` for a node of a graph, with the user's line of the node."""

        def run(x: Operand, **params: Any) -> Any:
            self._act(x, node.where or "", params)
            return x

        return run

    def _act(self, x: Operand, where: str, params: dict[str, Any]) -> None:
        self.act(x, where, **{k: v for k, v in params.items() if k != "gradient"})

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Act immediately; while a graph is built, record a node instead."""
        session = current_trace()
        if session is None or not any(isinstance(a, Handle) for a in args):
            return super().__call__(*args, **params)
        out = apply(self, args, params, _same)
        if out.node.args:
            session.effects.append(out.node)
        else:  # the operand is a constant: no node is recorded
            self._act(out.node.value, user_line(), params)
        return out

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The spec of the operand."""
        return specs[0]

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The cotangent; with ``gradient=True``, after acting on it."""
        if not node.params.get("gradient"):
            return [t]
        # NaN may come from a branch not taken; the pass is then repeated, guarded (reverse.py).
        if not ctx.guarded and not is_traced(t) and np.any(np.isnan(value_of(t))):
            return [t]
        params = {**node.params, "gradient": False}
        params["label"] = f"gradient of {node.params.get('label') or node.name or 'the value'}"
        if isinstance(t, Handle):
            return [self(t, **params)]
        self._act(t, node.where or "", params)
        return [t]

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Array, inputs: list[Array], ctx: RuleContext
    ) -> Any:
        """The tangent."""
        return dots[0]

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """Act once on the whole batch."""
        return self(args[0], **params)


def effect(act: Act) -> Effect:
    """Register a function as an identity operation with that effect (a decorator)."""
    return register(Effect(f"debug_{act.__name__}", act))


class _After(Operation):
    """The first operand, once the others have been computed."""

    kind = "view"
    aliasing = Aliasing(view=True)
    oracle = staticmethod(_same)
    run = staticmethod(_same)

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The spec of the first operand."""
        return specs[0]

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The cotangent, for the first operand only."""
        return [t, *[None] * (len(node.args) - 1)]

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Array, inputs: list[Array], ctx: RuleContext
    ) -> Any:
        """The tangent of the first operand."""
        return dots[0]


_after = register(_After("after", _After.__doc__))


@_after.batch
def _after_batched(args: list[Array], batched: Sequence[bool], size: int, **params: Any) -> Any:
    x, *others = args
    if not batched[0]:
        x = lookup("broadcast_to")(x, shape=(size, *shape_of(x)))
    return _after(x, *others)


@_after.examples
def _after_examples(rng: np.random.Generator) -> Iterator[Example]:
    yield (rng.normal(size=(2, 3)), rng.normal(size=4)), {}
    yield (rng.normal(size=()), 1.0, rng.normal(size=(0,))), {}


def after(x: Operand, *others: Any) -> Any:
    """A value, once others have been computed: a control dependency.

    Parameters
    ----------
    x : array_like or Tensor
    *others : array_like or Tensor
        Values that must be computed, including their side effects, before `x` is used.

    Returns
    -------
    The value of `x`; derivatives pass to `x` alone.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.input("x")
    >>> shown = wg.debug.show(x, "x")
    >>> f = wg.computation(wg.after(x * 2.0, shown), x)
    >>> float(f(1.5))
    x: float64[] 1.5
    3.0
    """
    return _after(x, *others)


# ---- the effects -------------------------------------------------------------------------------


@effect
def show(
    x: Operand, where: str, *, label: str | None = None, file: Any = None, logger: Any = None
) -> None:
    """Print a value with its label."""
    array = np.asarray(x)
    start = f"{label or short(where) or 'value'}: {spec_of(x)} "
    is_array = array.ndim > 0
    line = start + (np.array2string(array, prefix=start, threshold=40) if is_array else str(x))
    if logger is not None:
        logger.info(line)
        return
    # A single write, so that lines of concurrent threads do not interleave.
    (sys.stdout if file is None else file).write(line + "\n")


@show.examples
def _show_examples(rng: np.random.Generator) -> Iterator[Example]:
    yield (rng.normal(size=(2, 3)),), {"label": "x", "file": _NullFile()}


class _NullFile:
    """A file that discards what is written to it."""

    def write(self, text: str) -> None:
        """Do nothing."""


@effect
def log(
    x: Operand, where: str, *, to: Any, label: str | None = None, bins: int | None = None
) -> None:
    """Append a line of JSON about a value to a file, or send it to a logger."""
    write_line(to, entry(x, label, where, bins))


# A graph loaded from a file must not choose files to write to.
log.effects = Effects(side_effect=True, serializable=False)


@log.examples
def _log_examples(rng: np.random.Generator) -> Iterator[Example]:
    yield (rng.normal(size=(2, 3)),), {"to": _NullLogger(), "label": "x"}


class _NullLogger:
    """A logger that discards its messages."""

    def info(self, text: str) -> None:
        """Do nothing."""


@effect
def raise_if(
    x: Operand,
    where: str,
    *,
    error: str | type[Exception],
    message: str,
    notes: tuple[str, ...] = (),
    label: str | None = None,
) -> None:
    """Raise an exception if a condition holds; in a batch, if it holds for any element.

    Parameters
    ----------
    error : str or class
        The name of a built-in exception, or an exception class.
    notes : tuple of str
        They are added to the exception.
    """
    if np.any(x):
        exception = (getattr(builtins, error) if isinstance(error, str) else error)(message)
        for note in notes:
            exception.add_note(note)
        raise exception


raise_if.is_users_exception = True
raise_if.effects = Effects(side_effect=True, only_if_true=True)


@raise_if.examples
def _raise_if_examples(rng: np.random.Generator) -> Iterator[Example]:
    yield (np.False_,), {"error": "ValueError", "message": "it holds"}


@effect
def guard(
    x: Operand,
    where: str,
    *,
    low: float | None = None,
    high: float | None = None,
    finite: bool = True,
    label: str | None = None,
) -> None:
    """Raise GuardError if an element is out of range, NaN or infinite."""
    with np.errstate(invalid="ignore"):
        for name, is_bad in (
            ("finite", finite and np.logical_not(np.isfinite(x))),
            (f"at least {low}", low is not None and np.less(x, low)),
            (f"at most {high}", high is not None and np.greater(x, high)),
        ):
            if np.any(is_bad):
                raise GuardError(_message(np.asarray(x), np.asarray(is_bad), name, label, where))


def _message(x: Any, is_bad: Any, requirement: str, label: Any, where: str) -> str:
    count = int(np.count_nonzero(is_bad))
    index = tuple(int(k) for k in np.unravel_index(int(np.argmax(is_bad)), x.shape))
    location = f" at index {index if len(index) > 1 else index[0]}" if index else ""
    more = f", the first of {count} such elements" if count > 1 else ""
    return (
        f"the guarded value {label or 'here'!s}, {spec_of(x)}, is {x[index]}{location}{more}; "
        f"it must be {requirement}. Inspect the nodes it is computed from (wengert.why, or earlier "
        f"guards){at(where)}."
    )


@guard.examples
def _guard_examples(rng: np.random.Generator) -> Iterator[Example]:
    yield (rng.normal(size=(2, 3)),), {"label": "x"}


class Retrieved:
    """The values stored by `retrieve`, by name; see `wengert.debug.retrieved`.

    Thread-safe.  Beyond a thousand names the oldest is dropped.
    """

    __module__ = "wengert.debug"

    limit = 1000

    def __init__(self) -> None:
        self._values: OrderedDict[str, deque[Any]] = OrderedDict()
        self._lock = lock()

    def put(self, name: str, value: Array, count: int = 1) -> None:
        """Store a value under a name, keeping the last `count` values."""
        with self._lock:
            previous = self._values.pop(name, ())
            self._values[name] = deque(previous, maxlen=count)
            self._values[name].append(value)
            while len(self._values) > self.limit:
                self._values.popitem(last=False)

    def __getitem__(self, name: str) -> Any:
        return self.history(name)[-1]

    def history(self, name: str) -> list[Any]:
        """All values stored under a name, the newest last.

        Raises
        ------
        RegistryError
            The name does not exist; the message lists those that do.
        """
        with self._lock:
            if isinstance(name, str) and name in self._values:
                return list(self._values[name])
            known = ", ".join(self._values) or "none"
        raise RegistryError(
            f"no value has been retrieved under the name {name!r}; existing names: {known}. A "
            f"value is stored when its node runs{at(user_line())}."
        )

    def __contains__(self, name: object) -> bool:
        with self._lock:
            return isinstance(name, str) and name in self._values

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(list(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._values.clear()

    def __repr__(self) -> str:
        return f"<values retrieved: {', '.join(self) or 'none'}>"


retrieved = Retrieved()


@effect
def retrieve(x: Array, where: str, *, label: str, keep: int = 1) -> None:
    """Store a copy of a value, to be read after the run."""
    retrieved.put(label, np.array(x)[()], keep)


@retrieve.examples
def _retrieve_examples(rng: np.random.Generator) -> Iterator[Example]:
    yield (rng.normal(size=(2, 3)),), {"label": "an example of the tests"}
