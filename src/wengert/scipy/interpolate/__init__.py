"""The functions and classes of scipy.interpolate, for arrays and tensors.

one_dimensional       interp1d; BarycentricInterpolator, KroghInterpolator, pchip_interpolate
cubic_splines         CubicSpline, CubicHermiteSpline, PchipInterpolator, Akima1DInterpolator
bspline               BSpline, make_interp_spline
ppoly                 PPoly; the banded linear systems of splines
fitpack               splrep, splev, splint ...; InterpolatedUnivariateSpline, RectBivariateSpline
multivariate          RBFInterpolator; RegularGridInterpolator, interpn

Interpolators of plain arrays have SciPy's values at plain points, and return tensors at points that
are tensors.  All are differentiable with respect to the data values, their positions and the points
of evaluation; docs/conventions.md states which derivative is taken at breakpoints.
"""

# ruff: noqa: F403  (the `__all__` of each module says what is exported)

from wengert._engine.core.lazy_import import exported, public_dir

from .bspline import *
from .cubic_splines import *
from .fitpack import *
from .multivariate import *
from .one_dimensional import *
from .ppoly import *

_MODULES = "bspline cubic_splines fitpack multivariate one_dimensional ppoly"
globals()["__all__"] = sorted([*exported(__name__, _MODULES)])

__dir__ = public_dir(__name__)
