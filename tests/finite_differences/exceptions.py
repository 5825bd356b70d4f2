"""Cases in which theirs is finite, and its differences are not a derivative: with why.

The only cases that nothing is compared in.  Of functions whose differences merely lack digits there
is a formula in many digits instead (formulas.py).
"""

EXCEPTIONS = {
    ("scipy.integrate", "simpson"): {
        "equal": "all places are the same, and the rule divides by their distances",
    },
    ("scipy.linalg", "cdf2rdf"): {
        "zeros": "eigenvalues 0 are real, and both columns are kept; of a pair a + bi, a - bi, "
        "which is what they become along a direction, they are the real and the imaginary part of "
        "one vector: no limit of each other",
    },
    ("scipy.linalg", "schur"): {
        "as given, single": "columns of the unitary matrix have no sign of their own, and LAPACK's "
        "routines of both precisions choose other ones; SciPy's of float32 are ours",
    },
    ("scipy.stats", "halfgennorm.logcdf"): {
        "small": "the probability is exp(-7e6), which is 0 in double precision, and its logarithm "
        "-inf, as SciPy's own: of the tails only those with a formula of their own stay finite",
    },
    ("scipy.special", "hyp2f1"): {"zeros": "not defined for c = 0, DLMF 15.2.1"},
}
