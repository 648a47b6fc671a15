"""`python -m pytest_tritonverify COMMAND`: drop-in commands for workflows built on scripts."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Python looks for modules in the current folder first, and that may be a candidate's.
    sys.path[:] = [entry for entry in sys.path if entry not in ("", os.getcwd())]  # noqa: PTH109 - nothing is imported yet
    from pytest_tritonverify.cli import main

    sys.exit(main(sys.argv[1:]))
