"""Run a file on abstract values: an interpreter that asks what could be computed, and by whom.

The machine knows Python: names, scopes, branches, loops, functions, classes. What an operator, an
attribute or a call means is up to its *semantics*: one for the host's side of a file, one for
kernels. Functions are run once for each kind of arguments; what they return is remembered. Frames
lie on a list, so that neither nesting nor long chains of calls need Python's own stack.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration.code import Code
from pytest_tritonverify.degeneration.flow import Flow
from pytest_tritonverify.degeneration.frames import Frame, Summary
from pytest_tritonverify.degeneration.values import NOTHING, Scope, Value, join, only

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.arguments import Arguments
    from pytest_tritonverify.degeneration.pool import Pool
    from pytest_tritonverify.degeneration.semantics import Semantics

_MOST_ROUNDS = 3


class Machine(Flow):
    """An abstract interpreter.

    Args:
        pool: makes the atoms.
        semantics: the meaning of operators, attributes and calls.
        most_steps: how many instructions to run before giving up.
    """

    def __init__(self, pool: Pool, semantics: Semantics, *, most_steps: int) -> None:
        super().__init__(pool, semantics)
        self._steps = 0
        self._most_steps = most_steps
        self._operations = {
            name[4:]: getattr(self, name) for name in dir(self) if name.startswith("_do_")
        }

    def forget(self) -> None:
        """Forget what functions return, for a new phase of the run."""
        self.summaries.clear()
        self.late.clear()
        self.dirty = False

    def run_module(self, tree: ast.Module) -> None:
        """Run the file itself."""
        self.frames.append(Frame(Code(tree), self.module, Summary()))
        self._run()

    def call(self, value: Value, arguments: Arguments, node: ast.AST) -> Value:
        """Call something from outside of any frame; return what it returns."""
        result = NOTHING
        scope = Scope(self.module)
        for _ in range(64):
            # A frame without instructions stands for the caller.
            caller = Frame(Code(ast.Module([], [])), scope, Summary())
            self.frames.append(caller)
            result = self.semantics.call(value, arguments, node)
            pending = bool(self.waiting)
            self._push_waiting()
            self._run()
            if not pending or self.exhausted:
                break
        self._run_late()
        return result

    def _run_late(self) -> None:
        """Run functions for all the arguments that were not looked at one by one."""
        for _ in range(_MOST_ROUNDS * 2):
            if not self.late or self.exhausted:
                return
            functions = list(self.late)
            self.late.clear()
            for function in functions:
                summary = self.summaries[function, None]
                summary.done = False
                self.enter(function, self.general(function), summary, guarded=False)
            self._push_waiting()
            self._run()
        self.exhausted = self.exhausted or bool(self.late)

    def _run(self) -> None:
        operations = self._operations
        while self.frames:
            frame = self.frames[-1]
            if frame.position == 0 and not self._begins(frame):
                self.frames.pop()
                continue
            instructions = frame.instructions
            end = len(instructions)
            while frame.position < end:
                name, node, argument = instructions[frame.position]
                frame.position += 1
                operations[name](frame, node, argument)
                if self.waiting:
                    self._push_waiting()
                    break
            else:
                self._steps += end
                if self._steps > self._most_steps:
                    self.exhausted = True
                    self.frames.clear()
                    return
                self._finish(frame)

    def _begins(self, frame: Frame) -> bool:
        if frame.summary.done:
            return False
        frame.summary.running = True
        return True

    def _push_waiting(self) -> None:
        self.frames.extend(self.waiting)
        self.waiting.clear()

    def _finish(self, frame: Frame) -> None:
        summary = frame.summary
        value = frame.returned
        if frame.code.generator:
            store = self.store(frame.code.node)
            self.put(store, None, frame.yielded, known=False)
            value = only(store)
        elif not value and frame.function is not None:
            value = self.pool.constant(None)
        if isinstance(frame.code.node, ast.ClassDef) and frame.home is not None:
            for name, bound in frame.scope.names.items():
                self.put(frame.home.store, name, bound)
        grown = join(summary.value, value)
        changed = grown != summary.value
        summary.value = grown
        if summary.asked and changed and frame.repeats < _MOST_ROUNDS:
            # It called itself and was answered with less than it returns.
            frame.repeats += 1
            frame.position = 0
            frame.stack.clear()
            frame.blocks.clear()
            frame.dead = False
            summary.asked = False
            if frame.function is not None:
                return
        summary.running = False
        summary.done = True
        self.frames.pop()
