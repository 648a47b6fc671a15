"""`python -m pytest_tritonverify COMMAND`: drop-in commands for workflows built on scripts."""

from __future__ import annotations

import sys

from pytest_tritonverify.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
