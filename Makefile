# Everything happens in .venv; `make run` and `make test` need nothing else on a Debian with
# python3, python3-venv, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_OUTPUT := out
SEEDS ?= 4
SEED ?= 1
ARGUMENTS ?=
MODELS ?=
LIBRARIES ?= newest

.PHONY: run test test-python test-pythons crosscheck hostile reasons soak accuracy bench bench-networks pnnx lint format \
  wheel check samples docs pictures clean system-libraries

run: $(VENV)/.app system-libraries
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname)" = Darwin ]; then \
	  $(BIN)/python -m kuiper_studio --sample; \
	else \
	  echo "There is no display: doing the same work without a window."; \
	  QT_QPA_PLATFORM=offscreen $(BIN)/python -m kuiper_studio --sample --demo $(RUN_OUTPUT); \
	fi

test: $(VENV)/.test system-libraries
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest $(ARGUMENTS)

# The same on another Python, in .venv-3.12-newest: make test-python PYTHON=python3.12, with the
# lowest versions of the libraries by LIBRARIES=lowest. ARGUMENTS=tests/engine for some tests.
test-python: system-libraries
	bash .ci/test_python.sh $(PYTHON) $(LIBRARIES) $(ARGUMENTS)

# Both, on every Python that is found here, with a table at the end; what CI does.
test-pythons:
	PYTHON=$(PYTHON) bash .ci/pythons.sh

# Random modules, exported with pnnx, here and in PyTorch; needs both, which are large.
# SEEDS is how many cases each specification draws; ARGUMENTS="--only relu" and so on.
crosscheck: $(VENV)/.crosscheck
	PYTHONPATH=tests $(BIN)/python -m crosscheck --seeds $(SEEDS) $(ARGUMENTS)

# How near element-wise results are to what is right, by everything that computes them, and
# by PyTorch where it is installed. ARGUMENTS="--only silu" and so on.
accuracy: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m accuracy $(ARGUMENTS)

# Models that are made to do harm, on every backend; no test. SEEDS is how many.
hostile: $(VENV)/.test
	PYTHONPATH=tests QT_QPA_PLATFORM=offscreen $(BIN)/python -m hostile --seeds $(SEEDS) $(ARGUMENTS)

# Faults planted in operators while PyTorch computes the truth: how many are explained right.
# SEEDS is how many of each; ARGUMENTS="--only conv --verbose" and so on.
reasons: $(VENV)/.crosscheck
	PYTHONPATH=tests $(BIN)/python -m reasons --seeds $(SEEDS) $(ARGUMENTS)

# Random actions on a window while files change underneath, compared with NumPy now and then; no
# test. SEED chooses them; ARGUMENTS="--actions 500", or "--seconds 60" to end after a minute, or
# instead "--kills 200" of the engine, or "--rewrites 50" of the open model.
soak: $(VENV)/.test system-libraries
	PYTHONPATH=tests QT_QPA_PLATFORM=offscreen $(BIN)/python -m soak --seed $(SEED) $(ARGUMENTS)

# How fast everything is, beside what it is compared with; no test. MODELS is a folder of
# exported networks, which bench-networks makes; ARGUMENTS="--only 4" and so on.
bench: $(VENV)/.bench system-libraries
	PYTHONPATH=tests $(BIN)/python -m benchmarks $(if $(MODELS),--models $(MODELS)) $(ARGUMENTS)

bench-networks: $(VENV)/.bench
	@test -n "$(MODELS)" || { echo "Name a folder: make bench-networks MODELS=DIR"; exit 2; }
	PYTHONPATH=tests $(BIN)/python -m benchmarks.networks $(MODELS) $(ARGUMENTS)

# The exporter alone, to open .pt and .onnx; PyTorch, which its package asks for, is not needed.
pnnx: $(VENV)/.app
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps pnnx

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Build the wheel, install it into an empty environment and do a whole session from there.
wheel: $(VENV)/.lint system-libraries
	bash .ci/check_wheel.sh $(BIN)/python

check: lint wheel test

# Make the sample models anew; needs PyTorch and pnnx, which are large.
samples: $(VENV)/.samples
	$(BIN)/python samples/make_samples.py
	$(BIN)/python samples/layers/contrast_net.py

# The manual and the API reference, in site/.
docs: $(VENV)/.docs
	$(BIN)/python docs/scripts/make_command_line.py
	$(BIN)/mkdocs build --strict --quiet
	@echo "The manual is in site/index.html."

# The pictures of the manual anew, from real runs.
pictures: $(VENV)/.app system-libraries
	QT_QPA_PLATFORM=offscreen $(BIN)/python docs/scripts/make_pictures.py

system-libraries:
	@bash .ci/system_libraries.sh

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.app: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@$(BIN)/python -m compileall -q engine kuiper_studio  # as pip does for a wheel
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	@touch $@

$(VENV)/.lint: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,lint]"
	@touch $@

$(VENV)/.crosscheck: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,crosscheck]"
	@touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	@touch $@

$(VENV)/.samples: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,samples]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

clean:
	rm -rf $(VENV) .venv-*-newest .venv-*-lowest $(RUN_OUTPUT) site dist build .pytest_cache .mypy_cache .ruff_cache \
	  .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
