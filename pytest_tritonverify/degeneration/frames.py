"""What the machine keeps while it runs a body: frames, blocks of alternatives, summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration.values import NOTHING, Class, Function, Scope, Value, join

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.code import Code, Instruction, Label

Names = dict[str, Value]


class Summary:
    """What a function returns for one kind of arguments."""

    __slots__ = ("asked", "done", "running", "value")

    def __init__(self) -> None:
        self.value: Value = NOTHING
        self.running = self.done = self.asked = False


class Block:
    """A branch, loop or `try`: alternatives that all begin with the same names.

    Attributes:
        next: where the current alternative ends.
        depth: how much lies on the stack when an alternative begins.
        saved: names changed since the block began, with their values then.
        outcomes: what each alternative that reached its end has changed.
        first: what the first alternative has changed, whether it reached its end or not.
        parts: the elements that a comprehension goes through, where each is known.
    """

    __slots__ = (
        "condition",
        "current",
        "depth",
        "element",
        "endless",
        "entered",
        "first",
        "guarded",
        "kept",
        "left",
        "next",
        "node",
        "off_device",
        "outcomes",
        "parts",
        "rounds",
        "saved",
        "skip",
    )

    def __init__(self, node: object, following: Label, depth: int, *, guarded: bool) -> None:
        self.node = node
        self.next = following
        self.depth = depth
        self.guarded = guarded
        self.saved: dict[str, Value | None] = {}
        self.outcomes: list[Names] = []
        self.first: Names | None = None
        self.kept: Value = NOTHING
        self.skip = False
        self.element: Value | None = None
        self.parts: list[Value] = []
        self.endless = False
        self.entered: Names | None = None
        self.left = False
        self.rounds = 0
        self.current = 0
        self.off_device: int | None = None
        self.condition: list[int] = []


class Frame:
    """A body that is being run."""

    __slots__ = (
        "blocks",
        "budget",
        "code",
        "dead",
        "function",
        "guarded",
        "home",
        "instructions",
        "kept",
        "position",
        "repeats",
        "returned",
        "scope",
        "stack",
        "summary",
        "yielded",
    )

    def __init__(
        self,
        code: Code,
        scope: Scope,
        summary: Summary,
        *,
        function: Function | None = None,
        home: Class | None = None,
        guarded: bool = False,
    ) -> None:
        self.code = code
        self.scope = scope
        self.summary = summary
        self.function = function
        self.home = home
        self.guarded = guarded
        self.instructions: list[Instruction] = code.instructions
        self.position = 0
        self.stack: list[Value] = []
        self.blocks: list[Block] = []
        self.dead = False
        self.kept: Value = NOTHING
        self.returned: Value = NOTHING
        self.yielded: Value = NOTHING
        self.repeats = 0
        # Loops are run again while that changes anything, but not so often that nested ones
        # make it more than linear.
        self.budget = 6 * len(self.instructions)

    def set(self, name: str, value: Value) -> None:
        """Bind a name, so that the end of the block can take it back."""
        names = self.scope.names
        if self.blocks:
            saved = self.blocks[-1].saved
            if name not in saved:
                saved[name] = names.get(name)
        names[name] = value

    def changes(self, block: Block) -> Names:
        """Return what has changed since the block began."""
        names = self.scope.names
        return {name: names[name] for name in block.saved if name in names}

    def restore(self, block: Block) -> None:
        """Give all names the values that they had when the block began."""
        names = self.scope.names
        for name, value in block.saved.items():
            if value is None:
                names.pop(name, None)
            else:
                names[name] = value

    def die(self) -> None:
        """End the current alternative: what follows in it is never reached."""
        self.dead = True
        self.position = self.blocks[-1].next.position if self.blocks else len(self.instructions)

    def merge(self, block: Block, *, entry: bool) -> Names:
        """Join the outcomes of a block's alternatives.

        Args:
            block: the block.
            entry: whether what was before is an outcome, too.
        """
        merged: Names = {}
        for outcome in block.outcomes:
            for name, value in outcome.items():
                merged[name] = join(merged.get(name, NOTHING), value)
        several = len(block.outcomes)
        for name, before in block.saved.items():
            if before is None or name not in merged:
                continue
            if entry or sum(name in outcome for outcome in block.outcomes) < several:
                merged[name] = join(before, merged[name])
        return merged
