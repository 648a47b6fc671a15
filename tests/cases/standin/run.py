"""Run every idiom of a file in this process, under a stand-in, and print what became of each.

An idiom is a function of the file; it asserts, and may return the words that `used` must give.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from typing import Any


def main(kind: str, path: str) -> None:
    from pytest_tritonverify import interpreter, standin
    from pytest_tritonverify.standin import usage

    standin.install(kind)
    interpreter.prepare()
    spec = importlib.util.spec_from_file_location("idioms", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["idioms"] = module
    spec.loader.exec_module(module)
    results: dict[str, str] = {}
    for name, idiom in list(vars(module).items()):
        if not name.startswith("idiom_"):
            continue
        usage.forget()
        try:
            words: Any = idiom()
            if words is not None:
                assert standin.used() == sorted(words), standin.used()
            results[name] = ""
        except BaseException:  # noqa: BLE001 - told to the test
            results[name] = traceback.format_exc()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
