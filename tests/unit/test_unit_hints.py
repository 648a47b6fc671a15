"""Advice is given where the cause is known, and nowhere else: a wrong hint costs more than none."""

from __future__ import annotations

import pytest

from pytest_tritonverify.hints import hint

WANTS_DEVICE = [
    # torch and triton
    ("AssertionError", "Torch not compiled with CUDA enabled", "y = x.cuda()"),
    ("RuntimeError", "No CUDA GPUs are available", "torch.cuda.current_device()"),
    (
        "RuntimeError",
        (
            "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and "
            "installed a driver from http://www.nvidia.com/Download/index.aspx"
        ),
        "",
    ),
    ("RuntimeError", "Cannot initialize CUDA without ATen_cuda library.", ""),
    (
        "RuntimeError",
        (
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load"
        ),
        "",
    ),
    (
        "NotImplementedError",
        (
            "Could not run 'aten::empty.memory_format' with arguments from the 'CUDA' backend. "
            "This could be because the operator doesn't exist for this backend"
        ),
        "",
    ),
    ("RuntimeError", "0 active drivers ([]). There should only be one.", ""),
    ("AssertionError", "libcuda.so cannot found!\nPossible files are located at [].", ""),
    (
        "RuntimeError",
        "Expected one of cpu, cuda, ipu, xpu, mkldnn device type at start of device string: npu",
        'x = x.to("npu")',
    ),
    ("AttributeError", "module 'torch' has no attribute 'npu'", "torch.npu.synchronize()"),
    ("AttributeError", "'Tensor' object has no attribute 'npu'", "x = x.npu()"),
    ("AttributeError", "'Tensor' object has no attribute 'is_npu'", "if x.is_npu:"),
    ("ModuleNotFoundError", "No module named 'torch_npu'", "import torch_npu"),
    # Authors
    ("ValueError", "expects an Ascend NPU tensor", 'raise ValueError("...")'),
    ("ValueError", "x must be a CUDA tensor", ""),
    ("ValueError", "x must be a CUDA tensor, got cpu", ""),
    ("AssertionError", "Input tensors must be on CUDA.", ""),
    ("AssertionError", "input must be on the GPU", ""),
    ("AssertionError", "Tensors must be on a GPU device!", ""),
    ("ValueError", "all inputs should be CUDA tensors", ""),
    ("RuntimeError", "softmax kernel requires CUDA", ""),
    ("RuntimeError", "This kernel requires a GPU to run", ""),
    ("RuntimeError", "this op requires NPU device, but got cpu", ""),
    ("RuntimeError", "Triton kernels need an NVIDIA GPU", ""),
    ("RuntimeError", "only supports CUDA tensors", ""),
    ("RuntimeError", "Only CUDA is supported", ""),
    ("RuntimeError", "CUDA is required", ""),
    ("RuntimeError", "CUDA is not available", ""),
    ("RuntimeError", "NPU not available on this machine", ""),
    ("RuntimeError", "A GPU device is required for this test", ""),
    ("RuntimeError", "no GPU found", ""),
    ("RuntimeError", "Expected CUDA tensor\nbut got cpu", ""),
    ("ValueError", "non-CUDA tensor", ""),
    # The line of code alone says it.
    ("AssertionError", "", "assert x.is_cuda"),
    ("AssertionError", "", "assert x.is_cuda and y.is_cuda and x.is_contiguous()"),
    ("AssertionError", "wrong input", "assert x.is_npu, 'wrong input'"),
    ("AssertionError", "", 'assert x.device.type == "npu"'),
    ("AssertionError", "", "assert x.device == torch.device('cuda:0')"),
    ("AssertionError", "", "x.device.type in ('cuda', 'xpu')"),
    ("ValueError", "wrong input", "if not x.is_cuda: raise ValueError('wrong input')"),
]

OTHERWISE = [
    ("ValueError", "shape mismatch on dimension 3", "raise ValueError(message)"),
    ("TypeError", "expected the gpu_count argument", ""),
    ("TypeError", "forward() got an unexpected keyword argument 'gpu'", ""),
    ("TypeError", "missing 1 required positional argument: 'npu_id'", ""),
    ("ValueError", "value must be positive", ""),
    ("AssertionError", "", "assert x.shape == y.shape"),
    ("AssertionError", "value must be positive", "assert n > 0, 'value must be positive'"),
    ("AssertionError", "", "assert x.device == y.device"),
    ("AssertionError", "", "assert self.is_cuda_graph"),
    ("ValueError", "BLOCK_SIZE chosen for the GPU must be a power of two", ""),
    ("ValueError", "number of gpu devices must be positive", ""),
    ("ValueError", "the npu_block_size must be a power of 2", ""),
    ("ValueError", "num_cuda_blocks must be positive", ""),
    ("IndexError", "index 5 is out of bounds for dimension 0 with size 5", ""),
    ("RuntimeError", "only one input is supported", ""),
    ("RuntimeError", "expected scalar type Float but found Half", ""),
    ("RuntimeError", "10 active drivers ([...]). There should only be one.", ""),
    ("RuntimeError", "The size of tensor a (3) must match the size of tensor b (4)", ""),
    ("KeyError", "'cuda'", 'block = SIZES["cuda"]'),
    ("KeyError", "'n'", 'sizes = table["n"]; device = "cuda"'),
    ("CompilationError", "at 5:4: x = tl.load(p)\n    ^\nIncompatibleTypeErrorImpl", ""),
    ("ValueError", "", ""),
]


@pytest.mark.parametrize(("error_type", "message", "code"), WANTS_DEVICE)
def test_code_that_wants_an_accelerator_is_told_on_the_cpu(
    error_type: str, message: str, code: str
) -> None:
    advice = hint("cpu", error_type, message, code)
    assert advice is not None
    assert advice.startswith("This code asks for an accelerator")
    assert "--verify-device" in advice
    on_device = hint("cuda", error_type, message, code)
    assert on_device is None or "accelerator" not in on_device


@pytest.mark.parametrize(("error_type", "message", "code"), OTHERWISE)
def test_other_failures_get_no_hint(error_type: str, message: str, code: str) -> None:
    assert hint("cpu", error_type, message, code) is None


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("error_type", "message", "words"),
    [
        ("ModuleNotFoundError", "No module named 'einops'", "Install the package"),
        ("MemoryError", "", "try smaller shapes"),
        (
            "WireError",
            "the memory of tensors can't be mapped: OSError(12, 'Cannot allocate memory')",
            "--verify-memory-limit",
        ),
        (
            "InterpreterError",
            (
                "NotImplementedError('Block pointers have been removed in favor of the tensor "
                "descriptor API')"
            ),
            "Triton that has it",
        ),
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 GiB.", "smaller shapes"),
        (
            "RuntimeError",
            (
                "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate "
                "memory: you tried to allocate 4000000000000 bytes. Error code 12"
            ),
            "try smaller shapes",
        ),
    ],
)
def test_hints_for_every_device(device: str, error_type: str, message: str, words: str) -> None:
    assert words in (hint(device, error_type, message, "") or "")


def test_a_huge_message_is_searched_in_no_time() -> None:
    message = "on a GPU x" * 100_000 + "\x20" * 100_000
    assert hint("cpu", "ValueError", message, message) is None
