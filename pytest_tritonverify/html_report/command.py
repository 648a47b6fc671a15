"""The command `html`: a page from files that runs have written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.html_report import subjects, text

if TYPE_CHECKING:
    import argparse


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Define the command."""
    parser = commands.add_parser(
        "html",
        help="write one HTML page about results and benchmark reports",
        description="Make a page from what runs have written. Exit status 0: it is written, "
        "whatever it says; 1: it can't be.",
    )
    parser.add_argument(
        "results",
        metavar="RESULT",
        nargs="+",
        type=Path,
        help="a verify_result.json, a perf_result.json, or a folder that is searched for them",
    )
    parser.add_argument("--output", metavar="FILE", type=Path, required=True, help="the page")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pytest_tritonverify.html_report import page
    from pytest_tritonverify.workflow import command

    found = subjects.of_files(options.results)
    page.write(options.output, found)
    content: dict[str, Any] = {"page": str(options.output), "pairs": len(found)}
    count = text.plural(len(found), "pair")
    command.tell(options, content, f"written: {options.output} ({count})")
    return 0
