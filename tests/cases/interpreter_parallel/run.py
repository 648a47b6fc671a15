"""Run each case in one process and in several, and save what both got: python run.py OUT."""

import contextlib
import io
import itertools
import random
import sys
import threading
import time

import torch
import triton

from pytest_tritonverify import interpreter
from pytest_tritonverify.interpreter import masked_lanes, parallel, parallel_team

# As in a worker, before the first kernel is seen.
REPORTS = [interpreter.prepare(jobs=jobs).to_json() for jobs in (2, 1)]

import kernels
import lifecycle
from triton.tools.tensor_descriptor import TensorDescriptor

EAGER = parallel.Limits(launch=0.0, program=0.0, patience=60.0)
JOBS = 3


class FairClaims(parallel_team.Claims):
    """Lets a helper have the first chunk, so that no launch ends before there is one."""

    def take(self, *, front):
        low, high, stopped = self._state.tolist()
        while front and low == 0 and high == self._chunks and not stopped:
            time.sleep(0.001)
            low, high, stopped = self._state.tolist()
        return super().take(front=front)

    def __init__(self, chunks):
        self._chunks = chunks
        super().__init__(chunks)




def matmul(dtype=torch.float32):
    a, b = torch.randn(64, 32).to(dtype), torch.randn(32, 48).to(dtype)
    c = torch.empty(64, 48, dtype=dtype).fill_(7)
    kernels.matmul_kernel[(4, 3)](a, b, c, 48, 32, BM=16, BN=16, BK=16)
    return [a, b, c]


def softmax():
    x = torch.randn(9, 40)[:, :30]  # rows are 40 apart
    out = torch.empty(9, 30)
    kernels.softmax_kernel[(9,)](x, out, x.stride(0), 30, BLOCK=32)
    return [x, out]


def layernorm():
    x, weight, scales = torch.randn(11, 50).half(), torch.rand(50), torch.full((11,), 7.0)
    out = torch.empty_like(x)
    kernels.layernorm_kernel[(11,)](x, weight, out, scales, 50, BLOCK=64)
    return [x, weight, out, scales]


def conv():
    x, weight = torch.randn(2, 3, 70), torch.randn(3, 5)
    out = torch.empty_like(x)
    kernels.conv_kernel[(5, 3, 2)](x, weight, out, 70, WIDTH=5, BLOCK=16)
    return [x, weight, out]


def in_place():
    x = torch.randn(1000)
    other = x.view(10, 100)
    kernels.affine_kernel[(16,)](x, x, 1000, 0, 1, BLOCK=64)
    return [x, other]


def aliases():
    both = torch.randn(400)
    kernels.affine_kernel[(7,)](both[:200], both[200:], 200, 0, 1, BLOCK=32)
    return [both]


def interleaved():
    x = torch.randn(100, 3)
    out = torch.full((100, 3), 7.0)
    kernels.affine_kernel[(7,)](x, out, 100, 2, 3, BLOCK=16)
    return [x, out]


def dtypes():
    results = []
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64):
        x = torch.arange(200).to(dtype)
        out = torch.zeros_like(x)
        kernels.affine_kernel[(13,)](x, out, 197, 0, 1, BLOCK=16)
        results += [x, out]
    return results


def pair():
    x, out = torch.randn(90), torch.zeros(90)
    kernels.pair_kernel[(6,)]((x, out), 90, BLOCK=16)
    return [x, out]


def descriptor():
    x, out = torch.randn(64, 16), torch.zeros(64, 16)
    source, target = (TensorDescriptor.from_tensor(one, [8, 16]) for one in (x, out))
    kernels.descriptor_kernel[(8,)](source, target, BLOCK=8)
    return [x, out]


def address():
    x, out = torch.randn(96), torch.zeros(96)
    kernels.address_kernel[(6,)](x.data_ptr(), out, BLOCK=16)
    return [x, out]


def table():
    rows, out = [torch.randn(16) for _ in range(6)], torch.zeros(96)
    pointers = torch.tensor([row.data_ptr() for row in rows])
    kernels.table_kernel[(6,)](pointers, out, BLOCK=16)
    return [*rows, out]


def scatter_table():
    rows, x = [torch.randn(16) for _ in range(6)], torch.randn(96)
    pointers = torch.tensor([row.data_ptr() for row in rows])
    kernels.scatter_table_kernel[(6,)](pointers, x, BLOCK=16)
    return [*rows, x]


def poison():
    x, out = torch.randn(9 * 12 + 8), torch.zeros(18, 16)
    for _ in range(2):
        kernels.careless_kernel[(9,)](x, out, 12, BLOCK=16)
    return [x, out]


def mixed_bytes():
    memory = torch.zeros(2 * 96, dtype=torch.int32)
    kernels.bytes_kernel[(6,)](memory, memory.view(torch.uint8), BLOCK=16)
    return [memory]


def atomics():
    x, total = torch.randn(96), torch.zeros(1)
    kernels.add_up_kernel[(6,)](x, total, BLOCK=16)
    return [x, total]


def late_atomic():
    x, total = torch.randn(96), torch.zeros(1)
    kernels.late_atomic_kernel[(6,)](x, total, BLOCK=16)
    return [x, total]


def chain():
    x = torch.randn(8 * 16)
    kernels.chain_kernel[(7,)](x, BLOCK=16)
    return [x]


def backward_chain():
    x = torch.randn(8 * 16)
    kernels.backward_chain_kernel[(7,)](x, BLOCK=16)
    return [x]


def far():
    x, far_, out = torch.randn(128), torch.zeros(16), torch.zeros(128)
    kernels.far_kernel[(8,)](x, far_, out, BLOCK=16)
    return [x, far_, out]


def same_bytes():
    out = torch.zeros(16, dtype=torch.int32)
    kernels.same_bytes_kernel[(6,)](out, BLOCK=16)
    return [out]


def overlapping():
    out = torch.zeros(96, dtype=torch.int32)
    kernels.overlapping_kernel[(6,)](out, BLOCK=16)
    return [out]


def printing():
    x = torch.randn(96)
    kernels.printing_kernel[(6,)](x, BLOCK=16)
    return [x]


def static_printing():
    x = torch.randn(96)
    kernels.static_printing_kernel[(6,)](x, BLOCK=16)
    return [x]


def raising(bad):
    def case():
        x = torch.zeros(96)
        try:
            kernels.raising_kernel[(6,)](x, bad, BLOCK=16)
        except Exception as error:
            return [x, f"{type(error).__name__}: {error} from {error.__cause__!r}"]
        return [x]

    return case


def shared_memory():
    x = torch.zeros(96).share_memory_()
    kernels.affine_kernel[(6,)](x, x, 96, 0, 1, BLOCK=16)
    return [x]


def shared_input():
    x, out = torch.randn(96).share_memory_(), torch.zeros(96)
    kernels.affine_kernel[(6,)](x, out, 96, 0, 1, BLOCK=16)
    return [x, out]


def grid_function():
    x, out = torch.randn(90), torch.zeros(90)

    def grid(meta):
        return (triton.cdiv(meta["size"], meta["BLOCK"]), 1)

    kernels.affine_kernel[grid](x, out, 90, 0, 1, BLOCK=16)
    return [x, out]


def two_programs():
    x, out = torch.randn(32), torch.zeros(32)
    kernels.affine_kernel[(2,)](x, out, 32, 0, 1, BLOCK=16)
    return [x, out]


def no_programs():
    x, out = torch.randn(32), torch.zeros(32)
    kernels.affine_kernel[(0,)](x, out, 32, 0, 1, BLOCK=16)
    return [x, out]


def threads():
    x, out, go_on = torch.randn(96), torch.zeros(96), threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    kernels.affine_kernel[(6,)](x, out, 96, 0, 1, BLOCK=16)
    go_on.set()
    thread.join()
    return [x, out]


def native_threads():
    # Torch starts threads of its own for large tensors; they are idle ever after.
    torch.randn(1 << 20).sum()
    return matmul()


def traced():
    x, out = torch.randn(96), torch.zeros(96)
    sys.settrace(lambda *_: None)
    try:
        kernels.affine_kernel[(6,)](x, out, 96, 0, 1, BLOCK=16)
    finally:
        sys.settrace(None)
    return [x, out]


def random_grid(seed):
    def case():
        draw = random.Random(seed)
        block = 2 ** draw.randint(0, 7)
        programs = draw.randint(1, 40)
        size = max(1, block * programs - draw.randint(0, block))
        stride = draw.randint(1, 3)
        dtype = draw.choice([torch.float32, torch.float16, torch.bfloat16, torch.int32])
        x = torch.randint(-9, 9, (size * stride,)).to(dtype)
        out = x if draw.random() < 0.3 else torch.full_like(x, 3)
        kernels.affine_kernel[(programs,)](
            x, out, size, draw.randrange(stride), stride, BLOCK=block
        )
        return [x, out]

    return case


CASES = {
    "matmul": matmul,
    "matmul bf16": lambda: matmul(torch.bfloat16),
    "softmax": softmax,
    "layernorm": layernorm,
    "conv": conv,
    "in place": in_place,
    "aliases": aliases,
    "interleaved": interleaved,
    "dtypes": dtypes,
    "pair": pair,
    "descriptor": descriptor,
    "address": address,
    "table": table,
    "scatter table": scatter_table,
    "poison": poison,
    "mixed bytes": mixed_bytes,
    "atomics": atomics,
    "late atomic": late_atomic,
    "chain": chain,
    "backward chain": backward_chain,
    "far": far,
    "same bytes": same_bytes,
    "overlapping": overlapping,
    "printing": printing,
    "static printing": static_printing,
    "raises first": raising(0),
    "raises in front": raising(1),
    "raises in a helper": raising(5),
    "shared memory": shared_memory,
    "shared input": shared_input,
    "grid function": grid_function,
    "two programs": two_programs,
    "no programs": no_programs,
    "threads": threads,
    "native threads": native_threads,
    "traced": traced,
    **{f"random {seed}": random_grid(seed) for seed in range(6)},
}


def observed(case, jobs, mode):
    parallel.spread(jobs, EAGER)
    interpreter_state(mode)
    torch.manual_seed(0)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        results = case()
    outcome = parallel.outcome()
    return {
        "results": results,
        "printed": printed.getvalue(),
        "sites": masked_lanes.sites(),
        "outcome": vars(outcome),
    }


def interpreter_state(mode):
    masked_lanes.choose(mode)
    masked_lanes.reset()
    parallel._state.given_up.clear()


def main(out):
    found = {"reports": REPORTS, "cases": {}, "lifecycle": lifecycle.run()}
    parallel_team.Claims = FairClaims
    for name, mode in itertools.product(CASES, ("zero", "poison")):
        if mode == "poison" and name not in ("poison", "softmax", "in place", "random 3"):
            continue
        runs = [observed(CASES[name], jobs, mode) for jobs in (1, JOBS)]
        found["cases"].setdefault(name, {})[mode] = runs
    # A kernel that was found unfit is left alone from then on, and no kernel is spread over one.
    again = [observed(CASES["chain"], JOBS, "zero")["outcome"]]
    chain()
    found["again"] = [*again, vars(parallel.outcome())]
    torch.save(found, out)


if __name__ == "__main__":
    main(sys.argv[1])
