"""Backends: the registry, third parties, hooks of operations, what a lacking operation says."""

import math
import sys

import numpy as np
import pytest
from wengert.backends import Backend, Interpreter, Transformed, backend, backends, register_backend

import wengert as wg
from wengert._engine.core.op import lookup
from wengert.errors import BackendError, RegistryError
from wengert.extend import as_operation
from wengert.extend.op_classes import op as ops
from wengert.extend.op_classes.transformers import Transformer, make_transformer


@pytest.fixture
def registry(monkeypatch):
    from wengert._engine.backends import registry as base

    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))


class Single(Interpreter):
    """Computes in single precision."""

    name = "single"
    tolerance = 1e-6

    def function(self, op):
        run = op.run
        if op.name == "sin":
            return None
        return lambda *xs, **params: run(*[np.float32(x) for x in xs], **params)


def test_registry_by_name(registry):
    assert {"interpret", "null"} <= set(backends())
    made = register_backend(Single())
    assert backend("single") is made
    assert backend(made) is made
    assert "single" in backends()
    with pytest.raises(RegistryError, match="already registered"):
        register_backend(Single())
    register_backend(Single(), replace=True)
    with pytest.raises(
        RegistryError, match=r"no backend 'singel'; available are .*Did you mean 'sin"
    ) as e:
        backend("singel")
    assert "test_backends.py" in str(e.value)
    for word in ("gpu", "CUDA"):
        with pytest.raises(RegistryError, match="Did you mean 'cuda'"):
            backend(word)
    with pytest.raises(RegistryError, match="replace=True"):
        register_backend(Interpreter())


def test_describe():
    assert Single().describe() == {
        "name": "single",
        "tolerance": 1e-6,
        "says": "Computes in single precision.",
    }
    assert backend("interpret").describe()["tolerance"] == 0.0
    assert repr(backend("null")) == "<backend null>"


def test_an_object_as_backend_and_the_same_graph_on_several():
    x = wg.input("x", shape="n")
    graph = wg.Graph(np.sum(x * 0.1))
    array = np.arange(5.0) + 1.0 / 3.0
    exact = wg.computation(graph)(array)
    single = wg.computation(graph, backend=Single())(array)
    assert exact == np.sum(array * 0.1)
    assert single != exact
    assert abs(single - exact) <= Single.tolerance * abs(exact)
    assert wg.computation(graph, backend="null")(array) == 0.0


def test_an_operation_that_a_backend_lacks():
    x = wg.input("x", shape="n")
    y = np.sin(x)  # the line
    with pytest.raises(BackendError) as caught:
        wg.computation(y * 2.0, x, backend=Single())
    text = str(caught.value)
    assert "the backend 'single' has no implementation of sin" in text
    assert "test_backends.py" in text
    assert text.endswith("test_an_operation_that_a_backend_lacks).")
    assert isinstance(caught.value, NotImplementedError)


def test_an_operation_gives_a_backend_its_own_implementation(monkeypatch):
    sin = lookup("sin")
    monkeypatch.setattr(sin, "implementations", dict(sin.implementations))
    calls = []

    @sin.implement("single")
    def sine(x):
        calls.append(x)
        return np.float32(math.sin(x))

    x = wg.input("x")
    f = wg.computation(np.sin(x) + 1.0, x, backend=Single())
    assert f(0.5) == np.float32(math.sin(0.5)) + np.float32(1.0)
    assert len(calls) == 1
    assert wg.computation(np.sin(x), x)(0.5) == math.sin(0.5)
    assert len(calls) == 1
    assert "single" in sin.implementations
    assert "single" not in lookup("cos").implementations


def test_a_backend_that_compiles_a_graph_as_a_whole():
    class Counting(Backend):
        """Adds up the lengths of what it is fed."""

        name = "counting"
        compiled = 0

        def lacks(self, op):
            return op.name != "sum"

        def compile(self, graph, sizes):
            self.compiled += 1
            return lambda values: [np.float64(sum(sizes.values())) for _ in graph.outputs]

    made = Counting()
    f = wg.computation(np.sum(wg.input("x", shape=("n", "m"))), backend=made)
    assert [f(np.ones((2, 3))), f(np.ones((2, 3))), f(np.ones((4, 5)))] == [5.0, 5.0, 9.0]
    assert made.compiled == 2
    with pytest.raises(BackendError, match="'counting' has no implementation of exp"):
        wg.computation(np.exp(wg.input("x")), backend=made)


def test_backends_of_installed_packages(tmp_path, monkeypatch, registry):
    (tmp_path / "third_party_wengert.py").write_text(
        "from wengert.backends import Interpreter\n"
        "class Theirs(Interpreter):\n"
        "    '''Runs as ours does.'''\n"
        "    name = 'theirs'\n"
    )
    info = tmp_path / "third_party_wengert-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: third-party-wengert\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(
        "[wengert.backends]\ntheirs = third_party_wengert:Theirs\n"
        "broken = third_party_wengert:Missing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert {"theirs", "interpret", "broken"} <= set(backends())
    x = wg.input("x")
    f = wg.computation(x * 2.0, x, backend="theirs")
    assert f(2.0) == 4.0
    assert f.backend.describe()["says"] == "Runs as ours does."
    assert backend("theirs") is f.backend
    with pytest.raises(RegistryError, match="'broken' of third-party-wengert cannot be loaded"):
        backend("broken")
    sys.modules.pop("third_party_wengert")


def test_transformers_of_style_004_are_backends():
    x, y = wg.input("x"), wg.input("y")
    f = wg.computation(np.where(x < y, np.sin(x * y), x), x, y, backend=Transformed("python"))
    assert f(0.5, 2.0) == math.sin(1.0)
    assert f(2.0, 0.5) == 2.0
    g = wg.computation(np.sum(wg.input("z", shape=3) * 2.0), backend=Transformed("numpy"))
    assert g([1.0, 2.0, 3.0]) == 12.0
    with pytest.raises(BackendError, match="'transformer python' has no implementation of sum"):
        wg.computation(np.sum(wg.input("z", shape=3)), backend=Transformed("python"))
    assert Transformed(make_transformer("numpy")).transformer.transformer_name == "numpy"


class Twofold(ops.Op):
    """Twice a value."""

    def __init__(self, x):
        super().__init__(x)

    def transform(self, transformer, x):
        return transformer.add(x, x)

    def generate_adjoints(self, adjoints, delta, x):
        x.generate_add_delta(adjoints, Twofold(delta))


def test_op_classes_of_style_004_are_asked_for_their_transform():
    class Counting(Transformer):
        calls = 0

        def add(self, x, y):
            self.calls += 1
            return np.add(x, y)

    Counting.transformer_name = "counting"  # here, so that it is not registered
    twofold = as_operation(Twofold)
    made = Counting()
    x = wg.input("x", shape=2)
    f = wg.computation(twofold(x) + 1.0, x, backend=Transformed(made))
    assert f([1.0, 2.0]).tolist() == [3.0, 5.0]
    assert made.calls == 2
    with pytest.raises(
        BackendError, match="'transformer counting' has no implementation of multiply"
    ):
        wg.computation(twofold(x) * 2.0, x, backend=Transformed(made))
