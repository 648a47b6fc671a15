"""The role that gathers facts about the environment in which implementations run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_tritonverify import environment, interpreter
from pytest_tritonverify.execution.devices import DEVICES

if TYPE_CHECKING:
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker import Phase


def create(request: Message, phase: Phase) -> Surroundings:
    """Make the role."""
    return Surroundings(request, phase)


class Surroundings:
    """Runs no user code: what it reports can be trusted."""

    def __init__(self, request: Message, _phase: Phase) -> None:
        self._device = DEVICES[request["device"]]
        self._fresh_cache: bool = request["fresh_cache"]
        self._masked_lanes: Any = request["masked_lanes"]

    def do_device(self, _request: Message, _fd: int | None) -> tuple[dict[str, Any], None]:
        """Say whether the device is there, and what it is."""
        return {"facts": self._device.facts()}, None

    def do_fingerprint(self, _request: Message, _fd: int | None) -> tuple[dict[str, Any], None]:
        """Return the environment sections of the result file, less what belongs to one pair."""
        cache = environment.CacheFacts(fresh=self._fresh_cache)
        sections = environment.collect(device=self._device.name, cmdline={}, cache=cache)
        if self._device.interpreted:
            found = interpreter.prepare(masked_lanes=self._masked_lanes)
            sections["interpreter"] = found.to_json()
        return {"environment": sections}, None
