"""Operations that run on the host, because the device has no function for them.

Their operands are copied to the host, and their results back. Which operations these are is known
of some before a run; of others, for which CuPy lacks a dtype or an option, when they run first.

    CallbackLog    those of a program
    is_on_host       whether an operation always runs on the host
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wengert.errors import BackendError, MatrixError, at

if TYPE_CHECKING:
    from wengert._engine.core.node import Node


def is_on_host(node: Node) -> bool:
    """Whether the operation of a node always runs on the host."""
    op = node.op
    # CuPy takes an index beyond the end as one from the start again.
    has_positions = op.kind in ("view", "indexing") and bool(node.args[op.selectors])
    return bool(op.effects.side_effect or op.host_callback or has_positions)


class CallbackLog:
    """The operations of a program that have run on the host.

    Parameters
    ----------
    are_allowed : bool
        Otherwise each is an error.
    """

    def __init__(self, are_allowed: bool = True) -> None:
        self.are_allowed = are_allowed
        self.nodes: dict[Node, str] = {}  # with the error of the device

    def note(self, node: Node, reason: Exception | None = None) -> None:
        """Note that an operation runs on the host; `reason` is the error of the device.

        Raises
        ------
        BackendError, MatrixError
            Host callbacks are not allowed.
        """
        if not self.are_allowed and isinstance(reason, MatrixError):
            raise reason  # a property of the matrix, which the host would find as well
        text = "" if reason is None else f" ({type(reason).__name__}: {reason})".replace("\n", " ")
        if not self.are_allowed and not node.op.effects.only_if_true:
            operands = ", ".join(str(a.spec) for a in node.inputs)
            raise BackendError(
                f"{node.op.name} of {operands} has no implementation on the device{text}, and "
                "host_callbacks='forbid' does not allow that it runs on the host. Use other "
                f"operations, or allow it, host_callbacks='allow'{at(node.where)}."
            )
        self.nodes.setdefault(node, text)
