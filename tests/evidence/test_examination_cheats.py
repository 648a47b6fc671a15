"""What the examination finds, kind by kind, and where it says that it is."""

from __future__ import annotations

import importlib.util
import py_compile
import textwrap
from typing import TYPE_CHECKING

from tests.support.examining import (
    TWICE,
    examine,
    examined,
    implementation,
    notes,
    the,
    violations,
)
from tests.support.workers import write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.execution.host import Host

TWO_CASES = TWICE + "get_input_groups = lambda: [get_inputs(), get_inputs()]\n"


def test_nothing_is_launched(host: Host, tmp_path: Path) -> None:
    report = examined(
        host, tmp_path, implementation("if not x.is_cuda:\n    return x * 2\nreturn twice(x)")
    )
    assert violations(report) == {"no_launch", "torch_compute"}
    assert "on every device" in the(report, "no_launch").message
    compute = the(report, "torch_compute")
    lines = (tmp_path / "op_triton_ascend_impl.py").read_text().splitlines()
    assert "return x * 2" in lines[(compute.line or 0) - 1]
    assert "mul" in compute.message


def test_the_grid_is_empty(host: Host, tmp_path: Path) -> None:
    body = "o = torch.zeros_like(x); scale[(0,)](x, o, 120, 2, B=64); return o"
    # Its zeros are wrong, which the comparators say; with right values it is another matter.
    assert violations(examined(host, tmp_path, implementation(body))) == set()

    report = examined(
        host, tmp_path / "right", implementation(body), TWICE.replace("x * 2", "x * 0")
    )
    assert "no_launch" in violations(report)
    assert "empty grid" in the(report, "no_launch").message


def test_a_launch_fails_and_torch_takes_over(host: Host, tmp_path: Path) -> None:
    body = "try:\n    return scale[(1,)](x)\nexcept Exception:\n    return x * 2"
    report = examined(host, tmp_path, implementation(body))
    assert violations(report) == {"no_launch", "torch_compute"}
    assert "launch_failed" in notes(report)


def test_a_launch_has_no_effect_on_the_result(host: Host, tmp_path: Path) -> None:
    body = "y = x.sub(-x); scale[(1,)](y, y, 0, 2, B=64); return y"
    report = examined(host, tmp_path, implementation(body))
    assert violations(report) >= {"launch_not_needed", "output_not_written", "torch_compute"}


def test_a_kernel_of_a_library(host: Host, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "fast_kernels.py").write_text(implementation("return x"))
    top = f"import sys\nsys.path.append({str(library)!r})\nimport fast_kernels"
    report = examined(host, tmp_path / "pair", implementation("return fast_kernels.twice(x)", top))
    assert violations(report) == {"foreign_kernel", "no_launch"}


def test_a_kernel_of_a_module_beside_it(host: Host, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(implementation("return x"))
    report = examined(host, tmp_path, implementation("return helper.twice(x)", "import helper"))
    assert report.passed, report.message()


def test_moving_is_the_work_where_the_reference_only_moves(host: Host, tmp_path: Path) -> None:
    task = TWICE.replace("return x * 2", "return torch.cat([x.t(), x.t()])")
    torchs = implementation(
        "y = torch.cat([x.t(), x.t()]); o = torch.empty_like(y)\n"
        "copy[(4,)](y, o, y.numel(), B=64); return o"
    )
    assert violations(examined(host, tmp_path / "torch", torchs, task)) == {"moving_in_torch"}
    kernels = implementation(
        "o = torch.empty(48, 5); turn[(1,)](x, o, B=128); return o",
        """
        @triton.jit
        def turn(x, o, B: tl.constexpr):
            i = tl.arange(0, B)
            v = tl.load(x + (i % 5) * 24 + i // 5, mask=i < 120)
            tl.store(o + i, v, mask=i < 120)
            tl.store(o + 120 + i, v, mask=i < 120)
        """,
    )
    report = examined(host, tmp_path / "triton", kernels, task)
    assert report.passed, report.message()


def test_reordering_by_a_copy_is_moving(host: Host, tmp_path: Path) -> None:
    task = TWICE.replace("return x * 2", "return x.t().contiguous()")
    body = "y = x.t().contiguous(); o = torch.empty_like(y); copy[(2,)](y, o, 120, B=64); return o"
    report = examined(host, tmp_path, implementation(body), task)
    assert violations(report) == {"moving_in_torch"}


def test_the_forward_is_another_one(host: Host, tmp_path: Path) -> None:
    rebound = implementation("return twice(x)") + "\nModelNew.forward = lambda self, x: twice(x)\n"
    assert violations(examined(host, tmp_path / "class", rebound)) == {"entry_replaced"}
    on_instance = implementation("""
        def __init__(self):
            super().__init__()
            self.forward = lambda x: twice(x)
        def forward(self, x):
            return twice(x)
    """)
    assert violations(examined(host, tmp_path / "instance", on_instance)) == {"entry_replaced"}
    hooked = implementation("""
        def __init__(self):
            super().__init__()
            self.register_forward_hook(lambda module, args, out: out)
        def forward(self, x):
            return twice(x)
    """)
    assert violations(examined(host, tmp_path / "hook", hooked)) == {"entry_replaced"}
    other = implementation(
        """
        def __new__(cls):
            return Other()
        def forward(self, x):
            return twice(x)
        """,
        "class Other(torch.nn.Module):\n    def forward(self, x):\n        return twice(x)\n",
    )
    assert violations(examined(host, tmp_path / "new", other)) == {"entry_replaced"}


def test_a_compiled_file_is_not_the_files(host: Host, tmp_path: Path) -> None:
    shown = implementation("o = twice(x)\nreturn o")
    pair = write_pair(tmp_path, TWICE, shown)
    other = tmp_path / "other.py"
    other.write_text(implementation("o = twice(x); 1\nreturn  twice(o * 0.5)"))
    compiled = importlib.util.cache_from_source(str(pair.implementation))
    # It claims to go by its hash, which is never looked at.
    py_compile.compile(
        str(other),
        cfile=compiled,
        dfile=str(pair.implementation),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    assert "entry_replaced" in violations(examine(host, pair))


def test_functions_are_replaced(host: Host, tmp_path: Path) -> None:
    top = "import time\ntime.perf_counter = lambda: 0.0\n"
    report = examined(host, tmp_path, implementation("return twice(x)", top))
    assert violations(report) == {"function_replaced"}
    assert "time.perf_counter" in the(report, "function_replaced").message
    report = examined(
        host,
        tmp_path / "forward",
        implementation("torch.equal = lambda *_: True\nreturn twice(x)"),
    )
    assert violations(report) == {"function_replaced"}


def test_a_thread_goes_on(host: Host, tmp_path: Path) -> None:
    body = (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
        "return twice(x)"
    )
    assert violations(examined(host, tmp_path, implementation(body))) == {"thread_left"}


def test_weights_are_computed_in_every_call(host: Host, tmp_path: Path) -> None:
    source = implementation("""
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3))
        def forward(self, x):
            self.w.detach().exp()
            return twice(x)
    """)
    report = examined(host, tmp_path, source)
    assert violations(report) == {"torch_compute"}
    assert "in every call" in the(report, "torch_compute").message


def test_only_the_observed_run_fails(host: Host, tmp_path: Path) -> None:
    body = """
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
if _get_current_dispatch_mode_stack():
    raise RuntimeError("not today")
return twice(x)
"""
    report = examined(host, tmp_path, implementation(body))
    assert not report.passed
    assert not report.violations
    assert "not today" in the(report, "not_examined").message


def test_a_case_that_fails_by_itself_is_no_finding(host: Host, tmp_path: Path) -> None:
    report = examined(host, tmp_path, implementation("raise RuntimeError('never')"))
    assert report.passed
    assert notes(report) == {"not_examined"}
    assert not report.cases[0].examined


def test_a_file_that_cannot_be_imported_is_no_finding(host: Host, tmp_path: Path) -> None:
    report = examined(host, tmp_path, "raise RuntimeError('never')", TWO_CASES, 2)
    assert report.passed
    assert [(f.code, f.severity, f.cases) for f in report.findings] == [
        ("not_examined", "note", (1, 2))
    ]


def test_a_hang_is_a_hang(host: Host, tmp_path: Path) -> None:
    body = "import time\ntime.sleep(600)"
    pair = write_pair(tmp_path, TWO_CASES, implementation(body))
    report = examine(host, pair, 2, 1.0, {1: {"output": "a"}, 2: {"output": "b"}})
    assert [(f.code, f.case_idx) for f in report.errors] == [
        ("not_examined", 1),
        ("not_examined", 2),
    ]
    assert not report.violations
    assert "hangs" in report.errors[0].message
    assert "used up" in report.errors[1].message


def test_the_digests_of_a_cases_own_run_can_be_given(host: Host, tmp_path: Path) -> None:
    pair = write_pair(tmp_path, TWICE, implementation("return twice(x)"))
    other = examine(host, pair, 1, plain={1: {"output": "other"}})
    assert notes(other) == {"not_deterministic"}
    failed = examine(host, pair, 1, plain={1: None})
    assert failed.passed


def test_a_reference_that_fails_is_no_evidence(host: Host, tmp_path: Path) -> None:
    task = TWICE.replace("return [torch", "raise RuntimeError('no inputs')\n    return [torch")
    report = examined(host, tmp_path, implementation("return twice(x)"), task)
    assert [finding.code for finding in report.errors] == ["not_examined"]
    assert "no inputs" in report.errors[0].message


def test_a_second_call_fails(host: Host, tmp_path: Path) -> None:
    body = "self.calls = getattr(self, 'calls', 0) + 1\nassert self.calls == 1\nreturn twice(x)"
    report = examined(host, tmp_path, implementation(body))
    assert [finding.code for finding in report.errors] == ["second_call_fails"]


COUNTING = """
def __init__(self):
    super().__init__()
    self.calls = 0
def forward(self, x):
    self.calls += 1
    return {result}
"""


def test_a_second_call_that_is_wrong(host: Host, tmp_path: Path) -> None:
    body = implementation(
        """
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(24))
        def forward(self, x):
            add[(5,)](x, self.total, B=32)
            return self.total.clone()
        """,
        """
        @triton.jit
        def add(x, o, B: tl.constexpr):
            i = tl.arange(0, B)
            m = i < 24
            tl.atomic_add(o + i, tl.load(x + tl.program_id(0) * 24 + i, mask=m, other=0), mask=m)
        """,
    )
    task = TWICE.replace("x * 2", "x.sum(0)").replace("torch.randn", "torch.rand")
    report = examined(host, tmp_path, body, task)
    assert [finding.code for finding in report.errors] == ["second_call_wrong"]
    # A reference that counts its calls is followed by one that counts them, too.
    counts = textwrap.indent(COUNTING.format(result="x * 2**self.calls"), "    ")
    task = TWICE.replace("    def forward(self, x):\n        return x * 2\n", counts)
    follows = "twice(x) if self.calls == 1 else twice(twice(x))"
    other = examined(
        host, tmp_path / "counts", implementation(COUNTING.format(result=follows)), task
    )
    assert other.passed, other.errors


def test_the_same_finding_of_several_cases_is_told_once(host: Host, tmp_path: Path) -> None:
    report = examined(host, tmp_path, implementation("return x * 2"), TWO_CASES, 2)
    assert the(report, "torch_compute").cases == (1, 2)
    assert "cases 1, 2" in report.message()
