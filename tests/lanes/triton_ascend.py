"""Judge the examples and the shared cases with triton-ascend's interpreter, in an environment.

    python tests/lanes/triton_ascend.py [--venv FOLDER] [--share SITE_PACKAGES] [TEST ...]
    python tests/lanes/triton_ascend.py --only-make [--venv FOLDER] [--share SITE_PACKAGES]

triton-ascend and triton are both the package `triton`, so that it needs an environment of its own,
which is made where it isn't there. With --share, PyTorch and what the tests need are taken from the
site-packages of another environment instead of being installed again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The package imports pybind11 and setuptools, and its interpreter breaks with numpy 2.4.
# ascendnpu-ir brings bishengir-compile along, which `--verify-compile` runs.
TRITON = (
    "triton-ascend==3.2.0",
    "ascendnpu-ir==1.2.0",
    "pybind11",
    "setuptools<81",
    "numpy<2.4",
)
PLAIN_NEEDS = ("torch", "ml_dtypes>=0.5", "-r", str(ROOT / "requirements" / "test.txt"))
# What concerns Triton; the other tests never meet it.
TESTS = (
    "tests/test_cases.py",
    "tests/environment",
    "tests/interpreter",
    "tests/standin",
    "tests/plugin/test_accelerator_code.py",
)
# Launches over several processes need tensor descriptors in the test's own kernels.
LEFT_OUT = ("tests/interpreter/test_interpreter_parallel.py",)


def make(folder: Path, shared: Path | None) -> Path:
    """Make the environment, and return its interpreter."""
    python = folder / "bin" / "python"
    marker, wanted = folder / ".installed", "\n".join(TRITON)
    if marker.exists() and marker.read_text(encoding="utf-8") == wanted:
        return python
    venv.create(folder, with_pip=True, clear=True)
    install = [str(python), "-m", "pip", "install", "-q"]
    if shared is None:
        subprocess.run([*install, *PLAIN_NEEDS], check=True)
        # What these have brought along gives way.
        subprocess.run([str(python), "-m", "pip", "uninstall", "-q", "-y", "triton"], check=True)
    # Last, and without their own wishes about other packages.
    subprocess.run([*install, "--no-deps", *TRITON, "--editable", str(ROOT)], check=True)
    if shared is not None:
        (own,) = folder.glob("lib/python*/site-packages")
        (own / "zz_shared.pth").write_text(f"{shared.resolve()}\n", encoding="utf-8")
    marker.write_text(wanted, encoding="utf-8")
    return python


def main() -> int:
    """Run the tests."""
    parser = argparse.ArgumentParser(description="Test with triton-ascend's interpreter.")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv-ascend", metavar="FOLDER")
    parser.add_argument("--share", type=Path, metavar="SITE_PACKAGES")
    parser.add_argument(
        "--only-make", action="store_true", help="make the environment, and test nothing"
    )
    parser.add_argument("tests", nargs="*", metavar="TEST", help="instead of all for Triton")
    known, options = parser.parse_known_args()
    python = make(known.venv.absolute(), known.share)
    if known.only_make:
        sys.stdout.write(f"{python}\n")
        return 0
    chosen = known.tests or [*TESTS, *(f"--ignore={path}" for path in LEFT_OUT)]
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", *chosen, *options]
    # What is tested lies here, whatever the shared environment has.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
