"""Why something is not there: the one place where that is written by hand.

    REASONS      the reasons, each with a name
    NOT_HERE     for each namespace, which functions are not there for which of them, as patterns
    reason_of    the reason of one function; "not supported yet" by default

What a function does not do (a graph of it, native code) is not written here: there the page says
what the function itself said when it was asked.
"""

from __future__ import annotations

import re

from .numpy_calls import FAMILIES

REASONS = {
    "dates": "calendar dates are not numbers",
    "files": "reads or writes files, buffers and strings",
    "settings": "settings, versions and strings of NumPy or SciPy",
    "dtypes": "asks about dtypes, not about arrays",
    "matrix": "numpy.matrix, whose operators differ from those of arrays",
    "layout": "depends on memory layout, which tensors do not have",
    "program": "takes a function: NumPy's own works with tensors too",
    "objects": "makes arrays of Python objects",
    "random": "random numbers: use wengert.random",
    "design": "depends on integers and names only, not on values of arrays",
    "adaptive": "an adaptive method for a function: differentiate the function instead",
    "slow": "supported; too slow, or needs unusual arguments, for this page; tested elsewhere",
    "zeros": "finds a given number of zeros of a function",
    "sequences": "older functions for several orders at once: call the function of one order",
    "classes": "stateful classes of SciPy: use the functions",
    "divergent": "does not exist, as the integral diverges",
    "few digits": "supported, but SciPy's value, an adaptive integral, is too inaccurate",
    "tests": "hypothesis tests and statistics of samples",
    "not yet": "not supported yet",
}

# The first pattern that fits the whole name counts.
NOT_HERE: dict[str, list[tuple[str, str]]] = {
    "numpy": [
        ("busday.*|is_busday|datetime.*|isnat", "dates"),
        ("save.*|load.*|from(file|buffer|iter|regex|string)|genfromtxt", "files"),
        ("base_repr|binary_repr|format_float.*|info|typename", "settings"),
        ("(get|set)(printoptions|bufsize|err.*|_include)|(get|set)_.*|get_include", "settings"),
        ("geterr.*|seterr.*|show_.*|test|printoptions|errstate", "settings"),
        ("issubdtype|mintypecode", "dtypes"),
        ("bmat|asmatrix", "matrix"),
        ("isfortran|nested_iters|nditer|broadcast|flatiter", "layout"),
        ("fromfunction|vectorize|frompyfunc", "program"),
        ("poly1d|ufunc|busdaycalendar|memmap|recarray|record|matrix|ndenumerate", "classes"),
    ],
    **{
        f"numpy.polynomial.{family}": [(f"{short}interpolate", "program")]
        for family, short in FAMILIES.items()
    },
    "scipy.special": [
        (".*_zeros|.*zeros.*|.*_roots|roots_.*|ai_zeros|bi_zeros", "zeros"),
        ("lqn|lqmn|clpmn|lpn|lpmn|pro_cv_seq|obl_cv_seq|riccati_.*|.*_all", "sequences"),
        ("jvp|yvp|kvp|ivp|h1vp|h2vp", "not yet"),
        ("geterr|seterr|errstate|test", "settings"),
    ],
    "scipy.linalg": [
        ("get_.*|find_best_blas_type|test", "settings"),
        ("clarkson_.*", "random"),
    ],
    "scipy.fft": [("(get|set)_.*|register_backend|skip_backend|set_.*|.*fast_len", "settings")],
    "scipy.signal": [
        ("bilinear_zpk", "slow"),
        ("butter|cheby[12]|lp2.._zpk", "not yet"),
        ("buttord|bessel|bilinear.*|cheb.*|ellip.*|iir.*|firls|remez|kaiser.*", "design"),
        ("(zpk|tf|ss|sos|lp).*2.*|normalize|sweep_poly|residuez?|invresz?|unique_roots", "design"),
        ("gammatone|minimum_phase|band_stop_obj|cascade|daub|morlet.*", "design"),
        ("find_peaks.*|peak_.*|argrel.*|medfilt2?d?|order_filter|max_len_seq", "not yet"),
        ("[A-Z].*|lti|dlti", "classes"),
    ],
    "scipy.stats": [
        ("((half|fold|skew)?cauchy|alpha|levy|levy_l)\\.(mean|var|std)", "divergent"),
        ("levy(_l)?\\.entropy|(halfgennorm|recipinvgauss)\\.(var|std)", "few digits"),
        (".*\\.(entropy|mean|var|std|ppf|isf|sf|logsf|cdf|logcdf|pdf|pmf)", "not yet"),
        ("ttest_(1samp|rel|ind)|pearsonr", "not yet"),
        (".*test.*|.*_power|.*corr.*|.*_ratio|.*interval.*", "tests"),
    ],
    "scipy.ndimage": [
        ("generic_(laplace|gradient_magnitude)|geometric_transform|extrema", "slow"),
        ("(maximum|minimum)_position|label|find_objects|value_indices|histogram", "design"),
        ("binary_.*|generate_binary_structure|iterate_structure|watershed_ift", "design"),
    ],
    "scipy.interpolate": [
        ("RectBivariateSpline|splder|splantider", "slow"),
        ("(sp|bi)(l|s).*|insert|pade|lagrange|approximate_taylor_polynomial", "not yet"),
        ("test", "settings"),
    ],
    "scipy.integrate": [
        ("tplquad", "slow"),
        ("nquad|cubature|tanhsinh", "slow"),
        ("qmc_quad|nsum|lebedev_rule", "adaptive"),
        ("solve_ivp|odeint", "slow"),
        ("ode|complex_ode|solve_bvp|[A-Z].*", "adaptive"),
    ],
}


def reason_of(space: str, name: str) -> str:
    """The name of the reason why a function is not there."""
    for pattern, reason in NOT_HERE.get(space, ()):
        if re.fullmatch(pattern, name):
            return reason
    return "not yet"
