"""save, load and inspect.

save      encode.py encodes the object as JSON and arrays, safetensors_file.py as bytes,
          atomic_files.py writes them
load      the inverse (decode.py); a damaged file raises a FileError that names it
inspect   the contents of a file without its data

Snapshots: a folder of dated files, of which the newest valid one is restored.

    snapshot-000007-2026-11-21T10-20-30Z.wengert

The number determines which one is newest, because clocks may be set back; the date is informative.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.spec import Spec
from wengert._engine.core.thread_state import lock
from wengert.errors import (
    ArgumentError,
    FileError,
    GraphError,
    RegistryError,
    StructureError,
    at,
    user_level,
    user_line,
)

from . import atomic_files, safetensors_file
from .decode import FileDecoder, name_in_file
from .encode import FileEncoder
from .errors import Damage, need, parsed, written
from .graph_from_json import graph_of
from .graph_json import graph_json

_PLACES = ("name", "full", None)


def save(what: Any, file: Any, *, where: str | None = "name") -> None:
    """Write a graph, parameters, or containers of them to a file.

    Parameters
    ----------
    what : object
        A `Graph`, an array, a tensor, a number, a string, or nested lists, tuples and dicts of
        these. For a model or optimizer pass its `state_dict()`.
    file : path or binary file object
        A path is written atomically: an existing file is replaced only when the new one is
        complete.
    where : {"name", "full", None}
        How the source locations of a graph are stored: with the names of the files, with their
        full paths, or not at all.

    Raises
    ------
    StructureError
        The object contains a function, or an instance of an unregistered class.
    RegistryError
        A graph uses an operation that is not registered under its name.
    DtypeError
        An array is not numeric, or its width differs between machines.
    ConversionError
        A tensor has a history, which cannot be saved.
    GraphError
        A graph cannot be rebuilt from its nodes.
    OSError
        The file cannot be written.

    See Also
    --------
    load : the inverse.
    wengert.keep.snapshot : a series of dated files, with removal of old ones.

    Notes
    -----
    The file is a safetensors file: its arrays can be read by any program that reads that format
    (docs/keeping.md). Equal objects give equal bytes. Gradients and hooks of tensors are not
    saved. *Cost*: about one pass over the data in addition to writing it.

    Examples
    --------
    >>> import io, numpy as np, wengert as wg
    >>> graph = wg.trace(lambda x: np.sum(np.sin(x)))(wg.spec("n"))
    >>> file = io.BytesIO()
    >>> wg.save({"graph": graph, "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> kept = wg.load(file)
    >>> float(kept["graph"](np.zeros(4))), kept["graph"].grad()(np.zeros(2)), kept["epoch"]
    (0.0, array([1., 1.]), 3)
    """
    write_file(what, file, where, exclusive=False)


def write_file(what: Any, file: Any, where: str | None, exclusive: bool) -> None:
    """`save`, which with `exclusive` raises FileExistsError instead of replacing a file."""
    if where not in _PLACES:
        raise ArgumentError(f"save: where={where!r} must be one of {_PLACES}{at(user_line())}.")
    if atomic_files.is_path(what) and not atomic_files.is_path(file) and not hasattr(file, "write"):
        raise ArgumentError(
            "save: the first argument is the object, the second the file. Call "
            f"save(..., {str(what)!r}){at(user_line())}."
        )
    writer = FileEncoder(graph_json, where)
    writer.name_tensors(what)
    try:
        root = writer.value(what, ())
    except RecursionError as error:
        raise StructureError(
            f"save: containers or graphs are nested too deeply{at(user_line())}."
        ) from error
    content = {"tensors": writer.tensors, "graphs": writer.graphs, "root": root}
    try:
        pieces = safetensors_file.pack(writer.arrays, {"object": written(content)})
    except ValueError as error:
        raise GraphError(f"save: {error}. Save it in parts{at(user_line())}.") from error
    atomic_files.write(file, pieces, exclusive)


def load(file: Any, *, variables: Mapping[str, Any] | None = None) -> Any:
    """Read a file written by `save`.

    Parameters
    ----------
    file : path or binary file object
        A path, or a file that is open for reading. A safetensors file of another program gives a
        dict of arrays.
    variables : mapping from name to tensor, optional
        Tensors of the running program that replace variables of the file, and keep their values.
        `inspect` lists the names.

    Returns
    -------
    object
        The saved object. Tensors that were shared are shared again.

    Raises
    ------
    FileError
        The file is damaged, incomplete, of a later version, or not written by `save`. Loading
        never executes or imports anything from the file.
    RegistryError
        An operation is not registered; the message names the module to import.
    ArgumentError, ShapeError, DtypeError
        A tensor in `variables` matches no variable of the file.
    OSError
        The file cannot be read.

    Notes
    -----
    Operations are looked up by name in the registry of the running program, and must be of the same
    kind as when the file was written; import the modules that define your own first. Shapes and
    dtypes of all nodes are inferred again and compared.

    Examples
    --------
    >>> import io, numpy as np, wengert as wg
    >>> w = wg.variable([1.0, 2.0], "w")
    >>> file = io.BytesIO()
    >>> wg.save(wg.trace(lambda x: x @ w)(wg.spec(2)), file)
    >>> _ = file.seek(0)
    >>> mine = wg.variable([10.0, 20.0])
    >>> float(wg.load(file, variables={"w": mine})(np.ones(2)))
    30.0
    """
    with atomic_files.opened(file) as (stream, size, name):
        try:
            header, sha = safetensors_file.read_header(stream, size)
            ours = safetensors_file.is_ours(header)
            arrays = safetensors_file.read_data(stream, header, sha)
            if not ours:
                reader = FileDecoder(arrays, variables or {})
                reader.check_bound()
                return arrays
            return _object(header, safetensors_file.checked(header, arrays, sha), variables or {})
        except Damage as damage:
            raise FileError(f"{name}: {damage}{at(user_line())}.") from damage
        except RegistryError as error:
            raise RegistryError(f"{name}: {error}") from None
        except RecursionError as error:
            raise FileError(f"{name}: it is nested too deeply{at(user_line())}.") from error


def _object(
    header: safetensors_file.Header, arrays: dict[Any, Any], variables: Mapping[str, Any]
) -> Any:
    content = parsed(header.metadata.get("object", ""), "its content")
    need(type(content) is dict and content.keys() == {"tensors", "graphs", "root"}, "it is empty")
    need(type(content["tensors"]) is list and type(content["graphs"]) is list, "it has no tables")
    reader = FileDecoder(arrays, variables)
    for x in content["tensors"]:
        reader.add_tensor(x)
    reader.check_bound()
    for x in content["graphs"]:
        reader.graphs.append(graph_of(reader, x))
    return reader.value(content["root"])


class Contents(NamedTuple):
    """The contents of a file.

    arrays : the spec of each array, by name.
    variables : names of the variables, as `load` takes them in `variables`.
    operations : names of the operations that its graphs use.
    version : the version of the format; None for a file of another program.
    metadata : the metadata of a file of another program.
    """

    arrays: dict[str, Spec]
    variables: list[str]
    operations: list[str]
    version: int | None
    metadata: dict[str, str]


Contents.__module__ = "wengert.keep"


def inspect(file: Any) -> Contents:
    """The contents of a file, without reading its data.

    Parameters
    ----------
    file : path or binary file object

    Returns
    -------
    Contents

    Raises
    ------
    FileError
        The file was not written by `save`. Only `load` verifies the data.

    Examples
    --------
    >>> import io, numpy as np, wengert as wg
    >>> file = io.BytesIO()
    >>> wg.save({"weight": np.ones((2, 3))}, file)
    >>> _ = file.seek(0)
    >>> {name: str(spec) for name, spec in wg.keep.inspect(file).arrays.items()}
    {'weight': 'float64[2,3]'}
    """
    with atomic_files.opened(file) as (stream, size, name):
        try:
            header, _ = safetensors_file.read_header(stream, size)
            return _contents(header)
        except Damage as damage:
            raise FileError(f"{name}: {damage}{at(user_line())}.") from damage
        except (RecursionError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise FileError(
                f"{name}: it is not a file written by wengert.save{at(user_line())}."
            ) from error


def _contents(header: safetensors_file.Header) -> Contents:
    notes = parsed(header.metadata.get("dtypes", "{}"), "the notes of dtypes")
    specs = {}
    for name, (dtype, shape, _, _) in sorted(header.tensors.items()):
        actual = safetensors_file.DTYPES[notes[name]] if name in notes else dtype
        actual = np.dtype(np.float32) if actual == safetensors_file.BFLOAT16 else actual
        specs[name] = Spec(shape[:-1] if actual.kind == "c" else shape, actual)
    if not safetensors_file.is_ours(header):
        return Contents(specs, [], [], None, header.metadata)
    content = parsed(header.metadata.get("object", ""), "its content")
    variables = [name_in_file(x) for x in content["tensors"] if x["kind"] != "constant"]
    ops = sorted({op[0] for graph in content["graphs"] for op in graph["ops"]})
    return Contents(specs, variables, ops, int(header.metadata["version"]), {})


_NAME = re.compile(r"^snapshot-(\d{6,18})-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.wengert$")
_lock = lock()


class DamagedWarning(UserWarning):
    """A snapshot could not be read, and an older one is used."""

    __module__ = "wengert.keep"


def snapshot(
    folder: str | PathLike[str],
    what: int | dict[Any, Any],
    *,
    keep: int | None = 5,
    where: str | None = "name",
) -> Path:
    """Save to a new file in a folder, named by number and date, and remove old snapshots.

    Parameters
    ----------
    folder : path
        Created if it does not exist.
    what, where
        As for `wengert.save`.
    keep : int or None, default 5
        The number of snapshots to keep, including this one; None for all.

    Returns
    -------
    Path
        The new file.

    Raises
    ------
    ArgumentError
        `keep` is less than one.
    Errors of `wengert.save`
        No snapshot is removed in this case.

    Examples
    --------
    >>> import tempfile, numpy as np, wengert as wg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for epoch in range(7):
    ...         _ = wg.keep.snapshot(folder, {"epoch": epoch}, keep=3)
    ...     len(wg.keep.snapshots(folder)), wg.keep.latest(folder)
    (3, {'epoch': 6})
    """
    if keep is not None and (type(keep) is not int or keep < 1):
        raise ArgumentError(
            f"snapshot: keep={keep!r} must be an integer of at least 1, or None{at(user_line())}."
        )
    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    with _lock:
        while True:
            existing = snapshots(directory)
            number = _number(existing[-1]) + 1 if existing else 1
            date = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
            path = directory / f"snapshot-{number:06d}-{date}.wengert"
            try:
                write_file(what, path, where, exclusive=True)
                break
            except FileExistsError:  # another process took the number
                continue
        if keep is not None:
            for outdated in snapshots(directory)[:-keep]:
                outdated.unlink(missing_ok=True)
    return path


def snapshots(folder: str | PathLike[str]) -> list[Path]:
    """The snapshots in a folder, oldest first."""
    return sorted((p for p in Path(folder).iterdir() if _NAME.match(p.name)), key=_number)


def latest(folder: str | PathLike[str], **options: Any) -> Any:
    """Load the newest valid snapshot.

    Parameters
    ----------
    folder : path
    **options
        As for `wengert.load`.

    Returns
    -------
    object
        The saved object.

    Raises
    ------
    FileError
        There is no snapshot, or all are damaged.
    RegistryError
        An operation is not registered.

    Warns
    -----
    DamagedWarning
        A newer snapshot is damaged; the message names it.
    """
    candidates = snapshots(folder)
    for path in reversed(candidates):
        try:
            return load(path, **options)
        except RegistryError:
            raise
        except FileError as error:
            warnings.warn(
                f"a snapshot cannot be read, trying an older one: {error}",
                DamagedWarning,
                stacklevel=user_level(),
            )
    raise FileError(
        f"none of the {len(candidates)} snapshots in {Path(folder)} can be read{at(user_line())}."
    )


def _number(path: Path) -> int:
    match = _NAME.match(path.name)
    return int(match[1]) if match else 0
