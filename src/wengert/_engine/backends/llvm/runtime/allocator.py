"""The recycling allocator, as LLVM IR, and as memory handler of NumPy's arrays (NEP 49).

    wengert_alloc(i64 bytes) -> ptr    aligned to 64 bytes; null if there is no memory
    wengert_free(ptr)                  null is allowed
    wengert_realloc(ptr, i64) -> ptr   like C's; if it returns null, the old block is unchanged
    wengert_memory_limit(i64)          the maximum of bytes kept; excess blocks are returned
    wengert_memory_trim(i64) -> i64    returns blocks until so many bytes are kept; bytes returned
    wengert_memory_read(ptr)           the counters, in the order of COUNTERS
    wengert_memory_start()             called before all others
    wengert_memory_child()             called in the child of a fork

Blocks of up to `pooled_block_bytes` (tuning.py) are allocated by malloc.  A larger one is mapped
from the system and, once freed, kept in the list of its size class: eight classes for each factor
of two, multiples of huge pages from 4 MiB on.
Within a class the block freed last is reused first, as it may still be in a cache.  All kept
blocks are also in one list by age; beyond the limit the oldest are returned to the system.

Filling 80 MB took 37 ms in a new block and 24 ms in a recycled one on a busy machine, 5.3 and
2.9 ms on an idle one, where memory from malloc took 24 ms.  Allocating and freeing a kept block
takes some 25 ns.

A large block has a header of eight words: its neighbors in both lists, the address and length of
its mapping, its size and its class.  A small block has only the last three.  The start of large
blocks is shifted from the page by one of sixteen offsets: if all had the same, the streams that a
loop reads and writes in parallel would compete for the same few lines of the L1 cache (with
thirteen of them it ran 10 % faster).

    wengert_array_handler() -> ptr    a PyDataMem_Handler with four of these functions

Arrays made with it own their data as usual: `arr.flags.owndata` is True, `resize` works, and the
memory is recycled for the next array of this size.  The handler is a constant of the native module,
which is never unloaded, so it outlives all arrays.
"""

from __future__ import annotations

from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..tuning import thresholds
from .os_calls import HUGE_PAGE, emit_locks, emit_page_functions, field, load, store

COUNTERS = ("used", "kept", "limit", "hits", "misses", "returned", "peak")

_MAX_BYTES = 1 << 46  # larger requests fail
_C_LIBRARY = -1  # class of blocks from malloc
_HEADER = 64
_COLORS, _SHIFT = 16, 256  # number of offsets, and bytes between them
# Indices of the words of the header.
_BY_CLASS, _BY_AGE, _BASE, _LENGTH, _SIZE, _CLASS = 0, 2, 4, 5, 6, 7
_CLASSES = (46 - 17 + 1) * 8
# The state: the lock, the counters, the next color, the list by age, the lists of the classes.
_COUNTED = {name: 8 + index for index, name in enumerate(COUNTERS)}
_COLOR, _AGES, _LISTS = 15, 16, 24
_WORDS = _LISTS + 2 * _CLASSES


def emit_allocator(module: ModuleBuilder, maps: bool | None = None) -> None:
    """Emit the functions of this file, and those that they need."""
    emit_locks(module)
    emit_page_functions(module) if maps is None else emit_page_functions(module, maps)
    module.parts["memory"] = f"@memory = internal global [{_WORDS} x i64] zeroinitializer, align 64"
    for write in (_start, _link, _unlink, _size_of, _fresh, _alloc, _small, _free, _shrink):
        write(module)
    for write in (_realloc, _limit, _trim, _read, _in_child):
        write(module)


def _public(
    module: ModuleBuilder, name: str, arguments: list[tuple[str, str]], result: str = "void"
) -> Function:
    return Function(module, name, arguments, result, linkage="")


def _acquire(s: Section) -> None:
    s.write("call void @acquire(ptr @memory)")


def _release(s: Section) -> None:
    s.write("call void @release(ptr @memory)")


def _count(s: Section, name: str, by: Name, operation: str = "add") -> Name:
    """Change a counter; returns its new value."""
    new = s.value(f"{operation} i64 {load(s, '@memory', _COUNTED[name])}, {by}")
    store(s, new, "@memory", _COUNTED[name])
    return new


def _header(s: Section, block: Name) -> Name:
    return s.value(f"getelementptr i8, ptr {block}, i64 -{_HEADER}")


def _start(module: ModuleBuilder) -> None:
    """Initialize the lists: circular with a head, so that removal has no special cases."""
    f = _public(module, "wengert_memory_start", [])
    with f.body.loop(str(_LISTS), str(_WORDS), "2") as (s, index):
        head = field(s, "@memory", index)
        for word in (0, 1):
            store(s, head, head, word, "ptr")
    head = field(f.body, "@memory", _AGES)
    for word in (0, 1):
        store(f.body, head, head, word, "ptr")
    f.body.write("ret void")
    module.add(f)


def _link(module: ModuleBuilder) -> None:
    f = Function(module, "link", [("ptr", "head"), ("ptr", "node")])
    s = f.body
    first = load(s, "%head", 0, "ptr")
    store(s, first, "%node", 0, "ptr")
    store(s, "%head", "%node", 1, "ptr")
    store(s, "%node", first, 1, "ptr")
    store(s, "%node", "%head", 0, "ptr")
    s.write("ret void")
    module.add(f)


def _unlink(module: ModuleBuilder) -> None:
    """Remove a block from both lists; the caller holds the lock."""
    f = Function(module, "unlink", [("ptr", "header")])
    s = f.body
    for word in (_BY_CLASS, _BY_AGE):
        following = load(s, "%header", word, "ptr")
        before = load(s, "%header", word + 1, "ptr")
        store(s, following, before, 0, "ptr")
        store(s, before, following, 1, "ptr")
    _count(s, "kept", load(s, "%header", _SIZE), "sub")
    s.write("ret void")
    module.add(f)


def _size_of(module: ModuleBuilder) -> None:
    """The size of the blocks of a size class; the class is stored at `%class`."""
    f = Function(module, "size_of", [("i64", "bytes"), ("ptr", "class")], "i64")
    s = f.body
    zeros = module.declare("llvm.ctlz.i64", "i64", ["i64", "i1"])
    last = s.value("sub i64 %bytes, 1")
    log = s.value(f"sub i64 63, {s.value(f'call i64 {zeros}(i64 {last}, i1 true)')}")
    eighth = s.value(f"sub i64 {log}, 3")
    large = s.value(f"icmp uge i64 %bytes, {2 * HUGE_PAGE}")
    fine = s.value(f"icmp ult i64 {eighth}, {HUGE_PAGE.bit_length() - 1}")
    pages = s.value(f"and i1 {large}, {fine}")
    shift = s.value(f"select i1 {pages}, i64 {HUGE_PAGE.bit_length() - 1}, i64 {eighth}")
    steps = s.value(f"add i64 {s.value(f'lshr i64 {last}, {shift}')}, 1")
    size = s.value(f"shl i64 {steps}, {shift}")
    top = s.value(f"sub i64 {size}, 1")
    part = s.value(f"and i64 {s.value(f'lshr i64 {top}, {eighth}')}, 7")
    doubling = s.value(f"shl i64 {s.value(f'sub i64 {log}, 17')}, 3")
    s.write(f"store i64 {s.value(f'add i64 {doubling}, {part}')}, ptr %class")
    s.write(f"ret i64 {size}")
    module.add(f)


def _fresh(module: ModuleBuilder) -> None:
    """A block from the system; if there is none, free blocks are returned and it tries again."""
    f = Function(module, "fresh", [("i64", "size"), ("i64", "class"), ("i64", "color")], "ptr")
    s = f.body
    mapped, start = f.slot("[2 x i64]"), f.slot("ptr")
    s.write(f"store ptr {s.value(f'call ptr @take_pages(i64 %size, ptr {mapped})')}, ptr {start}")
    with s.when(s.value(f"icmp eq ptr {s.value(f'load ptr, ptr {start}')}, null")) as failed:
        failed.value("call i64 @wengert_memory_trim(i64 0)")
        again = failed.value(f"call ptr @take_pages(i64 %size, ptr {mapped})")
        failed.write(f"store ptr {again}, ptr {start}")
    start_address = s.value(f"load ptr, ptr {start}")
    with s.when(s.value(f"icmp ne ptr {start_address}, null")) as got:
        shift = got.value(f"mul i64 {got.value(f'and i64 %color, {_COLORS - 1}')}, {_SHIFT}")
        header = got.value(f"getelementptr i8, ptr {start_address}, i64 {shift}")
        store(got, load(got, mapped, 0), header, _BASE)
        store(got, load(got, mapped, 1), header, _LENGTH)
        store(got, "%size", header, _SIZE)
        store(got, "%class", header, _CLASS)
        block = got.value(f"getelementptr i8, ptr {header}, i64 {_HEADER}")
        got.write(f"store ptr {block}, ptr {start}")
    s.write(f"ret ptr {s.value(f'load ptr, ptr {start}')}")
    module.add(f)


def _alloc(module: ModuleBuilder) -> None:
    f = _public(module, "wengert_alloc", [("i64", "bytes")], "ptr")
    s = f.body
    result, place = f.slot("ptr"), f.slot("i64")
    s.write(f"store ptr null, ptr {result}")
    with s.when(s.value(f"icmp ult i64 %bytes, {thresholds.pooled_block_bytes + 1}")) as small:
        small.write(f"ret ptr {small.value('call ptr @small_block(i64 %bytes)')}")
        small.label(f"after{f.number()}")
    with s.when(s.value(f"icmp ule i64 %bytes, {_MAX_BYTES}")) as large:
        size = large.value(f"call i64 @size_of(i64 %bytes, ptr {place})")
        index = large.value(f"load i64, ptr {place}")
        two = large.value(f"shl i64 {index}, 1")
        head = field(large, "@memory", large.value(f"add i64 {two}, {_LISTS}"))
        _acquire(large)
        first = load(large, head, 0, "ptr")
        hit = large.value(f"icmp ne ptr {first}, {head}")
        with large.when(hit) as kept:
            kept.write(f"call void @unlink(ptr {first})")
            _count(kept, "hits", "1")
            block = kept.value(f"getelementptr i8, ptr {first}, i64 {_HEADER}")
            kept.write(f"store ptr {block}, ptr {result}")
        now = _count(large, "used", size)
        higher = module.declare("llvm.umax.i64", "i64", ["i64", "i64"])
        peak = load(large, "@memory", _COUNTED["peak"])
        peak = large.value(f"call i64 {higher}(i64 {peak}, i64 {now})")
        store(large, peak, "@memory", _COUNTED["peak"])
        color = load(large, "@memory", _COLOR)
        _release(large)
        with large.unless(hit) as miss:
            made = miss.value(f"call ptr @fresh(i64 {size}, i64 {index}, i64 {color})")
            miss.write(f"store ptr {made}, ptr {result}")
            none = miss.value(f"icmp eq ptr {made}, null")
            _acquire(miss)
            _count(miss, "misses", "1")
            store(miss, miss.value(f"add i64 {color}, 1"), "@memory", _COLOR)
            _count(miss, "used", miss.value(f"select i1 {none}, i64 {size}, i64 0"), "sub")
            _release(miss)
    s.write(f"ret ptr {s.value(f'load ptr, ptr {result}')}")
    module.add(f)


def _small(module: ModuleBuilder) -> None:
    """A block from malloc, aligned to 64 bytes, with three words of header before it."""
    f = Function(module, "small_block", [("i64", "bytes")], "ptr")
    s = f.body
    result = f.slot("ptr")
    s.write(f"store ptr null, ptr {result}")
    malloc = module.declare("malloc", "ptr", ["i64"])
    total = s.value(f"add i64 %bytes, {24 + 63}")
    base = s.value(f"call ptr {malloc}(i64 {total})")
    with s.when(s.value(f"icmp ne ptr {base}, null")) as got:
        number = got.value(f"ptrtoint ptr {base} to i64")
        aligned = got.value(f"and i64 {got.value(f'add i64 {number}, {24 + 63}')}, -64")
        block = got.value(f"inttoptr i64 {aligned} to ptr")
        header = _header(got, block)
        store(got, base, header, _LENGTH, "ptr")  # the word for the base is not part of this header
        store(got, "%bytes", header, _SIZE)
        store(got, str(_C_LIBRARY), header, _CLASS)
        got.write(f"store ptr {block}, ptr {result}")
    s.write(f"ret ptr {s.value(f'load ptr, ptr {result}')}")
    module.add(f)


def _free(module: ModuleBuilder) -> None:
    f = _public(module, "wengert_free", [("ptr", "block")])
    s = f.body
    release = module.declare("free", "void", ["ptr"])
    with s.when(s.value("icmp ne ptr %block, null")) as some:
        header = _header(some, "%block")
        index = load(some, header, _CLASS)
        small = some.value(f"icmp eq i64 {index}, {_C_LIBRARY}")
        with some.when(small) as given:
            given.write(f"call void {release}(ptr {load(given, header, _LENGTH, 'ptr')})")
        with some.unless(small) as large:
            size = load(large, header, _SIZE)
            two = large.value(f"shl i64 {index}, 1")
            head = field(large, "@memory", large.value(f"add i64 {two}, {_LISTS}"))
            age = field(large, header, _BY_AGE)
            _acquire(large)
            _count(large, "used", size, "sub")
            limit = load(large, "@memory", _COUNTED["limit"])
            excess = large.value(f"icmp ugt i64 {size}, {limit}")
            kept = large.value(f"xor i1 {excess}, true")
            with large.when(kept) as keep:
                keep.write(f"call void @link(ptr {head}, ptr {header})")
                keep.write(f"call void @link(ptr {field(keep, '@memory', _AGES)}, ptr {age})")
                _count(keep, "kept", size)
            _count(large, "returned", large.value(f"select i1 {excess}, i64 {size}, i64 0"))
            total = load(large, "@memory", _COUNTED["kept"])
            _release(large)
            with large.when(excess) as unkept:
                base, length = (
                    load(unkept, header, _BASE, "ptr"),
                    load(unkept, header, _LENGTH),
                )
                unkept.write(f"call void @give_pages(ptr {base}, i64 {length})")
            with large.when(large.value(f"icmp ugt i64 {total}, {limit}")) as beyond:
                beyond.value(f"call i64 @wengert_memory_trim(i64 {limit})")
    s.write("ret void")
    module.add(f)


def _shrink(module: ModuleBuilder) -> None:
    """Return the oldest block if more than a bound is kept; its size, or 0."""
    f = Function(module, "shrink", [("i64", "bound")], "i64")
    s = f.body
    returned = f.slot("i64")
    s.write(f"store i64 0, ptr {returned}")
    _acquire(s)
    more = s.value(f"icmp ugt i64 {load(s, '@memory', _COUNTED['kept'])}, %bound")
    age = load(s, field(s, "@memory", _AGES), 1, "ptr")
    header = s.value(f"getelementptr i8, ptr {age}, i64 -{8 * _BY_AGE}")
    with s.when(more) as one:
        one.write(f"call void @unlink(ptr {header})")
        size = load(one, header, _SIZE)
        _count(one, "returned", size)
        one.write(f"store i64 {size}, ptr {returned}")
    _release(s)
    with s.when(more) as one:
        base, length = load(one, header, _BASE, "ptr"), load(one, header, _LENGTH)
        one.write(f"call void @give_pages(ptr {base}, i64 {length})")
    s.write(f"ret i64 {s.value(f'load i64, ptr {returned}')}")
    module.add(f)


def _realloc(module: ModuleBuilder) -> None:
    """Stays in place if the block is large enough and at most twice too large."""
    f = _public(module, "wengert_realloc", [("ptr", "block"), ("i64", "bytes")], "ptr")
    s = f.body
    result = f.slot("ptr")
    fresh = s.value("icmp eq ptr %block, null")
    with s.when(fresh) as none:
        none.write(f"ret ptr {none.value('call ptr @wengert_alloc(i64 %bytes)')}")
        none.label(f"after{f.number()}")
    size = load(s, _header(s, "%block"), _SIZE)
    fits = s.value(f"icmp ule i64 %bytes, {size}")
    near = s.value(f"icmp uge i64 %bytes, {s.value(f'lshr i64 {size}, 1')}")
    stays = s.value(f"and i1 {fits}, {near}")
    s.write(f"store ptr %block, ptr {result}")
    with s.unless(stays) as moves:
        new = moves.value("call ptr @wengert_alloc(i64 %bytes)")
        moves.write(f"store ptr {new}, ptr {result}")
        with moves.when(moves.value(f"icmp ne ptr {new}, null")) as got:
            length = got.value(f"select i1 {fits}, i64 %bytes, i64 {size}")
            got.copy_bytes(new, "%block", length)
            got.write("call void @wengert_free(ptr %block)")
    s.write(f"ret ptr {s.value(f'load ptr, ptr {result}')}")
    module.add(f)


def _limit(module: ModuleBuilder) -> None:
    f = _public(module, "wengert_memory_limit", [("i64", "bytes")])
    _acquire(f.body)
    store(f.body, "%bytes", "@memory", _COUNTED["limit"])
    _release(f.body)
    f.body.value("call i64 @wengert_memory_trim(i64 %bytes)")
    f.body.write("ret void")
    module.add(f)


def _trim(module: ModuleBuilder) -> None:
    f = _public(module, "wengert_memory_trim", [("i64", "bound")], "i64")
    s, total = f.body, f.slot("i64")
    s.write(f"store i64 0, ptr {total}")
    s.block("more")
    went = s.value("call i64 @shrink(i64 %bound)")
    s.write(f"store i64 {s.plus(s.value(f'load i64, ptr {total}'), went)}, ptr {total}")
    s.write(f"br i1 {s.value(f'icmp eq i64 {went}, 0')}, label %end, label %more")
    s.label("end")
    s.write(f"ret i64 {s.value(f'load i64, ptr {total}')}")
    module.add(f)


def _read(module: ModuleBuilder) -> None:
    f = _public(module, "wengert_memory_read", [("ptr", "out")])
    _acquire(f.body)
    for index, name in enumerate(COUNTERS):
        store(f.body, load(f.body, "@memory", _COUNTED[name]), "%out", index)
    _release(f.body)
    f.body.write("ret void")
    module.add(f)


def _in_child(module: ModuleBuilder) -> None:
    """A child of a fork has one thread; a lock that another one held would never be released.

    If it was held, that thread was changing the lists: they are initialized again, and the blocks
    in them are leaked in the child.
    """
    f = _public(module, "wengert_memory_child", [])
    held = f.body.value(f"icmp ne i64 {load(f.body, '@memory', 0)}, 0")
    with f.body.when(held) as s:
        s.write("call void @wengert_memory_start()")
        store(s, "0", "@memory", _COUNTED["kept"])
        _release(s)
    f.body.write("ret void")
    module.add(f)


# ---- memory handler of NumPy ---------------------------------------------------------------------


NAME = "wengert"

_NAME_LENGTH = 127  # of the name in numpy/ndarraytypes.h, which is followed by the version, 1
_RECORD = f"{{[{_NAME_LENGTH} x i8], i8, ptr, ptr, ptr, ptr, ptr}}"


def emit_numpy_handler(module: ModuleBuilder) -> None:
    """Add the handler to a module that contains the allocator."""
    functions = (
        _array_malloc(module),
        _array_calloc(module),
        _array_realloc(module),
        _array_free(module),
    )
    name = NAME + r"\00" * (_NAME_LENGTH - len(NAME))
    fields = [
        f'[{_NAME_LENGTH} x i8] c"{name}"',
        "i8 1",
        "ptr null",
        *(f"ptr @{n}" for n in functions),
    ]
    module.parts["array_handler"] = (
        f"@array_handler = internal constant {_RECORD} {{{', '.join(fields)}}}, align 8"
    )
    module.parts["wengert_array_handler"] = (
        "define ptr @wengert_array_handler() {\nentry:\n  ret ptr @array_handler\n}"
    )


def _array_malloc(module: ModuleBuilder) -> str:
    f = Function(module, "array_malloc", [("ptr", "context"), ("i64", "bytes")], "ptr")
    f.body.write(f"ret ptr {f.body.value('call ptr @wengert_alloc(i64 %bytes)')}")
    module.add(f)
    return f.name


def _array_calloc(module: ModuleBuilder) -> str:
    arguments = [("ptr", "context"), ("i64", "count"), ("i64", "size")]
    f = Function(module, "array_calloc", arguments, "ptr")
    s = f.body
    product = module.declare("llvm.umul.with.overflow.i64", "{i64, i1}", ["i64", "i64"])
    fill = module.declare("llvm.memset.p0.i64", "void", ["ptr", "i8", "i64", "i1"])
    result = s.value(f"call {{i64, i1}} {product}(i64 %count, i64 %size)")
    overflowed = s.value(f"extractvalue {{i64, i1}} {result}, 1")
    number = s.value(f"extractvalue {{i64, i1}} {result}, 0")
    # An allocation of -1 bytes always fails.
    bytes_ = s.value(f"select i1 {overflowed}, i64 -1, i64 {number}")
    block = s.value(f"call ptr @wengert_alloc(i64 {bytes_})")
    with s.when(s.value(f"icmp ne ptr {block}, null")) as got:
        got.write(f"call void {fill}(ptr {block}, i8 0, i64 {bytes_}, i1 false)")
    s.write(f"ret ptr {block}")
    module.add(f)
    return f.name


def _array_realloc(module: ModuleBuilder) -> str:
    arguments = [("ptr", "context"), ("ptr", "block"), ("i64", "bytes")]
    f = Function(module, "array_realloc", arguments, "ptr")
    f.body.write(f"ret ptr {f.body.value('call ptr @wengert_realloc(ptr %block, i64 %bytes)')}")
    module.add(f)
    return f.name


def _array_free(module: ModuleBuilder) -> str:
    """Ignores the size that NumPy passes: it is in the header of the block."""
    arguments = [("ptr", "context"), ("ptr", "block"), ("i64", "bytes")]
    f = Function(module, "array_free", arguments)
    f.body.write("call void @wengert_free(ptr %block)")
    f.body.write("ret void")
    module.add(f)
    return f.name
