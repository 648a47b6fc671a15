# Two commands do everything on a fresh machine: `make verify` judges the examples, `make test` runs the suite.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEVICE ?= auto

.PHONY: verify test types suite fuzz test-emulated-npu test-torch-npu ascend-lane ascend-env test-ascend-compile lint clean

verify: $(VENV)/.installed
	$(BIN)/python -m pytest --verify-dir=examples --verify-device=$(DEVICE) --ignore=examples/broken

test: lint
	$(MAKE) --no-print-directory -j2 types suite

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# At the same time: the types need one core, and at its end the suite has no work for all.
types: $(VENV)/.tested
	$(BIN)/mypy

suite: $(VENV)/.tested
	$(BIN)/python -m pytest -n auto --dist=loadfile --no-loadscope-reorder

# Minutes of damaged and made-up input for everything that reads what others have written.
FUZZ ?= 5000
fuzz: $(VENV)/.tested
	TRITONVERIFY_FUZZ=$(FUZZ) $(BIN)/python -m pytest tests/fuzzing -n auto

# Whole runs, and parts with real workers, on the emulated NPU; `test` makes a selection of them there.
test-emulated-npu: $(VENV)/.tested
	TRITONVERIFY_TEST_DEVICE=npu $(BIN)/python -m pytest -n auto --dist=loadfile --no-loadscope-reorder tests/test_cases.py \
	tests/plugin tests/benchmark/test_benchmark_plugin.py tests/evidence tests/execution tests/probe

# The real torch_npu beside the installed torch, on a machine without CANN; 125 MB, so not in `test`.
test-torch-npu: $(VENV)/.torch-npu
	TRITONVERIFY_TORCH_NPU=$(abspath $(VENV)/torch-npu) $(BIN)/python -m pytest tests/npu/test_npu_setups.py

$(VENV)/.torch-npu: $(VENV)/.tested
	version=$$($(BIN)/python -c "import importlib.metadata as m; print(m.version('torch').partition('+')[0])") && \
	$(BIN)/python -m pip install -q --no-deps --target $(VENV)/torch-npu torch_npu==$$version
	touch $@

# The examples and the shared cases with triton-ascend's interpreter, in .venv-ascend; not in `test` either.
# SHARE=<site-packages> takes torch and what the tests need from there.
ascend-lane:
	$(PYTHON) tests/lanes/triton_ascend.py $(if $(SHARE),--share $(SHARE))

# An environment with triton-ascend and ascendnpu-ir in .venv-ascend, where --verify-compile finds it.
ascend-env:
	$(PYTHON) tests/lanes/triton_ascend.py --only-make $(if $(SHARE),--share $(SHARE))

# Compiling for Ascend NPUs, which needs that environment; not in `test`.
test-ascend-compile: $(VENV)/.tested ascend-env
	TRITONVERIFY_ASCEND_PYTHON=$(abspath .venv-ascend/bin/python) $(BIN)/python -m pytest tests/plugin/test_compiling_ascend.py

$(VENV)/.installed: pyproject.toml requirements/test.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --constraint requirements/test.txt --editable ".[cpu]"
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install -q --requirement requirements/test.txt
	touch $@

clean:
	rm -rf $(VENV) .venv-ascend .pytest_cache .mypy_cache .ruff_cache
