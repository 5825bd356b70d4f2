"""A log-density of constrained parameters, compiled for samplers.

Posterior    the C functions of the density and of what is recorded of a draw; models for
             nutpie, functions for walnutpie, and draws in ArviZ
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import value_and_grad
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.lazy_import import public_dir
from wengert._engine.graphs import spec
from wengert._engine.jit import jit
from wengert._engine.tensor import tree
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.bijectors import Joint
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .nutpie_model import Shape, library, model

__all__ = ["Posterior"]
MAX_STARTS = 100  # initial points tried until the density is finite
JITTER = 1.0  # half the width of the uniform distribution of initial points, as in PyMC


class Posterior:
    """A log-density of constrained parameters, compiled for samplers.

    Parameters
    ----------
    log_density : callable
        From a container of constrained values to a number. Arrays that it captures are constants,
        copied now.
    bijectors : container of Bijector
        One for each parameter: ``{"mean": Real(), "scale": Positive()}``.
    generated : callable, optional
        From the constrained values to a container of further values that are recorded for each
        draw, such as transformed parameters.
    start : container, optional
        Constrained values around which chains start; by default those of unconstrained zeros.

    Attributes
    ----------
    size : int
        The number of unconstrained values.
    shapes : dict
        The names and shapes of the values that are recorded of a draw.
    density, expand : Pointer
        C functions (signatures "logp" and "expand" of `Jitted.address`) of the vector of
        unconstrained values: the log-density with its log-Jacobian and gradient; all values of a
        draw, one after another.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.bijectors import Positive, Real
    >>> from wengert.compat.samplers import Posterior
    >>> from wengert.scipy import stats
    >>> y = np.array([2.1, 1.9, 2.6])
    >>> posterior = Posterior(
    ...     lambda p: np.sum(stats.norm.logpdf(y, p["mean"], p["scale"])) - p["scale"],
    ...     {"mean": Real(), "scale": Positive()},
    ... )
    >>> posterior.size, posterior.shapes
    (2, {'mean': (), 'scale': ()})
    >>> round(posterior.log_density([2.0, 0.0]), 6)
    -3.946816
    """

    def __init__(
        self,
        log_density: Callable[[Any], Any],
        bijectors: Any,
        *,
        generated: Callable[[Any], Any] | None = None,
        start: Any = None,
    ) -> None:
        self.joint = bijectors if isinstance(bijectors, Joint) else Joint(bijectors)
        self.size = self.joint.size
        if self.size == 0:
            raise ArgumentError(
                f"Posterior: {bijectors!r} has no parameters. Pass a bijector for each"
                f"{at(user_line())}."
            )
        self.start = self._unconstrained_start(start)
        point = self.joint.forward(self.joint.unravel(self.start))
        self.shapes = _shapes(point, generated(point) if generated else {})
        self._width = sum(math.prod(shape) for shape in self.shapes.values())
        joint = self.joint

        def expanded(vector: Any) -> Any:
            values = joint.forward(joint.unravel(vector))
            further = converted(generated)(values) if generated else {}
            leaves = [*tree.leaves(values), *tree.leaves(further)]
            return np.concatenate([np.reshape(as_array(v) * 1.0, (-1,)) for v in leaves])

        vectors = spec(self.size)
        self.density = jit(value_and_grad(joint.unconstrained(log_density))).address(
            vectors, signature="logp"
        )
        self.expand = jit(expanded).address(vectors, signature="expand")

    def __repr__(self) -> str:
        return f"Posterior({self.joint.bijectors!r})"

    def log_density(self, vector: Any) -> float:
        """The log-density of a vector of unconstrained values, with the log-Jacobian."""
        return self.value_and_grad(vector)[0]

    def value_and_grad(self, vector: Any) -> tuple[float, Any]:
        """`log_density` and its gradient, by the C function; not a number where it fails."""
        point = np.ascontiguousarray(vector, dtype=np.float64)
        if point.shape != (self.size,):
            raise ShapeError(
                f"Posterior: the shape of the vector is {point.shape}, but there are {self.size} "
                f"unconstrained values{at(user_line())}."
            )
        value, gradient = np.full(1, np.nan), np.full(self.size, np.nan)
        arrays = (_address(a) for a in (point, gradient, value))
        _check_status(self.density, self.density.function(self.size, *arrays, None))
        return float(value[0]), gradient

    def initial_point(self, seed: int) -> Any:
        """A vector of unconstrained values near the start, at which the density is finite.

        Raises
        ------
        ArgumentError
            The density is not finite at any of the points that were tried.
        """
        rng = np.random.default_rng(seed)
        for _ in range(MAX_STARTS):
            vector = self.start + rng.uniform(-JITTER, JITTER, self.size)
            value = self.log_density(vector)
            if np.isfinite(value):
                return vector
        raise ArgumentError(
            f"Posterior: the log-density is not finite at {MAX_STARTS} points around the start "
            f"({value} at the last). Pass start=, constrained values at which "
            f"it is{at(user_line())}."
        )

    def nutpie(
        self,
        *,
        coords: Mapping[str, Any] | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
    ) -> Any:
        """The model for `nutpie.sample`.

        Parameters
        ----------
        coords : mapping, optional
            The labels of each dimension, for ArviZ.
        dims : mapping, optional
            The names of the dimensions of each value: ``{"theta": ["school"]}``.

        Returns
        -------
        nutpie.compile_pymc.CompiledPyMCModel
        """
        dims = {} if dims is None else dims
        self._check_dims(dims)
        return model(
            self.density,
            self.expand,
            self.size,
            self.shapes,
            self.initial_point,
            {} if coords is None else coords,
            dims,
        )

    def walnutpie(self) -> tuple[Any, None]:
        """The first argument of `walnutpie.walnuts_pyfunc`; pass ``num_params=posterior.size``.

        Returns
        -------
        tuple
            A ctypes function of walnutpie's type, and no data.
        """
        function = library("walnutpie").logp_cfunc_type(self.density.address)
        function.owner = self.density  # the code is freed with it
        return function, None

    def constrained(self, draws: Any) -> dict[str, Any]:
        """The values of draws of unconstrained vectors.

        Parameters
        ----------
        draws : array or sequence of arrays
            The axes are chains, draws and values; chains have the same number of draws.

        Returns
        -------
        dict
            From names to arrays whose first axes are chains and draws.
        """
        vectors = np.asarray(draws, dtype=np.float64)
        if vectors.ndim != 3 or vectors.shape[2] != self.size:
            raise ShapeError(
                f"Posterior: draws have the shape {vectors.shape}, but must be (chains, draws, "
                f"{self.size}){at(user_line())}."
            )
        rows = np.empty((vectors.shape[0] * vectors.shape[1], self._width))
        for vector, row in zip(
            np.ascontiguousarray(vectors).reshape(-1, self.size), rows, strict=True
        ):
            _check_status(
                self.expand,
                self.expand.function(self.size, self._width, _address(vector), _address(row), None),
            )
        found, first = {}, 0
        for name, shape in self.shapes.items():
            last = first + math.prod(shape)
            found[name] = rows[:, first:last].reshape(*vectors.shape[:2], *shape)
            first = last
        return found

    def inference_data(
        self,
        draws: Any,
        *,
        coords: Mapping[str, Any] | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
    ) -> Any:
        """Draws of unconstrained vectors, such as those of walnutpie, as data of ArviZ.

        Parameters
        ----------
        draws : array or sequence of arrays
            As in `constrained`.
        coords, dims : mapping, optional
            As in `nutpie`.

        Returns
        -------
        arviz.InferenceData
        """
        self._check_dims({} if dims is None else dims)
        return library("arviz").from_dict(
            posterior=self.constrained(draws),
            coords=dict(coords or {}),
            dims={name: list(d) for name, d in (dims or {}).items()},
        )

    def _check_dims(self, dims: Mapping[str, Sequence[str]]) -> None:
        for name, axes in dims.items():
            if name not in self.shapes:
                raise ArgumentError(
                    f"Posterior: dims has {name!r}, which is not one of the values "
                    f"{', '.join(self.shapes)}{at(user_line())}."
                )
            if len(axes) != len(self.shapes[name]):
                raise ArgumentError(
                    f"Posterior: dims has {list(axes)} for {name!r}, whose shape is "
                    f"{self.shapes[name]}. Name each axis{at(user_line())}."
                )

    def _unconstrained_start(self, start: Any) -> Any:
        if start is None:
            return np.zeros(self.size)
        return np.asarray(self.joint.ravel(self.joint.inverse(start)), dtype=np.float64)


def _address(array: Any) -> Any:
    """The address of an array of float64."""
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def _check_status(pointer: Any, status: int) -> None:
    """Raise the error of a function that was called back in Python."""
    if status < 0 and pointer.callbacks is not None and pointer.callbacks.nodes:
        raise pointer.callbacks.take_error()


def _shapes(*containers: Any) -> dict[str, Shape]:
    """The names of the leaves, from their places, and their shapes."""
    found: dict[str, Shape] = {}
    for container in containers:
        for path, leaf in tree.leaves_with_path(container):
            name = _name(path)
            if name in found:
                raise ArgumentError(
                    f"Posterior: two values have the name {name!r}. Rename one{at(user_line())}."
                )
            found[name] = np.shape(leaf)
    return found


def _name(path: tuple[Any, ...]) -> str:
    """``a.b[0]``; a value that is not a container is ``x``."""
    parts = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in path]
    return "".join(parts).removeprefix(".") or "x"


__dir__ = public_dir(__name__)
