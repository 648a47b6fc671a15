"""The language under other names than `tl`: `from triton.language import load`, `exp = tl.exp`."""

from __future__ import annotations

import functools
import inspect
from types import SimpleNamespace
from typing import Any

from pytest_tritonverify.interpreter import launching, semantics
from pytest_tritonverify.interpreter.patching import missing, replace

_HOOKS = ("GridExecutor", "_patch_lang")


def obstacle(interpreter: Any) -> str | None:
    """Say what keeps the language from having other names in this version, if anything."""
    absent = missing(interpreter, _HOOKS)
    if absent:
        return f"its interpreter has no {', '.join(absent)}"
    # The second one knows whether a kernel is being run.
    return semantics.obstacle(interpreter) or launching.obstacle(interpreter)


def install(interpreter: Any) -> None:
    """Correct the interpreter's module and the language in place, without an `obstacle`.

    The interpreter replaces the functions of `tl` for the time of a launch. One that a module had
    taken from there before stays what it was, and refuses to be called without a compiler; here it
    finds the interpreter by itself.
    """
    language = interpreter.tl
    of_devices = [getattr(language.extra, name, None) for name in ("cuda", "hip")]
    for module in (language, language.core, language.math, *filter(None, of_devices)):
        bind(interpreter, module)
    key, _ = semantics.parameter(interpreter)
    # Some versions have methods that they forget to replace, such as `x.exp()`.
    for name, member in list(vars(language.tensor).items()):
        if inspect.isfunction(member) and key in inspect.signature(member).parameters:
            setattr(language.tensor, name, bound(interpreter, member))
    replace(interpreter, "_patch_lang", lambda f: _of_every_kernel(interpreter, f))


def bind(interpreter: Any, module: Any) -> None:
    """Let the functions of a module that belong to the language find the interpreter."""
    for name, member in list(vars(module).items()):
        if interpreter.tl.core.is_builtin(member) and not isinstance(member, type):
            setattr(module, name, bound(interpreter, member))


def bound(interpreter: Any, function: Any) -> Any:
    """Return a function of the language that can be called in a kernel from anywhere."""
    key, meaning = semantics.parameter(interpreter)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get(key) is None and launching.running():
            kwargs[key] = meaning
        return function(*args, **kwargs)

    return call


def _of_every_kernel(interpreter: Any, original: Any) -> Any:
    """Replace the language's functions once a launch, wherever a kernel knows them from."""
    language = interpreter.tl
    everything = SimpleNamespace(__globals__={"tl": language, "core": language.core})

    def _patch_lang(function: Any) -> Any:
        if not launching.running():
            return original(function)
        # The functions that a kernel calls come here too; all they need is in place by then.
        if getattr(language.core.load, "__triton_builtin__", False):
            return original(everything)
        # Older versions leave in place what they have replaced.
        scope = getattr(interpreter, "_LangPatchScope", None)
        return scope and scope()

    return _patch_lang
