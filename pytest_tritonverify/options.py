"""The command-line options and ini values of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_tritonverify import choices
from pytest_tritonverify.benchmark import options as benchmark_options
from pytest_tritonverify.compilation import options as compile_options

if TYPE_CHECKING:
    import pytest

# name, help, and what argparse needs beyond that. Each has an ini value `verify_<name>`.
_SWITCHES = (
    ("non-compute", "Judge operators that only move data: outputs must agree bit for bit"),
    ("exact-int", "Judge 32- and 64-bit integers of floating-point inputs exactly, not within 1"),
    ("hf32", "Judge float32 outputs by the limits of HF32, for runs with HF32 matmul enabled"),
    ("strict", "Ask for more than the accuracy standard does, and fail on its warnings"),
    ("determinism", "Run each side twice on one case and warn where the runs differ"),
    ("in-process", "Run everything in pytest's own process, for debuggers; isolates nothing"),
    ("fresh-cache", "Compile into an empty Triton cache of this run's own"),
    ("keep-cache", "With --verify-fresh-cache: keep that cache and print where it is"),
    ("cache-ab", "Run accuracy failures again on an empty Triton cache: is the compiler to blame?"),
)
# Options whose ini value is the same text.
_PLAIN_INI = (
    "device",
    "timeout",
    "output",
    "start",
    "degeneration",
    "execution",
    "hidden_state",
    "standin",
    "autotune",
    "masked_lanes",
    "interpreter_jobs",
    "isolation",
    "memory_limit",
    "process_limit",
    "file_limit",
    "github_summary",
    "golden",
    "stress",
    "trials",
    "guard_bands",
    "html",
)


def add_options(parser: pytest.Parser) -> None:
    """Define every option and ini value."""
    group = parser.getgroup("tritonverify", "Triton kernel verification")

    def add(name: str, text: str, **kwargs: Any) -> None:
        dest = f"verify_{name.replace('-', '_')}"
        group.addoption(f"--verify-{name}", dest=dest, help=text, **kwargs)

    add(
        "dir",
        "Judge every pair <op>_torch.py / <op>_triton_*.py below this folder (repeatable)",
        action="append",
        metavar="DIR",
    )
    add(
        "op",
        "Only operators whose name matches this pattern (repeatable)",
        action="append",
        metavar="PATTERN",
    )
    add(
        "impl",
        "Only implementations whose name, triton_<variant>, matches (repeatable)",
        action="append",
        metavar="PATTERN",
    )
    add(
        "device",
        "Where implementations run; auto takes an accelerator if there is one, else the CPU",
        choices=choices.DEVICE,
    )
    add("timeout", "Seconds that one pair may take (default 900)", metavar="SECONDS")
    add(
        "output",
        "Where the result file of a single pair goes (default: beside the pair)",
        metavar="PATH",
    )
    add(
        "start",
        "How worker processes are started; auto forks where the device allows it",
        choices=choices.START,
    )
    add(
        "degeneration",
        "What becomes of an implementation that computes in PyTorch instead of Triton, by its "
        "source: strict (default) fails it, partial allows torch operators beside kernels that "
        "do real work, warn only reports",
        choices=choices.DEGENERATION,
    )
    add(
        "execution",
        "What becomes of one whose kernels are seen not to do the work when it runs",
        choices=choices.EXECUTION,
    )
    add(
        "hidden-state",
        "Whether weights and buffers of both models are compared before the first case",
        choices=choices.HIDDEN_STATE,
    )
    add(
        "standin",
        "Which accelerator the CPU stands in for, so that code written for it can be judged; auto "
        "goes by what the pair's source asks for",
        choices=choices.STANDIN,
    )
    add(
        "autotune",
        "Which configurations of autotuned kernels are judged: the first after pruning (default "
        "on the CPU), or all of them, one by one and on the same buffers",
        choices=choices.AUTOTUNE,
    )
    add(
        "masked-lanes",
        "What a masked tl.load without `other` yields where the mask is off, on the CPU: poison "
        "(default) shows kernels that use it, zero is what Triton's interpreter does",
        choices=choices.MASKED_LANES,
    )
    add(
        "interpreter-jobs",
        "Processes over which long launches are spread, on the CPU (default: the cores)",
        metavar="N",
    )
    compile_options.add_options(group, parser)
    add(
        "isolation",
        "Whether implementations are kept from files: the task, results, and writing to pairs and "
        "packages; auto (default) does so where the kernel has Landlock, require insists on it",
        choices=choices.ISOLATION,
    )
    add(
        "memory-limit",
        "Memory that a process of an implementation may have, such as 8G, or off (default: the "
        "machine's on the CPU, off elsewhere)",
        metavar="SIZE",
    )
    add(
        "process-limit",
        "Processes that an implementation may have at once, or off (default: 256, and 4 a core)",
        metavar="N",
    )
    add(
        "file-limit",
        "Size that a file of an implementation may grow to, or off (default: the machine's memory)",
        metavar="SIZE",
    )
    add(
        "golden",
        "What the golden is computed in: own (default), the reference's own precision, or float64",
        choices=choices.GOLDEN,
    )
    add(
        "stress",
        f"Run each case N times ({choices.STRESS_RUNS} where no number is given) in changing "
        "surroundings, and fail it where a run fails or differs",
        nargs="?",
        const=str(choices.STRESS_RUNS),
        metavar="N",
    )
    add(
        "trials",
        "Judge each case on the inputs of N seeds instead of one",
        metavar="N",
    )
    add(
        "guard-bands",
        "On devices: whether memory beside tensors is watched for stray writes (default on)",
        choices=choices.GUARD_BANDS,
    )
    add(
        "strict-limit",
        "With --verify-strict: set a threshold anew (repeatable)",
        action="append",
        metavar="NAME=VALUE",
    )
    for name, text in _SWITCHES:
        add(name, text, action="store_const", const=True)
        parser.addini(f"verify_{name.replace('-', '_')}", text, type="bool", default=False)
    benchmark_options.add_options(group, parser)
    add(
        "github-summary",
        "Append the outcome in Markdown to the file that GITHUB_STEP_SUMMARY names (default where "
        "it names one)",
        action="store_const",
        const=True,
    )
    add(
        "html",
        "Write one HTML page about all pairs of the run, which needs nothing beside it",
        metavar="FILE",
    )
    add(
        "allow-conftest",
        "Let pytest load the conftest.py and ini files that lie below a verify dir",
        action="store_true",
    )
    parser.addini("verify_dirs", "Folders in which pairs are searched", type="paths", default=[])
    for name in ("op", "impl", "strict_limit"):
        text = f"As --verify-{name.replace('_', '-')}"
        parser.addini(f"verify_{name}", text, type="args", default=[])
    for name in _PLAIN_INI:
        parser.addini(f"verify_{name}", f"As --verify-{name.replace('_', '-')}", default="")
