"""What the run of a file has found, before it is put into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration.values import Kernel, Symbol, Value

if TYPE_CHECKING:
    import ast

    from pytest_tritonverify.degeneration.arguments import Arguments

TORCH = "torch"  # PyTorch computes
HOST = "host"  # numpy or Python computes
EVASION = "evasion"  # the check is led around
REFERENCE = "reference"  # the task's own answer is used
UNRESOLVED = "unresolved"  # it can't be seen what is called
MISTAKE = "mistake"  # it can't work as written
MOVEMENT = "movement"  # PyTorch moves data, where moving data is the task


@dataclass(frozen=True)
class Finding:
    """Something at a place.

    Attributes:
        kind: one of the names above.
        node: where.
        call: the operator, or an empty string for the text of the call.
        reason: what happens there, as a clause.
        guarded: it is reached only where there is no accelerator.
    """

    kind: str
    node: ast.AST
    call: str
    reason: str
    guarded: bool


@dataclass(frozen=True)
class Launch:
    """A kernel's launch."""

    kernel: Kernel
    arguments: Arguments
    node: ast.AST
    guarded: bool


class Findings:
    """All that has been found.

    Attributes:
        recording: the current phase is the forward pass; else only evasions are recorded.
    """

    def __init__(self) -> None:
        self.recording = False
        self.found: dict[tuple[int, str, str], Finding] = {}
        self.moved: dict[tuple[int, str], Finding] = {}
        self.launches: dict[tuple[object, ...], Launch] = {}
        self.empty_launches: dict[int, ast.AST] = {}
        self.without_grid: dict[int, tuple[Kernel, ast.AST]] = {}
        self.pending: dict[Symbol, Finding] = {}
        self.tensors: set[Symbol] = set()
        self.numbers: set[Symbol] = set()
        self.work: set[str] = set()

    def add(self, kind: str, node: ast.AST, call: str, reason: str, *, guarded: bool) -> None:
        """Record a violation; one that is reached everywhere outweighs a guarded one."""
        if not self.recording and kind not in (EVASION, REFERENCE):
            return
        key = (id(node), kind, call)
        before = self.found.get(key)
        if before is None or (before.guarded and not guarded):
            self.found[key] = Finding(kind, node, call, reason, guarded)

    def move(self, node: ast.AST, name: str, kind: str, *, guarded: bool) -> None:
        """Record movement: `view`, `cast`, `move` or `gather`."""
        if self.recording:
            self.work.add(kind)
            key = (id(node), kind)
            before = self.moved.get(key)
            if before is None or (before.guarded and not guarded):
                self.moved[key] = Finding(kind, node, "", name, guarded)

    def launch(self, kernel: Kernel, arguments: Arguments, node: ast.AST, *, guarded: bool) -> None:
        """Record a launch."""
        if self.recording:
            values = (*arguments.values, *arguments.keywords.items())
            key = (kernel, id(node), guarded, *values)
            self.launches.setdefault(key, Launch(kernel, arguments, node, guarded))

    def suspect(self, symbol: Symbol, finding: Finding) -> None:
        """Record an operator that is a violation if its operands are tensors."""
        if self.recording:
            before = self.pending.get(symbol)
            if before is None or (before.guarded and not finding.guarded):
                self.pending[symbol] = finding

    def is_tensor(self, value: Value) -> None:
        """Take it as shown that inputs are tensors."""
        self.tensors.update(a for a in value if isinstance(a, Symbol))

    def is_number(self, value: Value) -> None:
        """Take it as shown that inputs are numbers."""
        self.numbers.update(a for a in value if isinstance(a, Symbol))

    def settle(self) -> None:
        """Decide on the operators whose operands were not known to be tensors."""
        numbers = self._closure(self.numbers)
        known: set[Symbol] = set()
        todo = [s for s in self.tensors if s not in numbers]
        while todo:
            symbol = todo.pop()
            if symbol not in known:
                known.add(symbol)
                todo.extend(symbol.items.values())  # elements of tensors are tensors
        # Symbols are made after their operands, and recorded in that order.
        spoiled: set[Symbol] = set()
        for symbol, finding in self.pending.items():
            tensors = {operand for operand in symbol.operands if operand in known}
            if symbol in known or tensors:
                known.add(symbol)
                if finding.kind == MISTAKE:
                    spoiled.add(symbol)
                elif tensors and tensors <= spoiled:
                    # What can't work gives nothing to compute on; it fails the file itself.
                    spoiled.add(symbol)
                    continue
                self.add(
                    finding.kind,
                    finding.node,
                    finding.call,
                    finding.reason,
                    guarded=finding.guarded,
                )

    def _closure(self, numbers: set[Symbol]) -> set[Symbol]:
        # What gave a number was made of numbers.
        found: set[Symbol] = set()
        todo = [s for s in numbers if s not in self.tensors]
        while todo:
            symbol = todo.pop()
            if symbol not in found and symbol not in self.tensors:
                found.add(symbol)
                todo.extend(symbol.operands)
        return found
