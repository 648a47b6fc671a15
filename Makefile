# Two commands do everything on a fresh machine: `make verify` judges the examples, `make test` runs the suite.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEVICE ?= auto

.PHONY: verify test lint clean

verify: $(VENV)/.installed
	$(BIN)/python -m pytest --verify-dir=examples --verify-device=$(DEVICE) --ignore=examples/broken

test: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto --dist=loadfile

$(VENV)/.installed: pyproject.toml requirements/test.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --constraint requirements/test.txt --editable ".[cpu]"
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install -q --requirement requirements/test.txt
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
