"""The order of messages: the token that collective operations take and return.

A collective operation sends messages to other processes, so every process must run it, in the same
order, also where its result is not used.  It therefore takes a *token*, a float16 that is always
0.0, and returns the next one (kinds/collective.py).  The tokens are an ordinary value of the graph:
they keep operations from being merged, removed and exchanged, loops carry them, and derivatives
have a chain of tokens of their own, so that the messages of a backward pass are sent by all
processes, in the reverse order.

The tensor of the current token belongs to a context: the run of a function that is traced or
differentiated.  Collective operations write the next token to it, like an update in place, which
loops and branches of the front end carry.  Outside of such contexts there is none, and operations
run immediately.

    is_used      whether collective operations may occur: wengert.distributed has been imported
    refuse_first_use    the error if that happened in a function that is traced or differentiated
    current      the tensor of the current token, or None
    advance      set the current token
    OrderWanted  what is traced needs a token, and has none
    ordered_by   a context with a token of its own
    MpiLibrary   the addresses that native code uses
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.errors import TraceError, at, user_line

from .handle import rebind
from .implicit_conversions import gated
from .node import Node
from .spec import Spec
from .thread_state import Blocks, ScopedValue

if TYPE_CHECKING:
    from .handle import Handle

# The value of every token.  Its dtype, which messages cannot have, distinguishes tokens from other
# values.
NO_MESSAGES = np.float16(0.0)
_tokens: Blocks[Any] = Blocks("wengert_message_token", None)


class _MessageUse:
    count = 0
    were_unordered = False  # whether a collective operation has run without a token


class MpiLibrary:
    """The MPI library that native code calls; set by wengert.distributed.

    Attributes
    ----------
    address_of : callable
        The address of a function (``function.MPI_Send``), or of a number that holds a handle
        (``handle.op.SUM``).
    """

    address_of: Callable[[str], int]


def is_token(spec: Any) -> bool:
    """Whether a value of that spec may be a token."""
    return type(spec) is Spec and spec.shape == () and spec.dtype == NO_MESSAGES.dtype


def start_using() -> None:
    """Let transformations order messages from now on."""
    _MessageUse.count = 1


def is_used() -> bool:
    """Whether collective operations may occur."""
    return _MessageUse.count != 0


def note_unordered() -> None:
    """Note that a collective operation runs without a token."""
    _MessageUse.were_unordered = True


def refuse_first_use() -> None:
    """Raise if a run that began before collective operations were in use has exchanged messages.

    Raises
    ------
    TraceError
        It had no token, so its derivative would leave out messages.
    """
    if _MessageUse.count and _MessageUse.were_unordered:
        raise TraceError(
            "a function that is differentiated, traced or compiled imports wengert.distributed for "
            "the first time in the process, and exchanges messages, whose order is not known. "
            f"Import it at the top of the program{at(user_line())}."
        )


def current() -> Handle | None:
    """The tensor of the current token, or None."""
    return _tokens.get() if _MessageUse.count else None


def advance(token: Any) -> None:
    """Set the current token, if there is one, to that of the last collective operation."""
    tensor = current()
    if tensor is None or token.node is tensor.node:
        return
    if type(token.node) is Node or type(tensor.node) is not Node:  # within `no_grad` it is neither
        rebind(tensor, token.node)


class OrderWanted(TraceError):
    """Something that must happen in order was traced without a token: trace it again, with one."""


@contextmanager
def ordered_by(tensor: Handle | None) -> Iterator[None]:
    """A context in which `tensor` has the current token."""
    block: ScopedValue[Any] = ScopedValue(tensor)
    with gated():  # compiled functions read the token
        try:
            _tokens.open(block)
            yield
        finally:
            block.end(True)
            _tokens.forget()
