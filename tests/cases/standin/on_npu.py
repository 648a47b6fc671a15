"""What published code for Ascend NPUs does with its device."""

import contextlib
import importlib
import importlib.util

import torch
import torch_npu
import triton
import triton.language as tl
import triton.language.extra.cann.extension as extension
from torch import nn
from triton.language.extra.cann import libdevice
from triton.language.math import tanh
from triton.runtime import driver


@triton.jit
def double_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        at = tile * BLOCK + tl.arange(0, BLOCK)
        mask = at < n
        tl.store(o_ptr + at, tl.load(x_ptr + at, mask=mask, other=0.0) * 2, mask=mask)


@triton.jit
def slices_kernel(x_ptr, o_ptr, N: tl.constexpr, HALF: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    extension.compile_hint(x, "hint")
    upper = extension.extract_slice(x, [HALF], [HALF], [1])
    x = extension.insert_slice(x, upper, [0], [HALF], [1])
    total = extension.get_element(x, [1])
    for _ in extension.parallel(0, 2):
        total = total + 1
    tl.store(o_ptr + at, libdevice.tanh(x) + total)


@triton.jit
def halves_kernel(x_ptr, o_ptr, n, N: tl.constexpr, SATURATE: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at, mask=at < n, care_padding=True)
    with extension.scope(core_mode="vector"):
        y = tanh(x) + tl.tanh(x) + libdevice.relu(x) + tl.zeros((N,), tl.float32)
    tl.sync_block_set("vector", "cube", 0)
    tl.sync_block_all("all", 0)
    if SATURATE:
        y += tl.cast(x * 1000, tl.int8, overflow_mode="saturate")
    tl.store(o_ptr + at, y, mask=at < n)


@contextlib.contextmanager
def raises(kind, text):
    try:
        yield
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def idiom_only_npu_path():
    x = torch.randn(100).npu()
    if x.device.type != "npu":
        raise RuntimeError("expects an Ascend NPU tensor")
    out = torch.empty_like(x)
    double_kernel[(4,)](x, out, 100, BLOCK=16)
    assert torch.equal(out, x * 2)
    return ["device", "move"]


def idiom_is_npu():
    assert torch.zeros(2, device="npu").is_npu and not torch.zeros(2).is_npu
    assert not torch.zeros(2, device="npu").is_cuda
    return ["device argument", "is_npu"]


def idiom_devices_in_every_form():
    for device in ("npu", "npu:0", torch.device("npu"), torch.device("npu:0"), 0):
        assert torch.empty(3, device=device).is_npu
        assert torch.zeros(3).to(device).is_npu
        assert torch.zeros(3).to(device).device == torch.device("npu:0")
        assert torch.zeros(3).npu(device).is_npu


def idiom_modules_move():
    assert nn.Linear(2, 2).npu().weight.is_npu
    assert nn.Linear(2, 2).to("npu").weight.device.type == "npu"
    assert nn.Linear(2, 2).to("cpu").weight.is_npu


def idiom_cores_by_driver():
    found = driver.active.utils.get_device_properties(torch.npu.current_device())
    assert (found["num_vectorcore"], found["num_aicore"]) == (40, 20)
    assert triton.runtime.driver.active.utils.get_device_properties("npu")["num_aicore"] == 20
    assert driver.active.get_current_target().backend == "npu"
    return ["torch.npu", "triton.driver"]


def idiom_cores_by_limits():
    limits = torch_npu.npu.npu_config.get_device_limit(0)
    assert limits.get("vector_core_num", 0) == 40 and limits.get("cube_core_num", 0) == 20
    assert torch_npu.npu.get_device_properties(0).cube_core_num == 20


def idiom_cores_by_backend():
    from triton.backends.ascend.driver import NPUUtils

    assert NPUUtils().get_aivector_core_num() == 40


def idiom_sizes_of_buffers():
    from tbe.common.platform import get_soc_spec, set_current_compile_soc_info

    set_current_compile_soc_info(torch.npu.get_device_name(torch.npu.current_device()))
    assert get_soc_spec("UB_SIZE") == 192 * 1024
    with raises(RuntimeError, "get_soc_spec('L9_SIZE') is not there on the CPU"):
        get_soc_spec("L9_SIZE")
    return ["cann", "torch.npu"]


def idiom_queries():
    assert torch.npu.is_available() and torch.npu.device_count() == 1
    assert "Ascend910" in torch.npu.get_device_name(0)
    torch.npu.set_device(0)
    torch.npu.set_device("npu:0")
    torch.npu.synchronize()
    torch.npu.empty_cache()
    torch.npu.manual_seed_all(0)
    torch.npu.set_compile_mode(jit_compile=False)
    torch.npu.config.allow_internal_format = False
    torch.npu.matmul.allow_hf32 = False
    torch.npu.conv.allow_hf32 = False
    assert torch.npu.memory_allocated() == 0
    with torch.npu.stream(torch.npu.Stream()), torch.npu.device(0):
        event = torch_npu.npu.Event(enable_timing=True)
        event.record()
    assert not torch.cuda.is_available()
    torch.manual_seed(3)


def idiom_parts_of_torch_npu():
    torch.npu.memory.empty_cache()
    torch_npu.npu.random.manual_seed(0)
    with raises(RuntimeError, "torch.npu.amp.GradScaler is not there"):
        torch.npu.amp.GradScaler()


def idiom_formats():
    x = torch.zeros(2, device="npu")
    assert torch_npu.npu_format_cast(x, 29) is x and torch_npu.get_npu_format(x) == 2
    assert isinstance(torch_npu.__version__, str)


def idiom_autocast():
    a = torch.randn(3, 3, device="npu")
    with torch.autocast("npu", dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16
    with torch.npu.amp.autocast():
        assert (a @ a).dtype == torch.float16


def idiom_default_device():
    with torch.device("npu"):
        assert torch.zeros(2).is_npu
    generator = torch.Generator(device="npu").manual_seed(0)
    assert torch.rand(2, device="npu", generator=generator).is_npu


def idiom_language_of_triton_ascend():
    x = torch.randn(64, device="npu")
    out = torch.empty_like(x)
    slices_kernel[(1,)](x, out, 64, 32)
    upper = torch.cat([x[32:], x[32:]])
    assert torch.allclose(out, torch.tanh(upper) + upper[1] + 2, atol=1e-5)
    assert tl.extract_slice is extension.extract_slice
    assert tl.extra.cann.extension is extension


def idiom_language_takes_halves_and_any_length():
    x = torch.randn(90, device="npu", dtype=torch.float16)
    out = torch.empty(90, device="npu")
    # The interpreter of triton-ascend itself doesn't run this one.
    saturate = importlib.util.find_spec("triton.backends.ascend") is None
    halves_kernel[(1,)](x, out, 90, 96, saturate)
    expected = 2 * x.tanh().float() + x.relu().float()
    if saturate:
        expected += (x * 1000).float().trunc().clamp(-128, 127)
    assert torch.allclose(out, expected, atol=1e-2)
    with raises(Exception, "tl.sync_block_all between several programs is not there on the CPU"):
        halves_kernel[(2,)](x, out, 90, 96, saturate)


def idiom_unknown_names_say_what_this_is():
    for module, name in ((torch_npu, "npu_rms_norm"), (torch.npu, "Graph"), (extension, "fixpipe")):
        assert not hasattr(module, name)
        with raises(AttributeError, f"{name} is not there on the CPU"):
            getattr(module, name)
        with raises(AttributeError, "is only a stand-in"):
            getattr(module, name)
    with raises(ImportError, "torch_npu.profiler is not there on the CPU"):
        importlib.import_module("torch_npu.profiler")
    with raises(ImportError, "npu_swiglu"):
        from torch_npu import npu_swiglu  # noqa: F401


def idiom_guarded_operators_fall_back():
    if hasattr(torch_npu, "npu_swiglu"):
        raise AssertionError("the stand-in has no operators")
    try:
        torch_npu.npu_swiglu(torch.zeros(2))
    except AttributeError:
        return
    raise AssertionError("it was called")


def idiom_cuda_is_another_device():
    with raises((AssertionError, RuntimeError), "CUDA"):
        torch.zeros(2, device="cuda")
    with raises(RuntimeError, "the stand-in on the CPU has one"):
        torch.zeros(2, device="npu:1")


def idiom_zz_transfer_to_npu():
    from torch_npu.contrib import transfer_to_npu  # noqa: F401

    x = torch.zeros(3, device="cuda")
    assert x.is_cuda and x.is_npu and x.device.type == "npu"
    assert torch.zeros(2).cuda().is_npu and nn.Linear(2, 2).cuda().weight.is_npu
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    torch.cuda.synchronize()
