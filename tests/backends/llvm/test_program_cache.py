"""Programs on disk: a second process finds the same one, and none where anything differs."""

import marshal
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import wengert as wg
from wengert import control
from wengert._engine.backends.llvm import compiled_programs, program_fingerprint
from wengert._engine.backends.llvm.codegen.host_callbacks import _CallOfNode
from wengert._engine.backends.llvm.compiled_programs import LoadedProgram
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.profile.program_summary import summary_of
from wengert._engine.backends.llvm.program import Program
from wengert._engine.cache import disk_cache
from wengert._engine.core.op import REGISTRY


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """An empty cache of the test's own."""
    monkeypatch.setenv("WENGERT_CACHE", str(tmp_path))
    monkeypatch.setattr(disk_cache._CacheState, "enabled", None)
    monkeypatch.setattr(disk_cache, "STARTED", 1 << 62)  # sources may be new
    disk_cache.library_sources.cache_clear()
    yield tmp_path
    disk_cache.library_sources.cache_clear()


def traced(f, *arrays):
    return wg.trace(f)(*arrays).simplify()


def looped(x, w):
    def step(c, row):
        c = np.tanh(c @ w + row)
        return c, c

    return np.sum(control.scan(step, np.zeros(3), x)[1] ** 2)


def triangular(a):
    """A loop whose slices have the lengths of its steps."""
    x = np.empty(len(a))
    for i in range(len(a)):
        x[i] = a[i, i] - a[i, :i] @ x[:i]
    return x


X, W = np.linspace(-1, 1, 12).reshape(4, 3), np.linspace(0.1, 0.9, 9).reshape(3, 3)
FUNCTIONS = {
    "elementwise": (lambda x: np.exp(x) * 2.0 - np.where(x > 0, x, 0.5), (X,)),
    "product": (lambda x, w: (x @ w, np.linalg.cholesky(w @ w.T + np.eye(3))), (X, W)),
    "index": (lambda x: (x[1:, [0, 2]] + x[None, 0, 0], np.argsort(x)), (X,)),
    "gradient of a loop": (wg.grad(looped), (X, W)),
    "lengths of steps": (wg.grad(lambda a: np.sum(triangular(a))), (np.full((30, 30), 0.1),)),
    "zeros": (lambda x: x + np.zeros((300, 4, 3)), (X,)),
    "nested tuples": (lambda x: ((x, x + 1), (np.sum(x),)), (X,)),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_was_kept_is_the_same_program(name):
    f, arrays = FUNCTIONS[name]
    graph, again = traced(f, *arrays), traced(f, *arrays)
    first = compiled_programs.program_of(graph, None)
    expected = LoadedProgram(first).run(arrays, {})
    second = compiled_programs.program_of(again, None)
    assert type(first) is Program and type(second) is compiled_programs.CachedProgram
    compiled = LoadedProgram(second)
    assert compiled.program is second
    for mine, theirs in zip(compiled.run(arrays, {}), expected, strict=True):
        assert np.array_equal(mine, theirs) and mine.dtype == theirs.dtype
    assert "made" not in vars(second)
    for word in ("inputs", "outputs", "slots", "counts", "overwritten", "is_single", "cannot_fail"):
        assert getattr(second, word) == getattr(first, word), word
    assert second.symbols == first.symbols and second.nesting == first.nesting
    assert second.text == first.text
    assert str(summary_of(second)) == str(summary_of(first))


def checked(x):
    """Checks and host callbacks in and outside of a loop, with lengths of its steps."""
    total = np.zeros(3)
    for i in range(2, 30):
        wg.debug.retrieve(total, "total")
        total = total + np.sum(x[0, :i])
        assert total[0] < 50.0, "too large"
        total = total + np.sort(np.sort(x, axis=None)[:i])[:1]
    return wg.debug.retrieve(total * 2.0, "end")


def test_host_callbacks_are_those_of_this_process():
    x, large = np.linspace(0, 0.1, 60).reshape(2, 30), np.full((2, 30), 1e9)
    graph, again = traced(checked, x), traced(checked, x)
    first = compiled_programs.program_of(graph, None)
    wanted = LoadedProgram(first).run([x], {})
    second = compiled_programs.program_of(again, None)
    assert type(first) is Program and type(second) is compiled_programs.CachedProgram
    assert len(second.host_callbacks) == len(first.host_callbacks) >= 3
    pairs = zip(first.host_callbacks, second.host_callbacks, strict=True)
    assert all(a is not b and a.op is b.op and a.params == b.params for a, b in pairs)
    wg.debug.retrieved.clear()
    compiled = LoadedProgram(second)
    np.testing.assert_array_equal(compiled.run([x], {})[0], wanted[0])
    np.testing.assert_array_equal(wg.debug.retrieved["end"], wanted[0])
    assert compiled.program is second and "made" not in vars(second)
    with pytest.raises(AssertionError, match="too large"):
        compiled.run([large], {})
    np.testing.assert_array_equal(compiled.run([x], {})[0], wanted[0])


def test_a_check_that_holds_calls_nothing_back(monkeypatch):
    """Python runs only to raise the exception."""
    x = np.full((2, 30), 0.1)

    def f(x):
        for i in range(30):
            assert x[0, i] < 1.0, "too large"
        return x * 2.0

    program = compiled_programs.program_of(traced(f, x), None)
    called = []
    run = _CallOfNode.__call__

    def counted(*args):
        called.append(args)
        return run(*args)

    monkeypatch.setattr(_CallOfNode, "__call__", counted)
    compiled = LoadedProgram(program)
    np.testing.assert_array_equal(compiled.run([x], {})[0], 2.0 * x)
    assert not called
    x[0, 7] = 3.0
    with pytest.raises(AssertionError, match="too large"):
        compiled.run([x], {})
    assert len(called) == 1


def test_an_object_file_that_is_gone_is_made_again(folder):
    graph = traced(FUNCTIONS["product"][0], X, W)
    LoadedProgram(compiled_programs.program_of(graph, None))
    found = compiled_programs.program_of(graph, None)
    for key in found.keys:
        (folder / f"{key.hex()}.object").unlink()
    compiled = LoadedProgram(found)
    assert type(compiled.program) is Program
    np.testing.assert_allclose(compiled.run([X, W], {})[0], X @ W, rtol=1e-14)


def test_a_damaged_record_is_written_again(folder):
    graph = traced(FUNCTIONS["elementwise"][0], X)
    compiled_programs.program_of(graph, None)
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-3])
    assert type(compiled_programs.program_of(graph, None)) is Program
    assert type(compiled_programs.program_of(graph, None)) is compiled_programs.CachedProgram


def changed(said, **places):
    """A record with other content: of the program's own facts, or one of its parts."""
    parts = list(marshal.loads(said))
    for name, what in places.items():
        k = ("own", "inputs", "outputs", "constants", "names", "callbacks", "keys").index(name)
        parts[k] = what(parts[k]) if callable(what) else what
    return marshal.dumps(tuple(parts), 2)


RECORDS = {
    "empty": lambda said: b"",
    "no marshal": lambda said: b"\xff" * 100,
    "of random bytes": lambda said: np.random.default_rng(0).bytes(300),
    "cut off": lambda said: said[:-20],
    "a number": lambda said: marshal.dumps(3),
    "too few parts": lambda said: marshal.dumps((1, 2)),
    "parts of other types": lambda said: marshal.dumps((None,) * 7),
    "other ports": lambda said: changed(said, inputs=()),
    "ports of no dtype": lambda said: changed(
        said, inputs=[((4, 3), "?!", False, 0, False, False)]
    ),
    "ports of another shape": lambda said: changed(
        said, inputs=lambda old: [((400, 3), *port[1:]) for port in old]
    ),
    "results of another shape": lambda said: changed(
        said, outputs=lambda old: [((400, 3), *port[1:]) for port in old]
    ),
    "slots outside": lambda said: changed(
        said, inputs=lambda old: [(*port[:3], 1 << 40, *port[4:]) for port in old]
    ),
    "a function that is not there": lambda said: changed(said, names=["no_such_function"]),
    "names that are numbers": lambda said: changed(said, names=[1]),
    "keys that are numbers": lambda said: changed(said, keys=[1]),
    "keys that are short": lambda said: changed(said, keys=[b"ab"]),
    "no keys": lambda said: changed(said, keys=[]),
    "host callbacks that are not there": lambda said: changed(said, callbacks=(0, (100,))),
    "host callbacks before the first": lambda said: changed(said, callbacks=(0, (-2,))),
    "constants that do not fit": lambda said: changed(said, constants=[(0, "<f8", (3,), b"abc")]),
}
OBJECTS = {
    "empty": lambda image: b"",
    "of random bytes": lambda image: np.random.default_rng(0).bytes(3000),
    "no object file": lambda image: marshal.dumps((1, 2)),
    "cut off": lambda image: image[:-100],
    "cut in half": lambda image: image[: len(image) // 2],
    "only the beginning": lambda image: image[:30],
    "of another function": lambda image: execution_engine.object_of(
        execution_engine.heading() + "define void @other() {\n  ret void\n}"
    ),
}


def signed(folder, change, is_record):
    """Change what files hold and sign it again, as if it had been written like this."""
    for path in folder.iterdir():
        key, said = bytes.fromhex(path.stem), path.read_bytes()[disk_cache._HEADER.size :]
        if said.startswith(b"\x7fELF") != is_record:
            disk_cache.write(key, change(said))


@pytest.mark.sample(8)
@pytest.mark.parametrize("damage", RECORDS)
def test_a_record_that_is_signed_and_none_is_written_again(folder, damage):
    f = FUNCTIONS["elementwise"][0]
    graph = traced(f, X)
    compiled_programs.program_of(graph, None)
    signed(folder, RECORDS[damage], is_record=True)
    found = compiled_programs.program_of(graph, None)
    np.testing.assert_allclose(LoadedProgram(found).run([X], {})[0], f(X), rtol=1e-14)
    assert type(found) is Program
    assert type(compiled_programs.program_of(graph, None)) is compiled_programs.CachedProgram


@pytest.mark.sample(3)
@pytest.mark.skipif(sys.platform != "linux", reason="an object file there begins in another way")
@pytest.mark.parametrize("damage", OBJECTS)
def test_an_object_file_that_is_signed_and_none_is_compiled_again(folder, damage):
    f = FUNCTIONS["elementwise"][0]
    graph = traced(f, X)
    LoadedProgram(compiled_programs.program_of(graph, None))
    signed(folder, OBJECTS[damage], is_record=False)
    compiled = LoadedProgram(compiled_programs.program_of(graph, None))
    np.testing.assert_allclose(compiled.run([X], {})[0], f(X), rtol=1e-14)
    assert type(compiled.program) is Program
    assert (
        type(LoadedProgram(compiled_programs.program_of(graph, None)).program)
        is compiled_programs.CachedProgram
    )


def contents(*functions, arrays=(X,)):
    return [program_fingerprint.fingerprint_of(traced(f, *arrays)) for f in functions]


@pytest.mark.parametrize(
    "functions",
    [
        (lambda x: x + 0.1, lambda x: x + np.nextafter(0.1, 1)),
        (lambda x: np.copysign(1.0, x * np.array(0.0)), lambda x: np.copysign(1.0, x * -0.0)),
        (lambda x: x * np.float32(2), lambda x: x * 2.0),
        (lambda x: x * np.arange(3), lambda x: x * np.arange(3.0)),
        (lambda x: np.sum(x, 0), lambda x: np.sum(x, 1), lambda x: np.sum(x, 0, keepdims=True)),
        (lambda x: x[0], lambda x: x[1], lambda x: x[:1], lambda x: x[None, 0]),
        (lambda x: x[..., [0, 1]], lambda x: x[..., [1, 0]]),
        (lambda x: (x, x + 1), lambda x: (x + 1, x), lambda x: ((x, x + 1),)),
        (lambda x: x - x[::-1], lambda x: x[::-1] - x),
        (lambda x: np.exp(x), lambda x: np.sin(x)),
        (
            lambda x: control.scan(lambda c, r: (c + r, c), np.zeros(3), x)[1],
            lambda x: control.scan(lambda c, r: (c + r, r), np.zeros(3), x)[1],
            lambda x: control.scan(lambda c, r: (r + 2 * c, c), np.zeros(3), x)[1],
        ),
    ],
)
def test_graphs_that_differ_say_something_else(functions):
    found = contents(*functions)
    assert None not in found and len(set(found)) == len(functions)
    assert contents(*functions) == found


def test_names_of_lengths_are_not_said_but_lengths_are():
    """They are counted in each process: the same function is traced twice here."""
    arrays = (np.full((30, 30), 0.1),)

    def reading(a, more):
        x = np.zeros(len(a))
        for i in range(2, len(a)):
            x[i] = np.sum(a[i, : i - 2 + more]) + np.sum(a[: i - 1, i])
        return x

    functions = [triangular, *(lambda a, k=k: reading(a, k) for k in range(3))]
    found = contents(*functions, arrays=arrays)
    assert None not in found and len(set(found)) == len(functions)
    assert contents(*functions, arrays=arrays) == found
    assert b"trip." in found[0] and not re.search(rb"trip\.[0-9]", found[0])


def test_elements_that_repeat_are_said_once():
    """Arrays that a function makes may be large, but large arrays that differ differ here too."""
    shapes, numbers = ((600, 600), (300, 1200)), (0.0, -0.0, 1.0, np.nan)
    made = [np.full(shape, x) for shape in shapes for x in numbers]
    made += [made[0].astype("f4"), made[0].astype(int)]
    found = [contents(lambda x, y=y: x[0, 0] * y)[0] for y in made]
    assert None not in found and len(set(found)) == len(made)
    assert len(max(found, key=len)) < 2000
    made[0][-2, -2] = 1.0
    assert contents(lambda x: x[0, 0] * made[0]) == [None]
    small = np.zeros((30, 40))
    changed = small.copy()
    changed[20, 30] = 1.0
    assert len(set(contents(lambda x: x[0, 0] * small, lambda x: x[0, 0] * changed))) == 2


def test_memory_that_is_not_initialized_is_the_same_in_every_graph():
    """Its elements are zeros in a graph, not what another array left there."""

    def f(x):
        made = (np.empty((30, 3)), np.empty_like(x), np.ndarray((20, 20)), np.empty((), int))
        buffer = np.ndarray((3,), float, np.arange(3.0).tobytes())
        return [x[0, 0] + y for y in made], x + buffer

    for kept in (np.full((30, 3), 7.0), np.full((20, 20), 7.0), np.full((4, 3), 7.0)):
        del kept  # freed: the next array of this size has its memory
    made, buffer = wg.trace(f)(X)(np.zeros((4, 3)))
    assert all(np.all(np.asarray(y) == 0) for y in made)
    np.testing.assert_array_equal(buffer, np.tile(np.arange(3.0), (4, 1)))
    assert contents(f) == contents(f) != [None]


def test_shapes_dtypes_and_updates_are_said():
    f = FUNCTIONS["elementwise"][0]
    arrays = (X, X[:2], X.astype("f4"), X.T.copy())
    found = {program_fingerprint.fingerprint_of(traced(f, a)) for a in arrays}
    assert len(found) == len(arrays) and None not in found
    u, v = wg.variable(np.ones(3), name="u"), wg.variable(np.ones(3), name="v")
    graphs = [wg.jit(writing(*pair)).lower(np.ones(3)).graph for pair in ((u, v), (v, u), (u, u))]
    assert len({program_fingerprint.fingerprint_of(g) for g in graphs}) == 3


def writing(to, of):
    def step(x):
        to[...] = of * x + u_plus_v(to, of)
        return np.sum(of)

    return step


def u_plus_v(u, v):
    return u + 2.0 * v


def test_what_is_not_plain_is_not_kept():
    size = wg.spec("n")
    assert (
        program_fingerprint.fingerprint_of(wg.trace(np.exp)(size)) is None
    )  # its lengths have names
    large = np.arange((1 << 17) + 1.0)
    assert contents(lambda x: x + large, arrays=(large,)) == [None]
    called = wg.extend.primitive(lambda x: 2.0 * x, name="test_kept.twice")
    try:
        assert contents(called) == [None]
    finally:
        del REGISTRY["test_kept.twice"]
    assert contents(lambda x: 2.0 * x) != [None]


def test_programs_with_any_operation_of_the_package_are_kept(pytestconfig):
    made = pytestconfig.operations.values()
    assert [op.name for op in made if not program_fingerprint._is_ours(op)] == []


def test_programs_with_masks_and_integers_are_kept():
    def f(x):
        return np.sum(np.logaddexp(0.0, x) * ((x > 0) & (x < 1)))

    assert contents(f) != [None]
    assert contents(wg.grad(lambda x: np.sum(np.logaddexp(0, x)))) != [None]


def test_operations_that_somebody_changes_are_not_kept(monkeypatch):
    for what, value in (("composition", lambda x: x), ("implementations", {"llvm": print})):
        with monkeypatch.context() as patch:
            patch.setattr(REGISTRY["exp"], what, value)
            patch.setattr(program_fingerprint, "_ours", {})
            assert contents(np.exp) == [None]
    with monkeypatch.context() as patch:
        patch.setattr(program_fingerprint, "_ours", {})
        graph = traced(np.exp, X)
        patch.setitem(REGISTRY, "exp", REGISTRY["sin"])
        assert program_fingerprint.fingerprint_of(graph) is None


def test_nothing_is_kept_of_sources_that_may_have_changed_meanwhile(monkeypatch):
    monkeypatch.setattr(disk_cache, "STARTED", 0)
    disk_cache.library_sources.cache_clear()
    assert disk_cache.library_sources() is None
    graph = traced(np.exp, X)
    assert [type(compiled_programs.program_of(graph, None)) for _ in range(2)] == [Program, Program]


TRAINING = """
import sys, numpy as np, wengert as wg
w = wg.variable(np.linspace(0, 1, 10_000).reshape(100, 100), name="w")

@wg.jit
def step(x):
    loss = np.sum(np.tanh(x @ w) ** 2)
    w[...] = w - 0.01 * wg.grad(lambda v: np.sum(np.tanh(x @ v) ** 2))(w)
    return loss

losses = [step(np.full((5, 100), 0.01)).item().hex() for _ in range(3)]
print(*losses, float(np.sum(w.detach().numpy())).hex())
print("wengert._engine.backends.llvm.program" in sys.modules)
"""


def test_a_second_process_writes_no_program(folder):
    def run():
        done = subprocess.run(
            [sys.executable, "-c", TRAINING],
            env={**os.environ, "WENGERT_CACHE": str(folder)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    first, second = run(), run()
    assert first[:-1] == second[:-1]
    assert (first[-1], second[-1]) == ("True", "False")
