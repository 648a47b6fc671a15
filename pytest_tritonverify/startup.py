"""Switch the plugin on: read settings, find pairs, and register the hooks of active runs."""

from __future__ import annotations

import dataclasses
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.stash import WORKER_KEY, session_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_tritonverify.activation import Activation
    from pytest_tritonverify.benchmark.benchmarks import Benchmarks
    from pytest_tritonverify.benchmark.keeping import Keeper
    from pytest_tritonverify.discovery import Findings
    from pytest_tritonverify.engine import Engine
    from pytest_tritonverify.settings import Settings

ALLOW_CONFTEST = "--verify-allow-conftest"


def concerns_us(config: pytest.Config) -> bool:
    """Say, cheaply, whether a run may concern the plugin."""
    options = config.known_args_namespace
    if options.help or options.version:
        return False
    return bool(
        options.verify_dir
        or config.getini("verify_dirs")
        or any(
            name.endswith("_torch.py") or "_triton_" in name
            for name in (argument.partition("::")[0] for argument in options.file_or_dir)
            if name.endswith(".py")
        )
    )


def overlooked(config: pytest.Config, stats: Mapping[str, Any]) -> list[str]:
    """Return a line for folders of pairs that a run without tests was asked to look into.

    Args:
        config: of a run that has collected nothing.
        stats: the terminal reporter's, which know what was deselected.
    """
    if concerns_us(config) or stats.get("deselected"):
        return []
    from pytest_tritonverify import discovery
    from pytest_tritonverify.settings import absolute

    cwd = config.invocation_params.dir
    given = config.known_args_namespace.file_or_dir or ["."]
    folders = [name for name in dict.fromkeys(given) if "::" not in name]
    found = [
        name
        for name in folders
        if (cwd / name).is_dir() and discovery.holds_pair(absolute(cwd / name))
    ]
    if not found:
        return []
    options = " ".join(f"--verify-dir={shlex.quote(name)}" for name in found)
    text = "tritonverify: pairs of a PyTorch reference and a Triton kernel lie here, which are "
    return [f"{text}judged only where that is asked for: pytest {options}"]


def _settings(config: pytest.Config) -> Settings:
    from pytest_tritonverify.settings import Settings, SettingsError

    try:
        return Settings.load(
            lambda dest: getattr(config.known_args_namespace, dest, None),
            config.getini,
            config.invocation_params.dir,
            config.rootpath,
        )
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from None


def _activation(config: pytest.Config, settings: Settings) -> Activation:
    from pytest_tritonverify import activation

    cwd = config.invocation_params.dir
    given = getattr(config, "workerinput", {}).get(WORKER_KEY, {}).get("explicit")
    arguments = config.known_args_namespace.file_or_dir if given is None else given
    explicit = tuple(activation.positional_path(cwd, argument) for argument in arguments)
    dirs = activation.outermost(settings.dirs)
    asked = bool(config.known_args_namespace.verify_dir)
    if explicit and not asked:
        # An ini value is a standing wish: whoever names something else wants that alone.
        dirs = activation.touched(dirs, explicit)
    named = activation.named_pairs(explicit)
    return activation.Activation(dirs, named, explicit, cwd, demanded=asked or bool(named))


def _findings(config: pytest.Config, activation: Activation) -> Findings:
    from pytest_tritonverify import discovery
    from pytest_tritonverify.activation import is_ignored
    from pytest_tritonverify.settings import absolute

    options = config.known_args_namespace
    patterns = config.getini("norecursedirs")
    cwd = config.invocation_params.dir
    ignored = frozenset(absolute(cwd / path) for path in options.ignore or ())
    globs = [str(cwd / glob) for glob in options.ignore_glob or ()]
    return discovery.walk(activation.dirs, lambda path: is_ignored(path, patterns, ignored, globs))


def translate(config: pytest.Config, arguments: list[str]) -> None:
    """Write `--benchmark` out, in a run that concerns us: elsewhere it is another's option."""
    from pytest_tritonverify.benchmark import options

    if options.SPELLING in arguments:
        arguments[:] = options.translated(arguments)
        if options.OPTION in arguments:
            config.known_args_namespace.verify_benchmark = True


def activate(config: pytest.Config) -> None:
    """Refuse files beside candidates that pytest would import or obey.

    Raises:
        pytest.UsageError: there is one; it has not been loaded yet.
    """
    from pytest_tritonverify.activation import intruders

    settings = _settings(config)
    activation = _activation(config, settings)
    if not (activation.dirs or activation.named):
        return
    found = intruders(activation, _findings(config, activation), config.inipath)
    if found and not (settings.allow_conftest and _is_users_own_wish(config, found)):
        raise pytest.UsageError(
            f"{found[0]} lies among the files to be judged, and pytest would "
            f"{'obey' if found[0].suffix != '.py' else 'import'} it: whoever wrote a candidate "
            "could change its verdict that way. Move it out of the verify dir, or accept it with "
            f"{ALLOW_CONFTEST} on the command line if it is yours."
        )


def _is_users_own_wish(config: pytest.Config, found: tuple[Path, ...]) -> bool:
    """Say whether an option comes from the user, not from an ini file among the candidates."""
    if config.inipath not in found or "PYTEST_XDIST_WORKER" in os.environ:
        # The controller of such a worker has asked this already.
        return True
    said = (*config.invocation_params.args, *os.environ.get("PYTEST_ADDOPTS", "").split())
    return ALLOW_CONFTEST in said


def configure(config: pytest.Config) -> None:
    """Set up the run.

    Raises:
        pytest.UsageError: what was asked for is impossible; the text says what there is.
    """
    settings = _settings(config)
    activation = _activation(config, settings)
    if not (activation.dirs or activation.named):
        return
    from pytest_tritonverify.hooks import ActiveHooks, WithoutConfigFile

    findings = _findings(config, activation)
    _check_request(settings, activation, findings)
    session = _session(config, settings, activation, findings)
    config.stash[session_key] = session
    _set_arguments(config, activation, findings)
    config.pluginmanager.register(ActiveHooks(config, session), "tritonverify-active")
    if str(config.inipath) == os.devnull:
        config.pluginmanager.register(WithoutConfigFile(), "tritonverify-header")


def _check_request(settings: Settings, activation: Activation, findings: Findings) -> None:
    from pytest_tritonverify import detection

    pairs = (*findings.pairs, *activation.named)
    admitted = [pair for pair in pairs if settings.selection.admits(pair)]
    if pairs and not admitted:
        there = ", ".join(sorted({pair.label for pair in pairs}))
        raise pytest.UsageError(
            f"--verify-op/--verify-impl: no pair matches {_patterns(settings)}; there are: {there}"
        )
    if settings.benchmark is not None and settings.in_process:
        raise pytest.UsageError(
            "--verify-benchmark can't be combined with --verify-in-process: nothing is isolated "
            "there, so that no time could be relied on"
        )
    report = settings.benchmark.output if settings.benchmark is not None else None
    single = {"--verify-output": settings.output, "--verify-perf-output": report}
    for option, given in single.items():
        if given is not None and len({pair.implementation for pair in admitted}) > 1:
            raise pytest.UsageError(
                f"{option} names one file, but {len(admitted)} pairs are to be judged; narrow "
                "them with --verify-op and --verify-impl"
            )
    missing = detection.missing_packages(("torch", "triton"))
    if missing:
        advice = {
            "torch": "install it for the Python that runs pytest: pip install torch, without a "
            "GPU by the command for CPU-only builds that pytorch.org gives",
            "triton": "install it for the Python that runs pytest: pip install triton ml_dtypes "
            "(on Ascend: pip install triton-ascend instead)",
        }
        raise pytest.UsageError(f"{missing[0]} is not installed; {advice[missing[0]]}")


def _patterns(settings: Settings) -> str:
    return ", ".join(repr(p) for p in (*settings.selection.ops, *settings.selection.impls))


def _session(
    config: pytest.Config, settings: Settings, activation: Activation, findings: Findings
) -> Any:
    from pytest_tritonverify import isolation
    from pytest_tritonverify.activation import outermost
    from pytest_tritonverify.engine import DeviceMissingError, Engine
    from pytest_tritonverify.results.ledger import Ledger
    from pytest_tritonverify.session import VerifySession

    keeper = _keeper(config, settings)
    toolchains = _toolchains(config, settings)
    brief = getattr(config, "workerinput", {}).get(WORKER_KEY, {})
    private = activation.folders() | {pair.implementation.parent for pair in findings.pairs}
    private |= {folder.resolve() for folder in private}
    cache = getattr(config, "cache", None)
    folder = Path(cache.mkdir("tritonverify")) if cache is not None else None
    protected = outermost({*private, *([folder] if folder else [])})
    settings = dataclasses.replace(settings, protected=protected)
    try:
        engine = Engine(
            settings, folder, frozenset(private), brief.get("device"), brief.get("own_cache")
        )
    except DeviceMissingError as error:
        raise pytest.UsageError(str(error)) from None
    ledger = None
    if not hasattr(config, "workerinput"):
        ledger = Ledger(
            settings.output,
            _recorded(settings),
            {"degeneration": settings.degeneration, "execution": settings.execution},
            in_process=settings.in_process,
            strictness=settings.strict_limits.to_json() if settings.strict else None,
            isolation=isolation.of_files(settings),
        )
    benchmarks = _benchmarks(config, settings, engine, keeper)
    compilations = None
    if toolchains is not None:
        from pytest_tritonverify.compilation.compiling import Compilations

        compilations = Compilations(settings, toolchains, frozenset(private))
    return VerifySession(settings, activation, findings, engine, ledger, benchmarks, compilations)


def _toolchains(config: pytest.Config, settings: Settings) -> Any:
    """Return what compiles for each target that was asked for; None where none was.

    Raises:
        pytest.UsageError: nothing does for one of them.
    """
    wishes = settings.compile
    if wishes is None:
        return None
    from pytest_tritonverify.compilation import targets, toolchains

    folders = (config.rootpath, config.invocation_params.dir)
    try:
        return toolchains.resolve(wishes.targets, wishes.ascend_python, folders)
    except (targets.TargetError, toolchains.ToolchainError) as error:
        raise pytest.UsageError(str(error)) from None


def _recorded(settings: Settings) -> dict[str, Any]:
    """Return the options that are to be seen in result files."""
    unusual = {
        # Limits that are wider than the standard's.
        "hf32": settings.hf32,
        "golden": settings.golden if settings.golden != "own" else None,
        "stress": settings.stress if settings.stress > 1 else None,
        "trials": settings.trials if settings.trials > 1 else None,
        "guard_bands": settings.guard_bands if settings.guard_bands != "on" else None,
    }
    given = {name: value for name, value in unusual.items() if value}
    return {"non_compute": settings.non_compute, **given}


def _benchmarks(
    config: pytest.Config, settings: Settings, engine: Engine, keeper: Keeper | None
) -> Benchmarks | None:
    """Return what measures, where that is asked for."""
    if settings.benchmark is None:
        return None
    from pytest_tritonverify.benchmark.benchmarks import Benchmarks
    from pytest_tritonverify.benchmark.perf_ledger import PerfLedger

    ledger = None
    if not hasattr(config, "workerinput"):
        ledger = PerfLedger(settings.benchmark.output, settings.benchmark.perf)
    return Benchmarks(settings, settings.benchmark, engine, ledger, keeper)


def _keeper(config: pytest.Config, settings: Settings) -> Keeper | None:
    """Return what compares and saves reports, where that is asked for and this process does it."""
    wishes = settings.benchmark
    if wishes is None or hasattr(config, "workerinput"):
        return None
    if wishes.save is None and wishes.compare is None:
        return None
    from pytest_tritonverify.benchmark.history import HistoryError
    from pytest_tritonverify.benchmark.keeping import Keeper

    keeper = Keeper(
        root=config.rootpath,
        save=wishes.save,
        compare=wishes.compare,
        cwd=config.invocation_params.dir,
    )
    try:
        keeper.check()
    except HistoryError as error:
        raise pytest.UsageError(str(error)) from None
    return keeper


def _set_arguments(config: pytest.Config, activation: Activation, findings: Findings) -> None:
    from pytest_tritonverify.activation import to_collect

    # An ini value is a standing wish: it adds to what the project collects anyway.
    standing = config.getini("verify_dirs") and not config.known_args_namespace.verify_dir
    config.args[:] = to_collect(
        config.args,
        activation,
        findings,
        from_user=config.args_source is pytest.Config.ArgsSource.ARGS or bool(standing),
        cwd=config.invocation_params.dir,
    )
