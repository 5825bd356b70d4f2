"""Everything in half precision, compiled for a given processor and compared with NumPy.

    python half_precision_script.py host       for this one
    python half_precision_script.py x86-64     for the baseline, which cannot convert halves

Prints the names of the functions outside that all the objects called, one in a line.
"""

import sys

import numpy as np

import wengert as wg
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.object_symbols import symbols_of

WHOLE = "?bBhHiIqQ"
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def doubles() -> np.ndarray:
    """Every half, what lies in the middle of two, and what is next to either; and any bits."""
    rng = np.random.default_rng(0)
    halves = HALVES[np.isfinite(HALVES)].astype(float)
    middle = (halves + np.nextafter(halves.astype(np.float16), np.float16(9e9)).astype(float)) / 2
    middle = np.concatenate([middle[np.isfinite(middle)], [65519.0, 65520.0, 65521.0, 2.0**-25]])
    found = [halves, middle, -middle]
    for distance in (2.0**-52, 2.0**-40, 2.0**-25, 2.0**-24):
        found += [middle * (1 + distance), middle * (1 - distance)]
    found += [np.nextafter(middle, s) for s in (-np.inf, np.inf)]
    found.append(rng.integers(-(2**63), 2**63 - 1, 20000).view(np.float64))
    found.append(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-45, 1e300, 2.0**-149]))
    return np.concatenate(found)


def same(ours: object, theirs: object, what: str) -> None:
    """The same dtype and bits; a NaN is a NaN."""
    a, b = np.asarray(ours), np.asarray(theirs)
    assert a.dtype == b.dtype and a.shape == b.shape, (what, a.dtype, b.dtype, a.shape, b.shape)
    wrong = (a != b) & ~(np.isnan(a) & np.isnan(b))
    if a.dtype.kind == "f":
        wrong |= (np.signbit(a) != np.signbit(b)) & ~np.isnan(a)
    assert not wrong.any(), (what, int(wrong.sum()), a[wrong][:5], b[wrong][:5])


def native(f, *args):
    return wg.jit(f, backend="llvm")(*args)


def conversions() -> None:
    many = doubles()
    same(native(lambda x: x.astype(np.float16), many), many.astype(np.float16), "double to half")
    few = many[:7]  # not all lanes of a register
    same(native(lambda x: x.astype(np.float16), few), few.astype("e"), "few doubles to half")
    singles = many.astype(np.float32)
    same(native(lambda x: x.astype(np.float16), singles), singles.astype("e"), "float to half")
    same(native(lambda x: x.astype(np.float64), HALVES), HALVES.astype("d"), "half to double")
    same(native(lambda x: x.astype(np.float32), HALVES), HALVES.astype("f"), "half to float")
    whole = np.concatenate(
        [np.arange(-70000, 70000, 7), np.array([2**31 - 1, 2**62 + 1, -(2**63)])]
    )
    small = HALVES[np.abs(HALVES) < 100]  # outside of a dtype C says nothing
    wholes = [whole.astype(code) for code in WHOLE]

    def there(*x):
        return [y.astype(np.float16) for y in x]

    def back(x):
        return [(np.abs(x) if code in "BHIQ" else x).astype(code) for code in WHOLE]

    for code, ours, theirs in zip(WHOLE, native(there, *wholes), there(*wholes), strict=True):
        same(ours, theirs, f"{code} to half")
    for code, ours, theirs in zip(WHOLE, native(back, small), back(small), strict=True):
        same(ours, theirs, f"half to {code}")


def functions() -> None:
    rng = np.random.default_rng(1)
    h, d = rng.uniform(-2, 2, 37).astype(np.float16), rng.uniform(-2, 2, (5, 7))
    bytes_ = np.arange(37, dtype=np.uint8)
    cases = {
        "mean of double": (lambda x: np.mean(x, dtype="f2"), d),
        "mean of half": (np.mean, h),
        "sum of half": (np.sum, h),
        "sums of half": (lambda x: np.sum(x, 0), d.astype("e")),
        "largest": (np.max, h),
        "tanh of bytes": (np.tanh, bytes_),
        "arithmetic": (lambda x: x * x + 1 / (x + 3) - np.sqrt(np.abs(x)), h),
        "matrix": (lambda x: x @ x.T, d.astype("e")),
        "sorted": (np.sort, h),
        "floor": (lambda x: np.floor(x) + np.rint(x), h),
        "comparison": (lambda x: np.where(x > 0.5, x, x + 1), h),
        "gradient": (wg.grad(lambda x: np.sum(np.tanh(x) * x)), h),
        "gradient through a cast": (wg.grad(lambda x: np.sum(x.astype("e").astype("d") ** 2)), d),
        "gradient of a mean": (wg.grad(lambda x: np.mean(x, dtype="f2")), d),
    }
    given = [x for _, x in cases.values()]

    def all_of(*given):
        return [f(x) for (f, _), x in zip(cases.values(), given, strict=True)]

    every = zip(cases, native(all_of, *given), all_of(*given), strict=True)
    for name, *both in every:
        ours, theirs = map(np.asarray, both)
        assert ours.dtype == theirs.dtype, (name, ours.dtype, theirs.dtype)
        wide = ours.astype(float), theirs.astype(float)
        np.testing.assert_allclose(*wide, rtol=4e-3, atol=4e-3, err_msg=name)


def whole_numbers() -> None:
    """What LLVM may call a function for: divisions, powers, remainders, wide products."""
    x = np.linspace(0.5, 3, 19)

    def of_wholes(*numbers):
        return [
            y
            for n in numbers
            for y in (n // n[::-1], n % n[::-1], n * n, n.astype("d"), n.astype("f"))
        ]

    wholes = [np.arange(1, 20).astype(code) for code in WHOLE[1:]]
    for ours, theirs in zip(native(of_wholes, *wholes), of_wholes(*wholes), strict=True):
        same(ours, theirs, str(ours.dtype))
    n = np.arange(1, 20, dtype=np.int32)

    def of_numbers(x):
        return (
            np.fmod(x, 0.7) + x % 0.3 + x // 0.3,
            np.ldexp(x, n),
            np.sin(1e300 * x) + np.exp(x) + x**2.5 + np.log(x) + np.arctan2(x, x + 1),
            np.floor(x) + np.ceil(x) + np.trunc(x) + np.rint(x) + np.copysign(x, -x),
            np.sort(np.concatenate([x, x[::-1]]))[n],
            np.cumsum(x) + np.linalg.solve(np.outer(x, x) + np.eye(19), x),
        )

    for ours, theirs in zip(native(of_numbers, x), of_numbers(x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


if __name__ == "__main__":
    if sys.argv[1] != "host":
        execution_engine.cpu, execution_engine._own_features = (lambda: sys.argv[1]), (lambda: "")
    called: set[str] = set()
    load = execution_engine.Code.__init__

    def noted(self, image, symbols):
        load(self, image, symbols)
        found = [symbols_of(one) for one in ((image,) if isinstance(image, bytes) else image)]
        called.update(*(n for _, n in found))
        called.difference_update(symbols, *(d for d, _ in found))

    execution_engine.Code.__init__ = noted
    with np.errstate(all="ignore"):
        conversions()
        functions()
        whole_numbers()
    print("\n".join(sorted(called)))
