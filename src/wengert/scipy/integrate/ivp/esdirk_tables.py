"""Coefficients of the singly diagonally implicit Runge-Kutta methods of Kvaerno.

EsdirkTable                     the form in which they are stored
KVAERNO3, KVAERNO4, KVAERNO5    methods of order 3(2), 4(3) and 5(4)

The first stage is explicit, and is the last one of the step before; the others have the same number
gamma on the diagonal, so one factorization serves all of them. All are L-stable and stiffly
accurate: the last stage is the new state, the last but one the embedded one. The coefficients of
KVAERNO3 and KVAERNO4 are her formulas at the numbers gamma for which the last stage is L-stable,
the roots near 0.4358665215 and 0.5728160625, computed with 40 digits.
`tests/integrate/test_tables.py` checks the order conditions in rational arithmetic.
"""

from dataclasses import dataclass

Row = tuple[float, ...]
SOURCE = "A. Kvaerno, BIT 44 (2004) 489-502"


@dataclass(frozen=True)
class EsdirkTable:
    """A method whose s stages are ``k_i = f(t + c_i h, y + h sum_j a_ij k_j + h gamma k_i)``.

    Attributes
    ----------
    name : str
        Name of the method, as users write it.
    order : int
        Order of the new state, that of the last stage.
    error_order : int
        Order of the embedded state, that of the stage before.
    gamma : float
        The diagonal of the matrix of weights, but for the first stage, which is explicit.
    times : tuple of float
        The numbers c_i.
    a : tuple of tuple of float
        Weights of the earlier stages, rows of 1, 2, ... s - 1 numbers.
    predictor : tuple of tuple of float
        Weights of the earlier stages in the initial guess of a stage: an extrapolation in time, or
        a value of an embedded method.
    source : str
        Where the coefficients were published.
    """

    name: str
    order: int
    error_order: int
    gamma: float
    times: Row
    a: tuple[Row, ...]
    predictor: tuple[Row, ...]
    source: str


# fmt: off
KVAERNO3 = EsdirkTable(
    name="kvaerno3",
    order=3,
    error_order=2,
    gamma=0.435866521508459,
    times=(0, 0.871733043016918, 1, 1),
    a=(
        (0.435866521508459,),
        (0.49056338842178054, 0.07357009006976042),
        (0.30880996997674653, 1.4905633884217806, -1.2352398799069861),
    ),
    predictor=(
        (1,),
        (-0.14714018013952085, 1.147140180139521),
        (0.49056338842178054, 0.07357009006976042, 0.435866521508459),
    ),
    source=SOURCE,
)

KVAERNO4 = EsdirkTable(
    name="kvaerno4",
    order=4,
    error_order=3,
    gamma=0.5728160624821349,
    times=(0, 1.1456321249642698, 0.5971049876523115, 1, 1),
    a=(
        (0.5728160624821349,),
        (0.16723546202721076, -0.14294653685703412),
        (0.2626032902526958, -0.3119043274205632, 0.4764849746857325),
        (0.197216548312835, 0.17684378390637218, 0.8154421813508385, -0.7623185760521805),
    ),
    predictor=(
        (1,),
        (0.47879866962447987, 0.5212013303755201),
        (0, 0.7345033361923791, 0.26549666380762094),
        (0.2626032902526958, -0.3119043274205632, 0.4764849746857325, 0.5728160624821349),
    ),
    source=SOURCE,
)

KVAERNO5 = EsdirkTable(
    name="kvaerno5",
    order=5,
    error_order=4,
    gamma=0.26,
    times=(0, 0.52, 1.230333209967908, 0.8957659843500759, 0.43639360985864756, 1, 1),
    a=(
        (0.26,),
        (0.13, 0.8403332099679081),
        (0.22371961478320504, 0.476755323197997, -0.06470895363112615),
        (0.16648564323248322, 0.1045001884159172, 0.03631482272098715, -0.13090704451073998),
        (0.13855640231268224, 0, -0.04245337201752043, 0.02446657898003141, 0.6194303907248068),
        (0.13659751177640292, 0, -0.05496908796538376, -0.04118626728321046, 0.629933048990164,
         0.06962479448202728),
    ),
    predictor=(
        (1,),
        (-1.366025403784441, 2.3660254037844357),
        (-0.19650552613122207, 0.8113579546496623, 0.38514757148155954),
        (0.10375304369958693, 0.937994698066431, -0.04174774176601781, 0),
        (-0.17281112873898072, 0.6235784481025847, 0.5492326806363959, 0, 0),
        (0.13855640231268224, 0, -0.04245337201752043, 0.02446657898003141, 0.6194303907248068,
         0.26),
    ),
    source=SOURCE,
)
# fmt: on
