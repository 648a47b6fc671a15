"""What an observer's process tells of a run."""

from __future__ import annotations

from typing import Any

PLACE = {"file": "f.py", "line": 3}
ENTRY = {**PLACE, "name": "forward", "digest": "ab", "wrappers": []}
ENTRY_FACTS = {
    "own_class": True,
    "bound_on_instance": [],
    "forward": ENTRY,
    "call": None,
    "is_module": True,
    "call_is_torchs": True,
    "hooks": [],
    "threads": 1,
}
OBSERVED: dict[str, Any] = {
    "launches": [
        {
            "kernel": "k",
            **PLACE,
            "programs": 2,
            "completed": True,
            "wrote": ["o"],
            "tuned": False,
            "own_thread": True,
            "site_file": "f.py",
            "site_line": 4,
        }
    ],
    "launch_count": 1,
    "operators": [
        {"name": "aten.add", **PLACE, "on": ["input"], "reorders": False, "count": 1},
    ],
    "contents": {
        "0:x": {"kind": "odd", "digest": "ab", "tensor": "x", "kernel": "k", **PLACE},
    },
    "outputs": [{"path": "output", "marks": ["kernel"], "odd": None}],
    "events": [{"kind": "unexplained", "tensor": "x", "where": "here", **PLACE}],
    "before": ENTRY_FACTS,
    "after": ENTRY_FACTS,
    "changed": {"import": [], "build": [], "forward": ["torch.empty"]},
    "launcher_intact": True,
    "seconds": 0.1,
    "native": [{"name": "aten::add", "count": 2}],
    "device_kernels": [{"name": "k", "count": 1}],
    "problem": None,
    "calls": 3,
    "broke_off": None,
}
