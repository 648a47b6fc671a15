"""The task file inside a reference worker: inputs, constructor arguments, and the model."""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import case_file
from pytest_tritonverify.execution import loading, task_faults
from pytest_tritonverify.execution.device import SEED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from pytest_tritonverify.execution.devices import Device


class TaskError(ValueError):
    """A task file that doesn't keep the form of a task.

    Attributes:
        place: File and line of what is wrong, where that is known.
    """

    place: tuple[str, int] | None = None


@dataclass(frozen=True)
class Arguments:
    """Positional and keyword arguments of one call."""

    args: tuple[object, ...] = ()
    kwargs: dict[str, object] | None = None

    def values(self) -> list[object]:
        """Return all values, positional ones first."""
        return [*self.args, *(self.kwargs or {}).values()]

    def keyed(self) -> dict[int | str, object]:
        """Return all values by position or keyword."""
        keyed: dict[int | str, object] = dict(enumerate(self.args))
        keyed.update(self.kwargs or {})
        return keyed

    @classmethod
    def of(cls, group: object, what: str) -> Arguments:
        """Read what a task gives as one group of arguments.

        Raises:
            TaskError: it is neither a list, a tuple, a dict with string keys, nor one tensor.
        """
        import torch

        if isinstance(group, (list, tuple)) and not hasattr(group, "_fields"):
            return cls(tuple(group))
        if isinstance(group, dict) and all(isinstance(key, str) for key in group):
            return cls(kwargs=dict(group))
        if isinstance(group, torch.Tensor):
            return cls((group,))
        raise TaskError(
            f"{what} must be a list or tuple (positional) or a dict (keywords), "
            f"not {type(group).__name__}"
        )


class Task:
    """A loaded task file.

    Args:
        path: `<op>_torch.py`.
        op: the operator's name.
    """

    def __init__(self, path: Path, op: str) -> None:
        self.path = path
        self.op = op
        self.module: ModuleType = loading.load_module(path, file=loading.apparent_file(path, op))
        self.model_class: Any = loading.require(self.module, "Model", path)

    def input_groups(self) -> list[Arguments]:
        """Make the inputs of all cases, in sequence.

        Raises:
            TaskError: the file offers no inputs, or not in the form of a task.
        """
        if getattr(self.module, task_faults.GROUPS, None) is not None:
            groups: Any = self._result_of(task_faults.GROUPS)
            with self._blaming(task_faults.GROUPS):
                return [
                    Arguments.of(g, f"group {k} of get_input_groups()")
                    for k, g in enumerate(list(groups), 1)
                ]
        if getattr(self.module, task_faults.INPUTS, None) is not None:
            inputs = self._result_of(task_faults.INPUTS)
            self._refuse(
                task_faults.INPUTS,
                task_faults.groups_as_inputs(self.path, inputs, self.model_class),
            )
            with self._blaming(task_faults.INPUTS):
                return [Arguments.of(inputs, "what get_inputs() returns")]
        data = loading.data_file(self.path, self.op)
        if data is None:
            raise TaskError(
                f"{self.path.name} defines neither get_input_groups() nor get_inputs(), and there "
                f"is no case file {self.path.stem}.json or {self.op}.json beside it"
            )
        return [
            Arguments(tuple(case_file.build_inputs(spec)))
            for spec in case_file.load_case_specs(data)
        ]

    def _result_of(self, name: str) -> object:
        """Call one of the task's functions.

        Raises:
            TaskError: it is no function, or returned nothing that has the form of its result.
        """
        function = getattr(self.module, name)
        self._refuse(name, task_faults.not_callable(self.path, name, function))
        found = function()
        self._refuse(name, task_faults.not_returned(self.path, name, found))
        return found

    def _refuse(self, name: str, complaint: str | None) -> None:
        if complaint is not None:
            with self._blaming(name):
                raise TaskError(complaint)

    @contextlib.contextmanager
    def _blaming(self, name: str) -> Iterator[None]:
        """Have errors located at a definition of the task."""
        try:
            yield
        except TaskError as error:
            line = task_faults.line_of(self.path, name)
            error.place = (str(self.path), line) if line is not None else None
            raise

    def init_arguments(self, case_idx: int, total: int) -> Arguments:
        """Return the constructor arguments of both models for one case.

        They are what `get_init_inputs()` gives: a list, a tuple or a dict of keywords, none where
        the task defines no such function. Two other forms are in use and are taken where the
        constructor can't be called with the first: `[[args], {kwargs}]`, and one entry a case.

        Args:
            case_idx: number of the case, from 1.
            total: number of cases.
        """
        make = getattr(self.module, task_faults.INIT_INPUTS, None)
        if make is not None:
            complaint = task_faults.not_callable(self.path, task_faults.INIT_INPUTS, make)
            self._refuse(task_faults.INIT_INPUTS, complaint)
        given = make() if make is not None else None
        if given is None:
            return Arguments()
        with self._blaming(task_faults.INIT_INPUTS):
            plain = Arguments.of(given, "what get_init_inputs() returns")
        others = [_unnested(plain)]
        if len(plain.args) == total:
            entry = plain.args[case_idx - 1]
            if isinstance(entry, (list, tuple, dict)):
                of_case = Arguments.of(entry, f"entry {case_idx} of get_init_inputs()")
                others += [_unnested(of_case), of_case]
        fitting = (form for form in others if form is not None and self._accepts(form))
        return plain if self._accepts(plain) else next(fitting, plain)

    def _accepts(self, arguments: Arguments) -> bool:
        try:
            signature = inspect.signature(self.model_class)
        except (TypeError, ValueError):
            return True
        try:
            signature.bind(*arguments.args, **(arguments.kwargs or {}))
        except TypeError:
            return False
        return True


def _unnested(arguments: Arguments) -> Arguments | None:
    """Read `[[args], {kwargs}]` as positional and keyword arguments."""
    if len(arguments.args) != 2:  # noqa: PLR2004 - the pair's two parts
        return None
    args, kwargs = arguments.args
    if isinstance(args, (list, tuple)) and isinstance(kwargs, dict):
        return Arguments(tuple(args), dict(kwargs))
    return None


def seeded_groups(task: Task, device: Device, seed: int = SEED) -> list[Arguments]:
    """Make all inputs once, from a seed."""
    device.seed(seed)
    return task.input_groups()
