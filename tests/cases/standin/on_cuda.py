"""What published code for CUDA does with its device."""

import contextlib
import threading

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def add_kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    y = tl.load(y_ptr + at, mask=mask, other=0.0)
    tl.store(o_ptr + at, x + y, mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=64)
    return out


def on_device(*shape):
    return torch.randn(*shape, device="cuda")


@contextlib.contextmanager
def raises(kind, text):
    try:
        yield
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def idiom_kernel_path_behind_is_cuda():
    x, y = on_device(100), on_device(100)
    assert x.is_cuda and y.is_cuda
    assert torch.equal(add(x, y), x + y)
    return ["device argument", "is_cuda"]


def idiom_fallback_is_not_taken():
    taken = []

    def forward(x):
        if not x.is_cuda:
            taken.append("torch")
            return x * 2
        taken.append("kernel")
        return add(x, x)

    forward(on_device(10))
    assert taken == ["kernel"]


def idiom_device_type_of_tensor():
    x = on_device(3)
    assert x.device.type == "cuda"
    assert str(x.device) == "cuda:0"
    assert x.device == torch.device("cuda:0") == torch.device("cuda", 0)
    assert x.device == on_device(2).device
    assert x.get_device() == 0
    assert not x.is_cpu
    return ["device", "device argument"]


def idiom_factories_take_the_device_in_every_form():
    for device in ("cuda", "cuda:0", torch.device("cuda"), torch.device("cuda:0"), 0):
        for make in (torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn):
            assert make(2, 3, device=device).is_cuda
        assert torch.arange(5, device=device).is_cuda
        assert torch.full((2,), 7.0, device=device).is_cuda
        assert torch.tensor([1, 2], device=device).is_cuda
        assert torch.as_tensor([1, 2], device=device).is_cuda
        assert torch.linspace(0, 1, 3, device=device).is_cuda
        assert torch.eye(3, device=device).is_cuda
        assert torch.empty_strided((2, 2), (1, 2), device=device).stride() == (1, 2)
        assert torch.randint(0, 5, (3,), device=device).is_cuda
        assert torch.zeros_like(torch.zeros(3), device=device).is_cuda
        assert on_device(1).new_empty(4, device=device).is_cuda


def idiom_values_follow_from_the_seed_as_on_the_cpu():
    torch.manual_seed(0)
    here = torch.randn(5)
    torch.manual_seed(0)
    assert torch.equal(here, on_device(5))


def idiom_moves_in_every_form():
    for move in (
        lambda t: t.cuda(),
        lambda t: t.cuda(0),
        lambda t: t.cuda("cuda:0", non_blocking=True),
        lambda t: t.cuda(device=torch.device("cuda")),
        lambda t: t.to("cuda"),
        lambda t: t.to("cuda:0", non_blocking=True),
        lambda t: t.to(device="cuda"),
        lambda t: t.to(torch.device("cuda")),
        lambda t: t.to(0),
        lambda t: t.to("cuda", torch.float32),
        lambda t: t.to(on_device(1)),
        lambda t: t.type("torch.cuda.FloatTensor"),
    ):
        host = torch.zeros(3)
        moved = move(host)
        assert moved.is_cuda and not host.is_cuda
        host.add_(1)
        assert moved.tolist() == [0, 0, 0], "a move makes a copy"
        assert move(moved) is moved or move(moved).data_ptr() == moved.data_ptr()
    half = torch.zeros(3).to("cuda", torch.float16)
    assert half.dtype == torch.float16 and half.is_cuda


def idiom_back_to_the_host():
    x = on_device(3)
    for fetch in (
        lambda t: t.cpu(),
        lambda t: t.to("cpu"),
        lambda t: t.to(torch.device("cpu")),
        lambda t: t.to(device="cpu"),
        lambda t: t.to(torch.zeros(1)),
        lambda t: t.detach().cpu(),
    ):
        host = fetch(x)
        assert host.device.type == "cpu" and not host.is_cuda and host.is_cpu
        assert torch.equal(host, x)
        host.add_(1)
        assert not torch.equal(host, x), "a fetch makes a copy"
    assert x.cpu().numpy().shape == (3,)
    assert x.dtype == torch.float32 and x.to(torch.float16).is_cuda


def idiom_results_are_where_their_arguments_are():
    host, device = torch.zeros(4), on_device(4)
    assert (host + 1).device.type == "cpu" and (device + 1).is_cuda
    assert (host + device).is_cuda
    assert host[:2].device.type == "cpu" and device[:2].is_cuda
    assert torch.cat([host, host]).device.type == "cpu"
    assert torch.stack([device, device]).is_cuda
    assert torch.split(device, 2)[0].is_cuda
    assert torch.split(host, 2)[0].device.type == "cpu"
    assert host.clone().device.type == "cpu"
    assert torch.empty_like(host).device.type == "cpu"
    assert device.copy_(host) is device and device.is_cuda


def idiom_modules_move():
    linear = nn.Linear(3, 2)
    assert not linear.weight.is_cuda
    kept = linear.weight
    assert linear.to("cuda").weight is kept and kept.is_cuda
    assert nn.Linear(3, 2).cuda().weight.is_cuda
    assert nn.Linear(3, 2, device="cuda").weight.is_cuda
    assert nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to(0)[1].running_mean.is_cuda
    assert next(linear.parameters()).device.type == "cuda"
    assert linear(on_device(4, 3)).is_cuda
    # Whoever runs a model on the CPU moves it there; here that is the accelerator.
    assert nn.Linear(3, 2).to("cpu").weight.is_cuda
    module = nn.Module()
    module.register_buffer("table", torch.arange(3))
    module.extra = nn.Parameter(torch.zeros(2))
    module.to("cuda")
    assert module.table.is_cuda and module.extra.is_cuda and module.extra.data.is_cuda


def idiom_default_devices():
    with torch.device("cuda"):
        assert torch.zeros(2).is_cuda and nn.Linear(2, 2).weight.is_cuda
        assert torch.zeros(2, device="cpu").device.type == "cpu"
    assert not torch.zeros(2).is_cuda
    torch.set_default_device("cuda")
    try:
        assert torch.zeros(2).is_cuda and torch.tensor([1.0]).is_cuda
        assert torch.get_default_device().type == "cuda"
        nn.init.normal_(torch.empty(3))
    finally:
        torch.set_default_device(None)
    assert not torch.zeros(2).is_cuda


def idiom_chosen_where_available():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.zeros(2, device=device).is_cuda
    assert torch.version.cuda is not None
    return ["device argument", "is_cuda", "torch.cuda"]


def idiom_queries():
    assert torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
    properties = torch.cuda.get_device_properties(on_device(1).device)
    assert properties.multi_processor_count > 0 and properties.total_memory > 2**30
    assert (properties.major, properties.minor) == torch.cuda.get_device_capability()
    assert torch.cuda.get_device_capability("cuda:0") >= (8, 0)
    assert isinstance(torch.cuda.get_device_name(0), str)
    assert torch.cuda.is_bf16_supported()
    assert torch.cuda.memory_allocated() == 0 == torch.cuda.max_memory_allocated()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    torch.cuda.init()
    torch.cuda.set_device(0)
    torch.cuda.synchronize()
    torch.cuda.synchronize(torch.device("cuda"))
    assert torch.backends.cuda.is_built()


def idiom_streams_events_and_guards():
    x = on_device(3)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y = x + 1
    stream.wait_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_stream(stream)
    stream.synchronize()
    y.record_stream(stream)
    with torch.cuda.device(x.device), torch.cuda.device(0), torch.cuda.device_of(x):
        pass
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    assert end.query() and start.elapsed_time(end) >= 0
    assert torch.cuda.current_stream().cuda_stream == 0
    assert isinstance(stream, torch.cuda.Stream)


def idiom_raw_stream_of_generated_code():
    from torch._C import _cuda_getCurrentRawStream as get_raw_stream

    assert get_raw_stream(0) == 0
    made = torch._C._dynamo.guards._empty_strided_cuda((2, 3), (3, 1), torch.float32)
    assert made.is_cuda and made.shape == (2, 3)


def idiom_generators():
    generator = torch.Generator(device="cuda").manual_seed(3)
    a = torch.randn(4, device="cuda", generator=generator)
    generator.manual_seed(3)
    assert torch.equal(a, torch.randn(4, device="cuda", generator=generator))
    assert isinstance(generator, torch.Generator)
    assert isinstance(torch.default_generator, torch.Generator)
    return ["device argument", "generator"]


def idiom_generated_code_is_for_a_gpu():
    from torch._inductor.runtime import triton_helpers

    triton_helpers.set_driver_to_gpu()
    assert not hasattr(triton.runtime.driver.active, "_obj")
    with raises(AttributeError, "driver.active.unheard_of is not there on the CPU"):
        _ = triton.runtime.driver.active.unheard_of


def idiom_seed_and_offset_for_a_kernel():
    torch.manual_seed(5)
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    state = generator.get_state()
    seed, offset = state.view(torch.int64)
    assert (int(seed), int(offset)) == (5, 0) == (generator.initial_seed(), generator.get_offset())
    state.view(torch.int64)[1] += 12
    generator.set_state(state)
    assert generator.get_state().view(torch.int64).tolist() == [5, 12]
    torch.manual_seed(5)
    assert generator.get_offset() == 0


def idiom_autocast():
    a = on_device(4, 4)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16
        assert torch.is_autocast_enabled()
    with torch.autocast(device_type="cuda"):
        assert (a @ a).dtype == torch.float16
    with torch.amp.autocast("cuda", enabled=False):
        assert (a @ a).dtype == torch.float32
    assert (a @ a).dtype == torch.float32
    return ["autocast", "device argument"]


def idiom_pinned_memory():
    host = torch.empty(8, pin_memory=True)
    assert host.is_pinned() and host.device.type == "cpu"
    assert torch.zeros(2).pin_memory().is_pinned()
    assert not on_device(2).is_pinned()
    # Devices reach it where it is.
    out = torch.empty(8, device="cuda")
    add_kernel[(1,)](host.fill_(2), host, out, 8, BLOCK=8)
    assert out.tolist() == [4.0] * 8


def idiom_driver():
    target = triton.runtime.driver.active.get_current_target()
    assert target.backend == "cuda" and target.warp_size == 32 and target.arch >= 80
    device = triton.runtime.driver.active.get_active_torch_device()
    assert torch.zeros(1, device=device).is_cuda
    found = triton.runtime.driver.active.utils.get_device_properties(
        triton.runtime.driver.active.get_current_device()
    )
    assert found["multiprocessor_count"] == 132
    assert {"max_shared_mem", "max_num_regs", "warpSize"} <= set(found)
    return ["device argument", "is_cuda", "triton.driver"]


def idiom_persistent_kernel_sized_by_the_device():
    programs = torch.cuda.get_device_properties("cuda").multi_processor_count
    x, y = on_device(1000), on_device(1000)
    out = torch.empty_like(x)
    add_kernel[(min(programs, triton.cdiv(1000, 64)),)](x, y, out, 1000, BLOCK=64)
    assert torch.equal(out, x + y)


def idiom_grid_asks_for_the_device():
    x, y = on_device(70), on_device(70)
    out = torch.empty_like(x)

    def grid(meta):
        assert meta["x_ptr"].is_cuda and x.device.type == "cuda"
        return (triton.cdiv(70, meta["BLOCK"]),)

    add_kernel[grid](x, y, out, 70, BLOCK=64)
    assert torch.equal(out, x + y)


def idiom_warmed_up_kernel():
    x, y = on_device(70), on_device(70)
    out = torch.empty_like(x)
    compiled = add_kernel.warmup(x, y, out, 70, BLOCK=64, num_warps=4, grid=(1,))
    compiled._init_handles()
    assert compiled.n_regs > 0 and compiled.metadata.shared >= 0
    compiled[(2, 1, 1)](x, y, out, 70)
    assert torch.equal(out, x + y)
    compiled[(2, 1, 1)](x, y, out.zero_(), 70, 64)
    assert torch.equal(out, x + y)


def idiom_benchmark_in_code():
    x = on_device(64)
    calls = []
    spent = triton.testing.do_bench(lambda: calls.append(add(x, x)), warmup=1, rep=1)
    assert spent > 0 and len(calls) == 1
    assert len(triton.testing.do_bench(lambda: None, quantiles=[0.5, 0.2, 0.8])) == 3


def idiom_threads_have_the_device_too():
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.zeros(1, device="cuda").is_cuda))
    thread.start()
    thread.join()
    assert found == [True]


def idiom_tensor_type_names():
    assert on_device(1).type() == "torch.cuda.FloatTensor"
    assert torch.zeros(1).type() == "torch.FloatTensor"


def idiom_recurrent_modules():
    lstm = nn.LSTM(3, 4).to("cuda")
    lstm.flatten_parameters()
    out, _ = lstm(on_device(5, 2, 3))
    assert out.is_cuda and out.shape == (5, 2, 4)


def idiom_attention_module():
    attention = nn.MultiheadAttention(8, 2).cuda()
    x = on_device(3, 2, 8)
    assert attention(x, x, x)[0].is_cuda


def idiom_host_memory_for_a_kernel_is_a_fault():
    x = on_device(8)
    for forgotten in (torch.zeros(8), x.cpu(), torch.zeros(8, device="cpu") + 1):
        with raises(ValueError, "cannot be accessed from Triton (cpu tensor?)"):
            add(forgotten, x)


def idiom_wrong_kernel_stays_wrong():
    x = on_device(100)
    out = torch.zeros_like(x)
    add_kernel[(1,)](x, x, out, 100, BLOCK=64)
    assert not torch.equal(out, x + x)


def idiom_another_device_is_refused():
    with raises(RuntimeError, "the stand-in on the CPU has one"):
        torch.zeros(2, device="cuda:1")
    with raises(RuntimeError, "the stand-in on the CPU has one"):
        torch.zeros(2).cuda(3)


def idiom_what_needs_a_device_says_so():
    for call, name in (
        (torch.cuda.CUDAGraph, "CUDAGraph"),
        (lambda: torch.cuda.graph(None), "torch.cuda.graph"),
        (lambda: torch.compile(lambda x: x)(on_device(1)), "torch.compile"),
        (lambda: torch.distributed.init_process_group("nccl"), "nccl"),
        (lambda: triton.testing.do_bench_cudagraph(lambda: None), "do_bench_cudagraph"),
        (lambda: triton.runtime.driver.active.launcher_cls, "launcher_cls"),
        (lambda: triton.runtime.driver.active.utils.load_binary("x"), "load_binary"),
    ):
        with raises(RuntimeError, "is only a stand-in"):
            call()
        with raises(RuntimeError, name):
            call()


def idiom_unused_compiled_helper_does_no_harm():
    @torch.compile
    def helper(x):
        return x

    @torch.compile(mode="max-autotune")
    def other(x):
        return x

    assert helper is not None and other.__name__ == "other"


def idiom_extensions_are_refused():
    from torch.utils.cpp_extension import load_inline

    with raises(RuntimeError, "load_inline"):
        load_inline(name="x", cpp_sources="")


def idiom_npu_is_not_there():
    assert not hasattr(torch, "npu") and not hasattr(torch.Tensor, "npu")
    with raises(ImportError, "torch_npu"):
        import torch_npu  # noqa: F401


def idiom_ordinary_code_uses_nothing():
    x = torch.ones(3)
    (x * 2).sum().item()
    return []


def idiom_accelerator_module():
    if not hasattr(torch, "accelerator"):
        return
    assert torch.accelerator.is_available()
    device = torch.accelerator.current_accelerator()
    assert device.type == "cuda" and torch.ones(2, device=device).is_cuda
    torch.accelerator.synchronize()
    with torch.get_device_module().device(device):
        assert torch.get_device_module() is torch.cuda
    assert torch.get_device_module("cpu") is torch.cpu


def idiom_load_to_the_device():
    import io

    buffer = io.BytesIO()
    torch.save(torch.arange(3), buffer)
    buffer.seek(0)
    assert torch.load(buffer, map_location="cuda").tolist() == [0, 1, 2]


def idiom_marks_for_profilers():
    x = on_device(10)
    assert torch.cuda.nvtx.range_push("outer") == 0
    with torch.cuda.nvtx.range("inner"):
        torch.cuda.nvtx.mark("here")
        assert torch.equal(add(x, x), x * 2)
    assert torch.cuda.nvtx.range_pop() == 0
    torch.cuda.nvtx.range_end(torch.cuda.nvtx.range_start("other"))
    torch.cuda.profiler.start()
    torch.cuda.profiler.stop()


def idiom_old_types():
    x = on_device(3)
    assert isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x.half(), torch.cuda.FloatTensor)
    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)
    with raises(RuntimeError, "only a stand-in"):
        torch.cuda.FloatTensor(3)


def idiom_parts_of_torch_that_need_cuda_say_what_this_is():
    for use in (torch.cuda.current_blas_handle, torch.cuda.nccl.version):
        with raises(RuntimeError, "only a stand-in"):
            use()
    assert not hasattr(torch._C, "_cuda_no_such_function")
    with raises(AttributeError, "has no attribute 'no_such_name'"):
        torch._C.no_such_name
