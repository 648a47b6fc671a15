"""What workers answer to the hidden-state probe: the tensors that a model holds, by digest.

It asks workers of its own, which end with it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution import fresh_memory
from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.running import Side
from pytest_tritonverify.execution.task import Task, seeded_groups
from pytest_tritonverify.probe import scanning
from pytest_tritonverify.probe.models import Models, inventory, reason
from pytest_tritonverify.probe.surveying import Survey

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.execution.devices import Device
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker import Phase


class ImplementationProbe:
    """Tells what `ModelNew` holds. Nothing of the reference is known here.

    Args:
        side: the class, and where it runs.
        path: the implementation's file.
    """

    def __init__(self, side: Side, path: Path) -> None:
        module = module_of(path) or sys.modules[side.model_class.__module__]
        self._models = Models(side, module, path.parent, lambda _, m: scanning.module_values(m))

    def survey(self, request: Message, fd: int | None) -> dict[str, Any]:
        """List the tensors of a new model, and with `run` those after its first forward, too."""
        case = request["case"]
        model = self._models.build(case, fd)
        answer: dict[str, Any] = {
            "built": inventory(self._models.look(model), {}),
            "ran": None,
            "raised": None,
        }
        if request["run"]:
            model, answer["raised"] = self._models.warm_up(model, case, fd)
            answer["ran"] = inventory(self._models.look(model), {})
        return answer

    def fetch(self, request: Message, fd: int | None) -> tuple[dict[str, Any], int]:
        """Pack tensors by their `names`, with `run` as the first forward leaves them."""
        return self._models.pick(request["case"], fd, request["names"], run=request["run"])


class ReferenceProbe:
    """Tells what `Model` holds, and which of it comes from where.

    Args:
        path: the task's file.
        op: the operator's name.
        device: the session's device, for a reference that the CPU can't run.
        phase: where to report progress.
    """

    def __init__(self, path: Path, op: str, device: Device, phase: Phase) -> None:
        phase.enter("import")
        self._path = path
        self._op = op
        self._needs_inputs = False
        self._device = device
        self._phase = phase
        self._place = DEVICES["cpu"]
        self._task = self._loaded()

    def survey(self, request: Message, fd: int | None) -> dict[str, Any]:
        """List the tensors of a new model and those after its first forward.

        Tensors that are no parameters and buffers are looked into further: whether they were
        drawn at random, and whether their values follow from the inputs.
        """
        try:
            return self._survey(request["case"], fd)
        except Exception:
            if self._phase.name != "build":
                raise
            # Making its inputs may leave something behind that it is built from.
            self._needs_inputs = True
            self._task = self._loaded()
        return self._survey(request["case"], fd)

    def _survey(self, case: Message, fd: int | None) -> dict[str, Any]:
        if self._device.name != "cpu":
            self._settle(case, fd)
        with fresh_memory.poisoned():
            return Survey(self._models(self._task), self._fresh, case, fd).answer()

    def fetch(self, request: Message, fd: int | None) -> tuple[dict[str, Any], int]:
        """Pack tensors by their `names`, with `run` as the first forward leaves them."""
        with fresh_memory.poisoned():
            models = self._models(self._task)
            return models.pick(request["case"], fd, request["names"], run=request["run"])

    def _models(self, task: Task) -> Models:
        side = Side(task.model_class, self._place, self._device, self._phase)
        return Models(side, task.module, self._path.parent, scanning.named_values)

    def _fresh(self) -> Models:
        """Load the file once more, for a top level that nothing has run on."""
        return self._models(self._loaded())

    def _loaded(self) -> Task:
        task = Task(self._path, self._op)
        if self._needs_inputs:
            seeded_groups(task, self._device)
        return task

    def _settle(self, case: Message, fd: int | None) -> None:
        """Find out where the golden will be computed: on the CPU, unless that raises."""
        models = self._fresh()
        try:
            _, raised = models.warm_up(models.build(case, fd), case, fd)
        except Exception as error:  # noqa: BLE001 - user code
            raised = reason(error)
        if raised is not None:
            self._place = self._device


def module_of(path: Path) -> Any:
    """Return the module that was loaded from a file last, or None."""
    found = None
    for module in list(sys.modules.values()):
        if getattr(getattr(module, "__spec__", None), "origin", None) == str(path):
            found = module
    return found
