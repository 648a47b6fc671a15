"""Judge outputs against golden ones: functions of CPU tensors and plain settings.

The package knows the two accuracy standards and nothing else: no pytest, no device runtime.
"""

from .judge import judge_outputs
from .routing import InputType, infer_input_type
from .rules import Rules
from .verdict import Caution, OutputsVerdict, OutputVerdict

__all__ = [
    "Caution",
    "InputType",
    "OutputVerdict",
    "OutputsVerdict",
    "Rules",
    "infer_input_type",
    "judge_outputs",
]
