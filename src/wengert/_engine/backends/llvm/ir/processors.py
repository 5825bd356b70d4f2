"""The processor that code is generated for: this computer's, or another one.

    Processor       triple, instructions and vector registers of another processor
    compiling_for   code that is generated inside of this context is for that processor
    foreign         the processor of the innermost context; None for this computer's
    is_for_device   whether that is a device

Code for another processor is written to files, and never loaded into this process: so external
functions have no addresses, and loops do not ask Python for interrupts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Processor:
    """A processor that code is generated for.

    Attributes
    ----------
    name : str
    triple, cpu, instructions : str
        In LLVM's notation; `instructions` are its features beyond those of `cpu`.
    vector_bytes : int
        The size of the vectors of kernels.
    loop_bytes : int
        The size of the vectors of fused loops; 0 if they compute one element at a time.
    abi : str
        The name of the calling convention, for targets that have several.
    widens : bool
        Whether fused loops with few instructions compute several registers at a time.
    has_libraries : bool
        Whether code for it can call functions of SciPy and other libraries.
    is_device : bool
        Whether each element of a fused loop is computed by a thread of its own.
    """

    name: str
    triple: str
    cpu: str
    instructions: str
    vector_bytes: int
    loop_bytes: int
    abi: str = ""
    has_libraries: bool = True
    widens: bool = True
    is_device: bool = False

    @property
    def key(self) -> str:
        """What generated code depends on, in the form of a list of features."""
        return f"{self.instructions},+{self.name}:{self.vector_bytes}:{self.loop_bytes}"


_FOREIGN: ContextVar[Processor | None] = ContextVar("processor", default=None)


def foreign() -> Processor | None:
    """The processor that code is generated for; None for this computer's, in this process."""
    return _FOREIGN.get()


def is_for_device() -> bool:
    """Whether code is generated for a device, such as a graphics card."""
    processor = _FOREIGN.get()
    return processor is not None and processor.is_device


@contextmanager
def compiling_for(processor: Processor) -> Iterator[None]:
    """Generate code for another processor."""
    token = _FOREIGN.set(processor)
    try:
        yield
    finally:
        _FOREIGN.reset(token)
