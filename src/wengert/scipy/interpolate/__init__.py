"""scipy.interpolate, for arrays and tensors.

linear_interpolation  interp1d
cubic_splines         CubicSpline, CubicHermiteSpline, PchipInterpolator, Akima1DInterpolator
bspline               BSpline, make_interp_spline
ppoly                 PPoly
polynomial            BarycentricInterpolator, KroghInterpolator, pchip_interpolate
fitpack               splrep, splev, splint ...; InterpolatedUnivariateSpline, RectBivariateSpline
rbf                   RBFInterpolator
regular_grid          RegularGridInterpolator, interpn
banded_solve          the banded linear systems of splines

Objects made of plain arrays give exactly SciPy's values at plain points; with tensors they give
tensors.  All are differentiable with respect to the data values, their positions and the points of
evaluation; docs/conventions.md states which derivative is taken at breakpoints.
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
