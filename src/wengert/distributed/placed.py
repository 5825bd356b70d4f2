"""Functions whose parts are computed by different processes.

The function is traced in every process, its graph is divided (placement.py), and each process runs
its own nodes, with the operation `exchange` for each value that it sends or receives.  The result
is an ordinary function with messages: its derivatives of any order exchange the transposed
messages, in the reverse order in a backward pass.

    placed        a function that all processes call together
    placement     which process computes which node
    part          the nodes of one process, run with any transport of messages
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.arguments import derived
from wengert._engine.autodiff.messages import Messages, sources_of
from wengert._engine.control_flow.closure_conversion import Closed, closed
from wengert._engine.control_flow.message_carry import with_token
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.dispatch import apply
from wengert._engine.core.graph_copies import inline_graph, record_again
from wengert._engine.core.handle import Handle, describe, is_traced, wrap
from wengert._engine.core.message_order import NO_MESSAGES, current
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace, is_recording
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import record
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.jit import jit
from wengert._engine.kinds.collective import number_of
from wengert.errors import ArgumentError, TraceError, at, user_line

from . import operations
from .arguments import message, rank_of
from .communicators import Communicator, communicator_of
from .data_parallel import as_one_variable
from .placement import Placement

_ONE_PROCESS = "which only one of the processes would do"
_ABSENT = object()  # the value of a node that another process computes


def placed(
    f: Callable[..., Any],
    comm: Any = None,
    outputs: int | str = "all",
    gradients: str = "all",
    compile: bool = True,
) -> Callable[..., Any]:
    """Return a function whose nodes are computed by the processes of their scopes.

    Nodes in ``with wengert.scope(device=rank)`` are computed by the process `rank`, in both
    directions of differentiation. Values that other processes use are sent to them.

    Parameters
    ----------
    f : callable
        Takes and returns arrays or nested containers of them. It has the same scopes and operations
        in all processes, and exchanges no messages itself.
    comm : Communicator or mpi4py communicator, optional
        By default all processes.
    outputs : "all" or int
        Which processes get the results: all, or the one with that rank; the others get zeros.
    gradients : {"all", "owner"}
        Which processes get the gradient with respect to an argument or a captured variable: all,
        or, if one process only uses it, that one; the others get zeros, and no message is
        exchanged.
    compile : bool, default True
        Whether each process compiles its nodes, as `wengert.jit` does.

    Returns
    -------
    callable
        Takes the arguments of `f`. All processes call it together, with the same arguments.

    Raises
    ------
    ArgumentError
        A device is not a rank of `comm`, or an option is not known.
    TraceError
        A compiled loop has nodes in scopes of several processes, or `f` exchanges messages, prints
        or draws random numbers.
    ShapeError, DtypeError
        A value cannot be sent: its length depends on values, or it is a float16.
    CommunicationError
        The graphs of the processes differ.

    Notes
    -----
    *Nodes without a device* are computed by the process of their operand that was placed last, and
    if none was placed, by each process that uses them. A loop or branch is placed as a whole.

    *Messages.* One for each value and process that uses it, in the order of the operations of `f`;
    one to all processes for each output; with ``gradients="all"`` one for each 25 MiB of arguments
    in a backward pass. See `placement`.

    *Graphs.* Each process has variables of its own in a graph that is traced first and
    differentiated afterwards, ``trace(placed(f))(x).grad()``: trace the derivative instead.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import distributed
    >>> def model(v, w, x):
    ...     with wg.scope(device=0):
    ...         h = np.tanh(x @ v)
    ...     with wg.scope(device=distributed.world().size - 1):
    ...         return np.sum(h @ w)
    >>> together = distributed.placed(model)
    >>> float(together(np.zeros((2, 3)), np.ones(3), np.ones(2)))
    0.0
    >>> wg.grad(together)(np.zeros((2, 3)), np.ones(3), np.ones(2))
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """
    if gradients not in ("all", "owner"):
        raise ArgumentError(
            f"placed: gradients={gradients!r} is not 'all' or 'owner'{at(user_line())}."
        )
    if isinstance(outputs, str) and outputs != "all":
        raise ArgumentError(
            f"placed: outputs={outputs!r} is not 'all' or the rank of a process{at(user_line())}."
        )
    if not compile:
        return derived(f, _placed, f, comm, outputs, gradients, name="placed")
    if gradients == "owner":
        return jit(derived(f, _placed, f, comm, outputs, gradients, name="placed"))
    run = jit(derived(f, _placed, f, comm, outputs, "captured", name="placed"))
    return derived(f, _with_one_variable, run, comm, name="placed")


def placement(
    f: Callable[..., Any], comm: Any = None, outputs: int | str = "all"
) -> Callable[..., Placement]:
    """Return a function that divides `f` among processes, without running it.

    Parameters
    ----------
    f, outputs
        As for `placed`.
    comm : Communicator, mpi4py communicator, or int, optional
        By default all processes; an int is a number of processes, which need not exist.

    Returns
    -------
    callable
        Takes the arguments of `f`, arrays or specs, and returns a `Placement`, which can be
        printed.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import distributed
    >>> def model(v, w, x):
    ...     with wg.scope(device=0):
    ...         h = np.tanh(x @ v)
    ...     with wg.scope(device=1):
    ...         return np.sum(h @ w)
    >>> print(distributed.placement(model, 2)(wg.spec((2, 3)), wg.spec(3), wg.spec((10, 2))))
    process 0: 2 nodes (matmul, tanh)
        sends 1 message (240 bytes) to process 1
    process 1: 2 nodes (matmul, sum)
    """
    size = comm if isinstance(comm, int) else communicator_of(comm).size
    return derived(f, _divided, f, size, outputs, name="placement")


def _divided(
    f: Callable[..., Any], size: int, outputs: int | str, /, *args: Any, **kwargs: Any
) -> Placement:
    return Placement(_traced(f, args, kwargs).closure.body, size, _rank_of_outputs(outputs))


class _Traced(NamedTuple):
    """A function as a body, with the operands for its inputs."""

    closure: Closed
    operands: list[Any]


def _traced(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Traced:
    name = getattr(f, "__name__", "function")
    leaves, structure = pytree.flatten((args, kwargs))
    slots = [k for k, x in enumerate(leaves) if isinstance(x, Spec) or _is_array(x)]
    specs = [x if isinstance(x, Spec) else describe(x) for x in (leaves[k] for k in slots)]

    def of_operands(*handles: Any) -> Any:
        full = list(leaves)
        for k, x in zip(slots, handles, strict=True):
            full[k] = x
        args, kwargs = pytree.unflatten(structure, full)
        first = wrap(constant(NO_MESSAGES))
        results, last = with_token(first, lambda: converted(f)(*args, **kwargs))
        if last.node is not first.node:
            raise TraceError(
                f"placed: {name} exchanges messages itself. Values that cross scopes are sent by "
                "`placed`; call collective operations before or after it, or use wengert.jit "
                f"without scopes of devices{at(user_line())}."
            )
        return results

    closure = closed(
        of_operands, specs, f"placed: {name}", hoist=False, without_effects=_ONE_PROCESS
    )
    closure.body.name = name
    return _Traced(closure, [*closure.captured, *[leaves[k] for k in slots]])


def _is_array(x: Any) -> bool:
    return isinstance(x, Handle | np.ndarray | np.generic | int | float | complex)


def _rank_of_outputs(outputs: int | str) -> int | None:
    return None if isinstance(outputs, str) else int(outputs)


def _with_one_variable(run: Callable[..., Any], comm: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a placed function with arguments whose gradients are added over the processes.

    This is not part of the compiled function, in which all arguments are variables.
    """
    leaves, structure = pytree.flatten((args, kwargs))
    slots = [k for k, x in enumerate(leaves) if _is_variable(x)]

    def call() -> Any:
        shared = _as_one_variable([leaves[k] for k in slots], communicator_of(comm))
        for k, x in zip(slots, shared, strict=True):
            leaves[k] = x
        args, kwargs = pytree.unflatten(structure, leaves)
        return run(*args, **kwargs)

    return _in_order([leaves[k] for k in slots], call)


def _placed(
    f: Callable[..., Any],
    comm: Any,
    outputs: int | str,
    gradients: str,
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    comm = communicator_of(comm)
    root = None if isinstance(outputs, str) else rank_of(outputs, comm, "outputs")
    closure, operands = _traced(f, args, kwargs)
    return _in_order(operands, lambda: _run(closure, operands, comm, root, gradients))


def _is_variable(x: Any) -> bool:
    """Whether a derivative with respect to the value may be taken; not of data of a graph."""
    return isinstance(x, Handle) and not sources_of(x.node) <= {"inputs"}


def _in_order(operands: Sequence[Any], run: Callable[[], Any]) -> Any:
    """Run a function with messages; if it is recorded, all processes take part in `backward()`."""
    recorded = [isinstance(x, Handle) and type(x.node) is Node for x in operands]
    if current() is None and is_recording() and any(recorded):
        return Messages().run(run)
    return run()


def _run(
    closure: Closed, operands: Sequence[Any], comm: Communicator, root: int | None, gradients: str
) -> Any:
    """The results of all processes, of which each runs its own nodes."""
    body = closure.body
    placement = Placement(body, comm.size, root)
    digest = number_of(repr((placement.signature(), placement.outputs, gradients)))
    comm.check("a placed function", body.name, f"{len(body)} nodes", f"digest {digest:x}")
    captured = len(closure.captured)
    shared = [  # the others are constants, variables of one process, or shared by the caller
        _is_variable(x)
        and (k < captured or gradients != "captured")
        and (gradients != "owner" or len(placement.users[body.index(n)]) > 1)
        for k, (x, n) in enumerate(zip(operands, body.inputs, strict=True))
    ]
    replaced = iter(_as_one_variable([x for x, s in zip(operands, shared, strict=True) if s], comm))
    operands = [next(replaced) if s else x for x, s in zip(operands, shared, strict=True)]
    results = part(
        placement, comm.rank, operands, functools.partial(_send, comm),
        functools.partial(_receive, comm),
    )  # fmt: skip
    for k, (node, rank) in enumerate(zip(body.outputs, placement.outputs, strict=True)):
        own = message(results[k] if rank == comm.rank else zeros(node.spec), "placed")
        if root is None:
            results[k] = operations.bcast.ordered(own, comm=comm, root=rank)
        else:
            results[k] = operations.varying.ordered(own, comm=comm)
    return closure.container(results)


def _as_one_variable(operands: Sequence[Any], comm: Communicator) -> list[Any]:
    """Operands as variables that all processes share; Python numbers stay such."""
    shared = as_one_variable(list(operands), comm)
    return [_like(x, new) for x, new in zip(operands, shared, strict=True)]


def _like(x: Any, new: Any) -> Any:
    """The new value, as a Python number if x is one, which takes part in promotion as such."""
    spec = describe(x)
    if not (type(spec) is Spec and spec.weak):
        return new
    number: Any = lookup("cast")
    params = {"dtype": spec.dtype}
    if new.node.is_traced:
        return record(number, [new.node], params, weak=True)
    return apply(number, (new,), params, lambda value, dtype: np.asarray(value, dtype).item())


def _send(comm: Communicator, value: Any, dest: int) -> None:
    value = message(value, "placed")
    nothing = {"shape": (0,), "dtype": describe(value).dtype}
    operations.exchange.ordered(value, comm=comm, dest=dest, source=None, tag=0, **nothing)


def _receive(comm: Communicator, spec: Spec, source: int) -> Any:
    nothing = np.empty(0, spec.dtype)
    like = {"shape": spec.shape, "dtype": spec.dtype}
    return operations.exchange.ordered(nothing, comm=comm, dest=None, source=source, tag=0, **like)


def part(
    placement: Placement,
    rank: int,
    values: Sequence[Any],
    send: Callable[[Any, int], None],
    receive: Callable[[Spec, int], Any],
) -> list[Any]:
    """The results of the nodes of one process.

    Parameters
    ----------
    placement : Placement
    rank : int
        The rank of the process.
    values : sequence
        A tensor, an array or a number for each input of the graph.
    send, receive : callable
        ``send(value, dest)`` and ``receive(spec, source)``.

    Returns
    -------
    list
        For each output its value, or an object without meaning in a process that does not have it.
    """
    known = current_trace() is None and not any(map(is_traced, values))
    graph = placement.graph
    sources = {m.node: m.source for m in placement.messages if m.dest == rank}

    def instead(node: Node, args: Sequence[Any], params: dict[str, Any]) -> Any:
        index = graph.index(node)
        if rank in placement.processes[index]:
            value = record_again(node, args, params, known)
            for dest in placement.receivers(index):
                send(value, dest)
            return value
        return receive(node.spec, sources[index]) if index in sources else _ABSENT

    return inline_graph(graph, values, instead)
