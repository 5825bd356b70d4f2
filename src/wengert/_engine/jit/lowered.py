"""Lowered: the graph and the code of a compiled function, for inspection.

The graph is always available; loops, LLVM IR and machine instructions only if the backend generates
code (its method `program`, see backends/llvm).
"""

from __future__ import annotations

from typing import Any

from wengert._engine.graphs import Graph
from wengert.errors import BackendError, at, user_line

from .compiled_program import CompiledProgram


class Lowered:
    """A function lowered for given arguments; made by ``f.lower(...)``.

    Attributes
    ----------
    graph : Graph
        The simplified graph.
    loops : str
        Fused loops, buffers and library calls.
    llvm_ir, assembly : str
        LLVM IR, and the machine instructions.

    Raises
    ------
    BackendError
        The backend does not generate code.
    """

    __module__ = "wengert.compiling"

    def __init__(self, compiled: CompiledProgram) -> None:
        self._compiled = compiled
        self._program: Any = None

    @property
    def graph(self) -> Graph:
        """The simplified graph, as it runs."""
        return self._compiled.executed

    @property
    def loops(self) -> str:
        """Fused loops, buffers and library calls."""
        summarize = getattr(self._compiled.backend, "summarize", None)
        return str(self._of_program("loops") if summarize is None else summarize(self.graph))

    @property
    def llvm_ir(self) -> str:
        """The LLVM IR before optimization by LLVM."""
        return str(self._of_program("text"))

    @property
    def assembly(self) -> str:
        """The machine instructions."""
        return str(self._of_program("assembly"))

    def _of_program(self, what: str) -> Any:
        backend = self._compiled.backend
        make = getattr(backend, "program", None)
        if self._program is None and make is not None:
            self._program = make(self.graph)
        if not hasattr(self._program, what):
            raise BackendError(
                f"the backend {backend.name!r} generates no code for {self.graph.name}, so there "
                f"is no {what}. Compile it with backend='llvm'{at(user_line())}."
            )
        attribute = getattr(self._program, what)
        return attribute() if callable(attribute) else attribute

    def __str__(self) -> str:
        return str(self.graph)

    def __repr__(self) -> str:
        nodes = len(self.graph)
        return f"<{self.graph.name} lowered: {nodes} nodes, {self._compiled.backend.name}>"
