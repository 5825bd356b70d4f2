"""Pictures of the examples that draw none themselves, in docs/pictures.

    DRAWINGS    for each program the function that draws its result, from the program's functions
    draw        loads programs and saves their pictures:
                python -m tools.documentation.example_pictures [NAMES]

Other programs write their picture when they are run (`gallery.measure` copies it).
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

import wengert as wg

from .pages import DOCS, ROOT

if TYPE_CHECKING:
    from types import ModuleType

DOTS_PER_INCH = 80
WIDE, SQUARE = (10.0, 3.6), (6.0, 4.2)  # inches


def nile(program: ModuleType) -> Figure:
    """Flow and smoothed level."""
    figure, (axes,) = _figure(1)
    years, variances = np.arange(1871, 1971), program.fit()[0]
    axes.plot(years, program.FLOW, ".", label="flow")
    axes.plot(years, program.smoothed(variances), label="level, a derivative of the likelihood")
    axes.set(ylabel="10$^8$ m$^3$")
    axes.legend()
    return figure


def lynx_hare(program: ModuleType) -> Figure:
    """Pelts and fitted populations."""
    figure, (axes,) = _figure(1)
    found = program.fit()[0]
    curves = program.populations(tuple(found[:4]), tuple(found[4:6]))
    years = 1900 + np.arange(program.YEARS)
    pairs = zip(("hares", "lynxes"), (program.HARES, program.LYNXES), curves, strict=True)
    for k, (name, counts, fitted) in enumerate(pairs):
        axes.plot(years, counts, ".", color=f"C{k}")
        axes.plot(years, fitted, color=f"C{k}", label=name)
    axes.set(ylabel="thousands of pelts", xticks=years[::5])
    axes.legend()
    return figure


def lifetimes(program: ModuleType) -> Figure:
    """Observed and fitted survival, of bearings and of remissions."""
    figure, (left, right) = _figure(2)
    weeks, observed, treated = program.remission()
    design = np.stack([np.ones_like(treated), treated], axis=1)
    theta = program.fit(weeks, observed, design)[0]
    n = len(program.BEARINGS)
    mu, log_sigma = program.fit(program.BEARINGS, np.full(n, True), np.ones((n, 1)))[0]
    t = np.linspace(1.0, 180.0, 200)
    left.step(np.sort(program.BEARINGS), 1.0 - np.arange(1, n + 1) / n, "k", where="post", lw=1)
    left.plot(t, np.exp(-np.exp((np.log(t) - mu) / np.exp(log_sigma))))
    left.set(xlabel="10$^6$ revolutions", ylabel="bearings that survive")
    t = np.linspace(0.1, 35.0, 200)
    for k, name in enumerate(("placebo", "6-mercaptopurine")):
        z = (np.log(t) - theta[0] - k * theta[1]) / np.exp(theta[2])
        right.plot(t, np.exp(-np.exp(z)), color=f"C{k}", label=name)
        times, seen = weeks[treated == k], observed[treated == k].astype(bool)
        order = np.argsort(times, kind="stable")
        kept = np.cumprod(1.0 - seen[order] / np.arange(len(times), 0, -1))  # Kaplan and Meier
        right.step(times[order], kept, color=f"C{k}", where="post", lw=1, alpha=0.6)
    right.set(xlabel="weeks", ylabel="children in remission")
    right.legend()
    return figure


def volatility(program: ModuleType) -> Figure:
    """Returns and the fitted deviation."""
    figure, (axes,) = _figure(1)
    returns, days = program.returns()
    theta = program.constrained(program.fit(returns).x)
    deviation = np.sqrt(program.variances(theta, returns)[0])
    axes.plot(days, returns, ".", ms=2, color="0.5")
    for sign in (1.0, -1.0):
        axes.plot(days, theta[0] + 2.0 * sign * deviation, "C0", lw=1)
    axes.set(ylabel="daily return in %, and two deviations")
    return figure


def eight_schools(program: ModuleType) -> Figure:
    """Samples of each effect beside the exact posterior."""
    figure, (axes,) = _figure(1)
    n, rng = 20_000, np.random.default_rng(0)
    steps = program.STEP * rng.uniform(0.6, 1.2, n)
    given = np.zeros(10), rng.normal(size=(n, 10)), rng.random(n), steps
    samples = program.quantities(wg.jit(program.chain)(*given)[0][n // 20 :])
    means, deviations = program.exact()
    places = np.arange(len(means))
    axes.violinplot(samples, places, showextrema=False)
    axes.errorbar(places, means, deviations, fmt="k.", label="exact mean and deviation")
    axes.set_xticks(places, [name.removeprefix("school ") for name in program.NAMES])
    axes.set(ylim=(-20.0, 35.0), ylabel="effect")
    axes.legend()
    return figure


def swing_up(program: ModuleType) -> Figure:
    """The angle of the pendulum and its control."""
    figure, (left, right) = _figure(2)
    n, duration = 60, 6.0
    effort, end = program.problem(program.pendulum, program.HANGING, duration, n)
    guess = 0.3 * np.sin(np.linspace(0.0, duration, n))
    controls = program.least_effort(effort, end, program.STANDING, guess).x
    states = program.path(program.pendulum, program.HANGING, controls, duration)[1]
    times = np.linspace(0.0, duration, n + 1)
    left.plot(times[1:], states[:, 0])
    left.axhline(np.pi, color="0.7", lw=1)
    left.set(xlabel="time", ylabel="angle")
    right.stairs(controls, times, baseline=None)
    right.set(xlabel="time", ylabel="control")
    return figure


def shallow_water(program: ModuleType) -> Figure:
    """The first height, the observed one, and the gradient with respect to the depth."""
    figure, panels = _figure(3)
    cells, steps = (48, 64), 120
    heights, misfit = program.whole(cells, steps)
    depth, sea, first = program.basin(cells)
    observed = wg.jit(heights)(first, depth)
    slope = wg.jit(wg.grad(misfit, argnums=1))(0.5 * first, depth, observed)
    titles = "first height", f"height after {steps} steps", "gradient with respect to depth"
    for axes, title, field in zip(panels, titles, (first, observed, slope), strict=True):
        shown = np.where(sea > 0, field, np.nan)
        largest = float(np.nanmax(np.abs(shown)))
        axes.imshow(shown, cmap="RdBu", vmin=-largest, vmax=largest, origin="lower")
        axes.set(title=title, xticks=[], yticks=[], facecolor="0.6")
    return figure


def pipeline(program: ModuleType) -> Figure:
    """The points of both spirals, and what the trained model says of the plane."""
    figure, (axes,) = _figure(1, SQUARE)
    rng = np.random.default_rng(0)
    points, labels = program.spirals(512, rng)
    model, loss = program.make(48, 4, 0), wg.nn.CrossEntropyLoss()
    optimizer = wg.optim.Adam(list(model.parameters()), lr=0.005)

    @wg.jit
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        return value

    for _ in range(400):
        batch = rng.integers(len(points), size=128)
        step(points[batch], labels[batch])
    side = np.linspace(-4.5, 4.5, 150)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    with wg.no_grad():
        scores = np.asarray(model(grid).numpy())
    decided = (scores[:, 1] > scores[:, 0]).reshape(150, 150)
    axes.contourf(side, side, decided, levels=[-0.5, 0.5, 1.5], colors=["C0", "C1"], alpha=0.25)
    axes.scatter(*points.T, s=6, c=[f"C{label}" for label in labels])
    axes.set(aspect="equal", xticks=[], yticks=[])
    return figure


def larger_than_memory(program: ModuleType) -> Figure:
    """Estimates beside the coefficients that the data were made with, from four partitions."""
    figure, (axes,) = _figure(1)
    estimates, errors, _ = program.fit(None, 4, 50_000)
    axes.plot(program.COEFFICIENTS, "_", color="0.4", ms=14, label="of the data")
    places = np.arange(len(estimates))
    axes.errorbar(places, estimates, 2.0 * errors, fmt=".", label="estimate, two standard errors")
    axes.set(xlabel="feature", ylabel="coefficient")
    axes.legend()
    return figure


def digits_98(program: ModuleType) -> Figure:
    """An image, and as it is shifted for training."""
    figure, panels = _figure(10, (10.0, 1.4))
    images = program.load_digits().images[:5].astype(np.float32) / 16
    crop = program.RandomCrop(8, padding=1)
    rng = np.random.default_rng(0)
    for k, image in enumerate(images):
        shifted = crop(image[None], rng)[0]
        for axes, shown in zip(panels[2 * k : 2 * k + 2], (image, shifted), strict=True):
            axes.imshow(shown, cmap="gray_r")
            axes.set(xticks=[], yticks=[])
    return figure


Drawing = Callable[["ModuleType"], Figure]
DRAWINGS: dict[str, Drawing] = {
    drawing.__name__: drawing
    for drawing in (
        nile, lynx_hare, lifetimes, volatility, eight_schools, swing_up, shallow_water, pipeline,
        larger_than_memory, digits_98,
    )
}  # fmt: skip


def _figure(panels: int, size: tuple[float, float] = WIDE) -> tuple[Figure, list[Any]]:
    """A figure with panels beside each other."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, panels)))


def draw(name: str) -> None:
    """Load a program, and save its picture."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    DRAWINGS[name](program).savefig(DOCS / "pictures" / f"{name}.png", dpi=DOTS_PER_INCH)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or DRAWINGS:
        draw(chosen)
