"""Rewritten code on disk, for other processes.

Parsing and rewriting the source of a function takes some milliseconds, up to a fifth of a first
call.  The result depends only on the code object, the text of its file, and the sources of this
package, which are the key; so a function of an edited file is rewritten again.

    find    the rewritten code of a function, if it is on disk
    keep    write it

Only code that was made from a source that belongs to the code object is written (source.py), so a
function whose rewritten code is found has such a source.
"""

from __future__ import annotations

import hashlib
import linecache
import marshal
import sys
from types import CodeType
from typing import Any

from wengert._engine.cache import disk_cache
from wengert._engine.cache.library_sources import library_sources

_MAX_FOUND = 1024
_found: dict[tuple[CodeType, str, bool], CodeType] = {}
_VERSION = 2  # of marshal: the last whose bytes depend on the value only, not on its references


def find(code: CodeType, whole: bool) -> CodeType | None:
    """The rewritten code of a function; None if it is not on disk.

    Parameters
    ----------
    code : CodeType
        The original code.
    whole : bool
        Whether loops and branches are rewritten, or only calls.
    """
    place = code, code.co_filename, whole  # code objects of different files may be equal
    known = _found.get(place)
    if known is not None:
        return known
    key = _key(code, whole)
    content = None if key is None else disk_cache.read(key)
    if content is None:
        return None
    try:
        found = marshal.loads(content)
    except Exception:  # damaged
        return None
    if type(found) is not CodeType or not _belongs(found, code):
        return None
    while len(_found) >= _MAX_FOUND:
        _found.pop(next(iter(_found)), None)
    _found[place] = found
    return found


def keep(code: CodeType, whole: bool, rewritten: CodeType) -> None:
    """Write the rewritten code of a function, for other processes."""
    key = _key(code, whole)
    if key is not None:
        disk_cache.write(key, marshal.dumps(rewritten))


def _belongs(found: CodeType, code: CodeType) -> bool:
    """Whether rewritten code has the names, the parameters and the free variables of a function.

    The checksum of a file only detects accidental damage.
    """
    return (
        (found.co_name, found.co_filename) == (code.co_name, code.co_filename)
        and found.co_argcount == code.co_argcount
        and found.co_kwonlyargcount == code.co_kwonlyargcount
        and set(found.co_freevars) <= set(code.co_freevars)
    )


def _without_slices(constant: Any) -> Any:
    """Code whose constant slices are tuples, because marshal has had slices since version 5 only.

    Python 3.14 has constants for them: ``x[1:]`` loads one.
    """
    if isinstance(constant, slice):
        return ..., constant.start, constant.stop, constant.step
    if isinstance(constant, CodeType):
        return constant.replace(co_consts=tuple(map(_without_slices, constant.co_consts)))
    return tuple(map(_without_slices, constant)) if type(constant) is tuple else constant


def _key(code: CodeType, whole: bool) -> bytes | None:
    """The key of a function's rewritten code; None if it cannot be cached."""
    if not disk_cache.enabled():
        return None
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    sources = library_sources() if lines else None
    if sources is None:
        return None
    try:
        own = marshal.dumps(_without_slices(code), _VERSION)
    except ValueError:  # a constant of an unknown type
        return None
    options = repr((whole, sys.flags.optimize)).encode()
    key = hashlib.sha256(b"rewritten code")
    for part in (sources, options, "".join(lines).encode("utf-8", "surrogatepass"), own):
        key.update(hashlib.sha256(part).digest())
    return key.digest()
