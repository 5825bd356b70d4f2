"""scipy.interpolate, for arrays and tensors alike: by the values, and by where they stand.

    lines        interp1d
    piecewise    PPoly
    cubic        CubicSpline, CubicHermiteSpline, PchipInterpolator, Akima1DInterpolator
    bsplines     BSpline, make_interp_spline
    fitpack      splrep, splev, splint ...; InterpolatedUnivariateSpline, RectBivariateSpline
    through_points    BarycentricInterpolator, KroghInterpolator, pchip_interpolate
    grids        RegularGridInterpolator, interpn
    radial       RBFInterpolator
    banded       the system of equations of a spline

Objects made of plain arrays give exactly SciPy's values at plain points; at tensors, and made of
tensors, they give tensors.  All are differentiable by the values, by the places where these stand,
and by the points of evaluation; where pieces meet, docs/conventions.md says which counts.
"""

from wengert._engine.core.lazy_import import public_dir

from .bsplines import BSpline, make_interp_spline
from .cubic import Akima1DInterpolator, CubicHermiteSpline, CubicSpline, PchipInterpolator
from .fitpack import (
    InterpolatedUnivariateSpline,
    RectBivariateSpline,
    splantider,
    splder,
    splev,
    splint,
    splrep,
)
from .grids import RegularGridInterpolator, interpn
from .lines import interp1d
from .piecewise import PPoly
from .radial import RBFInterpolator
from .through_points import (
    BarycentricInterpolator,
    KroghInterpolator,
    barycentric_interpolate,
    krogh_interpolate,
    pchip_interpolate,
)

__all__ = [
    "Akima1DInterpolator",
    "BSpline",
    "BarycentricInterpolator",
    "CubicHermiteSpline",
    "CubicSpline",
    "InterpolatedUnivariateSpline",
    "KroghInterpolator",
    "PPoly",
    "PchipInterpolator",
    "RBFInterpolator",
    "RectBivariateSpline",
    "RegularGridInterpolator",
    "barycentric_interpolate",
    "interp1d",
    "interpn",
    "krogh_interpolate",
    "make_interp_spline",
    "pchip_interpolate",
    "splantider",
    "splder",
    "splev",
    "splint",
    "splrep",
]

__dir__ = public_dir(__name__)
