"""What options may be set to. Every pytest run imports this module, so it imports nothing."""

from __future__ import annotations

DEVICE = ("auto", "npu", "cuda", "cpu")
START = ("auto", "fork", "spawn")
DEGENERATION = ("strict", "partial", "warn", "off")
EXECUTION = ("fail", "warn", "off")
HIDDEN_STATE = ("fail", "off")
STANDIN = ("auto", "npu", "cuda", "off")
AUTOTUNE = ("first", "all")
MASKED_LANES = ("poison", "zero")
GOLDEN = ("own", "float64")
GUARD_BANDS = ("on", "off")
ISOLATION = ("auto", "require", "off")

STRESS_RUNS = 50
"""Runs of a case under stress where no number is given: the open standard's own."""
