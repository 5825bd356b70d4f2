"""Operations on the tokens that order messages (core/message_order.py).

of_batch       a token for a batch of tokens
tied           a value, which depends on a token: a result of a program with messages
first_token    the token before the first message of a graph
tie_results    the results of a function with messages, tied to its last token
recomputed     call a function with messages that its derivative runs again
after_tokens   the (co)tangent of a token, after messages that are repeated
within_rule    run a rule of the user, which may exchange messages
with_messages  run a function that is traced, with a token of its own
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.dispatch import Example, Operation
from wengert._engine.core.handle import Handle, describe, shape_of, wrap
from wengert._engine.core.message_order import (
    NO_MESSAGES,
    OrderWanted,
    advance,
    current,
    is_token,
    is_used,
    ordered_by,
    refuse_first_use,
)
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.op_facts import Aliasing
from wengert._engine.core.recording import current_trace
from wengert._engine.core.spec import Spec
from wengert._engine.core.uniform_arrays import zeros

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand


class _Tied(Operation):
    """The first operand, once messages up to a token have been exchanged.

    The cotangent of the token is the current token: the messages of the backward pass are sent
    after those of the forward pass.
    """

    kind = "view"
    aliasing = Aliasing(view=True)
    selectors = slice(1, None)
    oracle = staticmethod(lambda x, token: x)

    def run(self, x: Operand, token: Any) -> Any:
        """The first operand."""
        return x

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The spec of the first operand."""
        return specs[0]

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The cotangent of the value, and the token that the backward pass begins with."""
        latest = current()
        # `joined` is 0.0 also if an operand is no token, as `after_messages` cannot exclude.
        before = inputs[1] if latest is None else wrap(latest.node)
        # What came after the messages in the program comes before them in the backward pass.
        return [t, joined(NO_MESSAGES, before, t)]

    def jvp(self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The tangent of the value, tied to the token of the tangents."""
        x, token = dots
        if token is None:
            return x
        spec = node.spec
        return tied(zeros(spec) if x is None else x, token)


def of_batch(tokens: Any) -> Any:
    """A token for a batch of them, which may be empty."""
    return lookup("sum")(tokens, axis=0)


tied = register(_Tied("tied", _Tied.__doc__))


@tied.batch
def _tied_batched(args: list[Any], batched: Sequence[bool], size: Any, **params: Any) -> Any:
    x, token = args
    if not batched[0]:
        x = lookup("broadcast_to")(x, shape=(size, *shape_of(x)))
    return tied(x, of_batch(token) if batched[1] else token)


@tied.examples
def _tied_examples(rng: np.random.Generator) -> Iterator[Example]:
    yield (rng.normal(size=(2, 3)), 0), {}
    yield (rng.normal(), 0), {}


class _FirstToken(Operation):
    """The token before the first message: a value of the graph that its input belongs to."""

    kind = "view"
    oracle = staticmethod(lambda x: NO_MESSAGES)

    def run(self, x: Operand) -> Any:
        """The token."""
        return NO_MESSAGES

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The spec of tokens."""
        return Spec((), NO_MESSAGES.dtype)

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """No cotangent."""
        return [None]

    def jvp(self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The token of the tangents, which is sent after the values."""
        return None


first_token = register(_FirstToken("first_token", _FirstToken.__doc__))


@first_token.batch
def _first_token_batched(args: list[Any], batched: Sequence[bool], size: Any, **params: Any) -> Any:
    token = current()
    if token is None:
        return zeros(Spec((size,), NO_MESSAGES.dtype))
    return lookup("broadcast_to")(wrap(token.node), shape=(size,))


@first_token.examples
def _first_token_examples(rng: np.random.Generator) -> Iterator[Example]:
    yield (rng.integers(9, size=(2, 3)),), {}


class _Joined(Operation):
    """The token after a function whose own messages are not in the chain of tokens.

    The results of the function get cotangents, if only zeros, so that its rule runs.
    """

    kind = "view"
    oracle = staticmethod(lambda token, *results: NO_MESSAGES)

    def run(self, token: Any, *results: Operand) -> Any:
        """The token."""
        return NO_MESSAGES

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The spec of tokens."""
        return Spec((), NO_MESSAGES.dtype)

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The token, and zeros, which depend on it: the rule sends its messages after those."""
        return [t, *[tied(zeros(describe(x)), t) for x in inputs[1:]]]

    def jvp(self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The token of the tangents, once those of the results have been computed."""
        token, *others = dots
        known = [x for x in others if x is not None]
        return joined(NO_MESSAGES if token is None else token, *known)


joined = register(_Joined("joined", _Joined.__doc__))


@joined.batch
def _joined_batched(args: list[Any], batched: Sequence[bool], size: Any, **params: Any) -> Any:
    token, *results = args
    token = joined(of_batch(token) if batched[0] else token, *results)
    return lookup("broadcast_to")(token, shape=(size,))


@joined.examples
def _joined_examples(rng: np.random.Generator) -> Iterator[Example]:
    yield (0, rng.integers(9, size=3)), {}


def apart(fun: Callable[..., Any], *args: Any, in_own_rule: bool = False) -> Any:
    """Call a function whose derivative is a rule of its own, which exchanges messages itself.

    It runs in order with other messages, but the messages inside are not in their chain of tokens.

    Parameters
    ----------
    fun : callable
    *args
    in_own_rule : bool
        Whether the call is in the rule of the function, which is being transposed: it does not
        depend on the tangents, and would otherwise do so by the token, without end.
    """
    token = current()
    if token is None:
        return fun(*args)
    stopped: Any = lookup("stop_gradient")
    before = wrap(token.node)
    args = tie_results(args, stopped(before) if in_own_rule else before)
    with ordered_by(None):
        results = fun(*args)
    leaves = [x for x in pytree.flatten(results)[0] if _is_inexact(x)]
    if in_own_rule:
        leaves = [stopped(x) if isinstance(x, Handle) else x for x in leaves]
    advance(joined(before, *leaves))
    return results


def recomputed(call: Callable[..., Any], fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function that its derivative runs again, with the messages that it exchanges.

    The token before them is its first argument, and the token after them its last result.

    Parameters
    ----------
    call : callable
        ``call(fun, *args, **kwargs)``, which records the call.
    fun : callable
    """
    token = current()
    if token is None:
        return call(fun, *args, **kwargs)
    were_sent = False

    def with_token(first: Handle, *args: Any, **kwargs: Any) -> tuple[Any, Handle]:
        nonlocal were_sent
        last = wrap(first.node)
        with ordered_by(last):
            results = converted(fun)(*args, **kwargs)
        were_sent = last.node is not first.node
        return results, last

    with_token.__name__ = getattr(fun, "__name__", "function")
    with ordered_by(None):
        results, last = call(with_token, wrap(token.node), *args, **kwargs)
    if were_sent:
        advance(last)
    return results


def after_tokens(x: Any, outs: Sequence[Any]) -> Any:
    """A (co)tangent; if it is that of a token, after the tokens among some values.

    A derivative that computes values again exchanges their messages again, in all processes and
    before its own, whether or not it needs the values.
    """
    if x is not None and is_token(describe(x)):
        for out in outs:
            if out is not None and is_token(describe(out)):
                x = tied(x, out)
    return x


def within_rule(rule: Callable[[], Any], operands: Sequence[Any]) -> Any:
    """The (co)tangents that a rule of the user returns, which may exchange messages itself.

    Its messages have a chain of tokens of their own, which begins when the (co)tangents that it is
    given are known, and which its results depend on.

    Parameters
    ----------
    rule : callable
    operands : sequence
        These (co)tangents; None where there is none.
    """
    latest = current()
    before = NO_MESSAGES if latest is None else wrap(latest.node)
    start = joined(before, *[x for x in operands if x is not None])
    # If nothing is recorded, they are sent as they are called; tensors may be constants.
    if not isinstance(start, Handle) or not (type(start.node) is Node or start.node.is_traced):
        return rule()
    last = wrap(start.node)
    with ordered_by(last):
        results = rule()
    if last.node is start.node:
        return results
    if latest is not None:  # also if nothing uses the results
        advance(joined(wrap(latest.node), last))
    return tie_results(results, last)


def _is_inexact(x: Any) -> bool:
    spec = describe(x)
    return isinstance(spec, Spec) and spec.dtype.kind in "fc"


def tie_results(results: Any, token: Handle) -> Any:
    """Results of a function, with those that are floating-point arrays tied to a token."""
    return pytree.tree_map(lambda x: tied(x, token) if _is_inexact(x) else x, results)


def with_messages(fun: Callable[[], Any], inputs: Sequence[Handle]) -> Any:
    """Run a function that is traced; if it exchanges messages, its results depend on the last one.

    Parameters
    ----------
    fun : callable
    inputs : sequence of Tensor
        The inputs of the graph that it is traced for.
    """
    if not is_used() or not inputs:
        return _without_token(fun)
    token = first_token(inputs[0])
    start = token.node
    with ordered_by(token):
        results = fun()
    if token.node is start:
        return results
    session = current_trace()
    if session is not None and not any(map(_is_inexact, pytree.flatten(results)[0])):
        session.effects.append(token.node)  # no result depends on the messages
    return tie_results(results, token)


def _without_token(fun: Callable[[], Any]) -> Any:
    """The results of a function that begins before collective operations are in use."""
    was_used = is_used()
    results = fun()
    if not was_used:
        refuse_first_use()
    return results


def ordered_in_batch(fun: Callable[[], Any], inputs: Sequence[Handle]) -> tuple[Any, Node | None]:
    """The results of a function that is traced for one element of a batch, and its last token.

    The token is None if the function exchanges no messages.
    """
    if not is_used() or not inputs:
        session = current_trace()
        before = 0 if session is None else len(session.effects)
        try:
            return _without_token(fun), None
        except OrderWanted:
            if not inputs:
                raise
            if session is not None:
                del session.effects[before:]
    token = first_token(inputs[0])
    start = token.node
    with ordered_by(token):
        results = fun()
    return results, None if token.node is start else token.node
