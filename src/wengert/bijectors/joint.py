"""Bijectors of containers: all parameters of a model.

    Joint      a bijector for each leaf; unconstrained values as a container or as one vector

Samplers and optimizers work on vectors of unconstrained numbers.  `Joint.unravel` cuts such a
vector into values for the leaves, in the order of `wg.tree.flatten`: keys of dicts are sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import shape_of
from wengert._engine.tensor import tree
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import DtypeError, ShapeError, StructureError, at, user_line

from .bijector import Bijector


class Joint:
    """A bijector for each leaf of a container.

    Parameters
    ----------
    bijectors : container of Bijector
        Nested dicts, lists, tuples and dataclasses of bijectors.

    Attributes
    ----------
    size : int
        The number of unconstrained values.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.bijectors import Joint, Positive, Real
    >>> joint = Joint({"mean": Real(), "scale": Positive(2)})
    >>> joint.forward({"mean": 1.0, "scale": np.zeros(2)})
    {'mean': 1.0, 'scale': array([1., 1.])}
    >>> joint.ravel(joint.inverse({"mean": 1.0, "scale": np.ones(2)}))
    array([1., 0., 0.])
    """

    def __init__(self, bijectors: Any) -> None:
        places, self._structure = tree.flatten(bijectors)
        self.bijectors = bijectors
        self._leaves: list[Bijector] = places
        for path, leaf in tree.leaves_with_path(bijectors):
            if not isinstance(leaf, Bijector):
                raise DtypeError(
                    f"Joint: {path or 'the argument'} is {leaf!r}, but must be a bijector: Real() "
                    f"for values without a constraint{at(user_line())}."
                )
        self._ends = [0, *accumulate(leaf.size for leaf in self._leaves)]
        self.size = self._ends[-1]

    def __repr__(self) -> str:
        return f"Joint({self.bijectors!r})"

    def forward(self, u: Any) -> Any:
        """The container of constrained values for the container of unconstrained values `u`."""
        return self.forward_and_log_det(u)[0]

    def log_det_jacobian(self, u: Any) -> Any:
        """The sum of the log-Jacobians of all leaves, as `Bijector.log_det_jacobian`."""
        return self.forward_and_log_det(u)[1]

    def forward_and_log_det(self, u: Any) -> tuple[Any, Any]:
        """`forward(u)` and `log_det_jacobian(u)`, computed together."""
        leaves = self._leaves_of(u, "unconstrained values")
        pairs = [b.forward_and_log_det(v) for b, v in zip(self._leaves, leaves, strict=True)]
        total = 0.0
        for _, log_det in pairs:
            total = total + log_det
        return pytree.unflatten(self._structure, [x for x, _ in pairs]), total

    def inverse(self, x: Any) -> Any:
        """The container of unconstrained values for the container of constrained values `x`."""
        leaves = self._leaves_of(x, "constrained values")
        found = [b.inverse(v) for b, v in zip(self._leaves, leaves, strict=True)]
        return pytree.unflatten(self._structure, found)

    def ravel(self, u: Any) -> Any:
        """A container of unconstrained values as one vector."""
        leaves = self._leaves_of(u, "unconstrained values")
        if not leaves:
            return np.zeros(0)
        return np.concatenate([np.reshape(as_array(v), (-1,)) for v in leaves])

    def unravel(self, vector: Any) -> Any:
        """The container of unconstrained values for a vector of `size` numbers."""
        vector = as_array(vector)
        if shape_of(vector) != (self.size,):
            raise ShapeError(
                f"Joint.unravel: the shape of the vector is {shape_of(vector)}, but there are "
                f"{self.size} unconstrained values{at(user_line())}."
            )
        parts = [
            np.reshape(vector[first:last], leaf.unconstrained_shape)
            for leaf, first, last in zip(self._leaves, self._ends, self._ends[1:], strict=False)
        ]
        return pytree.unflatten(self._structure, parts)

    def unconstrained(self, log_density: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The log-density of the vector of unconstrained values.

        Parameters
        ----------
        log_density : callable
            The log-density of the container of constrained values.

        Returns
        -------
        callable
            From a vector of `size` numbers to `log_density` at their constrained values plus the
            log-Jacobian.

        Examples
        --------
        >>> import numpy as np
        >>> import wengert as wg
        >>> from wengert.bijectors import Joint, Positive
        >>> density = Joint({"x": Positive()}).unconstrained(lambda p: -p["x"])
        >>> wg.grad(density)(np.zeros(1))
        array([0.])
        """

        def of_vector(vector: Any) -> Any:
            values, log_det = self.forward_and_log_det(self.unravel(vector))
            return converted(log_density)(values) + log_det

        return of_vector

    def _leaves_of(self, given: Any, what: str) -> list[Any]:
        """The values for all leaves; lists of numbers are values of one leaf."""
        try:
            return self._structure.flatten_up_to(given)  # type: ignore[no-any-return]
        except (ValueError, TypeError) as error:
            raise StructureError(
                f"Joint: the {what} have another structure than the bijectors, {self.bijectors!r}: "
                f"{error}{at(user_line())}."
            ) from None
