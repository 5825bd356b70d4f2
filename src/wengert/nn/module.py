"""Module: a model or a piece of one, made of parameters and smaller modules.

What belongs to a module is *found by looking*, not by registering: every Parameter and Module
among its attributes, also inside lists, tuples and dicts, in the order in which they were set.  So
a subclass may forget `super().__init__()`, put its layers into a plain list, or replace one at any
time, and nothing is out of step.  Modules are ordinary objects: they pickle and deep-copy.

    class Net(nn.Module):
        def __init__(self):
            self.layers = [nn.Linear(64, 32), nn.Linear(32, 10)]

        def forward(self, x):
            ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..core.handle import Handle, value_of
from ..core.recording import Changes
from ..errors import ShapeError, StructureError, at, user_line
from ..tensor import Tensor
from .parameter import Parameter
from .tracing import is_traced_call, traced_call

Found = tuple[str, Any]


class Module:
    """Base of all models and layers; subclasses define `forward`.

    Calling the module calls `forward`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> class Line(nn.Module):
    ...     def __init__(self):
    ...         self.slope, self.offset = nn.Parameter(2.0), nn.Parameter(1.0)
    ...     def forward(self, x):
    ...         return self.slope * x + self.offset
    >>> line = Line()
    >>> line(np.array([0.0, 1.0])).numpy()
    array([1., 3.])
    >>> [name for name, _ in line.named_parameters()]
    ['slope', 'offset']
    """

    _training = True  # of the class: each module has its own once train() or eval() was called

    @property
    def training(self) -> bool:
        """Whether it is in training, or in evaluation; compiled functions notice the change."""
        return self._training

    @training.setter
    def training(self, mode: bool) -> None:
        if mode != self._training:
            self._training = mode
            Changes.note()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise StructureError(
            f"{type(self).__name__} was called, but defines no forward(). Define what it computes "
            f"as forward(self, x){at(user_line())}."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What `forward` computes."""
        if is_traced_call(args):
            return traced_call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    # ---- what belongs to it --------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly in this one, with their names: ``body``, ``layers.0``."""
        for name, item in _contents(vars(self)):
            if isinstance(item, Module):
                yield name, item

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Itself and all modules in it, with dotted names, each once, outer ones first."""
        yield from self._walk(prefix, set())

    def modules(self) -> Iterator[Module]:
        """Itself and all modules in it, each once, outer ones first."""
        for _, module in self._walk("", set()):
            yield module

    def _walk(self, name: str, seen: set[int]) -> Iterator[tuple[str, Module]]:
        if id(self) in seen:
            return
        seen.add(id(self))
        yield name, self
        for child_name, child in self.named_children():
            yield from child._walk(_joined(name, child_name), seen)

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module and all modules in it, each once, with dotted names."""
        seen: set[int] = set()
        for name, p in self._every_parameter(prefix):
            if id(p) not in seen:
                seen.add(id(p))
                yield name, p

    def parameters(self) -> Iterator[Parameter]:
        """The parameters of this module and all modules in it, each once."""
        for _, p in self.named_parameters():
            yield p

    def _every_parameter(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """Every name of every parameter: a shared one occurs more than once."""
        for module_name, module in self.named_modules(prefix):
            for name, item in _contents(vars(module)):
                if isinstance(item, Parameter):
                    yield _joined(module_name, name), item

    # ---- modes ---------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
        """Set this module and all modules in it to training (Dropout drops); return it."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """Set this module and all modules in it to evaluation; return it."""
        return self.train(False)

    def requires_grad_(self, flag: bool = True) -> Module:
        """Make every parameter require a gradient, or freeze them; return the module."""
        for p in self.parameters():
            p.requires_grad_(flag)
        return self

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for p in self.parameters():
            p.grad = None

    # ---- saving and loading --------------------------------------------------------------------

    def state_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of the values of all parameters by name, ready for ``numpy.savez(f, **state)``."""
        return {name: np.array(value_of(p)) for name, p in self._every_parameter()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Take over the values of all parameters.

        Parameters
        ----------
        state : mapping from name to array
            As `state_dict` gives it, or what ``numpy.load`` reads.
        strict : bool, default True
            Whether names that are missing or superfluous are an error.

        Raises
        ------
        StructureError
            Names do not match. Nothing was changed.
        ShapeError
            A shape does not match. Nothing was changed.
        """
        mine = dict(self._every_parameter())
        missing = [n for n in mine if n not in state]
        unknown = [n for n in state if n not in mine]
        if strict and (missing or unknown):
            raise StructureError(
                f"load_state_dict of {type(self).__name__}: missing {missing or 'nothing'}, "
                f"unknown {unknown or 'nothing'}. Load the state of a model of the same "
                f"structure, or pass strict=False{at(user_line())}."
            )
        values = {n: np.asarray(value_of(state[n])) for n in mine if n in state}
        for name, value in values.items():
            if value.shape != mine[name].shape:
                raise ShapeError(
                    f"load_state_dict of {type(self).__name__}: {name} has shape {value.shape} in "
                    f"the state and {mine[name].shape} in the model. Load the state of a model of "
                    f"the same sizes{at(user_line())}."
                )
        for name, value in values.items():
            mine[name].data = value

    # ---- printing ------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands between the parentheses before the children; subclasses override it."""
        own = ((n, p) for n, p in _contents(vars(self)) if isinstance(p, Parameter))
        return ", ".join(f"{n}: {p.dtype}{list(p.shape)}" for n, p in own)

    def __repr__(self) -> str:
        head, extra = type(self).__name__, self.extra_repr()
        lines = [
            f"({name}): " + repr(child).replace("\n", "\n  ")
            for name, child in self.named_children()
        ]
        if not lines:
            return f"{head}({extra})"
        return "\n  ".join([f"{head}({extra}", *lines]) + "\n)"


def _contents(items: Mapping[Any, Any]) -> Iterator[Found]:
    """Parameters and modules among named items, looking into containers.  No recursion limit."""
    stack = [(str(name), item) for name, item in items.items()][::-1]
    open_: list[Any] = []  # containers seen, kept alive so that their ids stay theirs
    seen: set[int] = set()
    while stack:
        name, item = stack.pop()
        if isinstance(item, Parameter | Module):
            yield name, item
        elif isinstance(item, list | tuple | dict) and id(item) not in seen:
            seen.add(id(item))
            open_.append(item)
            inside = item.items() if isinstance(item, dict) else enumerate(item)
            stack.extend([(f"{name}.{key}", x) for key, x in inside][::-1])


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def functional_call(
    module: Module, parameters: Mapping[str, Any], *args: Any, **kwargs: Any
) -> Any:
    """Call a module with other values in the place of its parameters.

    With it a model is a function of its parameters, for `grad`, `hessian`, `jvp` and the rest.

    Parameters
    ----------
    module : Module
    parameters : mapping from name to array or Tensor
        Names as in `named_parameters`; those left out keep the module's own values.
    *args, **kwargs
        What the module is called with.

    Raises
    ------
    StructureError
        A name that the module does not have.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import nn
    >>> model = nn.Linear(2, 1, rng=0)
    >>> x = np.array([[1.0, 10.0]])
    >>> f = lambda p: np.sum(nn.functional_call(model, p, x))
    >>> wg.grad(f)(model.state_dict())["weight"]
    array([[ 1., 10.]])
    """
    mine = dict(module._every_parameter())
    unknown = [n for n in parameters if n not in mine]
    if unknown:
        raise StructureError(
            f"functional_call of {type(module).__name__}: it has no parameters {unknown}. Its "
            f"parameters are {list(mine)}{at(user_line())}."
        )
    before = {name: mine[name].node for name in parameters}
    try:
        for name, value in parameters.items():
            mine[name].node = value.node if isinstance(value, Handle) else Tensor(value).node
        return module(*args, **kwargs)
    finally:
        for name, node in before.items():
            mine[name].node = node
