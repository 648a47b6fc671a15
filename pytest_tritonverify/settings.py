"""The session's settings: command line over ini over default, checked once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import choices, isolation
from pytest_tritonverify.discovery import Selection
from pytest_tritonverify.given import Given
from pytest_tritonverify.strictness.limits import StrictLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_tritonverify.benchmark.asking import BenchmarkWishes
    from pytest_tritonverify.compilation.wishes import CompileWishes

DEFAULT_TIMEOUT = 900.0
GITHUB_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""The variable with the file that a step of a GitHub job appends to."""
_MOST_RUNS = 10_000


class SettingsError(ValueError):
    """A setting that can't be followed; the text is for the user."""


def cores() -> int:
    """Return this process's share of the cores that it may use: pytest-xdist runs several."""
    affinity = getattr(os, "sched_getaffinity", None)
    usable = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(usable // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), 1)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the user asked for.

    Attributes:
        dirs: absolute folders in which pairs are searched.
        selection: patterns that narrow the pairs.
        device: one of `choices.DEVICE`.
        timeout: seconds that one pair may take.
        non_compute: outputs must agree bit for bit.
        exact_int: integer outputs of float inputs must agree exactly.
        hf32: float32 outputs are judged by the rows of hifloat32.
        strict: outputs must pass the gates beyond the standard, and warnings are failures.
        strict_limits: the gates' thresholds.
        golden: what the golden is computed in, one of `choices.GOLDEN`.
        stress: how often each case is run.
        trials: from how many seeds each case's inputs are made.
        guard_bands: on devices: tensors lie between bands, one of `choices.GUARD_BANDS`.
        output: where the result of the only pair goes, instead of beside it.
        start: one of `choices.START`.
        degeneration: policy of the static check, one of `choices.DEGENERATION`.
        execution: policy of the check at run time, one of `choices.EXECUTION`.
        standin: which accelerator the CPU stands in for, one of `choices.STANDIN`.
        autotune: which configurations of autotuned kernels are judged.
        determinism: run each side twice and compare the runs bit for bit.
        hidden_state: whether the models of both sides are compared.
        masked_lanes: what undefined lanes hold on the CPU, one of `choices.MASKED_LANES`.
        interpreter_jobs: processes over which a long launch is spread on the CPU.
        limits: what is kept from implementations' processes.
        protected: folders, beside those of pairs, that implementations may not write to.
        in_process: run everything in the judge, for debuggers.
        github_summary: file to which the outcome is appended in Markdown; None for none.
        html: where the page about all pairs goes; None for none.
        allow_conftest: let pytest load conftest files and ini files below the dirs.
        fresh_cache: compile into an empty Triton cache of this run's own.
        keep_cache: keep that cache.
        benchmark: how cases are measured; None where they are not.
        cache_ab: run pairs with accuracy failures again, on an empty Triton cache.
        compile: how kernels are compiled for devices that need not be there; None where they are
            not.
    """

    dirs: tuple[Path, ...] = ()
    selection: Selection = field(default_factory=Selection)
    device: str = "auto"
    timeout: float = DEFAULT_TIMEOUT
    non_compute: bool = False
    exact_int: bool = False
    hf32: bool = False
    strict: bool = False
    strict_limits: StrictLimits = field(default_factory=StrictLimits)
    golden: str = "own"
    stress: int = 1
    trials: int = 1
    guard_bands: str = "on"
    output: Path | None = None
    start: str = "auto"
    degeneration: str = "strict"
    execution: str = "fail"
    standin: str = "auto"
    autotune: str = "first"
    determinism: bool = False
    hidden_state: str = "fail"
    masked_lanes: str = "poison"
    interpreter_jobs: int = field(default_factory=cores)
    limits: isolation.Limits = field(default_factory=isolation.Limits)
    protected: tuple[Path, ...] = ()
    in_process: bool = False
    github_summary: Path | None = None
    html: Path | None = None
    allow_conftest: bool = False
    fresh_cache: bool = False
    keep_cache: bool = False
    benchmark: BenchmarkWishes | None = None
    cache_ab: bool = False
    compile: CompileWishes | None = None

    @classmethod
    def load(
        cls,
        option: Callable[[str], Any],
        ini: Callable[[str], Any],
        cwd: Path,
        ini_folder: Path,
    ) -> Settings:
        """Read settings.

        Args:
            option: returns a command-line option's value by its dest, None where not given.
            ini: returns an ini value by name, None or empty where not given.
            cwd: folder that relative paths of the command line start from.
            ini_folder: folder that relative paths of the ini file start from.

        Raises:
            SettingsError: a value is impossible.
        """
        given = Given(option, ini, cwd, ini_folder)
        dirs = option("verify_dir") or ini("verify_dirs") or []
        return cls(
            dirs=tuple(_folder(cwd, entry) for entry in dirs),
            selection=Selection(tuple(given("op") or ()), tuple(given("impl") or ())),
            device=_choice("device", given("device") or "auto", choices.DEVICE),
            timeout=_timeout(given),
            non_compute=bool(given("non_compute")),
            exact_int=bool(given("exact_int")),
            hf32=bool(given("hf32")),
            strict=bool(given("strict")),
            strict_limits=_limits(given("strict_limit") or ()),
            golden=_choice("golden", given("golden") or "own", choices.GOLDEN),
            stress=_runs("stress", given("stress") or 1),
            trials=_runs("trials", given("trials") or 1),
            guard_bands=_choice("guard_bands", given("guard_bands") or "on", choices.GUARD_BANDS),
            output=given.file("output"),
            start=_choice("start", given("start") or "auto", choices.START),
            degeneration=_choice(
                "degeneration", given("degeneration") or "strict", choices.DEGENERATION
            ),
            execution=_choice("execution", given("execution") or "fail", choices.EXECUTION),
            standin=_choice("standin", given("standin") or "auto", choices.STANDIN),
            autotune=_choice("autotune", given("autotune") or "first", choices.AUTOTUNE),
            determinism=bool(given("determinism")),
            hidden_state=_choice(
                "hidden_state", given("hidden_state") or "fail", choices.HIDDEN_STATE
            ),
            masked_lanes=_choice(
                "masked_lanes", given("masked_lanes") or "poison", choices.MASKED_LANES
            ),
            interpreter_jobs=_jobs(given("interpreter_jobs") or cores()),
            limits=_isolation(given),
            in_process=bool(given("in_process")),
            github_summary=_github_summary(given("github_summary") or "auto", cwd),
            html=given.file("html"),
            # Not from an ini file: one below a verify dir could allow itself.
            allow_conftest=bool(option("verify_allow_conftest")),
            fresh_cache=bool(given("fresh_cache")),
            keep_cache=bool(given("keep_cache")),
            benchmark=_benchmark(given),
            cache_ab=bool(given("cache_ab")),
            compile=_compile(given),
        ).checked()

    def checked(self) -> Settings:
        """Return these settings.

        Raises:
            SettingsError: they contradict each other.
        """
        if self.cache_ab and self.fresh_cache:
            raise SettingsError(
                "--verify-cache-ab compares the Triton cache in use with an empty one, and with "
                "--verify-fresh-cache both are empty: leave one of them out"
            )
        if self.limits.files == isolation.REQUIRE and isolation.of_files(self) == isolation.NONE:
            reason = (
                "--verify-in-process isolates nothing"
                if self.in_process
                else "this kernel has no Landlock; Linux 5.19 has, with landlock among its lsm"
            )
            raise SettingsError(f"--verify-isolation=require: {reason}")
        if self.html is not None and self.html.is_dir():
            raise SettingsError(f"--verify-html: {self.html} is a folder; name a file in it")
        if self.cache_ab and self.in_process:
            raise SettingsError(
                "--verify-cache-ab needs new processes for another Triton cache, and with "
                "--verify-in-process there are none: leave one of them out"
            )
        return self


def _benchmark(given: Given) -> BenchmarkWishes | None:
    if not given("benchmark"):
        for name in ("save", "compare"):
            if given.option(f"verify_{name}") is not None:
                raise SettingsError(f"--verify-{name} takes effect with --benchmark")
        return None
    # Not at the top: most runs measure nothing.
    from pytest_tritonverify.benchmark.asking import BenchmarkWishes

    try:
        return BenchmarkWishes.load(given)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _compile(given: Given) -> CompileWishes | None:
    if not given("compile"):
        return None
    # Not at the top: most runs compile nothing.
    from pytest_tritonverify.compilation.wishes import CompileWishes

    try:
        return CompileWishes.load(given)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def absolute(path: Path) -> Path:
    """Return a path without `..`, and with the links that the user's name for it holds.

    pytest's own paths are made so, and node ids and result files go by them.
    """
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links


def _folder(cwd: Path, entry: str | Path) -> Path:
    path = absolute(cwd / entry)
    if not path.exists():
        raise SettingsError(f"--verify-dir: there is no folder {path}")
    if not path.is_dir():
        raise SettingsError(
            f"--verify-dir: {path} is a file; give its folder, or name the implementation file "
            "itself: pytest path/to/<op>_triton_<variant>.py"
        )
    return path


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise SettingsError(f"verify_{name}: {value!r} is none of {', '.join(allowed)}")
    return value


def _isolation(given: Callable[[str], Any]) -> isolation.Limits:
    _choice("isolation", given("isolation") or isolation.AUTO, choices.ISOLATION)
    try:
        return isolation.Limits.load(given)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _github_summary(value: Any, cwd: Path) -> Path | None:
    wanted = "on" if value is True else _choice("github_summary", value, ("auto", "on", "off"))
    named = os.environ.get(GITHUB_SUMMARY_VARIABLE)
    if wanted == "on" and not named:
        raise SettingsError(
            f"--verify-github-summary: {GITHUB_SUMMARY_VARIABLE} names no file; on GitHub every "
            "step has one, elsewhere set it"
        )
    return cwd / named if named and wanted != "off" else None


def _limits(entries: Iterable[str]) -> StrictLimits:
    try:
        return StrictLimits().changed(entries)
    except ValueError as error:
        raise SettingsError(f"--verify-strict-limit: {error}") from None


def _timeout(given: Given) -> float:
    try:
        return given.seconds("timeout", DEFAULT_TIMEOUT)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _runs(name: str, value: Any) -> int:
    try:
        runs = int(value)
    except (TypeError, ValueError):
        raise SettingsError(
            f"--verify-{name}: {value!r} is no whole number; where a path follows the option, "
            f"write --verify-{name}={choices.STRESS_RUNS}"
        ) from None
    if not 1 <= runs <= _MOST_RUNS:
        raise SettingsError(f"--verify-{name}: {value!r} is not between 1 and {_MOST_RUNS}")
    return runs


def _jobs(value: Any) -> int:
    try:
        jobs = int(value)
    except (TypeError, ValueError):
        raise SettingsError(f"--verify-interpreter-jobs: {value!r} is no whole number") from None
    if jobs < 1:
        raise SettingsError(f"--verify-interpreter-jobs: {value!r} is less than 1")
    return jobs
