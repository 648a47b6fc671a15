"""The servers from which compiling processes are forked: one for each interpreter that is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation.toolchains import foreign_environment
from pytest_tritonverify.execution.devices import Cpu
from pytest_tritonverify.execution.host import Host, HostConfig, HostError

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.execution.wire import Message

_WARM_UP = "pytest_tritonverify.compilation.warmup"
_PRELOAD = ("torch", "triton", "triton.language")


class _Compiling(Cpu):
    """A place where kernels are compiled and none is run."""

    interpreted = False

    def environment(self) -> dict[str, str]:
        """Compile instead of interpreting, always, and tell what the assembler says."""
        return {
            **super().environment(),
            "TRITON_INTERPRET": "0",
            "TRITON_ALWAYS_COMPILE": "1",
            "TRITON_DUMP_PTXAS_LOG": "1",
        }


class CompilerHosts:
    """Starts compiling processes.

    Args:
        private_dirs: folders of pairs, whose files no import may find first.
    """

    def __init__(self, private_dirs: frozenset[Path]) -> None:
        self._private_dirs = private_dirs
        self._hosts: dict[str | None, Host] = {}

    def spawn(self, python: str | None, start: Message) -> Any:
        """Start a process.

        Args:
            python: the interpreter; None for this one.
            start: its start request.

        Raises:
            HostError: it can't be started, or what it needs can't be imported.
        """
        host = self._hosts.get(python)
        if host is None:
            host = self._hosts[python] = Host(
                HostConfig(
                    _Compiling(),
                    fork=True,
                    private_dirs=self._private_dirs,
                    python=python,
                    base=None if python is None else foreign_environment(),
                    preload=_PRELOAD,
                    warm_up=_WARM_UP,
                )
            )
        problems = host.problems()
        if problems:
            told = "; ".join(f"`import {name}` fails: {text}" for name, text in problems.items())
            raise HostError(f"{python or 'this interpreter'}: {told}")
        return host.spawn({"environment": {"TRITON_CACHE_DIR": host.scratch}, **start})

    def close(self) -> None:
        """End all processes, and remove what they have compiled."""
        for host in self._hosts.values():
            host.close()
        self._hosts.clear()
