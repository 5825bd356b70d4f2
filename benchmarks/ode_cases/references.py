"""Accurate values and derivatives, with which the error of every contestant is measured.

    python benchmarks/ode_cases/references.py    compute them anew, and write references.json
    found(problem, kind)                         what is written there

Problems that are not stiff: SciPy's DOP853 with a tolerance of 1e-13, and the complex step, which
makes the derivative as accurate as the value.  Stiff problems: forward sensitivities by CVODES
with tolerances of 1e-11 and 1e-14.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
FILE = HERE / "references.json"
KINDS = ("value", "gradient", "jacobian")
STEP = 1e-40  # of the complex step: no difference is taken


def found(name: str, kind: str) -> list[Any]:
    """Arrays in the order of the contestants' results."""
    saved = json.loads(FILE.read_text())[name]
    value = np.array(saved["value"])
    if kind == "value":
        return [value]
    if kind == "gradient":
        return [np.array([saved["loss"]]), np.array(saved["gradient"])]
    return [value, np.array(saved["jacobian"])]


def solved(problem: Any, p: Any, start: Any, times: Any) -> Any:
    """States at the times after the first, complex if p is."""
    from scipy.integrate import solve_ivp

    def f(t: Any, y: Any) -> Any:
        return np.array(problem.f(t, y, p))

    span = (times[0], times[-1])
    found = solve_ivp(
        f, span, start.astype(p.dtype), "DOP853", times[1:], rtol=1e-13, atol=1e-14
    )  # fmt: skip
    return found.y.T


def trajectory(problem: Any, p: Any) -> tuple[Any, Any]:
    """The state at the end, and all states of the loss."""
    if problem.period is None:
        last = solved(problem, p, problem.start, np.array([0.0, problem.end]))[-1]
        return last, np.vstack([problem.start, solved(problem, p, problem.start, problem.times)])
    y, kept = problem.start, []
    for _ in range(round(problem.end / problem.period)):
        states = solved(problem, p, y, problem.times)
        kept.append(np.vstack([y, states[:-1]]))
        y = states[-1].copy()
        y[0] += problem.dose
    return y, np.vstack([*kept, y])


def by_complex_step(problem: Any) -> dict[str, Any]:
    """Value, loss and derivatives."""
    p = problem.parameters
    value, states = trajectory(problem, p)
    jacobian, gradient = [], []
    for i in range(len(p)):
        direction = np.zeros(len(p))
        direction[i] = STEP
        last, moved = trajectory(problem, p + 1j * direction)
        jacobian.append(last.imag / STEP)
        gradient.append(np.sum((1.0 - moved) ** 2).imag / 2.0 / STEP)
    return {
        "value": value.tolist(),
        "loss": float(np.sum((1.0 - states) ** 2) / 2.0),
        "gradient": gradient,
        "jacobian": np.array(jacobian).T.tolist(),
    }


def by_cvodes(problem: Any) -> dict[str, Any]:
    """Value, loss and derivatives."""
    from ode_cases import by_casadi

    p, tolerances = problem.parameters, (1e-11, 1e-14)
    last, jacobian = by_casadi.function(problem, "jacobian", tolerances)(p)
    loss, gradient = by_casadi.function(problem, "gradient, forward", tolerances)(p)
    return {
        "value": np.array(last).ravel().tolist(),
        "loss": float(loss),
        "gradient": np.array(gradient).ravel().tolist(),
        "jacobian": np.array(jacobian).tolist(),
    }


def main() -> int:
    """Write all of them."""
    sys.path.insert(0, str(HERE.parent))
    from ode_cases import classic, published

    problems = (
        published.lotka_volterra(), published.pkpd(), published.pollution(),
        published.brusselator(), published.robertson(), classic.hires(), classic.orego(),
        classic.van_der_pol(), classic.three_body(),
    )  # fmt: skip
    saved = {}
    for problem in problems:
        saved[problem.name] = by_cvodes(problem) if problem.stiff else by_complex_step(problem)
        print(problem.name, flush=True)
    FILE.write_text(json.dumps(saved) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
