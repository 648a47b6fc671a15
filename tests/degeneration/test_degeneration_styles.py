"""More code that must pass, in the style of published implementations."""

# ruff: noqa: E501 - a case reads best on one line

from __future__ import annotations

import pytest

from pytest_tritonverify.degeneration import check_source
from tests.support.degeneration_snippets import model

STYLES: dict[str, bytes] = {
    "casts in a conditional": model(
        "x = x.float() if x.dtype != torch.float32 else x\ns = torch.cuda.current_stream().cuda_stream\nreturn launch(x)"
    ),
    "sizes by functools and math": model(
        "b, h = x.shape[-2:]\nn = math.prod(x.shape[:-1]) * int(math.ceil(h / 2)) + functools.reduce(operator.mul, x.shape)\nreturn launch(x)"
    ),
    "sizes given as numbers or tuples": model(
        "kh, kw = self.k\noh = (x.shape[2] + 2 * self.p - kh) // self.s + 1\nreturn launch(x.view(oh, -1))",
        members="def __init__(self, k, s, p):\n    super().__init__()\n    self.k = (k, k) if isinstance(k, int) else k\n    self.s = s\n    self.p = p",
    ),
    "weights that are transposed again when they change": model(
        "if self.w.data_ptr() != self.ptr or self.w._version != self.ver:\n    self.wt = self.w.t().contiguous()\n    self.ptr = self.w.data_ptr()\n    self.ver = self.w._version\nreturn launch(self.wt)",
        init="self.w = nn.Parameter(torch.randn(2,2))\nself.ptr = None\nself.ver = -1",
    ),
    "streams and capabilities": model(
        "with torch.cuda.stream(self.stream):\n    y = launch(x)\nif torch.cuda.get_device_capability()[0] >= 9:\n    y = launch(y)\nreturn y",
        init="self.stream = torch.cuda.Stream()",
    ),
    "number of cores": model(
        "n = driver.active.utils.get_device_properties(torch.npu.current_device())['num_vectorcore']\nreturn launch(x[: n * 2])",
        module="import triton.runtime.driver as driver",
    ),
    "kernel chosen by a condition": model(
        "k = scale_kernel if x.shape[0] > 2 else other\no = torch.empty_like(x)\nk[(1,)](x, o, 4, BLOCK=4)\nreturn o",
        module="other = scale_kernel",
    ),
    "tables of dtypes": model(
        "d = TL[x.dtype]\nreturn launch(x)",
        module="TL = {torch.float16: tl.float16, torch.float32: getattr(tl, 'float32')}",
    ),
    "setdefault": model(
        "o = C.setdefault(x.shape, torch.empty_like(x))\nscale_kernel[(1,)](x, o, 4, BLOCK=4)\nreturn o",
        module="C = {}",
    ),
    "lists of outputs": model(
        "outs = [torch.empty_like(x) for _ in range(3)]\nfor i, o in enumerate(outs):\n    scale_kernel[(1,)](x, o, i, BLOCK=4)\na, b = torch.split(outs[0], 2)\nfor xi in x.unbind(0):\n    launch(xi)\nreturn tuple(outs)"
    ),
    "device as a property": model(
        "return launch(x.to(self.device))",
        members="@property\ndef device(self): return self.w.device",
        init="self.w = nn.Parameter(torch.zeros(1))",
    ),
    "logging": model(
        "log.debug('%s', x.shape)\nprint(x.shape, x)\nwarnings.warn('x')\nreturn launch(x)",
        module="import logging, warnings, os\nlog = logging.getLogger(__name__)\nF32 = os.environ.get('A', '0') == '1'",
    ),
    "a test below __main__": model("return launch(x)")
    + b"\nif __name__ == '__main__':\n    from softmax_torch import Model\n    exec('1')\n    print(torch.allclose(Model()(torch.randn(2)), ModelNew()(torch.randn(2))))\n",
    "weights made lazily": model(
        "if self.w is None:\n    self.make(x.shape[1], x.device)\nreturn launch(self.w)",
        members="def make(self, n, dev):\n    self.lin = nn.Linear(n, n).to(dev)\n    nn.init.xavier_uniform_(self.lin.weight)\n    self.w = nn.Parameter(torch.empty(n, n, device=dev).normal_(0, 0.02))",
        init="self.w = None",
    ),
    "queries below torch.utils": model(
        "if has_triton():\n    return launch(x)\nreturn launch(x)",
        module="from torch.utils._triton import has_triton",
    ),
    "limits of dtypes": model(
        "big = -torch.finfo(x.dtype).max * 2\nn = x.shape.numel() * 2\nreturn launch(x)"
    ),
    "layers made by a method": model(
        "return self.body(x)",
        module="class Block(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n    def forward(self, x): return launch(x)",
        members="def __init__(self):\n    super().__init__()\n    self.body = self._make(3)\ndef _make(self, n):\n    layers = []\n    for i in range(n):\n        layers.append(Block(i))\n    return nn.Sequential(*layers)",
    ),
    "layers in a lambda": model(
        "return self.mlpf(x)",
        module="class B(nn.Module):\n    def forward(self, x): return launch(x)",
        init="self.mlp = nn.ModuleDict(dict(c_fc=B(), act=B(), c_proj=B()))\nm = self.mlp\nself.mlpf = lambda x: m.c_proj(m.act(m.c_fc(x)))",
    ),
    "recurrent cell": model(
        "h = x.new_zeros(4)\nfor t in range(x.size(1)):\n    h, c = self.cell(x[:, t, :], h)\nreturn h",
        members="def cell(self, x, h):\n    return launch(x), launch(h)",
    ),
    "strides as arguments": model(
        "out = torch.empty(x.shape[0], device=x.device)\nscale_kernel[(x.shape[0], 1, 1)](x, out, *x.stride(), BLOCK=8)\nreturn out.sum if False else out"
    ),
    "nested inputs": model(
        "return _wrap(x)",
        module="def _wrap(t):\n    if isinstance(t, (list, tuple)):\n        return [_wrap(v) for v in t]\n    if isinstance(t, dict):\n        return {k: _wrap(v) for k, v in t.items()}\n    return launch(t)",
    ),
    "inductor": model(
        "return call([x, self.conv.weight])[0]",
        init="self.conv = nn.Conv2d(1,1,1)",
        module="empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda\nassert_size_stride = torch._C._dynamo.guards.assert_size_stride\nreinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor\nfrom torch._C import _cuda_getCurrentRawStream as get_raw_stream\nfrom torch._inductor.runtime.triton_heuristics import grid\ndef call(args):\n    a, b = args\n    args.clear()\n    assert_size_stride(a, (4, 4), (4, 1))\n    with torch.cuda._DeviceGuard(0):\n        torch.cuda.set_device(0)\n        buf0 = empty_strided_cuda((4, 4), (4, 1), torch.float32)\n        get_raw_stream(0)\n        scale_kernel[grid(16)](a, buf0, 16, BLOCK=16)\n        del a\n    return reinterpret_tensor(buf0, (4, 4), (4, 1), 0), b",
    ),
    "training": model(
        "x = x.contiguous()\nif x.requires_grad:\n    return Fn.apply(x)\nreturn launch(x)",
        module="class Fn(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, v):\n        y = launch(v)\n        ctx.save_for_backward(v, y)\n        ctx.shape = v.shape\n        return y\n    @staticmethod\n    def backward(ctx, g):\n        v, y = ctx.saved_tensors\n        return g * y",
    ),
    "dtype tests": model(
        "is_half = x.dtype in (torch.float16, torch.bfloat16)\nuse = self.training and is_half\nacc = tl.float32 if use else tl.float16\nreturn launch(x)"
    ),
    "choice of a configuration": model(
        "p = triton.next_power_of_2(x.shape[1])\ncfg = self.pick(x.shape[0])\nscale_kernel[(cfg['g'],)](x, x, p, BLOCK=cfg.get('b', 4))\nreturn x",
        members="def pick(self, n):\n    return {'g': n * 2, 'b': 16 if n > 4 else 8}",
    ),
    "generator": model(
        "g = torch.Generator(device=x.device).manual_seed(3)\nw = torch.randn(4, generator=g).to(x.dtype)\nreturn launch(w)"
    ),
    "optional number": model(
        "s = float(alpha) if alpha is not None else 1.0\nscale_kernel[(1,)](x, x, s * 2, BLOCK=4)\nreturn x",
        signature="x, alpha=None",
    ),
    "negative dimension": model(
        "d = dim % x.dim()\nif dim < 0:\n    dim += x.ndim\nn = 1\nfor i in range(dim):\n    n *= x.shape[i]\nreturn launch(x.reshape(n, -1))",
        signature="x, dim",
    ),
    "k of top-k": model(
        "y = torch.empty((x.shape[0], k), device=x.device)\nscale_kernel[(x.shape[0],)](x, y, x.shape[1], k * 2, BLOCK=triton.next_power_of_2(k))\nreturn y[:, :k], y[:, k - 1]",
        signature="x, k",
    ),
    "generator expression": model(
        "q, kk, v = (t.contiguous() for t in (q, kk, v))\nsm = scale if scale is not None else q.shape[-1] ** -0.5\no = torch.empty_like(q)\nscale_kernel[(1,)](q, o, sm, BLOCK=4)\nreturn o",
        signature="q, kk, v, scale=None",
    ),
    "list of tensors": model(
        "lens = [t.shape[0] for t in xs]\ntotal = sum(lens)\no = torch.empty(total)\noff = 0\nfor t in xs:\n    scale_kernel[(1,)](t, o[off:], t.numel(), BLOCK=4)\n    off += t.shape[0]\nreturn o",
        signature="xs",
    ),
    "unused tuned kernel": model(
        "return launch(x)",
        module="def _cfg():\n    return [triton.Config({'B': b}, num_warps=w) for b in (16, 32) for w in (4, 8)]\n@triton.heuristics({'EVEN': lambda a: a['n'] % a['BLOCK'] == 0})\n@triton.autotune(configs=_cfg(), key=['n'], prune_configs_by={'early_config_prune': lambda c, n, **k: c})\n@triton.jit\ndef kk(x, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):\n    tl.store(x, tl.load(x) * 2)",
        members="def extra(self): pass",
    ),
    "heuristics": model(
        "kk[(lambda m: (triton.cdiv(x.numel(), m['BLOCK']),))](x, x.numel())\nreturn x",
        module="@triton.heuristics({'EVEN': lambda a: a['n'] % a['BLOCK'] == 0, 'BLOCK': lambda a: max(16, triton.next_power_of_2(a['n'] // 2))})\n@triton.jit\ndef kk(x, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n    if EVEN:\n        v = tl.load(x + i)\n    else:\n        v = tl.load(x + i, mask=i < n, other=0.)\n    tl.store(x + i, v * 2)",
    ),
    "rec": model(
        "return f(x, n)",
        module="def f(x, n):\n    return x if n <= 0 else f(launch(x), n - 1)",
        signature="x, n",
    ),
    "rec2": model(
        "return f(x, n)",
        module="def f(x, n):\n    if n <= 1: return launch(x)\n    return f(f(x, n // 2), n - n // 2)",
        signature="x, n",
    ),
    "while": model(
        "while n > 1:\n    m = n\n    while m > 1:\n        m = m // 2 + n\n        x = launch(x)\n    n = n - m\nreturn x",
        signature="x, n",
    ),
    "tree": model(
        "return walk(t)",
        module="def walk(t):\n    if isinstance(t, tuple): return tuple(walk(v) for v in t)\n    return launch(t)",
        signature="t",
    ),
    "nest": model(
        "d = {}\nfor i in range(3):\n    d = {'a': d, 'b': [d, x]}\nreturn launch(d['b'][1])"
    ),
}


@pytest.mark.parametrize("name", STYLES)
def test_passes(name: str) -> None:
    report = check_source(STYLES[name], filename="honest.py")
    assert report.passed, report.to_text()
