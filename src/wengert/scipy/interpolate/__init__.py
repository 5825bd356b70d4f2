"""scipy.interpolate, for arrays and tensors alike: by the values, and by where they stand.

banded_solve          the system of equations of a spline
bspline               BSpline, make_interp_spline
cubic_splines         CubicSpline, CubicHermiteSpline, PchipInterpolator, Akima1DInterpolator
fitpack               splrep, splev, splint ...; InterpolatedUnivariateSpline, RectBivariateSpline
linear_interpolation  interp1d
polynomial            BarycentricInterpolator, KroghInterpolator, pchip_interpolate
ppoly                 PPoly
rbf                   RBFInterpolator
regular_grid          RegularGridInterpolator, interpn

Objects made of plain arrays give exactly SciPy's values at plain points; at tensors, and made of
tensors, they give tensors.  All are differentiable by the values, by the places where these stand,
and by the points of evaluation; where pieces meet, docs/conventions.md says which counts.
"""

from wengert._engine.core.lazy_import import public_dir

from .bspline import BSpline, make_interp_spline
from .cubic_splines import Akima1DInterpolator, CubicHermiteSpline, CubicSpline, PchipInterpolator
from .fitpack import (
    InterpolatedUnivariateSpline,
    RectBivariateSpline,
    splantider,
    splder,
    splev,
    splint,
    splrep,
)
from .linear_interpolation import interp1d
from .polynomial import (
    BarycentricInterpolator,
    KroghInterpolator,
    barycentric_interpolate,
    krogh_interpolate,
    pchip_interpolate,
)
from .ppoly import PPoly
from .rbf import RBFInterpolator
from .regular_grid import RegularGridInterpolator, interpn

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
