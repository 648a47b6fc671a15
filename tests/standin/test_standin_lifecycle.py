"""The stand-in comes when called, goes without a trace, and changes nothing when it is off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

# What the stand-in changes, seen from outside: names, and what stands behind them.
SEEN = """
import json, sys, threading
import torch, triton, triton.testing
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from triton.runtime import interpreter
from pytest_tritonverify import standin

def seen():
    owners = [torch, torch.Tensor, torch.nn.Module, torch.cuda, torch.version, torch._C,
              torch.amp.autocast_mode.autocast, torch.distributed, torch.backends.cudnn,
              DeviceContext, threading.Thread, triton.testing, triton.language,
              interpreter.GridExecutor, interpreter.InterpretedFunction]
    found = {}
    for number, owner in enumerate(owners):
        for name, value in vars(owner).items():
            found[f"{number} {name}"] = id(value)
    found["finders"] = [id(f) for f in sys.meta_path]
    found["modes"] = len(_get_current_function_mode_stack())
    found["driver"] = id(vars(triton.runtime.driver).get("_active"))
    return found

import os, traceback
for line in sys.stdin:
    told, tell = os.pipe()
    if os.fork() == 0:
        sys.stdout = os.fdopen(tell, "w")
        before = seen()
        try:
            exec(json.loads(line))
        except BaseException:
            print(json.dumps({"error": traceback.format_exc()}))
        sys.stdout.flush()
        os._exit(0)
    os.close(tell)
    with os.fdopen(told) as answer:
        sys.stdout.write(answer.read())
    sys.stdout.flush()
    os.wait()
"""
# Lines of code are run in processes that are forked from one that has imported all of it.
Run: TypeAlias = Callable[[str], Any]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with subprocess.Popen(
        [sys.executable, "-c", SEEN],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ask, answers = process.stdin, process.stdout

        def told(lines: str) -> Any:
            ask.write(json.dumps(textwrap.dedent(lines)) + "\n")
            ask.flush()
            answer = json.loads(answers.readline())
            assert not isinstance(answer, dict), answer["error"]
            return answer

        yield told
        ask.close()


@pytest.mark.parametrize("kind", ["cuda", "npu"])
def test_everything_is_taken_back(run: Run, kind: str) -> None:
    changed, during, device, imported = run(
        f"""
        standin.install({kind!r})
        during = sum(seen().get(k) != v for k, v in before.items())
        x = torch.zeros(2, device={kind!r})
        if {kind!r} == "npu":
            import torch_npu, triton.language.extra.cann.libdevice
        standin.uninstall()
        after = seen()
        changed = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
        imported = sorted(n for n in sys.modules if n.startswith("torch_npu") or ".cann" in n)
        print(json.dumps([changed, during, str(x.device), imported]))
        """
    )
    assert during > 10
    assert changed == []
    assert device == "cpu"
    assert imported == []


def test_off_changes_nothing(run: Run) -> None:
    same, kind, used = run(
        """
        standin.install("off")
        print(json.dumps([seen() == before, standin.installed(), standin.used()]))
        """
    )
    assert same
    assert kind == "off"
    assert used == []


def test_a_kind_is_installed_once_and_excludes_others(run: Run) -> None:
    same, kind, errors = run(
        """
        standin.install("cuda")
        once = seen()
        standin.install("cuda")
        errors = []
        for other in ("npu", "tpu"):
            try:
                standin.install(other)
            except ValueError as error:
                errors.append(str(error))
        print(json.dumps([seen() == once, standin.installed(), errors]))
        """
    )
    assert same
    assert kind == "cuda"
    assert errors == [
        "the stand-in for cuda is installed; it can't be npu too",
        "there is no stand-in for 'tpu'; there are npu, cuda, off",
    ]


def test_what_libraries_ask_is_not_what_code_asks(run: Run) -> None:
    used, asked = run(
        """
        standin.install("cuda")
        model = torch.nn.LSTM(3, 4)
        model(torch.zeros(2, 1, 3))
        torch.manual_seed(0)
        used = standin.used()
        torch.cuda.is_available()
        print(json.dumps([used, standin.used()]))
        """
    )
    assert used == []
    assert asked == ["torch.cuda"]


def test_fake_tensors_are_made_for_the_device(run: Run) -> None:
    shape = run(
        """
        from torch._subclasses.fake_tensor import FakeTensorMode
        standin.install("cuda")
        with FakeTensorMode(allow_non_fake_inputs=True):
            x = torch.randn(100_000, 100_000, device="cuda").to("cuda:0") + 1
        print(json.dumps(list(x.shape)))
        """
    )
    assert shape == [100_000, 100_000]


def test_addresses_that_are_used_again_are_not_mistaken(run: Run) -> None:
    wrong = run(
        """
        standin.install("cuda")
        wrong = 0
        for _ in range(2000):
            host = torch.zeros(64)
            wrong += host.is_cuda
            del host
            wrong += not torch.zeros(64, device="cuda").is_cuda
        print(json.dumps(wrong))
        """
    )
    assert wrong == 0


def test_memory_of_the_host_is_forgotten_with_its_tensors(run: Run) -> None:
    known = run(
        """
        from pytest_tritonverify.standin.host_memory import HostMemory
        host = HostMemory()
        kept = torch.zeros(1)
        host.add(kept)
        for _ in range(3000):
            host.add(torch.zeros(1))
        assert host.holds(kept) and not host.holds(torch.zeros(1))
        host.discard(kept)
        assert not host.holds(kept)
        print(json.dumps(len(host._known)))
        """
    )
    assert known < 600
