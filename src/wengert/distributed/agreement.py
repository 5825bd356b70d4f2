"""Python objects that all processes agree on: decisions, states, errors; objects as bytes.

    from_first       an object of process 0
    from_all         the objects of all processes
    in_first         what a function returns or raises in process 0, in all processes
    sums_of          the sums of a few numbers
    require_equal    raise in all processes unless they have the same bytes
    end_all          end all processes
    Packed           the bytes and the key
    packed           an object as bytes

These functions are called by all processes together, between steps of a program; they send pickled
objects, or vectors of a few numbers, and are not recorded.

Functions that are pickled by value (those of programs and notebooks) carry their source files, so
that the front end reads loops and branches in a worker as it does here.  cloudpickle alone drops
the names of files.
"""

from __future__ import annotations

import hashlib
import io
import linecache
import pickle
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, CommunicationError, at, user_line

from .communicators import Communicator
from .mpi_library import mpi


def from_first(x: Any, comm: Communicator) -> Any:
    """The object that process 0 passes, in all processes."""
    return x if comm.size == 1 else comm.collective.bcast(x, 0)


def from_all(x: Any, comm: Communicator) -> list[Any]:
    """The objects of all processes, by rank, in all processes."""
    return [x] if comm.size == 1 else list(comm.collective.allgather(x))


def in_first(run: Callable[[], Any], comm: Communicator) -> Any:
    """What a function returns in process 0, in all processes; the others do not call it.

    Raises
    ------
    Exception
        What it raises in process 0, in all processes; CommunicationError in the others if that
        cannot be pickled.
    """
    result: Any = None
    error: Exception | None = None
    if comm.rank == 0:
        try:
            result = run()
        except Exception as raised:
            error = raised
    sent = None if error is None else _sent(error)
    sent, result = from_first((sent, result if error is None else None), comm)
    if error is not None:
        raise error
    if sent is not None:
        raise sent
    return result


def _sent(error: Exception) -> Exception:
    """An error as it is raised in the other processes."""
    try:
        again = pickle.loads(pickle.dumps(error))
        if type(again) is type(error) and str(again) == str(error):
            return error
    except Exception:
        pass  # errors of other libraries need not be pickled
    return CommunicationError(f"process 0 raised {type(error).__name__}: {error}")


def sums_of(numbers: Any, comm: Communicator) -> np.ndarray[Any, Any]:
    """The sums of a few numbers over all processes."""
    sent = np.array(numbers, np.float64)
    received = np.empty_like(sent)
    comm.collective.Allreduce(sent, received, mpi().SUM)
    return received


def digest_of(x: Any) -> bytes:
    """A digest of an array (dtype, shape and bytes), or of another object by its `repr`."""
    if isinstance(x, np.ndarray | np.generic):
        array = np.ascontiguousarray(x)
        found = hashlib.blake2b(f"{array.dtype.str} {np.shape(x)} ".encode(), digest_size=16)
        found.update(array.tobytes())
        return found.digest()
    return hashlib.blake2b(repr(x).encode(), digest_size=16).digest()


def require_equal(values: Mapping[str, Any], what: str, remedy: str, comm: Communicator) -> None:
    """Raise in all processes unless they have the same bits; compares digests.

    Parameters
    ----------
    values : mapping of str to array
    what : str
        What they are, in the message of the error: "the parameters".
    remedy : str
        What to do if they differ.
    comm : Communicator

    Raises
    ------
    CommunicationError
        They differ; the message names the first that does.
    """
    if comm.size == 1:
        return
    digests = {name: digest_of(x) for name, x in values.items()}
    whole = hashlib.blake2b(repr(digests).encode(), digest_size=7).digest()
    number = int.from_bytes(whole, "little") >> 1
    extremes = np.empty(2, np.int64)
    comm.collective.Allreduce(np.array([number, -number], np.int64), extremes, mpi().MAX)
    if extremes[0] == -extremes[1]:
        return
    every = from_all(digests, comm)
    names = dict.fromkeys(name for one in every for name in one)
    name = next(n for n in names if len({one.get(n) for one in every}) > 1)
    groups: dict[Any, list[int]] = {}
    for rank, one in enumerate(every):
        groups.setdefault(one.get(name), []).append(rank)
    equal = "; ".join(", ".join(map(str, ranks)) for ranks in groups.values())
    raise CommunicationError(
        f"{what} differ between the processes of {comm.name}: {name} (equal are those of "
        f"processes {equal}). {remedy}{at(user_line())}."
    )


def end_all(why: str, comm: Communicator) -> None:
    """End all processes, because this one will not take part in messages that others wait for."""
    sys.stderr.write(
        f"wengert.distributed: process {comm.rank} of {comm.size} {why}; all processes are ended.\n"
    )
    sys.stderr.flush()
    comm.mpi.Abort(1)


class Packed:
    """Pickled bytes, with a key that is a digest of them."""

    __slots__ = ("data", "key")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.key = hashlib.blake2b(data, digest_size=16).hexdigest()

    def unpickled(self) -> Any:
        """The object."""
        return pickle.loads(self.data)

    def __reduce__(self) -> Any:
        return Packed, (self.data,)


def packed(what: Any, name: str) -> Packed:
    """An object as bytes, by cloudpickle if it is installed.

    Raises
    ------
    ArgumentError
        It cannot be pickled.
    """
    dumps, hint = pickle.dumps, ", or install cloudpickle"
    try:
        import cloudpickle
    except ImportError:
        pass
    else:
        dumps, hint = _with_sources(cloudpickle), ""
    try:
        return Packed(dumps(what))
    except Exception as error:
        raise ArgumentError(
            f"{name} cannot be sent to another process: {error}. Define functions at the top of "
            f"a module, without open files and connections{hint}{at(user_line())}."
        ) from error


def _with_sources(cloudpickle: Any) -> Any:
    """`cloudpickle.dumps` with the sources of functions that are pickled by value."""

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        """A pickler of code objects with their files."""

        def __init__(self, file: Any) -> None:
            super().__init__(file)
            self.files: dict[str, str] = {}

        def reducer_override(self, x: Any) -> Any:
            """Pickle a code object with its file, everything else as cloudpickle does."""
            if type(x) is not types.CodeType:
                return super().reducer_override(x)
            name = x.co_filename
            if name not in self.files:
                linecache.checkcache(name)
                self.files[name] = "".join(linecache.getlines(name))
            _, arguments = self.dispatch_table[types.CodeType](x)
            return _code, (arguments, name, self.files[name])

    def dumps(x: Any) -> bytes:
        file = io.BytesIO()
        Pickler(file).dump(x)
        return file.getvalue()

    return dumps


def _code(arguments: tuple[Any, ...], name: str, source: str) -> types.CodeType:
    """A code object whose source can be read in this process."""
    lines = source.splitlines(keepends=True)
    linecache.checkcache(name)
    if source and linecache.getlines(name) != lines:
        digest = hashlib.blake2b(source.encode(), digest_size=4).hexdigest()
        name = f"{name}#{digest}"  # another version of the file, or one that does not exist here
        linecache.cache[name] = len(source), None, lines, name
    return types.CodeType(*arguments).replace(co_filename=name)
