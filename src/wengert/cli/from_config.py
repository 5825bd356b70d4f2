"""Models, losses, optimizers and data by the names in a file.

Only names of wengert's own are looked up, so that a description runs no program of somebody
else's.  Data come from a NumPy file, a table of comma-separated numbers, a folder of pictures, of
IDX files (MNIST) or of CIFAR's, or are one of scikit-learn's small sets.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from wengert import data, nn, optim
from wengert.errors import ArgumentError, FileError

from .toml_config import only

SETS = ("digits", "iris", "wine", "breast_cancer", "diabetes")
DATA = ("source", "inputs", "target", "held_out", "scale", "shape", "dtype")


def model_of(layers: Any, rng: np.random.Generator) -> nn.Module:
    """The modules one after the other; those that begin at random draw from `rng`."""
    if not isinstance(layers, Sequence) or not layers:
        raise ArgumentError(
            "[[model]] must be a list of layers, each with the name of a module in `layer`."
        )
    made = []
    for k, entry in enumerate(layers):
        if "layer" not in entry:
            raise ArgumentError(f"[[model]] {k} has no `layer`. Name a module of wengert.nn.")
        options = {name: value for name, value in entry.items() if name != "layer"}
        kind = _named(nn, nn.Module, entry["layer"], f"[[model]] {k}")
        if "rng" in inspect.signature(kind).parameters:
            options.setdefault("rng", rng)
        made.append(_made(kind, options, f"[[model]] {k}, {entry['layer']}"))
    return nn.Sequential(*made)


def loss_of(entry: Mapping[str, Any]) -> Any:
    """A loss of `wengert.nn`."""
    options = {"name": "CrossEntropyLoss", **entry}
    name = options.pop("name")
    return _made(_named(nn, nn.Module, name, "[loss]"), options, f"[loss] {name}")


def optimizer_of(entry: Mapping[str, Any], model: nn.Module) -> Any:
    """An optimiser of `wengert.optim`, of all parameters."""
    options = {"name": "Adam", **entry}
    name = options.pop("name")
    kind = _named(optim, optim.Optimizer, name, "[optimizer]")
    return _made(kind, {"params": model.parameters(), **options}, f"[optimizer] {name}")


def _named(module: Any, base: type, name: Any, where: str) -> Any:
    kinds = {
        n: k
        for n in module.__all__
        if isinstance(k := getattr(module, n), type) and issubclass(k, base)
    }
    only({name: None}, kinds, where)
    return kinds[name]


def _made(kind: Any, options: Mapping[str, Any], where: str) -> Any:
    parameters = inspect.signature(kind).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        only(options, parameters, where)
    lists = {n: tuple(v) if isinstance(v, list) else v for n, v in options.items()}
    try:
        return kind(**lists)
    except TypeError as error:
        raise ArgumentError(f"{where}: {error}.") from error


# ---- data --------------------------------------------------------------------------------------


def data_of(entry: Mapping[str, Any], folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    """Pairs (inputs, target) to learn from, and those held out or None."""
    only(entry, DATA, "[data]")
    if "source" not in entry:
        raise ArgumentError(f"[data] has no `source`. Name a file, a folder, or one of {SETS}.")
    x, y = _arrays(entry, folder)
    if len(x) != len(y):
        raise ArgumentError(
            f"[data]: {len(x)} inputs and {len(y)} targets. Each input needs one target."
        )
    x = np.asarray(x, entry.get("dtype", "float32")) * entry.get("scale", 1.0)
    x = x.astype(entry.get("dtype", "float32"), copy=False)
    if "shape" in entry:
        x = x.reshape(len(x), *entry["shape"])
    y = y if y.dtype.kind in "iu" else np.asarray(y, x.dtype)
    share = entry.get("held_out", 0.0)
    if not 0 <= share < 1:
        raise ArgumentError(f"[data] held_out = {share}: must be at least 0 and less than 1.")
    count = round(len(x) * share)
    order = rng.permutation(len(x))
    kept, held = order[count:], order[:count]
    return (x[kept], y[kept]), (x[held], y[held]) if count else None


def _arrays(entry: Mapping[str, Any], folder: Path) -> tuple[Any, Any]:
    source = str(entry["source"])
    if source in SETS:
        found = import_module("sklearn.datasets")
        return getattr(found, f"load_{source}")(return_X_y=True)  # type: ignore[no-any-return]
    path = folder / source
    if path.suffix == ".npz":
        names = entry.get("inputs", "x"), entry.get("target", "y")
        with np.load(path, allow_pickle=False) as file:
            for name in names:
                only({name: None}, file.files, str(path))
            return file[names[0]], file[names[1]]
    if path.suffix == ".csv":
        return _table(path, entry)
    if path.is_dir():
        return _folder(path)
    raise FileError(
        f"[data] source = {source!r}: {path} must be a folder, an .npz or .csv file, or one of "
        f"{SETS}."
    )


def _table(path: Path, entry: Mapping[str, Any]) -> tuple[Any, Any]:
    try:
        table = np.genfromtxt(path, delimiter=",", names=True, dtype=float)
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read as a table of numbers: {error}.") from error
    names = list(table.dtype.names or ())
    target = entry.get("target", names[-1] if names else "")
    only({target: None}, names, str(path))
    inputs = entry.get("inputs", [n for n in names if n != target])
    only(dict.fromkeys(inputs), names, str(path))
    columns = np.stack([table[n] for n in inputs], axis=1)
    if np.isnan(columns).any() or np.isnan(table[target]).any():
        raise FileError(f"{path} has entries that are missing or not numbers. Fill or remove them.")
    y = table[target]
    return columns, y.astype(int) if np.array_equal(y, np.round(y)) else y[:, None]


def _folder(path: Path) -> tuple[Any, Any]:
    if list(path.glob("*idx*-ubyte*")):
        found: Any = data.MNIST(path)
    elif list(path.glob("data_batch*")):
        found = data.CIFAR10(path)
    else:
        found = data.ImageFolder(path)
    batches = data.DataLoader(found, batch_size=max(len(found), 1))
    x, y = next(iter(batches))
    return np.asarray(x), np.asarray(y)
