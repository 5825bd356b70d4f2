"""What `dir` shows, and what is said of names that PyTorch and JAX have and wengert has not."""

import importlib
import inspect
import re
import subprocess
import sys
import types

import numpy as np
import optree
import pytest

import wengert as wg
from wengert._engine.core import other_libraries

PACKAGES = """numpy numpy.linalg numpy.fft numpy.random numpy.polynomial scipy scipy.fft
    scipy.integrate scipy.interpolate scipy.linalg scipy.ndimage scipy.signal scipy.spatial
    scipy.spatial.distance scipy.special
    scipy.stats bijectors nn nn.functional nn.init nn.training optim data extend testing
    graphs rewrite backends show keep axes debug random
    compiling memory cache compat compat.autograd compat.autograd.numpy compat.autograd.scipy sparse
    control errors estimators ops onnx cli compat.samplers""".split()


def module(name):
    return importlib.import_module(f"wengert.{name}" if name else "wengert")


@pytest.mark.parametrize("name", ["", *PACKAGES])
def test_dir_shows_public_names_only(name):
    namespace = module(name)
    shown = [n for n in dir(namespace) if not n.startswith("__")]
    assert shown and not [n for n in shown if n.startswith("_")]
    assert set(namespace.__all__) <= set(dir(namespace))
    for n in set(shown) - set(namespace.__all__):  # a submodule, or something asked for lazily
        thing = getattr(namespace, n)
        assert isinstance(thing, types.ModuleType) or not name, n
        assert getattr(thing, "__module__", "wengert").startswith("wengert")
    assert not {"Any", "np", "importlib", "annotations", "FAMILIES", "ELSEWHERE"} & set(shown)


FORMS = """
import importlib, sys
import wengert
for name in sys.argv[1:]:
    found = importlib.import_module(f"wengert.{name}")  # import a.b
    scope = {}
    exec(f"from wengert import {name} as there", scope)
    assert scope["there"] is found, name
    for n in getattr(found, "__all__", ()):
        exec(f"from wengert.{name} import {n} as thing", scope)
        assert scope["thing"] is getattr(found, n), (name, n)
        if isinstance(scope["thing"], type):
            assert "_engine" not in repr(scope["thing"]), scope["thing"]
assert not [n for n in dir(wengert) if "engine" in n]
"""


def test_public_modules_are_imported_in_every_form():
    names = sorted({*wg.PACKAGES, *(n for n in wg.ENGINE if "." not in n)} - {"ops"})
    done = subprocess.run([sys.executable, "-c", FORMS, *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_public_module_is_no_package():
    """Else what is below it would be imported a second time, by another name."""
    with pytest.raises(ModuleNotFoundError, match="not a package"):
        importlib.import_module("wengert.backends.llvm")


def test_names_of_the_package_are_there():
    for n in dir(wg):
        getattr(wg, n)


@pytest.mark.parametrize(
    ("read", "ours"),
    [
        (lambda t: t.unsqueeze(0), r"np\.expand_dims"),
        (lambda t: t.clone(), r"x\.copy\(\)"),
        (lambda t: t.to("cpu"), r"x\.astype"),
        (lambda t: t.clamp(0, 1), r"x\.clip"),
        (lambda t: t.at[0].set(1.0), r"y\[i\] = v"),
        (lambda t: t.permute(0), r"x\.transpose"),
        (lambda t: t.add_(1.0), r"x \+= y"),
        (lambda t: wg.lax, r"wengert\.scan"),
        (lambda t: wg.remat, r"wengert\.checkpoint"),
        (lambda t: wg.make_jaxpr, r"wengert\.trace"),
        (lambda t: wg.numpy.relu, r"wengert\.nn\.functional\.relu"),
        (lambda t: wg.numpy.cat, r"wengert\.numpy\.concatenate"),
    ],
)
def test_a_name_of_pytorch_or_jax_says_what_ours_is(read, ours):
    with pytest.raises(AttributeError, match=ours + r".*test_public_names\.py") as caught:
        read(wg.tensor([1.0, 2.0]))
    assert "module 'numpy'" not in str(caught.value)


def test_what_nobody_has():
    with pytest.raises(AttributeError, match=r"^module 'wengert.numpy' has no attribute 'relux'$"):
        _ = wg.numpy.relux
    with pytest.raises(AttributeError, match=r"^module 'wengert' has no attribute 'gradient_of'$"):
        _ = wg.gradient_of
    with pytest.raises(AttributeError, match="has no attribute 'unsqueezed'"):
        _ = wg.tensor(1.0).unsqueezed
    assert not hasattr(wg.tensor(1.0), "clone") and "clone" not in dir(wg.tensor(1.0))
    assert "sum" in dir(wg.tensor(1.0))


def test_arguments_of_pytorch():
    x = wg.tensor(np.ones((2, 3)))
    with pytest.raises(TypeError, match=r"x\.sum\(dim=.*axis= here.*test_public_names\.py"):
        x.sum(dim=0)
    with pytest.raises(TypeError, match="keepdims="):
        x.mean(0, keepdim=True)


TABLES = {
    "TENSOR": wg.tensor(np.ones((2, 2))),
    "PACKAGE": wg,
    "NUMPY": wg.numpy,
}


@pytest.mark.parametrize("table", TABLES)
def test_the_names_that_are_recommended_exist(table):
    x = wg.tensor(np.ones((2, 2)))
    for name, ours in getattr(other_libraries, table).items():
        for path in re.findall(r"\b(?:wengert|np|optree|x)(?:\.[A-Za-z_]\w*)+", ours):
            root, *parts = path.split(".")
            thing = {"wengert": wg, "np": np, "x": x, "optree": optree}[root]
            for part in parts:
                thing = getattr(thing, part)  # AttributeError: `ours` of `name` is not there
            assert thing is not None or path.endswith(("grad_fn", "grad")), name


@pytest.mark.parametrize("table", TABLES)
def test_names_in_the_tables_are_not_ours(table):
    assert not [n for n in getattr(other_libraries, table) if n in dir(TABLES[table])]


def test_modules_of_the_engine_have_their_docstrings_at_first_use():
    read = "import wengert; print(all((getattr(wengert, n).__doc__ or '').count('\\n') for n in "
    names = sorted(name for name in wg.ENGINE if "." not in name)
    done = subprocess.run(
        [sys.executable, "-c", f"{read}{names}))"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"
    assert inspect.getdoc(wg.tree) == inspect.getdoc(sys.modules["wengert._engine.tensor.tree"])
    assert inspect.getdoc(type(wg.tree)).startswith("A public name for a module")
