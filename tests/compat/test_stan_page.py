"""The page for users of Stan: its tables of densities and types, computed by Stan and PyMC too.

Stan's programs are run by stanli, PyMC's by PyMC, each where it is installed
(test_pages_of_peers.py says where); elsewhere a test is skipped.
"""

import json

import numpy as np
import pytest

import wengert as wg

from .stan_names import DENSITIES, SCHOOLS, TYPES
from .test_pages_of_peers import blocks, run_by

pytestmark = pytest.mark.slow
PYMC = 2e-8  # it takes logarithms and square roots of constants in float32
IN_STAN = """
import json, sys
import stanli

def computed(program, point, data):
    with open("model.stan", "w") as file:
        file.write(program)
    value, gradient = stanli.Model(stan_file="model.stan", data=data).log_prob_grad(point)
    return [value, list(gradient)]

with open("programs.json") as file:
    found = [computed(*program) for program in json.load(file)]
with open("found.json", "w") as file:
    json.dump(found, file)
"""
IN_PYMC = """
import json
import numpy as np
import pymc as pm
from pytensor.scalar.basic import autocast_float_as

found = []
for text in json.load(open("programs.json")):
    with autocast_float_as("float64"):
        distribution, point = eval("pm." + text)
        found.append(float(pm.logp(distribution, point).eval()))
with open("found.json", "w") as file:
    json.dump(found, file)
"""


def run(peer, script, programs, folder):
    (folder / "programs.json").write_text(json.dumps(programs))
    run_by(peer, script, folder)
    return json.loads((folder / "found.json").read_text())


@pytest.fixture(scope="module")
def page():
    """The names that the page defines before its section on constrained parameters."""
    names = {}
    for block in blocks("pymc", "python"):
        if "bijectors" in block:
            return names
        exec(block, names)
    raise AssertionError


def test_densities_of_stan(page, tmp_path):
    rows = [(stan, ours) for stan, _, ours in DENSITIES if stan is not None]
    programs = [
        (f"parameters {{ real u; }}\nmodel {{ target += {stan}; }}\n", [0.1], {})
        for stan, _ in rows
    ]
    found = run("stanli", IN_STAN, programs, tmp_path)
    for (stan, ours), (value, _) in zip(rows, found, strict=True):
        np.testing.assert_allclose(eval(ours, page), value, rtol=1e-13, err_msg=stan)


def test_densities_of_pymc(page, tmp_path):
    rows = [(pymc, ours) for _, pymc, ours in DENSITIES if pymc is not None]
    found = run("pymc", IN_PYMC, [p for p, _ in rows], tmp_path)
    for (pymc, ours), value in zip(rows, found, strict=True):
        np.testing.assert_allclose(eval(ours, page), value, rtol=PYMC, err_msg=pymc)


def test_log_jacobians_of_stan(tmp_path):
    rng = np.random.default_rng(1)
    programs, expected = [], []
    for name, ours in TYPES.items():
        joint = wg.bijectors.Joint({"a": eval(ours, vars(wg.bijectors))})
        point = rng.normal(size=joint.size)
        expected.append(wg.value_and_grad(joint.unconstrained(lambda p: 0.0))(point))
        programs.append((f"parameters {{ {name}; }}\nmodel {{ }}\n", point.tolist(), {}))
    found = run("stanli", IN_STAN, programs, tmp_path)
    for name, (value, gradient), (own, slope) in zip(TYPES, found, expected, strict=True):
        np.testing.assert_allclose(own, value, rtol=1e-12, atol=1e-14, err_msg=name)
        np.testing.assert_allclose(slope, gradient, rtol=1e-12, atol=1e-14, err_msg=name)


def test_the_model_in_stan(page, tmp_path):
    (program,) = blocks("pymc", "stan")
    point = np.random.default_rng(2).normal(size=10)
    names = {"mu": point[0], "log_tau": point[1], "z": point[2:]}
    slope = wg.grad(page["log_density"])(names)
    ((_, gradient),) = run("stanli", IN_STAN, [(program, point.tolist(), SCHOOLS)], tmp_path)
    expected = [slope["mu"], slope["log_tau"], *slope["z"]]
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)
