"""Marks of arrays, for derivatives: whether they are the same in all processes.

replicated    one variable, which is the same in all processes
varying       the part of this process, also if it was computed from replicated values
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core import pytree
from wengert._engine.core.handle import describe
from wengert._engine.core.spec import Spec

from . import operations
from .communicators import Communicator, communicator_of


def replicated(x: Any, comm: Any = None) -> Any:
    """Mark an array that is the same in all processes as one variable.

    The gradient with respect to it is the sum of those with respect to the copies of all
    processes.  Without it, each process gets the gradient with respect to its own copy.

    Parameters
    ----------
    x : array_like, Tensor, or nested containers of them
        The same in all processes; this is not checked.
    comm : Communicator or mpi4py communicator, optional

    Returns
    -------
    The values of `x`; nothing is sent.

    Notes
    -----
    The transpose is `allreduce`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import distributed
    >>> data = np.array([1.0, 2.0])  # another part in each process
    >>> def loss(w):
    ...     w = distributed.replicated(w)
    ...     return distributed.allreduce(np.sum((data - w) ** 2))
    >>> float(wg.grad(loss)(0.0))
    -6.0
    """
    return _marked(x, operations.replicated, communicator_of(comm))


def varying(x: Any, comm: Any = None) -> Any:
    """Mark an array as the part of this process, also if it was computed from replicated values.

    The derivative is that of the sum over the processes.  Without the mark, an output that is
    computed from results that are the same in all processes and from values of this process is
    refused.

    Parameters
    ----------
    x : array_like, Tensor, or nested containers of them
    comm : Communicator or mpi4py communicator, optional

    Returns
    -------
    The values of `x`; nothing is sent.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import distributed
    >>> rows = np.array([[1.0, 2.0]])  # other rows in each process
    >>> product = lambda w: distributed.varying(rows @ distributed.replicated(w))
    >>> _, pull = wg.vjp(product, np.zeros(2))
    >>> pull(np.ones(1))[0]  # of the products of all processes
    array([1., 2.])
    """
    return _marked(x, operations.varying, communicator_of(comm))


def _marked(x: Any, mark: Any, comm: Communicator) -> Any:
    def marked(leaf: Any) -> Any:
        spec = describe(leaf)
        if not isinstance(spec, Spec) or spec.dtype.kind not in "fc":
            return leaf
        return mark.ordered(leaf, comm=comm)

    return pytree.tree_map(marked, x)
