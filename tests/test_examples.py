"""The examples run as programs from the command line, and print the expected results.

Small versions run by default, except of examples whose functions a page of docs or another test
runs; the slow tests run the examples in full.
"""

import importlib
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from tests.distributed.launch import mpirun, started

import wengert as wg
from wengert.scipy.sparse.linalg import factors

ROOT = Path(__file__).resolve().parents[1]
NEEDS = "needs the extra `demo`"


def run(script, *arguments):
    """The output of a program, which must not fail or warn."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


def figure(text, pattern):
    return float(re.search(pattern, text).group(1))


def classify_digits(out, *arguments):
    pytest.importorskip("sklearn", reason=NEEDS)
    pytest.importorskip("matplotlib", reason=NEEDS)
    text, progress = run("digits.py", "--out", str(out), *arguments)
    assert re.search(r"training +\d+/\d+ +loss \d\.\d+ .* s left", progress)
    assert figure(text, r"largest deviation of 24 entries: (\S+) ") < 1e-7
    assert (out / "digits.png").stat().st_size > 20_000
    assert figure(text, r"simplified (\d+)") < figure(text, r"gradient are (\d+) nodes")
    assert "matmul" in (out / "graph.html").read_text(encoding="utf-8")
    assert len(wg.load(out / "classifier.safetensors").variables) == 6
    words = [t.text for t in ET.parse(out / "graph.svg").getroot().iter() if t.text]
    assert {"pixels", "body.0.weight", "relu", "log_softmax"} <= set(words)
    assert (out / "graph.dot").read_text(encoding="utf-8").startswith("digraph")
    assert "log_softmax axis=-1" in (out / "graph.txt").read_text(encoding="utf-8")
    return figure(text, r"accuracy held out +(\S+) %"), text


@pytest.mark.slow
def test_digits_twice(tmp_path):
    accuracy, text = classify_digits(tmp_path, "--epochs", "4", "--at-least", "0.85")
    assert accuracy >= 85.0
    again, same = classify_digits(tmp_path, "--epochs", "4", "--at-least", "0.85")
    assert again == accuracy
    variable = re.compile(r"^(seconds|microseconds|wrote).*$", re.M)
    assert variable.sub("", text) == variable.sub("", same)  # all else is determined by the seed


@pytest.mark.slow
def test_digits_eager_and_compiled(tmp_path):
    _, compiled = classify_digits(tmp_path, "--epochs", "1", "--at-least", "0.5")
    _, eager = classify_digits(tmp_path, "--epochs", "1", "--at-least", "0.5", "--eager")
    pattern = r"loss of the last epoch +(\S+)"
    assert figure(compiled, pattern) == pytest.approx(figure(eager, pattern), rel=1e-3)
    for text in (compiled, eager):
        assert figure(text, r"microseconds per step +(\d+) eager, \d+ compiled") > 0.0
        assert figure(text, r"microseconds per step +\d+ eager, (\d+) compiled") > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_digits_in_full(tmp_path, seed):
    accuracy, text = classify_digits(tmp_path, "--seed", seed)
    assert accuracy >= 96.0
    assert figure(text, r"seconds +(\d\S*)") < 60.0


@pytest.mark.slow
def test_too_low_an_accuracy_is_a_failure(tmp_path):
    with pytest.raises(AssertionError, match="held-out accuracy is below 100 %"):
        classify_digits(tmp_path, "--epochs", "1", "--at-least", "1.0")


def digits_98(*arguments):
    pytest.importorskip("sklearn", reason=NEEDS)
    text, _ = run("digits_98.py", *arguments)
    return [
        figure(text, rf"{name} .* (\S+) % held out") for name in ("perceptron", "convolutional")
    ]


@pytest.mark.slow
def test_digits_98_in_small():
    assert min(digits_98("--epochs", "1", "--at-least", "0.2")) > 20


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_digits_98_in_full():
    assert min(digits_98()) >= 98.5


def test_lifetimes_agree_with_published_values():
    text, _ = run("lifetimes.py")
    assert figure(text, r"largest deviation from published values: (\S+) of the last") < 0.51
    assert figure(text, r"scale, 10\^6 turns +(\S+)") == pytest.approx(81.8783, abs=1e-4)
    assert figure(text, r"treatment +\S+ +(\S+)") == pytest.approx(0.3106, abs=1e-4)


def test_hares_and_lynxes_agree_with_published_values():
    text, _ = run("lynx_hare.py")
    assert figure(text, r"largest deviation from published values: (\S+) of a standard") < 0.5
    assert figure(text, r"alpha +(\S+)") == pytest.approx(0.5417, abs=1e-4)
    assert figure(text, r"alpha +\S+ +(\S+)") == pytest.approx(0.0540, abs=1e-4)


def larger_than_memory(*arguments):
    pytest.importorskip("distributed", reason="needs the extra `dask`")
    text, _ = run("larger_than_memory.py", *arguments)
    assert figure(text, r"largest deviation +(\S+) standard errors") < 4.5
    return figure(text, r"data +(\d+) MiB"), figure(text, r"peak memory +(\d+) MiB")


@pytest.mark.slow  # tests/distributed/test_sums_dask.py has its sums
def test_larger_than_memory_in_small():
    larger_than_memory("--partitions", "8", "--rows", "2000")


@pytest.mark.slow
def test_larger_than_memory_in_full():
    size, peak = larger_than_memory()
    assert size > 1000.0 and peak < 400.0


def shallow_water(count, *arguments):
    if mpirun() is None:
        pytest.skip("mpi4py or mpirun is not installed")
    status, text = started(count, ROOT / "examples" / "shallow_water.py", *arguments, seconds=400)
    assert status == 0, text
    for name in ("misfit", "by height", "by depth"):
        assert figure(text, rf"{name} +(\S+)\n") < 1e-12
    assert f"processes {count}" in text


@pytest.mark.slow  # tests/distributed/checks_of_time_loops.py has its functions
def test_shallow_water_in_small():
    small = ("--cells", "12", "16", "--steps", "12", "--memory", "3", "--iterations", "10")
    shallow_water(2, *small)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 4])
def test_shallow_water_in_full(count):
    shallow_water(count)


@pytest.mark.slow  # tests/distributed/checks_of_pipeline.py
def test_a_pipeline_of_one_process():
    text, _ = run("pipeline.py", "--steps", "3", "--width", "8")
    assert "process 0: layers 0 to 10" in text


@pytest.mark.slow
def test_a_pipeline_of_two_processes():
    if mpirun() is None:
        pytest.skip("mpi4py or mpirun is not installed")
    status, text = started(2, ROOT / "examples" / "pipeline.py", seconds=300.0)
    assert status == 0, text
    assert figure(text, r"accuracy on held-out points: (\S+)") > 0.95
    assert re.search(r"parameters by process: 4,848, 4,802", text)


def test_the_nile_agrees_with_published_values():
    text, _ = run("nile.py")
    assert figure(text, r"largest relative deviation from published values: (\S+)") < 1e-4
    assert figure(text, r"log-likelihood +(\S+)") == pytest.approx(-633.4646, abs=1e-4)
    assert figure(text, r"regression differs by (\S+)") < 1e-8


@pytest.mark.slow  # tests/test_loop_benchmarks.py has GARCH
def test_volatility_agrees_with_a_plain_loop():
    pytest.importorskip("matplotlib", reason=NEEDS)
    text, _ = run("volatility.py")
    assert figure(text, r"a plain loop differs by (\S+),") < 1e-9
    assert figure(text, r"parameters differ by (\S+)") < 1e-2
    names = "omega alpha beta".split()
    omega, alpha, beta = (figure(text, rf"{name} +(\S+)") for name in names)
    assert omega > 0.0 and 0.9 < alpha + beta < 1.0


def test_eight_schools_in_small():
    text, _ = run("eight_schools.py", "--draws", "2000")
    worst = r"largest deviation of a mean (\S+), of a deviation \S+ errors"
    assert figure(text, worst) < 4.0
    assert figure(text, r"tau +\S+ +(\S+)") == pytest.approx(3.60, abs=0.01)  # exact


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_eight_schools_in_full(seed):
    text, _ = run("eight_schools.py", "--draws", "50000", "--seed", seed)
    assert figure(text, r"schools, 50000 draws of 12 leapfrog steps, (\d+) %") > 90


@pytest.mark.slow  # docs/bayesian.md runs its essential parts
def test_germination_of_seeds(tmp_path):
    pytest.importorskip("nutpie", reason="needs the extra `samplers`")
    text = pictured("germination.py", tmp_path)
    assert figure(text, r"difference from a published mean (\S+) deviations") < 0.25


@pytest.mark.slow
def test_swing_up_is_optimal():
    text, _ = run("swing_up.py", "--steps", "40")
    assert figure(text, r"largest error of the controls (\S+) after one Newton step") < 1e-9
    assert figure(text, r"slope of the Lagrangian (\S+)") < 1e-7
    assert 0.0 < figure(text, r"Pontryagin's conditions: effort \S+, (\S+) % less") < 0.25


def pictured(script, out, *arguments):
    """The output of a program, which must also write its picture."""
    pytest.importorskip("matplotlib", reason=NEEDS)
    text, _ = run(script, "--out", str(out), *arguments)
    assert (out / script).with_suffix(".png").stat().st_size > 5_000
    return text


@pytest.mark.slow
def test_expression_trees_in_small(tmp_path):
    text = pictured(
        "expression_trees.py", tmp_path, "--epochs", "2", "--trees", "400", "--at-least", "0.5"
    )
    assert figure(text, r"deviate by (\S+)") < 1e-12


@pytest.mark.slow
def test_expression_trees_in_full(tmp_path):
    text = pictured("expression_trees.py", tmp_path)
    assert figure(text, r"network (\S+) %") > 97.0 > figure(text, r"symbols (\S+) %") + 20.0


@pytest.mark.slow  # docs/solver-examples.md runs its essential parts
def test_penalties_by_the_validation_error(tmp_path):
    text = pictured("penalties.py", tmp_path)
    assert figure(text, r"new points: .* 20 penalties (\S+)") < 0.4
    assert figure(text, r"finite differences deviate by (\S+)") < 1e-6


@pytest.mark.slow  # docs/solver-examples.md runs its essential parts
def test_the_equilibrium_of_propane(tmp_path):
    text = pictured("propane.py", tmp_path)
    assert figure(text, r"deviation from the printed root (\S+)") < 1e-6
    assert figure(text, r"solutions deviate by (\S+)") < 1e-6


@pytest.mark.slow  # docs/solver-examples.md runs its essential parts
def test_the_conductivity_of_a_plate_in_small(tmp_path):
    text = pictured("conductivity.py", tmp_path, "--side", "40", "--at-most", "0.1")
    assert figure(text, r"finite differences deviate by (\S+)") < 1e-6


@pytest.mark.slow
def test_the_conductivity_of_a_plate_in_full(tmp_path):
    text = pictured("conductivity.py", tmp_path)
    assert figure(text, r"(\d+) unknowns") > 100_000
    assert figure(text, r"error of a conductivity (\S+) %") < 3.0


@pytest.mark.slow
def test_the_period_of_the_oregonator(tmp_path):
    text = pictured("oregonator.py", tmp_path)
    assert figure(text, r"period (\S+);") == pytest.approx(302.858, abs=1e-2)


@pytest.mark.slow
def test_the_inverse_heat_equation(tmp_path):
    text = pictured("inverse_heat.py", tmp_path)
    assert figure(text, r"deviation from the normal equations (\S+)") < 1e-6


def test_the_inverse_heat_equation_needs_one_factorization(monkeypatch):
    pytest.importorskip("matplotlib", reason=NEEDS)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    program = importlib.import_module("inverse_heat")
    before = factors.counts.factorized
    misfit = wg.jit(wg.value_and_grad(lambda first: np.sum(program.last(first) ** 2)))
    assert np.all(np.isfinite(misfit(np.ones(program.POINTS))[1]))
    assert factors.counts.factorized - before == 1


def tiny(script, out, *arguments):
    """The output of a model, which must also write its picture."""
    pytest.importorskip("sklearn", reason=NEEDS)
    pytest.importorskip("matplotlib", reason=NEEDS)
    text, _ = run(script, "--out", str(out), *arguments)
    assert (out / script).with_suffix(".png").stat().st_size > 5_000
    return text


@pytest.mark.slow
def test_a_network_solves_burgers_equation(tmp_path):
    text = tiny("pinn.py", tmp_path, "--steps", "30", "--points", "100", "--at-most", "0.5")
    assert figure(text, r"relative error +(\S+)") < 0.5


@pytest.mark.slow
def test_character_models_in_small(tmp_path):
    text = tiny("char_model.py", tmp_path, "--steps", "40", "--margin", "-9")
    words = "-grams  LSTM  GPT  ensemble".split("  ")
    ngrams, lstm, gpt, ensemble = (figure(text, rf"{word} +(\S+)") for word in words)
    assert 2.0 < ngrams < 3.0 and max(lstm, gpt, ensemble) < 4.0


@pytest.mark.slow
def test_diffusion_in_small(tmp_path):
    text = tiny("diffusion.py", tmp_path, "--steps", "2000", "--samples", "500", "--at-most", "4")
    assert figure(text, r"diffusion +(\S+) %") > 90


@pytest.mark.slow
def test_sunspots_in_small(tmp_path):
    text = tiny("gaussian_process.py", tmp_path, "--steps", "8")
    best, line = (figure(text, rf"{name} +(\S+)") for name in ("cycles", "linear interpolation"))
    assert best > line + 0.3


@pytest.mark.slow
def test_an_autoencoder_in_small(tmp_path):
    text = tiny("vae.py", tmp_path, "--epochs", "30", "--draws", "20")
    bound = figure(text, r"autoencoder, at least +(\S+)")
    assert figure(text, r"mixture of ten +(\S+)") < bound < figure(text, r"samples.* (-\S+)")


@pytest.mark.slow
def test_a_neural_ode_in_small(tmp_path):
    text = tiny("neural_ode.py", tmp_path, "--steps", "100", "--width", "16", "--at-most", "0.5")
    assert figure(text, r"neural ODE +(\S+) %") < figure(text, r"linear model +(\S+) %")


@pytest.mark.slow
def test_factorization_in_small(tmp_path):
    small = ("--steps", "40", "--images", "400", "--at-most", "0.9")
    assert figure(tiny("factorization.py", tmp_path, *small), r"this is (\S+) of") < 0.9


@pytest.mark.slow
def test_tables_in_small(tmp_path):
    text = tiny("tabular.py", tmp_path, "--tables", "wines", "--folds", "3")
    assert figure(text, r"wines +(\S+)") > 0.95


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "script",
    [
        "char_model.py",
        "pinn.py",
        "gaussian_process.py",
        "vae.py",
        "diffusion.py",
        "neural_ode.py",
        "factorization.py",
        "tabular.py",
    ],
)
def test_models_in_full(script, tmp_path):
    tiny(script, tmp_path)
