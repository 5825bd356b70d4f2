"""A model of nutpie from two C functions; nutpie, walnutpie and ArviZ, imported at first use.

    model      the model, for `nutpie.sample`
    library    one of them, or an error that says how to install it

nutpie has no public function for this.  Its class for models of PyMC holds two C functions of the
same signatures, whose names are looked up here, so that versions may add fields.

Only this package imports them, so that it can be imported and documented without them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from wengert.errors import BackendError, at, user_line


def library(name: str) -> Any:
    """The module of this name.

    Raises
    ------
    ImportError
        It is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(
            f"{package} is not installed. It is in the extra `samplers`: "
            f"pip install wengert[samplers]{at(user_line())}."
        ) from error


Shape = tuple[int, ...]


def model(
    density: Any,
    expand: Any,
    size: int,
    shapes: Mapping[str, Shape],
    initial_point: Callable[[int], Any],
    coords: Mapping[str, Any],
    dims: Mapping[str, Sequence[str]],
) -> Any:
    """The model for `nutpie.sample`.

    Parameters
    ----------
    density, expand : Pointer
        The C functions "logp" and "expand".
    size : int
        The number of unconstrained values.
    shapes : mapping
        The names and shapes of the recorded values, in their order.
    initial_point : callable
        From a seed to a vector.
    coords, dims : mapping
        The labels of dimensions, and the dimensions of each value.

    Raises
    ------
    BackendError
        The version of nutpie has other fields.
    """
    ends = [0, *accumulate(math.prod(shape) for shape in shapes.values())]
    slices = [slice(first, last) for first, last in pairwise(ends)]
    known = {
        "dims": {name: tuple(d) for name, d in dims.items()},
        "compiled_logp_func": density,
        "compiled_expand_func": expand,
        "initial_point_func": initial_point,
        "shared_data": {},
        "shared_var_keys": {},
        "user_data": np.zeros(1),
        "n_expanded": ends[-1],
        "shape_info": (list(shapes), slices, list(shapes.values())),
        "logp_func": None,
        "expand_func": None,
        "_n_dim": size,
        "_shapes": dict(shapes),
        "_coords": {name: _labels(values) for name, values in coords.items()},
    }
    kind = library("nutpie.compile_pymc").CompiledPyMCModel
    fields = {f.name: f for f in dataclasses.fields(kind)}
    needed = {name for name, f in fields.items() if f.default is dataclasses.MISSING}
    unknown = needed - set(known)
    if unknown or not {"compiled_logp_func", "compiled_expand_func"} <= set(fields):
        raise BackendError(
            f"nutpie {library('nutpie').__version__} has other fields in its models "
            f"({', '.join(sorted(unknown)) or 'no C functions'}), and cannot be used. Install "
            f"version 0.16{at(user_line())}."
        )
    return kind(**{name: known[name] for name in fields if name in known})


def _labels(values: Any) -> Any:
    """The labels of a dimension as nutpie takes them: an array, or a list of text."""
    array = np.asarray(values)
    return array.tolist() if array.dtype.kind in "OUS" else array
