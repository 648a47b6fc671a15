"""What the stand-in has not got, said in one sentence."""

from __future__ import annotations

from typing import Any


class StandinError(RuntimeError):
    """Code asked for something of a device that no stand-in can give."""


class StandinAttributeError(AttributeError, StandinError):
    """Code asked for a name that the stand-in for a module does not have."""


class StandinImportError(ModuleNotFoundError, StandinError):
    """Code imported a module that the stand-in does not have."""


def sentence(what: str) -> str:
    """Say that the stand-in lacks something."""
    return (
        f"{what} is not there on the CPU: this run's accelerator is only a stand-in, which does "
        "not have it; judge this code on a device (--verify-device)"
    )


def refuse(what: str) -> StandinError:
    """Make the error for something that the stand-in has not got."""
    return StandinError(sentence(what))


def refusing(what: str) -> Any:
    """Make a function that raises the error when it is called."""

    def refused(*_: Any, **__: Any) -> Any:
        raise refuse(what)

    return refused
