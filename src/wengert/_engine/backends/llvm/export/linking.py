"""Object files as shared libraries and WebAssembly modules, by a compiler of the user.

The linker is the one that is given; else that of this computer for its own code (`cc`), and zig, of
the package `ziglang`, for other targets.

    linked       the bytes of a linked file
"""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from wengert.errors import BackendError, at, user_line

from ..ir import execution_engine
from ..ir.processors import Processor

_ZIG = {
    "x86_64": "x86_64-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
}


def linked(
    image: bytes, processor: Processor, names: Sequence[str], linker: str | None = None
) -> bytes:
    """An object file as a shared library, or as a module of WebAssembly.

    Parameters
    ----------
    image : bytes
    processor : Processor
    names : sequence of str
        The functions that are called from outside.
    linker : str, optional
        A command, such as ``"aarch64-linux-gnu-gcc"``.

    Raises
    ------
    BackendError
        There is no linker for the target, or it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "code.o"), Path(folder, "code.out")
        source.write_bytes(image)
        command = [*_command(processor, names, linker), "-o", str(result), str(source)]
        if "wasm" not in processor.triple:
            command.append("-lm")
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise BackendError(
                f"the linker {command[0]!r} cannot be run: {error}{at(user_line())}."
            ) from error
        if done.returncode or not result.exists():
            raise BackendError(
                f"linking failed ({shlex.join(command[:-3])}): {done.stderr.strip()[-2000:]}"
                f"{at(user_line())}."
            )
        return result.read_bytes()


def _command(processor: Processor, names: Sequence[str], linker: str | None) -> list[str]:
    if "wasm" in processor.triple:
        first = shlex.split(linker) if linker else [*_zig("a WebAssembly module"), "wasm-ld"]
        exports = [f"--export={n}" for n in names]
        return [*first, "--no-entry", *exports, "--export=__heap_base", "--allow-undefined"]
    if linker:
        return [*shlex.split(linker), "-shared"]
    own = str(execution_engine.machine().triple)
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if processor.triple.split("-")[0] == own.split("-")[0] and compiler is not None:
        return [compiler, "-shared"]
    zig = _ZIG.get(processor.triple.split("-")[0])
    if zig is None:
        raise BackendError(
            f"there is no linker for {processor.triple}. Give one, linker='...', or export an "
            f"object file, format='object'{at(user_line())}."
        )
    return [*_zig(f"a shared library for {processor.name}"), "cc", "-target", zig, "-shared"]


def _zig(what: str) -> list[str]:
    if importlib.util.find_spec("ziglang") is None:
        raise BackendError(
            f"linking {what} needs a compiler for it. Install the package ziglang "
            "(pip install wengert[cross]), give the command of a linker, linker='...', or export "
            f"an object file, format='object'{at(user_line())}."
        )
    return [sys.executable, "-m", "ziglang"]
