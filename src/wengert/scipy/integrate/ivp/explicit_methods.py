"""Explicit Runge-Kutta methods: their coefficients and their steps.

    ExplicitTable     stages, weights, error estimate and interpolant of a method
    RK23              Bogacki and Shampine 3(2)
    RK45, TSIT5       Dormand and Prince 5(4), Tsitouras 5(4)
    DOP853            Prince and Dormand 8(5,3), with SciPy's interpolant of order 7
    VERN7             Verner's most efficient pair 7(6), with his interpolant
    ExplicitMethod    the method of a table; Dop853 with its norm of two error estimates

RK23, RK45 and DOP853 have the coefficients, the error estimates and the interpolants of SciPy's
classes of these names.  The interpolants of DOP853 and VERN7 evaluate f at extra stages (three and
five); that of VERN7 has order 6 inside a step: it satisfies 36 of the 48 conditions of order 7 and
misses the others by at most 1.4e-4 (in rational arithmetic with 40 digits).

The coefficients are those of the publications named in `source`. `tests/integrate/test_tables.py`
checks the order conditions of the method, of its embedded method and of its interpolant with the
stored numbers, in rational arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .method import Evaluations, IvpProblem, Method, MethodStep, Tolerance

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


# fmt: off
DOP853 = ExplicitTable(
    name="DOP853",
    order=8,
    error_order=7,
    c=(0, 0.05260015195876773, 0.0789002279381516, 0.1183503419072274, 0.2816496580927726,
     0.3333333333333333, 0.25, 0.3076923076923077, 0.6512820512820513, 0.6, 0.8571428571428571, 1),
    a=(
        (0.05260015195876773,),
        (0.0197250569845379, 0.0591751709536137),
        (0.02958758547680685, 0, 0.08876275643042054),
        (0.2413651341592667, 0, -0.8845494793282861, 0.924834003261792),
        (0.037037037037037035, 0, 0, 0.17082860872947386, 0.12546768756682242),
        (0.037109375, 0, 0, 0.17025221101954405, 0.06021653898045596, -0.017578125),
        (0.03709200011850479, 0, 0, 0.17038392571223998, 0.10726203044637328,
         -0.015319437748624402, 0.008273789163814023),
        (0.6241109587160757, 0, 0, -3.3608926294469414, -0.868219346841726, 27.59209969944671,
         20.154067550477894, -43.48988418106996),
        (0.47766253643826434, 0, 0, -2.4881146199716677, -0.590290826836843, 21.230051448181193,
         15.279233632882423, -33.28821096898486, -0.020331201708508627),
        (-0.9371424300859873, 0, 0, 5.186372428844064, 1.0914373489967295, -8.149787010746927,
         -18.52006565999696, 22.739487099350505, 2.4936055526796523, -3.0467644718982196),
        (2.273310147516538, 0, 0, -10.53449546673725, -2.0008720582248625, -17.9589318631188,
         27.94888452941996, -2.8589982771350235, -8.87285693353063, 12.360567175794303,
         0.6433927460157636),
    ),
    b=(0.054293734116568765, 0, 0, 0, 0, 4.450312892752409, 1.8915178993145003, -5.801203960010585,
     0.3111643669578199, -0.1521609496625161, 0.20136540080403034, 0.04471061572777259),
    error=(
        0.01312004499419488, 0, 0, 0,
        0, -1.2251564463762044, -0.4957589496572502, 1.6643771824549864,
        -0.35032884874997366, 0.3341791187130175, 0.08192320648511571, -0.022355307863886294,
        0,
    ),
    error_3=(
        -0.18980075407240762, 0, 0, 0,
        0, 4.450312892752409, 1.8915178993145003, -5.801203960010585,
        -0.4226823213237919, -0.1521609496625161, 0.20136540080403034, 0.02265179219836082,
        0,
    ),
    extra_c=(0.1, 0.2, 0.7777777777777778),
    extra_a=(
        (0.056167502283047954, 0, 0, 0, 0, 0, 0.25350021021662483, -0.2462390374708025,
         -0.12419142326381637, 0.15329179827876568, 0.00820105229563469, 0.007567897660545699,
         -0.008298),
        (0.03183464816350214, 0, 0, 0, 0, 0.028300909672366776, 0.053541988307438566,
         -0.05492374857139099, 0, 0, -0.00010834732869724932, 0.0003825710908356584,
         -0.00034046500868740456, 0.1413124436746325),
        (-0.42889630158379194, 0, 0, 0, 0, -4.697621415361164, 7.683421196062599,
         4.06898981839711, 0.3567271874552811, 0, 0, 0, -0.0013990241651590145,
         2.9475147891527724, -9.15095847217987),
    ),
    dop853_interpolant=(
        (-8.428938276109013, 0, 0, 0, 0, 0.5667149535193777, -3.0689499459498917,
         2.38466765651207, 2.117034582445028, -0.871391583777973, 2.2404374302607883,
         0.6315787787694688, -0.08899033645133331, 18.148505520854727, -9.194632392478356,
         -4.436036387594894),
        (10.427508642579134, 0, 0, 0, 0, 242.28349177525817, 165.20045171727028,
         -374.5467547226902, -22.113666853125306, 7.733432668472264, -30.674084731089398,
         -9.332130526430229, 15.697238121770845, -31.139403219565178, -9.35292435884448,
         35.81684148639408),
        (19.985053242002433, 0, 0, 0, 0, -387.0373087493518, -189.17813819516758,
         527.8081592054236, -11.57390253995963, 6.8812326946963, -1.0006050966910838,
         0.7777137798053443, -2.778205752353508, -60.19669523126412, 84.32040550667716,
         11.99229113618279),
        (-25.69393346270375, 0, 0, 0, 0, -154.18974869023643, -231.5293791760455,
         357.6391179106141, 93.40532418362432, -37.45832313645163, 104.0996495089623,
         29.8402934266605, -43.53345659001114, 96.32455395918828, -39.17726167561544,
         -149.72683625798564),
    ),
    source=(
        "P. J. Prince and J. R. Dormand, J. Comput. Appl. Math. 7 (1981) 67-75; E. Hairer, "
        "S. P. Norsett and G. Wanner, Solving Ordinary Differential Equations I (1993), II.10"
    ),
)
# fmt: on

# fmt: off
VERN7 = ExplicitTable(
    name="vern7",
    order=7,
    error_order=6,
    c=(0, 1 / 200, 49 / 450, 49 / 300, 911 / 2000, 0.6095094489978381, 221 / 250, 37 / 40, 1, 1),
    a=(
        (1 / 200,),
        (-4361 / 4050, 2401 / 2025),
        (49 / 1200, 0, 49 / 400),
        (0.6389139236255726, 0, -2.455672638223657, 2.272258714598084),
        (-2.6615773750187572, 0, 10.804513886456137, -8.3539146573962, 0.820487594956657),
        (6.067741434696771, 0, -24.711273635911084, 20.427517930788895, -1.9061579788166472,
         1.006172249242068),
        (12.054670076253203, 0, -49.75478495046899, 41.142888638604674, -4.461760149974004,
         2.042334822239175, -0.09834843665406108),
        (10.138146522881808, 0, -42.6411360317175, 35.76384003992257, -4.3480228403929075,
         2.0098622683770357, 0.3487490460338272, -0.27143900510483127),
        (-45.030072034298676, 0, 187.3272437654589, -154.02882369350186, 18.56465306347536,
         -7.141809679295079, 1.3088085781613785, 0, 0),
    ),
    b=(0.04715561848627222, 0, 0, 0.25750564298434153, 0.2621665397741262, 0.15216092656738558,
     0.49399691700324844, -0.29430311714032503, 0.0813174723249511, 0),
    error=(
        0.0025470118799310456, 0, 0, -0.00965839487279575,
        0.0420647097563969, -0.0666822437469301, 0.26500974646212816, -0.29430311714032503,
        0.0813174723249511, -0.020295184663356284, 0,
    ),
    interpolant=(
        (1, -8.413387198332767, 33.675508884490895, -70.80159089484886, 80.64695108301298,
         -47.19413969837522, 11.133813442539243),
        (0, 0, 0, 0, 0, 0, 0),
        (0, 0, 0, 0, 0, 0, 0),
        (0, 8.754921980674396, -88.4596828699771, 346.9017638429916, -629.2580030059837,
         529.6773755604193, -167.35886986514018),
        (0, 8.913387586637922, -90.06081846893218, 353.1807459217058, -640.6476819744374,
         539.2646279047156, -170.38809442991547),
        (0, 5.1733120298478, -52.271115900055385, 204.9853867374073, -371.8306118563603,
         312.9880934374529, -98.89290352172495),
        (0, 16.79537744079696, -169.70040000059728, 665.4937727009246, -1207.1638892336007,
         1016.1291515818546, -321.06001557237494),
        (0, -10.005997536098665, 101.1005433052275, -396.47391512378437, 719.1787707014183,
         -605.3681033918824, 191.27439892797935),
        (0, 2.764708833638599, -27.934602637390462, 109.54779186137893, -198.7128113064482,
         167.26633571640318, -52.85010499525706),
        (0, 0, 0, 0, 0, 0, 0),
        (0, -2.1696320280163506, 22.016696037569876, -86.90152427798948, 159.22388973861476,
         -135.9618306534588, 43.792401183280006),
        (0, -4.890070188793804, 22.75407737425176, -30.78034218537731, -2.797194317207249,
         31.369456637508403, -15.655927320381801),
        (0, 10.862170929551967, -50.542971417827104, 68.37148040407511, 6.213326521632409,
         -69.68006323194157, 34.776056794509195),
        (0, -11.37286691922923, 130.79058078246717, -488.65113677785604, 832.2148793276441,
         -664.7743368554426, 201.79288044241662),
        (0, -5.919778732715007, 63.27679965889219, -265.432682088738, 520.1009254140611,
         -467.412109533902, 155.3868452824017),
        (0, -10.492146197961823, 105.35538525188011, -409.43975011988937, 732.831448907654,
         -606.3044574733512, 188.0495196316683),
    ),
    extra_c=(29 / 100, 0.125, 0.25, 53 / 100, 79 / 100),
    extra_a=(
        (0.0523222769159969, 0, 0, 0.22495861826705715, 0.017443709248776376,
         -0.007669379876829393, 0.03435896044073285, -0.0410209723009395, 0.025651133005205617, 0,
         -0.0160443457),
        (0.053053341257859085, 0, 0, 0.12195301011401886, 0.017746840737602496,
         -0.0005928372667681495, 0.008381833970853752, -0.01293369259698612, 0.009412056815253861,
         0, -0.005353253107275676, -0.06666729992455811),
        (0.03887903257436304, 0, 0, -0.0024403203308301317, -0.0013928917214672623,
         -0.00047446291558680135, 0.00039207932413159514, -0.00040554733285128004,
         0.00019897093147716726, 0, -0.00010278198793179169, 0.03385661513870267,
         0.1814893063199928),
        (0.05723681204690013, 0, 0, 0.22265948066761182, 0.12344864200186899, 0.04006332526666491,
         -0.05269894848581452, 0.04765971214244523, -0.02138895885042213, 0, 0.015193891064036402,
         0.12060546716289655, -0.022779423016187374, 0),
        (0.051372038802756814, 0, 0, 0.5414214473439406, 0.350399806692184, 0.14193112269692182,
         0.10527377478429423, -0.031081847805874016, -0.007401883149519145, 0,
         -0.006377932504865363, -0.17325495908361865, -0.18228156777622026, 0, 0),
    ),
    source="J. H. Verner, Numer. Algorithms 53 (2010) 383-396: the most efficient pair 7(6)",
)
# fmt: on


def combination(weights: Sequence[float], ks: Sequence[Any]) -> Any:
    """The sum of vectors with weights; zero weights cost nothing."""
    total: Any = None
    for weight, k in zip(weights, ks, strict=False):
        if weight:
            term = k if weight == 1.0 else weight * k
            total = term if total is None else total + term
    return 0.0 * ks[0] if total is None else total


class ExplicitMethod(Method):
    """An explicit Runge-Kutta method whose last stage is the first of the next step.

    table : its coefficients.
    """

    def __init__(self, table: ExplicitTable) -> None:
        self.table = table
        self.name, self.order, self.error_order = table.name, table.order, table.error_order
        self.dense_counts = Evaluations(len(table.extra_c))
        self.dense_arrays = len(table.b) + 1 + len(table.extra_c)

    def start(self, problem: IvpProblem, t: Any, y: Any) -> Any:
        """The derivative."""
        return problem.f(t, y)

    def derivative(self, carry: Any) -> Any:
        """The derivative."""
        return carry

    def step(
        self, problem: IvpProblem, t: Any, h: Any, y: Any, carry: Any, tolerance: Tolerance
    ) -> MethodStep:
        """The stages; the derivative at the end is the last of them."""
        table = self.table
        ks = [carry]
        for c, row in zip(table.c[1:], table.a, strict=True):
            ks.append(problem.f(t + c * h, y + h * combination(row, ks)))
        new = y + h * combination(table.b, ks)
        ks.append(problem.f(t + h, new))
        error = h * combination(table.error, ks)
        return MethodStep(new, error, ks[-1], carry, ks, counts=Evaluations(len(ks) - 1))

    def prepared(self, problem: IvpProblem, t: Any, h: Any, y: Any, y_new: Any, dense: Any) -> Any:
        """The stages, and the stages that only the interpolant has."""
        ks = list(dense)
        for c, row in zip(self.table.extra_c, self.table.extra_a, strict=True):
            ks.append(problem.f(t + c * h, y + h * combination(row, ks)))
        return ks

    def interpolate(self, theta: Any, h: Any, y: Any, y_new: Any, prepared: Any) -> Any:
        """A polynomial in theta for each stage."""
        total: Any = None
        for k, row in zip(prepared, self.table.interpolant, strict=True):
            if any(row):
                term = k * _polynomial(theta, row)
                total = term if total is None else total + term
        return y + h * total


def _polynomial(theta: Any, row: Sequence[float]) -> Any:
    """The polynomial without constant term with coefficients of theta, theta**2, ..."""
    value: Any = 0.0
    for coefficient in reversed(row):
        value = (value + coefficient) * theta
    return value


class Dop853(ExplicitMethod):
    """DOP853; see Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, II.10."""

    def step(
        self, problem: IvpProblem, t: Any, h: Any, y: Any, carry: Any, tolerance: Tolerance
    ) -> MethodStep:
        """The stages, with two estimates of the error."""
        found = super().step(problem, t, h, y, carry, tolerance)
        third = combination(self.table.error_3, found.dense)
        return found._replace(error=(combination(self.table.error, found.dense), third))

    def error_norm(self, step: MethodStep, h: Any, scale: Any) -> Any:
        """The norm of the estimate of order 5, corrected by that of order 3."""
        squares = []
        for error in step.error:
            relative = np.abs(error / scale)
            squares.append(np.sum(relative * relative))
        fifth, third = squares
        below = fifth + 0.01 * third
        is_zero = below == 0
        size = np.sqrt(np.where(is_zero, 1.0, below) * float(scale.size))
        return np.where(is_zero, 0.0, np.abs(h) * fifth / size)

    def interpolate(self, theta: Any, h: Any, y: Any, y_new: Any, prepared: Any) -> Any:
        """A polynomial of degree 7 from the state and the derivative at both ends and 4 more."""
        ks = prepared
        difference = y_new - y
        count = len(self.table.b)
        terms = [
            difference,
            h * ks[0] - difference,
            2 * difference - h * (ks[count] + ks[0]),
            *[h * combination(row, ks) for row in self.table.dop853_interpolant],
        ]
        value: Any = 0.0
        for i, term in enumerate(reversed(terms)):
            value = (value + term) * (theta if i % 2 == 0 else 1 - theta)
        return y + value
