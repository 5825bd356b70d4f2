"""One function: values and derivatives in every way, against differences of theirs.

The reference is never ours.  It is NumPy's or SciPy's own function: a step along the imaginary axis
where it takes complex numbers (W. Squire, G. Trapp, Using complex variables to estimate
derivatives, 1998), else Ridders' extrapolated differences (wengert.testing.grad_checks) with
an estimate of their own error; for the second derivative along a direction differences always.  Of
functions in formulas.py it is a formula in many digits (exact.py).  Against it stand

    eager       forward, reverse; forward over forward, reverse over forward
    traced      forward, interpreted
    native      forward and reverse; forward over forward, reverse over forward
    single      forward and reverse of float32

at the catalogue's arguments (tools.coverage), at random ones around them, at zeros, equal
numbers, large, small and negative ones, and with arrays in Fortran's order, with negative strides
and read-only.  Where the reference refuses, is not finite, or has a kink, nothing is compared.

    compare     of one function: a `Comparison`
    Case        a function at some arguments, and what the reference says of it
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

import wengert as wg
from tools.coverage.probe import Program
from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, value_of
from wengert.errors import WengertError
from wengert.testing.grad_checks import directional

from .exact import Exact

# Allowed, as shares of the largest number, beside ten times the reference's own error.
VALUES, FIRST, SECOND = 1e-11, 2e-7, 2e-4
BY_COMPLEX = 2e-10  # of first derivatives, where the reference is a step along the imaginary axis
SINGLE = 2e-3  # of float32, whose rounding functions and their slopes multiply
VALUES_OF_ODD = 1e-8  # theirs may lose digits there, where ours does not
ODD = ("zeros", "equal", "large", "small", "negative")  # refusing such arguments is an answer
FULL = ("as given", "moved by 0.1", "large")  # natively and to second order as well
SHRINK, STEPS = 1.6, 10
SINGLES = {"f": "f", "d": "f", "F": "F", "D": "F"}
TINY = 1e-300


@dataclass
class Comparison:
    """What the comparison of one function found: counts, and the largest errors."""

    cases: int = 0
    skipped: int = 0
    refused: int = 0
    values: float = 0.0
    first: float = 0.0
    second: float = 0.0
    single: float = 0.0
    exact: int = 0
    by_complex: int = 0
    faults: list = field(default_factory=list)

    def note(self, what, way, off, allowed):
        off = float(off) if np.isfinite(off) else np.inf
        setattr(self, what, max(getattr(self, what), off))
        if not off <= allowed:
            self.faults.append(f"{way}: off by {off:.2g}, allowed {allowed:.2g}")


class Unclear(Exception):
    """The reference does not say what the derivative is."""


def compare(ours, theirs, call, way, rng, traced=True, order=2, single=False, formula=None):
    """Compare one function.

    `traced`: whether it can be traced; `order`: of derivatives that are claimed of it; `single`:
    whether float32 is; `formula`: the same function in many digits.
    """
    mine, reference = Program(ours, call, way), Program(theirs, call, way)
    digits = None if formula is None else Program(formula, call, way)
    found = Comparison()
    for name, inputs in arrangements(rng, mine.inputs):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                case = Case(name, mine, reference, inputs, rng, digits)
            except Unclear:
                found.skipped += 1
                continue
            found.cases += 1
            found.exact += digits is not None
            found.by_complex += case.by_complex
            if case.slope is None:
                case.unbounded(found)
                continue
            case.first(found, traced and name in FULL)
            if order == 2 and name in FULL:
                case.second(found, traced and name == "as given")
            if single and name == "as given":
                case.single(found)
    return found


def arrangements(rng, inputs):
    """The arguments of each case: as they are, around them, odd ones, and in other layouts."""
    yield "as given", inputs
    for size in (0.02, 0.1):
        yield f"moved by {size}", [_moved(rng, x, size) for x in inputs]
    yield "zeros", [np.zeros_like(x) for x in inputs]
    yield "equal", [np.full_like(x, 0.5) for x in inputs]
    yield "large", [x * 1e3 for x in inputs]
    yield "small", [x * 1e-6 for x in inputs]
    yield "negative", [-x for x in inputs]
    yield "Fortran's order", [np.asfortranarray(x) for x in inputs]
    yield "negative strides", [_reversed(x) for x in inputs]
    yield "read-only", [_locked(x) for x in inputs]


def _normal(rng, x):
    made = rng.normal(size=x.shape)
    return made + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else made


def _moved(rng, x, size):
    return (x + size * _normal(rng, x) * np.maximum(abs(x), 0.1)).astype(x.dtype)


def _reversed(x):
    backwards = (slice(None, None, -1),) * x.ndim
    return x[backwards].copy()[backwards]


def _locked(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def _joined(parts):
    parts = [np.asarray(value_of(p) if isinstance(p, Handle) else p).ravel() for p in parts]
    return np.concatenate(parts) if parts else np.zeros(0)


def _floating(program):
    def of(*inputs):
        parts = pytree.flatten(program(*inputs))[0]
        return [p for p in parts if np.dtype(getattr(p, "dtype", type(p))).kind in "fc"]

    return of


def _largest(x):
    return float(np.max(abs(x), initial=0.0))


class Case:
    """A function at some arguments along a direction, and the derivatives that differences give.

    Raises
    ------
    Unclear
        The reference refuses, is not finite, or has a kink there.
    """

    def __init__(self, name, mine, reference, inputs, rng, digits=None):
        self.name, self.inputs, self.rng = name, inputs, rng
        self.by_complex, self.noise, self.bend = False, 0.0, None
        self.run, self.reference = _floating(mine), _floating(reference)
        self.length = min([_largest(x) for x in inputs] + [1.0]) or 1.0
        self.directions = [(0.5 * _normal(rng, x)).astype(x.dtype) for x in inputs]
        try:
            self.want = self._moved(self.directions, 0.0)
            if not self.want.size or np.any(np.isnan(self.want)):
                raise Unclear
            if digits is None:
                self._by_theirs()
            else:
                self._by_formula(digits)
        except (Unclear, AssertionError):
            raise
        except Exception as refused:
            raise Unclear from refused
        self.weights = rng.normal(size=self.want.shape)

    def _by_theirs(self):
        if not _largest(self.want) <= 1e90:
            raise Unclear  # near overflow, or the number that SciPy gives for a failure
        self.slope, self.doubt = self._slope()
        finer = self._complex_step()
        if finer is not None:
            self.slope, self.doubt, self.by_complex = finer, 0.0, True

    def _by_formula(self, digits):
        made = Exact(lambda xs: np.ravel(digits(*xs)), self.inputs, self.directions, self.length)
        if np.any(np.isnan(made.value)):
            raise Unclear
        if self.name == "as given" and not np.allclose(made.value, self.want, 1e-8, 0.0):
            raise AssertionError(f"the formula gives {made.value}, SciPy {self.want}")
        self.want, self.slope, self.doubt, self.bend = made.value, made.slope, 0.0, made.bend
        if not np.all(np.isfinite(self.want)):
            self.slope = None
        elif not made.smooth or not _largest(self.slope) <= 1e90:
            raise Unclear
        else:
            self.scale = _largest(self.slope) + 1e-3 * _largest(self.want)

    def _complex_step(self):
        """The slope from a step along the imaginary axis; None where theirs is not analytic."""
        if any(x.dtype.kind == "c" for x in self.inputs) or self.want.dtype.kind == "c":
            return None
        h = 1e-20 * self.length
        pairs = zip(self.inputs, self.directions, strict=True)
        try:
            made = _joined(self.reference(*[x + 1j * h * v for x, v in pairs]))
        except Exception:  # it takes real numbers alone
            return None
        if made.dtype.kind != "c" or made.shape != self.want.shape:
            return None
        found = made.imag / h
        near = _largest(made.real - self.want) <= 1e-12 * _largest(self.want)
        close = _largest(found - self.slope) <= 1e-5 * self.scale + 10.0 * self.doubt
        return found if near and close else None

    def _moved(self, directions, h):
        pairs = zip(self.inputs, directions, strict=True)
        made = _joined(self.reference(*[x + x.dtype.type(h) * v for x, v in pairs]))
        if h and made.shape != self.want.shape:
            raise Unclear  # how many numbers there are depends on the arguments
        return made

    def _along(self, h):
        return self._moved(self.directions, h)

    def _slope(self):
        slope, error = directional(self._along, self.length, needed=1e-9)
        if not _largest(error) <= 1e-8 * _largest(slope):
            other, less = directional(self._along, 1.0, needed=1e-9)  # a longer way, if the same
            if _largest(other - slope) <= 1e-3 * _largest(slope) and _largest(less) < _largest(
                error
            ):
                slope, error = other, less
        self.scale = _largest(slope) + 1e-3 * _largest(self.want)
        # Theirs rounds numbers of size one on the way, and steps are as short as the arguments.
        rounding = 1e-8 * _largest(self.want) + 1e-11
        self.noise = rounding / self.length if self.name == "small" else 0.0
        if not _largest(error) <= 1e-5 * self.scale + 1e-12 or not self._is_smooth(slope):
            raise Unclear
        return slope, _largest(error)

    def _is_smooth(self, slope):
        """Whether both sides have one slope, and slopes add up, as they do not at ties."""
        h = 1e-6 * self.length
        right = (self._along(h) - self.want) / h
        left = (self.want - self._along(-h)) / h
        ends = max(_largest(right - left), _largest(right - slope))
        if ends > 1e-2 * self.scale + 1e-9:
            return False
        others = [(0.5 * _normal(self.rng, x)).astype(x.dtype) for x in self.inputs]
        h = 1e-5 * self.length

        def central(directions):
            return (self._moved(directions, h) - self._moved(directions, -h)) / (2.0 * h)

        both = central([v + w for v, w in zip(self.directions, others, strict=True)])
        one, other = central(self.directions), central(others)
        size = _largest(abs(one) + abs(other)) + 1e-3 * _largest(self.want)
        return _largest(both - one - other) <= 1e-3 * size

    # ---- ours ----------------------------------------------------------------------------------

    def _tangent(self, *xs):
        return wg.jvp(lambda *ys: self.run(*ys), tuple(xs), tuple(self.directions))

    def _pulled(self, *xs):
        out, pull = wg.vjp(lambda *ys: self.run(*ys), *xs)
        return [*out, *pull(self._split(out))]

    def _split(self, parts):
        """The weights in the shapes of the results."""
        made, start = [], 0
        for part in parts:
            size = int(np.prod(np.shape(part)))
            weights = self.weights[start : start + size].reshape(np.shape(part))
            made.append(weights.astype(np.dtype(getattr(part, "dtype", float)))[()])
            start += size
        return made

    def _paired(self, bars):
        pairs = zip(bars, self.directions, strict=True)
        return sum(np.sum(np.real(np.conj(_joined([b])) * v.ravel())) for b, v in pairs)

    def _ways(self, traced):
        yield "forward", self._tangent
        yield "reverse", self._pulled
        if traced:
            yield "traced forward", lambda *xs: wg.trace(self._tangent)(*xs)(*xs)
            yield "native reverse", wg.jit(self._pulled)
            yield "native forward", wg.jit(self._tangent)

    def _refused(self, found, way, raised):
        if self.name in ODD and isinstance(raised, WengertError):
            found.refused += 1
        else:
            said = f"{type(raised).__name__}: {str(raised)[:200]}"
            found.faults.append(f"{self.name}, {way}: {said}")

    def first(self, found, traced):
        """Values and first derivatives."""
        count = len(self.inputs)
        expected = np.sum(np.real(np.conj(self.weights) * self.slope))
        known = self.scale + TINY
        first = 10.0 * FIRST if self.name == "small" else FIRST  # steps suit the largest only
        first = BY_COMPLEX if self.by_complex else first
        allowed = first + (10.0 * self.doubt + self.noise) / known
        size = _largest(self.want) + 1e-3 * self.length
        for way, function in self._ways(traced):
            try:
                parts = pytree.flatten(function(*self.inputs))[0]
            except Exception as raised:
                self._refused(found, way, raised)
                continue
            if way.endswith("reverse"):
                value, bars = parts[:-count], parts[-count:]
                off = abs(self._paired(bars) - expected) / (np.sum(abs(self.weights)) * known)
            else:
                value, tangent = parts[: len(parts) // 2], parts[len(parts) // 2 :]
                off = _largest(_joined(tangent) - self.slope) / known
            found.note("first", f"{self.name}, {way}", off, allowed)
            off = _largest(_joined(value) - self.want) / size
            allowed_of_values = VALUES_OF_ODD if self.name in ODD else VALUES
            found.note("values", f"{self.name}, {way}, value", off, allowed_of_values)

    def unbounded(self, found):
        """Of a value that is not finite: that ours is it as well."""
        value = _joined(self.run(*self.inputs))
        if not np.array_equal(value, self.want):
            found.faults.append(f"{self.name}: {value} where {self.want} is right")

    def single(self, found):
        """Values and first derivatives of float32, whose gradients have that dtype."""
        inputs = [x.astype(SINGLES[x.dtype.char]) for x in self.inputs]
        directions = [x.astype(SINGLES[x.dtype.char]) for x in self.directions]
        size = _largest(self.want) + 1e-3 * self.length
        expected = np.sum(np.real(np.conj(self.weights) * self.slope))
        try:
            value, tangent = wg.jvp(lambda *ys: self.run(*ys), tuple(inputs), tuple(directions))
            if _joined(value).shape != self.want.shape:
                return  # how many numbers there are depends on the rounding
            out, pull = wg.vjp(lambda *ys: self.run(*ys), *inputs)
            bars = pull(self._split(out))
        except Exception as raised:
            self._refused(found, "single", raised)
            return
        kinds = {np.dtype(p.dtype).char for p in bars}
        if kinds - set("fF"):
            found.faults.append(f"{self.name}, single: gradients of dtypes {sorted(kinds)}")
        offs = {
            "value": _largest(_joined(value) - self.want) / size,
            "forward": _largest(_joined(tangent) - self.slope) / self.scale,
            "reverse": abs(self._paired(bars) - expected)
            / (np.sum(abs(self.weights)) * (self.scale + TINY)),
        }
        for what, off in offs.items():
            found.note("single", f"{self.name}, single, {what}", off, SINGLE)

    def second(self, found, natively):
        """Second derivatives along the direction."""
        try:
            bend, error = self.bend, 0.0
            if bend is None:
                bend, error = second_directional(self._along, self.length)
        except Exception:
            return
        known = _largest(bend) + 1e-2 * _largest(self.want) + TINY
        if not _largest(error) <= 1e-3 * known:
            return
        allowed = SECOND + 10.0 * _largest(error) / known

        def tangent(*xs):
            return self._tangent(*xs)[1]

        def weighted(*xs):
            parts = tangent(*xs)
            pairs = zip(parts, self._split(parts), strict=True)
            return sum(np.sum(np.real(part * w)) for part, w in pairs)

        def forward(*xs):
            return wg.jvp(tangent, xs, tuple(self.directions))[1]

        reverse = wg.grad(weighted, argnums=tuple(range(len(self.inputs))))
        ways = {"": (forward, reverse)}
        if natively:
            ways["native "] = wg.jit(forward), wg.jit(reverse)
        for way, (forward, reverse) in ways.items():
            try:
                twice, bars = forward(*self.inputs), reverse(*self.inputs)
            except Exception as raised:
                self._refused(found, f"{way}order two", raised)
                continue
            off = _largest(_joined(pytree.flatten(twice)[0]) - bend) / known
            found.note("second", f"{self.name}, {way}forward over forward", off, allowed)
            off = abs(self._paired(bars) - np.sum(self.weights * np.real(bend)))
            off = off / (np.sum(abs(self.weights)) * known)
            found.note("second", f"{self.name}, {way}reverse over forward", off, allowed)


def second_directional(f, scale):
    """The second derivative of f at 0, and an estimate of its error: Ridders' scheme."""
    h, table, best, worst = scale / 4.0, [], None, None
    middle = f(0.0)
    for i in range(STEPS):
        row = [(f(h) - 2.0 * middle + f(-h)) / (h * h)]
        factor = SHRINK * SHRINK
        for k in range(i):
            row.append((row[k] * factor - table[-1][k]) / (factor - 1.0))
            factor *= SHRINK * SHRINK
            error = np.maximum(abs(row[-1] - row[-2]), abs(row[-1] - table[-1][k]))
            if best is None:
                best, worst = row[-1], error
                continue
            better = (error < worst) | ~np.isfinite(worst)
            best, worst = np.where(better, row[-1], best), np.where(better, error, worst)
        table.append(row)
        h /= SHRINK
    return best, worst
