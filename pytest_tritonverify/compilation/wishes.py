"""What the user asks to be compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tritonverify.compilation import targets
from pytest_tritonverify.compilation.options import DEFAULT_LIMIT

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.compilation.targets import Target
    from pytest_tritonverify.given import Given


@dataclass(frozen=True, kw_only=True)
class CompileWishes:
    """How kernels are compiled.

    Attributes:
        targets: for what.
        all_configurations: every configuration of autotuned kernels, not only those that ran.
        ascend_python: the interpreter that has triton-ascend; None finds one.
        limit: seconds that compiling one kernel may take.
    """

    targets: tuple[Target, ...]
    all_configurations: bool = False
    ascend_python: Path | None = None
    limit: float = DEFAULT_LIMIT

    @classmethod
    def load(cls, given: Given) -> CompileWishes | None:
        """Read the settings; None where nothing is to be compiled.

        Raises:
            ValueError: a value is impossible.
        """
        wanted = targets.parse(given("compile") or ())
        if not wanted:
            return None
        return cls(
            targets=wanted,
            all_configurations=bool(given("compile_all_configs")),
            # Not resolved: an environment's interpreter is a link to another one.
            ascend_python=given.file("ascend_python"),
            limit=given.seconds("compile_timeout", DEFAULT_LIMIT),
        )
