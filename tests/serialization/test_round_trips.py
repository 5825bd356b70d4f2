"""What is saved comes back: values exactly, graphs line by line, tensors as what they were."""

import collections
import dataclasses
import json
import math
import typing

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert import nn
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import constant
from wengert._engine.core.symbolic.constraints import dim
from wengert.errors import (
    ArgumentError,
    ConversionError,
    DtypeError,
    FileError,
    GraphError,
    RegistryError,
    ShapeError,
    StructureError,
    TraceError,
)

from .helpers import changed, packed, round_trip, same_graph, unpacked

VALUES = [
    None,
    True,
    0,
    -(10**30),
    "",
    'text with "quotes", \\ and ünïcode \U0001f600 \0',
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.pi,
    5e-324,
    1.5 - 0.0j,
    complex(math.inf, -0.0),
    b"\x00\xff",
    (),
    [],
    {},
    (1,),
    [1, (2.0, [None, {"a": ()}])],
    {"b": 1, "a": 2, 3: "three", (1, "x"): 4.5, None: 0, True: 1},
    slice(None),
    slice(1, None, -2),
    ...,
    np.dtype("float32"),
    np.dtype(">i4"),
    float,
    np.complex64,
    np.float32(1.1),
    np.int8(-5),
    np.bool_(True),
    np.complex64(1 + 2j),
    dim("2*n**3*m + n//2 - 7"),
    wg.spec(("n", 3, "2*n + 1"), "complex64"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: repr(v)[:30])
def test_values_come_back_exactly(value):
    again = round_trip([value])[0]
    assert type(again) is type(value)
    assert again == value
    assert repr(again) == repr(value)  # tells -0.0 from 0.0


def test_not_a_number_comes_back():
    assert math.isnan(round_trip(math.nan))
    again = round_trip(complex(1.0, math.nan))
    assert again.real == 1.0 and math.isnan(again.imag)


@pytest.mark.parametrize(
    "dtype",
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 "
    "complex64 complex128 >i2 >u4 >f2 >f4 >f8 >c8 >c16".split(),
)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_arrays_come_back_bit_by_bit(dtype, shape, rng):
    dtype = np.dtype(dtype)
    raw = rng.integers(0, 256, size=math.prod(shape) * dtype.itemsize, dtype=np.uint8)
    raw = raw % 2 if dtype.kind == "b" else raw
    array = np.frombuffer(raw.tobytes(), dtype).reshape(shape)
    again = round_trip({"a": array})["a"]
    assert type(again) is np.ndarray
    assert again.dtype == array.dtype and again.shape == shape
    assert again.tobytes() == array.tobytes()
    assert again.flags.writeable


def test_arrays_of_any_layout_come_back(rng):
    base = rng.normal(size=(4, 6))
    for array in (
        base.T,
        base[::2, ::-1],
        np.asfortranarray(base),
        np.broadcast_to(base, (2, 4, 6)),
    ):
        np.testing.assert_array_equal(round_trip(array), array)


def test_one_array_in_two_places_is_one_array_again():
    a = np.ones(3)
    again = round_trip({"a": a, "b": [a, np.ones(3)]})
    assert again["a"] is again["b"][0] and again["a"] is not again["b"][1]


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([object()]), np.array(["2020-01-01"], "datetime64[D]"),
              np.zeros(2, "f4,i4"), np.ones(2, np.longdouble), np.longdouble(1)],
    ids=["text", "object", "date", "record", "longdoubles", "longdouble"],
)  # fmt: skip
def test_arrays_that_are_not_of_portable_numbers_are_refused(array):
    with pytest.raises(DtypeError, match="cannot be saved"):
        packed({"a": array})


def test_subclasses_of_arrays_are_refused_by_name():
    with pytest.raises(StructureError, match=r"at a\.0 is a numpy\.ma.*MaskedArray"):
        packed({"a": [np.ma.array([1.0], mask=[True])]})


# ---- containers --------------------------------------------------------------------------------


@wg.keep.register_class(name="tests.Point")
class Point(typing.NamedTuple):
    x: typing.Any
    y: typing.Any


@wg.keep.register_class(name="tests.Options")
@dataclasses.dataclass(frozen=True)
class Options:
    rate: float
    weights: typing.Any = None

    def __post_init__(self):
        assert self.rate > 0.0


def test_registered_classes_come_back():
    again = round_trip([Point(1, (2.5, None)), Options(0.1, {"w": Point("a", "b")})])
    assert again == [Point(1, (2.5, None)), Options(0.1, {"w": Point("a", "b")})]
    assert type(again[0]) is Point and type(again[1].weights["w"]) is Point


def test_other_classes_are_refused_by_name():
    class Plain(typing.NamedTuple):
        x: int

    for thing in (Plain(1), collections.OrderedDict(a=1), {1, 2}, object(), iter([])):
        with pytest.raises(StructureError, match=type(thing).__name__):
            packed({"thing": thing})
    with pytest.raises(StructureError, match=r"thing\.0 is the function test_other"):
        packed({"thing": [test_other_classes_are_refused_by_name]})
    with pytest.raises(StructureError, match=r"x\.state_dict\(\)"):
        packed(nn.Linear(2, 2, rng=0))


def test_a_name_of_a_class_is_taken_once():
    with pytest.raises(RegistryError, match=r"tests\.Point"):

        @wg.keep.register_class(name="tests.Point")
        class Other(typing.NamedTuple):
            z: int

    with pytest.raises(StructureError, match="named tuple"):
        wg.keep.register_class(int)


def test_a_class_with_other_fields_is_not_made():
    data = packed(Point(1, 2)).replace(b'\\"x\\"', b'\\"z\\"')
    with pytest.raises(FileError, match="differs"):
        unpacked(data)


def test_containers_that_contain_themselves_are_refused():
    a = []
    a.append(a)
    with pytest.raises(StructureError, match="nested containers"):
        packed(a)


# ---- tensors -----------------------------------------------------------------------------------


def test_tensors_come_back_as_what_they_were():
    w, count = wg.tensor([1.0, 2.0], requires_grad=True), wg.variable(7, "count")
    again = round_trip({"w": w, "same": [w], "count": count, "plain": wg.tensor([1, 2])})
    assert again["w"] is again["same"][0]
    assert again["w"].requires_grad and again["w"].is_leaf
    assert not again["plain"].requires_grad and again["plain"].dtype == np.int64
    assert again["count"].node.name == "count" and int(again["count"]) == 7
    np.sum(again["w"] ** 2).backward()
    np.testing.assert_array_equal(again["w"].grad.numpy(), [2.0, 4.0])
    assert round_trip(wrap(constant(np.arange(3.0), "gravity"))).node.name == "gravity"


def test_tensors_with_a_history_are_refused():
    w = wg.tensor([1.0], requires_grad=True)
    with pytest.raises(ConversionError, match="at y is a recorded tensor"):
        packed({"y": w * 2.0})
    with pytest.raises(TraceError, match="without a value"):
        packed({"y": wg.input("x", 3)})
    assert round_trip({"y": w > 0.0})["y"].numpy().tolist() == [True]


def test_a_model_is_kept_by_the_names_of_its_parameters(rng):
    model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.ReLU(), nn.Linear(4, 1, rng=1))
    state = round_trip(model.state_dict())
    other = nn.Sequential(nn.Linear(3, 4, rng=2), nn.ReLU(), nn.Linear(4, 1, rng=3))
    other.load_state_dict(state)
    x = rng.normal(size=(5, 3))
    np.testing.assert_array_equal(model(x).numpy(), other(x).numpy())
    names = wg.keep.inspect(_file(packed(model.state_dict()))).arrays
    assert set(names) == set(model.state_dict())


def test_the_graph_of_a_model_is_kept_with_its_parameters_by_name(rng):
    model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.Tanh(), nn.Linear(4, 1, rng=1))
    graph = wg.trace(model)(wg.spec(("n", 3)))
    data = packed({"graph": graph, "model": dict(model.named_parameters())})
    names = wg.keep.inspect(_file(data)).variables
    assert {n.removeprefix("model.") for n in names} == set(model.state_dict())
    again = unpacked(data)
    x = rng.normal(size=(5, 3))
    np.testing.assert_array_equal(again["graph"](x), graph(x))
    with wg.no_grad():
        again["model"]["2.bias"] += 1.0
    np.testing.assert_allclose(again["graph"](x), graph(x) + 1.0, rtol=1e-15)
    mine = dict(model.named_parameters())
    bound = unpacked(data, variables={n: mine[n.removeprefix("model.")] for n in names})
    assert bound["model"]["2.bias"] is mine["2.bias"]


def test_tensors_of_one_name_are_named_by_their_place():
    a, b = wg.variable([1.0], "w"), wg.variable([2.0], "w")
    data = packed({"first": {"w": a}, "second": {"w": b}, "c": wg.variable([3.0])})
    assert wg.keep.inspect(_file(data)).variables == ["w", "second.w", "c"]
    again = unpacked(data)
    assert again["second"]["w"].node.name == "w" and again["second"]["w"].item() == 2.0


def test_parameters_come_back_as_parameters():
    model = nn.Linear(2, 1, rng=0)
    again = round_trip(dict(model.named_parameters()))
    assert all(type(p) is nn.Parameter and p.requires_grad for p in again.values())
    np.testing.assert_array_equal(again["weight"].data, model.weight.data)


def _file(data):
    import io

    return io.BytesIO(data)


# ---- graphs ------------------------------------------------------------------------------------


def test_a_graph_comes_back_with_all_that_is_noted():
    w, count = wg.variable([1.0, 2.0, 3.0], "w"), wg.variable(0, "count")

    def model(x, options, *, scale):
        count[...] = count + 1
        with wg.scope("encoder", color="blue", depth=3), wg.scope("layer1"):
            h = np.tanh(x * w) * scale
        wg.debug.guard(h, low=-10.0)
        first, second = np.split(h, [1], axis=1)
        return {"sum": h.sum(), "parts": [first, (second, 3.0)], "kind": np.argmax(h, axis=0)}

    graph = wg.trace(model)(wg.spec(("n", 3)), "fast", scale=wg.spec((), "float32"))
    assert graph.updates and graph.effects and graph.requirements is not None
    again = round_trip(graph)
    assert same_graph(graph, again)
    assert type(again) is wg.Graph
    x = np.arange(6.0).reshape(2, 3)
    a, b = graph(x, "fast", scale=np.float32(2)), again(x, "fast", scale=np.float32(2))
    assert _plain(a) == _plain(b)
    (tensor,) = [n.info.owner() for n in again.updates]
    assert int(tensor) == 1 and int(count) == 1
    metadata = {n.metadata["color"] for n in again.nodes if n.metadata}
    assert metadata == {"blue"}


def _plain(x):
    if isinstance(x, dict):
        return {k: _plain(v) for k, v in x.items()}
    return [_plain(v) for v in x] if isinstance(x, list | tuple) else np.asarray(x).tolist()


PROGRAMS = {
    "sizes": (lambda x: (x.mean(axis=0), x[1:] - x[:-1], wnp.eye(x.shape[0]) @ x), (("n", 3),)),
    "sort": (lambda x: np.sort(x, axis=0)[::2], ((5, 3),)),
    "einsum": (lambda x: np.einsum("ij,kj->ik", x, x), (("n", 3),)),
    "linear algebra": (lambda x: np.linalg.solve(x @ x.T + np.eye(3), x), ((3, 3),)),
    "several outputs": (lambda x: np.linalg.svd(x, full_matrices=False), ((4, 3),)),
    "index": (lambda x: (x[np.array([0, 2])], x[..., None, 1], x[x.shape[0] - 1]), ((4, 3),)),
    "where": (lambda x: np.where(x > 0.5, np.log(x), 0.0), (("n",),)),
    "complex": (lambda x: np.abs(np.sqrt(x * (1.0 + 2.0j))), ((8,),)),
    "joined": (lambda x: np.concatenate([x, x * 2.0, np.ones((1, 3))]), (("n", 3),)),
    "constant results": (lambda x: (1.0, 2.0, np.arange(3), 3.0), ((2,),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_and_their_gradients_come_back(name, rng):
    f, (shape,) = PROGRAMS[name]
    graph = wg.trace(f)(wg.spec(shape))
    again = round_trip(graph)
    assert same_graph(graph, again)
    x = rng.uniform(0.5, 2.0, size=[4 if n == "n" else n for n in shape])
    assert _plain(graph(x)) == _plain(again(x))
    if name == "constant results":
        return

    def loss(g):
        def total(x):
            out = g(x)
            return sum(np.sum(np.abs(y)) for y in (out if isinstance(out, tuple) else (out,)))

        return total

    mine, theirs = wg.grad(loss(again))(x), wg.grad(loss(f))(x)
    np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


def test_einsum_of_files_of_earlier_versions(rng):
    """Their parameter is called `letters`, not `subscripts`."""
    x, y = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))
    graph = wg.trace(lambda x, y: np.einsum("ij,jk->ki", x, y))(x, y)
    (node,) = [n for n in graph.nodes if n.op.name == "einsum"]
    assert node.params == {"subscripts": ("ij", "jk", "ki")}

    def rename(made):
        text = json.dumps(made)
        assert text.count('"subscripts"') == 1
        return json.loads(text.replace('"subscripts"', '"letters"'))

    again = unpacked(changed(packed(graph), rename))
    assert same_graph(graph, again)
    np.testing.assert_array_equal(again(x, y), (x @ y).T)


def test_a_gradient_graph_comes_back_and_is_differentiated_again(rng):
    graph = wg.trace(lambda x: np.sum(np.sin(x) * x**3))(wg.spec("n"))
    first = round_trip(graph.grad())
    assert {n.level for n in first.nodes} == {0, 1}
    x = rng.normal(size=4)
    np.testing.assert_array_equal(first(x), graph.grad()(x))
    second = round_trip(wg.trace(lambda x: np.sum(first(x)))(wg.spec("n")).grad())
    expected = wg.grad(lambda x: np.sum(wg.grad(graph)(x)))(x)
    np.testing.assert_allclose(second(x), expected, rtol=1e-12)


def test_a_tape_comes_back_as_a_graph_of_its_variables():
    x = wg.tensor([0.5, 1.0], requires_grad=True)
    graph = wg.Graph(np.sum(np.sin(x) * 2.0))
    again = round_trip(graph)
    assert str(again) == str(graph)
    assert float(again()) == float(graph()) == 2.0 * np.sin([0.5, 1.0]).sum()


def test_a_tape_whose_shape_depends_on_values_is_refused():
    x = wg.tensor([0.5, -1.0, 2.0], requires_grad=True)
    with pytest.raises(GraphError, match=r"node %3 \(getitem\): a boolean mask"):
        packed(wg.Graph(x[x > 0.0]))


def test_a_history_outside_of_the_graph_is_refused():
    w = wg.tensor([1.0, 2.0], requires_grad=True)
    y = w * 2.0
    with pytest.raises(GraphError, match="history outside"):
        packed(wg.trace(lambda x: np.sum(x * y))(wg.spec(2)))


def test_several_graphs_share_their_variables():
    w = wg.variable(1.0, "w")
    read = wg.trace(lambda x: x * w)(wg.spec())

    def step(x):
        w[...] = w + x
        return w

    again = round_trip({"read": read, "write": wg.trace(step)(wg.spec()), "w": w})
    again["write"](4.0)
    assert again["w"].item() == 5.0 and float(again["read"](2.0)) == 10.0
    assert w.item() == 1.0


def test_variables_live_as_long_as_the_graph():
    import gc

    w = wg.variable([1.0, 2.0], "w")
    data = packed(wg.trace(lambda x: x * w)(wg.spec(2)))
    again = unpacked(data)
    gc.collect()
    np.testing.assert_array_equal(again(np.ones(2)), [1.0, 2.0])
    np.testing.assert_array_equal(again.grad and again(np.ones(2)), [1.0, 2.0])


def test_variables_are_bound_to_tensors_of_the_program():
    w = wg.variable([1.0, 2.0], "w")
    data = packed(wg.trace(lambda x: np.sum(x * w))(wg.spec(2)))
    mine = wg.variable([10.0, 20.0])
    graph = unpacked(data, variables={"w": mine})
    assert mine.node.name is None
    assert float(graph(np.ones(2))) == 30.0
    with wg.no_grad():
        mine *= 2.0
    assert float(graph(np.ones(2))) == 60.0
    with pytest.raises(ArgumentError, match=r"'v'.*the variables 'w'"):
        unpacked(data, variables={"v": mine})
    with pytest.raises(ArgumentError, match="not a variable"):
        unpacked(data, variables={"w": np.ones(2)})
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        unpacked(data, variables={"w": wg.variable(np.ones(3))})
    with pytest.raises(DtypeError, match="float32"):
        unpacked(data, variables={"w": wg.variable(np.ones(2, np.float32))})
    with pytest.raises(DtypeError, match="discrete"):
        unpacked(data, variables={"w": wg.variable(np.ones(2), differentiable=False)})


def test_variables_of_one_name_are_distinguished():
    a, b = wg.variable([1.0], "w"), wg.variable([2.0], "w")
    data = packed(wg.trace(lambda x: x * a - b)(wg.spec(1)))
    assert wg.keep.inspect(_file(data)).variables == ["w", "w~2"]
    graph = unpacked(data, variables={"w~2": wg.variable([5.0])})
    np.testing.assert_array_equal(graph(np.ones(1)), [-4.0])


def test_a_variable_that_is_no_longer_what_it_was_is_refused():
    w = wg.variable([1.0, 2.0], "w")
    graph = wg.trace(lambda x: x * w)(wg.spec(2))
    w.node = wg.variable([1.0, 2.0, 3.0]).node
    with pytest.raises(GraphError, match="Trace again"):
        packed(graph)


def test_requirements_on_sizes_come_back():
    graph = wg.trace(lambda x: x[3:] - x[:-3])(wg.spec("n"))
    again = round_trip(graph)
    assert again.requirements == graph.requirements and graph.requirements
    for g in (graph, again):
        with pytest.raises(ShapeError, match="is not valid for the sizes n = 2"):
            g(np.ones(2))


def test_what_is_kept_of_the_users_files():
    graph = wg.trace(lambda x: np.sin(x))(wg.spec())
    where = graph.nodes[-1].where
    assert "/" in where and unpacked(packed(graph, where="full")).nodes[-1].where == where
    assert unpacked(packed(graph)).nodes[-1].where == where.rpartition("/")[2]
    assert unpacked(packed(graph, where=None)).nodes[-1].where is None
    with pytest.raises(ArgumentError, match="where='all'"):
        packed(graph, where="all")


def test_the_contents_are_listed():
    w = wg.variable([1.0 + 1j, 2.0], "w")
    data = packed({"g": wg.trace(lambda x: np.sin(x * w))(wg.spec(2)), "a": np.ones((2, 3), "f4")})
    found = wg.keep.inspect(_file(data))
    assert {k: str(v) for k, v in found.arrays.items()} == {
        "w": "complex128[2]", "a": "float32[2,3]"
    }  # fmt: skip
    assert found.variables == ["w"] and found.version == 1
    assert found.operations == ["multiply", "sin"]
