"""Which configuration of an autotuned kernel runs, and what a tuner's order of runs shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KERNELS = """
import json, sys
import torch, triton, triton.language as tl
from pytest_tritonverify import interpreter
from pytest_tritonverify.interpreter import autotune
interpreter.prepare()

def configs(*blocks, **options):
    return [triton.Config({"BLOCK": block}, **options) for block in blocks]

@triton.autotune(configs(64, 128, 256, num_warps=4), key=["n"])
@triton.jit
def which(o, n, BLOCK: tl.constexpr):
    tl.store(o, BLOCK)

@triton.autotune(configs(64, 128, num_warps=2), key=["n"])
@triton.jit
def gather(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(o, tl.sum(tl.load(x + at, mask=at < n, other=0.0)))

@triton.autotune(configs(64, 128, num_warps=2), key=["n"], reset_to_zero=["o"])
@triton.jit
def gather_reset(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(o, tl.sum(tl.load(x + at, mask=at < n, other=0.0)))

@triton.autotune(configs(64, 128), key=["n"], restore_value=["x"])
@triton.jit
def double_in_place(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

def block(n=10):
    o = torch.zeros(1, dtype=torch.int32)
    which[(1,)](o, n)
    return o.item()

def total(kernel, n=200):
    o = torch.zeros(1)
    kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](torch.ones(n), o, n)
    return o.item()

def told():
    return [[c.kernel, c.count, c.index, c.name] for c in autotune.choices()]
"""


# Importing torch and triton takes seconds, so each program runs in a fork of one that has.
SERVER = """
import os, runpy, sys
import torch, triton
from pytest_tritonverify import interpreter
from pytest_tritonverify.interpreter import autotune
for line in sys.stdin:
    file = line.strip()
    if not os.fork():
        with open(file + ".out", "w") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        runpy.run_path(file)
        sys.stdout.flush()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def run(server: subprocess.Popen[str], tmp_path: Path) -> Any:
    """Return a function that runs lines after the kernels and returns what `say` was given."""

    def run(lines: str) -> Any:
        file = tmp_path / "program.py"
        saying = "\ndef say(value):\n    print('SAID', json.dumps(value))\n"
        file.write_text(KERNELS + saying + textwrap.dedent(lines), "utf-8")
        assert server.stdin is not None
        assert server.stdout is not None
        print(file, file=server.stdin, flush=True)
        status = server.stdout.readline().strip()
        output = (tmp_path / "program.py.out").read_text("utf-8")
        assert status == "0", output
        return [json.loads(line[5:]) for line in output.splitlines() if line.startswith("SAID ")]

    return run


def test_the_first_configuration_runs_unless_one_is_selected(run: Any) -> None:
    blocks, choices = run("say([block(), block(11)]); say(told())")
    assert blocks == [64, 64]
    assert choices == [["which", 3, 0, "BLOCK=64, num_warps=4"]]


def test_each_configuration_can_be_selected(run: Any) -> None:
    seen, names, most = run(
        """
        seen, names = [], []
        for index in (0, 1, 2, 1):
            autotune.select(index)
            seen.append(block())
            names.append(told())
        say(seen); say(names); say(autotune.most_configurations())
        """
    )
    assert seen == [64, 128, 256, 128]
    assert names == [
        [["which", 3, 0, "BLOCK=64, num_warps=4"]],
        [["which", 3, 1, "BLOCK=128, num_warps=4"]],
        [["which", 3, 2, "BLOCK=256, num_warps=4"]],
        [["which", 3, 1, "BLOCK=128, num_warps=4"]],
    ]
    assert most == 3


def test_selecting_none_returns_to_the_first(run: Any) -> None:
    (seen,) = run(
        "autotune.select(2); a = block(); autotune.select(None); b = block(); say([a, b])"
    )
    assert seen == [256, 64]


def test_a_kernel_with_fewer_configurations_runs_with_its_first(run: Any) -> None:
    seen, choices = run(
        "autotune.select(2); say([block(), total(gather)]); say(told())",
    )
    assert seen == [256, 200]
    assert [choice[2] for choice in choices] == [2, 0]


def test_what_is_pruned_away_does_not_count(run: Any) -> None:
    seen, choices = run(
        """
        def prune(configs, named, **_):
            return [c for c in configs if c.kwargs["BLOCK"] >= named["n"]]

        @triton.autotune(configs(64, 128, 256, 512), key=["n"],
                         prune_configs_by={"early_config_prune": prune})
        @triton.jit
        def pruned(o, n, BLOCK: tl.constexpr):
            tl.store(o, BLOCK)

        seen = []
        for index in range(3):
            autotune.select(index)
            o = torch.zeros(1, dtype=torch.int32)
            pruned[(1,)](o, 100)
            seen.append(o.item())
        say(seen); say(told())
        """
    )
    assert seen == [128, 256, 512]
    assert choices[0][1:3] == [3, 2]


def test_a_single_configuration_is_no_choice(run: Any) -> None:
    choices, most = run(
        """
        @triton.autotune(configs(64), key=["n"])
        @triton.jit
        def single(o, n, BLOCK: tl.constexpr):
            tl.store(o, BLOCK)

        single[(1,)](torch.zeros(1), 5)
        say(told()); say(autotune.most_configurations())
        """
    )
    assert choices == []
    assert most == 1


def test_all_on_the_same_buffers_shows_a_missing_reset(run: Any) -> None:
    forgotten, reset, alone, choices = run(
        """
        autotune.run_all_on_same_buffers()
        say(total(gather)); say(total(gather_reset))
        autotune.select(1)
        say(total(gather))
        autotune.run_all_on_same_buffers()
        total(gather)
        say(told())
        """
    )
    # Two configurations, and the first one again.
    assert forgotten == 600
    assert reset == 200
    assert alone == 200
    assert choices == [["gather", 2, None, "all"]]


def test_all_on_the_same_buffers_honours_restored_values(run: Any) -> None:
    (seen,) = run(
        """
        autotune.run_all_on_same_buffers()
        x = torch.ones(100)
        double_in_place[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, 100)
        say(x.unique().tolist())
        """
    )
    assert seen == [2.0]


def test_only_the_first_call_of_a_key_tunes(run: Any) -> None:
    (seen,) = run("autotune.run_all_on_same_buffers(); say([total(gather), total(gather)])")
    assert seen == [600, 200]


def test_the_configuration_that_fails_among_all_is_named(run: Any) -> None:
    name, at_rest = run(
        """
        @triton.autotune(configs(64, 100, num_warps=4), key=["n"])
        @triton.jit
        def odd(o, n, BLOCK: tl.constexpr):
            tl.static_assert(BLOCK == 64)
            tl.store(o + tl.arange(0, 64), 1.0)

        for select in (lambda: autotune.select("all"), lambda: autotune.select(0)):
            select()
            try:
                odd[(1,)](torch.zeros(128), 5)
                say("passed")
            except Exception:
                say(told()[0][3])
        """
    )
    assert name == "all, up to BLOCK=100, num_warps=4"
    assert at_rest == "passed"


def test_hooks_of_a_configuration_run_for_each(run: Any) -> None:
    (calls,) = run(
        """
        calls = []
        hooked = [triton.Config({"BLOCK": b}, pre_hook=lambda _, b=b: calls.append(b))
                  for b in (16, 32)]

        @triton.autotune(hooked, key=["n"])
        @triton.jit
        def with_hooks(o, n, BLOCK: tl.constexpr):
            tl.store(o, BLOCK)

        for choice in (0, 1, "all"):
            autotune.select(choice)
            with_hooks[(1,)](torch.zeros(1), 5)
        say(calls)
        """
    )
    assert calls == [16, 32, 16, 32, 16]


def test_names_tell_configurations_apart(run: Any) -> None:
    names, alone = run(
        """
        several = [triton.Config({"BLOCK": 64}, num_warps=w, num_stages=s)
                   for w, s in ((4, 2), (4, 3), (8, 3))]
        say([autotune.name_of(c, several) for c in several])
        say(autotune.name_of(several[0]))
        """
    )
    assert names == [
        "BLOCK=64, num_warps=4, num_stages=2",
        "BLOCK=64, num_warps=4, num_stages=3",
        "BLOCK=64, num_warps=8, num_stages=3",
    ]
    assert alone == "BLOCK=64, num_warps=4"


def test_old_keywords_of_a_tuner_look_for_no_device(run: Any) -> None:
    (seen,) = run(
        """
        @triton.autotune(configs(64, 128), key=["n"], warmup=5, rep=5, use_cuda_graph=True)
        @triton.jit
        def timed(o, n, BLOCK: tl.constexpr):
            tl.store(o, BLOCK)

        o = torch.zeros(1, dtype=torch.int32)
        timed[(1,)](o, 5)
        say(o.item())
        """
    )
    assert seen == 64


def test_a_second_preparation_changes_nothing(run: Any) -> None:
    (seen,) = run(
        """
        interpreter.prepare()
        autotune.take_first_configuration()
        autotune.select(1)
        say(block())
        """
    )
    assert seen == 128


def test_on_devices_tuners_tune_until_a_configuration_is_selected(tmp_path: Path) -> None:
    # No device is at hand: a tuner whose kernel is a plain function shows what it would run.
    program = tmp_path / "device.py"
    program.write_text(
        textwrap.dedent(
            """
            import json
            from pytest_tritonverify.interpreter import autotune
            autotune.watch_devices()
            import triton
            from triton.runtime.autotuner import Autotuner

            ran, timed = [], []

            class Kernel:
                def __init__(self):
                    self.fn = lambda o, n, BLOCK: None
                    self.__name__ = "kernel"

                def run(self, *args, **kwargs):
                    ran.append(kwargs["BLOCK"])

            def bench(call, quantiles=None, **_):
                timed.append(True)
                call()
                return [float(len(timed) == 1)] * 3

            configs = [triton.Config({"BLOCK": b}) for b in (16, 32)]
            tuner = Autotuner(Kernel(), ["o", "n", "BLOCK"], configs, ["n"], None, None,
                              do_bench=bench)
            said = []
            for choice in (None, 0, 1, "all", None):
                autotune.select(choice)
                ran.clear(), timed.clear()
                tuner.run(0, 5)
                said.append([list(ran), len(timed)])
            print(json.dumps(said))
            """
        ),
        "utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        [[16, 32, 32], 2],
        [[16], 0],
        [[32], 0],
        [[16, 32, 16], 0],
        [[16, 32, 32], 2],
    ]
