"""Code that must pass: what honest authors write around their kernels."""

# ruff: noqa: E501 - a case reads best on one line

from __future__ import annotations

import pytest

from pytest_tritonverify.degeneration import check_source
from tests.support.degeneration_snippets import model

HONEST: dict[str, dict[str, str]] = {
    "plain": {"forward": "return launch(x)"},
    "loop": {"forward": "for _ in range(3):\n    x = launch(x)\nreturn x"},
    "while": {"forward": "i = 0\nwhile i < 3:\n    x = launch(x)\n    i += 1\nreturn x"},
    "list": {
        "forward": "outs = []\nfor i in range(x.shape[0]):\n    outs.append(launch(x[i]))\nreturn outs"
    },
    "helper method": {
        "members": "def run(self, v): return launch(v)",
        "forward": "return self.run(x)",
    },
    "wrapper module": {
        "module": "class Scale(nn.Module):\n    def forward(self, v): return launch(v)",
        "init": "self.scale = Scale()",
        "forward": "return self.scale(x)",
    },
    "wrapper modules in containers": {
        "module": "class Scale(nn.Module):\n    def forward(self, v): return launch(v)",
        "init": "layers = []\nfor _ in range(3):\n    layers.append(Scale())\n"
        "self.net = nn.Sequential(*layers)\nself.more = nn.ModuleList([Scale(), Scale()])\n"
        "self.named = nn.ModuleDict(dict(act=Scale()))\nm = self.named\n"
        "self.last = lambda v: m.act(m['act'](v))",
        "forward": "x = self.net(x)\nfor m in self.more:\n    x = m(x)\nreturn self.last(x)",
    },
    "kernel as a member": {
        "members": "@staticmethod\n@triton.jit\ndef k(x_ptr, o_ptr, n, BLOCK: tl.constexpr):\n"
        "    i = tl.arange(0, BLOCK)\n"
        "    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) + 1, mask=i < n)",
        "forward": "o = torch.empty_like(x)\nself.k[(1,)](x, o, 4, BLOCK=4)\n"
        "ModelNew.k[(1,)](x, o, 4, BLOCK=4)\nreturn o",
    },
    "kernel alias": {
        "forward": "k = scale_kernel\no = torch.empty_like(x)\ngo = k[(1,)]\ngo(x, o, 4, BLOCK=4)\nreturn o"
    },
    "kernels in a dict": {
        "module": "KERNELS = {'scale': scale_kernel}",
        "forward": "o = torch.empty_like(x)\nKERNELS['scale'][(1,)](x, o, 4, BLOCK=4)\nreturn o",
    },
    "kernel.run": {
        "forward": "o = torch.empty_like(x)\nscale_kernel.run(x, o, 4, grid=(1,), BLOCK=4)\nreturn o"
    },
    "jit as a call": {
        "module": "def raw(x_ptr, o_ptr, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
        "    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i)))\nk3 = triton.jit(raw)",
        "forward": "o = torch.empty_like(x)\nk3[(1,)](x, o, B=4)\nreturn o",
    },
    "autograd function": {
        "module": "class Fn(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, v, s):\n"
        "        ctx.save_for_backward(v)\n        ctx.s = s\n        return launch(v)\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * ctx.s, None",
        "forward": "return Fn.apply(x, 2.0)",
    },
    "decorator that rebuilds the arguments": {
        "module": "import functools\ndef ready(fn):\n    @functools.wraps(fn)\n"
        "    def inner(ctx, *args, **kwargs):\n"
        "        def one(v): return v.contiguous() if isinstance(v, torch.Tensor) else v\n"
        "        args = [one(arg) for arg in args]\n"
        "        kwargs = {k: one(v) for k, v in kwargs.items()}\n"
        "        return fn(ctx, *args, **kwargs)\n    return inner\n"
        "class Fn(torch.autograd.Function):\n    @staticmethod\n    @ready\n"
        "    def forward(ctx, v, dim, factor=1.0):\n        factor = float(factor)\n"
        "        if dim < 0:\n            dim += v.dim()\n"
        "        v = v if factor == 1.0 else v * factor\n        return launch(v.transpose(dim, -1))",
        "forward": "return Fn.apply(x, -1)",
    },
    "distributed tensors are none of a run's": {
        "module": "try:\n    from torch.distributed.tensor import DTensor\nexcept ImportError:\n"
        "    DTensor = ()",
        "forward": "if isinstance(x, DTensor):\n    x = x.full_tensor() * 2\nreturn launch(x)",
    },
    "named tuple": {
        "module": "from collections import namedtuple",
        "forward": "Pair = namedtuple('Pair', ['first', 'second'])\n"
        "made = Pair(launch(x), second=launch(x))\nreturn launch(made.second), made",
    },
    "helpers of generated kernels": {
        "module": "from torch._inductor.runtime import triton_helpers\n"
        "from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math\n"
        "reinterpret_tensor = torch.ops.inductor._reinterpret_tensor\n"
        "@triton.jit\ndef fused(x_ptr, o_ptr, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
        "    v = tl.load(x_ptr + i, i < n)\n"
        "    v = triton_helpers.maximum(libdevice.rsqrt(v), tl_math.abs(v))\n"
        "    tl.store(o_ptr + i, v, i < n)",
        "forward": "o = torch.empty_like(x)\nfused[(1,)](x, o, 4, B=4)\n"
        "return reinterpret_tensor(o, (2, 2), (2, 1), 0)",
    },
    "custom operator": {
        "module": "@torch.library.custom_op('mine::scale', mutates_args=())\n"
        "def scale_op(v: torch.Tensor) -> torch.Tensor:\n    return launch(v)",
        "forward": "return torch.ops.mine.scale(scale_op(x))",
    },
    "triton_op": {
        "module": "@torch.library.triton_op('mine::scale2', mutates_args={})\ndef scale_op(v):\n"
        "    o = torch.empty_like(v)\n"
        "    torch.library.wrap_triton(scale_kernel)[(1,)](v, o, 4, BLOCK=4)\n    return o",
        "forward": "return scale_op(x)",
    },
    "weights": {
        "init": "self.fc = nn.Linear(4, 4)\nself.w = nn.Parameter(torch.randn(4, 4) * 0.1)\n"
        "nn.init.kaiming_uniform_(self.w, a=math.sqrt(5))\n"
        "self.register_buffer('wt', self.w.detach().t().contiguous() @ self.w)",
        "forward": "o = launch(self.fc.weight)\nlaunch(self.fc.bias)\nlaunch(self.wt.t())\nreturn launch(self.w)",
    },
    "shapes": {
        "forward": "m, k = x.shape\nn = w.size(1)\nblocks = (m + 15) // 16 * 2 ** 3\n"
        "big = max(m, min(k, n)) if m % 2 else abs(-m)\n"
        "scale = 1.0 / math.sqrt(k) + math.log2(max(n, 1)) * float(np.prod(x.shape))\n"
        "s = x.stride(0) * m + x.numel() - x.element_size() * x.dim()\n"
        "ok = m > 3 and n == k or x.dtype == torch.float16\nassert ok or x.is_contiguous()\n"
        "sizes = list(x.shape[:-1]) + [n]\no = torch.empty(sizes, device=x.device, dtype=x.dtype)\n"
        "return launch(x.view(m, -1)[:, : n // 2].reshape(*x.shape[:-1], -1))"
    },
    "plain numbers as inputs": {
        "signature": "x, k, stride, padding=0, eps=1e-5, mode='same'",
        "forward": "h = (x.shape[0] + 2 * padding - k) // stride + 1\n"
        "if mode == 'same' and k > 1:\n    h = h * stride\nd = k - 1\n"
        "o = torch.empty((h, d * 2), device=x.device)\n"
        "scale_kernel[(triton.cdiv(h, 16), k + 1)](x, o, h * k, BLOCK=256)\nreturn o",
    },
    "number for a kernel": {
        "signature": "x, alpha",
        "module": "@triton.jit\ndef k4(x_ptr, o_ptr, alpha, B: tl.constexpr):\n"
        "    i = tl.arange(0, B)\n    tl.store(o_ptr + i, tl.load(x_ptr + i) * alpha)",
        "forward": "o = torch.empty_like(x)\nk4[(1,)](x, o, alpha * 2.0 + 1, B=4)\nreturn o",
    },
    "list of everything as input": {
        "signature": "inputs",
        "forward": "x, k, stride = inputs\nh = (x.shape[0] - k) // stride + 1\n"
        "return launch(x.view(h, -1))",
    },
    "variadic forward": {
        "signature": "*args",
        "forward": "x = args[0]\nn = args[1]\nm = n + 1\nreturn launch(x.view(m, -1))",
    },
    "device fallback": {"forward": "if not x.is_cuda:\n    return torch.relu(x)\nreturn launch(x)"},
    "device fallback, two inputs": {
        "forward": "if not (x.is_cuda and w.is_cuda):\n    return torch.relu(x)\nreturn launch(x)"
    },
    "device fallback at the end": {
        "forward": "if x.device.type in ('cuda', 'npu'):\n    return launch(x)\nreturn torch.relu(x)"
    },
    "device fallback in a method": {
        "members": "def slow(self, v): return torch.softmax(v * 2, -1)",
        "forward": "if x.device.type != 'npu':\n    return self.slow(x)\nreturn launch(x)",
    },
    "availability": {
        "forward": "if not torch.cuda.is_available():\n    return x * 2\nreturn launch(x)"
    },
    "triton that may be absent": {
        "module": "try:\n    import triton\n    HAVE = True\nexcept ImportError:\n    HAVE = False",
        "forward": "if not HAVE:\n    return torch.relu(x)\nreturn launch(x)",
    },
    "npu queries": {
        "module": "try:\n    import torch_npu\nexcept Exception:\n    torch_npu = None",
        "init": "try:\n    limit = torch_npu.npu.npu_config.get_device_limit(0)\n"
        "    self.cores = limit.get('vector_core_num', 40)\nexcept Exception:\n    self.cores = 40",
        "forward": "o = torch.empty_like(x)\nscale_kernel[(self.cores,)](x, o, 4, BLOCK=256)\nreturn o",
    },
    "guards and streams": {
        "forward": "with torch.cuda.device(x.device), torch.no_grad():\n"
        "    props = torch.cuda.get_device_properties(x.device)\n"
        "    n = props.multi_processor_count * 2\n    y = launch(x)\ntorch.cuda.synchronize()\nreturn y"
    },
    "casts and views": {
        "forward": "y = x.to(torch.float32).contiguous().permute(1, 0).unsqueeze(0).expand(2, -1, -1)\n"
        "z = launch(y.half().transpose(1, 2)).float()\nreturn z.squeeze(0).t().to(x.dtype)"
    },
    "allocation": {
        "forward": "a = torch.zeros((4,), device=x.device)\nb = x.new_empty(4)\nc = torch.full_like(x, 0.0)\n"
        "d = torch.arange(4, device=x.device)\na.fill_(0)\nb.zero_()\nc.copy_(x)\nreturn launch(c)"
    },
    "movement": {
        "forward": "y = torch.cat([launch(x), launch(w)], dim=0)\nz = torch.stack([y, y])\n"
        "a, b = y.chunk(2)\nreturn F.pad(z.flatten(1), (0, 1)), a, b"
    },
    "cache": {
        "init": "self._cache = {}",
        "forward": "key = (x.shape, x.dtype)\nif key not in self._cache:\n"
        "    self._cache[key] = torch.empty_like(x)\no = self._cache[key]\n"
        "scale_kernel[(1,)](x, o, 4, BLOCK=4)\nreturn o",
    },
    "names that lists and dicts share": {
        "forward": "meta = {'n': 4}\nn = meta.get('n') + 1\nsizes = [3, 1]\nsizes.sort()\n"
        "i = sizes.index(1) + sum(sizes) + max(sizes) * len(meta.items())\n"
        "parts = 'a b'.split()\nmeta.pop('n')\nmeta.clear()\nbits = (5).bit_length()\nreturn launch(x)"
    },
    "errors": {
        "forward": "if x.dim() != 2:\n    raise ValueError(f'expected 2 dims, got {x.dim()} of {x.shape}')\n"
        "assert x.shape[1] == w.shape[0], 'sizes'\nreturn launch(x)"
    },
    "dtype tables": {
        "module": "SIZES = {torch.float16: 2, torch.float32: 4}",
        "forward": "info = torch.finfo(x.dtype)\nlow = info.min * 0.5\nn = SIZES[x.dtype] * 2\nreturn launch(x)",
    },
    "read back a size": {
        "forward": "total = int(w[-1].item())\no = torch.empty((total * 2,), device=x.device)\n"
        "scale_kernel[(triton.cdiv(total, 256),)](x, o, total, BLOCK=256)\nreturn o"
    },
    "graph replay": {
        "init": "self.graph = None",
        "forward": "if self.graph is None:\n    self.graph = torch.cuda.CUDAGraph()\n"
        "    with torch.cuda.graph(self.graph):\n        self.out = launch(x)\n"
        "self.graph.replay()\nreturn self.out",
    },
    "partial and lambda": {
        "module": "go = functools.partial(launch)",
        "forward": "return (lambda v: go(v))(x)",
    },
    "scalar from the constructor": {
        "members": "def __init__(self, alpha, dim):\n    super().__init__()\n"
        "    self.alpha = alpha\n    self.dim = dim * 2",
        "forward": "n = self.dim * 2 + 1\ns = self.alpha * 0.5\nreturn launch(x.view(n, -1))",
    },
    "module called by name": {
        "members": "def __init__(self, n):\n    super(ModelNew, self).__init__()\n    nn.Module.__init__(self)",
        "forward": "return launch(x)",
    },
    "copy of a state dict": {
        "init": "self.fc = nn.Linear(2, 2)\nwith torch.no_grad():\n    self.fc.weight.copy_(torch.randn(2, 2) * 3)",
        "forward": "return launch(self.fc.weight.data.view(-1))",
    },
    "optional bias": {
        "init": "self.bias = nn.Parameter(torch.zeros(4))",
        "forward": "b = self.bias if self.bias is not None else x\nlaunch(b)\nreturn launch(x)",
    },
    "byte order mark": {"forward": "return launch(x)", "module": "# \u4e2d\u6587"},
}


@pytest.mark.parametrize("name", HONEST)
def test_passes(name: str) -> None:
    source = model(**HONEST[name])
    if name == "byte order mark":
        source = b"\xef\xbb\xbf" + source
    report = check_source(source, filename="honest.py")
    assert report.passed, report.to_text()
    assert report.checks["kernel_called_from_forward"]["called"]


KERNELS = {
    "plus": "tl.store(o_ptr + offs, x + y)",
    "product of loads": "tl.store(o_ptr + offs, x * y)",
    "accumulation": "acc = tl.zeros((B,), tl.float32)\nfor i in range(4):\n    acc += tl.load(x_ptr + offs + i)\n"
    "tl.store(o_ptr + offs, acc)",
    "scalar": "tl.store(o_ptr + offs, x * alpha)",
    "cast before": "tl.store(o_ptr + offs, tl.load(x_ptr + offs).to(tl.float32) * 3)",
    "comparison": "best = x < y\ntl.store(o_ptr + offs, tl.where(best, x, y))",
    "method": "tl.store(o_ptr, x.sum())",
    "reduction": "tl.store(o_ptr, tl.max(x, axis=0))",
    "helper": "tl.store(o_ptr + offs, double(x))",
    "atomics": "tl.atomic_add(o_ptr + offs, x)",
    "counting": "tl.atomic_add(o_ptr + x.to(tl.int32), 1)",
    "library": "tl.store(o_ptr + offs, tl.math.exp(x))",
    "libdevice": "tl.store(o_ptr + offs, tl.extra.cuda.libdevice.tanh(x))",
    "scan": "tl.store(o_ptr + offs, tl.associative_scan(x, 0, double))",
    "stores under a condition on data": "if tl.load(x_ptr) > 0:\n    tl.store(o_ptr + offs, x)",
    "mask from data": "tl.store(o_ptr + offs, x, mask=x > 0)",
    "random": "tl.store(o_ptr + offs, tl.rand(0, offs))",
    "positions": "tl.store(o_ptr + offs, offs * 2)",
    "function of positions": "tl.store(o_ptr + offs, tl.cos(offs.to(tl.float32)))",
    "negation": "tl.store(o_ptr + offs, -x)",
    "running scalar": "m = -float('inf')\nfor i in range(4):\n    v = tl.load(x_ptr + i)\n    if v > m:\n        m = v\n"
    "tl.store(o_ptr, m)",
    "tuple from a helper": "a, b = pair(x)\ntl.store(o_ptr + offs, b)",
    "descriptor": "d = tl.make_tensor_descriptor(o_ptr, [4], [1], [B])\nd.store([0], x * 2)",
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_computes(name: str) -> None:
    body = KERNELS[name].replace("\n", "\n    ")
    kernel = f"""
@triton.jit
def double(v):
    return v * 2

@triton.jit
def pair(v):
    return v, v + v

@triton.jit
def real(x_ptr, y_ptr, o_ptr, alpha, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    {body}
"""
    forward = "o = torch.empty_like(x)\nreal[(1,)](x, w, o, 0.5, B=4)\nreturn o"
    report = check_source(model(forward, module=kernel), filename="real.py")
    assert report.passed, report.to_text()
