"""Parts of the language that only triton-ascend has, on the interpreter."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.standin import ascend_language, facts, usage
from pytest_tritonverify.standin.refusals import StandinAttributeError, sentence
from pytest_tritonverify.standin.torch_npu import StandinModule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.standin.imports import Imports
    from pytest_tritonverify.standin.patches import Patches

_WORD = "language.extra"
_EXTRA = "triton.language.extra"
_BACKEND = "triton.backends.ascend"


class _Library(ModuleType):
    """The mathematical functions that this version of Triton has, under another name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        usage.note(_WORD)
        if not ascend_language.has_function(name):
            raise StandinAttributeError(sentence(f"{self.__name__}.{name}"))
        return ascend_language.function(name)


def install(imports: Imports, patches: Patches) -> None:
    """Provide what is missing, and what triton-ascend itself has for its compiler alone."""
    from triton import language

    for name, function in _FUNCTIONS.items():
        patches.set(language, name, function)
    if importlib.util.find_spec(_BACKEND) is None:
        ascend_language.install(patches)
    own = {name: getattr(language, name) for name in _SHARED if hasattr(language, name)}
    for package in ("cann", "ascend"):
        if importlib.util.find_spec(f"{_EXTRA}.{package}") is not None:
            continue
        extension = StandinModule(
            f"{_EXTRA}.{package}.extension", _WORD, {**own, **_FUNCTIONS, **_EXTENSIONS}
        )
        library = _Library(f"{_EXTRA}.{package}.libdevice")
        parts = {"extension": extension, "libdevice": library}
        parent = StandinModule(f"{_EXTRA}.{package}", _WORD, dict(parts))
        parent.__path__ = []
        for module in (parent, *parts.values()):
            imports.provide(module.__name__, functools.partial(_the, module), _WORD)
        patches.set(language.extra, package, parent)
    _answer_for_backend(imports, patches)


def _the(module: ModuleType) -> ModuleType:
    return module


def _answer_for_backend(imports: Imports, patches: Patches) -> None:
    """Answer for the driver of triton-ascend, which needs CANN where it is installed itself."""
    from pytest_tritonverify.standin.accelerator import Accelerator
    from pytest_tritonverify.standin.triton_driver import Driver

    accelerator = Accelerator("npu")
    driver = {
        "NPUUtils": lambda: Driver(accelerator).utils,
        "NPUDriver": lambda: Driver(accelerator),
    }
    if importlib.util.find_spec(_BACKEND) is not None:

        def replace_driver(module: ModuleType) -> None:
            for name, made in driver.items():
                patches.set(module, name, made)

        imports.complete(f"{_BACKEND}.driver", replace_driver)
        return
    contents: dict[str, dict[str, Any]] = {
        "": {},
        ".runtime": {},
        ".driver": driver,
        ".utils": {"get_ascend_arch_from_env": lambda: facts.NPU_NAME},
    }
    for suffix, names in contents.items():
        module = StandinModule(f"{_BACKEND}{suffix}", "triton.driver", names)
        module.__path__ = []
        imports.provide(module.__name__, functools.partial(_the, module), "triton.driver")


def _number(value: Any) -> int:
    """Return a Python number for one of the language: a constant, or a scalar."""
    value = getattr(value, "value", value)
    handle = getattr(value, "handle", None)
    return int(value if handle is None else handle.data.item())


def _places(
    offsets: Sequence[Any], sizes: Sequence[Any], strides: Sequence[Any]
) -> tuple[slice, ...]:
    numbers = (map(_number, part) for part in (offsets, sizes, strides))
    return tuple(
        slice(start, start + size * step, step) for start, size, step in zip(*numbers, strict=True)
    )


def _block(data: Any, like: Any) -> Any:
    from triton import language
    from triton.runtime.interpreter import TensorHandle

    kind = language.block_type(like.dtype, list(data.shape)) if data.shape else like.dtype
    return language.tensor(TensorHandle(data, like.handle.dtype), kind)


def extract_slice(ful: Any, offsets: Any, sizes: Any, strides: Any, **_: Any) -> Any:
    """Return the part of a block that begins at offsets, of the given sizes, by strides."""
    data = ful.handle.data[_places(offsets, sizes, strides)]
    wanted = tuple(_number(size) for size in sizes)
    if data.shape != wanted:
        raise ValueError(f"a slice of {wanted} at {offsets} reaches beyond a block of {ful.shape}")
    return _block(data.copy(), ful)


def insert_slice(ful: Any, sub: Any, offsets: Any, sizes: Any, strides: Any, **_: Any) -> Any:
    """Return a block with a part of it replaced."""
    data = ful.handle.data.copy()
    part = _places(offsets, sizes, strides)
    wanted = tuple(_number(size) for size in sizes)
    if data[part].shape != wanted:
        raise ValueError(f"a slice of {wanted} at {offsets} reaches beyond a block of {ful.shape}")
    data[part] = sub.handle.data.reshape(wanted)
    return _block(data, ful)


def get_element(src: Any, indice: Any, **_: Any) -> Any:
    """Return one element of a block."""
    from triton import language
    from triton.runtime.interpreter import TensorHandle

    data = src.handle.data[tuple(slice(n, n + 1) for n in map(_number, indice))]
    return language.tensor(TensorHandle(data.reshape(1), src.handle.dtype), src.dtype)


def parallel(start: Any, end: Any = None, step: Any = 1, **_: Any) -> range:
    """Return the numbers of a loop whose rounds may run side by side."""
    first, last = (0, start) if end is None else (start, end)
    return range(_number(first), _number(last), _number(step))


def _ignored(*_: Any, **__: Any) -> None:
    """Take advice for a compiler, and order between the two kinds of cores of one program."""


def _scope(**_: Any) -> contextlib.AbstractContextManager[None]:
    """Mark statements for one kind of cores."""
    return contextlib.nullcontext()


_FUNCTIONS: dict[str, Any] = {
    "extract_slice": extract_slice,
    "insert_slice": insert_slice,
    "get_element": get_element,
    "parallel": parallel,
    "compile_hint": _ignored,
    "multibuffer": _ignored,
    "sync_block_all": ascend_language.sync_block_all,
    "sync_block_set": _ignored,
    "sync_block_wait": _ignored,
}
_EXTENSIONS: dict[str, Any] = {"scope": _scope}
# What newer versions of triton-ascend have in the extension, and older ones in the language.
_SHARED = ("cast", "flip", "sort")
