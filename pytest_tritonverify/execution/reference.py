"""The role that makes the inputs and runs the reference: trusted code, one process per task."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import standin
from pytest_tritonverify.execution import describing, errors, loading, probing, running, tensors
from pytest_tritonverify.execution.devices import DEVICES, SEED
from pytest_tritonverify.execution.task import Arguments, Task, seeded_groups

if TYPE_CHECKING:
    from pytest_tritonverify.execution.timing.measuring import Measurer
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker import Phase


# Inputs of other seeds that are kept rather than made again for each case.
_MOST_KEPT = 1 << 30


def create(request: Message, phase: Phase) -> Reference:
    """Make the role."""
    return Reference(request, phase)


class Reference:
    """Holds a task's inputs as they were made, and hands out and runs on copies only."""

    def __init__(self, request: Message, phase: Phase) -> None:
        standin.install(request.get("standin", standin.OFF))
        self._path = Path(request["task"])
        self._op: str = request["op_name"]
        self._device = DEVICES[request["device"]]
        self._phase = phase
        self._task: Task | None = None
        self._groups: list[Arguments] = []
        # Those of other seeds.
        self._further: dict[int, list[Arguments]] = {}
        self._kept_bytes = 0
        self._prober: probing.ReferenceProbe | None = None
        self._measurer: Measurer | None = None
        self._timed_task: Task | None = None
        self.user_files = (str(self._path.parent),)

    def do_inputs(self, request: Message, _fd: int | None) -> tuple[dict[str, Any], int]:
        """Pack the inputs and the constructor arguments of case `case_idx`.

        The request's `seed` is that of the inputs; the models' stays 0.
        """
        import torch

        with torch.no_grad(), loading.working_in(self._path.parent):
            group, init, total = self._case(request["case_idx"], request.get("seed", SEED))
        case, fd = running.pack_case(group, init)
        described = [describing.describe(value) for value in group.values()]
        return {"case": case, "input_desc": described, "total": total}, fd

    def _groups_from(self, seed: int) -> list[Arguments]:
        """Return the inputs of all cases from a seed; those of small tasks are kept."""
        if seed == SEED:
            return self._groups
        if seed not in self._further:
            self._phase.enter("inputs")
            made = seeded_groups(self._loaded(), self._device, seed)
            size = _bytes_of(made)
            if self._kept_bytes + size > _MOST_KEPT:
                return made
            self._further[seed] = made
            self._kept_bytes += size
        return self._further[seed]

    def do_variant(self, request: Message, _fd: int | None) -> tuple[dict[str, Any], int | None]:
        """Pack case `case_idx` with other values of the same kind, chosen by `seed`.

        The answer says how many `tensors` there are, whether one is `floating`, and whether
        anything could be `altered`; if not there is no `case`.
        """
        import torch

        from pytest_tritonverify.observing import variation

        with torch.no_grad(), loading.working_in(self._path.parent):
            group, init, _ = self._case(request["case_idx"])
        packed, fd = running.pack_case(group, init)
        try:
            copy = _call_of(packed, fd)
        finally:
            os.close(fd)
        kinds = variation.kinds(copy.values())
        if not variation.alter(copy.values(), request["seed"]):
            return {"case": None, "altered": False, **kinds}, None
        case, fd = running.pack_case(copy, init)
        return {"case": case, "altered": True, **kinds}, fd

    def do_again(self, request: Message, _fd: int | None) -> tuple[dict[str, Any], int]:
        """Call one `Model` on case `case_idx`, then on the values of `do_variant`; pack these."""
        import torch

        from pytest_tritonverify.execution import repeating
        from pytest_tritonverify.observing import variation

        with torch.no_grad(), loading.working_in(self._path.parent):
            task = self._loaded()
            group, init, _ = self._case(request["case_idx"])
            packed, fd = running.pack_case(group, init)
            try:
                first, second = _call_of(packed, fd), _call_of(packed, fd)
            finally:
                os.close(fd)
            variation.alter(second.values(), request["seed"])
            cpu = DEVICES["cpu"]
            side = running.Side(task.model_class, cpu, self._device, self._phase)
            return repeating.second_call(side, init, first, second)

    def do_operators(self, request: Message, fd: int | None) -> tuple[dict[str, Any], None]:
        """Tell which of torch's operators `Model` consists of, and whether of nothing else."""
        from pytest_tritonverify.observing import referencing

        with loading.working_in(self._path.parent):
            cpu = DEVICES["cpu"]
            model_class = self._loaded().model_class
            side = running.Side(model_class, cpu, self._device, self._phase)
            return referencing.operators_of(side, request["case"], fd), None

    def do_sets(self, request: Message, _fd: int | None) -> tuple[dict[str, Any], int]:
        """Pack case `case_idx` and up to `wanted` sets of inputs in all, for a benchmark."""
        import torch

        from pytest_tritonverify.execution.timing import packing

        with torch.no_grad(), loading.working_in(self._path.parent):
            group, init, total = self._case(request["case_idx"])
            packed, fd = packing.pack_sets(group, init, request["wanted"])
        described = [describing.describe(value) for value in group.values()]
        return {**packed, "input_desc": described, "total": total}, fd

    def do_measure(self, request: Message, fd: int | None) -> tuple[dict[str, Any], None]:
        """Time `Model` on the device; for a worker of its own, which makes no inputs."""
        measurer = self._timed()
        with loading.working_in(self._path.parent):
            return measurer.measure(self._timed_side, request, fd)

    def do_kept(self, request: Message, _fd: int | None) -> tuple[dict[str, Any], int]:
        """Hand out what forward `number` of the last measurement returned."""
        return self._timed().kept(request["number"])

    def _timed(self) -> Measurer:
        if self._measurer is None:
            from pytest_tritonverify.execution.timing.measuring import Measurer

            self._measurer = Measurer(self._device.name)
        return self._measurer

    def _timed_side(self) -> running.Side:
        self._phase.enter("import")
        if self._timed_task is None:
            self._timed_task = Task(self._path, self._op)
        model_class = self._timed_task.model_class
        return running.Side(model_class, self._device, self._device, self._phase)

    def do_probe(self, request: Message, fd: int | None) -> tuple[dict[str, Any], None]:
        """Tell which tensors a new `Model` holds; for a worker of its own."""
        with loading.working_in(self._path.parent):
            return self._probe().survey(request, fd), None

    def do_tensors(self, request: Message, fd: int | None) -> tuple[dict[str, Any], int]:
        """Pack tensors of a new `Model` by name."""
        with loading.working_in(self._path.parent):
            return self._probe().fetch(request, fd)

    def _probe(self) -> probing.ReferenceProbe:
        if self._prober is None:
            self._prober = probing.ReferenceProbe(self._path, self._op, self._device, self._phase)
        return self._prober

    def do_golden(self, request: Message, fd: int | None) -> tuple[dict[str, Any], int]:
        """Run `Model` on the CPU, or where that raises on the accelerator.

        The answer's `golden_device` says where; `fallback` holds what the CPU run raised.
        """
        with loading.working_in(self._path.parent):
            return self._golden(request, fd)

    def _golden(self, request: Message, fd: int | None) -> tuple[dict[str, Any], int]:
        cpu = DEVICES["cpu"]
        model_class = self._loaded().model_class
        side = running.Side(model_class, cpu, self._device, self._phase)
        try:
            answer, result = running.run_case(side, request["case"], fd)
        except Exception as error:
            if self._device.name == cpu.name:
                raise
            fallback = errors.describe(error, self._phase.name, self.user_files)
        else:
            return {**answer, "golden_device": cpu.name}, result
        side = running.Side(model_class, self._device, self._device, self._phase)
        answer, result = running.run_case(side, request["case"], fd)
        return {**answer, "golden_device": self._device.name, "fallback": fallback}, result

    def do_precise(self, request: Message, fd: int | None) -> tuple[dict[str, Any], int]:
        """Run `Model` on the CPU in the precision `dtype`, whatever its own is."""
        import torch

        from pytest_tritonverify.execution.precise import Lift

        with loading.working_in(self._path.parent):
            cpu, lift = DEVICES["cpu"], Lift(getattr(torch, request["dtype"]))
            model_class = self._loaded().model_class
            side = running.Side(model_class, cpu, self._device, self._phase, lift)
            return running.run_case(side, request["case"], fd)

    def _loaded(self) -> Task:
        if self._task is None:
            self._phase.enter("import")
            task = Task(self._path, self._op)
            self._phase.enter("inputs")
            self._groups = seeded_groups(task, self._device)
            self._task = task
        return self._task

    def _case(self, case_idx: int, seed: int = SEED) -> tuple[Arguments, Arguments, int]:
        """Return a case's inputs, its constructor arguments, and how many cases there are."""
        task = self._loaded()
        groups = self._groups_from(seed)
        group = self._group(case_idx, groups)
        self._device.seed()
        return group, task.init_arguments(case_idx, len(groups)), len(groups)

    def _group(self, case_idx: int, groups: list[Arguments]) -> Arguments:
        if case_idx > len(groups):
            raise LookupError(
                f"{self._path.name} made {len(groups)} input groups in this run but had more "
                f"when its cases were listed (case {case_idx} is missing)"
            )
        return groups[case_idx - 1]


def _call_of(case: Message, fd: int) -> Arguments:
    """Return the call of a packed case, in memory of its own."""
    tree = tensors.unpack(case["call"], fd)
    return Arguments(tuple(tree["args"]), dict(tree["kwargs"]))


def _bytes_of(groups: list[Arguments]) -> int:
    leaves = (leaf for group in groups for leaf in running.tensor_leaves(group.values(), ""))
    return sum(tensor.numel() * tensor.element_size() for _, tensor in leaves)
