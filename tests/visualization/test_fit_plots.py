"""Plots of fits and of iterations: what is drawn, and what is refused."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, ShapeError

pytest.importorskip("matplotlib", reason="needs the extra `show`")
fits = wg.show.fits

X = np.linspace(0.0, 2.0, 11)
Y = 1.0 + 2.0 * X + 0.1 * np.cos(9.0 * X)


def line(x, a, b):
    return a + b * x


def test_fit_with_band_and_residuals(tmp_path):
    covariance = np.array([[0.04, -0.01], [-0.01, 0.09]])
    figure = fits.fit_picture(
        line, X, Y, [1.0, 2.0], covariance, sigma=0.1, level=0.6826894921370859,
        path=tmp_path / "fit.png", title="line",
    )  # fmt: skip
    assert (tmp_path / "fit.png").read_bytes().startswith(b"\x89PNG")
    above, below = figure.axes
    (band,) = [c for c in above.collections if c.get_label() == "68.2689 % band"]
    outline = band.get_paths()[0].vertices
    at_end = outline[np.isclose(outline[:, 0], 2.0), 1]
    deviation = np.sqrt(0.04 + 2 * 2.0 * -0.01 + 4.0 * 0.09)  # of a + 2 b
    assert np.isclose(at_end.max(), 5.0 + deviation) and np.isclose(at_end.min(), 5.0 - deviation)
    residuals = below.containers[0].lines[0].get_ydata()
    np.testing.assert_allclose(residuals, Y - line(X, 1.0, 2.0))
    assert figure.get_suptitle() == "line" and below.get_ylabel() == "residual"


def test_fit_without_a_covariance():
    figure = fits.fit_picture(line, list(X), list(Y), (1.0, 2.0))
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["fit", "data"]


def test_iterations():
    figure = fits.convergence_picture(
        {"loss": [3.0, 1.0, 0.1], "loss of test": [4.0, 2.0, 1.0], "step": [0.0, 1.0]}
    )
    loss, step = figure.axes
    assert loss.get_yscale() == "log" and step.get_yscale() == "linear"
    assert [line.get_label() for line in loss.lines] == ["loss", "loss of test"]
    assert step.lines[0].get_xdata().tolist() == [1, 2]
    assert len(fits.convergence_picture([1.0, 2.0]).axes) == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fits.fit_picture(line, X, Y[1:], [1, 2]), ShapeError, "same length"),
        (lambda: fits.fit_picture(line, X, Y, [1, 2], level=95), ArgumentError, "level=95"),
        (lambda: fits.fit_picture(line, X, Y, [1, 2], np.eye(3)), ShapeError, "2 parameters"),
        (lambda: fits.convergence_picture({}), ArgumentError, "no figures"),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
