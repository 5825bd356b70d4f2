"""Collective operations: linear maps between the arrays of all processes of a communicator.

All processes of a communicator run the operation, each with its own operand and result.  It is a
linear map on the space of all operands together, and so are its derivatives: the jvp is the
operation itself, and the vjp the transposed operation, which sends the messages in the opposite
direction.  The inner product that defines the transpose is the sum over the processes.

An operation takes an array and a token, and returns an array and the next token; the tokens order
the messages (core/message_order.py).  A process whose operand or result has no (co)tangent sends
zeros, because others wait for its message.

    collective    the decorator that registers one
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.handle import describe, shape_of, wrap
from wengert._engine.core.message_order import NO_MESSAGES, advance, current, note_unordered
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.op_facts import Cost, Differentiation, Effects
from wengert._engine.core.spec import Spec
from wengert._engine.core.uniform_arrays import zeros

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

Transposed = tuple["Collective", dict[str, Any]]


class Collective(Operation):
    """An operation of all processes of a communicator; made by the decorator `collective`.

    Attributes
    ----------
    replicates : bool
        All processes get the same result.
    of_equal : bool
        All processes have the same operand.
    splits, stacks : bool
        The first axis of the operand, of the result, has an entry for each process.
    pairwise : bool
        Its messages are between two processes, and can be started before they are waited for.
    """

    kind = "collective"
    effects = Effects(serializable=False)
    differentiation = Differentiation(takes_parts=True)
    cost = Cost(1000.0)
    notes_where = True
    is_built_in = True

    def __init__(
        self,
        exchange: Callable[..., Any],
        *,
        name: str | None = None,
        replicates: bool = False,
        of_equal: bool = False,
        splits: bool = False,
        stacks: bool = False,
        pairwise: bool = False,
    ) -> None:
        super().__init__(f"mpi.{name or exchange.__name__}", inspect.getdoc(exchange))
        self.exchange, self.replicates, self.of_equal = exchange, replicates, of_equal
        self.splits, self.stacks, self.pairwise = splits, stacks, pairwise
        self._transposed: Callable[..., Transposed] | None = None
        self._tangent: Callable[..., Any] | None = None
        self._cotangent: Callable[..., Any] | None = None
        self._result: Callable[..., Spec] = lambda spec, **params: spec

    # ---- definition ----------------------------------------------------------------------------

    def transposed(self, rule: Callable[..., Transposed]) -> Callable[..., Transposed]:
        """Define the transpose: `rule(spec, **params) -> (operation, params)` (a decorator).

        `spec` is that of the operand.
        """
        self._transposed = rule
        return rule

    def nonlinear(self, tangent: Callable[..., Any], cotangent: Callable[..., Any]) -> None:
        """Define the derivative of an operation that is not linear.

        Parameters
        ----------
        tangent, cotangent : callable
            ``rule(t, token, x, y, **params)``, for operand `x` and result `y`; they return the
            (co)tangent and the next token.
        """
        self._tangent, self._cotangent = tangent, cotangent

    def result(self, rule: Callable[..., Spec]) -> Callable[..., Spec]:
        """Define the spec of the result: `rule(spec, **params)` (a decorator)."""
        self._result = rule
        return rule

    @property
    def differentiable(self) -> bool:  # type: ignore[override]
        """Whether it has a derivative."""
        return self._transposed is not None or self._tangent is not None

    def signature(self, result: Spec, params: dict[str, Any]) -> Any:
        """What all processes must agree on; None for messages between two processes."""
        if self.pairwise:
            return None
        shape = result.shape[1:] if self.stacks and not self.splits else result.shape
        return self.name, shape, result.dtype.str, params.get("root")

    # ---- values --------------------------------------------------------------------------------

    def run(self, x: Array, token: Any, **params: Any) -> tuple[Array, Any]:
        """Exchange the messages."""
        y = self.exchange(x, **params)
        return y if hasattr(y, "dtype") else np.asarray(y)[()], NO_MESSAGES

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> tuple[Spec, Spec]:
        """The specs of the result and of the token."""
        x = specs[0]
        return self._result(Spec(x.shape, x.dtype), **params), Spec((), NO_MESSAGES.dtype)

    def ordered(self, x: Any, **params: Any) -> Any:
        """The result, after the messages of earlier operations.

        In a function that is traced or differentiated the operation is recorded also if its operand
        is a constant, because other processes need its messages whenever the function runs.
        """
        token = current()
        if token is None:
            note_unordered()
        if token is None or not (token.node.is_traced or describe(x).dtype.kind in "fc"):
            return self(x, NO_MESSAGES, **params)[0]
        y, next_token = self(x, wrap(token.node), **params)
        advance(next_token)
        return y

    def batched_as_kind(
        self, args: Sequence[Any], batched: Sequence[bool], size: Any, params: dict[str, Any]
    ) -> Any:
        """One message for the whole batch."""
        x, token = args
        token = lookup("sum")(token, axis=0) if batched[1] else token
        spread: Any = lookup("broadcast_to")
        if not batched[0]:  # in another process it may be
            x = spread(x, shape=(size, *shape_of(x)))
        x = _exchanged(x) if self.splits else x
        y, token = self(x, token, **self.batched_params(params, size))
        return _exchanged(y) if self.stacks else y, spread(token, shape=(size,))

    def batched_params(self, params: dict[str, Any], size: Any) -> dict[str, Any]:
        """The parameters for a batch."""
        if "shape" in params:
            return {**params, "shape": (size, *params["shape"])}
        return params

    # ---- derivatives ---------------------------------------------------------------------------

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: RuleContext) -> list[Any]:
        """The transposed operation, of the cotangent or of zeros."""
        y, token = t.get(0), t.get(1)
        token = NO_MESSAGES if token is None else token
        spec, of_result = _specs_of(node)
        if spec.dtype.kind not in "fc" or of_result.dtype.kind not in "fc":
            return [None, token]
        y = zeros(of_result) if y is None else y
        if self._cotangent is not None:
            return list(self._cotangent(y, token, inputs[0], out[0], **node.params))
        if self._transposed is None:
            raise self.no_rule(node)
        op, params = self._transposed(spec, **node.params)
        return list(op(y, token, **params))

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext
    ) -> tuple[Any, Any]:
        """The same operation, of the tangent or of zeros."""
        x, token = dots
        token = NO_MESSAGES if token is None else token
        spec, of_result = _specs_of(node)
        if spec.dtype.kind not in "fc" or of_result.dtype.kind not in "fc":
            return zeros(of_result), token
        x = zeros(spec) if x is None else x
        if self._tangent is not None:
            return tuple(self._tangent(x, token, inputs[0], out[0], **node.params))
        if self._transposed is None:
            raise self.no_rule(node)
        return tuple(self(x, token, **node.params))


def _specs_of(node: Node) -> tuple[Spec, Spec]:
    """The specs of the operand and of the result."""
    spec = describe(node.args[0]) if not isinstance(node.args[0], Node) else node.args[0].spec
    return spec, node.spec[0]


def _exchanged(x: Any) -> Any:
    """An array with its first two axes exchanged."""
    return lookup("transpose")(x, axes=(1, 0, *range(2, len(shape_of(x)))))


HASH_MASK, HASH_FACTOR = 2**55 - 1, 1000003


def number_of(text: str, lengths: Sequence[int] = ()) -> int:
    """A number below 2**55 that stands for a text and some lengths."""
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little") >> 1
    for length in lengths:
        number = number * HASH_FACTOR + length & HASH_MASK
    return number


def collective(**options: Any) -> Callable[[Callable[..., Any]], Collective]:
    """Register the decorated function as a collective operation.

    Parameters
    ----------
    name : str, optional
        By default the name of the function.
    replicates, of_equal, splits, stacks, pairwise : bool
        See `Collective`.

    Notes
    -----
    The function takes a plain array and the parameters, among them the communicator `comm`, sends
    and receives the messages, and returns a plain array.
    """
    return lambda exchange: register(Collective(exchange, **options))
