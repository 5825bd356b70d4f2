"""The allocator as memory handler of NumPy's arrays (NEP 49), as LLVM IR.

    wengert_array_handler() -> ptr    a PyDataMem_Handler with four functions of allocator.py

Arrays made with it own their data as usual: `arr.flags.owndata` is True, `resize` works, and the
memory is recycled for the next array of this size.  The handler is a constant of the native module,
which is never unloaded, so it outlives all arrays.
"""

from __future__ import annotations

from ..ir.ir_builder import Function, ModuleBuilder

NAME = "wengert"

_LENGTH = 127  # of the name in numpy/ndarraytypes.h, which is followed by the version, 1
_RECORD = f"{{[{_LENGTH} x i8], i8, ptr, ptr, ptr, ptr, ptr}}"


def emit_numpy_handler(module: ModuleBuilder) -> None:
    """Add the handler to a module that contains the allocator."""
    functions = (_malloc(module), _calloc(module), _realloc(module), _free(module))
    name = NAME + r"\00" * (_LENGTH - len(NAME))
    fields = [f'[{_LENGTH} x i8] c"{name}"', "i8 1", "ptr null", *(f"ptr @{n}" for n in functions)]
    module.parts["array_handler"] = (
        f"@array_handler = internal constant {_RECORD} {{{', '.join(fields)}}}, align 8"
    )
    module.parts["wengert_array_handler"] = (
        "define ptr @wengert_array_handler() {\nentry:\n  ret ptr @array_handler\n}"
    )


def _malloc(module: ModuleBuilder) -> str:
    f = Function(module, "array_malloc", [("ptr", "context"), ("i64", "bytes")], "ptr")
    f.body.write(f"ret ptr {f.body.value('call ptr @wengert_alloc(i64 %bytes)')}")
    module.add(f)
    return f.name


def _calloc(module: ModuleBuilder) -> str:
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


def _realloc(module: ModuleBuilder) -> str:
    arguments = [("ptr", "context"), ("ptr", "block"), ("i64", "bytes")]
    f = Function(module, "array_realloc", arguments, "ptr")
    f.body.write(f"ret ptr {f.body.value('call ptr @wengert_realloc(ptr %block, i64 %bytes)')}")
    module.add(f)
    return f.name


def _free(module: ModuleBuilder) -> str:
    """Ignores the size that NumPy passes: it is in the header of the block."""
    arguments = [("ptr", "context"), ("ptr", "block"), ("i64", "bytes")]
    f = Function(module, "array_free", arguments)
    f.body.write("call void @wengert_free(ptr %block)")
    f.body.write("ret void")
    module.add(f)
    return f.name
