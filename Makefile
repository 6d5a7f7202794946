# Everything is installed into .venv. On Debian `make run` and `make test` need only python3,
# python3-venv, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_OUTPUT := out
SEEDS ?= 4
SEED ?= 1
ARGUMENTS ?=
MODELS ?=
LIBRARIES ?= newest

.PHONY: run test test-python test-pythons crosscheck hostile reasons soak survival accuracy bench bench-networks pnnx lint format \
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

# Run the tests on another Python, in an environment such as .venv-3.12-newest:
#   make test-python PYTHON=python3.12
# LIBRARIES=lowest takes the lowest versions of the libraries; ARGUMENTS=tests/engine selects tests.
test-python: system-libraries
	bash .ci/test_python.sh $(PYTHON) $(LIBRARIES) $(ARGUMENTS)

# Run the tests on every Python of this machine, as CI does, and print a table.
test-pythons:
	PYTHON=$(PYTHON) bash .ci/pythons.sh

# Export random modules with pnnx and compare the engine with PyTorch. Needs both, which are large.
# SEEDS is the number of cases per specification; ARGUMENTS="--only relu" selects some.
crosscheck: $(VENV)/.crosscheck
	PYTHONPATH=tests $(BIN)/python -m crosscheck --seeds $(SEEDS) $(ARGUMENTS)

# Measure the error of every kernel of the element-wise operators, and of PyTorch where it is
# installed. ARGUMENTS="--only silu" selects some.
accuracy: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m accuracy $(ARGUMENTS)

# Open and run malicious models on every backend; not part of the tests. SEEDS is their number.
hostile: $(VENV)/.test
	PYTHONPATH=tests QT_QPA_PLATFORM=offscreen $(BIN)/python -m hostile --seeds $(SEEDS) $(ARGUMENTS)

# Plant faults in operators, let PyTorch compute the reference, and count the correct reasons.
# SEEDS is the number of each fault; ARGUMENTS="--only conv --verbose" selects some.
reasons: $(VENV)/.crosscheck
	PYTHONPATH=tests $(BIN)/python -m reasons --seeds $(SEEDS) $(ARGUMENTS)

# Do random actions in a window while files change, and compare with NumPy at times; not part of
# the tests. SEED sets the random seed. ARGUMENTS="--actions 500" or "--seconds 60" set the length;
# "--kills 200" kills the engine instead, and "--rewrites 50" rewrites the open model.
soak: $(VENV)/.test system-libraries
	PYTHONPATH=tests QT_QPA_PLATFORM=offscreen $(BIN)/python -m soak --seed $(SEED) $(ARGUMENTS)

# Kill workers, commands and schedulers of sweeps, damage inputs, fill the disk, and check that
# nothing is lost; not part of the tests. SEED sets the random seed. ARGUMENTS="--only disk" selects.
survival: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m survival --seed $(SEED) $(ARGUMENTS)

# Measure the speed of everything beside other programs; not part of the tests. MODELS is a folder
# of exported networks, which bench-networks makes; ARGUMENTS="--only 4" selects one.
bench: $(VENV)/.bench system-libraries
	PYTHONPATH=tests $(BIN)/python -m benchmarks $(if $(MODELS),--models $(MODELS)) $(ARGUMENTS)

bench-networks: $(VENV)/.bench
	@test -n "$(MODELS)" || { echo "Name a folder: make bench-networks MODELS=DIR"; exit 2; }
	PYTHONPATH=tests $(BIN)/python -m benchmarks.networks $(MODELS) $(ARGUMENTS)

# Install the exporter, to open .pt and .onnx. It does not need PyTorch, which its package requires.
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

# Build the wheel, install it into an empty environment and run a whole session there.
wheel: $(VENV)/.lint system-libraries
	bash .ci/check_wheel.sh $(BIN)/python

check: lint wheel test

# Make the sample models again. Needs PyTorch and pnnx, which are large.
samples: $(VENV)/.samples
	$(BIN)/python samples/make_samples.py
	$(BIN)/python samples/layers/contrast_net.py

# Build the manual and the API reference in site/.
docs: $(VENV)/.docs
	$(BIN)/python docs/scripts/make_command_line.py
	$(BIN)/mkdocs build --strict --quiet
	@echo "The manual is in site/index.html."

# Draw the pictures of the manual again, from real runs.
pictures: $(VENV)/.app system-libraries
	QT_QPA_PLATFORM=offscreen $(BIN)/python docs/scripts/make_pictures.py
	QT_QPA_PLATFORM=offscreen $(BIN)/python docs/scripts/make_gallery.py

system-libraries:
	@bash .ci/system_libraries.sh

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.app: pyproject.toml | $(VENV)/bin/python
	@echo "Installing the libraries into $(VENV): a few minutes, and only this once."
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
