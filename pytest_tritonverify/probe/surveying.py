"""Look at a reference: what it holds, what of it is random, and what follows from its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pytest_tritonverify.execution.dispatching import without_compiler
from pytest_tritonverify.probe import digests
from pytest_tritonverify.probe.models import inventory, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_tritonverify.execution.task import Arguments
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.probe.models import Models

_OTHER_INPUTS = 20_250


@without_compiler
class Redraw(TorchDispatchMode):
    """Draw every random number twice and keep the second: what was drawn comes out different.

    That tells what is random also where a model sets the seed itself.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch gives it no types

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator, twice if it draws."""
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded in func.tags:
            func(*args, **kwargs)
        return func(*args, **kwargs)


@without_compiler
class Blanked(TorchDispatchMode):
    """Fill fresh memory with zeros: what nobody writes comes out different from poison."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch gives it no types

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator, and clear what it has only allocated."""
        made = func(*args, **(kwargs or {}))
        return made.zero_() if "empty" in func.name() else made


class Survey:
    """One look at a reference, with as many further builds as its tensors ask for.

    Args:
        models: builds the reference.
        fresh: loads the reference's file again: what its top level has gathered is not there.
        case: the packed inputs and constructor arguments.
        fd: their memory file.
    """

    def __init__(
        self, models: Models, fresh: Callable[[], Models], case: Message, fd: int | None
    ) -> None:
        self._models = models
        self._fresh = fresh
        self._case = case
        self._fd = fd
        self._extra: dict[str, dict[str, Any]] = {}

    def answer(self) -> dict[str, Any]:
        """Return both inventories, and in words what the forward `raised`."""
        models, case, fd = self._models, self._case, self._fd
        model = models.build(case, fd)
        built = models.look(model)
        before = inventory(built, {})
        model, raised = models.warm_up(model, case, fd)
        ran = models.look(model)
        after = inventory(ran, {})
        made = [name for name in ran.tensors if name not in built.tensors]
        if made:
            self._vary(made, _digests(after))
        everything = [*built.tensors.items(), *ran.tensors.items()]
        registered = {id(held.tensor) for _, held in everything if held.registered}
        loose = [name for name, held in everything if id(held.tensor) not in registered]
        if loose:
            self._redraw(loose, {**_digests(after), **_digests(before)})
        blank = [name for name, held in built.tensors.items() if _is_poison(held.tensor)]
        if blank:
            self._rebuild(blank, _digests(before))
        for told in (before, after):
            for name, facts in told["tensors"]:
                facts.update(self._extra.get(name, {}))
        return {"built": before, "ran": after, "raised": raised}

    def _vary(self, names: list[str], told: dict[str, str | None]) -> None:
        """Find out which tensors that a forward made follow from its inputs."""
        from pytest_tritonverify.observing import variation

        models = self._fresh()
        known: dict[str, Any] = {}

        def change(call: Arguments) -> None:
            known.update(variation.kinds(call.values()))
            known["altered"] = variation.alter(call.values(), _OTHER_INPUTS)

        call = models.call_of(self._case, self._fd, change)
        if not known["altered"]:
            # Nothing to follow from, or nothing that can be altered.
            if known["tensors"]:
                self._mark(names, "volatile", "unknown")
            return
        model, raised = models.build(self._case, self._fd), None
        try:
            models.forward(model, call)
        except Exception as error:  # noqa: BLE001 - user code
            raised = reason(error)
        other = _digests(inventory(models.look(model), {}))
        for name in names:
            if name not in other:
                self._mark([name], "volatile", "unknown" if raised else "input")
            elif other[name] != told[name]:
                self._mark([name], "volatile", "input")

    def _redraw(self, names: list[str], told: dict[str, str | None]) -> None:
        """Find out which tensors were drawn at random."""
        built: dict[str, str | None] = {}
        try:
            with Redraw():
                models = self._fresh()
                model = models.build(self._case, self._fd)
            built = _digests(inventory(models.look(model), {}))
            with Redraw():
                models.forward(model, models.call_of(self._case, self._fd))
        except Exception:  # noqa: BLE001 - user code; once numbers are others it is no news
            if not built:
                return
        other = {**_digests(inventory(models.look(model), {})), **built}
        for name in names:
            if name in other:
                self._mark([name], "drawn", other[name] != told[name])

    def _rebuild(self, names: list[str], told: dict[str, str | None]) -> None:
        """Find out which tensors hold nothing but what memory is filled with."""
        with Blanked():
            model = self._models.build(self._case, self._fd)
        other = _digests(inventory(self._models.look(model), {}))
        self._mark([n for n in names if other.get(n) != told[n]], "volatile", "fresh")

    def _mark(self, names: Sequence[str], key: str, value: Any) -> None:
        for name in names:
            self._extra.setdefault(name, {})[key] = value


def _digests(told: dict[str, Any]) -> dict[str, str | None]:
    return {name: facts["digest"] for name, facts in told["tensors"]}


def _is_poison(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds nothing but NaN, or nothing but the largest number."""
    try:
        bare = digests.plain(tensor)
        if bare.is_floating_point() or bare.is_complex():
            return bool(torch.isnan(bare).all())
        return bare.dtype is torch.bool or bool((bare == torch.iinfo(bare.dtype).max).all())
    except Exception:  # noqa: BLE001 - rare types lack these operators
        return False
