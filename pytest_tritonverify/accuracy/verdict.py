"""What a judgement says: plain data, ready to be written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ErrorType = Literal["AccuracyError", "AssertionError", "StrictnessError"]

Category = Literal[
    "eco_open_source",
    "float_compute",
    "integer_compute",
    "quant_fp_to_int",
    "bool_output",
    "non_compute",
]


@dataclass(frozen=True)
class Caution:
    """Something that an accepted output's reader should know.

    Attributes:
        code: A stable name: `dtype_cast`, `integer_width`, `index_by_quantisation_rule`,
            `one_sided_rounding`, `nothing_finite`, `nothing_compared` or, from beside this
            package, `non_discriminating`, `input_mutated` and `input_not_mutated`.
        message: The same for people, with the output's path.
    """

    code: str
    message: str


@dataclass(frozen=True)
class Finding:
    """What a comparator found about one pair of tensors.

    Attributes:
        passed: Whether the rule holds.
        metrics: JSON-able numbers in the documented order.
        summary: One line that says what was counted and required.
        details: Further lines, such as the worst elements; empty when passed.
    """

    passed: bool
    metrics: dict[str, object]
    summary: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class OutputVerdict:
    """The verdict on one output.

    Attributes:
        path: Where it stands, such as `output`, `output[0]` or `output['x'][1]`.
        passed: Whether it agrees with the golden.
        category: The rule that decided, or None where a check before the rules did.
        dtype: The golden's, such as `torch.float32`; None for what is no tensor or number.
        shape: The golden's; None for what is no tensor or number.
        error_type: `AccuracyError` where a rule was broken, `AssertionError` where structure,
            shape, kind, dtype or non-finite positions differ, `StrictnessError` where what is
            asked for beyond the standard does not hold, None when passed.
        message: The verdict for people; its first line stands on its own.
        metrics: JSON-able numbers of the rule that decided; empty where none did.
        cautions: Warnings about this output.
    """

    path: str
    passed: bool
    category: Category | None
    dtype: str | None
    shape: tuple[int, ...] | None
    error_type: ErrorType | None
    message: str
    metrics: dict[str, object]
    cautions: tuple[Caution, ...] = ()


@dataclass(frozen=True)
class OutputsVerdict:
    """The verdict on all outputs of a case.

    Attributes:
        outputs: Every output's verdict, in order.
        message: All failing outputs for people; the first line is a verdict in one line.
    """

    outputs: tuple[OutputVerdict, ...]
    message: str

    @property
    def passed(self) -> bool:
        """Whether every output agrees with its golden."""
        return all(output.passed for output in self.outputs)

    @property
    def failures(self) -> tuple[OutputVerdict, ...]:
        """The failing outputs, in order."""
        return tuple(output for output in self.outputs if not output.passed)

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """The warnings of all outputs, in order."""
        return tuple(caution for output in self.outputs for caution in output.cautions)

    @property
    def error_type(self) -> ErrorType | None:
        """The first failing output's error type, or None when passed."""
        return next((output.error_type for output in self.failures), None)

    @property
    def metrics(self) -> dict[str, object] | None:
        """The first failing output's metrics; None when it has none or all passed."""
        return next((output.metrics or None for output in self.failures), None)
