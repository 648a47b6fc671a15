"""Where models keep tensors, and the names under which they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.probe import scanning
from pytest_tritonverify.probe.inventory import MOST_TENSORS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Author = Callable[[str], Any]


def _scan(module: Any, folder: Path, *, top: bool = False) -> scanning.Found:
    level = scanning.module_values(module) if top else {}
    return scanning.scan(module.Model(), folder, level)


def _names(module: Any, folder: Path) -> set[str]:
    return set(_scan(module, folder).tensors)


def _body(statements: str) -> str:
    lines = "\n        ".join(statements.strip().splitlines())
    return f"""
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {lines}
"""


PLACES = {
    "parameter": ("self.w = nn.Parameter(torch.ones(2))", {"w"}),
    "buffer": ("self.register_buffer('b', torch.ones(2), persistent=False)", {"b"}),
    "submodule": ("self.a = nn.Linear(2, 2)", {"a.weight", "a.bias"}),
    "no_bias": ("self.a = nn.Linear(2, 2, bias=False)", {"a.weight"}),
    "attribute": ("self.w = torch.ones(2)", {"w"}),
    "private": ("self._w = torch.ones(2)", {"_w"}),
    "mangled": ("self.__w = torch.ones(2)", {"__w"}),
    "attribute_of_submodule": (
        "self.a = nn.ReLU()\nself.a.extra = torch.ones(2)",
        {"a.extra"},
    ),
    "modules_in_list": ("self.a = [nn.Linear(2, 2, bias=False)]", {"a.0.weight"}),
    "modules_in_private_tuple": ("self._a = (nn.Linear(2, 2, bias=False),)", {"_a.0.weight"}),
    "modules_in_dict": ("self.a = {'k': nn.Linear(2, 2, bias=False)}", {"a.k.weight"}),
    "module_list": ("self.a = nn.ModuleList([nn.Linear(2, 2, bias=False)])", {"a.0.weight"}),
    "nested": ("self.a = {'k': [(torch.ones(2),), {3: torch.ones(2)}]}", {"a.k.0.0", "a.k.1.3"}),
    "keys": (
        "self.a = {(1, 'x'): torch.ones(2), torch.float32: torch.ones(2), 'a.b': torch.ones(2)}",
        {"a.[1, x]", "a.[torch.float32]", "a.['a.b']"},
    ),
    "device_keys": (
        "self.a = {torch.device('cpu'): torch.ones(2), ('w', 'cuda:0'): torch.ones(2)}",
        {"a.[<device>]", "a.[w, <device>]"},
    ),
    "hidden_from_torch": (
        "self.__dict__['a'] = nn.Linear(2, 2, bias=False)",
        {"a.weight"},
    ),
    "partial": ("self.f = functools.partial(torch.add, torch.ones(2))", {"f.args.0"}),
    "closure": ("w = torch.ones(2)\nself.f = lambda x: x + w", {"f.closure.w"}),
    "tied": (
        "self.a, self.b = nn.Bilinear(1, 1, 1, False), nn.ReLU()\nself.b.weight = self.a.weight",
        {"a.weight", "b.weight"},
    ),
    "shared_module": (
        "self.a = nn.Linear(2, 2, bias=False)\nself.b = self.a",
        {"a.weight", "b.weight"},
    ),
    "cycle": ("self.a = [self, torch.ones(2)]", {"a.1"}),
    "lazy_layer": ("self.a = nn.LazyLinear(3)", set()),
    "empty": ("self.w = torch.empty(0)", set()),
    "numbers": ("self.n, self.f, self.s, self.k = 3, 0.5, 'text', None", set()),
}


@pytest.mark.parametrize(("body", "names"), PLACES.values(), ids=PLACES)
def test_place(author: Author, tmp_path: Path, body: str, names: set[str]) -> None:
    assert _names(author(_body(body)), tmp_path) == names


def test_parameters_and_buffers_are_told_apart(author: Author, tmp_path: Path) -> None:
    found = _scan(author(_body("self.a = [nn.BatchNorm1d(2)]\nself.w = torch.ones(2)")), tmp_path)
    plain = {name for name, held in found.tensors.items() if not held.registered}
    assert plain == {"w"}
    assert "a.0.running_mean" in found.tensors


def test_objects_of_the_authors_classes_are_looked_into(author: Author, tmp_path: Path) -> None:
    source = """
    import dataclasses

    @dataclasses.dataclass
    class Box:
        w: object

    class Slots:
        __slots__ = ("v", "unset")

    class Shared:
        table = {"t": torch.ones(2)}

    class Model:
        common = torch.ones(2)

        def __init__(self):
            self.box = Box(torch.ones(2))
            self.slots = Slots()
            self.slots.v = torch.ones(2)
            self.shared = Shared
    """
    names = {"box.w", "slots.v", "shared.table.t", "common"}
    assert _names(author(source), tmp_path) == names


def test_top_of_the_file_counts(author: Author, tmp_path: Path) -> None:
    source = """
    W = torch.ones(2)
    LAYER = nn.Linear(2, 2, bias=False)
    _CACHE = {"k": torch.ones(2)}
    __dunder = os

    class Keeper:
        store = [torch.ones(2)]

    KEEPER = Keeper()

    class Model(nn.Module):
        pass
    """
    found = _scan(author(source), tmp_path, top=True)
    names = {name.removeprefix("<module>.") for name in found.tensors}
    assert names == {"W", "LAYER.weight", "_CACHE.k", "Keeper.store.0", "KEEPER.store.0"}


def test_top_of_a_reference_counts_where_its_model_names_it(author: Author, tmp_path: Path) -> None:
    module = author("""
    W, UNUSED = torch.ones(2), torch.ones(2)
    _CACHE = {}
    DEEP = torch.ones(2)
    OF_INPUTS = torch.ones(2)

    @functools.lru_cache
    def deeper():
        return [DEEP for _ in range(2)]

    class Block(nn.Module):
        def forward(self, x):
            return deeper()

    class Model(nn.Module):
        @property
        def weight(self):
            return W

        def forward(self, x):
            return (lambda: _CACHE)() or Block()

    def get_inputs():
        return [OF_INPUTS]
    """)
    assert set(scanning.named_values(module.Model(), module)) >= {"W", "_CACHE", "DEEP"}
    assert not set(scanning.named_values(module.Model(), module)) & {"UNUSED", "OF_INPUTS"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_modules_are_looked_into(author: Author, tmp_path: Path) -> None:
    body = "self.a = torch.jit.script(nn.Sequential(nn.Linear(2, 2)))"
    assert _names(author(_body(body)), tmp_path) == {"a.0.weight", "a.0.bias"}


def test_lengths_of_sequences_are_told(author: Author, tmp_path: Path) -> None:
    body = """self.a = [torch.ones(2)] * 3
self.b = nn.Sequential(nn.ReLU(), nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
self.c = {torch.ones(2)}
self.d = nn.ParameterList([torch.ones(2)])"""
    assert _scan(author(_body(body)), tmp_path).sequences == {"a": 3, "b": 3, "c": None, "d": 1}


HOSTILE = {
    "property": """
        @property
        def w(self):
            raise RuntimeError("no")
        """,
    "getattr": """
        def __getattr__(self, name):
            raise SystemExit(0)
        """,
    "getattribute": """
        def __getattribute__(self, name):
            if name in ("_parameters", "__class__"):
                raise SystemExit(0)
            return object.__getattribute__(self, name)
        """,
    "dir": """
        def __dir__(self):
            raise RuntimeError("no")
        """,
    "named_parameters": """
        def named_parameters(self, *args, **kwargs):
            return iter([("w", torch.zeros(9))])
        """,
    "class": """
        @property
        def __class__(self):
            raise RuntimeError("no")
        """,
    "containers": """
        class Dict(dict):
            def items(self):
                raise RuntimeError("no")

        table = Dict(k=1)
        """,
}


@pytest.mark.parametrize("methods", HOSTILE.values(), ids=HOSTILE)
def test_nothing_is_asked_of_the_model_itself(author: Author, tmp_path: Path, methods: str) -> None:
    source = f"class Model(nn.Module):{methods}"
    module = author(source)
    model = module.Model()
    object.__getattribute__(model, "__dict__")["_parameters"]["w"] = module.torch.ones(2)
    found = scanning.scan(model, tmp_path, {})
    assert {name: tuple(held.tensor.shape) for name, held in found.tensors.items()} == {"w": (2,)}


def test_iteration_that_raises_ends_only_that_part(author: Author, tmp_path: Path) -> None:
    source = """
    class List(list):
        def __iter__(self):
            raise RuntimeError("no")

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = List([torch.ones(2)])
            self.w = torch.ones(2)
    """
    assert "w" in _names(author(source), tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        "self.a = [torch.ones(1) for _ in range(20_000)]",
        "a = torch.ones(1)\nfor _ in range(200): a = [a]\nself.a = a",
        "a = [torch.ones(1)]\nfor _ in range(39): a = [a, a, a]\nself.a = a",
        "self.a = {'k' * 1000: torch.ones(1)}",
        "self.w = torch.ones(1)\nself.a = [[i] for i in range(200_000)]",
    ],
    ids=["many", "deep", "shared", "long_names", "wide"],
)
def test_scan_is_bounded_and_says_so(author: Author, tmp_path: Path, body: str) -> None:
    found = _scan(author(_body(body)), tmp_path)
    assert len(found.tensors) <= MOST_TENSORS
    assert all(len(name) <= 300 for name in found.tensors)
    assert found.truncated or len(found.tensors) > 1
