"""The functions of scipy.ndimage, for arrays and tensors.

convolutions        correlate, convolve and uniform filters
gaussian            Gaussian filters
difference_filters  sobel, prewitt, laplace, generic_laplace, generic_gradient_magnitude
rank_filters        maximum, minimum, median, percentile and rank filters
splines             spline_filter, spline_filter1d; values between elements
interpolation       map_coordinates, geometric_transform, shift, zoom
affine              affine_transform, rotate
measurements        statistics of labeled elements; labels and morphology of plain arrays
windows             what is beyond the borders; sums of windows, as one operation

The other functions are SciPy's, for plain arrays: labels, morphology, distances.
"""

import scipy.ndimage as _scipy_ndimage

from wengert._engine.core.lazy_import import public_dir

from .affine import affine_transform, rotate
from .convolutions import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    uniform_filter,
    uniform_filter1d,
)
from .difference_filters import (
    generic_gradient_magnitude,
    generic_laplace,
    laplace,
    prewitt,
    sobel,
)
from .gaussian import (
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
)
from .interpolation import geometric_transform, map_coordinates, shift, zoom
from .measurements import (
    center_of_mass,
    extrema,
    maximum,
    maximum_position,
    mean,
    median,
    minimum,
    minimum_position,
    plain_function,
    standard_deviation,
    sum,
    sum_labels,
    variance,
)
from .rank_filters import (
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    rank_filter,
)
from .splines import spline_filter, spline_filter1d

__all__ = [
    "affine_transform",
    "center_of_mass",
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "extrema",
    "gaussian_filter",
    "gaussian_filter1d",
    "gaussian_gradient_magnitude",
    "gaussian_laplace",
    "generic_gradient_magnitude",
    "generic_laplace",
    "geometric_transform",
    "laplace",
    "map_coordinates",
    "maximum",
    "maximum_filter",
    "maximum_filter1d",
    "maximum_position",
    "mean",
    "median",
    "median_filter",
    "minimum",
    "minimum_filter",
    "minimum_filter1d",
    "minimum_position",
    "percentile_filter",
    "prewitt",
    "rank_filter",
    "rotate",
    "shift",
    "sobel",
    "spline_filter",
    "spline_filter1d",
    "standard_deviation",
    "sum",
    "sum_labels",
    "uniform_filter",
    "uniform_filter1d",
    "variance",
    "zoom",
]

_SCIPYS = frozenset(dir(_scipy_ndimage))


def __getattr__(name: str) -> object:
    if name.startswith("_") or name not in _SCIPYS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return plain_function(name)


__dir__ = public_dir(__name__)
