"""The options that change how outputs are judged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """Settings of a judgement.

    Attributes:
        non_compute: Judge every output by its bits, for operators that only move data.
        exact_int: Judge 32- and 64-bit integer outputs exactly even where floating-point inputs
            would allow a difference of one.
        hf32: Judge float32 outputs by the rows of hifloat32, for runs in which matrix products
            take their inputs with the eleven bits that HF32 keeps.
        stored: The reference returns what a kernel has left behind once, and changes no input
            whatever the kernel does.
    """

    non_compute: bool = False
    exact_int: bool = False
    hf32: bool = False
    stored: bool = False
