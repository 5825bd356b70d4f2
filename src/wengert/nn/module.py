"""Module: base class of models and layers, made of parameters, buffers, submodules and hooks.

    Hooks         the hooks of a module
    ModuleHook    handle of a registered hook

Parameters, buffers and submodules are not registered; they are found among the attributes
(parameter.py), also inside lists, tuples and dicts, in the order in which they were set.  So a
subclass need not call `super().__init__()`, may keep its layers in a plain list, and may replace
them at any time.  Modules are ordinary objects: they can be pickled and deep-copied.

    class Net(nn.Module):
        def __init__(self):
            self.layers = [nn.Linear(64, 32), nn.Linear(32, 10)]

        def forward(self, x):
            ...

Hooks are called while tracing, with traced tensors, and not when the graph runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.recording import Changes

from ..errors import DtypeError, StructureError, at, user_line
from .parameter import (
    Belonging,
    Buffer,
    Parameter,
    at_path,
    contents,
    every_tensor,
    joined,
    recast,
    unique,
    write,
)
from .state_dict import Loaded, is_traced_call, load, state_of, traced_call

__all__ = ["Module"]


_number = itertools.count(1).__next__


class ModuleHook:
    """A registered hook of a module; `remove()` removes it."""

    def __init__(self, hooks: dict[int, Any], number: int) -> None:
        self._hooks, self._number = hooks, number

    def remove(self) -> None:
        """Remove the hook; further calls do nothing."""
        if self._hooks.pop(self._number, None) is not None:
            Changes.note()


class Hooks:
    """The hooks of a module, in the order in which they were registered."""

    def __init__(self) -> None:
        self._places: dict[str, dict[int, Callable[..., Any]]] = {"pre": {}, "post": {}}

    def add(self, place: str, hook: Callable[..., Any]) -> ModuleHook:
        """Register a hook."""
        number = _number()
        self._places[place][number] = hook
        return ModuleHook(self._places[place], number)

    def key(self) -> tuple[Any, ...]:
        """The identities of the hooks, for guards of graphs."""
        return tuple(tuple(hooks) for hooks in self._places.values())

    def before(self, module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, possibly replaced by the hooks."""
        for hook in list(self._places["pre"].values()):
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        return args

    def after(self, module: Any, args: tuple[Any, ...], result: Any) -> Any:
        """The result, possibly replaced by the hooks."""
        for hook in list(self._places["post"].values()):
            changed = hook(module, args, result)
            result = result if changed is None else changed
        return result


class Module(Belonging):
    """Base class of all models and layers; subclasses define `forward`.

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

    _training = True  # the default; train() and eval() set an instance attribute
    forward_hooks: Hooks | None = None

    @property
    def training(self) -> bool:
        """Whether the module is in training mode; compiled functions are retraced on changes."""
        return self._training

    @training.setter
    def training(self, mode: bool) -> None:
        if mode != self._training:
            self._training = mode
            Changes.note()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The computation of the module; defined by subclasses."""
        raise StructureError(
            f"{type(self).__name__} was called, but does not define forward(self, ...)"
            f"{at(user_line())}."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call hooks and `forward`."""
        hooks = self.forward_hooks
        if hooks is not None:
            args = hooks.before(self, args)
        traced = is_traced_call(args)
        result = (
            traced_call(self, args, kwargs) if traced else converted(self.forward)(*args, **kwargs)
        )
        return result if hooks is None else hooks.after(self, args, result)

    def __setattr__(self, name: str, value: Any) -> None:
        have = self.__dict__.get(name)
        if value is have and have is not None:
            return
        if isinstance(have, Buffer) and not isinstance(value, _BELONGING | None):
            write(have, value, f"{type(self).__name__}.{name}")
            return
        if isinstance(have, _BELONGING) or isinstance(value, _BELONGING):
            Changes.note()
        object.__setattr__(self, name, value)

    # ---- parameters, buffers, submodules -------------------------------------------------------

    def named_items(self) -> Iterator[tuple[str, Any]]:
        """Parameters, buffers and modules directly in this one, with their names."""
        return contents(vars(self))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly in this one, with their names: ``body``, ``layers.0``."""
        for name, item in self.named_items():
            if isinstance(item, Module):
                yield name, item

    def children(self) -> Iterator[Module]:
        """The modules directly in this one."""
        for _, module in self.named_children():
            yield module

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Itself and all modules in it, with dotted names, each once, outer ones first."""
        seen: set[int] = set()
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:  # no recursion: no depth limit
            name, module = stack.pop()
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module
                inner = [(joined(name, part), child) for part, child in module.named_children()]
                stack.extend(inner[::-1])

    def modules(self) -> Iterator[Module]:
        """Itself and all modules in it, each once, outer ones first."""
        for _, module in self.named_modules():
            yield module

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module and all modules in it, each once, with dotted names."""
        return unique(every_tensor(self, Parameter, prefix))

    def parameters(self) -> Iterator[Parameter]:
        """The parameters of this module and all modules in it, each once."""
        for _, p in self.named_parameters():
            yield p

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Buffer]]:
        """The buffers of this module and all modules in it, each once, with dotted names."""
        return unique(every_tensor(self, Buffer, prefix))

    def buffers(self) -> Iterator[Buffer]:
        """The buffers of this module and all modules in it, each once."""
        for _, b in self.named_buffers():
            yield b

    def get_parameter(self, path: str) -> Parameter:
        """The parameter with a dotted name, ``"body.0.weight"``; else raises StructureError."""
        return at_path(self, path, every_tensor(self, Parameter), "parameter")

    def get_buffer(self, path: str) -> Buffer:
        """The buffer with a dotted name; else raises StructureError."""
        return at_path(self, path, every_tensor(self, Buffer), "buffer")

    def get_submodule(self, path: str) -> Module:
        """The module with a dotted name, ``""`` for itself; else raises StructureError."""
        return at_path(self, path, self.named_modules(), "module")

    def register_buffer(self, name: str, value: Any, persistent: bool = True) -> None:
        """Set the attribute `name` to ``Buffer(value, persistent)``, or None."""
        setattr(self, name, None if value is None else Buffer(value, persistent))

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Set the attribute `name` to a parameter."""
        setattr(self, name, parameter)

    def add_module(self, name: str, module: Any) -> None:
        """Set the attribute `name` to a module."""
        setattr(self, name, module)

    # ---- modes ---------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
        """Set this module and all modules in it to training mode; return it."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """Set this module and all modules in it to evaluation mode; return it."""
        return self.train(False)

    def requires_grad_(self, flag: bool = True) -> Module:
        """Set `requires_grad` of all parameters; return the module."""
        for p in self.parameters():
            p.requires_grad_(flag)
        Changes.note()
        return self

    def freeze(self) -> Module:
        """Set `requires_grad` of all parameters to False; return the module."""
        return self.requires_grad_(False)

    def unfreeze(self) -> Module:
        """Set `requires_grad` of all parameters to True; return the module."""
        return self.requires_grad_(True)

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to None."""
        for p in self.parameters():
            p.grad = None

    def apply(self, fn: Callable[[Module], Any]) -> Module:
        """Call a function with all modules in it, inner ones first, and with itself; return it.

        Examples
        --------
        >>> from wengert import nn
        >>> def small(module):
        ...     if isinstance(module, nn.Linear):
        ...         nn.init.normal_(module.weight, std=0.01, rng=0)
        >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).apply(small)
        """
        seen: set[int] = set()
        order, stack = [], [self]
        while stack:
            module = stack.pop()
            if id(module) not in seen:
                seen.add(id(module))
                order.append(module)
                stack.extend(module.children())
        for module in order[::-1]:  # reversed: inner modules first, in order
            fn(module)
        return self

    def to(self, dtype: Any) -> Module:
        """Convert all floating-point parameters and buffers to a dtype; return the module.

        Raises
        ------
        DtypeError
            `dtype` is not a floating-point dtype.
        """
        try:
            wanted = np.dtype(dtype)
        except TypeError as error:
            raise DtypeError(f"to({dtype!r}): {error}{at(user_line())}.") from error
        if wanted.kind != "f":
            raise DtypeError(
                f"{type(self).__name__}.to({wanted}): expected a floating-point dtype, such as "
                f"numpy.float32{at(user_line())}."
            )
        for item in (*self.parameters(), *self.buffers()):
            recast(item, wanted)
        Changes.note()
        return self

    def float(self) -> Module:
        """Single precision: ``to(numpy.float32)``."""
        return self.to(np.float32)

    def double(self) -> Module:
        """Double precision: ``to(numpy.float64)``."""
        return self.to(np.float64)

    def half(self) -> Module:
        """Half precision: ``to(numpy.float16)``."""
        return self.to(np.float16)

    # ---- hooks -----------------------------------------------------------------------------------

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> ModuleHook:
        """Call ``hook(module, args)`` before each call; it may return other arguments.

        In a compiled function it is called while tracing only.
        """
        return self._hooked("pre", hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> ModuleHook:
        """Call ``hook(module, args, result)`` after each call; it may return another result.

        In a compiled function it is called while tracing only.
        """
        return self._hooked("post", hook)

    def _hooked(self, place: str, hook: Callable[..., Any]) -> ModuleHook:
        if self.forward_hooks is None:
            self.forward_hooks = Hooks()
        Changes.note()
        return self.forward_hooks.add(place, hook)

    # ---- saving and loading --------------------------------------------------------------------

    def state_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of the values of all parameters and persistent buffers by name.

        For `wengert.nn.save_safetensors`, `wengert.save` or ``numpy.savez(f, **state)``.
        """
        return state_of(self)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Loaded:
        """Set the values of all parameters and persistent buffers.

        Parameters
        ----------
        state : mapping from name to array
            The result of `state_dict`, or of ``numpy.load``. Values are cast to the dtypes of the
            model.
        strict : bool, default True
            Whether missing and unexpected names are an error.

        Returns
        -------
        Loaded
            ``missing_keys`` and ``unexpected_keys``.

        Raises
        ------
        StructureError
            Names do not match; the model is unchanged.
        ShapeError
            A shape does not match; the model is unchanged.
        DtypeError
            A value cannot be cast: complex to real, float to integer; the model is unchanged.
        """
        return load(self, state, strict)

    # ---- printing ------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """The text in parentheses in the repr, before the children; subclasses override it."""
        own = ((n, p) for n, p in self.named_items() if isinstance(p, Parameter))
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


_BELONGING = Parameter | Buffer | Module
