"""The workflow's commands: each one registers its own arguments, and says what became of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.workflow import files

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse names it so


def register(commands: Commands) -> None:
    """Define all commands. What a parsed one is to run, `options.run` holds."""
    for define in (_validate_task, _build_task, _explain, _decide, _gate, _report, _batch):
        define(commands)


def run(options: argparse.Namespace) -> int:
    """Run the command that was parsed, and return its exit status."""
    try:
        status: int = options.run(options)
    except files.FileError as error:
        if options.json:
            _print_json({"error": str(error)})
        print(f"{options.command}: {error}", file=sys.stderr)
        return 1
    return status


def _add(
    commands: Commands, name: str, run_: Callable[[argparse.Namespace], int], help_: str, more: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help_, description=more)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_)
    return parser


def _print_json(content: Mapping[str, Any]) -> None:
    print(json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False))


def tell(options: argparse.Namespace, content: Mapping[str, Any], text: str) -> None:
    """Print what came of a command, as JSON where that is asked for."""
    if options.json:
        _print_json(content)
    else:
        print(text)


def _validate_task(commands: Commands) -> None:
    parser = _add(
        commands,
        "validate-task",
        _run_validate_task,
        "check that a file is a task, and that its reference runs on every case",
        "Check a task file, by its source and by running it in processes of its own. "
        "Exit status 0: it is a task; 1: anything else.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the task")
    parser.add_argument("--source", type=Path, help="the file that it must be a copy of")
    parser.add_argument("--static-only", action="store_true", help="run nothing")
    parser.add_argument("--timeout", type=_seconds, default=900.0, help="default: %(default)g s")
    parser.add_argument("--device", default="auto", help="auto, npu, cuda or cpu (default: auto)")


def _run_validate_task(options: argparse.Namespace) -> int:
    from pytest_tritonverify import choices
    from pytest_tritonverify.workflow import task_check

    if options.device not in choices.DEVICE:
        raise files.FileError(f"--device {options.device}: give one of {', '.join(choices.DEVICE)}")
    report = task_check.check(
        options.file,
        source=options.source,
        static_only=options.static_only,
        timeout=options.timeout,
        device=options.device,
    )
    tell(options, report.to_json(), report.to_text())
    return 0 if report.valid else 1


def _build_task(commands: Commands) -> None:
    parser = _add(
        commands,
        "build-task",
        _run_build_task,
        "put a task into a work directory: copied, or made from a GPU kernel's stored data",
        "Exit status 0: the task is there; 1: it is not, since a file is missing or broken, or "
        "since a reference must be written by hand.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the description file")
    parser.add_argument("--output", type=Path, required=True, help="the work directory")
    parser.add_argument("--pt-file", type=Path, help="inputs and outputs (default: <op>.pt beside)")
    parser.add_argument(
        "--gpu-perf-csv", type=Path, help="GPU times (default: vllm_gpu_perf.csv, 3 folders up)"
    )


def _run_build_task(options: argparse.Namespace) -> int:
    from pytest_tritonverify.workflow import task_building

    built = task_building.build(
        options.file, options.output, pt_file=options.pt_file, gpu_perf_csv=options.gpu_perf_csv
    )
    tell(options, built.to_json(), built.to_text())
    return 1 if built.reference_required else 0


def _explain(commands: Commands) -> None:
    parser = _add(
        commands,
        "explain",
        _run_explain,
        "say what a verification's failures are, and of which class",
        "Several results are rounds, the oldest first: the last one is explained, the others are "
        "its history. Exit status 0: it is explained, whatever came out; 1: it can't be.",
    )
    parser.add_argument(
        "results",
        metavar="RESULT",
        nargs="*",
        type=Path,
        help="a verify_result.json, what `validate --json` has printed, or a work directory",
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, help="the last round was ended after these"
    )
    parser.add_argument(
        "--limit", type=_size, default=4000, help="characters of the text (default: %(default)s)"
    )


def _run_explain(options: argparse.Namespace) -> int:
    from pytest_tritonverify.workflow import explaining

    rounds = [one for path in options.results for one in explaining.of_path(path, options.limit)]
    if options.timeout is not None:
        rounds.append(explaining.of_timeout(f"{options.timeout:g}"))
    if not rounds:
        raise files.FileError("give a result, a work directory, or --timeout SECONDS")
    explanation = explaining.explain(rounds)
    tell(options, explanation.to_json(), explanation.to_text())
    return 0


def _decide(commands: Commands) -> None:
    parser = _add(
        commands,
        "decide",
        _run_decide,
        "say whether an optimised kernel is an improvement on its baseline",
        "Exit status 0: it is; 1: it is not, or it can't be told.",
    )
    parser.add_argument("baseline", metavar="BASELINE", type=Path, help="Phase 3's perf_result")
    parser.add_argument("optimized", metavar="OPTIMIZED", type=Path, help="the new perf_result")


def _run_decide(options: argparse.Namespace) -> int:
    from pytest_tritonverify.workflow import decision

    found = decision.decide_files(options.baseline, options.optimized)
    tell(options, found.to_json(), found.to_text())
    return 0 if found.improvement else 1


def _workdir_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workdir", metavar="WORKDIR", type=Path, help="the work directory")
    parser.add_argument("--op-name", "--op_name", help="default: told by the files")
    parser.add_argument(
        "--iter",
        metavar="N",
        type=int,
        help="the round that Phase 3 has ended with (default: told by the files)",
    )


def _gate(commands: Commands) -> None:
    parser = _add(
        commands,
        "gate",
        _run_gate,
        "assert that Phase 3 has passed, before Phase 4 begins",
        "Where it has not, summary.json says so: phase3_gate_violation. Exit status 0: Phase 4 may "
        "begin; 1: anything else.",
    )
    _workdir_options(parser)
    parser.add_argument(
        "--no-fingerprint", action="store_true", help="don't ask what the environment is now"
    )
    parser.add_argument("--no-summary", action="store_true", help="write no summary.json")


def _run_gate(options: argparse.Namespace) -> int:
    from pytest_tritonverify.workflow import assertion, layout

    work = layout.open_workdir(options.workdir, options.op_name)
    found = assertion.examine(work, options.iter)
    if found.passed and not options.no_fingerprint:
        from pytest_tritonverify.workflow import surroundings

        present, problem = surroundings.present()
        found = assertion.examine(work, options.iter, present)
        if problem:
            found = assertion.with_warning(found, f"the environment is not known: {problem}")
    if not found.passed and not options.no_summary:
        assertion.write_violation(found)
    tell(options, found.to_json(), found.to_text())
    return 0 if found.passed else 1


def _report(commands: Commands) -> None:
    parser = _add(
        commands,
        "report",
        _run_report,
        "write report.md, summary.json and <op>_generated.py of a work directory",
        "Exit status 0: they are written, whatever they say; 1: they can't be.",
    )
    _workdir_options(parser)
    parser.add_argument("--arch", help="default: that of the verification's NPU, or ascend910b1")
    parser.add_argument("--gpu-perf-csv", type=Path, help="GPU times, for GPU-kernel mode")
    parser.add_argument("--skill-path", help="default: .claude/skills/triton-op-verifier")


def _run_report(options: argparse.Namespace) -> int:
    from pytest_tritonverify.workflow import layout, outcome, reporting, summary

    work = layout.open_workdir(options.workdir, options.op_name)
    found = outcome.of(work, options.iter, options.gpu_perf_csv)
    content, written = reporting.write(
        found, arch=options.arch, skill_path=options.skill_path or summary.SKILL_PATH
    )
    lines = [f"written: {path}" for path in written]
    if found.failure is not None:
        lines.append(f"{found.failure.phase}: {found.failure.reason}")
    tell(options, content, "\n".join(lines))
    for warning in found.warnings:
        print(f"report: warning: {warning}", file=sys.stderr)
    return 0


def _batch(commands: Commands) -> None:
    parser = _add(
        commands,
        "batch",
        _run_batch,
        "write batch_report.md over many work directories",
        "Exit status 0: it is written, whatever it says; 1: it can't be.",
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder above them")
    parser.add_argument("--output", type=Path, help="default: batch_report.md in the folder")


def _run_batch(options: argparse.Namespace) -> int:
    from pytest_tritonverify.workflow import batch

    found = batch.collect(options.folder)
    path = batch.write(found, options.output)
    content = found.to_json()
    text = f"written: {path} ({content['succeeded']} of {content['total']} succeeded)"
    tell(options, content, text)
    return 0


def _seconds(text: str) -> float:
    import argparse

    try:
        seconds = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds") from None
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


def _size(text: str) -> int:
    import argparse

    if not text.isdecimal() or int(text) < 200:  # noqa: PLR2004 - less holds no failure
        raise argparse.ArgumentTypeError(f"{text!r} is no number of characters from 200")
    return int(text)
