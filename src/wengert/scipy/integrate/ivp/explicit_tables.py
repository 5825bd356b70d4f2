"""Coefficients of explicit Runge-Kutta methods, and the form in which all of them are stored.

ExplicitTable   stages, weights, error estimate and interpolant of a method
RK23            Bogacki and Shampine 3(2)
RK45            Dormand and Prince 5(4)
TSIT5           Tsitouras 5(4)

DOP853 and VERN7 are in high_order_tables. RK23, RK45 and DOP853 have the coefficients, the error
estimates and the interpolants of SciPy's classes of these names.

The coefficients are those of the publications named in `source`. `tests/integrate/test_tables.py`
checks the order conditions of the method, of its embedded method and of its interpolant with the
stored numbers, in rational arithmetic.
"""

from dataclasses import dataclass

Row = tuple[float, ...]


@dataclass(frozen=True)
class ExplicitTable:
    """An explicit Runge-Kutta method of s stages, k_i = f(t + c_i h, y + h sum_j a_ij k_j).

    The new state is ``y1 = y + h sum_i b_i k_i``. The derivative at the new state,
    ``f(t + h, y1)``, is evaluated at the end of each step: it counts as the stage with index s, and
    is the first stage of the next step.

    Attributes
    ----------
    name : str
        Name of the method, as users write it.
    order : int
        Order of the new state.
    error_order : int
        Order of the embedded state: the exponent of step control is ``-1 / (error_order + 1)``.
    c : tuple of float
        Times of the s stages.
    a : tuple of tuple of float
        Weights of the earlier stages in the stages 1 to s - 1: rows of 1, 2, ..., s - 1 numbers.
    b : tuple of float
        Weights of the new state.
    error : tuple of float
        Weights of the s + 1 stages in the error estimate ``h sum_i error_i k_i``.
    error_3 : tuple of float, optional
        Weights of a second estimate, of order 3. DOP853 combines norms of both,
        ``n5**2 / sqrt(n5**2 + 0.01 * n3**2)``, where n5 is that of `error`.
    extra_c, extra_a : tuple
        Stages that only the interpolant needs, after the s + 1 of the step.
    interpolant : tuple of tuple of float
        A row for each stage, the extra ones included: ``y(t + x h) = y + h sum_i P_i(x) k_i`` with
        ``P_i(x) = interpolant[i][0] x + interpolant[i][1] x**2 + ...``.
    dop853_interpolant : tuple of tuple of float
        In place of `interpolant`, the rows D of ``F_3, ... F_6 = h D k`` in the nested form
        ``y(t + x h) = y + x (F_0 + (1 - x) (F_1 + x (F_2 + (1 - x) (F_3 + ...))))``, where
        ``F_0 = y1 - y``, ``F_1 = h k_0 - F_0`` and ``F_2 = 2 F_0 - h (k_0 + k_s)``.
    source : str
        Where the coefficients were published.
    """

    name: str
    order: int
    error_order: int
    c: Row
    a: tuple[Row, ...]
    b: Row
    error: Row
    source: str
    interpolant: tuple[Row, ...] = ()
    error_3: Row = ()
    extra_c: Row = ()
    extra_a: tuple[Row, ...] = ()
    dop853_interpolant: tuple[Row, ...] = ()

    @property
    def stages(self) -> int:
        """The number of stages, without the derivative at the new state."""
        return len(self.b)


# fmt: off
RK23 = ExplicitTable(
    name="RK23",
    order=3,
    error_order=2,
    c=(0, 0.5, 0.75),
    a=(
        (0.5,),
        (0, 0.75),
    ),
    b=(2 / 9, 1 / 3, 4 / 9),
    error=(5 / 72, -1 / 12, -1 / 9, 0.125),
    interpolant=(
        (1, -4 / 3, 5 / 9),
        (0, 1, -2 / 3),
        (0, 4 / 3, -8 / 9),
        (0, -1, 1),
    ),
    source="P. Bogacki and L. F. Shampine, Appl. Math. Lett. 2 (1989) 321-325",
)
# fmt: on

# fmt: off
RK45 = ExplicitTable(
    name="RK45",
    order=5,
    error_order=4,
    c=(0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1),
    a=(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    b=(35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    error=(-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40),
    interpolant=(
        (1, -2.8535800653862835, 3.0717434641059005, -1.1270175653862835),
        (0, 0, 0, 0),
        (0, 4.023133379230305, -6.249321565289, 2.675424484351598),
        (0, -3.7324019615885042, 10.068970589843675, -5.685526961588504),
        (0, 2.5548038301849423, -6.399112377351017, 3.5219323679207912),
        (0, -1.3744241142186024, 3.272657752246729, -1.7672812570757455),
        (0, 1.3824689317781436, -3.764937863556287, 2.382468931778144),
    ),
    source=(
        "J. R. Dormand and P. J. Prince, J. Comput. Appl. Math. 6 (1980) 19-26; "
        "interpolant: L. F. Shampine, Math. Comp. 46 (1986) 135-150"
    ),
)
# fmt: on

# fmt: off
TSIT5 = ExplicitTable(
    name="tsit5",
    order=5,
    error_order=4,
    c=(0, 161 / 1000, 327 / 1000, 9 / 10, 0.9800255409045097, 1),
    a=(
        (161 / 1000,),
        (-0.008480655492356989, 0.335480655492357),
        (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
        (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
        (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401,
         -0.028269050394068383),
    ),
    b=(0.09646076681806523, 1 / 100, 0.4798896504144996, 1.379008574103742, -3.290069515436081,
     2.324710524099774),
    error=(
        -0.0017800110522257714, -0.0008164344596567469, 0.007880878010261995, -0.1447110071732629,
        0.5823571654525552, -0.45808210592918697, 1 / 66,
    ),
    interpolant=(
        (1, -2.763706197274826, 2.9132554618219126, -1.0530884977290216),
        (0, 0.13169999999999998, -0.2234, 1017 / 10000),
        (0, 3.9302962368947516, -5.941033872131505, 2.490627285651253),
        (0, -12.411077166933676, 30.33818863028232, -16.548102889244902),
        (0, 37.50931341651104, -88.1789048947664, 47.37952196281928),
        (0, -27.896526289197286, 65.09189467479366, -34.87065786149661),
        (0, 1.5, -4, 2.5),
    ),
    source="Ch. Tsitouras, Comput. Math. Appl. 62 (2011) 770-775",
)
# fmt: on
