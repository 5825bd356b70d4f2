"""Eigenvalues of batches of small symmetric matrices, one matrix per SIMD lane.

    eigh         eigenvalues in ascending order, and eigenvectors

The implicit QL algorithm, step by step as in LAPACK's steqr (which syevd uses below 26 rows): so
the order and signs of the vectors are LAPACK's, unless rounding decides.  Lanes are at different
positions of their matrices; selects replace branches.  QR, for blocks that are larger at
their end, is QL on the reversed block.  The kernel fails for matrices that are not finite, and
LAPACK is called.

J. Dongarra, J. Du Croz, S. Hammarling, J. Wilkinson and others: LAPACK Users' Guide, 1999;
B. N. Parlett, "The Symmetric Eigenvalue Problem", 1998, chapter 8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar

from ...ir.ir_builder import Section
from ...ir.llvm_types import F64, I64
from ..batched_matrices import Block, blocks
from ..kernel_call import KernelCall
from ..loop_helpers import moved
from ..simd_matrix import UNROLLED, SimdMatrix, each, until, whole
from .tridiagonalization import lifted, reduced, scaled

ROWS = 8  # at most
_EPS = float(np.finfo(np.float64).eps) / 2  # as LAPACK counts
_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
_SWEEPS = 30  # for each eigenvalue, at most
_LOW, _LOWEST = 2.0**-400, 2.0**-900  # blocks below these are multiplied
_RAISE = (2.0**500, 2.0**1000)


def is_small(call: KernelCall) -> bool:
    """Whether a step's matrices are real, and have few rows whose number is known."""
    (a,) = call.operands
    n = a.shape[-1]
    return a.dtype.kind != "c" and type(n) is int and 2 <= n <= ROWS


def eigh(call: KernelCall) -> None:
    """Eigenvalues and eigenvectors, from one triangle of each matrix."""
    (a,), (w, v) = call.operands, call.results
    n: Any = v.shape[-1]
    lower = bool(call.params.get("lower", True))
    vectors = 1 not in call.options.get("unused", ())

    def write(block: Block) -> None:
        _Spectrum(block, n, vectors).write(lower)

    blocks(call, [(a, 2), (w, 1), (v, 2)], F64, write)


class _Spectrum:
    """The work of one block.

    Each lane works at a block of its tridiagonal matrix, from row `first` to row `last`; the next
    block begins at row `next`.  A lane is idle where first > last.
    """

    def __init__(self, block: Block, n: int, vectors: bool) -> None:
        self.block, self.n, self.language = block, n, block.call.language
        self.d, self.e, self.scale = (SimdMatrix(block, n) for _ in range(3))
        self.z = SimdMatrix(block, n, n) if vectors else None
        self.first, self.last, self.next, self.turned = (
            SimdMatrix(block, 1, dtype=I64) for _ in range(4)
        )
        self.unrolled = n <= UNROLLED

    def write(self, lower: bool) -> None:
        """Read the matrices, and write eigenvalues and eigenvectors."""
        block, n, language = self.block, self.n, self.language
        s = block.section
        a = SimdMatrix(block, n, n)
        # the upper triangle is the lower one of the reversed matrix
        for i in range(n):
            for j in range(i + 1):
                index = (i, j) if lower else (n - 1 - i, n - 1 - j)
                x = language.widened(language.cast(block.read(0, *index), F64), block.width)
                a.put(s, x, i, j)
                a.put(s, x, j, i)
        back = scaled(block, s, a)
        reduced(block, s, a, self.d, self.e, self.z)
        for i in range(n):
            self.scale.put(s, 1.0, i)
        if not lower:
            self._turn(s, None)
        self._iterate(s)
        self._turn(s, self._is_turned(s))
        for t, i in each(s, 0, n, unrolled=self.unrolled):
            value = self.d.get(t, i) * self.scale.get(t, i)
            self.d.put(t, value * moved(t, back), i)
        self._sort(s)
        for t, i in each(s, 0, n, unrolled=self.unrolled):
            block.set_element(1, t, self.d.get(t, i), (i,))
            if self.z is None:
                continue
            row = i if lower else t.value(f"sub nsw i64 {n - 1}, {i}")
            for u, j in each(t, 0, n, unrolled=self.unrolled):
                block.set_element(2, u, self.z.get(u, i, j), (row, j))

    # ---- flags -----------------------------------------------------------------------------------

    def _is_turned(self, s: Section) -> Any:
        return self.language.compare("equal", self.turned.get(s), self.language.constant(1, I64))

    def _waits(self, s: Section) -> Any:
        """Whether a lane is idle and has another block."""
        language = self.language
        idle = language.compare("greater", self.first.get(s), self.last.get(s))
        more = language.compare("less", self.next.get(s), language.constant(self.n, I64))
        return language.binary("logical_and", idle, more)

    def _none(self, s: Section, flag: Any) -> Any:
        return s.value(f"xor i1 {self.block.any_of(s, flag)}, true")

    def _at(self, s: Section, i: Any, place: Any) -> Any:
        return self.language.compare("equal", whole(self.block, s, i), place)

    def _picked(self, s: Section, panel: SimdMatrix, place: Scalar) -> Any:
        """An element of each lane."""
        found = panel.get(s, 0)
        for i in range(1, self.n):
            found = self.language.select(self._at(s, i, place), panel.get(s, i), found)
        return found

    def _both(self, *flags: Any) -> Any:
        found = flags[0]
        for flag in flags[1:]:
            found = self.language.binary("logical_and", found, flag)
        return found

    # ---- blocks ----------------------------------------------------------------------------------

    def _turn(self, s: Section, flag: Scalar | None) -> None:
        """Reverse the order of rows, in the lanes of a flag or in all."""
        n = self.n
        pairs = [(p, (i,), (n - 1 - i,)) for p in (self.d, self.scale) for i in range(n // 2)]
        pairs += [(self.e, (i,), (n - 2 - i,)) for i in range((n - 1) // 2)]
        self._exchange(s, flag, pairs)
        if self.z is None:
            return
        for t, k in each(s, 0, n, unrolled=self.unrolled):
            inner = None if flag is None else moved(t, flag)
            self._exchange(t, inner, [(self.z, (k, i), (k, n - 1 - i)) for i in range(n // 2)])

    def _exchange(self, s: Section, flag: Any, pairs: list[Any]) -> None:
        for panel, one, two in pairs:
            x, y = panel.get(s, *one), panel.get(s, *two)
            if flag is not None:
                x, y = self.language.select(flag, y, x), self.language.select(flag, x, y)
                panel.put(s, x, *one)
                panel.put(s, y, *two)
            else:
                panel.put(s, y, *one)
                panel.put(s, x, *two)

    def _begin(self, s: Section) -> None:
        """Give the next block to each lane that waits."""
        with until(s, self.n + 1) as (t, leave):
            flag = self._waits(t)
            leave(t, self._none(t, flag))
            self._begin_one(t, flag)

    def _begin_one(self, s: Section, flag: Scalar) -> None:
        language, n = self.language, self.n
        self._turn(s, self._both(flag, self._is_turned(s)))
        first, last = self.next.get(s), language.constant(n - 1, I64)
        roots = [
            language.unary("sqrt", language.unary("absolute", self.d.get(s, i))) for i in range(n)
        ]
        for i in reversed(range(n - 1)):
            limit = roots[i] * roots[i + 1] * _EPS
            size = language.unary("absolute", self.e.get(s, i))
            small = language.compare("less_equal", size, limit)
            here = language.compare("greater_equal", whole(self.block, s, i), first)
            small = self._both(flag, small, here)
            self.e.put_where(s, small, 0.0, i)
            last = language.select(small, whole(self.block, s, i), last)
        self.next.put_where(s, flag, last + 1)
        self._raise(s, flag, first, last)
        alone = language.compare("equal", first, last)
        sizes = [
            language.unary("absolute", self._picked(s, self.d, place)) for place in (first, last)
        ]
        turn = self._both(
            flag, language.unary("logical_not", alone), language.compare("less", sizes[1], sizes[0])
        )
        self.turned.put_where(s, flag, 0)
        self.turned.put_where(s, turn, 1)
        self._turn(s, turn)
        begin = language.select(turn, (n - 1) - last, first)
        end = language.select(turn, (n - 1) - first, last)
        self.first.put_where(s, flag, language.select(alone, end + 1, begin))
        self.last.put_where(s, flag, end)

    def _raise(self, s: Section, flag: Any, first: Any, last: Any) -> None:
        """Multiply blocks whose squares would have no digits; `scale` takes it back."""
        language, zero = self.language, self.language.constant(0.0, F64)
        most: Any = zero
        inside = []
        for i in range(self.n):
            number = whole(self.block, s, i)
            inside.append(
                self._both(
                    flag,
                    language.compare("less_equal", first, number),
                    language.compare("less_equal", number, last),
                )
            )
            for panel in (self.d, self.e):
                size = language.unary("absolute", panel.get(s, i))
                larger = self._both(inside[i], language.compare("greater", size, most))
                most = language.select(larger, size, most)
        low = language.compare("less", most, language.constant(_LOW, F64))
        low = self._both(flag, low, language.compare("greater", most, zero))
        with s.when(self.block.any_of(s, low)) as t:
            low = moved(t, low)
            lowest = language.compare("less", moved(t, most), language.constant(_LOWEST, F64))
            factor, inverse = (
                language.select(lowest, *(language.constant(x**sign, F64) for x in _RAISE[::-1]))
                for sign in (1, -1)
            )
            for i in range(self.n):
                which = self._both(inside[i], low)
                for panel, by in ((self.d, factor), (self.e, factor), (self.scale, inverse)):
                    panel.put_where(t, which, panel.get(t, i) * by, i)

    # ---- iteration -------------------------------------------------------------------------------

    def _iterate(self, s: Section) -> None:
        language, n = self.language, self.n
        self.e.put(s, 0.0, n - 1)
        for panel, value in ((self.first, 1), (self.last, 0), (self.next, 0), (self.turned, 0)):
            panel.put(s, value)
        with until(s, _SWEEPS * n) as (t, leave):
            with t.when(self.block.any_of(t, self._waits(t))) as u:
                self._begin(u)
            leave(t, self._none(t, self._works(t)))
            found = self._both(self._works(t), self._at_split(t, self._split(t), 0))
            self.first.put_where(t, found, self.first.get(t) + 1)
            split = self._split(t)
            two = self._both(self._works(t), self._at_split(t, split, 1))
            more = language.compare("greater", split, self.first.get(t) + 1)
            more = self._both(self._works(t), more)
            with t.when(self.block.any_of(t, more)) as u:
                self._sweep(u, moved(u, more), moved(u, split))
            with t.when(self.block.any_of(t, two)) as u:
                self._pair(u, moved(u, two))
        self.block.fail_if(self._works(s), s)
        self.block.fail_if(self._waits(s), s)

    def _works(self, s: Section) -> Any:
        return self.language.compare("less_equal", self.first.get(s), self.last.get(s))

    def _at_split(self, s: Section, split: Any, distance: int) -> Any:
        return self.language.compare("equal", split, self.first.get(s) + distance)

    def _split(self, s: Section) -> Any:
        """The row at which the active block ends: the off-diagonal element there is negligible."""
        language = self.language
        first, last = self.first.get(s), self.last.get(s)
        works, found = self._works(s), last
        for i in reversed(range(self.n - 1)):
            x = self.e.get(s, i)
            sizes = [language.unary("absolute", self.d.get(s, k)) for k in (i, i + 1)]
            limit = language.fma(
                sizes[0] * _EPS**2, sizes[1], language.constant(_SMALLEST_NORMAL, F64)
            )
            number = whole(self.block, s, i)
            small = self._both(
                works,
                language.compare("less_equal", x * x, limit),
                language.compare("greater_equal", number, first),
                language.compare("less", number, last),
            )
            found = language.select(small, number, found)
        for i in range(self.n - 1):
            here = self._both(
                works,
                self._at(s, i, found),
                language.compare("less", whole(self.block, s, i), last),
            )
            self.e.put_where(s, here, 0.0, i)
        return found

    def _rotation(self, f: Scalar, g: Scalar) -> tuple[Any, Any, Any]:
        """c, s and r with c f + s g = r, c g = s f, as lartg chooses them."""
        s = self.language
        f_size, g_size = (s.unary("absolute", x) for x in (f, g))
        top = s.select(s.compare("greater", f_size, g_size), f_size, g_size)
        up, down = lifted(s, top)
        f, g = f * up, g * up
        length = s.unary("sqrt", s.fma(f, f, g * g))
        inverse = 1.0 / length
        zero, one = s.constant(0.0, F64), s.constant(1.0, F64)
        nothing = s.compare("equal", top, zero)
        sign = f + 0.0
        cosine = s.select(nothing, one, s.unary("absolute", f) * inverse)
        sine = s.select(nothing, zero, g * s.binary("copysign", inverse, sign))
        return cosine, sine, s.binary("copysign", length, sign) * down

    def _sweep(self, s: Section, flag: Scalar, split: Any) -> None:
        """One step of QL from row `split` up to row `first`."""
        language, n = self.language, self.n
        c_now, s_now, p_now, g_now = (SimdMatrix(self.block, 1) for _ in range(4))
        first = self.first.get(s)
        p, e = self._picked(s, self.d, first), self._picked(s, self.e, first)
        g = (self._picked(s, self.d, first + 1) - p) / (2.0 * e)
        root = language.unary("sqrt", language.fma(g, g, language.constant(1.0, F64)))
        shift = e / (g + language.binary("copysign", root, g))
        g_now.put(s, self._picked(s, self.d, split) - p + shift)
        for panel, start in ((c_now, 1.0), (s_now, 1.0), (p_now, 0.0)):
            panel.put(s, start)
        for t, i in each(s, 0, n - 1, unrolled=self.unrolled, down=True):
            number, begin = whole(self.block, t, i), self.first.get(t)
            active = self._both(
                moved(t, flag),
                language.compare("greater_equal", number, begin),
                language.compare("less", number, moved(t, split)),
            )
            g, sine, p = g_now.get(t), s_now.get(t), p_now.get(t)
            after = str(int(i) + 1) if self.unrolled else t.value(f"add nsw i64 {i}, 1")
            x, d, d_after = self.e.get(t, i), self.d.get(t, i), self.d.get(t, after)
            b = c_now.get(t) * x
            c, sine, r = self._rotation(g, sine * x)
            inner = language.compare("less", number + 1, split)
            self.e.put_where(t, self._both(active, inner), r, after)
            g = d_after - p
            r = language.fma(d - g, sine, 2.0 * (c * b))
            p = sine * r
            self.d.put_where(t, active, g + p, after)
            g = language.fma(c, r, -b)
            end = self._both(active, language.compare("equal", number, begin))
            self.d.put_where(t, end, d - p, i)
            self.e.put_where(t, end, g, i)
            for panel, value in ((c_now, c), (s_now, sine), (p_now, p), (g_now, g)):
                panel.put_where(t, active, value)
            self._rotate(t, active, c, sine, i, after)

    def _rotate(self, s: Section, active: Any, c: Any, sine: Any, i: Any, after: Any) -> None:
        """Rotate two columns of the vectors."""
        if self.z is None:
            return
        language = self.language
        c = language.select(active, c, language.constant(1.0, F64))
        sine = language.select(active, sine, language.constant(0.0, F64))
        for k in range(self.n):
            x, y = self.z.get(s, k, i), self.z.get(s, k, after)
            self.z.put(s, language.fma(c, y, sine * x), k, after)
            self.z.put(s, language.fma(c, x, -(sine * y)), k, i)

    def _pair(self, s: Section, flag: Scalar) -> None:
        """The last two rows of a block at once: laev2."""
        language, n = self.language, self.n
        first, turned = self.first.get(s), self._is_turned(s)
        one, two = self._picked(s, self.d, first), self._picked(s, self.d, first + 1)
        b = self._picked(s, self.e, first)
        a, c = language.select(turned, two, one), language.select(turned, one, two)
        large, small, cosine, sine = self._two(a, b, c)
        upper, under = language.select(turned, small, large), language.select(turned, large, small)
        sine = language.select(turned, sine, -sine)
        for t, i in each(s, 0, n - 1, unrolled=self.unrolled):
            here = self._both(moved(t, flag), self._at(t, i, first))
            after = str(int(i) + 1) if self.unrolled else t.value(f"add nsw i64 {i}, 1")
            self.d.put_where(t, here, upper, i)
            self.d.put_where(t, here, under, after)
            self.e.put_where(t, here, 0.0, i)
            self._rotate(t, here, cosine, sine, i, after)
        self.first.put_where(s, flag, first + 2)

    def _two(self, a: Any, b: Any, c: Any) -> tuple[Any, Any, Any, Any]:
        """Eigenvalues of [[a, b], [b, c]], the larger in size first, and its eigenvector."""
        s = self.language
        zero, one = s.constant(0.0, F64), s.constant(1.0, F64)
        sm, df, tb = a + c, a - c, b + b
        adf, ab = s.unary("absolute", df), s.unary("absolute", tb)
        is_a = s.compare("greater", s.unary("absolute", a), s.unary("absolute", c))
        most, least = s.select(is_a, a, c), s.select(is_a, c, a)
        wide = s.compare("greater", adf, ab)
        top, low = s.select(wide, adf, ab), s.select(wide, ab, adf)
        ratio = low / s.select(s.compare("equal", top, zero), one, top)
        rt = top * s.unary("sqrt", s.fma(ratio, ratio, one))
        below = s.compare("less", sm, zero)
        first = 0.5 * s.select(below, sm - rt, sm + rt)
        other = (most / first) * least - (b / first) * b
        other = s.select(s.compare("equal", sm, zero), -0.5 * rt, other)
        right = s.compare("greater_equal", df, zero)
        cs = s.select(right, df + rt, df - rt)
        steep = s.compare("greater", s.unary("absolute", cs), ab)
        above, under = s.select(steep, -tb, -cs), s.select(steep, cs, tb)
        none = s.compare("equal", under, zero)
        tangent = above / s.select(none, one, under)
        root = 1.0 / s.unary("sqrt", s.fma(tangent, tangent, one))
        cosine = s.select(steep, tangent * root, root)
        sine = s.select(steep, root, tangent * root)
        cosine, sine = s.select(none, one, cosine), s.select(none, zero, sine)
        same = s.compare("equal", s.cast(below, I64) + s.cast(right, I64), s.constant(1, I64))
        return first, other, s.select(same, -sine, cosine), s.select(same, cosine, sine)

    # ---- order -----------------------------------------------------------------------------------

    def _sort(self, s: Section) -> None:
        """By selection, as in steqr: equal eigenvalues keep the same order."""
        language, n = self.language, self.n
        for i in range(n - 1):
            place, least = language.constant(i, I64), self.d.get(s, i)
            place = language.widened(place, self.block.width)
            for j in range(i + 1, n):
                x = self.d.get(s, j)
                less = language.compare("less", x, least)
                place = language.select(less, language.constant(j, I64), place)
                least = language.select(less, x, least)
            for t, j in each(s, i + 1, n, unrolled=self.unrolled):
                here = self._at(t, j, place)
                self._exchange(t, here, [(self.d, (i,), (j,))])
                if self.z is not None:
                    self._exchange(t, here, [(self.z, (k, i), (k, j)) for k in range(n)])
