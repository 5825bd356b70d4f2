"""Eigenvalues of batches of small symmetric matrices, one matrix per SIMD lane.

    eigh         eigenvalues in ascending order, and eigenvectors

The implicit QL algorithm, step by step as in LAPACK's steqr (which syevd uses below 26 rows), so
order and signs of the vectors are LAPACK's, unless they depend on rounding.  Lanes are at different
rows of their matrices; selects replace branches.  QR, for blocks whose larger elements are at the
end, is QL on the reversed block.  The kernel fails for matrices that are not finite, and LAPACK is
called.

J. Dongarra, J. Du Croz, S. Hammarling, J. Wilkinson and others: LAPACK Users' Guide, 1999;
B. N. Parlett, "The Symmetric Eigenvalue Problem", 1998, chapter 8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar

from ...ir.ir_builder import Section
from ...ir.llvm_types import F64, I64
from ..batched_matrices import Block, SimdMatrix, blocks, each, integer_lane, until
from ..kernel_call import UNROLLED, KernelCall
from ..loop_helpers import in_section
from .small_matrices import lifted, reduced, scaled

ROWS = 8  # maximum
_EPS = float(np.finfo(np.float64).eps) / 2  # LAPACK's definition: the unit roundoff
_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
_MAX_STEPS = 30  # for each eigenvalue
_LOW, _LOWEST = 2.0**-400, 2.0**-900  # blocks with smaller elements are scaled up
_SCALE_UP = (2.0**500, 2.0**1000)


def is_small(call: KernelCall) -> bool:
    """Whether the matrices of a call are real, and have few rows, of static number."""
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
    """Eigenvalues and eigenvectors of the matrices of one `Block`.

    Each lane processes a diagonal block of its tridiagonal matrix, from row `first` to row `last`;
    the next block begins at row `next`.  A lane is idle if first > last.
    """

    def __init__(self, block: Block, n: int, vectors: bool) -> None:
        self.block, self.n, self.language = block, n, block.call.language
        self.d, self.e, self.scale = (SimdMatrix(block, n) for _ in range(3))
        self.z = SimdMatrix(block, n, n) if vectors else None
        self.first, self.last, self.next, self.reversed = (
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
            self._reverse(s, None)
        self._iterate(s)
        self._reverse(s, self._is_reversed(s))
        for t, i in each(s, 0, n, unrolled=self.unrolled):
            value = self.d.get(t, i) * self.scale.get(t, i)
            self.d.put(t, value * in_section(t, back), i)
        self._sort(s)
        for t, i in each(s, 0, n, unrolled=self.unrolled):
            block.set_element(1, t, self.d.get(t, i), (i,))
            if self.z is None:
                continue
            row = i if lower else t.value(f"sub nsw i64 {n - 1}, {i}")
            for u, j in each(t, 0, n, unrolled=self.unrolled):
                block.set_element(2, u, self.z.get(u, i, j), (row, j))

    # ---- flags -----------------------------------------------------------------------------------

    def _is_reversed(self, s: Section) -> Any:
        return self.language.compare("equal", self.reversed.get(s), self.language.constant(1, I64))

    def _needs_block(self, s: Section) -> Any:
        """Whether a lane is idle and has further blocks."""
        language = self.language
        idle = language.compare("greater", self.first.get(s), self.last.get(s))
        has_further = language.compare("less", self.next.get(s), language.constant(self.n, I64))
        return language.binary("logical_and", idle, has_further)

    def _is_false(self, s: Section, flag: Any) -> Any:
        return s.value(f"xor i1 {self.block.any_of(s, flag)}, true")

    def _is_index(self, s: Section, i: Any, index: Any) -> Any:
        return self.language.compare("equal", integer_lane(self.block, s, i), index)

    def _element_at(self, s: Section, panel: SimdMatrix, index: Scalar) -> Any:
        """The element at an index that differs between lanes."""
        element = panel.get(s, 0)
        for i in range(1, self.n):
            element = self.language.select(self._is_index(s, i, index), panel.get(s, i), element)
        return element

    def _all(self, *flags: Any) -> Any:
        result = flags[0]
        for flag in flags[1:]:
            result = self.language.binary("logical_and", result, flag)
        return result

    # ---- blocks ----------------------------------------------------------------------------------

    def _reverse(self, s: Section, flag: Scalar | None) -> None:
        """Reverse the order of rows, in the lanes of a flag or in all."""
        n = self.n
        pairs = [(p, (i,), (n - 1 - i,)) for p in (self.d, self.scale) for i in range(n // 2)]
        pairs += [(self.e, (i,), (n - 2 - i,)) for i in range((n - 1) // 2)]
        self._exchange(s, flag, pairs)
        if self.z is None:
            return
        for t, k in each(s, 0, n, unrolled=self.unrolled):
            inner = None if flag is None else in_section(t, flag)
            self._exchange(t, inner, [(self.z, (k, i), (k, n - 1 - i)) for i in range(n // 2)])

    def _exchange(self, s: Section, flag: Any, pairs: list[Any]) -> None:
        for panel, first, second in pairs:
            x, y = panel.get(s, *first), panel.get(s, *second)
            if flag is not None:
                x, y = self.language.select(flag, y, x), self.language.select(flag, x, y)
                panel.put(s, x, *first)
                panel.put(s, y, *second)
            else:
                panel.put(s, y, *first)
                panel.put(s, x, *second)

    def _start_blocks(self, s: Section) -> None:
        """Start the next block in each lane that needs one."""
        with until(s, self.n + 1) as (t, leave):
            flag = self._needs_block(t)
            leave(t, self._is_false(t, flag))
            self._start_block(t, flag)

    def _start_block(self, s: Section, flag: Scalar) -> None:
        language, n = self.language, self.n
        self._reverse(s, self._all(flag, self._is_reversed(s)))
        first, last = self.next.get(s), language.constant(n - 1, I64)
        roots = [
            language.unary("sqrt", language.unary("absolute", self.d.get(s, i))) for i in range(n)
        ]
        for i in reversed(range(n - 1)):
            limit = roots[i] * roots[i + 1] * _EPS
            size = language.unary("absolute", self.e.get(s, i))
            is_small = language.compare("less_equal", size, limit)
            is_in_block = language.compare("greater_equal", integer_lane(self.block, s, i), first)
            is_small = self._all(flag, is_small, is_in_block)
            self.e.put_where(s, is_small, 0.0, i)
            last = language.select(is_small, integer_lane(self.block, s, i), last)
        self.next.put_where(s, flag, last + 1)
        self._scale_up(s, flag, first, last)
        has_one_row = language.compare("equal", first, last)
        sizes = [
            language.unary("absolute", self._element_at(s, self.d, index))
            for index in (first, last)
        ]
        must_reverse = self._all(
            flag,
            language.unary("logical_not", has_one_row),
            language.compare("less", sizes[1], sizes[0]),
        )
        self.reversed.put_where(s, flag, 0)
        self.reversed.put_where(s, must_reverse, 1)
        self._reverse(s, must_reverse)
        begin = language.select(must_reverse, (n - 1) - last, first)
        end = language.select(must_reverse, (n - 1) - first, last)
        self.first.put_where(s, flag, language.select(has_one_row, end + 1, begin))
        self.last.put_where(s, flag, end)

    def _scale_up(self, s: Section, flag: Any, first: Any, last: Any) -> None:
        """Scale up blocks whose squares would underflow; `scale` undoes it."""
        language, zero = self.language, self.language.constant(0.0, F64)
        largest: Any = zero
        in_block = []
        for i in range(self.n):
            number = integer_lane(self.block, s, i)
            in_block.append(
                self._all(
                    flag,
                    language.compare("less_equal", first, number),
                    language.compare("less_equal", number, last),
                )
            )
            for panel in (self.d, self.e):
                size = language.unary("absolute", panel.get(s, i))
                larger = self._all(in_block[i], language.compare("greater", size, largest))
                largest = language.select(larger, size, largest)
        is_low = language.compare("less", largest, language.constant(_LOW, F64))
        is_low = self._all(flag, is_low, language.compare("greater", largest, zero))
        with s.when(self.block.any_of(s, is_low)) as t:
            is_low = in_section(t, is_low)
            is_lowest = language.compare(
                "less", in_section(t, largest), language.constant(_LOWEST, F64)
            )
            factor, inverse = (
                language.select(
                    is_lowest, *(language.constant(x**sign, F64) for x in _SCALE_UP[::-1])
                )
                for sign in (1, -1)
            )
            for i in range(self.n):
                selected = self._all(in_block[i], is_low)
                for panel, factor_ in ((self.d, factor), (self.e, factor), (self.scale, inverse)):
                    panel.put_where(t, selected, panel.get(t, i) * factor_, i)

    # ---- iteration -------------------------------------------------------------------------------

    def _iterate(self, s: Section) -> None:
        language, n = self.language, self.n
        self.e.put(s, 0.0, n - 1)
        for panel, value in ((self.first, 1), (self.last, 0), (self.next, 0), (self.reversed, 0)):
            panel.put(s, value)
        with until(s, _MAX_STEPS * n) as (t, leave):
            with t.when(self.block.any_of(t, self._needs_block(t))) as u:
                self._start_blocks(u)
            leave(t, self._is_false(t, self._is_active(t)))
            is_converged = self._all(self._is_active(t), self._is_split(t, self._split(t), 0))
            self.first.put_where(t, is_converged, self.first.get(t) + 1)
            split = self._split(t)
            is_pair = self._all(self._is_active(t), self._is_split(t, split, 1))
            has_more = language.compare("greater", split, self.first.get(t) + 1)
            has_more = self._all(self._is_active(t), has_more)
            with t.when(self.block.any_of(t, has_more)) as u:
                self._ql_step(u, in_section(u, has_more), in_section(u, split))
            with t.when(self.block.any_of(t, is_pair)) as u:
                self._solve_pair(u, in_section(u, is_pair))
        self.block.fail_if(self._is_active(s), s)
        self.block.fail_if(self._needs_block(s), s)

    def _is_active(self, s: Section) -> Any:
        return self.language.compare("less_equal", self.first.get(s), self.last.get(s))

    def _is_split(self, s: Section, split: Any, distance: int) -> Any:
        return self.language.compare("equal", split, self.first.get(s) + distance)

    def _split(self, s: Section) -> Any:
        """The row at which the active block splits: its off-diagonal element is negligible."""
        language = self.language
        first, last = self.first.get(s), self.last.get(s)
        is_active, split = self._is_active(s), last
        for i in reversed(range(self.n - 1)):
            x = self.e.get(s, i)
            sizes = [language.unary("absolute", self.d.get(s, k)) for k in (i, i + 1)]
            limit = language.fma(
                sizes[0] * _EPS**2, sizes[1], language.constant(_SMALLEST_NORMAL, F64)
            )
            number = integer_lane(self.block, s, i)
            is_small = self._all(
                is_active,
                language.compare("less_equal", x * x, limit),
                language.compare("greater_equal", number, first),
                language.compare("less", number, last),
            )
            split = language.select(is_small, number, split)
        for i in range(self.n - 1):
            is_split = self._all(
                is_active,
                self._is_index(s, i, split),
                language.compare("less", integer_lane(self.block, s, i), last),
            )
            self.e.put_where(s, is_split, 0.0, i)
        return split

    def _rotation(self, f: Scalar, g: Scalar) -> tuple[Any, Any, Any]:
        """c, s and r with c f + s g = r and c g = s f, chosen as by LAPACK's lartg."""
        s = self.language
        f_size, g_size = (s.unary("absolute", x) for x in (f, g))
        top = s.select(s.compare("greater", f_size, g_size), f_size, g_size)
        up, down = lifted(s, top)
        f, g = f * up, g * up
        length = s.unary("sqrt", s.fma(f, f, g * g))
        inverse = 1.0 / length
        zero, one = s.constant(0.0, F64), s.constant(1.0, F64)
        both_zero = s.compare("equal", top, zero)
        sign = f + 0.0
        cosine = s.select(both_zero, one, s.unary("absolute", f) * inverse)
        sine = s.select(both_zero, zero, g * s.binary("copysign", inverse, sign))
        return cosine, sine, s.binary("copysign", length, sign) * down

    def _ql_step(self, s: Section, flag: Scalar, split: Any) -> None:
        """One step of QL from row `split` up to row `first`."""
        language, n = self.language, self.n
        c_now, s_now, p_now, g_now = (SimdMatrix(self.block, 1) for _ in range(4))
        first = self.first.get(s)
        p, e = self._element_at(s, self.d, first), self._element_at(s, self.e, first)
        g = (self._element_at(s, self.d, first + 1) - p) / (2.0 * e)
        root = language.unary("sqrt", language.fma(g, g, language.constant(1.0, F64)))
        shift = e / (g + language.binary("copysign", root, g))
        g_now.put(s, self._element_at(s, self.d, split) - p + shift)
        for panel, start in ((c_now, 1.0), (s_now, 1.0), (p_now, 0.0)):
            panel.put(s, start)
        for t, i in each(s, 0, n - 1, unrolled=self.unrolled, down=True):
            number, begin = integer_lane(self.block, t, i), self.first.get(t)
            active = self._all(
                in_section(t, flag),
                language.compare("greater_equal", number, begin),
                language.compare("less", number, in_section(t, split)),
            )
            g, sine, p = g_now.get(t), s_now.get(t), p_now.get(t)
            after = str(int(i) + 1) if self.unrolled else t.value(f"add nsw i64 {i}, 1")
            x, d, d_after = self.e.get(t, i), self.d.get(t, i), self.d.get(t, after)
            b = c_now.get(t) * x
            c, sine, r = self._rotation(g, sine * x)
            inner = language.compare("less", number + 1, split)
            self.e.put_where(t, self._all(active, inner), r, after)
            g = d_after - p
            r = language.fma(d - g, sine, 2.0 * (c * b))
            p = sine * r
            self.d.put_where(t, active, g + p, after)
            g = language.fma(c, r, -b)
            end = self._all(active, language.compare("equal", number, begin))
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

    def _solve_pair(self, s: Section, flag: Scalar) -> None:
        """Both eigenvalues of a block of two rows, as LAPACK's laev2."""
        language, n = self.language, self.n
        first, is_reversed = self.first.get(s), self._is_reversed(s)
        first_element, second_element = (
            self._element_at(s, self.d, first),
            self._element_at(s, self.d, first + 1),
        )
        b = self._element_at(s, self.e, first)
        a, c = (
            language.select(is_reversed, second_element, first_element),
            language.select(is_reversed, first_element, second_element),
        )
        large, small, cosine, sine = self._eigen_pair(a, b, c)
        first_value, second_value = (
            language.select(is_reversed, small, large),
            language.select(is_reversed, large, small),
        )
        sine = language.select(is_reversed, sine, -sine)
        for t, i in each(s, 0, n - 1, unrolled=self.unrolled):
            is_first = self._all(in_section(t, flag), self._is_index(t, i, first))
            after = str(int(i) + 1) if self.unrolled else t.value(f"add nsw i64 {i}, 1")
            self.d.put_where(t, is_first, first_value, i)
            self.d.put_where(t, is_first, second_value, after)
            self.e.put_where(t, is_first, 0.0, i)
            self._rotate(t, is_first, cosine, sine, i, after)
        self.first.put_where(s, flag, first + 2)

    def _eigen_pair(self, a: Any, b: Any, c: Any) -> tuple[Any, Any, Any, Any]:
        """Eigenvalues of [[a, b], [b, c]], the larger magnitude first, and its eigenvector."""
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
        """Sort by selection, as steqr does, so that equal eigenvalues are in the same order."""
        language, n = self.language, self.n
        for i in range(n - 1):
            index, least = language.constant(i, I64), self.d.get(s, i)
            index = language.widened(index, self.block.width)
            for j in range(i + 1, n):
                x = self.d.get(s, j)
                less = language.compare("less", x, least)
                index = language.select(less, language.constant(j, I64), index)
                least = language.select(less, x, least)
            for t, j in each(s, i + 1, n, unrolled=self.unrolled):
                is_smallest = self._is_index(t, j, index)
                self._exchange(t, is_smallest, [(self.d, (i,), (j,))])
                if self.z is not None:
                    self._exchange(t, is_smallest, [(self.z, (k, i), (k, j)) for k in range(n)])
