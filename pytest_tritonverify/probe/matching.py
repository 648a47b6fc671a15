"""Two inventories side by side: which tensors are the same, by name and by value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_tritonverify.probe.inventory import Facts, Inventory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Reasons for which a reference's tensor is no hidden state at all.
_NO_STATE = ("input", "fresh")


@dataclass(frozen=True)
class Told:
    """What one side holds.

    Attributes:
        built: once it is built.
        ran: after the first forward; None where that was not asked for.
        raised: what the forward raised, in words.
    """

    built: Inventory
    ran: Inventory | None = None
    raised: str | None = None

    @property
    def names(self) -> list[str]:
        """All names, in the order in which they were found."""
        return list(dict.fromkeys((*self.built.tensors, *(self.ran or Inventory()).tensors)))

    @property
    def truncated(self) -> bool:
        """Whether there was more than a scan goes through."""
        return self.built.truncated or (self.ran is not None and self.ran.truncated)

    def at_first(self, name: str) -> Facts | None:
        """Return a tensor as it was built; None where only the forward made it."""
        return self.built.tensors.get(name)

    def at_last(self, name: str) -> Facts | None:
        """Return a tensor as the forward left it."""
        return self.ran.tensors.get(name) if self.ran is not None else None

    def facts(self, name: str) -> Facts:
        """Return a tensor as it first was."""
        return self.built.tensors.get(name) or (self.ran or Inventory()).tensors[name]

    def lengths(self, path: str) -> set[int | None]:
        """Return the lengths that a sequence had; none where there is no such sequence."""
        moments = (self.built, self.ran or Inventory())
        return {moment.sequences[path] for moment in moments if path in moment.sequences}


@dataclass(frozen=True)
class Mismatch:
    """Two tensors of one name that are not the same.

    Attributes:
        name: of both.
        reference, implementation: what they are like.
        late_reference, late_implementation: it was the forward that made them.
        holds: the reference's name of the tensor that the implementation holds here.
        held_as: the implementation's name of the tensor that the reference holds here.
    """

    name: str
    reference: Facts
    implementation: Facts
    late_reference: bool = False
    late_implementation: bool = False
    holds: str | None = None
    held_as: str | None = None


@dataclass(frozen=True)
class Missing:
    """A tensor of the reference that the implementation seems not to hold.

    Attributes:
        name: the reference's.
        reference: what it is like.
        namesake: what the implementation holds under that name.
        reshaped: the implementation's name of the same bits in another shape.
    """

    name: str
    reference: Facts
    namesake: Facts | None = None
    reshaped: str | None = None


@dataclass(frozen=True)
class Matching:
    """What became of the reference's tensors.

    Attributes:
        compared: names of tensors that are the same under the same name.
        matched: the implementation's names of the same values, by the reference's.
        mismatches: parameters, buffers and random tensors that differ under the same name.
        missing: tensors without an equal.
        passed_over: why single tensors say nothing, by name.
        not_positional: names that were not compared as such, since they count positions in
            sequences of different length.
    """

    compared: tuple[str, ...] = ()
    matched: Mapping[str, str] = field(default_factory=dict)
    mismatches: tuple[Mismatch, ...] = ()
    missing: tuple[Missing, ...] = ()
    passed_over: Mapping[str, str] = field(default_factory=dict)
    not_positional: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether every tensor has its equal."""
        return not self.mismatches and not self.missing


def hidden_state(reference: Told) -> list[str]:
    """Return the names of the reference's tensors that its inputs don't determine."""
    return [n for n in reference.names if reference.facts(n).volatile not in _NO_STATE]


def match(reference: Told, implementation: Told) -> Matching:
    """Find for every tensor of the reference its equal.

    Tensors of one name must be the same. Those that are no parameters or buffers, and not random,
    are only looked for: under other names too, like all that the implementation has no namesake
    of.
    """
    pairing = _Pairing(reference, implementation)
    for name in reference.names:
        pairing.place(name)
    return Matching(
        tuple(pairing.compared),
        pairing.matched,
        tuple(pairing.mismatches),
        tuple(pairing.missing),
        pairing.passed_over,
        tuple(pairing.not_positional),
    )


class _Pairing:
    def __init__(self, reference: Told, implementation: Told) -> None:
        self._reference = reference
        self._implementation = implementation
        self.compared: list[str] = []
        self.matched: dict[str, str] = {}
        self.mismatches: list[Mismatch] = []
        self.missing: list[Missing] = []
        self.passed_over: dict[str, str] = {}
        self.not_positional: list[str] = []
        self._ours = _index(reference)
        self._theirs = _index(implementation)
        self._bits = {
            (facts.dtype, facts.digest): name
            for name in reversed(implementation.names)
            for facts in _versions(implementation, name)
        }

    def place(self, name: str) -> None:
        """Put one tensor of the reference where it belongs."""
        facts = self._reference.facts(name)
        if facts.volatile is not None and facts.volatile in _NO_STATE:
            self.passed_over[name] = facts.volatile
            return
        namesakes = _versions(self._implementation, name)
        if namesakes and self._counts_positions(name):
            self.not_positional.append(name)
            namesakes = []
        if any(ours.agrees(theirs) for ours, theirs in self._pairs(name) if namesakes):
            self.compared.append(name)
        elif facts.digest is None or any(theirs.digest is None for theirs in namesakes):
            self.passed_over[name] = "opaque"
        elif facts.volatile is not None:
            self.passed_over[name] = facts.volatile
        elif namesakes and self._changed_by_run(name):
            self.passed_over[name] = "run"
        elif namesakes and (facts.registered or facts.drawn):
            self.mismatches.append(self._mismatch(name, facts, namesakes[0]))
        else:
            self._search(name, facts, namesakes)

    def _pairs(self, name: str) -> Iterator[tuple[Facts, Facts]]:
        """Yield what may be compared: at one moment, or where a side has only a later one."""
        ours, theirs = self._reference, self._implementation
        first, last = ours.at_first(name), ours.at_last(name)
        own = [f for f in (theirs.at_first(name), theirs.at_last(name)) if f is not None]
        for facts in own:
            yield ours.facts(name), facts
        if first is not None and last is not None and theirs.at_first(name) is None:
            yield from ((last, facts) for facts in own)

    def _changed_by_run(self, name: str) -> bool:
        """Whether the run alone may be what sets two tensors apart that it made or changed."""
        first, last = self._reference.at_first(name), self._reference.at_last(name)
        changed = first is not None and last is not None and first.digest != last.digest
        return changed and self._implementation.at_first(name) is None

    def _counts_positions(self, name: str) -> bool:
        """Whether a name goes through sequences of different length, or without an order."""
        steps = name.split(".")
        for depth, step in enumerate(steps):
            if not step.isdecimal():
                continue
            path = ".".join(steps[:depth])
            ours, theirs = self._reference.lengths(path), self._implementation.lengths(path)
            if ours and theirs and (ours != theirs or None in ours):
                return True
        return False

    def _mismatch(self, name: str, facts: Facts, namesake: Facts) -> Mismatch:
        others = [n for n in self._ours.get(_key(namesake), ()) if n != name]
        return Mismatch(
            name,
            facts,
            namesake,
            late_reference=self._reference.at_first(name) is None,
            late_implementation=self._implementation.at_first(name) is None,
            holds=others[0] if others else None,
            held_as=self._find(facts),
        )

    def _search(self, name: str, facts: Facts, namesakes: list[Facts]) -> None:
        """Look for a tensor by its value."""
        for ours in _versions(self._reference, name):
            found = self._find(ours)
            if found is not None:
                self.matched[name] = found
                return
        reshaped = self._bits.get((facts.dtype, facts.digest))
        namesake = namesakes[0] if namesakes else None
        self.missing.append(Missing(name, facts, namesake, reshaped))

    def _find(self, facts: Facts) -> str | None:
        keys = [_key(facts)]
        if facts.transposed is not None:
            keys.append((facts.dtype, facts.shape[::-1], facts.transposed))
        return next((self._theirs[key][0] for key in keys if key in self._theirs), None)


_Key = tuple[str, tuple[int, ...], str | None]


def _key(facts: Facts) -> _Key:
    return facts.dtype, facts.shape, facts.digest


def _versions(told: Told, name: str) -> list[Facts]:
    """Return a tensor as it was built, and as the forward left it."""
    return [f for f in (told.at_first(name), told.at_last(name)) if f is not None]


def _index(told: Told) -> dict[_Key, list[str]]:
    found: dict[_Key, list[str]] = {}
    for name in told.names:
        for facts in _versions(told, name):
            if facts.digest is not None:
                found.setdefault(_key(facts), []).append(name)
    return found
