# make demo   the main job, on a fresh machine: sets up, trains, translates, explains (a second run is quick)
# make test   the whole test suite
# make torture   attacks every command for an hour: TORTURE_SECONDS=600 for ten minutes, TORTURE_SEED=7 to repeat one;
#                then property tests with other examples than the suite's; counts the attacks at the end
# Elsewhere than on a CPU: make setup TORCH_INDEX=https://download.pytorch.org/whl/cu128

PYTHON ?= python3
# the one place that pins PyTorch is the first line of requirements.txt that names it
TORCH ?= $(shell sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements.txt)
TORCH_INDEX ?=
BIN := .venv/bin
TORCH_OPTIONS := $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))

.PHONY: setup demo test test-fast coverage torture lint format bench docs site clean

setup: .venv/ready

.venv/ready: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check $(TORCH_OPTIONS) $(TORCH)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	-@WEITBLICK_KERNELS=$${WEITBLICK_KERNELS:-on} $(BIN)/python -m weitblick.fast  # faster; nothing needs it
	@touch $@

.venv/ready-dev: .venv/ready requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

demo: setup
	$(BIN)/weitblick demo --output demo

# two processes of one thread each, unless the user says otherwise; sets are in the same order every time
ONE_THREAD := PYTHONHASHSEED=$${PYTHONHASHSEED:-1} OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1}
# each takes one file after the other, the longest first (tests/conftest.py)
TWO_PROCESSES := -n 2 --dist loadfile --no-loadscope-reorder

test: .venv/ready-dev
	$(ONE_THREAD) $(BIN)/pytest $(TWO_PROCESSES)

test-fast: .venv/ready-dev
	$(ONE_THREAD) $(BIN)/pytest $(TWO_PROCESSES) -m "not slow"

# the whole suite, and which lines of the package it never runs (build/coverage: a page for each file)
coverage: .venv/ready-dev
	$(ONE_THREAD) $(BIN)/pytest $(TWO_PROCESSES) --cov=weitblick --cov-report=term:skip-covered --cov-report=html:build/coverage

TORTURE_SECONDS ?= 3600
TORTURE_SEED ?= $(shell date +%s)

torture: .venv/ready-dev
	@echo "TORTURE_SEED=$(TORTURE_SEED)"
	TORTURE_SECONDS=$(TORTURE_SECONDS) TORTURE_SEED=$(TORTURE_SEED) $(BIN)/pytest tests/torture
	TORTURE_SEED=$(TORTURE_SEED) $(BIN)/pytest -m hypothesis --hypothesis-seed=$(TORTURE_SEED)

lint: .venv/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	.ci/lint-page

format: .venv/ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# those that need no text of yours; benchmarks/README.md has them all
BENCHMARKS := kernels decoding_peers training_peers busy decoding training_step imported_decoding store

bench: .venv/ready-dev
	@for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; done

docs: setup
	$(BIN)/weitblick recipe reference > docs/recipe-reference.md

# the documentation as a site
site: .venv/ready-dev
	$(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf .venv demo build
