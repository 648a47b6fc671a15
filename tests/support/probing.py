"""Pairs that are probed by real workers, written from what their models keep and do."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.pair_processes import PairProcesses
from pytest_tritonverify.probe.probing import Probe
from pytest_tritonverify.settings import Settings
from tests.support.workers import PATIENCE, write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.execution.host import Host
    from pytest_tritonverify.results.records import CheckRecord

HEAD = "import functools, os, sys, time\nimport torch\nfrom torch import nn\n"
INPUTS = "\ndef get_inputs():\n    return [torch.randn(3, 4)]\n"


class Prober:
    """Probes pairs, and counts the workers that this takes."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.host = host
        self.device = host.config.device.name
        self.folder = folder
        self.started: list[str] = []

    def spawn(self, start: dict[str, Any]) -> Any:
        """Start a worker, and note its role."""
        self.started.append(start["role"])
        return self.host.spawn(start)

    def write(self, model: str, new: str, inputs: str = INPUTS) -> Pair:
        """Write a pair from the bodies of its files."""
        task = f"{HEAD}{textwrap.dedent(model)}\n{textwrap.dedent(inputs)}"
        implementation = f"{HEAD}{textwrap.dedent(new)}"
        return write_pair(self.folder, task, implementation)

    def pair(
        self, pair: Pair, timeout: float = PATIENCE, *, determinism: bool = False
    ) -> CheckRecord:
        """Probe a pair."""
        wanted = Settings(device=self.device, timeout=timeout, determinism=determinism)
        inputs = PairProcesses(pair, wanted, self.device, self.host.spawn).shared
        processes = PairProcesses(pair, wanted, self.device, self.spawn, inputs)
        try:
            return Probe(processes).run().check(str(pair.implementation))
        finally:
            inputs.close()

    def __call__(
        self, model: str, new: str, inputs: str = INPUTS, *, determinism: bool = False
    ) -> CheckRecord:
        """Write a pair and probe it."""
        return self.pair(self.write(model, new, inputs), determinism=determinism)


def model(init: str, forward: str = "return x", name: str = "Model", top: str = "") -> str:
    """Return the source of a model.

    Args:
        init: statements that build it.
        forward: statements of its forward, which gets `x`.
        name: of the class.
        top: statements of its file.
    """
    lines = textwrap.indent(init.strip() or "pass", " " * 8)
    body = textwrap.indent(forward.strip(), " " * 8)
    return f"""{top}
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
{lines}

    def forward(self, x):
{body}
"""


def new(init: str, forward: str = "return x", top: str = "") -> str:
    """Return the source of an implementation."""
    return model(init, forward, "ModelNew", top)


def codes(record: CheckRecord) -> list[str]:
    """Return the codes of a record's warnings."""
    return [entry["code"] for entry in record.report["warnings"]]


def expect_mismatch(record: CheckRecord, *names: str) -> str:
    """See that tensors of some names were found to differ; return the message."""
    assert record.status == "failed", record
    assert record.error_type == "HiddenStateMismatch"
    assert [entry["name"] for entry in record.report["mismatches"]] == list(names)
    assert record.message is not None
    first = record.message.partition("\n")[0]
    assert first.startswith("HiddenStateMismatch: ")
    assert f"`{names[0]}`" in first
    return record.message
