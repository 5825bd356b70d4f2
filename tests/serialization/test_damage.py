"""Files that are damaged, from the future, or written by somebody who means harm.

They give a FileError that says what is wrong.  They never run code, hang, or take more memory than
a small multiple of their own size.
"""

import contextlib
import io
import json
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.dispatch import Operation
from wengert._engine.core.op import REGISTRY, register
from wengert._engine.serialization.errors import Damage, parsed
from wengert.errors import FileError, RegistryError

from .helpers import changed, joined, packed, parts, unpacked


def sample():
    """A file with a bit of everything."""
    w, count = wg.variable([1.0, 2.0, 3.0], "w"), wg.variable(0, "count")

    def model(x):
        count[...] = count + 1
        with wg.scope("layer"):
            h = np.sort(np.tanh(x * w), axis=0)
        first, *_ = np.split(h, [1], axis=1)
        return {"sum": h.sum(), "parts": [first, h[1:], x[:, np.array([0, 2])]]}

    graph = wg.trace(model)(wg.spec(("n", 3)))
    return packed(
        {"graph": graph, "w": w, "z": [np.array([1 + 2j]), np.array([True]), 1.5, "text"]}
    )


SAMPLE = sample()


def refused(data, match=None):
    with pytest.raises(FileError, match=match) as info:
        unpacked(data)
    assert str(info.value).startswith("the file: ")
    return str(info.value)


def test_the_sample_is_sound():
    made = unpacked(SAMPLE)
    assert packed(made) == SAMPLE


# ---- accidents ---------------------------------------------------------------------------------


def test_every_flipped_byte_is_noticed_or_without_effect(rng):
    """A flip of a space in the padding, or of the escape of a character, may change nothing."""
    count = 600
    places = rng.integers(0, len(SAMPLE), size=count)
    places[:64] = np.arange(64)  # the length of the header, and its beginning
    for place, bit in zip(places, rng.integers(0, 8, size=count), strict=True):
        data = bytearray(SAMPLE)
        data[place] ^= 1 << bit
        try:
            made = unpacked(bytes(data))
        except FileError:
            continue
        assert packed(made) == SAMPLE


def test_random_bytes_in_the_place_of_some_are_noticed(rng):
    for _ in range(200):
        data = bytearray(SAMPLE)
        start = int(rng.integers(0, len(data)))
        piece = rng.integers(0, 256, size=int(rng.integers(1, 40)), dtype=np.uint8).tobytes()
        data[start : start + len(piece)] = piece
        if bytes(data) != SAMPLE:
            try:
                assert packed(unpacked(bytes(data))) == SAMPLE
            except FileError:
                continue


def test_every_truncation_is_noticed(rng):
    for length in [*range(20), *rng.integers(0, len(SAMPLE), size=200).tolist(), len(SAMPLE) - 1]:
        refused(SAMPLE[:length])


def test_what_follows_the_end_is_noticed():
    refused(SAMPLE + b"\0", match="bytes of data should follow")
    refused(b"", match="0 bytes")


def test_files_of_other_kinds_are_no_such_files():
    buffer = io.BytesIO()
    np.save(buffer, np.ones(100))
    other = io.BytesIO()
    np.savez(other, a=np.ones(3))
    for data in (
        buffer.getvalue(),
        other.getvalue(),
        b"PK\x03\x04" * 10,
        b"\x80\x04\x95" + b"a" * 50,
    ):
        refused(data)


def test_a_file_of_a_later_version_says_so():
    header, data = parts(SAMPLE)
    header["__metadata__"]["version"] = "7"
    assert "version 7" in refused(joined(header, data), match="install a newer wengert")
    for odd in ("", "-1", "1.0", "٣", "9" * 100):
        header["__metadata__"]["version"] = odd
        refused(joined(header, data), match="version")


def test_a_damaged_number_in_the_data_is_noticed():
    data = bytearray(packed(np.zeros(1000)))
    data[-100] ^= 1
    refused(bytes(data), match="sha256 differs")


# ---- the container, by somebody who knows it ---------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"null",
        b"",
        b'"text"',
        b"{",
        b"\xff\xfe{}",
        b'{"a": 1}',
        b'{"a": {}}',
        b'{"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}, "a": {}}',
        b'{"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8], "more": 1}}',
        b'{"a": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "O", "shape": [1], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": ["F64"], "shape": [1], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [true], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [NaN], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [1e2], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": "1", "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}}',
        b'{"a": {"dtype": "F64", "shape": [1], "data_offsets": [-8, 0]}}',
        b'{"a": {"dtype": "F64", "shape": [1], "data_offsets": [0]}}',
        b'{"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}',
        b'{"a": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}}',
        b'{"a": {"dtype": "F64", "shape": [0, 4611686018427387903], "data_offsets": [0, 0]}}',
        b'{"a": {"dtype": "F64", "shape": [1099511627776, 1099511627776], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [1000000000000], "data_offsets": [0, 8000000000000]}}',
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, '
        b'"b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [' + b"1," * 70 + b'1], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}}',
        b'{"__metadata__": []}',
        b'{"__metadata__": {"format": 1}}',
        b'{"__metadata__": {"format": {"a": "b"}}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": {"dtype": "F64", "shape": [' + b"9" * 10_000 + b'], "data_offsets": [0, 8]}}',
    ],
    ids=lambda h: h[:60].decode(errors="replace"),
)
def test_invalid_headers(header):
    refused(len(header).to_bytes(8, "little") + header + b"\x07" * 8)


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40, 10**9])
def test_a_header_longer_than_the_file(length):
    refused(length.to_bytes(8, "little") + b"{}" * 100, match="truncated")


def test_notes_of_dtypes_that_do_not_fit():
    header, data = parts(packed(np.array([1 + 2j])))
    for note in ("{}", '{"array":"float64"}', '{"array":"complex64"}', '{"array":"O"}', "[]",
                 '{"b":"complex128"}', '{"array":["complex128"]}', '{"array":NaN}'):  # fmt: skip
        if note != "{}":
            header["__metadata__"]["dtypes"] = note
            refused(joined(header, data))


# ---- the object --------------------------------------------------------------------------------


def root(value):
    return changed(SAMPLE, lambda made: {**made, "root": value})


@pytest.mark.sample(29)
@pytest.mark.parametrize(
    "value",
    [
        {"unknown": 1},
        {"tuple": 1},
        {"tuple": [], "list": []},
        {},
        {"float": "abc"},
        {"float": "NAN"},
        {"float": 1},
        {"float": "0x1p99999"},
        {"float": "0x" + "f" * 100_000},
        {"complex": ["0x1p0"]},
        {"bytes": "zz"},
        {"bytes": "é"},
        {"dtype": "O"},
        {"dtype": "object"},
        {"dtype": ["float64"]},
        {"type": "os.system"},
        {"slice": [1]},
        {"slice": [{"array": "w"}, None, None]},
        {"ellipsis": 1},
        {"scalar": ["float64", "00"]},
        {"scalar": ["bool", "02"]},
        {"scalar": ["float64", "zz" * 8]},
        {"array": "nothing"},
        {"array": ["w"]},
        {"tensor": -1},
        {"tensor": 100},
        {"tensor": True},
        {"graph": 100},
        {"hole": -1},
        {"leaf": 0},
        {"structure": {"leaf": 1}},
        {"structure": {"list": [{"leaf": 0}]}},
        {"structure": [{"leaf": 0}, {"leaf": 0}]},
        {"structure": [1]},
        {"structure": {"structure": {"leaf": 0}}},
        {"size": "__import__('os').system('true')"},
        {"size": "n +"},
        {"size": "3"},
        {"size": "((n+m)**16)**16"},
        {"size": "*".join(["(a+b+c+d)"] * 100)},
        {"size": "(a+b)*(a+b)"},
        {"size": "((9**16)**16)**16"},
        {"size": "n//0"},
        {"size": "n**16*m**16*k**16*j**16*i**16"},
        {"size": "(" * 400 + "n" + ")" * 400},
        {"size": "n" * 10_000},
        {"size": 2**70},
        {"spec": ["float64", [-1]]},
        {"spec": ["float64", [1] * 100]},
        {"spec": ["float64", ["n**16*m**16*k**15"] * 60]},
        {"spec": ["object", []]},
        {"spec": ["float64"]},
        {"spec": ["float64", [], False]},
        {"dict": [["a", 1], ["a", 2]]},
        {"dict": [[{"dict": []}, 1]]},
        {"dict": [[[1], 1]]},
        {"dict": [[2**100, 1]]},
        {"dict": [1]},
        {"named": ["collections.OrderedDict", [], []]},
        {"named": ["os.system", ["a"], ["b"]]},
        {"named": ["Signature", ["names"], [1]]},
        {"named": ["Tensor", [], []]},
        {"named": [1, [], []]},
        {"named": ["SVDResult", ["U", "S", "Vh"], [1]]},
    ],
    ids=lambda v: json.dumps(v)[:50],
)
def test_invalid_values(value, calls):
    assert calls(refused, root([value])) < 20_000


def test_a_value_nested_deeply():
    value = 1
    for _ in range(500):
        value = [value]
    refused(root(value), match="nested")
    text = "[" * 50_000 + "]" * 50_000
    header, data = parts(SAMPLE)
    header["__metadata__"]["object"] = '{"tensors":[],"graphs":[],"root":' + text + "}"
    refused(joined(header, data), match="nested")


def lines(change):
    """The sample with its graph changed."""

    def within(made):
        change(made["graphs"][0])

    return changed(SAMPLE, within)


def test_the_change_of_nothing_changes_nothing():
    assert packed(unpacked(lines(lambda g: None))) == SAMPLE


def position(graph, op):
    number = [o[0] for o in graph["ops"]].index(op)
    return next(i for i, line in enumerate(graph["lines"]) if line[0] == number)


def setting(*path):
    """A change of one place of the graph."""
    *keys, last, value = path

    def change(graph):
        place = graph
        for key in keys:
            place = place[key(graph)] if callable(key) else place[key]
        place[last] = value

    return change


def tanh(graph):
    return position(graph, "tanh")


def first_input(graph):
    return graph["inputs"][0]


CHANGES = {
    "cycle": (setting("lines", tanh, 2, [10**6]), "an operand"),
    "itself": (lambda g: g["lines"][tanh(g)].__setitem__(2, [tanh(g)]), "an operand"),
    "negative operand": (setting("lines", tanh, 2, [-1]), "an operand"),
    "operand is true": (setting("lines", tanh, 2, [True]), "an operand"),
    "operand is text": (setting("lines", tanh, 2, ["0"]), "an operand"),
    "too few operands": (setting("lines", tanh, 2, []), "tanh"),
    "too many operands": (lambda g: g["lines"][tanh(g)].__setitem__(2, [0, 0, 0]), "tanh"),
    "unknown parameter": (setting("lines", tanh, 4, {"params": {"dict": [["axis", 1]]}}), "tanh"),
    "params are a list": (setting("lines", tanh, 4, {"params": [1]}), "parameter names"),
    "wrong spec": (lambda g: g["specs"].__setitem__(
        g["lines"][position(g, "argsort")][3], ["int64", ["n", 4]]), "but the file has"),
    "wrong dtype": (lambda g: g["specs"].__setitem__(
        g["lines"][tanh(g)][3], ["float32", ["n", 3]]), None),
    "spec out of range": (setting("lines", tanh, 3, 10**9), "the spec"),
    "not a spec": (setting("lines", tanh, 3, None), "misplaced"),
    "unknown type": (setting("lines", tanh, 1, "X"), "type of node"),
    "type is a list": (setting("lines", tanh, 1, ["N"]), "type of node"),
    "unknown word": (setting("lines", first_input, 0, "exec"), "not a known kind"),
    "operation out of range": (setting("lines", tanh, 0, 10**9), "the operation"),
    "operation is true": (setting("lines", tanh, 0, True), "the operation"),
    "integer input differentiable": (setting("specs", 0, ["int64", [3]]), None),
    "too short": (lambda g: g["lines"].__setitem__(3, [1, "N"]), "not a node"),
    "a line is null": (setting("lines", 2, None), "not a node"),
    "unknown note": (setting("lines", tanh, 4, {"owner": 1}), "not a note"),
    "hidden note": (setting("lines", tanh, 4, {"more": {"dict": [["owner", 1]]}}), "not a note"),
    "note of another type": (
        setting("lines", tanh, 4, {"more": {"dict": [["held", 1]]}}), "not a note"
    ),
    "linear in no operand": (
        setting("lines", tanh, 4, {"more": {"dict": [["linear", {"tuple": [1]}]]}}),
        "no such operand",
    ),
    "notes of a list": (setting("lines", tanh, 4, {"more": [1]}), "notes"),
    "level": (setting("lines", tanh, 4, {"level": -1}), "level"),
    "level is huge": (setting("lines", tanh, 4, {"level": 10**40}), "level"),
    "requires": (setting("lines", tanh, 4, {"requires": [["n", 1, "x"]]}), "requirement"),
    "requires a number": (setting("lines", tanh, 4, {"requires": [[3, True, "x"]]}), "requirement"),
    "inputs missing": (setting("inputs", []), None),
    "input twice": (lambda g: g["inputs"].append(g["inputs"][0]), "repeated"),
    "outputs missing": (setting("outputs", []), None),
    "output out of range": (setting("outputs", 0, 10**5), "outputs"),
    "update of no variable": (lambda g: g["updates"].__setitem__(0, [tanh(g), tanh(g)]), "update"),
    "update is no pair": (setting("updates", 0, [1]), "update"),
    "update of another shape": (lambda g: g["updates"][0].__setitem__(1, tanh(g)), "update"),
    "effects": (setting("effects", [-1]), "effects"),
    "structure": (setting("structure", {"tuple": [None]}), "structure"),
    "structure is null": (setting("structure", None), "structure"),
    "structure of arguments": (setting("structure", {"tuple": [1, 2]}), "arguments"),
    "name": (setting("name", 3), "name"),
    "texts": (setting("texts", [3]), "texts"),
    "another kind": (lambda g: g["ops"][0].__setitem__(1, "view"), "of the kind"),
    "operation is no operation": (setting("ops", 0, ["sin"]), "not an operation"),
    "superfluous line": (lambda g: g["lines"].append(
        ["constant", "C", [], None, {"value": 1}]), "not used"),
    "superfluous key": (setting("code", "import os"), "missing or unknown keys"),
    "variable is text": (lambda g: g["lines"].insert(0, 1), "not a node"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_invalid_graphs(name):
    change, match = CHANGES[name]
    refused(lines(change), match=match)


def test_an_operation_that_is_not_registered_is_named():
    data = lines(lambda g: g["ops"].__setitem__(0, ["shop.discount", "opaque", "shop.prices"]))
    with pytest.raises(RegistryError, match=r"'shop\.discount'.*shop\.prices"):
        unpacked(data)
    assert "shop" not in sys.modules


def test_operations_that_reach_outside_are_not_run_from_a_file(tmp_path):
    target = tmp_path / "written"
    with pytest.raises(Exception, match="external effects"):
        packed(wg.trace(lambda x: wg.debug.log(x, str(target)))(wg.spec()))
    number = position(json.loads(parts(SAMPLE)[0]["__metadata__"]["object"])["graphs"][0], "tanh")

    def swap(graph):
        op = graph["lines"][number][0]
        graph["ops"][op] = ["debug_log", "opaque", "x"]
        notes = {"params": {"dict": [["to", str(target)]]}}
        graph["lines"][number] = [*graph["lines"][number][:4], notes]

    refused(lines(swap), match="external effects")
    assert not target.exists()


class Spy(Operation):
    """An operation of a user, which must not run when a file is read."""

    ran = False

    def run(self, x, **params):
        Spy.ran = True
        return x


@pytest.fixture
def spy():
    op = register(Spy("tests.spy"))
    yield op
    del REGISTRY[op.name]
    Spy.ran = False


def test_a_users_operation_does_not_run_when_a_file_is_read(spy):
    data = packed(wg.trace(lambda x: spy(x) * 2.0)(wg.spec(3)))
    Spy.ran = False
    graph = unpacked(data)
    assert not Spy.ran
    np.testing.assert_array_equal(graph(np.ones(3)), [2.0, 2.0, 2.0])
    assert Spy.ran
    assert packed(graph) == data


def test_what_could_not_be_checked_is_checked_when_it_runs(spy):
    data = packed(wg.trace(lambda x: spy(x))(wg.spec(3)))

    def lie(made):
        (graph,) = made["graphs"]
        graph["specs"].append(["float64", [4]])
        graph["lines"][1][3] = len(graph["specs"]) - 1

    graph = unpacked(changed(data, lie))
    with pytest.raises(wg.WengertError, match="gave shapes"):
        graph(np.ones(3))


# ---- memory and time ---------------------------------------------------------------------------


def huge(program, op, big):
    """A graph of which a parameter has been made huge, with the spec to match."""
    data = packed(wg.trace(program)(wg.spec(3)))

    def grow(made):
        (graph,) = made["graphs"]
        text = json.dumps(graph["lines"])
        line = graph["lines"][position(graph, op)]
        line[4]["params"] = json.loads(json.dumps(line[4]["params"]).replace("7777", str(big)))
        assert "7777" in text
        graph["specs"][line[3]] = ["float64", [3 * big]]

    return changed(data, grow)


@pytest.mark.slow
def test_hostile_files_take_little_memory(tmp_path):
    """In a process that may not have more than a gigabyte beyond what importing takes."""
    n = 10**12
    big = {
        "shape": joined({"a": {"dtype": "U8", "shape": [n], "data_offsets": [0, n]}}, b"1" * 100),
        "spec": changed(
            packed(wg.trace(lambda x: np.sort(x))(wg.spec(3))),
            lambda made: made["graphs"][0]["specs"].__setitem__(0, ["float64", [n]]),
        ),
        "tile": huge(lambda x: np.tile(x, 7777), _name_of_tile(), n),
        "brackets": joined({"__metadata__": {"x": "y"}}, b"")[:8] + b"[" * 10_000_000,
        "sizes": root([{"size": "*".join(f"(a{i}+b)" for i in range(90))}]),
    }
    script = tmp_path / "read.py"
    script.write_text(
        textwrap.dedent(
            """
            import resource, sys, wengert as wg
            from pathlib import Path
            wg.load
            have = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (have + 2**30, have + 2**30))
            for path in sorted(Path(sys.argv[1]).glob("*.bin")):
                try:
                    wg.load(path)
                    print(path.stem, "read")
                except wg.errors.FileError as error:
                    print(path.stem, "refused")
            """
        )
    )
    for name, data in big.items():
        (tmp_path / f"{name}.bin").write_bytes(data)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = dict(line.split() for line in done.stdout.splitlines())
    assert found.keys() == big.keys()
    assert found["shape"] == found["brackets"] == found["sizes"] == "refused"


def symbolic(shape, other=None):
    """A product of two inputs of symbolic shapes, which has to be checked."""
    data = packed(wg.trace(lambda x, y: x * y)(wg.spec(("n", 3)), wg.spec(("n", 3))))

    def grow(made):
        (graph,) = made["graphs"]
        graph["specs"] = [["float64", shape], ["float64", other or shape]]
        for i, line in enumerate(graph["lines"]):
            line[3] = min(i, 1) if other else 0

    return changed(data, grow)


def test_sizes_that_are_read_take_little_time(calls):
    """Each within its limit, and the most that one may have."""
    big = "n**9*m**9*k**9"
    assert unpacked(symbolic([big])).inputs[0].spec.shape

    def both():
        refused(symbolic([big, big]), match="too many terms")
        refused(symbolic([f"{big} + 1"], [f"{big} + 2"]), match="multiply")

    assert calls(both) < 200_000


def test_lines_with_sizes_have_a_budget_together(calls):
    names = [f"a{k}" for k in range(600)]

    def f(*xs):
        return [x + x for x in xs]

    data = packed(wg.trace(f)(*[wg.spec(n) for n in names]))

    def grow(made):
        (graph,) = made["graphs"]
        sizes = {n: f"{n}**9*b**9*c**9" for n in names}
        for spec in graph["specs"]:
            spec[1] = [sizes[spec[1][0]]]

    grown = changed(data, grow)
    assert calls(lambda: refused(grown, match="too many terms")) < 5_000_000


def test_a_size_that_is_divided_by_zero_at_the_probes():
    sample = packed(wg.trace(lambda x: np.sort(x))(wg.spec("n")))
    data = changed(
        sample, lambda made: made["graphs"][0]["specs"][0].__setitem__(1, ["n//(m - 39)"])
    )
    with contextlib.suppress(FileError):
        unpacked(data)


def _name_of_tile():
    graph = wg.trace(lambda x: np.tile(x, 7777))(wg.spec(3))
    return next(n.op.name for n in graph.nodes if "7777" in repr(n.params))


def test_reading_takes_memory_for_the_arrays_once(tmp_path):
    wg.save({"a": np.zeros(2_000_000), "b": np.zeros(2_000_000, complex)}, tmp_path / "big")
    tracemalloc.start()
    try:
        made = wg.load(tmp_path / "big")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = sum(a.nbytes for a in made.values())
    assert size == 48_000_000 and peak < 1.4 * size  # and a buffer of 16 MB to read through


def test_many_keys_of_which_one_comes_twice():
    text = "{" + ",".join(f'"k{i}":0' for i in range(60_000)) + ',"k59999":0}'
    with pytest.raises(Damage, match="'k59999' is repeated"):
        parsed(text, "the header")
