"""What a kernel does: its body, run with what its launches hand over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration.arguments import Arguments
from pytest_tritonverify.degeneration.device import Device, Parameter, Work
from pytest_tritonverify.degeneration.machine import Machine
from pytest_tritonverify.degeneration.pool import Pool
from pytest_tritonverify.degeneration.values import Kernel, Scope, Value, only

if TYPE_CHECKING:
    import ast


def examine(kernel: Kernel, known: dict[str, Value], module: Scope) -> Work:
    """Find out what a kernel does.

    Args:
        kernel: the kernel.
        known: constants that every launch hands over, by parameter.
        module: the file's names.
    """
    pool = Pool()
    device = Device(pool)
    code = kernel.function.code
    machine = Machine(pool, device, most_steps=40 * _size(code.node) + 4096)
    machine.module = module
    device.machine = machine
    arguments: list[Value] = []
    for name in code.parameters:
        constant = known.get(name)
        if constant is None:
            constant = only(Parameter(name))
        arguments.append(constant)
    function = kernel.function
    contexts, function.contexts = function.contexts, 0
    for _ in range(3):
        machine.forget()
        machine.call(only(function), Arguments(tuple(arguments)), code.node)
        if not machine.dirty:
            break
    function.contexts = contexts
    if machine.exhausted:
        return Work(computes=True, stores=True)
    return device.work


def _size(node: ast.AST) -> int:
    return (getattr(node, "end_lineno", 0) or 0) * 16
