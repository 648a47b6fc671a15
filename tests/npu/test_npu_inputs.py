"""Inputs arrive on the NPU as they were made: strides, offsets, aliases, types, values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.emulated_npu import emulated
from tests.support.npu import KERNEL
from tests.support.workers import write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.npu import Server

pytestmark = emulated

TASK = """
import numpy as np
import torch

class Model(torch.nn.Module):
    def forward(self, base, others, array, made):
        return base * 2

def get_inputs():
    base = torch.arange(24.0).reshape(4, 6)
    others = {
        "same": base,
        "transposed": base.t(),
        "part": base[1:, ::2],
        "bits": base.view(torch.int32),
        "expanded": torch.ones(1).expand(5),
        "half": torch.arange(3).half()[1:],
        "odd": torch.arange(7, dtype=torch.uint8)[:4].view(torch.float32),
        "empty": torch.empty(0, 3),
        "complex": torch.tensor([1 + 2j]).conj(),
        "number": torch.tensor(3),
    }
    return [base, others, np.arange(3.0), MADE]
""".replace("MADE", 'torch.full((2, 3), 5.0, device="npu").t() if hasattr(torch, "npu") else None')
MODEL = """
import numpy as np

class ModelNew(torch.nn.Module):
    def forward(self, base, others, array, made):
        assert all(tensor.device.type == "npu" for tensor in others.values())
        assert isinstance(array, np.ndarray) and array.tolist() == [0.0, 1.0, 2.0]
        assert type(base) is torch.Tensor and base.is_npu
        geometry = {name: (t.stride(), t.storage_offset()) for name, t in others.items()}
        assert geometry == {
            "same": ((6, 1), 0),
            "transposed": ((1, 6), 0),
            "part": ((6, 2), 6),
            "bits": ((6, 1), 0),
            "expanded": ((0,), 0),
            "half": ((1,), 1),
            "odd": ((1,), 0),
            "empty": ((3, 1), 0),
            "complex": ((1,), 0),
            "number": ((), 0),
        }, geometry
        values = {name: tensor.cpu() for name, tensor in others.items()}
        assert values["transposed"][1, 0] == 1 and values["part"][0, 1] == 8
        assert values["half"].tolist() == [1, 2] and values["number"] == 3
        assert values["complex"].resolve_conj().tolist() == [1 - 2j]
        assert values["odd"].view(torch.uint8).tolist() == [0, 1, 2, 3]
        assert made.device.type == "npu" and made.stride() == (1, 3) and made.cpu()[0, 0] == 5
        others["transposed"][0, 0] = 7
        assert base[0, 0].item() == 7 and others["bits"][0, 0].item() == 0x40E00000
        others["transposed"][0, 0] = 0
        return twice(base)
"""


def test_inputs_keep_everything(npu: Server, tmp_path: Path) -> None:
    pair = write_pair(tmp_path, TASK, KERNEL + MODEL)
    # Between guard bands they begin in the middle of other memory on an NPU.
    (record,) = npu.verdicts(pair, guard_bands="off")
    assert record.passed, record.error_msg
    assert record.warnings == []


def test_outputs_are_read_as_what_they_show(npu: Server, tmp_path: Path) -> None:
    task = """
    import torch

    class Model(torch.nn.Module):
        def forward(self, x):
            y = x * 2
            return {"t": y.t(), "part": y[1:, ::2], "same": y, "row": y[:1].expand(3, 6)}

    def get_inputs():
        return [torch.randn(4, 6)]
    """
    model = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = twice(x)
        return {"t": y.t(), "part": y[1:, ::2], "same": y, "row": y[:1].expand(3, 6)}
"""
    (record,) = npu.verdicts(write_pair(tmp_path, task, KERNEL + model))
    assert record.passed, record.error_msg
