"""Files that somebody who knows the format has changed at random: an error of ours, or a graph.

The sum is right in all of them, so every check behind it is reached.  What is read can be saved
again and gives the same when read once more.
"""

import copy
import json

import numpy as np
import pytest

import wengert as wg
from wengert.errors import FileError, RegistryError

from .helpers import changed, packed, parts, unpacked


def samples():
    w, count = wg.variable([1.0, 2.0, 3.0], "w"), wg.variable(0, "count")

    def first(x, options):
        count[...] = count + 1
        with wg.scope("layer", color="blue"):
            h = np.sort(np.tanh(x * w), axis=0)
        wg.debug.guard(h, low=-1.0)
        left, *_ = np.split(h, [1], axis=1)
        return {"sum": h.sum(), "parts": [left, h[1:], x[:, np.array([0, 2])]]}

    def second(x):
        u, s, _ = np.linalg.svd(x, full_matrices=False)
        return np.einsum("ij,j->i", u, s), np.where(x > 0.5, np.sqrt(x), np.pad(x, 1)[1:-1, 1:-1])

    yield {"graph": wg.trace(first)(wg.spec(("n", 3)), "text"), "w": w, "more": [1.5, (None, 2j)]}
    yield [wg.trace(second)(wg.spec((3, 2))), wg.tensor([1.0, 2.0])]
    yield wg.trace(lambda x: np.mean(x[1:] ** 2) + x.shape[0])(wg.spec("n")).grad()

    def third(x, y):
        def step(h, row):
            h = wg.control.cond(np.sum(h) > row, np.sin, lambda v: v * row, h)
            return h, wg.control.while_loop(lambda z: z < 2.0, lambda z: z * 2.0 + row, row)

        h, rows = wg.control.scan(step, y, x)
        return np.sum(h) + np.sum(rows)

    yield wg.trace(third)(wg.spec("n"), wg.spec(2)).grad()


ODD = [
    None, True, False, 0, 1, -1, 2, 7, 63, 10**6, 2**31, 2**63, -(2**70), "", "n", "x", "N", "C",
    "n**16", "2*n + 1", "float64", "int64", [], {}, [1], [[]], {"tuple": []}, {"float": "nan"},
    {"size": "n"}, {"dict": []}, {"array": "w"}, {"tensor": 0}, {"graph": 0}, {"leaf": 0},
    {"body": 0}, {"body": 1}, {"size": "steps.f0"}, "steps.f1",
    {"slice": [None, 10**9, None]}, {"structure": {"leaf": 0}}, ["float64", [10**9]], "input",
]  # fmt: skip


def places(x):
    """Every place in some JSON: what it is in, and where."""
    found = []
    stack = [x]
    while stack:
        item = stack.pop()
        inside = item.items() if isinstance(item, dict) else enumerate(item)
        for key, part in inside:
            found.append((item, key))
            if isinstance(part, dict | list):
                stack.append(part)
    return found


def mutated(made, rng):
    made = copy.deepcopy(made)
    for _ in range(int(rng.integers(1, 4))):
        known = places(made)
        inside, key = known[int(rng.integers(len(known)))]
        other, where = known[int(rng.integers(len(known)))]
        choice = int(rng.integers(6))
        if choice < 3:
            inside[key] = copy.deepcopy(ODD[int(rng.integers(len(ODD)))])
        elif choice == 3:
            inside[key] = copy.deepcopy(other[where])
        elif choice == 4 and isinstance(inside, list):
            inside.insert(key, copy.deepcopy(other[where]))
        else:
            del inside[key]
        if not isinstance(made, dict):
            break
    return made


def fuzz(data, rng, count):
    """How many files were read; those that were are sound."""
    made = json.loads(parts(data)[0]["__metadata__"]["object"])
    read = 0
    for _ in range(count):
        file = changed(data, lambda _: mutated(made, rng))
        try:
            found = unpacked(file)
        except (FileError, RegistryError) as error:
            assert str(error)
            continue
        read += 1
        again = packed(found)
        assert packed(unpacked(again)) == again
    return read


@pytest.mark.sample(1)
@pytest.mark.parametrize("which", range(4))
def test_random_changes_give_an_error_of_ours_or_a_sound_object(which, rng):
    data = packed(list(samples())[which])
    assert 0 < fuzz(data, rng, 300) < 300


@pytest.mark.slow
@pytest.mark.parametrize("which", range(4))
def test_many_random_changes(which, rng):
    fuzz(packed(list(samples())[which]), rng, 3000)
