"""Objects as bytes for other processes, with keys that are digests of the bytes.

Functions that are pickled by value (those of programs and notebooks) carry their source files, so
that the front end reads loops and branches in a worker as it does here.  cloudpickle alone drops
the names of files.

    Packed    the bytes and the key
    packed    an object as bytes
"""

from __future__ import annotations

import hashlib
import io
import linecache
import pickle
import types
from typing import Any

from wengert.errors import ArgumentError, at, user_line


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
