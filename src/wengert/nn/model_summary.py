"""Model summaries: tables of layers with shapes, parameters and operations.

summary       traces a model, without computing values
ModelSummary  the table: ``print`` it, or read its rows
ModuleRow     a row: one module
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe, shape_of
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.graphs import trace
from wengert._engine.ops.cost_model import flops_of
from wengert.errors import StructureError, at, user_line

from .module import Module
from .parameter import Parameter


class ModuleRow(NamedTuple):
    """One module of a model.

    path : its dotted name; "" for the model itself.
    kind : the name of its class.
    shape : the shape of the result of its first call; None if it was not called.
    parameters : the number of elements of its own parameters, without submodules.
    trained : the number of these that require a gradient.
    bytes : the memory of its own parameters and buffers.
    flops : floating-point operations of its call, submodules included; operations of unknown cost
        are not counted.
    """

    path: str
    kind: str
    shape: tuple[Any, ...] | None
    parameters: int
    trained: int
    bytes: int
    flops: Any


class ModelSummary:
    """A model as a table; ``print`` it.

    Attributes
    ----------
    rows : tuple of ModuleRow
        One for each module, outer ones first.
    parameters, trained : int
        The number of elements of all parameters, and of those that require a gradient; shared
        parameters are counted once.
    bytes : int
        The memory of parameters and buffers.
    flops : int or symbolic expression
        Floating-point operations of one call.
    """

    def __init__(self, model: Module, rows: Sequence[ModuleRow]) -> None:
        self.rows = tuple(rows)
        self.parameters = sum(p.size for p in model.parameters())
        self.trained = sum(p.size for p in model.parameters() if p.requires_grad)
        self.bytes = sum(_bytes(x) for x in (*model.parameters(), *model.buffers()))
        self.flops = rows[0].flops

    def __str__(self) -> str:
        head = ("layer", "kind", "output", "parameters", "bytes", "FLOPs")
        lines = [
            (
                row.path or "(model)",
                row.kind,
                "-" if row.shape is None else spelled(row.shape),
                f"{row.parameters:,}",
                f"{row.bytes:,}",
                _number(row.flops),
            )
            for row in self.rows
        ]
        total = f"{self.parameters:,}", f"{self.bytes:,}", _number(self.flops)
        table = [head, *lines, ("total", "", "", *total)]
        widths = [max(len(line[k]) for line in table) for k in range(len(head))]
        text = [
            "  ".join(
                cell.ljust(w) if k < 3 else cell.rjust(w)
                for k, (cell, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in table
        ]
        text.insert(-1, "-" * max(map(len, text)))
        text.insert(1, text[-2])
        return "\n".join([*text, f"{self.trained:,} of {self.parameters:,} parameters are trained"])

    __repr__ = __str__


def _number(n: Any) -> str:
    return f"{n:,}" if isinstance(n, int) else str(n)


def _bytes(tensor: Any) -> int:
    return int(tensor.size * tensor.dtype.itemsize)


def summary(model: Module, *inputs: Any) -> ModelSummary:
    """A table of the layers of a model: shapes, parameters, bytes, FLOPs.

    Parameters
    ----------
    model : Module
        Traced in evaluation mode; its modes are restored.
    *inputs : array, Tensor or Spec
        Arguments of the model; a spec (`wengert.spec`) describes an array by its shape, which may
        have symbolic sizes.

    Returns
    -------
    ModelSummary

    Raises
    ------
    StructureError
        `model` is not a module, or no input is given.

    Notes
    -----
    The model is traced, not run. An elementwise operation counts one floating-point operation per
    element; matrix products and convolutions count two per multiplication.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert import nn
    >>> model = nn.Sequential(nn.Linear(4, 3, rng=0), nn.ReLU(), nn.Linear(3, 1, rng=1))
    >>> print(nn.summary(model, wg.spec((8, 4))))
    layer    kind        output  parameters  bytes  FLOPs
    -----------------------------------------------------
    (model)  Sequential  (8, 1)           0      0    296
    0        Linear      (8, 3)          15    120    216
    1        ReLU        (8, 3)           0      0     24
    2        Linear      (8, 1)           4     32     56
    -----------------------------------------------------
    total                            19    152    296
    19 of 19 parameters are trained
    """
    if not isinstance(model, Module) or not inputs:
        raise StructureError(
            f"summary of a {type(model).__name__} with {len(inputs)} inputs: expected a module and "
            f"its inputs, such as wengert.spec((8, 4)){at(user_line())}."
        )
    modules = dict(model.named_modules())
    seen: dict[int, tuple[Any, ...]] = {}

    def note(module: Module, args: Any, result: Any) -> None:
        first = next((x for x in pytree.flatten(result)[0] if isinstance(x, Handle)), None)
        if first is not None:
            seen.setdefault(id(module), shape_of(first))

    modes = {module: module.training for module in modules.values()}
    hooks = [module.register_forward_hook(note) for module in modules.values()]
    try:
        model.eval()
        specs = [x if isinstance(x, Spec) else describe(x) for x in inputs]
        graph = trace(model)(*specs)
    finally:
        for hook in hooks:
            hook.remove()
        for module, mode in modes.items():
            module.training = mode
    costs = _costs(graph)
    rows = []
    for path, place in _places(model):
        module = modules[path]
        own = [item for _, item in module.named_items() if not isinstance(item, Module)]
        learned = [x for x in own if isinstance(x, Parameter)]
        rows.append(
            ModuleRow(
                path,
                type(module).__name__,
                seen.get(id(module)),
                sum(x.size for x in learned),
                sum(x.size for x in learned if x.requires_grad),
                sum(map(_bytes, own)),
                sum(n for scope, n in costs if f"{scope}/".startswith(f"{place}/")),
            )
        )
    return ModelSummary(model, rows)


def _costs(graph: Any) -> list[tuple[str, Any]]:
    """The scope and the cost of each node; 0 if the cost is unknown."""
    found = []
    for node in graph.nodes:
        count = flops_of(node, [a.spec for a in node.inputs], node.spec)
        found.append((node.scope, round(count) if isinstance(count, float) else count or 0))
    return found


def _places(model: Module) -> Iterator[tuple[str, str]]:
    """The dotted name of each module, and the scope of its nodes (state_dict.py)."""
    scopes: dict[int, str] = {}
    for path, module in model.named_modules():
        if not path:
            scopes[id(module)] = type(module).__name__
        yield path, scopes[id(module)]
        for name, child in module.named_children():
            scopes.setdefault(id(child), f"{scopes[id(module)]}/{name}")
