"""What is checked of a random program: that all ways to evaluate and differentiate it agree.

    first_order    value and gradient: compiled, eager, with other data, by differences
    second_order   Hessian-vector products: compiled, eager, forward over reverse, by differences;
                   derivatives in forward mode; a batch of three

A check compares pairs of results.  `Verdict` ends it: a refusal, or a program that is
ill-conditioned: a change of its operands in the last digits changes it as much.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import wengert as wg

RAISES = (ArithmeticError, IndexError, ValueError, UnboundLocalError, TypeError)


class Verdict(Exception):
    """A program whose results cannot be compared further, and why."""


def differs(found, wanted, tolerance):
    """Whether arrays differ by more than a tolerance, relative to their largest element."""
    return any(
        not np.allclose(a, b, rtol=tolerance, atol=0.1 * tolerance * max(1.0, np.abs(b).max()))
        for a, b in zip(found, wanted, strict=True)
    )


@dataclass
class Subject:
    """A program with its operands.

    f : of a matrix, a vector and an array of integers.
    given : these.
    seed : of the program, for messages.
    single : whether it computes in float32.
    """

    f: Callable
    given: tuple
    seed: int
    single: bool = False

    def copies(self, factor=1.0):
        return [a * a.dtype.type(factor) for a in self.given[:2]] + [self.given[2].copy()]

    def moved(self, step):
        """The operands, moved along the direction."""
        A, x, k = self.copies()
        return [A + step * self.direction[0], x + step * self.direction[1], k]

    @functools.cached_property
    def direction(self):
        rng = np.random.default_rng(self.seed + 1)
        return [rng.uniform(-1, 1, a.shape) for a in self.given[:2]]

    @functools.cached_property
    def gradient(self):
        return wg.grad(self.f, (0, 1))

    def compare(self, name, found, evaluate, tolerance, *arguments):
        """Fail if results differ from those of a function of the operands.

        Without further `arguments` these are copies of the operands.
        """
        tolerance *= 1e4 if self.single else 1.0
        wanted = evaluate(*(arguments or self.copies()))
        if differs(found, wanted, tolerance):
            factor = 1.0 + (1e-7 if self.single else 1e-14)
            near = [a * factor if a.dtype.kind == "f" else a for a in arguments or self.copies()]
            if differs(evaluate(*near), wanted, 0.1 * tolerance):
                raise Verdict("ill-conditioned")
            raise AssertionError(f"seed {self.seed}: {name} {found}, not {wanted}")

    def along(self, gradients):
        """The derivative along the direction."""
        return sum(np.sum(g * d) for g, d in zip(gradients, self.direction, strict=True))

    def differences(self, name, evaluate, slopes):
        """Fail if slopes along the direction differ from differences that agree with each other.

        Of values so large that their rounding errors hide the slopes nothing is said.
        """
        if self.single:
            return
        found = []
        for step in (1e-5, 2e-6):
            right, left = evaluate(*self.moved(step)), evaluate(*self.moved(-step))
            found.append([(a - b) / (2 * step) for a, b in zip(right, left, strict=True)])
        middle = evaluate(*self.copies())
        one_sided = [(r - m) / step for r, m in zip(right, middle, strict=True)]
        lost = max(np.abs(m).max() for m in middle) * np.finfo(float).eps / step
        if lost > 1e-4 * max(1.0, *(np.abs(v).max() for v in slopes)):
            return
        smooth = not differs(found[0], found[1], 1e-4) and not differs(one_sided, found[1], 1e-2)
        if (
            smooth
            and all(np.isfinite(s).all() for s in found[1])
            and differs(slopes, found[1], 1e-2)
        ):
            raise AssertionError(f"seed {self.seed}: {name} {slopes}, by differences {found[1]}")


def first_order(program, other):
    """Value, modified arguments and gradient, also with other data."""
    f = program.f
    try:
        arguments = program.copies()
        want = f(*arguments)
    except RAISES:
        raise Verdict("raises") from None
    if not np.isfinite(want):
        raise Verdict("raises")
    compiled = wg.jit(f)
    modified = program.copies()
    found = compiled(*modified)
    program.compare("value", [found], lambda *a: [f(*a)], 1e-9)
    assert np.asarray(found).dtype == np.asarray(want).dtype, f"dtype {np.asarray(found).dtype}"
    program.compare("arguments", modified, functools.partial(_arguments_after, f), 1e-9)
    gradient = wg.jit(program.gradient)
    gradients = gradient(*program.copies())
    program.compare("gradient", gradients, program.gradient, 1e-7)
    try:
        again = f(*other.copies())
    except RAISES:
        return gradients
    if np.isfinite(again):
        other.compare("value of other data", [compiled(*other.copies())], lambda *a: [f(*a)], 1e-9)
        if program.seed % 4 == 0:
            other.compare(
                "gradient of other data", gradient(*other.copies()), program.gradient, 1e-7
            )
    return gradients


def _arguments_after(f, *arguments):
    f(*arguments)
    return arguments


def second_order(program, other, gradients):
    """Hessian-vector products, forward mode, and a batch."""
    f, direction = program.f, program.direction

    def tangent(A, x, k):
        return wg.jvp(lambda A, x: f(A, x, k), (A, x), tuple(direction))

    def slope(A, x, k):
        one, two = program.gradient(A, x, k)
        return np.sum(one * direction[0]) + np.sum(two * direction[1])

    def forward_over_reverse(A, x, k):
        return wg.jvp(lambda A, x: program.gradient(A, x, k), (A, x), tuple(direction))[1]

    program.differences("value", lambda *a: [f(*a)], [program.along(gradients)])
    wanted = [f(*program.copies()), program.along(gradients)]
    for name, evaluate in (("compiled", wg.jit(tangent)), ("eager", tangent)):
        program.compare(f"{name} tangent", wanted, evaluate, 1e-7)
    product = wg.grad(slope, (0, 1))
    found = wg.jit(product)(*program.copies())
    program.compare("Hessian-vector product", found, product, 1e-6)
    program.compare("the same forward over reverse", found, wg.jit(forward_over_reverse), 1e-6)
    program.differences("gradient", lambda *a: program.gradient(*a), found)
    _batch(program, other)


def _batch(program, other):
    """The compiled function and its gradient of a batch of three, and one after the other."""
    third = Subject(
        program.f, (program.given[0] * 0.5, other.given[1], other.given[2]), program.seed
    )
    members = [program, other, third]
    try:
        values = [program.f(*m.copies()) for m in members]
    except RAISES:
        return
    if not np.isfinite(values).all():
        return
    batch = [np.stack(column) for column in zip(*(m.copies() for m in members), strict=True)]

    def one_by_one(function, *columns):
        found = [function(*(c.copy() for c in row)) for row in zip(*columns, strict=True)]
        return [np.stack(column) for column in zip(*found, strict=True)]

    for name, function, tolerance in (
        ("values", lambda *a: [program.f(*a)], 1e-9),
        ("gradients", program.gradient, 1e-7),
    ):
        found = wg.vmap(wg.jit(function))(*(b.copy() for b in batch))
        program.compare(
            f"batch of {name}", found, functools.partial(one_by_one, function), tolerance, *batch
        )
