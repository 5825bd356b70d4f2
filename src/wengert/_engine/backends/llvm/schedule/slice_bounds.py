"""Upper bounds of lengths that differ between the steps of a loop.

The slice ``A[i, :j]`` is at most as long as the axis, so that memory for it can be reserved once.

    largest_sizes    an upper bound for each such length of a body
    largest_shape    an upper bound of a shape
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.static_params import sizes_of
from wengert._engine.core.symbolic.dim import LOCAL, Dim, Length, is_open
from wengert._engine.ops.indexing.template import IndexSlot


def largest_sizes(body: BaseGraph) -> dict[str, Length]:
    """For each length that its slices have, an upper bound of the size with its name."""
    found: dict[str, Length] = {}
    for node in body.nodes:
        if not any(n.startswith(LOCAL) for n in sizes_of(node.params.get("index"))):
            continue
        whole = node.params.get("shape") or node.inputs[0].spec.shape
        for part, length in zip(_parts(node.params["index"], len(whole)), whole, strict=False):
            if isinstance(part, slice) and not is_open(length):
                name = _name(part)
                if name is not None:
                    found.setdefault(name, length + 1)
    return found


def _parts(template: object, rank: int) -> list[object]:
    """The parts of an index for the axes of the array."""
    parts = list(template) if isinstance(template, tuple) else [template]
    parts = [p for p in parts if p is not None]
    if Ellipsis in [p for p in parts if not isinstance(p, IndexSlot | slice)]:
        k = parts.index(Ellipsis)
        parts[k : k + 1] = [slice(None)] * (rank - len(parts) + 1)
    return parts


def _name(part: slice) -> str | None:
    """The name of the size that is one more than the length of a slice."""
    if not is_open(part.stop) or part.step not in (None, 1):
        return None
    count = part.stop - (0 if part.start is None else part.start)
    names = [n for n in getattr(count, "names", ()) if n.startswith(LOCAL)]
    size = Dim({((names[0], 1),): 1}) if len(names) == 1 else None
    return names[0] if size is not None and count == size - 1 else None


def largest_shape(
    shape: Sequence[Length], sizes: Mapping[str, Length]
) -> tuple[Length, ...] | None:
    """An upper bound of a shape; None if there is none."""
    found = [_largest(n, sizes) for n in shape]
    return None if None in found else tuple(n for n in found if n is not None)


def _largest(length: Length, sizes: Mapping[str, Length]) -> Length | None:
    if not isinstance(length, Dim) or not is_open(length):
        return length
    total: Length = 0
    for product, factor in length.terms.items():
        names = [a for a, _ in product if isinstance(a, str) and a.startswith(LOCAL)]
        if not names:
            total = total + Dim({product: factor}) if product else total + factor
        elif len(product) != 1 or product[0][1] != 1:
            return None
        elif factor < 0:
            total = total + factor  # a size is at least one
        elif names[0] in sizes:
            total = total + sizes[names[0]] * factor
        else:
            return None
    return None if is_open(total) else total
