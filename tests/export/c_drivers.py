"""C programs that call exported functions, compiled and run outside of this process.

compiled    a program that reads inputs from a file, calls a function, and writes the outputs
run         the outputs, for values
driver      the text of such a program
"""

import subprocess

import numpy as np

from wengert._engine.backends.llvm.export.entry_points import c_type
from wengert._engine.core.symbolic.dim import replaced

from .exported_calls import sizes_of


def _count(spec, sizes):
    count = int(np.prod([replaced(n, sizes) for n in spec.shape], dtype=np.int64))
    return count * (2 if spec.dtype.kind == "c" else 1)


def driver(exported, function, sizes):
    """The text of a C program for given sizes."""
    lines = ["#include <stdio.h>", "#include <stdlib.h>", f'#include "{exported.header.name}"']
    for listed in (function.inputs, function.outputs):
        lines += [f"static {c_type(s)} {n}_[{max(_count(s, sizes), 1)}];" for n, s in listed]
    lines += ["int main(int count, char **names) {", "  FILE *in, *out; int code; void *work;"]
    numbers = ", ".join(f"INT64_C({sizes[n]})" for n, _ in function.sizes)
    lines += [f"  const int64_t bytes = {function.name}_work({numbers});"]
    lines += ["  if (count != 3 || bytes < 0) return 90;", "  work = malloc((size_t)bytes + 1);"]
    lines += [
        '  in = fopen(names[1], "rb"); out = fopen(names[2], "wb");',
        "  if (!in || !out) return 91;",
    ]
    for n, s in function.inputs:
        size = _count(s, sizes)
        if size:
            lines.append(f"  if (fread({n}_, sizeof *{n}_, {size}, in) != {size}) return 92;")
    passed = [f"{n}_" for n, _ in (*function.inputs, *function.outputs)]
    passed += [f"INT64_C({sizes[n]})" for n, _ in function.sizes]
    lines.append(f"  code = {function.name}({', '.join([*passed, 'work', 'bytes'])});")
    for n, s in function.outputs:
        if _count(s, sizes):
            lines.append(f"  fwrite({n}_, sizeof *{n}_, {_count(s, sizes)}, out);")
    lines += ["  fclose(in); fclose(out); free(work);", "  return code;", "}"]
    return "\n".join(lines) + "\n"


def compiled(exported, name, values, compiler, *options):
    """An executable that calls a function for values of these sizes."""
    function = next(f for f in exported.functions if f.name == name)
    folder = exported.path.parent
    source = folder / f"{exported.path.stem}_{name}_main.c"
    sizes = sizes_of(function, values)
    source.write_text(driver(exported, function, sizes))
    program = folder / f"{exported.path.stem}_{name}_main"
    done = subprocess.run(
        [compiler, *options, str(source), str(exported.path), "-o", str(program), "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr[:3000]
    return program


def run(exported, name, values, program, *emulator):
    """The outputs of a function, called by an executable."""
    function = next(f for f in exported.functions if f.name == name)
    sizes = sizes_of(function, values)
    source, result = program.with_suffix(".in"), program.with_suffix(".out")
    with open(source, "wb") as file:
        for v, (_, spec) in zip(values, function.inputs, strict=True):
            file.write(np.array(v, spec.dtype, order="C").tobytes())
    done = subprocess.run(
        [*emulator, str(program), str(source), str(result)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[:3000]}"
    data, outputs, position = result.read_bytes(), [], 0
    for _, spec in function.outputs:
        shape = [replaced(n, sizes) for n in spec.shape]
        size = int(np.prod(shape, dtype=np.int64)) * spec.dtype.itemsize
        outputs.append(np.frombuffer(data[position : position + size], spec.dtype).reshape(shape))
        position += size
    assert position == len(data)
    return outputs
