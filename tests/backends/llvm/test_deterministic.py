"""The LLVM text of a program, the key of its object file, is the same in every process."""

import os
import subprocess
import sys

import pytest

TEXT = """
import hashlib, sys, numpy as np, wengert as wg
from wengert._engine.backends.llvm.program import Program
from tests.backends.llvm.random_programs import Bundle

def digest(function, *specs):
    text = Program(wg.trace(function)(*specs).simplify()).text
    return hashlib.sha256(text.encode()).hexdigest()

for seed in map(int, sys.argv[1:]):
    for named in (False, True):
        bundle = Bundle(seed, 4, named)
        print(digest(bundle.values, *bundle.specs), digest(bundle.gradient, *bundle.specs))

def sums(x, y, z):
    return np.concatenate([x, y, z, np.sin(x)]) * 2.0, np.outer(y, np.outer(x, z)) + 1.0

specs = [wg.spec(n) for n in ("alpha", "beta", "gamma")]
print(digest(sums, *specs))
"""


SLOW = [pytest.param(*case, marks=pytest.mark.slow) for case in (((1, 2), "05"), ((3, 40), "05"))]


@pytest.mark.parametrize(("seeds", "bundles"), [((1, 2), "0"), *SLOW])
def test_the_order_of_hashes_does_not_matter(seeds, bundles):
    found = set()
    for seed in seeds:
        done = subprocess.run(
            [sys.executable, "-c", TEXT, *bundles],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "WENGERT_CACHE": "0"},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
    assert len(found.pop().split()) == 4 * len(bundles) + 1
