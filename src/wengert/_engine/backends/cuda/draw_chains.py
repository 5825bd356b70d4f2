"""Chains of draws: where the numbers of a random stream begin, if each takes some words.

Draw k begins where draw k - 1 ends, which is sequential; but the words that a draw takes depend on
the words only. So it is computed for each position as if a draw began there, and the positions
that are reached from the first one are found by composing functions:

    a chunk of words      is a function of the position of its first draw (of the first few), whose
                          values are that in the next chunk, and the number of draws in between
    a group of chunks     is the composition of their functions
    from groups to chunks the position and the number of the first draw of each

    Chains                  the first draw of each chunk
    TAKES, GIVEN, GIVES     the bits of a step: how many words it takes, and what it gives
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from .device import Device
from .loaded_kernels import element_kernel, launch_of

CHUNK = 256  # words
WINDOW = 16  # positions at which the first draw of a chunk can begin; no draw takes more words
_GROUP = 32  # functions that a thread composes
TAKES, GIVEN, GIVES = 15, 64, 128  # of a step: its words; its number is in the first; it has one


class Chains:
    """The first draw of each chunk of some streams.

    Parameters
    ----------
    device : Device
    steps : array
        uint8[streams, words]: how many words a draw takes that begins there, and whether it gives
        a number.

    Attributes
    ----------
    chunks : int
        Of each stream.
    entries, numbers : array
        int64[streams, chunks]: the position of the first draw in the chunk, and its number.
    draws : array
        int64[streams]: how many numbers there are.
    """

    def __init__(self, device: Device, steps: Any) -> None:
        self.device = device
        streams, words = steps.shape
        self.chunks = -(-words // CHUNK)
        ends, counts = (
            self._empty(streams, self.chunks, WINDOW),
            self._empty(streams, self.chunks, WINDOW),
        )
        sizes = [np.int64(words), np.int64(self.chunks)]
        self._run("chain_chunks", _chunk, [steps, ends, counts], sizes, streams * self.chunks)
        levels = [(self.chunks, ends, counts)]
        while levels[-1][0] > 1:
            levels.append(self._composed(streams, *levels[-1]))
        self.draws = levels[-1][2].reshape(streams, WINDOW)[:, 0]
        entries, numbers = self._empty(streams, 1), self._empty(streams, 1)
        entries[...] = 0
        numbers[...] = 0
        for above, (count, ends, counts) in zip(levels[:0:-1], levels[-2::-1], strict=True):
            given = [entries, numbers]
            entries, numbers = self._empty(streams, count), self._empty(streams, count)
            arrays = [*given, ends, counts, entries, numbers]
            sizes = [np.int64(count), np.int64(above[0])]
            self._run("chain_entries", _descend, arrays, sizes, streams * above[0])
        self.entries, self.numbers = entries, numbers

    def _empty(self, *shape: int) -> Any:
        return self.device.empty(shape, np.dtype(np.int64))

    def _composed(self, streams: int, count: int, ends: Any, counts: Any) -> tuple[int, Any, Any]:
        """The functions of groups."""
        groups = -(-count // _GROUP)
        shape = streams, groups, WINDOW
        made = self._empty(*shape), self._empty(*shape)
        sizes = [np.int64(count), np.int64(groups)]
        total = streams * groups * WINDOW
        self._run("chain_groups", _compose, [ends, counts, *made], sizes, total)
        return groups, *made

    def _run(self, name: str, write: Any, arrays: list[Any], sizes: list[Any], total: int) -> None:
        names = [("ptr", f"array{k}") for k in range(len(arrays))]
        names += [("i64", f"size{k}") for k in range(len(sizes))]
        launch = launch_of(self.device, name, partial(element_kernel, name, names, write))
        launch([*arrays, *sizes, np.int64(total)], total)


def at(s: Section, array: Name, index: Name, kind: str = "i64") -> Name:
    """The address of an element."""
    return s.value(f"getelementptr {kind}, ptr {array}, i64 {index}")


def loaded(s: Section, array: Name, index: Name, kind: str = "i64") -> Name:
    """An element."""
    return s.value(f"load {kind}, ptr {at(s, array, index, kind)}")


def _chunk(_: ModuleBuilder, function: Function, s: Section, element: Name) -> None:
    """The function of a chunk, from its end to its start."""
    stream, chunk = s.value(f"udiv i64 {element}, %size1"), s.value(f"urem i64 {element}, %size1")
    base = s.value(f"mul i64 {stream}, %size0")
    begin = s.value(f"mul i64 {chunk}, {CHUNK}")
    end = s.smaller(s.value(f"add i64 {begin}, {CHUNK}"), "%size0")
    ends, counts = (function.slot(f"[{WINDOW} x i64]", 8) for _ in range(2))
    with s.loop("0", s.value(f"sub i64 {end}, {begin}")) as (t, k):
        place = t.value(f"sub i64 {t.value(f'sub i64 {end}, 1')}, {k}")
        step = t.value(
            f"zext i8 {loaded(t, '%array0', t.value(f'add i64 {base}, {place}'), 'i8')} to i64"
        )
        following = t.value(f"add i64 {place}, {t.value(f'and i64 {step}, {TAKES}')}")
        gives = t.value(f"lshr i64 {step}, 7")
        is_out = t.value(f"icmp sge i64 {following}, {end}")
        slot = t.value(f"and i64 {following}, {WINDOW - 1}")
        further = t.value(f"sub i64 {following}, {end}")
        last = t.value(f"select i1 {is_out}, i64 {further}, i64 {loaded(t, ends, slot)}")
        more = t.value(f"select i1 {is_out}, i64 0, i64 {loaded(t, counts, slot)}")
        own = t.value(f"and i64 {place}, {WINDOW - 1}")
        t.write(f"store i64 {last}, ptr {at(t, ends, own)}")
        t.write(f"store i64 {t.value(f'add i64 {more}, {gives}')}, ptr {at(t, counts, own)}")
    target = s.value(f"mul i64 {element}, {WINDOW}")
    with s.loop("0", str(WINDOW)) as (t, k):
        place = t.value(f"add i64 {begin}, {k}")
        is_out = t.value(f"icmp sge i64 {place}, {end}")
        own = t.value(f"and i64 {place}, {WINDOW - 1}")
        further = t.value(f"sub i64 {place}, {end}")
        last = t.value(f"select i1 {is_out}, i64 {further}, i64 {loaded(t, ends, own)}")
        count = t.value(f"select i1 {is_out}, i64 0, i64 {loaded(t, counts, own)}")
        index = t.value(f"add i64 {target}, {k}")
        t.write(f"store i64 {last}, ptr {at(t, '%array1', index)}")
        t.write(f"store i64 {count}, ptr {at(t, '%array2', index)}")


def _walk(
    function: Function, s: Section, stream: Name, group: Name
) -> tuple[tuple[Name, Name], Name, Name]:
    """The functions of a group one after the other: their range, slots of position and number."""
    place, number = function.slot("i64"), function.slot("i64")
    begin = s.value(f"mul i64 {group}, {_GROUP}")
    end = s.smaller(s.value(f"add i64 {begin}, {_GROUP}"), "%size0")
    base = s.value(f"mul i64 {stream}, %size0")
    return (s.value(f"add i64 {base}, {begin}"), s.value(f"add i64 {base}, {end}")), place, number


def _apply(
    t: Section, k: Name, arrays: tuple[Name, Name], place: Name, number: Name
) -> tuple[Name, Name]:
    """Apply one function; the position and number before."""
    now, count = t.value(f"load i64, ptr {place}"), t.value(f"load i64, ptr {number}")
    index = t.value(f"add i64 {t.value(f'mul i64 {k}, {WINDOW}')}, {now}")
    t.write(f"store i64 {loaded(t, arrays[0], index)}, ptr {place}")
    total = t.value(f"add i64 {count}, {loaded(t, arrays[1], index)}")
    t.write(f"store i64 {total}, ptr {number}")
    return now, count


def _compose(_: ModuleBuilder, function: Function, s: Section, element: Name) -> None:
    """The composed function of a group, at one position."""
    entry, which = (
        s.value(f"urem i64 {element}, {WINDOW}"),
        s.value(f"udiv i64 {element}, {WINDOW}"),
    )
    stream, group = s.value(f"udiv i64 {which}, %size1"), s.value(f"urem i64 {which}, %size1")
    arrays = "%array0", "%array1"
    (begin, end), place, number = _walk(function, s, stream, group)
    s.write(f"store i64 {entry}, ptr {place}")
    s.write(f"store i64 0, ptr {number}")
    with s.loop(begin, end) as (t, k):
        _apply(t, k, arrays, place, number)
    for array, slot in (("%array2", place), ("%array3", number)):
        value = s.value(f"load i64, ptr {slot}")
        s.write(f"store i64 {value}, ptr {at(s, array, element)}")


def _descend(_: ModuleBuilder, function: Function, s: Section, element: Name) -> None:
    """The first draws of what a group consists of, from that of the group."""
    stream, group = s.value(f"udiv i64 {element}, %size1"), s.value(f"urem i64 {element}, %size1")
    arrays = "%array2", "%array3"
    (begin, end), place, number = _walk(function, s, stream, group)
    for array, slot in (("%array0", place), ("%array1", number)):
        s.write(f"store i64 {loaded(s, array, element)}, ptr {slot}")
    with s.loop(begin, end) as (t, k):
        now, count = _apply(t, k, arrays, place, number)
        t.write(f"store i64 {now}, ptr {at(t, '%array4', k)}")
        t.write(f"store i64 {count}, ptr {at(t, '%array5', k)}")
