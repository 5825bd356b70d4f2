"""Tables of numbers in files beside this module, read when they are first used.

    NumberRows    rows of numbers; `s.rows(table, row)` in a body reads one

Files are those of `numpy.save`: the bytes of little-endian numbers, float64 or float32, with axes
for the column, the byte and the row. Archives compress bytes of equal position better than numbers.

Random numbers as functions of a signed tail probability v, with the same bits everywhere.

    normal_of_tail        the normal quantile, from a table of polynomials
    exponential_of_tail   -log(|v|) for negative v, else -log(1 - |v|)
    gumbel_of_tail        -log of an exponential number
    laplace_of_tail, logistic_of_tail, cauchy_of_tail    symmetric; v has their sign

|v| is at most 1/2, and at least 2**-64 (float32: 2**-32), as `random_tail` draws it; elsewhere the
values have no meaning.  A body consists of additions, multiplications, divisions and copies of a
sign, which IEEE 754 defines to the last bit, of operations on bits, and of reads from a table.
Nothing is contracted, no function of a library is called.  So NumPy, native code, C and kernels of
a graphics card, for which the same body is evaluated, agree in every bit.

The normal quantile of a row of the table is a polynomial of d, the distance to the right end of
the row.  d is exact, and in two neighboring numbers v differs by more than the rounding errors of
the polynomial, so in a row the function is monotone; docs/generate/random_coefficients.py makes it
monotone at the ends of rows.

log(1 + f) = f - f**2 / 2 + t (f**2 / 2 + z P(z)), t = f / (2 + f), z = t**2: what is added to the
exact f is small (K. C. Ng, FDLIBM, 1993).

Measured errors in ulp, for both dtypes: normal 1.9, exponential and laplace 0.8, logistic 1.4,
cauchy 2.7.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import pi, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.op import register
from wengert._engine.core.op_facts import GUARD, Remedy, call, facts
from wengert._engine.kinds.elementwise import ARRAYS, Elementwise

if TYPE_CHECKING:
    from wengert._engine.core.types import Scalar, ScalarLanguage


class NumberRows:
    """Rows of numbers.

    Parameters
    ----------
    name : str
        Of the file, without its suffix, and of the constant in native code.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @functools.cached_property
    def columns(self) -> Any:
        """The numbers, with one row of the array for each column of the table; read-only."""
        parts = np.load(Path(__file__).with_name(f"{self.name}.npy"), allow_pickle=False)
        numbers = np.ascontiguousarray(parts.transpose(0, 2, 1)).view(f"<f{parts.shape[1]}")
        columns = np.ascontiguousarray(numbers[..., 0], numbers.dtype.newbyteorder("="))
        columns.flags.writeable = False
        return columns

    @property
    def count(self) -> int:
        """The number of rows, a power of two."""
        return int(self.columns.shape[1])


__all__ = [
    "normal_of_tail",
    "exponential_of_tail",
    "gumbel_of_tail",
    "laplace_of_tail",
    "logistic_of_tail",
    "cauchy_of_tail",
]


class Format(NamedTuple):
    """The format of a dtype, and the coefficients for it."""

    mantissa: int
    bias: int
    root: int  # the bits of sqrt(1/2)
    quantile: NumberRows  # 16 rows a binade, the highest power of d first
    log_two: tuple[float, float]  # the sum of two numbers; the first has zeros as last bits
    log: tuple[float, ...]  # (log((1 + t) / (1 - t)) - 2 t) / (t z)
    pi: tuple[float, float]  # the sum of two numbers
    sine: tuple[float, ...]  # (pi - sin(pi z) / z) / w, w = z**2
    cosine: tuple[float, ...]  # (1 - cos(pi z)) / w


# Computed by docs/generate/random_coefficients.py.
_FORMATS = {
    8: Format(
        52, 1023, 0x3FE6A09E667F3BCD, NumberRows("normal_quantile_float64"),
        (0.6931471803691238, 1.9082149292705877e-10),
        (0.6666666666666736, 0.3999999999940547, 0.2857142874406641, 0.22222198425506426,
         0.1818357109928554, 0.15313894464661568, 0.14797377930938557),
        (pi, 1.2246467991473532e-16),
        (5.16771278004997, -2.5501640398774, 0.5992645293254975, -0.08214588680178973,
         0.00737043479556306, -0.0004663371977008666, 2.195660661020972e-05),
        (4.934802200544679, -4.058712126416684, 1.3352627688462622, -0.23533062994891885,
         0.025806880283870078, -0.001929406122904067, 0.00010330542587948625),
    ),
    4: Format(
        23, 127, 0x3F3504F3, NumberRows("normal_quantile_float32"),
        (0.693145751953125, 1.428606765330187e-06),
        (0.66666776, 0.39977586, 0.29870686),
        (3.1415927410125732, -8.742277657347586e-08),
        (5.167709, -2.549798, 0.5893454),
        (4.934802, -4.058698, 1.3348162, -0.2295497),
    ),
}  # fmt: skip


_BLOCK = 1 << 13  # elements of NumPy's arrays between the steps, which stay in a cache


class TailFunction(Elementwise):
    """A function of a signed tail probability, computed in float64 or float32."""

    def _run_body(self, v: Any) -> Any:
        v = np.asarray(v)[()]  # refused by an array of a device, whose numbers the host computes
        if v.dtype.char not in "fd":
            v = v.astype(np.result_type(v.dtype, np.float32))
        if v.size <= _BLOCK:
            return self.body(ARRAYS, v)
        out, given = np.empty(v.size, v.dtype), v.ravel()
        for start in range(0, v.size, _BLOCK):
            out[start : start + _BLOCK] = self.body(ARRAYS, given[start : start + _BLOCK])
        return out.reshape(v.shape)

    def formula(self) -> str:
        """The name: the body refers to bits."""
        return f"{self.name}({', '.join(self.arguments)})"


def _of_tail(oracle: str) -> Callable[[Callable[..., Any]], TailFunction]:
    """Register a body (a decorator)."""

    def enter(body: Callable[..., Any]) -> TailFunction:
        domain = [(2.0**-64, 0.5)]
        op = TailFunction(body, domain=domain, singular=True, half=False, oracle=oracle)
        registered: TailFunction = facts(remedy=Remedy(singular=GUARD), cost=call(60.0))(
            register(op)
        )
        return registered

    return enter


# ---- the functions -----------------------------------------------------------------------------


@_of_tail("sqrt(2) * erfinv(1 - 2 * v)")
def normal_of_tail(s: ScalarLanguage, v: Any) -> Any:
    """The normal quantile with tail probability |v| and the sign of v."""
    form = _FORMATS[v.dtype.itemsize]
    a = s.abs(v)
    bits = s.bits(a)
    below = form.mantissa - 4  # bits of the position in a row
    right = s.number((bits | ((1 << below) - 1)) + 1)
    d = right - a
    total, *rest = s.rows(form.quantile, (bits >> below) & (form.quantile.count - 1))
    for c in rest:
        total = c + d * total
    return s.copysign(total, v)


@_of_tail("-log(1 - v)")
def exponential_of_tail(s: ScalarLanguage, v: Scalar) -> Any:
    """The exponential quantile: the upper tail probability is |v| for negative v, else 1 - |v|."""
    return _exponential(s, v)


def _exponential(s: ScalarLanguage, v: Any) -> Any:
    a = s.abs(v)
    one = s.copysign(0.5, v) + 0.5  # 0 for negative v
    x = s.abs(one - a)
    lost = s.abs(one - x) - a  # x + lost is 1 - a or a
    return -_log(s, x, lost / x)


@_of_tail("-log(-log(1 - v))")
def gumbel_of_tail(s: ScalarLanguage, v: Scalar) -> Any:
    """The negative logarithm of an exponential number."""
    return -_log(s, _exponential(s, v))


@_of_tail("-log(2 * v)")
def laplace_of_tail(s: ScalarLanguage, v: Scalar) -> Any:
    """The Laplace quantile with tail probability |v| and the sign of v."""
    a = s.abs(v)
    return s.copysign(_log(s, a + a), v)


@_of_tail("log((1 - v) / v)")
def logistic_of_tail(s: ScalarLanguage, v: Scalar) -> Any:
    """The logistic quantile with tail probability |v| and the sign of v."""
    a = s.abs(v)
    odds = (1.0 - (a + a)) / a  # without 1
    x = 1.0 + odds
    back = x - 1.0
    lost = (1.0 - (x - back)) + (odds - back)
    return s.copysign(_log(s, x, lost / x), v)


@_of_tail("cot(pi * v)")
def cauchy_of_tail(s: ScalarLanguage, v: Any) -> Any:
    """The Cauchy quantile with tail probability |v| and the sign of v."""
    form = _FORMATS[v.dtype.itemsize]
    a = s.abs(v)
    z = s.min(a, 0.5 - a)
    w = z * z
    high, low = form.pi
    sine = z * (high + (low - w * _horner(w, form.sine)))
    cosine = 1.0 - w * _horner(w, form.cosine)
    is_tail = s.less(a, 0.25)
    ratio = s.where(is_tail, cosine, sine) / s.where(is_tail, sine, cosine)
    return s.copysign(ratio, v)


def _log(s: ScalarLanguage, x: Any, rest: Any = None) -> Any:
    """log(x) + rest, for a normal positive x."""
    form = _FORMATS[x.dtype.itemsize]
    low = (1 << form.mantissa) - 1
    moved = s.bits(x) + ((form.bias << form.mantissa) - form.root)
    f = s.number((moved & low) + form.root) - 1.0
    # The exponent becomes the last bits of a float.
    carrier = s.number((moved >> form.mantissa) | ((form.mantissa + form.bias) << form.mantissa))
    k = carrier - (2.0**form.mantissa + form.bias)
    half = (0.5 * f) * f
    t = f / (2.0 + f)
    z = t * t
    first, second = form.log_two
    small = k * second if rest is None else k * second + rest
    return k * first + (f - (half - (t * (half + z * _horner(z, form.log)) + small)))


def _horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    """The sum of c[j] * x**j."""
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = c + x * total
    return total


# ---- derivatives with respect to v -------------------------------------------------------------

normal_of_tail.partials(lambda t, out, v: t * (-sqrt(2.0 * pi) * np.exp(0.5 * out * out)))
exponential_of_tail.partials(lambda t, out, v: t / np.where(v < 0.0, -v, 1.0 - v))
gumbel_of_tail.partials(lambda t, out, v: -t * np.exp(out) / np.where(v < 0.0, -v, 1.0 - v))
laplace_of_tail.partials(lambda t, out, v: -t / np.abs(v))
logistic_of_tail.partials(lambda t, out, v: -t / (np.abs(v) * (1.0 - np.abs(v))))
cauchy_of_tail.partials(lambda t, out, v: t * (-pi * (1.0 + out * out)))
