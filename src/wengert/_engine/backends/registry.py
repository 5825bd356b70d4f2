"""Backend: the base class of backends, their registry by name, and the null backend.

A backend states which operations it lacks, and compiles a graph whose sizes are all numbers to a
function of plain values; checks of inputs, sizes, structure and updates are common to all backends
(executable.py).  Other packages register backends in the entry point group ``wengert.backends``.

    Null    runs nothing, for testing and for counting costs: results are zeros of the right shapes
            and dtypes, whose memory is not touched; variables keep their values
"""

from __future__ import annotations

import difflib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.backends.argument_conversion import fitted, own
from wengert._engine.backends.variable_updates import values_of, write
from wengert._engine.core.device_arrays import host_values
from wengert._engine.core.graph import BaseGraph, check_graph
from wengert._engine.core.graph_classes import bodies_of
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.op import Op
from wengert._engine.core.spec import Spec, at_sizes
from wengert._engine.core.validation import word
from wengert.errors import ArgumentError, BackendError, RegistryError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.runtime_checks import Checks
    from wengert._engine.profiling.record import Timing

Run = Callable[[Sequence[Any]], list[Any]]
GROUP = "wengert.backends"
_OTHER_WORDS = {"gpu": "cuda", "cupy": "cuda", "nvidia": "cuda", "cpu": "llvm", "numba": "llvm"}
# Built-in backends that are imported lazily, and the modules that register them.
_AT_FIRST_USE = {"llvm": ".llvm.backend", "cuda": ".cuda.backend"}


class Backend(ABC):
    """Base class of backends.  Derive from it, and register an instance.

    Attributes
    ----------
    name : str
        The name in the registry.
    tolerance : float
        Relative tolerance of results with respect to the interpreter's.

    Examples
    --------
    >>> from wengert.backends import Backend, backend
    >>> sorted(b for b in ("interpret", "null") if backend(b).name == b)
    ['interpret', 'null']
    """

    __module__ = "wengert.backends"

    name: str
    tolerance = 0.0

    def lacks(self, op: Op) -> bool:
        """Whether this backend cannot run an operation."""
        return False

    def describe(self) -> dict[str, Any]:
        """The name, the tolerance and a description in one line."""
        words = (inspect.getdoc(type(self)) or "").partition("\n")[0]
        return {"name": self.name, "tolerance": self.tolerance, "says": words}

    def fitted(self, value: Any, spec: Spec, name: str) -> Any:
        """A value converted to the spec of an input; `name` is that of the input.

        Raises
        ------
        ShapeError, DtypeError
            The value does not match.
        """
        return fitted(value, spec, name)

    def own(self, results: list[Any]) -> list[Any]:
        """Results of a run, each with memory that nothing else refers to."""
        return own(results)

    def values_of(self, owners: Sequence[Any], written: Collection[Any]) -> list[Any]:
        """The values of variables, for a run that updates those of `written`."""
        return values_of(owners)

    def write(self, owners: Sequence[Any], values: Sequence[Any]) -> None:
        """Give variables new values, which a run has computed: all of them or none."""
        write(owners, values)

    def argument(self, node: Node) -> Any:
        """The value of a tensor, as an argument of a run."""
        return node.value

    def placed(self, value: Any) -> Any:
        """An argument where runs read it: an array of the host is copied to a device, if any."""
        return value

    def result(self, value: Any) -> Any:
        """The value of a result, for a tensor: an array, or the state of one on a device."""
        return value

    def __repr__(self) -> str:
        return f"<backend {self.name}>"

    @abstractmethod
    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """A function of the values of inputs and variables.

        Parameters
        ----------
        graph : Graph
            The graph to compile.
        sizes : mapping
            The value of every named size.

        Returns
        -------
        callable
            Takes a list: values of ``graph.inputs``, then of ``graph.variables``. Returns a list:
            values of ``graph.outputs``, then of ``graph.updates``.
        """

    def checked(self, graph: BaseGraph, sizes: Mapping[str, int], checks: Checks) -> Run:
        """As `compile`; the run finds values that are not finite (`wengert.debug(nan=True)`).

        By default it is interpreted, with a check of each node.
        """

        def run(values: Sequence[Any]) -> list[Any]:
            given = list(map(host_values, values))
            return checks.locator.run_checked(graph, sizes, given, checks)

        return run

    def timed(
        self,
        graph: BaseGraph,
        values: Sequence[Any],
        sizes: Mapping[str, int],
        repeats: int | None = None,
        call: Callable[[], object] | None = None,
        overwrites: bool = False,
    ) -> Timing:
        """The timing of a run, for `wengert.profile`; variables are not modified.

        Parameters
        ----------
        graph : Graph
        values : sequence
            Values of inputs, then of variables.
        sizes : mapping
            The value of every named size.
        repeats : int, optional
            Number of runs; by default selected by the backend.
        call : callable, optional
            The user's function, to be timed in the same rounds.
        overwrites : bool
            Whether calls may write updates in place; here to copies of the variables.

        Raises
        ------
        BackendError
            The backend does not support timing; backends that do override this method.
        """
        raise BackendError(
            f"the backend {self.name!r} does not support profiling. Profile with another backend "
            f"('llvm', 'interpret'){at(user_line())}."
        )

    def check(self, graph: BaseGraph) -> None:
        """Raise an error for a graph with an operation that this backend lacks.

        Raises
        ------
        BackendError
            The message names operation, backend and the user's line.
        """
        check_graph(graph, f"the backend {self.name}")
        for body in {b for node in graph.nodes for b in bodies_of(node)}:
            self.check(body)
        for node in graph.nodes:
            if not isinstance(node.op, LeafOp) and self.lacks(node.op):
                raise BackendError(
                    f"the backend {self.name!r} has no implementation of {node.op.name}. Register "
                    "one, run this graph with another backend (backend='interpret'), or use other "
                    f"operations{at(node.where)}."
                )


_REGISTRY: dict[str, Backend] = {}


def register_backend(made: Backend, replace: bool = False) -> Backend:
    """Register a backend under its name.

    Raises
    ------
    RegistryError
        The name is taken, and `replace` is False.
    """
    if not isinstance(made, Backend):
        raise ArgumentError(
            f"a {type(made).__name__} is not a backend. Derive from wengert.backends.Backend, and "
            f"register an instance{at(user_line())}."
        )
    word(getattr(made, "name", None), "the name of a backend")
    if made.name in _REGISTRY and not replace:
        raise RegistryError(
            f"a backend named {made.name!r} is already registered. Use another name, or pass "
            f"replace=True{at(user_line())}."
        )
    _REGISTRY[made.name] = made
    return made


def backends() -> list[str]:
    """The names of all backends, including those of installed packages."""
    return sorted({*_REGISTRY, *_AT_FIRST_USE, *(e.name for e in _found())})


def is_backend(name: str) -> bool:
    """Whether there is a backend of that name; entry points are searched last."""
    return name in _REGISTRY or name in _AT_FIRST_USE or any(e.name == name for e in _found())


def _found() -> Iterable[Any]:
    # Imported lazily: importlib.metadata imports `email`, which takes 20 ms.
    found: Iterable[Any] = import_module("importlib.metadata").entry_points(group=GROUP)
    return found


def _loaded(entry: Any) -> Backend:
    """The backend of an installed package."""
    try:
        made = entry.load()
        made = made() if isinstance(made, type) else made
    except Exception as error:
        package = getattr(entry.dist, "name", "an installed package")
        raise RegistryError(
            f"the backend {entry.name!r} of {package} cannot be loaded: {error}. Repair or remove "
            f"that package{at(user_line())}."
        ) from error
    if not isinstance(made, Backend):
        raise RegistryError(
            f"the backend {entry.name!r} is a {type(made).__name__}, but must derive from "
            f"wengert.backends.Backend{at(user_line())}."
        )
    return made


def backend(name: str | Backend) -> Backend:
    """The backend of that name.

    Raises
    ------
    RegistryError
        There is none; the message lists the available ones.
    """
    if isinstance(name, Backend):
        return name
    word(name, "the name of a backend")
    if name not in _REGISTRY and name in _AT_FIRST_USE:
        import_module(_AT_FIRST_USE[name], __package__)
    if name not in _REGISTRY:
        for entry in _found():
            if entry.name == name:
                _REGISTRY[name] = _loaded(entry)
    try:
        return _REGISTRY[name]
    except KeyError:
        wanted = name.lower()
        near = difflib.get_close_matches(wanted, backends(), 1)
        near = [_OTHER_WORDS[wanted]] if wanted in _OTHER_WORDS else near
        hint = f". Did you mean {near[0]!r}?" if near else ""
        raise RegistryError(
            f"there is no backend {name!r}; available are {', '.join(backends())}{hint}"
            f"{at(user_line())}."
        ) from None


# ---- the null backend ----------------------------------------------------------------------------


if TYPE_CHECKING:
    from . import cost_report
    from .cost_report import Report
else:
    cost_report = LazyModule("wengert._engine.backends.cost_report")


class Null(Backend):
    """Runs nothing, and returns zeros of the right shapes and dtypes; see `Backend`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.input("x", shape=("n", "n"))
    >>> f = wg.computation(np.linalg.inv(x), backend="null")
    >>> f(np.ones((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    """

    __module__ = "wengert.backends"

    name = "null"
    tolerance = float("inf")

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """Return a function that returns zeros."""
        specs = [at_sizes(n.spec, sizes) for n in graph.outputs]
        first = len(graph.inputs)
        place = {v: first + k for k, v in enumerate(graph.variables)}
        kept = [place[v] for v in graph.updates]

        def run(values: Sequence[Any]) -> list[Any]:
            return [np.zeros(s.shape, s.dtype)[()] for s in specs] + [
                np.array(values[k]) for k in kept
            ]

        return run

    def report(
        self, graph: BaseGraph, sizes: Mapping[str, int] | None = None, **more: int
    ) -> Report:
        """The cost of a run; see `wengert.backends.report`."""
        return cost_report.report(graph, sizes, **more)


register_backend(Null())
