"""Optimal control of a cart and of a pendulum swing-up.

A state moves by x' = f(x, u); the control u is constant during each of N steps of the classical
Runge-Kutta method, which are a scan.  The effort, the integral of u^2 / 2, is minimized subject to
the final state: wengert gives SciPy the exact gradient of the effort, the Jacobian of the final
state and the Hessian of the Lagrangian, through the loop and compiled.

    cart        moved from rest to rest over a distance of 1 in a time of 1, without friction.  The
                solution is known: u = 12 N / (N^2 - 1) ((N - 1) / 2 - k) in step k, which tends to
                6 - 12 t, with effort 6 N^2 / (N^2 - 1).  The problem is quadratic, so one step of
                Newton's method on its Lagrangian solves it from any start.
    pendulum    swung up in a time of 6.  The solution is compared with Pontryagin's conditions for
                a control that may change at any time, a boundary-value problem
                (scipy.integrate.solve_bvp).

    python examples/swing_up.py [--steps 60]
"""

import argparse
import sys

import numpy as np
from scipy.integrate import solve_bvp
from scipy.linalg import null_space
from scipy.optimize import NonlinearConstraint, minimize

import wengert as wg

FRICTION = 0.1
HANGING, STANDING = np.array([0.0, 0.0]), np.array([np.pi, 0.0])


def cart(x, u):
    """The derivative of position and speed of a cart."""
    return np.stack([x[1], u])


def pendulum(x, u):
    """The derivative of angle and speed of a pendulum."""
    return np.stack([x[1], u - np.sin(x[0]) - FRICTION * x[1]])


def path(slope, first, controls, duration):
    """The final state, and the states after each step."""
    h = duration / len(controls)

    def step(x, u):
        a = slope(x, u)
        b = slope(x + 0.5 * h * a, u)
        c = slope(x + 0.5 * h * b, u)
        d = slope(x + h * c, u)
        x = x + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
        return x, x

    return wg.scan(step, first, controls)


def problem(slope, first, duration, n):
    """The effort and the final state as functions of n controls."""

    def effort(controls):
        return 0.5 * duration / n * np.sum(controls**2)

    def end(controls):
        return path(slope, first, controls, duration)[0]

    return effort, end


def newton(effort, end, target, controls):
    """One step of Newton's method for the Lagrangian, and the multipliers."""

    def lagrangian(controls, multipliers):
        return effort(controls) + multipliers @ (end(controls) - target)

    zero = np.zeros(len(target))
    gradient = wg.jit(wg.grad(lagrangian))(controls, zero)
    matrix = wg.jit(wg.hessian(lagrangian))(controls, zero)
    jacobian = wg.jit(wg.jacobian(end))(controls)
    system = np.block([[matrix, jacobian.T], [jacobian, np.zeros((len(target), len(target)))]])
    right = np.concatenate([gradient, wg.jit(end)(controls) - target])
    step = -np.linalg.solve(system, right)
    return controls + step[: len(controls)], step[len(controls) :]


def least_effort(effort, end, target, controls):
    """SciPy's result for the constrained minimum."""
    hessian = wg.jit(wg.hessian(lambda controls, weights: weights @ end(controls)))
    constraint = NonlinearConstraint(
        wg.jit(end), target, target, jac=wg.jit(wg.jacobian(end)), hess=hessian
    )
    return minimize(
        wg.jit(wg.value_and_grad(effort)),
        controls,
        jac=True,
        hess=wg.jit(wg.hessian(effort)),
        constraints=[constraint],
        method="trust-constr",
        options={"gtol": 1e-10, "xtol": 1e-12, "maxiter": 500},
    )


def by_pontryagin(duration, controls):
    """The least effort of a control that may change at any time; `controls` is the first guess."""

    def rates(_, y):
        angle, speed, for_angle, for_speed = y
        slopes = [speed, -for_speed - np.sin(angle) - FRICTION * speed]
        return np.stack([*slopes, for_speed * np.cos(angle), FRICTION * for_speed - for_angle])

    def at_the_ends(a, b):
        return np.array([*(a[:2] - HANGING), *(b[:2] - STANDING)])

    times = np.linspace(0.0, duration, len(controls))
    _, states = path(pendulum, HANGING, controls, duration)
    guess = np.stack([*states.T, np.gradient(controls, times), -controls])
    found = solve_bvp(rates, at_the_ends, times, guess, tol=1e-8, max_nodes=20_000)
    t = np.linspace(0.0, duration, 20_001)
    return 0.5 * np.trapezoid(found.sol(t)[3] ** 2, t), found.success


def push_the_cart(n):
    """The largest error of one step of Newton's method, compared with the known solution."""
    effort, end = problem(cart, np.zeros(2), 1.0, n)
    start = np.random.default_rng(0).normal(size=n)
    controls, _ = newton(effort, end, np.array([1.0, 0.0]), start)
    known = 12.0 * n / (n * n - 1.0) * ((n - 1.0) / 2.0 - np.arange(n))
    off = np.abs(controls - known).max()
    print(
        f"cart, {n} controls: effort {effort(controls):.10f}, known {6 * n * n / (n * n - 1):.10f}"
    )
    print(f"  largest error of the controls {off:.1e} after one Newton step from random controls")
    return off


def swing_the_pendulum(n, duration=6.0):
    """Violation of the optimality conditions, least curvature, excess over the other method."""
    effort, end = problem(pendulum, HANGING, duration, n)
    start = 0.3 * np.sin(np.linspace(0.0, duration, n))
    result = least_effort(effort, end, STANDING, start)
    multipliers = result.v[0]

    def lagrangian(controls):
        return effort(controls) + multipliers @ end(controls)

    slope = np.abs(wg.jit(wg.grad(lagrangian))(result.x)).max()
    missed = np.abs(wg.jit(end)(result.x) - STANDING).max()
    free = null_space(wg.jit(wg.jacobian(end))(result.x))
    curvature = np.linalg.eigvalsh(free.T @ wg.jit(wg.hessian(lagrangian))(result.x) @ free).min()
    other, success = by_pontryagin(duration, result.x)
    angles = np.asarray(path(pendulum, HANGING, result.x, duration)[1])[:, 0]
    swings = int(np.sum(np.diff(np.sign(np.diff(angles))) != 0))
    print(f"pendulum, {n} controls: effort {result.fun:.6f} after {result.nit} iterations")
    print(f"  {swings} changes of direction, largest control {np.abs(result.x).max():.3f}")
    print(f"  error of the final state {missed:.1e}; slope of the Lagrangian {slope:.1e}")
    print(
        f"  least curvature along the constraint {curvature * n / duration:.3f}, so it is a minimum"
    )
    more = result.fun / other - 1.0
    print(f"  Pontryagin's conditions: effort {other:.6f}, {100.0 * more:.3f} % less")
    return max(missed, slope), curvature, more if success else np.inf


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Optimal control of a cart and a pendulum.")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args(arguments)
    off = push_the_cart(options.steps)
    violation, curvature, more = swing_the_pendulum(options.steps)
    # Controls that are constant during a step cost more than free ones, by O(1 / N^2).
    if off > 1e-9 or violation > 1e-7 or curvature <= 0 or not 0.0 < more < 4.0 / options.steps**2:
        print("the optimality conditions are not satisfied", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
