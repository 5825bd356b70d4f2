"""The benchmark of graphics cards runs with an emulated device: its checks and its workloads."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cuda.py"


@pytest.mark.slow
def test_an_emulated_run():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--emulated"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "7 operations were compared with eager execution" in done.stdout
    assert "0 differ" in done.stdout
    assert done.stdout.count("| Lorenz, gradients of 1e5 trajectories") == 1
