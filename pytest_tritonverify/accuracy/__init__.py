"""Judge outputs against golden ones: functions of CPU tensors and plain settings.

The package knows the two accuracy standards and nothing else: no pytest, no device runtime.
"""

from pytest_tritonverify.accuracy.judge import judge_outputs
from pytest_tritonverify.accuracy.routing import InputType, infer_input_type
from pytest_tritonverify.accuracy.rules import Rules
from pytest_tritonverify.accuracy.verdict import Caution, OutputsVerdict, OutputVerdict

__all__ = [
    "Caution",
    "InputType",
    "OutputVerdict",
    "OutputsVerdict",
    "Rules",
    "infer_input_type",
    "judge_outputs",
]
