"""Ways to have PyTorch, or others, do a kernel's work. Each launches a real kernel, too."""

# ruff: noqa: E501 - a case reads best on one line

from __future__ import annotations

import pytest

from pytest_tritonverify.degeneration import check_source
from tests.support.degeneration_snippets import model

CHEATS: dict[str, dict[str, str]] = {
    "operator": {"forward": "return launch(x @ w)"},
    "plus": {"forward": "return launch(x + w)"},
    "arguments rebuilt in a comprehension": {
        "module": "def both(*args):\n    args = [v.contiguous() for v in args]\n"
        "    first, second = args\n    return first + second",
        "forward": "return launch(both(x, w))",
    },
    "a tensor is a tensor": {
        "module": "from torch import Tensor as DTensor",
        "forward": "if isinstance(x, DTensor):\n    x = x.exp()\nreturn launch(x)",
    },
    "in a named tuple": {
        "module": "from collections import namedtuple\nPair = namedtuple('Pair', 'first second')",
        "forward": "made = Pair(launch(x), w)\nreturn made.first + made.second",
    },
    "plus, then return": {"forward": "launch(x)\nreturn x + w"},
    "inputs that are never said to be tensors": {
        "forward": "y = x * w\no = self.out\nscale_kernel[(4,)](y, o, 1024, BLOCK=256)\nreturn o",
        "init": "self.register_buffer('out', torch.empty(1024))",
    },
    "in place": {"forward": "x += w\nreturn launch(x)"},
    "unary": {"forward": "return launch(-x.contiguous())"},
    "comparison": {"forward": "return launch((x.contiguous() > w).to(torch.float32))"},
    "parameter": {
        "forward": "return launch(x) * self.scale",
        "init": "self.scale = nn.Parameter(torch.ones(1))",
    },
    "shape gives no licence": {"forward": "return launch(x.view(x.shape[0], -1) * x.shape[0])"},
    "alias of an alias": {
        "module": "t = torch\nm = t.matmul\nmm = m",
        "forward": "return launch(mm(x, w))",
    },
    "import under a false name": {
        "module": "from torch import matmul as empty_like",
        "forward": "return launch(empty_like(x, w))",
    },
    "import inside": {
        "forward": "from torch.nn import functional as views\nreturn launch(views.relu(x))"
    },
    "star import": {"module": "from torch import *", "forward": "return launch(matmul(x, w))"},
    "getattr": {"forward": "return launch(getattr(torch, 'mat' + 'mul')(x, w))"},
    "getattr of a reversed name": {
        "forward": "return launch(getattr(torch, 'lumtam'[::-1])(x, w))"
    },
    "getattr of a joined name": {
        "forward": "return launch(getattr(torch, ''.join(['r', 'elu']))(x))"
    },
    "getattr of a name made at run time": {
        "forward": "return launch(getattr(torch, ''.join(map(chr, [114, 101, 108, 117])))(x))"
    },
    "getattr on the tensor": {"forward": "return launch(getattr(x, 're' + 'lu')())"},
    "module dictionary": {"forward": "return launch(torch.__dict__['matmul'](x, w))"},
    "vars": {"forward": "return launch(vars(torch)['matmul'](x, w))"},
    "globals": {"forward": "return launch(globals()['torch'].matmul(x, w))"},
    "sys.modules": {
        "module": "import sys",
        "forward": "return launch(sys.modules['torch'].matmul(x, w))",
    },
    "__import__": {"forward": "return launch(__import__('torch').matmul(x, w))"},
    "__import__ of a name made at run time": {
        "forward": "n = str(x)\nreturn launch(__import__(n).matmul(x, w))"
    },
    "operator module": {"forward": "return launch(operator.matmul(x, w))"},
    "methodcaller": {"forward": "return launch(operator.methodcaller('matmul', w)(x))"},
    "attrgetter": {"forward": "return launch(operator.attrgetter('nn.functional.relu')(torch)(x))"},
    "special method": {"forward": "return launch(x.__matmul__(w))"},
    "method by name": {"forward": "return launch(x.matmul(w))"},
    "method, kept": {"forward": "m = x.matmul\nreturn launch(m(w))"},
    "method in place": {"forward": "y = launch(x)\ny.mul_(2)\nreturn y"},
    "class of the tensor": {"forward": "return launch(type(x).matmul(x, w))"},
    "unbound method": {"forward": "return launch(torch.Tensor.matmul(x, w))"},
    "torch.ops": {"forward": "return launch(torch.ops.aten.mm.default(x, w))"},
    "torch.linalg": {"forward": "return launch(torch.linalg.norm(x))"},
    "torch.special": {"forward": "return launch(torch.special.expit(x))"},
    "torch._C": {"forward": "return launch(torch._C._nn.gelu(x))"},
    "inductor": {
        "module": "from torch._inductor.select_algorithm import extern_kernels",
        "forward": "y = torch.empty_like(x)\nextern_kernels.mm(x, w, out=y)\nreturn launch(y)",
    },
    "reduce": {"forward": "return launch(functools.reduce(torch.add, [x, w]))"},
    "sum of a list": {"forward": "return launch(sum([x, w]))"},
    "max of tensors": {"forward": "return launch(max(x.contiguous(), w))"},
    "map": {"forward": "return launch(list(map(torch.relu, [x]))[0])"},
    "comprehension": {"forward": "return launch([f(x) for f in (torch.relu,)][0])"},
    "dictionary of functions": {
        "module": "OPS = {'a': torch.relu}",
        "forward": "return launch(OPS['a'](x))",
    },
    "list of functions, appended": {
        "forward": "fs = []\nfs.append(torch.relu)\nreturn launch(fs[0](x))"
    },
    "partial": {
        "module": "mm = functools.partial(torch.matmul)",
        "forward": "return launch(mm(x, w))",
    },
    "lambda": {"module": "act = lambda v: torch.relu(v)", "forward": "return launch(act(x))"},
    "lambda in an attribute": {
        "init": "self.act = lambda v: torch.relu(v)",
        "forward": "return launch(self.act(x))",
    },
    "helper of a helper": {
        "module": "def a(v): return b(v)\ndef b(v): return c(v)\ndef c(v): return v.relu()",
        "forward": "return launch(a(x))",
    },
    "helper, called with keywords": {
        "module": "def a(*, left, right): return left @ right",
        "forward": "return launch(a(left=x, right=w))",
    },
    "helper, called with stars": {
        "module": "def a(*args, **kw): return args[0] @ kw['w']",
        "forward": "return launch(a(*[x], **{'w': w}))",
    },
    "helper after many other calls": {
        "module": "def ap(f, v): return f(v)",
        "forward": "\n".join(f"v{i} = ap(lambda a: a.view({i}), x)" for i in range(30))
        + "\nreturn launch(ap(torch.relu, x))",
    },
    "method of the class": {
        "members": "def run(self, v): return v.relu()",
        "forward": "return launch(self.run(x))",
    },
    "property": {
        "members": "@property\ndef act(self): return torch.relu",
        "forward": "return launch(self.act(x))",
    },
    "static method": {
        "members": "@staticmethod\ndef act(v): return torch.relu(v)",
        "forward": "return launch(ModelNew.act(x))",
    },
    "__getattr__": {
        "members": "def __getattr__(self, name): return torch.relu",
        "forward": "return launch(self.anything(x))",
    },
    "base class": {
        "module": "class Base(nn.Module):\n    def act(self, v): return torch.relu(v)",
        "forward": "return launch(Base.act(self, x))",
    },
    "closure": {
        "forward": "def outer():\n    def inner(): return x @ w\n    return inner\nreturn launch(outer()())"
    },
    "nonlocal": {
        "forward": "y = None\ndef g():\n    nonlocal y\n    y = x.relu()\ng()\nreturn launch(y)"
    },
    "generator": {"forward": "def g():\n    yield x @ w\nreturn launch(next(g()))"},
    "decorator": {
        "module": "def deco(f):\n    def inner(v): return f(torch.relu(v))\n    return inner\n"
        "@deco\ndef run(v): return launch(v)",
        "forward": "return run(x)",
    },
    "context manager": {
        "module": "class C:\n    def __enter__(self): return torch.relu\n    def __exit__(self, *a): pass",
        "forward": "with C() as f:\n    y = f(x)\nreturn launch(y)",
    },
    "operator of a class": {
        "module": "class V:\n    def __init__(self, v): self.v = v\n"
        "    def __matmul__(self, o): return torch.matmul(self.v, o.v)",
        "forward": "return launch(V(x) @ V(w))",
    },
    "autograd function": {
        "module": "class Fn(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, a, b): return torch.matmul(a, b)",
        "forward": "return launch(Fn.apply(x, w))",
    },
    "layer": {"init": "self.fc = nn.Linear(4, 4)", "forward": "return launch(self.fc(x))"},
    "layer, by its forward": {
        "init": "self.fc = nn.Linear(4, 4)",
        "forward": "return launch(self.fc.forward(x))",
    },
    "layers in a sequence": {
        "init": "self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())",
        "forward": "return launch(self.net(x))",
    },
    "layers in a list": {
        "init": "self.fs = nn.ModuleList([nn.ReLU() for _ in range(2)])",
        "forward": "for f in self.fs:\n    x = f(x)\nreturn launch(x)",
    },
    "subclass of a layer": {
        "module": "class L(nn.Linear):\n    pass",
        "init": "self.fc = L(4, 4)",
        "forward": "return launch(self.fc(x))",
    },
    "super of a layer": {
        "module": "class L(nn.Linear):\n    def forward(self, v): return super().forward(v)",
        "init": "self.fc = L(4, 4)",
        "forward": "return launch(self.fc(x))",
    },
    "torch.compile": {
        "module": "@torch.compile\ndef f(v): return launch(v)",
        "forward": "return f(x)",
    },
    "compiled forward": {
        "init": "self.forward = torch.compile(self.forward)",
        "forward": "return launch(x)",
    },
    "forward, replaced": {
        "members": "def other(self, x, w): return torch.relu(launch(x))",
        "init": "self.forward = self.other",
        "forward": "return launch(x)",
    },
    "__call__": {
        "members": "def __call__(self, x, w): return torch.relu(x)",
        "forward": "return launch(x)",
    },
    "forward hook": {
        "init": "self.register_forward_hook(lambda m, i, o: torch.relu(o))",
        "forward": "return launch(x)",
    },
    "setattr": {
        "init": "setattr(self, 'a' + 'ct', torch.relu)",
        "forward": "return launch(self.act(x))",
    },
    "instance dictionary": {
        "init": "self.__dict__['act'] = torch.relu",
        "forward": "return launch(self.act(x))",
    },
    "state that is set later": {
        "forward": "if hasattr(self, 'f'):\n    x = self.f(x)\nself.f = torch.relu\nreturn launch(x)"
    },
    "counting calls": {
        "forward": "self.n = getattr(self, 'n', 0) + 1\n"
        "if self.n <= 5:\n    return launch(x)\nreturn torch.relu(x)"
    },
    "except": {
        "forward": "try:\n    return launch(x)\nexcept Exception:\n    return torch.relu(x)"
    },
    "except, by assignment": {
        "forward": "f = launch\ntry:\n    f = torch.relu\n    raise ValueError\nexcept ValueError:\n    pass\nreturn f(x)"
    },
    "finally": {"forward": "try:\n    y = launch(x)\nfinally:\n    y = torch.relu(x)\nreturn y"},
    "loop that ends early": {
        "forward": "f = launch\nfor i in range(3):\n    if i:\n        f = torch.relu\n        break\nreturn launch(f(x))"
    },
    "wrong side of a device test": {
        "forward": "if x.is_cuda:\n    return torch.relu(x)\nreturn launch(x)"
    },
    "device test and more": {
        "forward": "if not x.is_cuda or x.dtype == torch.float32:\n    return torch.relu(x)\nreturn launch(x)"
    },
    "training": {"forward": "if self.training:\n    return torch.relu(x)\nreturn launch(x)"},
    "numpy": {"forward": "return launch(torch.from_numpy(np.maximum(x.numpy(), 0)))"},
    "numpy by operator": {"forward": "return launch(torch.as_tensor(x.numpy() * 2))"},
    "lists": {"forward": "return launch(torch.tensor([v * 2 for v in x.tolist()]))"},
    "math on elements": {
        "forward": "return launch(torch.tensor([math.exp(v) for v in x.tolist()]))"
    },
    "element by element": {
        "forward": "o = torch.empty(4)\no[0] = x[0].item() * 2\nreturn launch(o)"
    },
    "index by a tensor": {"forward": "return launch(x.contiguous()[w.long()])"},
    "exec": {"forward": "exec('y = torch.relu(x)')\nreturn launch(x)"},
    "eval": {"forward": "return launch(eval('x @ w'))"},
    "task file": {
        "module": "from softmax_torch import Model",
        "forward": "return launch(Model()(x))",
    },
    "task class": {
        "module": "import softmax_torch",
        "forward": "return launch(softmax_torch.Model()(x))",
    },
    "library": {"module": "import flag_gems", "forward": "return launch(flag_gems.mm(x, w))"},
    "subclass of Tensor": {"module": "class T(torch.Tensor): pass", "forward": "return launch(x)"},
    "thread": {
        "module": "import threading",
        "forward": "t = threading.Thread(target=lambda: torch.mm(x, w))\nt.start()\nreturn launch(x)",
    },
    "replaced timer": {
        "module": "import time\ntime.perf_counter = lambda: 0.0",
        "forward": "return launch(x)",
    },
    "hook of a configuration": {
        "module": "@triton.autotune(configs=[triton.Config({}, pre_hook=lambda a: "
        "a['o'].copy_(torch.relu(a['x'])))], key=[])\n@triton.jit\n"
        "def k2(x, o, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
        "    tl.store(o + i, tl.load(x + i, mask=i < n, other=0.0) * 2.0, mask=i < n)",
        "forward": "o = torch.empty_like(x)\nk2[(1,)](x, o, 4, B=4)\nreturn o",
    },
    "something handed in": {
        "init": "self.f = unknown_thing",
        "module": "from somewhere import unknown_thing",
        "forward": "return launch(self.f(x.contiguous()))",
    },
    "global, set by a function": {
        "module": "act = None\ndef prepare():\n    global act\n    act = torch.relu",
        "forward": "prepare()\nreturn launch(act(x))",
    },
    "walrus": {"forward": "return launch((f := torch.relu)(x))"},
    "conditional expression": {
        "forward": "return launch((torch.relu if x.shape[0] else torch.abs)(x))"
    },
    "boolean expression": {"forward": "return launch((None or torch.relu)(x))"},
    "match": {
        "forward": "match x.dim():\n    case 2:\n        return torch.relu(x)\n    case _:\n        return launch(x)"
    },
    "swapped variables": {"forward": "a, b = torch.relu, launch\na, b = b, a\nreturn launch(b(x))"},
    "starred assignment": {"forward": "a, *b = launch, torch.relu\nreturn launch(b[0](x))"},
    "nested containers": {
        "module": "D = {'k': [(torch.relu,)]}",
        "forward": "return launch(D['k'][0][0](x))",
    },
    "bound by iteration": {
        "forward": "for name, f in {'a': torch.relu}.items():\n    x = f(x)\nreturn launch(x)"
    },
    "zip": {"forward": "for f, v in zip([torch.relu], [x]):\n    y = f(v)\nreturn launch(y)"},
    "cached by lru_cache": {
        "module": "@functools.lru_cache\ndef fn(): return torch.relu",
        "forward": "return launch(fn()(x))",
    },
    "grid function": {
        "forward": "o = torch.empty_like(x)\n"
        "scale_kernel[lambda meta: (torch.relu(x).numel(),)](x, o, 4, BLOCK=4)\nreturn o"
    },
}


@pytest.mark.parametrize("name", CHEATS)
def test_is_caught(name: str) -> None:
    report = check_source(model(**CHEATS[name]), filename="cheat.py")
    assert 3 in report.regression_types, report.to_text()
    assert not report.passed
    assert report.violations
    for violation in report.violations:
        assert violation.reason
        assert violation.advice
        assert violation.line > 0
        assert violation.column > 0


DEAD_LAUNCHES = {
    "if False": "if False:\n    launch(x)\nreturn x",
    "if 0": "if 0:\n    launch(x)\nreturn x",
    "constant": "ON = False\nif ON:\n    launch(x)\nreturn x",
    "comparison": "if 1 > 2:\n    launch(x)\nreturn x",
    "while": "while False:\n    launch(x)\nreturn x",
    "no rounds": "for _ in range(0):\n    launch(x)\nreturn x",
    "empty tuple": "for _ in ():\n    launch(x)\nreturn x",
    "after return": "return x\nlaunch(x)",
    "after both return": "if x.shape[0]:\n    return x\nelse:\n    return x\nlaunch(x)",
    "after raise": "raise ValueError\nlaunch(x)",
    "assert": "assert False\nlaunch(x)",
    "never called": "def g():\n    launch(x)\nreturn x",
    "lambda, never called": "g = lambda: launch(x)\nreturn x",
    "and": "False and launch(x)\nreturn x",
    "conditional expression": "y = launch(x) if False else x\nreturn y",
    "comprehension": "[launch(x) for _ in range(2) if False]\nreturn x",
    "empty grid": "scale_kernel[(0,)](x, x, 4, BLOCK=4)\nreturn x",
    "empty grid function": "scale_kernel[lambda m: (1, 0)](x, x, 4, BLOCK=4)\nreturn x",
    "named, not launched": "scale_kernel\nreturn x",
    "grid, not launched": "scale_kernel[(1,)]\nreturn x",
    "another method": "return x",
}


@pytest.mark.parametrize("name", DEAD_LAUNCHES)
def test_a_launch_that_is_never_reached_does_not_count(name: str) -> None:
    source = model(DEAD_LAUNCHES[name], members="def test(self, x): return launch(x)")
    report = check_source(source, filename="dead.py")
    assert report.regression_types == (2,), report.to_text()


DECOYS = {
    "copy": "v",
    "times one": "v * 1.0",
    "one times": "1 * v",
    "plus zero": "v + 0.0",
    "both": "v * 1.0 + 0.0",
    "minus zero": "v - 0",
    "by one": "v / 1",
    "to the first": "v ** 1",
    "cast": "v.to(tl.float32)",
    "reshaped": "tl.reshape(v, (BLOCK,))",
    "maximum": "tl.maximum(v, -float('inf'))",
    "minimum": "tl.minimum(v, float('inf'))",
    "zeros": "v + tl.zeros((BLOCK,), dtype=tl.float32)",
    "ones": "v * tl.full((BLOCK,), 1.0, tl.float32)",
    "where": "tl.where(mask, v, v)",
    "where, padded": "tl.where(mask, v, 0.0)",
    "helper": "same(v)",
    "plus sign": "+v",
    "constant": "3.0",
    "fma": "tl.fma(v, 1.0, 0.0)",
}


@pytest.mark.parametrize("name", DECOYS)
def test_a_kernel_that_only_copies_computes_nothing(name: str) -> None:
    kernel = f"""
@triton.jit
def same(v):
    return v

@triton.jit
def decoy(x_ptr, o_ptr, n, ONE: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    v = tl.load(x_ptr + offs, mask=mask, other=0.0)
    waste = tl.exp(v)
    tl.store(o_ptr + offs, {DECOYS[name]}, mask=mask)
"""
    forward = "o = torch.empty_like(x)\ndecoy[(1,)](x, o, x.numel(), 1, BLOCK=256)\nreturn o"
    report = check_source(model(forward, module=kernel), filename="decoy.py")
    assert report.regression_types == (4,), report.to_text()
    moving = check_source(model(forward, module=kernel), filename="decoy.py", non_compute=True)
    assert moving.passed, moving.to_text()
