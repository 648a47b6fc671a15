"""What the user asks to be compiled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation import targets
from pytest_tritonverify.settings import positive_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.compilation.targets import Target

ASCEND_PYTHON = "--verify-ascend-python"
DEFAULT_LIMIT = 300.0


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
    def load(
        cls, given: Callable[[str], Any], option: Callable[[str], Any], cwd: Path, ini_folder: Path
    ) -> CompileWishes | None:
        """Read the settings; None where nothing is to be compiled.

        Args:
            given: returns a setting by name, from the command line or the ini file.
            option: returns a command-line option's value by its dest.
            cwd: folder that relative paths of the command line start from.
            ini_folder: folder that relative paths of the ini file start from.

        Raises:
            ValueError: a value is impossible.
        """
        wanted = targets.parse(given("compile") or ())
        if not wanted:
            return None
        python = given("ascend_python")
        folder = cwd if option("verify_ascend_python") else ini_folder
        return cls(
            targets=wanted,
            all_configurations=bool(given("compile_all_configs")),
            # Not resolved: an environment's interpreter is a link to another one.
            ascend_python=(folder / Path(python).expanduser()).absolute() if python else None,
            limit=positive_seconds("compile_timeout", given("compile_timeout") or DEFAULT_LIMIT),
        )
