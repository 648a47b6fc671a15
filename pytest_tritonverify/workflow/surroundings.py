"""What only a worker can tell: the environment as it is now, found without running user code."""

from __future__ import annotations

from typing import Any


def present() -> tuple[dict[str, Any] | None, str | None]:
    """Return the environment's sections, and why there are none.

    No device is touched: the installation of Triton and CANN is the same for all.
    """
    from pytest_tritonverify.engine import Engine
    from pytest_tritonverify.execution.host import HostError
    from pytest_tritonverify.settings import Settings

    try:
        engine = Engine(Settings(device="cpu"), None, frozenset())
    except HostError as error:
        return None, f"no process can be started: {error}"
    try:
        found = engine.fingerprint()
    finally:
        engine.close()
    if "error" in found:
        return None, f"the environment can't be asked: {found['error']}"
    return found, None
