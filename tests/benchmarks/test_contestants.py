"""Peers in the benchmarks: a process of another environment, waiting for JAX, its forward mode."""

import ctypes
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


SUITE = """
import numpy as np
from native.case import Call, Cannot, Case

def cases(quick):
    for n in (2, 3):
        x = np.arange(float(n))
        def cannot():
            raise Cannot("no")
        yield Case(f"n = {n}", {"Other": lambda x=x: Call(np.cumsum, (x,)), "Lame": cannot})
"""


def test_a_library_elsewhere_is_compared_and_timed(monkeypatch, tmp_path):
    from native import elsewhere, measure

    (tmp_path / "suite_of_two").mkdir()
    (tmp_path / "suite_of_two" / "sums.py").write_text(SUITE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    here = Path(sys.executable)
    others = {"Other": ("other", here), "Lame": ("lame", here), "Gone": ("gone", tmp_path / "no")}
    monkeypatch.setattr(elsewhere, "ENVIRONMENTS", others)
    workers = elsewhere.Workers("suite_of_two", "sums", quick=True)
    import suite_of_two.sums as module

    from native.case import Call

    for case in module.cases(True):
        makes = {**case.contestants, "Gone": lambda: None}
        makes["wengert"] = lambda n=int(case.name[-1]): Call(np.cumsum, (np.arange(float(n)),))
        found = measure.measure(
            workers.placed(measure.replace(case, contestants=makes)), budget=0.02
        )["contestants"]
        assert found["Other"]["median"] > 0 and found["wengert"]["median"] > 0
        assert found["Lame"] == {"cannot": "no"}
        assert found["Gone"] == {"skipped": "not installed: gone"}
    workers.close()


def test_one_that_ends_is_reported(monkeypatch):
    from native import elsewhere

    monkeypatch.setattr(elsewhere, "ENVIRONMENTS", {"Other": ("other", Path(sys.executable))})
    workers = elsewhere.Workers("no_package", "sums", quick=True)
    case = SimpleNamespace(name="n = 2")
    with pytest.raises(elsewhere.Failed, match="ended with status 1"):
        workers.made(case.name, "Other")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_generated_c_is_compiled_once_and_within_limits(monkeypatch, tmp_path):
    from native import compiled
    from native.case import Cannot

    monkeypatch.setattr(compiled, "SCRATCH", tmp_path)
    path = compiled.generated("int three(void) { return 3; }")
    assert ctypes.CDLL(str(path)).three() == 3
    assert compiled.generated("int three(void) { return 3; }") == path
    with pytest.raises(Cannot, match="gives nothing"):
        compiled.generated("int three(void) { return")
    monkeypatch.setattr(compiled, "MOST", 10)
    with pytest.raises(Cannot, match="not given"):
        compiled.generated("int four(void) { return 4; }")


def test_results_are_waited_for_as_they_are():
    """A call whose ``ready`` knows a cheaper way gets it from its first result."""
    from native import measure
    from native.case import Call

    class Ready:
        def __call__(self, result):
            return result

        def of(self, result):
            return lambda r: ("waited", len(result))

    call = measure.waiting(Call(lambda: [1, 2], (), Ready()), [1, 2])
    assert measure.once(call) == ("waited", 2)
    plain = Call(lambda: 1, (), lambda r: r + 1)
    assert measure.once(measure.waiting(plain, 2)) == 2


def test_jax_forward_runs_the_loop_once(monkeypatch):
    """Forward mode is ``vmap`` of ``jvp``: no residuals, and no second loop for the value.

    wengert has these functions with JAX's arguments, and stands in for JAX here.
    """
    import wengert as wg
    from loop_cases import lorenz, peers

    loops = []

    def scan(*given, **more):
        loops.append(given)
        return wg.scan(*given, **more)

    tree = SimpleNamespace(map=lambda f, a: f(a))
    names = {"numpy": np, "tree": tree, "jit": lambda f: f, "jvp": wg.jvp, "vmap": wg.vmap}
    lax = SimpleNamespace(scan=scan, while_loop=None, cond=None)
    jax = SimpleNamespace(**names, lax=lax, grad=wg.grad)
    monkeypatch.setattr(peers.libraries, "jax", lambda: jax)
    call = peers.differentiated(lorenz.of_numbers(10), lorenz.PARAMETERS)["JAX, forward"]()
    value, bars = call.function(*call.arguments)
    assert len(loops) == 1
    right = wg.value_and_grad(lorenz.of_numbers(10)(peers.wengert()))(lorenz.PARAMETERS)
    np.testing.assert_allclose(value, right[0], 1e-12)
    np.testing.assert_allclose(bars, right[1], 1e-12)
