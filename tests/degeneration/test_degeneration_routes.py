"""More ways to have others do a kernel's work: by other routes to forward, or other callers."""

# ruff: noqa: E501 - a case reads best on one line

from __future__ import annotations

import pytest

from pytest_tritonverify.degeneration import check_source
from tests.support.degeneration_snippets import model


def tail(source: bytes, more: str) -> bytes:
    return source + more.encode()


ROUTES = {
    "ModelNew.forward=": tail(
        model("return launch(x)"),
        "\ndef other(self, x, w): return torch.relu(x)\nModelNew.forward = other\n",
    ),
    "ModelNew.__call__=": tail(
        model("return launch(x)"), "\nModelNew.__call__ = lambda self, x, w: torch.relu(x)\n"
    ),
    "setattr ModelNew": tail(
        model("return launch(x)"),
        "\nsetattr(ModelNew, 'for'+'ward', lambda self, x, w: torch.relu(x))\n",
    ),
    "__new__": model(
        "return launch(x)",
        module="class Other(nn.Module):\n    def forward(self, x, w): return torch.relu(x)",
        members="def __new__(cls, *a):\n    return Other()",
    ),
    "metaclass": tail(
        model("return launch(x)"),
        "\nclass Meta(type):\n    def __call__(cls, *a): return Other()\nclass Other(nn.Module):\n    def forward(self, x, w): return torch.relu(x)\nclass ModelNew(nn.Module, metaclass=Meta):\n    def forward(self, x, w): return launch(x)\n",
    ),
    "class decorator": tail(
        model("return launch(x)"),
        "\ndef deco(c):\n    c.forward = lambda self, x, w: torch.relu(x)\n    return c\n@deco\nclass ModelNew(nn.Module):\n    def forward(self, x, w): return launch(x)\n",
    ),
    "getattribute": model(
        "return launch(self.q(x))",
        members="def __getattribute__(self, n):\n    return torch.relu if n == 'q' else object.__getattribute__(self, n)",
    ),
    "patch allclose": model("return launch(x)", module="torch.allclose = lambda *a, **k: True"),
    "patch Module.__call__": model(
        "return launch(x)", module="nn.Module.__call__ = lambda self, x, w: torch.relu(x)"
    ),
    "patch Tensor": model(
        "return launch(x.foo())", module="torch.Tensor.foo = lambda s: torch.relu(s)"
    ),
    "MethodType": model(
        "return launch(x)",
        init="import types\nself.forward = types.MethodType(lambda s, x, w: torch.relu(x), self)",
    ),
    "factory": tail(
        model("return launch(x)"),
        "\ndef make():\n    class M(nn.Module):\n        def forward(self, x, w): return torch.relu(launch(x))\n    return M\nModelNew = make()\n",
    ),
    "object.__setattr__": model(
        "return launch(self.f(x))", init="object.__setattr__(self, 'f', torch.relu)"
    ),
    "vmap": model("return launch(torch.vmap(lambda a: a.relu())(x))"),
    "checkpoint": model("return launch(torch.utils.checkpoint.checkpoint(lambda a: a.relu(), x))"),
    "getattribute torch": model("return launch(torch.__getattribute__('relu')(x))"),
    "getattribute x": model("return launch(x.__getattribute__('relu')())"),
    "object getattribute": model("return launch(object.__getattribute__(x, 'relu')())"),
    "getattr_static": model(
        "import inspect\nreturn launch(inspect.getattr_static(torch, 'relu')(x))"
    ),
    "jit.script": model(
        "return launch(f(x))", module="@torch.jit.script\ndef f(v): return torch.relu(v)"
    ),
    "ReLU()(x)": model("return launch(nn.ReLU()(x))"),
    "Linear.forward": model(
        "return launch(nn.Linear.forward(self.fc, x))", init="self.fc = nn.Linear(2,2)"
    ),
    "_modules": model("return launch(self._modules['fc'](x))", init="self.fc = nn.Linear(2,2)"),
    "get_submodule": model(
        "return launch(self.get_submodule('fc')(x))", init="self.fc = nn.Linear(2,2)"
    ),
    "children": model("return launch(next(self.children())(x))", init="self.fc = nn.Linear(2,2)"),
    "modules list": model(
        "return launch([*self.modules()][1](x))", init="self.fc = nn.Linear(2,2)"
    ),
    "named_modules": model(
        "return launch(dict(self.named_modules())['fc'](x))", init="self.fc = nn.Linear(2,2)"
    ),
    "builtins.eval": model("import builtins\nreturn launch(builtins.eval('x@w'))"),
    "__builtins__ dict": model("return launch(__builtins__['eval']('x@w'))"),
    "__builtins__ attr": model("return launch(__builtins__.eval('x@w'))"),
    "getattr builtins": model(
        "import builtins\nreturn launch(getattr(builtins, 'ev'+'al')('x@w'))"
    ),
    "np.einsum": model("return launch(torch.from_numpy(np.einsum('ij,jk->ik', x, w)))"),
    "scipy": model("import scipy.special as s\nreturn launch(torch.as_tensor(s.expit(x)))"),
    "sparse": model("return launch(torch.sparse.mm(x, w))"),
    "fft": model("return launch(torch.fft.fft(x))"),
    "element loop": model(
        "o = torch.empty_like(x)\nfor i in range(x.numel()):\n    o[i] = x[i] * 2\nreturn launch(o)"
    ),
    "memmove": model(
        "import ctypes\no = torch.empty_like(x)\nctypes.memmove(o.data_ptr(), x.data_ptr(), 4)\nreturn launch(o)"
    ),
    "cdll": model(
        "import ctypes\nlib = ctypes.CDLL('libblas.so')\nlib.sgemm(x.data_ptr(), w.data_ptr())\nreturn launch(x)"
    ),
    "addmm_ in place on out": model("o = launch(x)\no.addmm_(x, w)\nreturn o"),
    "out=": model("o = launch(x)\ntorch.mm(x, w, out=o)\nreturn o"),
    "masked_fill": model("return launch(x.masked_fill(w, 0))"),
    "where": model("return launch(torch.where(w, x, 0))"),
    "tril": model("return launch(torch.tril(x))"),
    "clamp alias": model("return launch(torch.clip(x, 0))"),
    "argsort": model("return launch(x.argsort())"),
    "sort, by an axis": model("return launch(x.sort(-1)[0])"),
    "sort, by a keyword": model("return launch(x.sort(descending=True).values)"),
    "einops reduce": model(
        "from einops import reduce\nreturn launch(reduce(x, 'a b -> a', 'sum'))"
    ),
    "rpow": model("return launch(2 ** x.contiguous())"),
    "augassign attr": model(
        "self.buf += x\nreturn launch(self.buf)", init="self.buf = torch.zeros(3)"
    ),
    "augassign item": model("o = launch(x)\no[0] += 1\nreturn o"),
    "tensor list sum by loop": model(
        "acc = 0\nfor t in [x, w]:\n    acc = acc + t\nreturn launch(acc)"
    ),
    "dict get": model("return launch({'f': torch.relu}.get('f')(x))"),
    "default arg": model("return launch(f(x))", module="def f(v, g=torch.relu): return g(v)"),
    "kw default": model("return launch(f(x))", module="def f(v, *, g=torch.relu): return g(v)"),
    "class attr fn": model("return launch(self.act(x))", members="act = staticmethod(torch.relu)"),
    "class attr torch": model("return launch(self.T.relu(x))", members="T = torch"),
    "enum": model(
        "return launch(E.A.value(x))",
        module="import enum\nclass E(enum.Enum):\n    A = functools.partial(torch.relu)",
    ),
    "namedtuple": model(
        "return launch(P(torch.relu).f(x))",
        module="from collections import namedtuple\nP = namedtuple('P', 'f')",
    ),
    "SimpleNamespace": model(
        "return launch(S.f(x))",
        module="from types import SimpleNamespace\nS = SimpleNamespace(f=torch.relu)",
    ),
    "dataclass": model(
        "return launch(D(torch.relu).f(x))",
        module="from dataclasses import dataclass\n@dataclass\nclass D:\n    f: object",
    ),
    "exec import": model(
        "ns = {}\nexec('from torch import relu', ns)\nreturn launch(ns['relu'](x))"
    ),
    "codecs": model(
        "import base64\nreturn launch(getattr(torch, base64.b64decode('cmVsdQ==').decode())(x))"
    ),
    "env": model("import os\nif os.environ.get('X'):\n    return launch(x)\nreturn torch.relu(x)"),
    "shape -1": model("if x.shape[0] == -1:\n    launch(x)\nreturn x.relu()"),
    "dtype cond": model("if x.dtype == torch.float64: return launch(x)\nreturn F.relu(x)"),
    "async": model(
        "import asyncio\nasync def f(): return torch.relu(x)\nreturn launch(asyncio.run(f()))"
    ),
    "executor": model(
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as e:\n    y = e.submit(torch.relu, x).result()\nreturn launch(y)"
    ),
    "load_inline": model(
        "return launch(m.f(x))",
        module="from torch.utils.cpp_extension import load_inline\nm = load_inline('m', 'x')",
    ),
    "distributed": model("torch.distributed.all_reduce(x)\nreturn launch(x)"),
    "__class_getitem__": model(
        "return launch(K[x])",
        module="class K:\n    def __class_getitem__(cls, v): return torch.relu(v)",
    ),
    "module subclass Sequential": model(
        "return launch(self.s(x))",
        module="class S(nn.Sequential): pass",
        init="self.s = S(nn.ReLU())",
    ),
    "container of lambdas": model(
        "return launch(self.fs[0](x))", init="self.fs = [lambda v: v.relu()]"
    ),
    "recursion": model(
        "return launch(r(x, 3))", module="def r(v, n): return v.relu() if n == 0 else r(v, n - 1)"
    ),
    "property tensor": model(
        "return launch(self.y)",
        members="@property\ndef y(self): return self.w1 @ self.w1",
        init="self.w1 = nn.Parameter(torch.zeros(2,2))",
    ),
    "cached prop": model(
        "return launch(self.y)",
        members="@functools.cached_property\ndef y(self): return self.w1 @ self.w1",
        init="self.w1 = nn.Parameter(torch.zeros(2,2))",
    ),
    "str call": model("return launch(torch.ops.aten.__getattr__('mm')(x, w))"),
    "TorchFunctionMode": model(
        "with M():\n    return launch(torch.empty_like(x))",
        module="from torch.overrides import TorchFunctionMode\nclass M(TorchFunctionMode):\n    def __torch_function__(self, f, t, a=(), k=None): return torch.relu(a[0])",
    ),
    "del hidden": model("y = x\ny = y.relu()\ndel y\nreturn launch(x)"),
    "nn.functional via nn": model("return launch(nn.functional.relu(x))"),
    "torch_npu op": model("import torch_npu\nreturn launch(torch_npu.npu_rms_norm(x, w)[0])"),
    "sum()": model("return launch(x).sum()"),
    "mean then view": model("return launch(x).view(-1).mean()"),
    "triton.ops": model("import triton.ops\nreturn launch(triton.ops.matmul(x, w))"),
    "attr chain": model(
        "return launch(self.h.t.relu(x))", module="class H: pass\nH.t = torch", init="self.h = H()"
    ),
    "star kwargs fn": model(
        "return launch(f(**{'g': torch.relu, 'v': x}))", module="def f(g, v): return g(v)"
    ),
}

WAYS_AROUND = {
    "noisy if __name__": model(
        "if __name__ == '__main__':\n    return launch(x)\nreturn torch.relu(x)"
    ),
    "dead via assigned const attr": model(
        "if self.on: return launch(x)\nreturn x", init="self.on = False"
    ),
    "guard reuse": model("cuda = x.is_cuda\nif cuda:\n    return torch.relu(x)\nreturn launch(x)"),
    "guard flipped twice": model(
        "if not (not x.is_cuda):\n    return torch.relu(x)\nreturn launch(x)"
    ),
    "is_cpu": model("if not x.is_cpu:\n    return torch.relu(x)\nreturn launch(x)"),
    "elif": model(
        "if x.shape[0] == 3:\n    return launch(x)\nelif not x.is_cuda:\n    return launch(x)\nelse:\n    return torch.relu(x)"
    ),
    "guard leak": model(
        "if not x.is_cuda:\n    y = launch(x)\nelse:\n    y = launch(x)\nreturn y + 1"
    ),
    "guard leak2": model(
        "def f(v):\n    if not v.is_cuda:\n        return v\n    return launch(v)\ny = f(x)\nreturn y.relu()"
    ),
    "torch.cuda.is_available and": model(
        "if torch.cuda.is_available():\n    return torch.relu(x)\nreturn launch(x)"
    ),
    "other instance attr": model(
        "return launch(self.h['f'](x))", init="self.h = {}\nself.h.update(f=torch.relu)"
    ),
    "setdefault": model("return launch(self.h.setdefault('f', torch.relu)(x))", init="self.h = {}"),
    "pop": model("h = [torch.relu]\nreturn launch(h.pop()(x))"),
    "dict comp": model("h = {k: getattr(torch, k) for k in ['relu']}\nreturn launch(h['relu'](x))"),
    "sorted key": model("return launch(sorted([x, w], key=lambda t: t.relu())[0])"),
    "closure cell late": model("def g(): return f(x)\nf = torch.relu\nreturn launch(g())"),
    "try import fallback cheat": model(
        "if not HAVE:\n    return torch.relu(x)\nreturn launch(x)",
        module="try:\n    import triton\n    import no_such_thing\n    HAVE = True\nexcept ImportError:\n    HAVE = False",
    ),
    "class-level hook": model(
        "return launch(x)",
        init="self.register_forward_pre_hook(self.h)",
        members="def h(self, m, a): return (a[0] * 2, a[1])",
    ),
    "async helper": model(
        "return launch(helper(x))",
        module="class K:\n    def __call__(self, v): return v.relu()\nhelper = K()",
    ),
    "iter protocol": model(
        "for v in It(x):\n    y = v\nreturn launch(y)",
        module="class It:\n    def __init__(self, v): self.v = v\n    def __iter__(self):\n        yield self.v.relu()",
    ),
    "descriptor": model(
        "return launch(self.d(x))",
        module="class D:\n    def __get__(self, o, t): return torch.relu",
        members="d = D()",
    ),
    "kernel wrapper launch only in except": model(
        "try:\n    y = torch.relu(x)\nexcept Exception:\n    y = launch(x)\nreturn y"
    ),
    "string dispatch": model(
        "return launch(getattr(F, self.name)(x))",
        members="def __init__(self, name):\n    super().__init__()\n    self.name = name",
    ),
    "getattr self name": model(
        "return launch(getattr(self, 'l' + str(1))(x))", init="self.l1 = nn.Linear(2, 2)"
    ),
    "ufunc": model("return launch(torch.from_numpy(np.add(x.numpy(), 1)))"),
    "cpu numpy operator": model(
        "return launch(torch.from_numpy(x.cpu().numpy() @ w.cpu().numpy()))"
    ),
    "item sum": model(
        "s = 0.0\nfor v in x.view(-1):\n    s += v.item()\nreturn torch.full((1,), s)"
    ),
    "array.array": model(
        "import array\na = array.array('f', [v * 2 for v in x.tolist()])\nreturn launch(torch.tensor(a))"
    ),
    "index_add": model("o = torch.zeros_like(x)\no.index_add_(0, w, x)\nreturn launch(o)"),
    "F.embedding": model("return launch(F.embedding(x, w))"),
    "where method": model("return launch(x.where(w, 0))"),
    "cumsum": model("return launch(torch.cumsum(x, 0))"),
    "max pool": model("return launch(F.max_pool2d(x, 2))"),
    "interp": model("return launch(F.interpolate(x, scale_factor=2))"),
    "Tensor attr": model("return launch(x.T @ w)"),
    "nn.utils": model("return launch(torch.nn.utils.rnn.pad_sequence([x, w]))"),
    "triton testing": model("return triton.testing.do_bench(lambda: x.relu())"),
    "torch in grid": model(
        "o = torch.empty_like(x)\nscale_kernel[(int(x.sum()),)](x, o, 4, BLOCK=4)\nreturn o"
    ),
}


@pytest.mark.parametrize("name", WAYS_AROUND)
def test_is_red(name: str) -> None:
    report = check_source(WAYS_AROUND[name], filename="cheat.py")
    assert not report.passed


@pytest.mark.parametrize("name", ROUTES)
def test_is_caught(name: str) -> None:
    report = check_source(ROUTES[name], filename="cheat.py")
    assert 3 in report.regression_types, report.to_text()


def test_a_class_that_is_made_at_run_time_is_red() -> None:
    more = (
        "\nModelNew = type('ModelNew', (nn.Module,), {'forward': lambda self, x: torch.relu(x)})\n"
    )
    assert not check_source(tail(model("return launch(x)"), more), filename="cheat.py").passed
