"""Step sizes: the first one, and the next ones from the estimates of the error.

SciPy's names of methods have SciPy's controller, so that they take SciPy's steps; the other methods
have a PI controller, which varies less for stiff problems.

    StepControl     a controller; `I_CONTROL` that of SciPy, `PI_CONTROL`
    initial_step    from the sizes of the state and its derivatives

References
----------
.. [1] E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, II.4.
.. [2] E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, IV.2 and IV.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .method import IvpProblem, Tolerance, rms

_SMALLEST_ERROR = 1e-10  # below it the step grows by the largest factor anyway
_FAILED_FACTOR = 0.25  # if the equations of the stages have not been solved


@dataclass(frozen=True)
class StepControl:
    """A PI controller; with ``proportional=0`` an I controller.

    The factor of the step size is ``safety * (1 / e)**(integral / k) * (e0 / e)**(proportional /
    k)`` with the error e of this step and e0 of the last accepted one, for k the order of the
    error estimate plus 1.
    """

    integral: float = 1.0
    proportional: float = 0.0
    safety: float = 0.9
    smallest: float = 0.2
    largest: float = 10.0

    def factor(
        self, error: Any, last_error: Any, accepted: Any, was_rejected: Any, order: int
    ) -> Any:
        """The factor of the step size.

        error : relative to the tolerance; it may be NaN.
        last_error : of the last accepted step; 1 before the first.
        accepted : whether this step is accepted.
        was_rejected : whether the last attempt was rejected: then the step does not grow.
        order : of the error estimate.
        """
        k = 1.0 / (order + 1)
        e = np.maximum(error, _SMALLEST_ERROR)
        factor = self.safety * e ** (-self.integral * k)
        if self.proportional:
            factor = factor * (last_error / e) ** (self.proportional * k)
        largest = np.where(was_rejected | ~accepted, 1.0, self.largest)
        factor = np.minimum(np.maximum(factor, self.smallest), largest)
        return np.where(np.isnan(error), self.smallest, factor)

    def after_failure(self) -> float:
        """The factor if the equations of the stages have not been solved."""
        return _FAILED_FACTOR


I_CONTROL = StepControl()
PI_CONTROL = StepControl(0.7, 0.4)


EVALUATIONS = 1  # of the right-hand side


def initial_step(
    problem: IvpProblem,
    t: Any,
    y: Any,
    f: Any,
    direction: Any,
    length: Any,
    order: int,
    tolerance: Tolerance,
    max_step: Any,
) -> Any:
    """The absolute size of the first step, as SciPy chooses it; nothing is differentiated.

    f : the derivative at `t`.
    length : of the interval.
    order : of the error estimate.
    """
    scale = tolerance.scale(y)
    d0, d1 = rms(y / scale), rms(f / scale)
    is_tiny = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.where(is_tiny, 1e-6, 0.01 * d0 / np.where(is_tiny, 1.0, d1))
    h0 = np.minimum(h0, length)
    safe = np.where(h0 > 0, h0, 1.0)  # an empty interval
    d2 = rms((problem.slope(t + h0 * direction, y + h0 * direction * f) - f) / scale) / safe
    largest = np.maximum(d1, d2)
    is_flat = largest <= 1e-15
    h1 = np.where(
        is_flat,
        np.maximum(1e-6, h0 * 1e-3),
        (0.01 / np.where(is_flat, 1.0, largest)) ** (1.0 / (order + 1)),
    )
    return np.minimum(np.minimum(100 * h0, h1), np.minimum(length, max_step))
