"""Plots of fits and of the progress of solvers.

    fit_picture          data, a fitted curve with its confidence band, and residuals
    convergence_picture  figures of iterations, such as values of an objective

Requires matplotlib, so the package does not import this module.  Figures are returned and, if
`path` is given, written to a file; no window is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from wengert._engine.autodiff.jacobians import jacfwd
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .training_plots import COLORS, GRID, INK

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

__all__ = ["convergence_picture", "fit_picture"]

GRID_POINTS = 400


def fit_picture(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    params: Any,
    covariance: Any = None,
    *,
    sigma: Any = None,
    level: float = 0.95,
    path: str | PathLike[str] | None = None,
    title: str = "",
) -> Figure:
    """Data, a fitted curve with its confidence band, and the residuals below.

    Parameters
    ----------
    f : callable
        The model, ``f(x, *params)``, as `curve_fit` takes it.
    xdata, ydata : array_like, shape (n,)
    params : array_like, shape (k,)
        The fitted parameters.
    covariance : array_like, shape (k, k), optional
        Their covariance. The band is that of the curve, by the exact derivatives of `f` with
        respect to the parameters; it does not contain the noise of the data.
    sigma : array_like, optional
        The standard deviation of the data, drawn as error bars.
    level : float, default 0.95
        The probability of the band.
    path : path, optional
        PNG file to write.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.optimize import curve_fit
    >>> from wengert.show.fits import fit_picture
    >>> line = lambda x, a, b: a + b * x
    >>> x, y = np.arange(5.0), np.array([1.0, 3.1, 4.9, 7.0, 9.1])
    >>> figure = fit_picture(line, x, y, *curve_fit(line, x, y))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['y', 'residual']
    """
    x, y = (np.asarray(a, float) for a in (xdata, ydata))
    theta = np.atleast_1d(np.asarray(params, float))
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(
            f"fit_picture: x has shape {x.shape} and y {y.shape}; both must be vectors of the "
            f"same length{at(user_line())}."
        )
    if not 0.0 < level < 1.0:
        raise ArgumentError(f"fit_picture: level={level!r} must be in (0, 1){at(user_line())}.")
    figure = Figure(figsize=(7.0, 5.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    if title:
        figure.suptitle(title, fontsize=13, fontweight="bold", color=INK)
    grid = np.linspace(x.min(), x.max(), GRID_POINTS)
    curve = np.asarray(f(grid, *theta), float)
    if covariance is not None:
        margin = scipy.special.ndtri(0.5 + level / 2) * _deviations(f, grid, theta, covariance)
        label = f"{100 * level:g} % band"
        panels[0].fill_between(
            grid, curve - margin, curve + margin, color=COLORS[0], alpha=0.2, lw=0, label=label
        )
    panels[0].plot(grid, curve, color=COLORS[0], label="fit")
    residuals = y - np.asarray(f(x, *theta), float)
    for axes, values, name in zip(panels, (y, residuals), ("data", None), strict=True):
        axes.errorbar(x, values, sigma, fmt="o", color=INK, markersize=3, lw=0.8, label=name)
    panels[1].axhline(0.0, color=COLORS[0], linewidth=1.0)
    panels[0].set_ylabel("y", color=INK)
    panels[1].set_ylabel("residual", color=INK)
    panels[1].set_xlabel("x", color=INK)
    panels[0].legend(frameon=False, fontsize=9)
    return _finished(figure, path)


def _deviations(f: Callable[..., Any], x: Array, params: Array, covariance: Any) -> Any:
    """The standard deviation of the curve at each point."""
    matrix = np.asarray(covariance, float)
    if matrix.shape != (params.size, params.size):
        raise ShapeError(
            f"fit_picture: a covariance of shape {matrix.shape} for {params.size} parameters"
            f"{at(user_line())}."
        )
    slopes = np.asarray(jacfwd(lambda p: f(x, *[p[k] for k in range(params.size)]))(params))
    return np.sqrt(np.maximum(np.einsum("ik,kl,il->i", slopes, matrix, slopes), 0.0))


def convergence_picture(
    figures: Mapping[str, Sequence[float]] | Sequence[float],
    *,
    path: str | PathLike[str] | None = None,
    title: str = "",
) -> Figure:
    """Figures of iterations: one panel for each, logarithmic if all its values are positive.

    Parameters
    ----------
    figures : sequence, or dict of sequences
        Values of each iteration, such as those that the callback of a solver has collected. Curves
        of one panel have names that begin with the same word, as "loss" and "loss of test".
    path : path, optional
        PNG file to write.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.show.fits import convergence_picture
    >>> objective, values = lambda x: np.sum((x - 1.0) ** 4), []
    >>> record = lambda x: values.append(objective(x))
    >>> found = wg.optim.minimize(objective, np.zeros(3), callback=record)
    >>> convergence_picture({"objective": values}).axes[0].get_yscale()
    'log'
    """
    named = figures if isinstance(figures, Mapping) else {"value": figures}
    if not named:
        raise ArgumentError(f"convergence_picture: no figures were given{at(user_line())}.")
    groups: dict[str, list[str]] = {}
    for name in named:
        groups.setdefault(name.partition(" ")[0], []).append(name)
    figure = Figure(figsize=(5.5 * len(groups), 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, fontsize=13, fontweight="bold", color=INK)
    panels: Any = figure.subplots(1, len(groups), squeeze=False)[0]
    for axes, (group, names) in zip(panels, groups.items(), strict=True):
        for name, color in zip(names, COLORS * len(names), strict=False):
            values = np.asarray(named[name], float)
            steps = np.arange(1, len(values) + 1)
            axes.plot(steps, values, "o-", color=color, markersize=2.5, label=name)
        every = np.concatenate([np.asarray(named[name], float) for name in names])
        if every.size and np.nanmin(every) > 0.0:
            axes.set_yscale("log")
        axes.set_ylabel(group, color=INK)
        axes.set_xlabel("iteration", color=INK)
        if len(names) > 1:
            axes.legend(frameon=False, fontsize=9)
    return _finished(figure, path)


def _finished(figure: Figure, path: str | PathLike[str] | None) -> Figure:
    """The figure with grids, written to a file if a path is given."""
    for axes in figure.axes:
        axes.grid(True, which="major", color=GRID)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
