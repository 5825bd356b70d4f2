"""Loggers: JSON Lines, and event files, which are read by a separate parser."""

import json
import struct

import numpy as np
import pytest

from wengert import errors
from wengert.nn.training import Callback, JSONLines, TensorBoard
from wengert.nn.training.loggers import crc32c, record, scalars, started, version

from .small_models import Net, training


def lines(path):
    return [json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()]


def test_a_line_for_every_step_and_epoch(tmp_path):
    path = tmp_path / "deep" / "log.jsonl"
    history = training(Net(), 2, log=path)
    found = lines(path)
    events = [line["event"] for line in found]
    assert events == ["begin", *["step"] * 7, "epoch", *["step"] * 7, "epoch", "end"]
    steps = [line for line in found if line["event"] == "step"]
    assert [line["loss"] for line in steps] == history.steps["loss"]
    assert [line["step"] for line in steps] == list(range(1, 15))
    epochs = [line for line in found if line["event"] == "epoch"]
    assert [e["validation accuracy"] for e in epochs] == history["validation accuracy"]
    assert found[-1]["stopped"] == "done"


class Odd(Callback):
    def on_step_end(self, run):
        run.figures["odd"] = [float("nan"), float("inf"), 1e300][run.step % 3]


def test_nan_and_infinite_numbers(tmp_path):
    paths = [tmp_path / "log.jsonl", tmp_path / "board"]
    training(Net(), 1, callbacks=[Odd()], log=paths)
    odd = [line["odd"] for line in lines(paths[0]) if line["event"] == "step"]
    assert odd[:3] == [None, 1e300, None]
    (path,) = paths[1].iterdir()
    found = [e["values"]["step/odd"] for e in parsed(path) if "step/odd" in e.get("values", {})]
    assert np.isinf(found[0]) and np.isinf(found[1]) and np.isnan(found[2])


def test_a_resumed_training_has_each_step_once(tmp_path):
    class Stop(Callback):
        def __init__(self, step):
            self.step = step

        def on_step_end(self, run):
            if run.step == self.step:
                raise RuntimeError("the machine stops")

    path = tmp_path / "log.jsonl"
    with pytest.raises(RuntimeError):
        training(Net(), 2, callbacks=[Stop(11)], log=path, checkpoint=tmp_path / "kept")
    with open(path, "a") as file:
        file.write('{"event": "st')  # an incomplete line
    model = Net(1)
    options = {"log": path, "checkpoint": tmp_path / "kept", "resume": True}
    history = training(model, 2, callbacks=[Stop(None)], **options)
    steps = [line for line in lines(path) if line["event"] == "step"]
    assert [line["step"] for line in steps] == list(range(1, 15))
    assert [line["loss"] for line in steps] == history.steps["loss"]


def test_fewer_lines(tmp_path):
    log = JSONLines(tmp_path / "log.jsonl", every=3)
    board = TensorBoard(tmp_path / "board", every=3)
    training(Net(), 1, callbacks=[log, board])
    assert [e["step"] for e in lines(log.path) if e["event"] == "step"] == [3, 6]
    for kind in (JSONLines, TensorBoard):
        with pytest.raises(errors.ArgumentError, match="every must be at least 1, got 0"):
            kind(tmp_path, every=0)


# ---- events ------------------------------------------------------------------------------------


def test_the_check_is_castagnolis():
    # RFC 3720, appendix B.4, and the check value of the catalog of CRCs.
    assert crc32c(b"\0" * 32) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283


def varint(data, at):
    shift = number = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def fields(data):
    """The fields of a message: (number, value) in order."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
            assert len(value) == length
        else:
            size, code = {1: (8, "<d"), 5: (4, "<f")}[kind]
            value, at = struct.unpack(code, data[at : at + size])[0], at + size
        yield key >> 3, value


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32


def parsed(path):
    """The events in a file; verifies all checksums."""
    data, at, events = path.read_bytes(), 0, []
    while at < len(data):
        length, check = struct.unpack("<QI", data[at : at + 12])
        assert check == masked(data[at : at + 8])
        message = data[at + 12 : at + 12 + length]
        (check,) = struct.unpack("<I", data[at + 12 + length : at + 16 + length])
        assert check == masked(message) and len(message) == length
        at += 16 + length
        events.append(event(message))
    return events


def event(message):
    found = {"step": 0}
    for number, value in fields(message):
        if number == 1:
            found["time"] = value
        elif number == 2:
            found["step"] = value
        elif number == 3:
            found["version"] = value
        elif number == 7:
            found["session"] = value
        elif number == 5:
            found["values"] = {}
            for _, one in fields(value):
                parts = dict(fields(one))
                found["values"][parts[1].decode()] = parts[2]
    return found


def test_files_of_events(tmp_path):
    history = training(Net(), 2, log=tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("events.out.tfevents.")
    events = parsed(path)
    assert events[0]["version"] == b"brain.Event:2" and events[0]["step"] == 0
    steps = [e for e in events if "step/loss" in e.get("values", {})]
    assert [e["step"] for e in steps] == list(range(1, 15))
    losses = np.array(history.steps["loss"], np.float32)
    assert [e["values"]["step/loss"] for e in steps] == losses.tolist()
    epochs = [e for e in events if "epoch/validation loss" in e.get("values", {})]
    assert [e["step"] for e in epochs] == [7, 14]
    assert "epoch/epoch" not in epochs[0]["values"] and abs(events[0]["time"] - 1.7e9) < 1e9


def test_bytes_of_events():
    # The encoding of protoc, derived by hand from its specification.
    assert scalars(1.0, 300, {"a": 0.5}).hex() == (
        "09000000000000f03f10ac022a0a0a080a016115" + "0000003f"
    )
    assert version(0.0).hex() == "0900000000000000001000" + "1a0d" + b"brain.Event:2".hex()
    assert started(0.0, 5).hex() == "0900000000000000001005" + "3a020801"
    assert event(scalars(2.0, 2**40, {"é": 1.0, "b": -2.0})) == {
        "time": 2.0,
        "step": 2**40,
        "values": {"é": 1.0, "b": -2.0},
    }
    assert len(record(b"")) == 16
