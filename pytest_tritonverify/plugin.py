"""The plugin's entry point: options, and the decision whether a run concerns it at all.

Every pytest run of the environment imports this module, so it imports next to nothing. The
hooks of active runs are in `hooks`.
"""

from __future__ import annotations

from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Define options and ini values."""
    from pytest_tritonverify import options

    options.add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Refuse conftest files of candidates before pytest imports them."""
    from pytest_tritonverify import startup

    if startup.concerns_us(early_config):
        startup.translate(early_config, args)
        startup.activate(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers and, in a run that concerns the plugin, its hooks."""
    config.addinivalue_line("markers", "verify: judges one case of a Triton implementation")
    config.addinivalue_line("markers", "verify_benchmark: measures one case of it")
    from pytest_tritonverify import startup

    if startup.concerns_us(config):
        startup.configure(config)


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Name the option for folders of pairs in which pytest has found nothing to collect."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        from pytest_tritonverify import startup

        for line in startup.overlooked(config, terminalreporter.stats):
            terminalreporter.write_line(line)
