"""Pairs whose cases come in any order, as under pytest-randomly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_tritonverify.engine import Engine
from pytest_tritonverify.settings import Settings
from tests.support.device import DEVICE
from tests.support.living import is_alive
from tests.support.workers import attack

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = 5


def test_few_implementations_wait_for_their_next_case(tmp_path: Path) -> None:
    pairs = [attack(tmp_path / str(n), "print('process', os.getpid())") for n in range(PAIRS)]
    engine = Engine(Settings(device=DEVICE, start="fork"), None, frozenset())
    pids: list[int] = []
    try:
        cases = engine.catalogue.list(pairs[0]).cases
        for number in (1, 2):
            for pair in pairs:
                record = engine.judge(pair).run_case(number, cases[number - 1], 3, None)
                assert record.passed, record.error_msg
                pids += map(int, re.findall(r"process (\d+)", record.output))
                assert sum(map(is_alive, pids)) < PAIRS
    finally:
        engine.close()
    assert len(pids) == 2 * PAIRS
    assert not any(map(is_alive, pids))
