"""Protocols: the parts of a program that the code generators of its functions use.

ProgramContext     a program: its module, the functions it shares, its frame and its callbacks
FunctionContext    one of its functions, as seen by the calls of loop nests
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.symbolic.dim import Length

from ..ir.ir_builder import ModuleBuilder, Section
from ..ir.scalar_language import Language
from ..kernels import KernelCalls
from ..lowering.loop_ir import Expr
from ..schedule.integer_ranges import InputFacts, Integers
from .host_callbacks import HostCallbacks


class ProgramContext(Protocol):
    """The program to which functions belong (program.py)."""

    module: ModuleBuilder
    language: Language
    threads: int | None
    steps: KernelCalls
    callbacks: HostCallbacks
    needs_runtime: bool

    def runtime(self, name: str, result: str, arguments: Sequence[str]) -> str:
        """Declare a function of the runtime; returns ``@name``."""

    def framed(self, section: Section, slot: int, kind: str = "ptr") -> str:
        """Load the content of a slot of the frame."""

    def constant_slot(self, array: np.ndarray[Any, Any]) -> int:
        """The slot of the frame that holds the address of a constant array."""

    def callback_slot(self) -> int:
        """The slot of the frame that holds the entry of host callbacks."""

    def nest_name(self, text: str, once: bool = False) -> str:
        """The name of the loop nest with this code; equal ones are emitted once.

        `once`: a run of the program executes this nest once, in a few steps.
        """

    def body(
        self,
        body: Body,
        updates: Sequence[tuple[int, int]] = (),
        facts: InputFacts | None = None,
        is_unrolled: bool = True,
    ) -> Any:
        """The function of a loop body or branch, emitted at its first use."""

    def nested(self, step: Expr, known: Integers) -> Any:
        """A loop or conditional, with its bodies emitted; `known` are integers around it."""


class FunctionContext(Protocol):
    """A function that calls loop nests (function.py)."""

    module: ModuleBuilder
    language: Language
    threads: int | None
    work_bytes: Length

    def runtime(self, name: str, result: str, arguments: Sequence[str]) -> str:
        """Declare a function of the runtime; returns ``@name``."""

    def number(self, length: Length) -> str:
        """A length as an LLVM operand."""

    def pointer(self, expr: Expr) -> str:
        """The address of a stored expression."""

    def table(self, body: Section, nest: Any, instead: Mapping[Any, str]) -> str:
        """The argument table of a loop nest."""

    def check(self, body: Section, nest: Any, table: str) -> None:
        """Return early if a loop nest has failed."""
