"""Kernels of single operations, loaded to a device once.

launch_of    the kernel of a name on a device
element_kernel    a kernel from the code of one element
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

from wengert._engine.backends.llvm.ir.execution_engine import compiling_for
from wengert._engine.core.thread_state import lock

from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from .device import Device, Launch
from .kernel_codegen import DeviceKernel
from .ptx import NVPTX

_LOADED: weakref.WeakKeyDictionary[Device, dict[str, Launch]] = weakref.WeakKeyDictionary()
_LOCK = lock()


def launch_of(device: Device, name: str, make: Callable[[], DeviceKernel]) -> Launch:
    """The kernel of a name on a device; `make` writes it at the first use."""
    with _LOCK:
        known = _LOADED.setdefault(device, {})
        found = known.get(name)
        if found is None:
            with compiling_for(NVPTX):
                kernel = make()
            found = known[name] = device.load([kernel])[0]
        return found


def element_kernel(
    name: str,
    arguments: Sequence[tuple[str, str]],
    write: Callable[[ModuleBuilder, Function, Section, Name], None],
) -> DeviceKernel:
    """A kernel from the code of one element.

    Parameters
    ----------
    arguments : sequence of (type, name)
        Those before the number of elements, which is an argument as well.
    write : callable
        ``write(module, function, section, element)`` emits the code.
    """
    module = ModuleBuilder()
    listed = [*arguments, *[("i64", n) for n in ("elements", "first", "stride")]]
    function = Function(module, name, listed, "void", "#1", linkage="")
    with function.body.loop("%first", "%elements", "%stride") as (s, element):
        write(module, function, s, element)
    function.body.write("ret void")
    module.add(function)
    return DeviceKernel(name, dict(module.parts), (), 0, False)
