"""A physics-informed neural network for Burgers' equation.

    u_t + u u_x = nu u_xx,    u(0, x) = -sin(pi x),    u(t, -1) = u(t, 1) = 0,    nu = 0.01 / pi

The network is trained without values of the solution.  It is a function of (t, x) that satisfies
the initial and boundary conditions by construction, and its loss is the residual of the equation at
given points.  The derivatives u_t, u_x, u_xx with respect to its inputs are computed in forward
mode, the gradient of the loss with respect to the weights in reverse mode; both are compiled
together, and SciPy's L-BFGS minimizes the loss.

The exact solution is that of Cole and Hopf: a quotient of two integrals, by Gauss-Hermite
quadrature (J. D. Cole, Quarterly of Applied Mathematics 9, 1951; the test problem is from
M. Raissi, P. Perdikaris and G. E. Karniadakis, Journal of Computational Physics 378, 2019).

    python examples/pinn.py --steps 3000 --seed 0 --out out

Writes pinn.png, the solution and the network at four times and the error, to the folder `out`.
Fails if the relative error, in the root mean square over all times, is more than 1 %.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import wengert as wg
from wengert import nn, optim

VISCOSITY = 0.01 / np.pi


def exact(t, x, nodes=100):
    """The solution of Cole and Hopf for t > 0."""
    z, weight = np.polynomial.hermite.hermgauss(nodes)
    y = x[..., None] - np.sqrt(4 * VISCOSITY * t[..., None]) * z
    density = weight * np.exp(-np.cos(np.pi * y) / (2 * np.pi * VISCOSITY))
    return -np.sum(np.sin(np.pi * y) * density, -1) / np.sum(density, -1)


class Solution(nn.Module):
    """A network that satisfies the initial and boundary conditions for all weights."""

    def __init__(self, width, rng):
        sizes = [2, width, width, width, 1]
        self.layers = [nn.Linear(a, b, rng=rng) for a, b in itertools.pairwise(sizes)]

    def forward(self, t, x):
        """u at the points (t, x), two 1-D arrays."""
        y = np.stack([2 * t - 1, x], axis=-1)
        for layer in self.layers[:-1]:
            y = np.tanh(layer(y))
        network = self.layers[-1](y)[:, 0]
        return -np.sin(np.pi * x) * (1 - t) + t * (1 - x * x) * network


def residual(u, t, x):
    """The residual of the equation for a function u of (t, x)."""
    one = np.ones_like(t)

    def along_x(x):
        return wg.jvp(lambda x: u(t, x), (x,), (one,))

    _, u_t = wg.jvp(lambda t: u(t, x), (t,), (one,))
    (value, u_x), (_, u_xx) = wg.jvp(along_x, (x,), (one,))
    return u_t + value * u_x - VISCOSITY * u_xx


def solve(model, points, steps):
    """Minimize the residual at all points with L-BFGS; return SciPy's result."""
    t, x = points

    def loss(weights):
        values = residual(lambda t, x: nn.functional_call(model, weights, t, x), t, x)
        return np.mean(np.square(values))

    limits = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 50, "ftol": 0, "gtol": 1e-9}
    result = optim.minimize(loss, model.state_dict(), options=limits)
    model.load_state_dict(result.x)
    return result


def picture(model, path):
    x = np.linspace(-1, 1, 401)
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for t in (0.1, 0.3, 0.6, 1.0):
        time_ = np.full_like(x, t)
        with wg.no_grad():
            u = model(time_, x).numpy()
        (line,) = left.plot(x, exact(time_, x), linewidth=4, alpha=0.3)
        left.plot(x, u, color=line.get_color(), linewidth=1.2, label=f"t = {t}")
        right.semilogy(x, np.abs(u - exact(time_, x)) + 1e-9, color=line.get_color())
    left.set(xlabel="x", ylabel="u", title="network (thin line) and exact solution (thick line)")
    left.legend()
    right.set(xlabel="x", title="absolute error")
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--points", type=int, default=3000)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-most", type=float, default=0.01, help="relative error allowed")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    rng = np.random.default_rng(options.seed)
    model = Solution(options.width, rng)
    points = rng.uniform([[0.0], [-1.0]], [[1.0], [1.0]], (2, options.points))
    points[1, ::3] *= 0.1  # a third of them near the front
    begin = time.perf_counter()
    result = solve(model, points, options.steps)
    seconds = time.perf_counter() - begin

    t, x = (a.ravel() for a in np.meshgrid(np.linspace(0.02, 1, 50), np.linspace(-1, 1, 201)))
    with wg.no_grad():
        error = model(t, x).numpy() - exact(t, x)
    relative = np.sqrt(np.mean(error**2) / np.mean(exact(t, x) ** 2))
    count = sum(p.size for p in model.parameters())
    print(f"Burgers' equation, viscosity 0.01/pi: {count} weights, {options.points} points")
    print(f"  {result.nit} steps of L-BFGS, {result.nfev} gradients, {seconds:.0f} s")
    print(f"  mean square residual    {result.fun:.2e}")
    print(f"  relative error          {relative:.2e}")
    print(f"  largest error           {np.abs(error).max():.2e}")
    picture(model, options.out / "pinn.png")
    print(f"wrote {options.out / 'pinn.png'}")
    if relative > options.at_most:
        sys.exit(f"the relative error is more than {options.at_most:g}")


if __name__ == "__main__":
    main()
