"""Run all kernels of this folder and save what they got: python run.py OUT."""

import sys

import torch
import triton

from pytest_tritonverify import interpreter

# As in a worker, before the first kernel is seen.
FIRST = interpreter.prepare()
AGAIN = interpreter.prepare(masked_lanes="poison")
interpreter.prepare()

import conversions
import faults
import lanes
import language
import models
import operators
import renamed


def main(out):
    torch.manual_seed(0)
    results = {
        "triton": triton.__version__,
        "reports": [FIRST.to_json(), AGAIN.to_json()],
        "conversions": conversions.run(),
        "operators": operators.run(),
        "refused": operators.refused(),
        "lanes": lanes.run(),
        "faults": faults.run(),
        "language": language.run(),
        "renamed": renamed.run(),
        "models": {dtype: models.run(dtype) for dtype in (torch.bfloat16, torch.float16)},
    }
    torch.save(results, out)


if __name__ == "__main__":
    main(sys.argv[1])
