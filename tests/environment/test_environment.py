"""The environment fingerprint: its sections, what survives a broken set-up, and its digests."""

from __future__ import annotations

import hashlib
import json
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.environment import CacheFacts, collect, sources
from tests.support.environments import SECTIONS, InstallTriton

if TYPE_CHECKING:
    import pytest


def test_every_section_in_the_documented_order() -> None:
    found = collect(
        device="cpu",
        cmdline={"triton_impl_name": "triton_ascend_impl", "non_compute": False},
        cache=CacheFacts(),
    )
    assert list(found) == SECTIONS
    assert list(cast("dict[str, object]", found["device"])) == [
        "ASCEND_RT_VISIBLE_DEVICES",
        "current_device",
        "npu_name",
        "backend",
        "name",
    ]
    assert list(cast("dict[str, object]", found["cache"])) == [
        "dir",
        "fresh",
        "fresh_effective",
        "always_compile",
    ]
    assert list(cast("dict[str, object]", found["torch"])) == ["version", "torch_npu_version"]
    assert list(cast("dict[str, object]", found["cmdline"])) == ["triton_impl_name", "non_compute"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_timestamp_is_now_with_the_local_offset_and_no_fraction() -> None:
    text = str(collect(device="cpu", cmdline={}, cache=CacheFacts())["timestamp"])
    moment = datetime.fromisoformat(text)
    now = datetime.now().astimezone()
    assert moment.utcoffset() == now.utcoffset()
    assert moment.microsecond == 0
    assert timedelta(0) <= now - moment < timedelta(minutes=10)


def test_every_section_fails_on_its_own(
    monkeypatch: pytest.MonkeyPatch, install_triton: InstallTriton
) -> None:
    install_triton()
    monkeypatch.setitem(cast("dict[str, Any]", sys.modules), "torch", None)
    found = collect(device="npu", cmdline={"non_compute": True}, cache=CacheFacts())
    assert list(found) == SECTIONS
    for name in ("triton", "cann", "torch", "device"):
        assert "Error: " in cast("dict[str, str]", found[name])["error"], name
    assert found["cmdline"] == {"non_compute": True}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_options_are_copied_as_json_values() -> None:
    given_options: dict[str, object] = {
        "triton_impl_name": "triton_x",
        "timeout": 900,
        "limit": float("inf"),
        "ratio": 0.5,
        "dirs": (Path("a"), None),
        "nested": {1: True},
    }
    assert collect(device="cpu", cmdline=given_options, cache=CacheFacts())["cmdline"] == {
        "triton_impl_name": "triton_x",
        "timeout": 900,
        "limit": None,
        "ratio": 0.5,
        "dirs": ["a", None],
        "nested": {"1": True},
    }


@settings(deadline=None, max_examples=20)
@given(content=st.binary(max_size=200))
def test_sources_are_told_by_their_contents(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("sources")
    file = folder / "op_torch.py"
    file.write_bytes(content)
    found = sources({"task": file, "data": folder / "op.json", "implementation": folder})
    assert list(found) == ["task", "data", "implementation"]
    assert found == {
        "task": hashlib.sha256(content).hexdigest(),
        "data": None,
        "implementation": None,
    }
