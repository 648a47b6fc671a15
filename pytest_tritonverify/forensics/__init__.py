"""Explain where and why an output differs from its golden.

Functions of CPU tensors and plain facts: no pytest, no device runtime. Nothing here decides
whether an output passes; it is asked after a rule has said that it does not.
"""

from pytest_tritonverify.forensics.diagnosing import diagnose
from pytest_tritonverify.forensics.facts import Diagnosis, FailedOutput, LaunchFacts, MaskedLoad
from pytest_tritonverify.forensics.picture import heat_map
from pytest_tritonverify.forensics.text import render

__all__ = [
    "Diagnosis",
    "FailedOutput",
    "LaunchFacts",
    "MaskedLoad",
    "diagnose",
    "heat_map",
    "render",
]
