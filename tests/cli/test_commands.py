"""The command line: each command as a user would give it, and what they get for mistakes."""

import json
import subprocess
import sys

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.cli import main

CONFIG = """
seed = 3
[data]
source = "blobs.npz"
held_out = 0.25
[[model]]
layer = "Linear"
in_features = 2
out_features = 8
[[model]]
layer = "Tanh"
[[model]]
layer = "Linear"
in_features = 8
out_features = 2
[optimizer]
name = "Adam"
lr = 0.05
[fit]
epochs = 4
metrics = "accuracy"
compile = false
"""


@pytest.fixture
def config(tmp_path, rng):
    label = np.arange(120) % 2
    np.savez(tmp_path / "blobs.npz", x=rng.normal(size=(120, 2)) + 3 * label[:, None], y=label)
    path = tmp_path / "blobs.toml"
    path.write_text(CONFIG)
    return path


def said(capsys, *arguments, status=0):
    assert main([str(a) for a in arguments]) == status
    out, err = capsys.readouterr()
    return out if status == 0 else err


def test_it_is_a_program_of_its_own():
    done = subprocess.run(
        [sys.executable, "-m", "wengert", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("wengert ")


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("demo", "train", "show", "bench", "doctor"))


def test_what_is_not_understood_ends_with_2(capsys):
    with pytest.raises(SystemExit) as end:
        main(["trian"])
    assert end.value.code == 2
    assert "invalid choice: 'trian'" in capsys.readouterr().err


def test_doctor(capsys):
    text = said(capsys, "doctor")
    assert text.count("works") == 3
    assert np.__version__ in text


def test_doctor_ends_with_1_if_something_is_wrong(capsys, monkeypatch):
    monkeypatch.setattr("wengert.cli.doctor._trials", lambda: iter([("gradient", "deviates")]))
    assert main(["doctor"]) == 1
    assert "FAILS: deviates" in capsys.readouterr().out


def test_bench(capsys):
    text = said(capsys, "bench", "--quick")
    assert len(text.splitlines()) == 5
    assert "cross-entropy" in text


def test_demo_learns_and_its_files_can_be_shown(capsys, tmp_path):
    text = said(capsys, "demo", "--out", tmp_path, "--epochs", "15")
    assert "log_softmax" in text
    right = float(text.split("classified correctly")[1].split("%")[0])
    assert right > 80
    assert "6 arrays" in said(capsys, "show", tmp_path / "weights.safetensors")
    svg, page, dot = (tmp_path / f"again.{kind}" for kind in ("svg", "html", "dot"))
    text = said(
        capsys, "show", tmp_path / "model.wengert", "--svg", svg, "--html", page, "--dot", dot
    )
    assert "tanh" in text
    assert svg.read_text().startswith("<svg") and dot.read_text().startswith("digraph")
    assert "tanh" in page.read_text()


# ---- train -------------------------------------------------------------------------------------


def test_train_writes_weights_and_a_log(capsys, config, tmp_path):
    text = said(capsys, "train", config, "--quiet")
    assert "validation accuracy" in text
    weights = nn.load_safetensors(tmp_path / "blobs" / "weights.safetensors")
    assert sorted(weights) == ["0.bias", "0.weight", "2.bias", "2.weight"]
    lines = (tmp_path / "blobs" / "log.jsonl").read_text().splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_train_goes_on_as_if_it_had_not_stopped(capsys, config, tmp_path):
    said(capsys, "train", config, "--quiet", "--set", "fit.folder=whole", "--set", "fit.epochs=6")
    said(capsys, "train", config, "--quiet", "--set", "fit.folder=parts")
    said(
        capsys, "train", config, "--quiet", "--resume", "--set", "fit.folder=parts",
        "--set", "fit.epochs=6",
    )  # fmt: skip
    whole, parts = (
        nn.load_safetensors(tmp_path / name / "weights.safetensors") for name in ("whole", "parts")
    )
    assert all(np.array_equal(whole[name], parts[name]) for name in whole)


def test_train_on_a_table(capsys, config, tmp_path, rng):
    x = rng.normal(size=(60, 2))
    rows = np.column_stack([x, x @ [2.0, -1.0]])
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header="a,b,height", comments="")
    text = said(
        capsys, "train", config, "--quiet", "--set", "data.source=t.csv", "--set",
        "data.target=height", "--set", "model.2.out_features=1", "--set", "loss.name=MSELoss",
        "--set", "fit.metrics=mae", "--set", "fit.epochs=20",
    )  # fmt: skip
    errors = [float(row.split()[3]) for row in text.splitlines()[1:-1]]
    assert errors[-1] < 0.5 * errors[0]


MISTAKES = {
    "model.0.layer=Linaer": r"Did you mean 'Linear'",
    "model.0.in_feature=3": r"Did you mean 'in_features'",
    "model.0.in_features=3": r"features",
    "optimizer.name=Adamm": r"Did you mean 'Adam'",
    "optimizer.lr=-1": r"a rate of at least 0",
    "loss.name=Loss": r"nothing is called 'Loss'",
    "fit.epoch=3": r"Did you mean 'epochs'",
    "fit.epochs=-3": r"at least 0",
    "data.source=none.npz": r"none\.npz",
    "data.source=digit": r"no folder",
    "data.inputs=z": r"nothing is called 'z'",
    "data.held_out=1": r"a share",
    "dat.source=x": r"Did you mean 'data'",
    "epochs": r"key=value",
    "seed=x": r"seed = 'x': must be an integer",
    "fit=3": r"fit = 3: entries belong into \[fit\]",
    "model=3": r"model = 3: entries belong into \[\[model\]\]",
    "model.9.layer=Linear": r"9 must be an index from 0",
    "model.layer=Linear": r"layer must be an index from 0",
    "data=x": r"\[data\]",
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_one_message(capsys, config, mistake):
    import re

    text = said(capsys, "train", config, "--quiet", "--set", mistake, status=1)
    assert text.startswith("wengert train: error: ")
    assert "Traceback" not in text and "(at " not in text
    assert re.search(MISTAKES[mistake], text), text


def test_a_second_training_does_not_replace_the_first(capsys, config):
    said(capsys, "train", config, "--quiet")
    assert "holds a training already" in said(capsys, "train", config, "--quiet", status=1)


@pytest.mark.parametrize("text", ["[data", "\xff"])
def test_a_damaged_description(capsys, tmp_path, text):
    path = tmp_path / "c.toml"
    path.write_bytes(text.encode("latin-1"))
    assert "is not TOML" in said(capsys, "train", path, status=1)


def test_errors_show_where_they_arose_on_request(capsys, tmp_path):
    text = said(capsys, "--debug", "show", tmp_path / "none", status=1)
    assert "Traceback" in text


# ---- show --------------------------------------------------------------------------------------


def test_show_arrays_and_damaged_files(capsys, tmp_path):
    np.savez(tmp_path / "a.npz", one=np.zeros((2, 3), "f4"))
    assert "(2, 3)  24" in said(capsys, "show", tmp_path / "a.npz")
    np.save(tmp_path / "b.npy", np.zeros(5))
    assert "float64" in said(capsys, "show", tmp_path / "b.npy")
    for name in ("c.npz", "c.npy", "c.wengert"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        assert "error" in said(capsys, "show", tmp_path / name, status=1)
    np.save(tmp_path / "o.npy", np.array([object()]), allow_pickle=True)
    assert "cannot be read" in said(capsys, "show", tmp_path / "o.npy", status=1)
    wanted = tmp_path / "x.svg"
    assert "contain a graph" in said(capsys, "show", tmp_path / "a.npz", "--svg", wanted, status=1)


def test_ctrl_c_ends_with_130(capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("wengert.cli.bench.run", interrupted)
    assert "interrupted" in said(capsys, "bench", status=130)


def test_show_of_a_gradient(capsys, tmp_path):
    wg.save(wg.trace(wg.grad(lambda x: np.sum(np.sin(x))))(wg.spec(3)), tmp_path / "g.wengert")
    assert "cos" in said(capsys, "show", tmp_path / "g.wengert")
