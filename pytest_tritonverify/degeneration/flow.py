"""The machine's operations for branches, loops and `try`."""

# ruff: noqa: ARG002 - operations share one signature

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration.frames import Block, Frame
from pytest_tritonverify.degeneration.operations import Operations
from pytest_tritonverify.degeneration.values import (
    AN_OPAQUE,
    NOTHING,
    Value,
    join,
    widened,
)

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.code import Label

_MOST_ROUNDS = 3
_MOST_PARTS = 16


class Flow(Operations):
    """Operations that change the flow of control."""

    def _do_return(self, frame: Frame, node: ast.AST, argument: None) -> None:
        frame.returned = join(frame.returned, frame.stack.pop())
        frame.die()

    def _do_die(self, frame: Frame, node: ast.AST, argument: None) -> None:
        frame.die()

    def _do_require(self, frame: Frame, node: ast.AST, argument: None) -> None:
        if self.semantics.truth(frame.stack.pop()) is False:
            frame.die()

    def _block(self, frame: Frame, node: ast.AST, following: Label) -> Block:
        block = Block(node, following, len(frame.stack), guarded=frame.guarded)
        frame.blocks.append(block)
        return block

    def _do_if(self, frame: Frame, node: ast.AST, labels: tuple[Label, Label]) -> None:
        test = frame.stack.pop()
        block = self._block(frame, node, labels[0])
        known = self.semantics.truth(test)
        block.off_device = self.semantics.off_device(test)
        frame.guarded = frame.guarded or block.off_device == 0
        block.skip = known is True
        if known is False:
            frame.die()

    def _do_alternatives(self, frame: Frame, node: ast.AST, following: Label) -> None:
        self._block(frame, node, following)

    def _do_alternative(self, frame: Frame, node: ast.AST, following: Label) -> None:
        block = frame.blocks[-1]
        self._end_alternative(frame, block)
        block.next = following
        block.current += 1
        frame.guarded = block.guarded or block.off_device == block.current
        if block.skip:
            frame.die()

    def _end_alternative(self, frame: Frame, block: Block) -> None:
        changes = frame.changes(block)
        if block.first is None:
            block.first = changes
        if not frame.dead:
            block.outcomes.append(changes)
            block.condition.append(block.current)
        frame.dead = False
        del frame.stack[block.depth :]
        frame.restore(block)

    def _do_end(self, frame: Frame, node: ast.AST, revive: bool) -> None:  # noqa: FBT001 - an instruction's argument
        block = frame.blocks[-1]
        self._end_alternative(frame, block)
        frame.blocks.pop()
        frame.kept = block.kept
        # Where only the branch without an accelerator goes on, the rest belongs to it.
        off = block.off_device is not None and block.condition == [block.off_device]
        frame.guarded = block.guarded or off
        if not block.outcomes and not revive:
            frame.die()
            return
        merged = frame.merge(block, entry=not block.outcomes)
        for name, value in merged.items():
            frame.set(name, value)

    def _do_keep(self, frame: Frame, node: ast.AST, argument: None) -> None:
        block = frame.blocks[-1]
        block.kept = join(block.kept, frame.stack.pop())

    def _do_kept(self, frame: Frame, node: ast.AST, argument: None) -> None:
        frame.stack.append(frame.kept)

    def _do_handler(self, frame: Frame, node: ast.AST, name: str | None) -> None:
        block = frame.blocks[-1]
        for changed, value in (block.first or {}).items():
            before = frame.scope.names.get(changed, NOTHING)
            frame.set(changed, join(before, value))
        if name:
            frame.set(name, AN_OPAQUE)

    def _do_subject(self, frame: Frame, node: ast.AST, argument: None) -> None:
        value = frame.stack[frame.blocks[-1].depth - 1]
        frame.stack.append(join(value, self.semantics.element(value) or NOTHING))

    def _do_enter(self, frame: Frame, node: ast.AST, argument: None) -> None:
        self.answer(frame, 1, self.semantics.entered(frame.stack[-1], node))

    def _do_loop(self, frame: Frame, node: Any, following: Label) -> None:
        if isinstance(node, ast.While):
            self._block(frame, node, following)
            return
        element = self.semantics.element(frame.stack[-1])
        if self.waiting:
            frame.position -= 1
            return
        frame.stack.pop()
        self._block(frame, node, following).element = element
        if element is None:
            frame.die()

    def _do_parts(self, frame: Frame, node: Any, following: Label) -> None:
        """Begin a comprehension of one loop."""
        parts = self.semantics.parts(frame.stack[-1])
        length = following.position - frame.position
        if not parts or len(parts) > _MOST_PARTS or frame.budget < length * len(parts):
            self._do_loop(frame, node, following)
            return
        frame.budget -= length * len(parts)
        frame.stack.pop()
        block = self._block(frame, node, following)
        block.parts = parts

    def _do_element(self, frame: Frame, node: ast.AST, argument: None) -> None:
        block = frame.blocks[-1]
        value = block.parts[block.rounds] if block.parts else block.element
        frame.stack.append(value or NOTHING)

    def _do_until(self, frame: Frame, node: ast.AST, argument: None) -> None:
        known = self.semantics.truth(frame.stack.pop())
        frame.blocks[-1].endless = known is True
        if known is False:
            frame.die()

    def _do_leave(self, frame: Frame, node: ast.AST, for_good: bool) -> None:  # noqa: FBT001 - an instruction's argument
        changed: dict[str, Value] = {}
        before: dict[str, Value | None] = {}
        for block in reversed(frame.blocks):
            changed.update(frame.changes(block))
            before.update(block.saved)
            if isinstance(block.node, (ast.For, ast.AsyncFor, ast.While)):
                block.saved.update(before)
                block.outcomes.append(changed)
                block.left = block.left or for_good
                break
        frame.die()

    def _do_again(self, frame: Frame, node: ast.AST, start: Label) -> None:
        block = frame.blocks[-1]
        if not frame.dead:
            block.outcomes.append(frame.changes(block))
        frame.dead = False
        del frame.stack[block.depth :]
        if block.rounds + 1 < len(block.parts):
            block.rounds += 1
            frame.restore(block)
            frame.position = start.position
            frame.guarded = block.guarded
            return
        merged = frame.merge(block, entry=True)
        grown = any(block.saved[n] is not None and block.saved[n] != v for n, v in merged.items())
        length = frame.position - start.position
        again = grown and not block.parts and block.rounds < _MOST_ROUNDS - 1
        if again and frame.budget >= length:
            merged = {name: widened(value) for name, value in merged.items()}
            if merged != block.entered:
                block.entered = merged
                block.rounds += 1
                frame.budget -= length
                frame.restore(block)
                frame.scope.names.update(merged)
                frame.position = start.position
                frame.guarded = block.guarded
                return
        frame.restore(block)
        frame.blocks.pop()
        frame.guarded = block.guarded
        if block.endless and not block.left:
            frame.die()
            return
        for name, value in merged.items():
            frame.set(name, value)
