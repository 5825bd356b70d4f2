"""Vectors that machine code reads without a mask, beside those of the LLVM IR that it was made of.

    excess      the functions of a module whose machine code reads more than their IR, and what

A masked load that has become a load without a mask reads beyond the end of an array, which only
pages without access show, and only where the array ends at one.  Here the code is not run.  It is
compared function by function: bytes of vectors that the IR loads (of a masked load with a constant
mask, those of its lanes), and bytes that instructions read into registers of 32 and 64 bytes
without a mask.
"""

import re

from wengert._engine.backends.llvm.ir import execution_engine

BYTES = {"double": 8, "i64": 8, "ptr": 8, "float": 4, "i32": 4, "i16": 2, "half": 2, "i8": 1}
REGISTERS = {"x": 16, "y": 32, "z": 64}
DEFINED = re.compile(r"define .*?@([\w.]+)\(")
LOADED = re.compile(r" = load <(\d+) x (\w+)>")
MASKED = re.compile(r"call <(\d+) x (\w+)> @llvm\.masked\.load.*, <\d+ x i1> (<[^>]*>|splat|%)")
# Of one element, or of no vector; and those that convert to elements of twice the size, or of four
# times.
SCALAR = re.compile(
    r"v?(mov[hl]|movs[sd]|mov[dqw]\b|movddup|p?broadcast|p?insert|cvt\w*si2|p?gather|pmov[sz]x)"
    r"|.*s[sdh]$"
)
HALVES = re.compile(r"vcvt(ps2pd|u?dq2pd|ph2psx?|ps2u?qq|u?w2ps)")
QUARTERS = re.compile(r"vcvt(ph2pd|u?w2pd)")


def by_ir(text):
    """Bytes of vectors that each function with masked loads reads at most without a mask."""
    read, masked, name = {}, set(), None
    for line in text.splitlines():
        if found := DEFINED.match(line):
            name = found[1]
            read[name] = 0
        elif found := LOADED.search(line):
            read[name] += int(found[1]) * BYTES[found[2]]
        elif name == "kernel" and (found := re.search(r" = load (ptr|i64)", line)):
            read[name] += 8  # several of a table are copied together
        elif found := MASKED.search(line):
            masked.add(name)
            lanes = int(found[1]) if found[3] == "splat" else found[3].count("true")
            read[name] += lanes * BYTES[found[2]]
    return {name: read[name] for name in masked}


def by_code(text):
    """The instructions of each function that read vectors from arrays without a mask."""
    read, name = {}, None
    for line in text.splitlines():
        if found := re.match(r"(\w[\w.]*):", line):
            name = found[1]
            read[name] = []
        instruction, _, operands = line.partition("#")[0].strip().partition("\t")
        registers = re.findall(r"%([xyz])mm\d", operands)
        in_array = re.search(r"\((?!%rip|%rsp|%rbp\))", operands)
        if not registers or not in_array or re.search(r"{%k|{1to|\)$", operands):
            continue  # no vector, of the stack or a constant, masked, one element, or a store
        if not SCALAR.match(instruction):
            size = max(REGISTERS[x] for x in registers)
            size //= 2 if HALVES.match(instruction) else 4 if QUARTERS.match(instruction) else 1
            read[name].append((size, f"{instruction} {operands}"))
    return read


def excess(text):
    """The functions of a module that read more than they should: names and instructions."""
    module = execution_engine.optimized(text)
    try:
        allowed = by_ir(str(module))
        read = by_code(str(execution_engine.machine().emit_assembly(module)))
    finally:
        module.close()
    return {
        name: [instruction for _, instruction in read[name]]
        for name, size in allowed.items()
        if name in read
        and sum(size for size, _ in read[name]) > size
        and any(size >= 32 for size, _ in read[name])
    }
