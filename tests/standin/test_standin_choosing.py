"""Which accelerator code asks for is told from its source."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.standin import choosing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Chooser = Callable[..., str]

PLAIN = """
import torch
import triton

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x, device=x.device)
        return out
"""


@pytest.fixture
def choose(tmp_path: Path) -> Chooser:
    """Return a function that chooses for an implementation's and a task's source."""

    def choose(implementation: str, task: str = "", option: str = "auto") -> str:
        files = tmp_path / "op_torch.py", tmp_path / "op_triton_impl.py"
        for file, text in zip(files, (task, implementation), strict=True):
            file.write_text(textwrap.dedent(text), "utf-8")
        return choosing.choose(option, *files)

    return choose


@pytest.mark.parametrize(
    "line",
    [
        "assert x.is_cuda",
        "x = x.cuda()",
        'x = x.to("cuda")',
        'x = torch.empty(3, device="cuda:0")',
        'x = torch.empty(3, device=torch.device("cuda"))',
        'ok = x.device.type == "cuda"',
        'x = torch.empty(3, device=f"cuda:{rank}")',
        'd = "cuda" if torch.cuda.is_available() else "cpu"',
        "torch.cuda.synchronize()",
        "with torch.cuda.device(x.device): pass",
        "from torch.cuda import Stream",
        "import torch.cuda.amp",
        "from torch._C import _cuda_getCurrentRawStream as get_raw_stream",
        "x = torch.zeros(3, pin_memory=True)",
        "y = x.pin_memory()",
        't = x.type("torch.cuda.FloatTensor")',
        "t = triton.runtime.driver.active.get_current_target()",
        "n = driver.active.utils.get_device_properties(0)",
        'n = props["multiprocessor_count"]',
        "n = props.multi_processor_count",
        "from torch.utils._triton import has_triton",
        "k = kernel.warmup(x, grid=(1,))",
        "d = torch.accelerator.current_accelerator()",
        "with torch.get_device_module().device(x.device): pass",
    ],
)
def test_code_that_asks_for_cuda(choose: Chooser, line: str) -> None:
    assert choose(PLAIN + line) == "cuda"


@pytest.mark.parametrize(
    "line",
    [
        "import torch_npu",
        "from torch_npu.contrib import transfer_to_npu",
        "try:\n    import torch_npu\nexcept Exception:\n    torch_npu = None",
        "x = x.npu()",
        "assert x.is_npu",
        'x = x.to("npu:0")',
        'if x.device.type != "npu": raise RuntimeError',
        "torch.npu.synchronize()",
        'n = props.get("num_vectorcore", 48)',
        'n = limits["cube_core_num"]',
        "import triton.language.extra.cann.extension as al",
        "from triton.language.extra.cann import libdevice",
        "import triton.backends.ascend.runtime",
    ],
)
def test_code_that_asks_for_an_npu(choose: Chooser, line: str) -> None:
    assert choose(PLAIN + line) == "npu"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        '"""Runs on cuda, or on npu."""\n' + PLAIN,
        PLAIN + '# x.cuda(), device="npu"\n',
        PLAIN + 'raise ValueError("needs a cuda device")',
        PLAIN + 'if __name__ == "__main__":\n    print(ModelNew().cuda())\n',
        PLAIN + 'def get_inputs():\n    return [torch.randn(3, device="cuda")]\n',
        PLAIN + 'def get_init_inputs():\n    return [torch.device("npu")]\n',
        PLAIN + "self.warmup(3)\nx.active = 1\n",
        "class ModelNew(:  # cuda\n",
        "x = 'cuda'\0",
    ],
)
def test_ordinary_code_asks_for_nothing(choose: Chooser, text: str) -> None:
    assert choose(text) == "off"


def test_where_both_are_asked_for_the_language_of_triton_ascend_decides(choose: Chooser) -> None:
    line = "from triton.language.extra import cann"
    assert choose(f"{PLAIN}x.cuda()\n{line}\n") == "npu"
    # It is only tried: the code may be for either.
    assert choose(f"{PLAIN}x.cuda()\ntry:\n    {line}\nexcept ImportError:\n    pass\n") == "cuda"


def test_where_both_are_asked_for_the_cores_decide(choose: Chooser) -> None:
    both = PLAIN + 'd = "cuda" if torch.cuda.is_available() else "npu"\n'
    assert choose(both + 'n = props["num_vectorcore"]\n') == "npu"
    assert choose(both + 'n = props["num_vectorcore"] or p.multi_processor_count\n') == "cuda"


def test_code_for_an_npu_may_ask_whether_a_tensor_is_on_a_gpu(choose: Chooser) -> None:
    assert choose(PLAIN + 'assert x.is_cuda or x.device.type == "npu"') == "npu"


def test_where_both_are_asked_for_torch_npu_decides(choose: Chooser) -> None:
    both = PLAIN + 'd = "npu" if hasattr(torch, "npu") else "cuda"\n'
    assert choose(both) == "cuda"
    assert choose(both + "import torch_npu\n") == "npu"
    assert choose(PLAIN + "assert x.is_cuda", task="import torch_npu") == "npu"


def test_a_task_asks_too(choose: Chooser) -> None:
    task = 'def get_inputs():\n    return [torch.randn(3, device="cuda")]\n'
    assert choose(PLAIN, task=task) == "cuda"


def test_a_task_can_be_asked_alone(tmp_path: Path) -> None:
    task = tmp_path / "op_torch.py"
    task.write_text("x = torch.zeros(3).npu()", "utf-8")
    assert choosing.choose("auto", task) == "npu"
    assert choosing.choose("auto", tmp_path / "absent_torch.py") == "off"


@pytest.mark.parametrize("option", ["npu", "cuda", "off"])
def test_an_option_is_final(choose: Chooser, option: str) -> None:
    assert choose("import torch_npu\nx.cuda()", option=option) == option


def test_modules_beside_the_implementation_count(choose: Chooser, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("from deeper import f\n", "utf-8")
    (tmp_path / "deeper.py").write_text("import helper\nassert x.is_cuda\n", "utf-8")
    assert choose("from helper import f\n" + PLAIN) == "cuda"
    assert choose(PLAIN) == "off"


def test_a_warning_of_the_source_is_not_ours(choose: Chooser) -> None:
    assert choose(r"pattern = '\d'" + "\nx.cuda()") == "cuda"


def test_choosing_imports_neither_torch_nor_triton() -> None:
    code = (
        "import sys; from pytest_tritonverify.standin import choosing, install, used; "
        "print(sorted({'torch', 'triton', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
