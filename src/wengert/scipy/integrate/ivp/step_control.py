"""Step size controllers: the next step size from the estimates of the error.

SciPy's names of methods have SciPy's controller, so that they take SciPy's steps; the other methods
have a PI controller, which varies less for stiff problems.

    StepControl     a controller; `I_CONTROL` that of SciPy, `PI_CONTROL`

References
----------
.. [1] E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, II.4.
.. [2] E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, IV.2 and IV.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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
