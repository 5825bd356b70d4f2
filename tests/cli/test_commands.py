"""The command line: output, error messages and exit codes of each command."""

import subprocess
import sys

import numpy as np
import pytest

import wengert as wg
from wengert.cli import main


def said(capsys, *arguments, status=0):
    assert main([str(a) for a in arguments]) == status
    out, err = capsys.readouterr()
    return out if status == 0 else err


def test_python_m_wengert_runs_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "wengert", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("wengert ")


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("demo", "show", "doctor", "tune"))


def test_invalid_arguments_exit_with_2(capsys):
    with pytest.raises(SystemExit) as end:
        main(["doctr"])
    assert end.value.code == 2
    assert "invalid choice: 'doctr'" in capsys.readouterr().err


def test_doctor(capsys):
    text = said(capsys, "doctor")
    assert text.count("works") == 3
    assert np.__version__ in text


def test_doctor_exits_with_1_if_a_check_fails(capsys, monkeypatch):
    monkeypatch.setattr("wengert.cli.doctor._checks", lambda: iter([("gradient", "deviates")]))
    assert main(["doctor"]) == 1
    assert "FAILS: deviates" in capsys.readouterr().out


def test_demo_trains_a_model_and_its_files_can_be_shown(capsys, tmp_path):
    text = said(capsys, "demo", "--out", tmp_path, "--epochs", "15")
    assert "log_softmax" in text
    accuracy = float(text.split("classified correctly")[1].split("%")[0])
    assert accuracy > 80
    assert "6 arrays" in said(capsys, "show", tmp_path / "weights.safetensors")
    svg, page, dot = (tmp_path / f"again.{kind}" for kind in ("svg", "html", "dot"))
    text = said(
        capsys, "show", tmp_path / "model.wengert", "--svg", svg, "--html", page, "--dot", dot
    )
    assert "tanh" in text
    assert svg.read_text().startswith("<svg") and dot.read_text().startswith("digraph")
    assert "tanh" in page.read_text()


def test_debug_shows_the_traceback(capsys, tmp_path):
    text = said(capsys, "--debug", "show", tmp_path / "none", status=1)
    assert "Traceback" in text


# ---- show --------------------------------------------------------------------------------------


def test_show_arrays_and_damaged_files(capsys, tmp_path):
    np.savez(tmp_path / "a.npz", one=np.zeros((2, 3), "f4"))
    assert "(2, 3)  24" in said(capsys, "show", tmp_path / "a.npz")
    np.save(tmp_path / "b.npy", np.zeros(5))
    assert "float64" in said(capsys, "show", tmp_path / "b.npy")
    for name in ("c.npz", "c.npy", "c.wengert"):
        (tmp_path / name).write_bytes(b"not such a file")
        assert "error" in said(capsys, "show", tmp_path / name, status=1)
    np.save(tmp_path / "o.npy", np.array([object()]), allow_pickle=True)
    assert "cannot be read" in said(capsys, "show", tmp_path / "o.npy", status=1)
    svg = tmp_path / "x.svg"
    assert "contain a graph" in said(capsys, "show", tmp_path / "a.npz", "--svg", svg, status=1)


def test_ctrl_c_exits_with_130(capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("wengert.cli.doctor.run", interrupted)
    assert "interrupted" in said(capsys, "doctor", status=130)


def test_show_of_a_gradient(capsys, tmp_path):
    wg.save(wg.trace(wg.grad(lambda x: np.sum(np.sin(x))))(wg.spec(3)), tmp_path / "g.wengert")
    assert "cos" in said(capsys, "show", tmp_path / "g.wengert")
