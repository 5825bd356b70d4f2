"""Sums over the partitions of data, with derivatives.

    sum_over    the sum of a function over partitions
    SumOver     what it returns: a function of the parameters

The partitions are computed serially, by a pool (local_pools.py) or by Dask (dask_sums.py); the
function of one partition and its derivatives are in partition_programs.py, the operation that other
programs differentiate in sum_operation.py.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.dispatch import Example
from wengert._engine.core.handle import Handle, describe
from wengert._engine.core.node import Node
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.recording import is_recording
from wengert._engine.core.thread_state import lock
from wengert._engine.core.validation import function
from wengert.errors import ArgumentError, NotDifferentiableError, StructureError, at, user_line

from . import dask_sums, local_pools
from .agreement import Packed, packed
from .partition_programs import PROGRAMS, PartitionProgram, Slot, SummedFunction
from .sum_operation import Steps, Template, partition_sum
from .tree_sums import Terms, TreeSum


def sum_over(
    f: Callable[..., Any],
    partitions: Any,
    *,
    executor: Any = None,
    split_every: int = 8,
    compiled: bool = True,
) -> SumOver:
    """The sum of a function over the partitions of data, as a function with derivatives.

    Parameters
    ----------
    f : callable
        ``f(params, *partition)``, which returns one real number.
    partitions : sequence, Dask collection, or tuple of Dask collections
        A sequence has an entry for each partition: an array or container, which is one argument of
        `f`; a tuple, which is several; or a function without arguments, called in the worker, that
        returns one of these. Partitions of Dask collections are

        - of an array its chunks along the first axis,
        - of a data frame dicts with an array for each column,
        - of a bag lists of items; numbers become an array, and tuples or dicts of numbers tuples or
          dicts of arrays. An empty partition of a bag contributes nothing,
        - the values of a list of delayed objects, as those of any sequence,
        - of a tuple of collections several arguments.
    executor : concurrent.futures.Executor, joblib.Parallel or distributed.Client, optional
        Computes the partitions. By default Dask collections are computed by the current client, or
        else as Dask is configured, and sequences serially.
    split_every : int, default 8
        The number of terms that are added at once; see below.
    compiled : bool, default True
        Whether `f` is compiled, once in each process for each kind of partition. A compiled `f`
        must not read files: that is for partitions that are functions.

    Returns
    -------
    SumOver
        The function ``total(params)``, with the methods ``value_and_grad``, ``grad`` and ``hvp``.

    Raises
    ------
    PartitionError
        When called: `f` raised an error. The message names the partition.
    ImportError
        Dask is needed and not installed.
    CommunicationError
        When called: a process of a pool ended.

    See Also
    --------
    wengert.grad : derivatives of programs in which the sum occurs.

    Notes
    -----
    *Order.* Groups of `split_every` consecutive contributions are added from left to right, then
    groups of these sums. Each partition is computed by one thread. So a result has the same bits
    whatever computes it, and in which order.

    *Memory.* One partition for each worker, and contributions of the size of the parameters that
    wait to be added. Dask collections are computed again at each call, unless they are persisted.

    *Processes.* Function and parameters are pickled once for each call, with cloudpickle if it is
    installed, and a process compiles a function with the same content once. Functions of imported
    modules are pickled by name.

    *Lost workers.* Dask computes what a lost worker had again. After several workers have ended
    with a partition (``distributed.scheduler.allowed-failures``), ``distributed.KilledWorker`` is
    raised, with a note that names the partition. Ctrl-C cancels what is not yet computed.

    *Derivatives.* Of any order, in both modes: each is a sum over the partitions of the derivative
    of `f`. In differentiated programs value and gradient are computed in one pass over the data.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.distributed import sum_over
    >>> def loss(w, X, y):
    ...     return np.sum((X @ w - y) ** 2)
    >>> X, y = np.eye(4, 2), np.ones(4)
    >>> total = sum_over(loss, [(X[:3], y[:3]), (X[3:], y[3:])])
    >>> w = np.zeros(2)
    >>> float(total(w)), total.grad(w)
    (4.0, array([-2., -2.]))
    >>> total.hvp(w, np.array([1.0, 0.0]))
    array([2., 0.])
    >>> wg.grad(lambda w: np.sqrt(total(w)))(w)
    array([-0.5, -0.5])
    """
    return SumOver(f, partitions, executor, split_every, compiled)


class SumOver:
    """A sum over partitions as a function of the parameters; made by `sum_over`.

    A pickled sum has no executor, and its copy is computed as if none had been given.

    Attributes
    ----------
    partitions : list
    executor : object
        As given to `sum_over`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.distributed import sum_over
    >>> total = sum_over(lambda p, x: p["scale"] * np.sum(x), [np.ones(3), np.ones(2)])
    >>> total
    <sum of <lambda> over 2 partitions>
    >>> total.value_and_grad({"scale": 2.0})
    (np.float64(10.0), {'scale': np.float64(5.0)})
    """

    __module__ = "wengert.distributed"

    def __init__(
        self,
        f: Callable[..., Any],
        partitions: Any,
        executor: Any = None,
        split_every: int = 8,
        compiled: bool = True,
    ) -> None:
        function(f, "sum_over")
        self._f, self._compiled = f, bool(compiled)
        self.executor = executor
        self.split_every = _checked(split_every)
        self._is_dask = dask_sums.is_client(executor)
        self._is_bag, self._collections = False, None
        if dask_sums.is_dask(partitions):
            if executor is not None and not self._is_dask:
                raise ArgumentError(
                    f"the partitions are Dask's, and executor is a {type(executor).__name__}. Give "
                    f"a distributed.Client, or none{at(user_line())}."
                )
            self._is_dask = True
            self._collections = partitions  # a persisted one is released with its last reference
            self.partitions, self._is_bag = dask_sums.partitions_of(partitions)
        else:
            self.partitions = _listed(partitions)
        self.__name__ = f"sum_over_{getattr(f, '__name__', type(f).__name__)}"
        self._start()

    def _start(self) -> None:
        self._lock = lock()
        self._programs: OrderedDict[tuple[Template, Steps], PartitionProgram] = OrderedDict()

    # ---- values and derivatives ----------------------------------------------------------------

    def __call__(self, params: Any) -> Any:
        """The sum, of the dtype of the parameters.

        Parameters
        ----------
        params : array_like, Tensor, or nested containers of them
        """
        leaves, _ = pytree.flatten(params)
        if is_recording():  # the gradient will be needed: one pass computes both
            return self._sums(params, lambda k: _is_recorded(leaves[k]))[0][0]
        return self._sums(params, None)[0][0]

    def value_and_grad(self, params: Any) -> tuple[Any, Any]:
        """The sum and its gradient, in one pass over the data.

        Returns
        -------
        value : number
        gradient : pytree
            Of the structure, shapes and dtypes of `params`.
        """
        self._refuse_integers(params, "value_and_grad")
        (value, *bars), structure = self._sums(params, lambda k: True)
        return value, pytree.unflatten(structure, bars)

    def grad(self, params: Any) -> Any:
        """The gradient, of the structure, shapes and dtypes of `params`."""
        return self.value_and_grad(params)[1]

    def hvp(self, params: Any, v: Any) -> Any:
        """The Hessian times a vector, in one pass over the data.

        Parameters
        ----------
        params : pytree
        v : pytree
            Of the structure and shapes of `params`.

        Returns
        -------
        pytree
            Of the structure, shapes and dtypes of `params`.
        """
        self._refuse_integers(params, "hvp")
        leaves, structure = pytree.flatten(params)
        dots, structure_of_v = pytree.flatten(v)
        if structure_of_v != structure:
            raise StructureError(
                f"hvp: the vector has the structure {structure_of_v}, and the parameters "
                f"{structure}. Give both the same nesting{at(user_line())}."
            )
        dots = [self._like(dot, x) for dot, x in zip(dots, leaves, strict=True)]
        step = "jvp", tuple(range(len(leaves)))
        (_, *products), _ = self._sums(params, lambda k: True, (step,), dots)
        return pytree.unflatten(structure, products)

    def _like(self, dot: Any, x: Any) -> Any:
        """A part of the vector with the dtype of its parameter."""
        spec, given = describe(x), describe(dot)
        if given is None or isinstance(given, tuple) or given.shape != spec.shape:
            raise StructureError(
                f"hvp: a part of the vector is {given or type(dot).__name__} for a parameter that "
                f"is {spec}. Give it the same shape{at(user_line())}."
            )
        dot = dot if isinstance(dot, Handle) else np.asarray(dot)
        return dot if dot.dtype == spec.dtype else dot.astype(spec.dtype)

    def _refuse_integers(self, params: Any, what: str) -> None:
        leaves, _ = pytree.flatten(params)
        for x, path in zip(leaves, pytree.paths(params), strict=True):
            spec = describe(x) if _is_operand(x) else None
            if spec is None or spec.dtype.kind not in "fc":
                shown = type(x).__name__ if spec is None else str(spec)
                raise NotDifferentiableError(
                    f"{what}: params{path} is {shown}, which has no derivative. Convert it to "
                    f"floating point, or pass it in another way{at(user_line())}."
                )

    def _sums(
        self,
        params: Any,
        wanted: Callable[[int], bool] | None,
        steps: tuple[Any, ...] = (),
        more: Sequence[Any] = (),
    ) -> tuple[tuple[Any, ...], Any]:
        """The sums of all outputs, and the structure of the parameters.

        `wanted` says for each leaf whether the gradient with respect to it is computed.
        """
        leaves, structure = pytree.flatten(params)
        slots = [k for k, x in enumerate(leaves) if _is_operand(x)]
        numbers = {k: number for number, k in enumerate(slots)}
        markers = [Slot(numbers[k]) if k in numbers else x for k, x in enumerate(leaves)]
        chosen = None
        if wanted is not None:
            chosen = tuple([numbers[k] for k in slots if wanted(k)]) or None
        key = structure, frozen(tuple(markers))
        tree = pytree.unflatten(structure, markers)
        template = Template(tree, len(slots), chosen, key)
        operands = [leaves[k] for k in slots]
        operands = [x if hasattr(x, "dtype") else np.asarray(x)[()] for x in operands]
        if not operands:
            raise StructureError(
                f"{self!r}: the parameters contain no array or number{at(user_line())}."
            )
        sums = partition_sum(*operands, *more, total=self, template=template, steps=steps)
        return sums, structure

    # ---- computation ---------------------------------------------------------------------------

    def evaluate(self, template: Template, steps: Steps, operands: Sequence[Any]) -> Terms:
        """The sums of the outputs of a function; None if there are no partitions."""
        if not self.partitions:
            return None
        summed = template.summed(steps)
        if self._is_dask:
            client = dask_sums.client_of(self.executor)
            return dask_sums.computed(
                self.partitions,
                self._is_bag,
                self._packed(summed),
                packed(list(operands), "params"),
                client,
                self.split_every,
            )
        program: Any = (
            self._program((template, steps), summed)
            if local_pools.runs_here(self.executor)
            else lambda: self._packed(summed)
        )
        total = TreeSum(self.split_every)
        contributions = local_pools.contributions_of(
            self.executor,
            self.partitions,
            program,
            operands,
            lambda: packed(list(operands), "params"),
        )
        for contribution in contributions:
            total.add(contribution)
        return total.total()

    def _packed(self, summed: SummedFunction) -> Packed:
        # Pickled at each call: what `f` captures may have changed.
        name = getattr(self._f, "__name__", type(self._f).__name__)
        return packed((self._f, summed, self._compiled), name)

    def _program(self, key: tuple[Template, Steps], summed: SummedFunction) -> PartitionProgram:
        """The program in this process."""
        with self._lock:
            if key not in self._programs:
                self._programs[key] = PartitionProgram(self._f, summed, self._compiled)
                while len(self._programs) > PROGRAMS:
                    self._programs.popitem(last=False)
            self._programs.move_to_end(key)
            return self._programs[key]

    # ---- protocols -----------------------------------------------------------------------------

    def __repr__(self) -> str:
        name = getattr(self._f, "__name__", type(self._f).__name__)
        return f"<sum of {name} over {len(self.partitions)} partitions>"

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        for name in ("_lock", "_programs"):
            del state[name]
        return {**state, "executor": None, "_f": packed(self._f, self.__name__)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._f = state["_f"].unpickled()
        self._start()


def _is_operand(x: Any) -> bool:
    """Whether a leaf is an array or a number."""
    return isinstance(x, Handle | np.ndarray | np.generic | float | int | complex)


def _is_recorded(x: Any) -> bool:
    return isinstance(x, Handle) and type(x.node) is Node and x.node.spec.dtype.kind in "fc"


def _checked(split_every: Any) -> int:
    try:
        number = 0 if isinstance(split_every, bool) else operator.index(split_every)
    except TypeError:
        number = 0
    if number < 2:
        raise ArgumentError(
            f"split_every={split_every!r} is the number of terms that are added at once: give an "
            f"integer that is at least 2{at(user_line())}."
        )
    return number


def _listed(partitions: Any) -> list[Any]:
    if isinstance(partitions, np.ndarray | str | bytes | dict) or callable(partitions):
        raise ArgumentError(
            f"partitions is a {type(partitions).__name__}. Give a sequence with an entry for each "
            f"partition, such as np.array_split(x, 4), or a Dask collection{at(user_line())}."
        )
    try:
        return list(partitions)
    except TypeError:
        raise ArgumentError(
            f"partitions is a {type(partitions).__name__}. Give a sequence with an entry for each "
            f"partition, or a Dask collection{at(user_line())}."
        ) from None


@partition_sum.examples
def _examples(rng: np.random.Generator) -> Iterator[Example]:
    def f(w: Any, x: Any) -> Any:
        return np.sum(np.sin(w * x))

    total = SumOver(f, [rng.normal(size=n) for n in (3, 1)])
    for wanted in (None, (0,)):
        template = Template(Slot(0), 1, wanted, ())
        yield (rng.normal(),), {"total": total, "template": template, "steps": ()}


def _oracle(w: Any, *, total: SumOver, template: Template, steps: Steps) -> tuple[Any, ...]:
    """The value and the derivative of the examples."""
    x = np.concatenate(total.partitions)
    value = np.sum(np.sin(w * x))
    return (value,) if template.wanted is None else (value, np.sum(x * np.cos(w * x)))


partition_sum.oracle = _oracle
