"""Sums over partitions in one process and by pools: values, derivatives, order, refusals."""

import itertools
import multiprocessing
import os
import pickle
import signal
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

import wengert as wg
from wengert.distributed import SumOver, sum_over
from wengert.distributed.agreement import packed
from wengert.distributed.partition_programs import arguments_of, run_packed
from wengert.distributed.tree_sums import TreeSum, groups, plus
from wengert.errors import (
    ArgumentError,
    CommunicationError,
    NotDifferentiableError,
    PartitionError,
    StructureError,
)


def loss(w, x, y):
    return np.sum(np.log1p((x @ w - y) ** 2)) + 0.1 * np.sum(np.sin(w)) * x.shape[0]


def nested(params, x):
    z = np.tanh(x @ params["a"] + params["b"][0])
    return params["scale"] * np.sum(z * z)


@pytest.fixture
def data(rng):
    """Uneven partitions, one of them empty; all data; a point, and a direction."""
    x, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    bounds = [0, 7, 14, 14, 30, 41, 52, 59, 60]
    parts = [(x[a:b], y[a:b]) for a, b in itertools.pairwise(bounds)]
    return SimpleNamespace(
        x=x, y=y, parts=parts, w=rng.normal(size=4), v=rng.normal(size=4),
        whole=lambda w: loss(w, x, y),
    )  # fmt: skip


def equal(a, b):
    """Whether two results have the same structure, dtypes and bits."""
    (xs, s), (ys, t) = (wg._engine.core.pytree.flatten(r) for r in (a, b))
    return s == t and all(
        np.asarray(x).dtype == np.asarray(y).dtype and np.array_equal(x, y)
        for x, y in zip(xs, ys, strict=True)
    )


# ---- values and derivatives ----------------------------------------------------------------------


def test_value_gradient_and_product_are_those_of_the_whole(data):
    total = sum_over(loss, data.parts)
    value, gradient = total.value_and_grad(data.w)
    assert value == total(data.w) == pytest.approx(data.whole(data.w), rel=1e-13)
    assert np.allclose(gradient, wg.grad(data.whole)(data.w), rtol=1e-12)
    assert np.array_equal(gradient, total.grad(data.w))
    hessian = wg.hessian(data.whole)(data.w)
    assert np.allclose(total.hvp(data.w, data.v), hessian @ data.v, rtol=1e-11)
    assert np.allclose(total.hvp(data.w, np.array([1, 0, 0, 0])), hessian[:, 0], rtol=1e-11)


def test_one_partition_has_the_bits_of_the_function(data):
    whole = wg.jit(wg.value_and_grad(loss))
    with wg.set_threads(1):
        expected = whole(data.w, data.x, data.y)
    assert equal(sum_over(loss, [(data.x, data.y)]).value_and_grad(data.w), expected)


def test_transformations(data):
    total, w, v = sum_over(loss, data.parts), data.w, data.v
    composed = [lambda w, f=f: np.exp(-f(2.0 * w) / 60.0) * w[0] for f in (total, data.whole)]
    for f, g in ((total, data.whole), composed):
        hessian = wg.hessian(g)(w)
        assert np.allclose(wg.grad(f)(w), wg.grad(g)(w), rtol=1e-11)
        assert np.allclose(wg.jvp(f, (w,), (v,)), wg.jvp(g, (w,), (v,)), rtol=1e-11)
        assert np.allclose(wg.hvp(f, (w,), (v,)), hessian @ v, rtol=1e-10)
        assert np.allclose(wg.hessian(f)(w), hessian, rtol=1e-10)
        assert np.allclose(wg.jacrev(wg.grad(f))(w), hessian, rtol=1e-10)
        assert np.allclose(wg.jit(wg.value_and_grad(f))(w)[1], wg.grad(g)(w), rtol=1e-11)
        assert np.allclose(wg.jit(wg.hessian(f))(w), hessian, rtol=1e-10)
        points = np.stack([w, v])
        assert np.allclose(wg.vmap(wg.grad(f))(points)[1], wg.grad(g)(v), rtol=1e-11)


def test_third_derivatives(data):
    def third(f):
        return wg.grad(lambda w: np.sum(wg.hvp(f, (w,), (data.v,)) ** 2))(data.w)

    assert np.allclose(third(sum_over(loss, data.parts)), third(data.whole), rtol=1e-9)


def test_methods_are_differentiable(data):
    total = sum_over(loss, data.parts)
    jacobian = wg.jacobian(total.grad)(data.w)
    assert np.allclose(jacobian, wg.hessian(data.whole)(data.w), rtol=1e-11)
    by_v = wg.jacobian(lambda v: total.hvp(data.w, v))(data.v)
    assert np.allclose(by_v, jacobian, rtol=1e-11)


def test_one_pass_computes_value_and_gradient(data):
    loads = []

    def partition():
        loads.append(0)
        return data.parts[0]

    total = sum_over(loss, [partition])
    wg.value_and_grad(total)(data.w)
    assert len(loads) == 1
    total.hvp(data.w, data.v)
    assert len(loads) == 2


def test_all_columns_of_a_hessian_are_computed_in_one_pass(rng):
    x, w, loads = rng.normal(size=(40, 30)), rng.normal(size=30), []

    def partition():
        loads.append(0)
        return x

    hessian = wg.hessian(sum_over(lambda w, x: np.sum(np.cos(x @ w)), [partition]))(w)
    assert np.allclose(hessian, wg.hessian(lambda w: np.sum(np.cos(x @ w)))(w))
    assert len(loads) == 2  # value and gradient; the columns


def test_a_branch_that_is_not_taken_has_gradient_zero():
    total = sum_over(lambda w, x: np.sum(np.sqrt(w) * x), [np.ones(2)])
    for f in (wg.grad, lambda f: wg.jit(wg.grad(f))):
        slope = f(lambda w: np.where(w > 0.0, total(w), 3.0 * w))(0.0)
        assert slope == 3.0


def test_pytrees(rng):
    params = {"a": rng.normal(size=(3, 2)), "b": (0.5, np.ones(2)), "scale": 2.0}
    direction = {"a": rng.normal(size=(3, 2)), "b": (1.0, np.zeros(2)), "scale": 0.5}
    xs = [rng.normal(size=(n, 3)) for n in (4, 2, 5)]

    def whole(p):
        return sum(nested(p, x) for x in xs)

    total = sum_over(nested, xs)
    value, gradient = total.value_and_grad(params)
    expected = wg.grad(whole)(params)
    product = total.hvp(params, direction)
    expected_product = wg.hvp(whole, (params,), (direction,))
    assert value == pytest.approx(whole(params))
    for got, wanted in ((gradient, expected), (product, expected_product)):
        assert np.allclose(got["a"], wanted["a"]) and np.isclose(got["scale"], wanted["scale"])
        assert np.isclose(got["b"][0], wanted["b"][0]) and not np.any(got["b"][1])
    assert equal(wg.grad(total)(params), gradient)
    only_scale = wg.grad(lambda s: total({**params, "scale": s}))(2.0)
    assert only_scale == gradient["scale"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_results_have_the_dtype_of_the_parameters(dtype, rng):
    w = rng.normal(size=3).astype(dtype)
    xs = [rng.normal(size=(n, 3)).astype(dtype) for n in (3, 4)]

    def f(w, x):
        return np.sum(np.abs(x @ w) ** 2)

    value, gradient = sum_over(f, xs).value_and_grad(w)
    assert value.dtype == np.zeros(1, dtype).real.dtype and gradient.dtype == dtype
    assert np.allclose(gradient, wg.grad(lambda w: sum(f(w, x) for x in xs))(w), rtol=1e-4)
    traced = wg.jit(wg.value_and_grad(sum_over(f, xs)))(w)
    assert traced[0].dtype == value.dtype and np.allclose(traced[1], gradient, rtol=1e-4)


def test_leaves_that_are_not_numbers():
    def f(p, x):
        return p["w"] * np.sum(x) if p["kind"] == "sum" else p["w"] * np.max(x)

    total = sum_over(f, [np.arange(3.0), np.arange(4.0)])
    assert total({"w": 2.0, "kind": "sum"}) == 18.0
    assert total({"w": 2.0, "kind": "max"}) == 10.0
    assert wg.grad(lambda w: total({"w": w, "kind": "max"}))(2.0) == 5.0
    with pytest.raises(NotDifferentiableError, match=r"params\['kind'\] is str"):
        total.grad({"w": 2.0, "kind": "max"})


def test_captured_values_are_read_at_each_call():
    scale, shift = np.ones(2), [1.0]
    total = sum_over(lambda w, x: np.sum(scale * w * x) + shift[0], [np.ones(2)] * 3)
    assert total(1.0) == 9.0
    scale[0], shift[0] = 3.0, 0.0
    assert total(1.0) == 12.0 and total.grad(1.0) == 12.0


def test_loops_and_branches_on_values():
    def f(w, x):
        result = 0.0
        for i in range(x.shape[0]):
            if x[i] > 0.5:
                result += w * x[i]
            else:
                result += w**2
        return result

    xs = [np.linspace(0.0, 1.0, n) for n in (2, 30, 31)]
    gradient = sum(wg.grad(f)(1.5, x) for x in xs)
    assert sum_over(f, xs).grad(1.5) == pytest.approx(gradient)


def test_functions_that_are_not_compiled():
    calls = []

    def f(w, x):
        calls.append(type(x))
        return w * float(np.sum(np.asarray(x)))

    total = sum_over(f, [np.ones(2), np.ones(3)], compiled=False)
    assert total.grad(2.0) == total.grad(2.0) == 5.0
    assert calls == [np.ndarray] * 4


def test_optimizers(data):
    total = sum_over(loss, data.parts)
    result = minimize(total, data.w, jac=total.grad, hessp=total.hvp, method="trust-ncg")
    assert result.success and np.abs(total.grad(result.x)).max() < 1e-4
    w = data.w
    optimizer = wg.optim.Adam([wg.tensor(w, requires_grad=True)], lr=0.05)
    (p,) = optimizer.param_groups[0]["params"]
    before = float(total(p))
    for _ in range(20):
        optimizer.zero_grad()
        total(p).backward()
        optimizer.step()
    assert float(total(p)) < before


def test_no_partitions():
    total = sum_over(loss, [])
    value, gradient = total.value_and_grad(np.ones(2))
    assert value == 0.0 and np.array_equal(gradient, np.zeros(2))
    assert np.array_equal(wg.hessian(total)(np.ones(2)), np.zeros((2, 2)))


# ---- partitions ----------------------------------------------------------------------------------


def test_partitions_as_arguments():
    x = np.ones(2)
    assert arguments_of(x) == (x,)
    assert arguments_of((x, 1.0)) == (x, 1.0)
    assert arguments_of(lambda: (x, 2)) == (x, 2)
    assert arguments_of([x, x]) == ([x, x],)
    assert arguments_of([], is_bag=True) is None
    (numbers,) = arguments_of([1.0, 2], is_bag=True)
    assert numbers.dtype == float
    a, b = arguments_of([(1.0, 2), (3.0, 4)], is_bag=True)
    assert np.array_equal(a, [1.0, 3.0]) and np.array_equal(b, [2, 4]) and b.dtype.kind == "i"
    (columns,) = arguments_of([{"a": 1.0}, {"a": 2.0}], is_bag=True)
    assert np.array_equal(columns["a"], [1.0, 2.0])
    assert arguments_of([(x, 1.0)], is_bag=True) == ([(x, 1.0)],)


def test_data_frames():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "n": [1, 2], "s": ["x", "y"]})
    (columns,) = arguments_of(frame[["a", "n"]])
    assert list(columns) == ["a", "n"] and columns["n"].dtype == np.int64
    total = sum_over(lambda w, d: np.sum(d["a"] * w), [frame[["a", "n"]], frame[["a", "n"]]])
    assert total.grad(1.0) == 6.0
    assert sum_over(lambda w, x: w * np.sum(x), [frame["a"]]).grad(1.0) == 3.0
    with pytest.raises(PartitionError, match="the column 's' of a data frame"):
        sum_over(lambda w, d: w, [frame])(1.0)


def test_memory_maps(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(5.0))
    total = sum_over(lambda w, x: w * np.sum(x), [np.load(tmp_path / "x.npy", mmap_mode="r")])
    assert total.grad(1.0) == 10.0


# ---- the order of additions ----------------------------------------------------------------------


@pytest.mark.parametrize("split_every", [2, 3, 8])
def test_the_tree_of_additions(split_every, rng):
    for count in range(1, 30):
        terms = [[rng.normal(size=2), rng.normal()] for _ in range(count)]
        level = [list(t) for t in terms]
        while len(level) > 1:
            level = [plus(g) for g in groups(level, split_every)]
        total = TreeSum(split_every)
        before = [t[0].copy() for t in terms]
        for term in terms:
            total.add(term)
        assert equal(total.total(), level[0])
        assert all(np.array_equal(a, t[0]) for a, t in zip(before, terms, strict=True))


def test_additions_of_other_dtypes_and_of_nothing():
    assert plus([None, None]) is None and TreeSum(2).total() is None
    a, b, c = np.ones(2, np.float32), np.ones(2, np.float32), np.full(2, 0.1)
    assert plus([[a], None, [b], [c]])[0].dtype == np.float64
    assert np.array_equal(a, [1.0, 1.0])


def test_bits_do_not_depend_on_what_a_process_had_before(data):
    """A program for one shape and one for all shapes may add in different orders."""
    reverse = sum_over(loss, data.parts[::-1])
    reverse.value_and_grad(data.w)
    for k, part in enumerate(data.parts):
        alone = sum_over(loss, [part]).value_and_grad(data.w)
        reverse.partitions = [data.parts[k]]
        assert equal(reverse.value_and_grad(data.w), alone)


def test_one_program_for_all_lengths(data):
    total = sum_over(loss, data.parts)
    total.value_and_grad(data.w)
    (program,) = total._programs.values()
    kinds = [key[0] for key in program._programs if isinstance(key[0], str)]
    assert sorted(kinds) == ["exact", "general"]  # the empty partition has one of its own


# ---- executors -----------------------------------------------------------------------------------


class Reversed(ThreadPoolExecutor):
    """Computes what is submitted when its result is asked for, the last first."""

    def submit(self, fn, /, *args, **kwargs):
        waiting = self.__dict__.setdefault("waiting", [])

        class Last(Future):
            def result(this, timeout=None):
                while waiting:
                    future, call = waiting.pop()
                    future.set_result(call())
                return super().result(timeout)

        future = Last()
        waiting.append((future, lambda: fn(*args, **kwargs)))
        return future


@pytest.mark.parametrize("make", [lambda: ThreadPoolExecutor(3), lambda: Reversed(2)])
def test_threads(make, data):
    threads = wg.get_threads()
    expected = sum_over(loss, data.parts, split_every=3).value_and_grad(data.w)
    with make() as executor:
        total = sum_over(loss, data.parts, split_every=3, executor=executor)
        assert equal(total.value_and_grad(data.w), expected)
        with pytest.raises(PartitionError, match=r"partition \d of 8") as caught:
            sum_over(lambda w, x, y: w @ x, data.parts, executor=executor)(data.w)
        assert caught.value.error is caught.value.__cause__ is not None
    assert wg.get_threads() == threads


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        yield executor


def test_processes(processes, data):
    scale = 2.0

    def scaled(w, x, y):  # pickled by value, with its source
        result = 0.0
        for i in range(x.shape[0]):
            if y[i] > 0.0:
                result += scale * np.sum(w * x[i])
            else:
                result += np.sum(w**2)
        return result

    loaded = [lambda part=part: part for part in data.parts]
    for f in (loss, scaled):
        expected = sum_over(f, data.parts, split_every=3).value_and_grad(data.w)
        for parts in (data.parts, loaded):
            total = sum_over(f, parts, split_every=3, executor=processes)
            assert equal(total.value_and_grad(data.w), expected)
    assert np.array_equal(wg.grad(total)(data.w), expected[1])
    scale = 5.0
    expected = sum_over(f, data.parts, split_every=3).value_and_grad(data.w)
    assert equal(total.value_and_grad(data.w), expected)


class StrangeError(Exception):
    """Cannot be unpickled."""

    def __init__(self, a, b):
        super().__init__(f"{a} {b}")


def test_errors_of_processes(processes, data):
    def fails(w, x, y):
        raise ValueError("wrong data") if x.shape[0] else StrangeError(1, 2)

    with pytest.raises(PartitionError, match="partition 0 of 8: ValueError: wrong data") as caught:
        sum_over(fails, data.parts, executor=processes)(data.w)
    assert caught.value.index == 0 and isinstance(caught.value.error, ValueError)
    assert f"test_sums.py:{fails.__code__.co_firstlineno + 1}" in str(caught.value)
    with pytest.raises(PartitionError, match="StrangeError: 1 2") as caught:
        sum_over(fails, [data.parts[2]], executor=processes)(data.w)
    assert caught.value.error is None
    with pytest.raises(ArgumentError, match="cannot be sent to another process"):
        sum_over(lambda w, x, y: w[0] * id(rng), data.parts, executor=processes)(data.w)


rng = (x for x in ())  # a generator, which cannot be pickled


def test_a_process_that_ends():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        total = sum_over(lambda w, x: w, [lambda: os.kill(os.getpid(), signal.SIGKILL)] * 2)
        total.executor = executor
        with pytest.raises(CommunicationError, match=r"ended while partition 0 or one"):
            total(1.0)


@pytest.mark.parametrize("options", [{"n_jobs": 1}, {"n_jobs": 2, "prefer": "threads"}])
@pytest.mark.parametrize("return_as", ["list", "generator"])
def test_joblib(options, return_as, data):
    joblib = pytest.importorskip("joblib", reason="needs joblib")
    expected = sum_over(loss, data.parts).value_and_grad(data.w)
    executor = joblib.Parallel(**options, return_as=return_as)
    assert equal(sum_over(loss, data.parts, executor=executor).value_and_grad(data.w), expected)


def test_an_error_cancels_what_waits(data):
    started = []

    def part(k):
        def load():
            started.append(k)
            raise KeyboardInterrupt if k == 0 else ValueError("late")

        return load

    with ThreadPoolExecutor(1) as executor:
        total = sum_over(lambda w, x: w, [part(k) for k in range(50)], executor=executor)
        with pytest.raises(KeyboardInterrupt):
            total(1.0)
    assert len(started) < 5  # four wait for each worker, and are cancelled


# ---- pickling and packed functions ---------------------------------------------------------------


def test_pickling(data):
    total = sum_over(loss, data.parts, split_every=3)
    expected = total.value_and_grad(data.w)
    copy = pickle.loads(pickle.dumps(total))
    assert isinstance(copy, SumOver) and equal(copy.value_and_grad(data.w), expected)
    with ThreadPoolExecutor(1) as executor:
        total.executor = executor
        copy = pickle.loads(pickle.dumps(total))
    assert copy.executor is None and equal(copy.value_and_grad(data.w), expected)


def test_programs_are_made_once_for_equal_functions(data, monkeypatch):
    from wengert.distributed import partition_programs

    recent = partition_programs._Recent(2)
    monkeypatch.setattr(partition_programs, "programs", recent)
    total = sum_over(lambda w, x, y: loss(w, x, y), data.parts)

    def once(method, *args):
        method(*args)
        return len(recent)

    class Here(ProcessPoolExecutor):
        def __init__(self):
            pass

        def submit(self, fn, /, *args):
            future = Future()
            fn, args = pickle.loads(pickle.dumps((fn, args)))
            future.set_result(fn(*args))
            return future

    total.executor = Here()
    assert once(total.grad, data.w) == 1
    assert once(total.grad, 2.0 * data.w) == 1
    assert once(total.hvp, data.w, data.v) == 2
    assert once(total, data.w) == 2  # the least recently used was removed


def test_a_function_whose_file_is_not_there(tmp_path):
    source = "def f(w, x):\n    if x[0] > 0.0:\n        return w * 2.0\n    return w\n"
    path = tmp_path / "program.py"
    path.write_text(source, encoding="utf-8")
    namespace = {"__name__": "__main__"}
    exec(compile(source, str(path), "exec"), namespace)
    sent = packed(namespace["f"], "f")
    path.write_text("# other lines\n" + source, encoding="utf-8")
    copy = sent.unpickled()
    assert copy.__code__.co_filename.startswith(f"{path}#")
    assert sum_over(copy, [np.ones(1), -np.ones(1)]).grad(1.0) == 3.0


def test_a_task_is_a_function_of_bytes(data):
    total = sum_over(loss, data.parts)
    expected = sum_over(loss, data.parts[:1]).value_and_grad(data.w)
    total.grad(data.w)
    ((template, steps),) = total._programs
    program = total._packed(template.summed(steps))
    operands = packed([data.w], "w")
    result = run_packed(program, operands, packed(lambda: data.parts[0], "p"), 0, 8)
    assert equal(result, list(expected))


# ---- refusals ------------------------------------------------------------------------------------


def test_refusals(data):
    with pytest.raises(ArgumentError, match=r"np\.array_split"):
        sum_over(loss, data.x)
    with pytest.raises(ArgumentError, match="partitions is a int"):
        sum_over(loss, 3)
    with pytest.raises(ArgumentError, match="partitions is a function"):
        sum_over(loss, loss)
    for split_every in (1, 0, True, "8", 2.5):
        with pytest.raises(ArgumentError, match="split_every="):
            sum_over(loss, data.parts, split_every=split_every)
    with pytest.raises(ArgumentError, match="executor is a int"):
        sum_over(loss, data.parts, executor=2)(data.w)
    with pytest.raises(ArgumentError, match="not a function"):
        sum_over("loss", data.parts)
    total = sum_over(loss, data.parts)
    with pytest.raises(NotDifferentiableError, match="which has no derivative"):
        total.grad(np.arange(4))
    with pytest.raises(StructureError, match="contain no array"):
        total(None)
    with pytest.raises(StructureError, match="the same shape"):
        total.hvp(data.w, np.ones(3))
    with pytest.raises(StructureError, match="the same nesting"):
        total.hvp(data.w, [data.v, data.v, data.v])
    with pytest.raises(PartitionError, match=r"partition 0 of 8: NotScalarError: .*<lambda>"):
        sum_over(lambda w, x, y: w, data.parts)(data.w)
    with pytest.raises(PartitionError, match="partition 0 of 8: NotScalarError"):
        wg.grad(sum_over(lambda w, x, y: w, data.parts))(data.w)


def test_errors_in_compiled_programs_and_graphs(data):
    def fails(w, x, y):
        raise ValueError("wrong data")

    total = sum_over(fails, data.parts)
    for f in (wg.jit(lambda w: total(w)), wg.trace(total)(wg.spec(4)).run, wg.grad(total)):
        with pytest.raises(PartitionError, match="partition 0 of 8: ValueError: wrong") as caught:
            f(data.w)
        assert caught.value.index == 0 and isinstance(caught.value.error, ValueError)
