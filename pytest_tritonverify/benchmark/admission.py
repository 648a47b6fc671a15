"""Whether a pair may be measured: by what this run's verification found, or by an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.benchmark import gate
from pytest_tritonverify.benchmark.gate import Passage
from pytest_tritonverify.results import names, reliance, result_file

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.benchmark.items import Wanted
    from pytest_tritonverify.benchmark.standing import Standing
    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.engine import Engine
    from pytest_tritonverify.settings import Settings

_NOT_HERE = "verify 未在本进程完成"


class Admission:
    """Asks the gate, once for each pair that it lets pass.

    Args:
        settings: the session's settings.
        engine: knows the environment.
        required: a verification that passed is asked for at all.
    """

    def __init__(self, settings: Settings, engine: Engine, *, required: bool) -> None:
        self._settings = settings
        self._engine = engine
        self._required = required
        self._passages: dict[Path, Passage] = {}

    def ask(self, wanted: Wanted, standing: Standing) -> Passage:
        """Say whether a pair may be measured.

        Args:
            wanted: the case that is to be measured.
            standing: what this process has verified of the pair.
        """
        key = wanted.pair.implementation
        if key not in self._passages:
            self._passages[key] = self._passage(wanted, standing)
        return self._passages[key]

    def _passage(self, wanted: Wanted, standing: Standing) -> Passage:
        settings, pair = self._settings, wanted.pair
        if not self._required:
            return gate.lifted()
        path = self._result_of(pair)
        now = reliance.present(pair, settings, self._engine.fingerprint())
        if not wanted.verified_here:
            return gate.examine(path, now)
        missing = standing.missing(wanted.selected, wanted.checks)
        if missing:
            return Passage(
                opened=False,
                verify_json=path,
                situation=_NOT_HERE,
                detail=f"no outcome of {', '.join(missing[:5])} in the process that measures: "
                "under pytest-xdist use --dist=loadfile, which keeps a pair's items together",
            )
        content = result_file.document(
            pair.op,
            [standing.cases[k] for k in sorted(standing.cases)],
            self._engine.fingerprint(),
            result_file.sources_of(pair),
            checks=standing.checks,
            policies={"degeneration": settings.degeneration, "execution": settings.execution},
            in_process=settings.in_process,
        )
        return gate.judge(content, now, path)

    def _result_of(self, pair: Pair) -> Path:
        shared = names.is_shared(pair.implementation.parent)
        return self._settings.output or names.verify_result(pair, shared_folder=shared)
