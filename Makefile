# Every target sets up what it needs; a second run finds it done. Settings:
#   PYTHON=python3.12   the interpreter that the virtual environment is made with (3.11 or newer)
#   TORCH=2.8.0         this torch instead of the locked one; TORCH=present keeps the interpreter's own, whatever it is
#   WHEELS=DIR          install from a directory that `make wheels` has filled, without network
#   EDT_CUDA=0          build Horovod for the CPU even where there is a CUDA torch
#   VENV=DIR            where the virtual environment is
#   ARGS="-k loader"    more arguments for pytest
# The environment remembers PYTHON, TORCH, WHEELS and EDT_CUDA, until `make clean`.
PYTHON ?= python3
TORCH ?=
WHEELS ?=
VENV ?= .venv
ARGS ?=
BIN := $(VENV)/bin
export EDT_TORCH := $(TORCH)
export EDT_WHEELS := $(WHEELS)
export EDT_VENV := $(VENV)
export EDT_PYTHON := $(if $(filter file,$(origin PYTHON)),,$(PYTHON))

# As root, Open MPI asks for this twice. Elsewhere it has no effect.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
unexport PYTHONPATH PYTHONHOME
# The tests start hundreds of processes, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# The environment's commands come first, whatever is active in the calling shell. Not for set-up itself: its
# python3 is the one that the environment is made of.
IN_VENV := PATH="$(abspath $(BIN)):$$PATH"

.DEFAULT_GOAL := help
.PHONY: help setup wheels demo test test-all test-affected test-torch gpu-check lint format doctor clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

setup: ## make the virtual environment in .venv, build Horovod and the native kernels
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'set-up: "$(PYTHON)" is missing or older than Python 3.11: install a newer Python,' \
	       'or name one: make PYTHON=python3.12 $(MAKECMDGOALS)' >&2; exit 1; }
	@"$(PYTHON)" tools/set_up.py

wheels: ## collect in DIR all that set-up fetches, for FOR_PYTHON=3.12 and TORCH; then: make setup WHEELS=DIR
	@"$(PYTHON)" tools/collect_wheels.py "$(or $(DIR),$(error make wheels DIR=directory))" $(and $(FOR_PYTHON),--python $(FOR_PYTHON)) \
	  $(and $(FOR_MACHINE),--machine $(FOR_MACHINE))

demo: setup ## train on real data while the number of workers changes
	@$(IN_VENV) edt demo

doctor: setup ## check this machine and the environment
	@$(IN_VENV) edt doctor

lint: setup ## ruff, mypy --strict, import-linter
	$(IN_VENV) ruff check .
	$(IN_VENV) ruff format --check .
	$(IN_VENV) mypy
	$(IN_VENV) lint-imports

test: lint ## lint, all unit and property tests, one end-to-end case for each promise
	$(IN_VENV) pytest -n 3 -m "not full" --hypothesis-profile=quick $(ARGS)

test-all: lint ## lint, and every test, properties on up to ten times as many examples
	$(IN_VENV) uv pip install --quiet --group trainers
	$(IN_VENV) pytest -n 3 --hypothesis-profile=full --timeout=1200 $(ARGS)

test-affected: setup ## of what only test-all runs: tests that cover the last change, for a quarter of an hour
	@files=$$($(IN_VENV) python tools/affected_tests.py) && \
	if [ -n "$$files" ]; then \
	  $(IN_VENV) pytest -n 3 -m full --begin-within=900 $(ARGS) $$files || [ $$? = 5 ]; fi  # 5: none of theirs is left

test-torch: ## the tests of exactness and of jobs with another torch: make test-torch TORCH=2.8.0
	@$(MAKE) --no-print-directory setup VENV=.venv-torch-$(or $(TORCH),$(error make test-torch TORCH=version))
	PATH="$(CURDIR)/.venv-torch-$(TORCH)/bin:$$PATH" pytest -n 2 -m "not full" --hypothesis-profile=quick $(ARGS) \
	  tests/edt_hvd tests/examples tests/system

gpu-check: ## what a machine with a GPU shows, in at most eight minutes: make gpu-check OUT=DIR [WHEELS=DIR]
	@"$(PYTHON)" tools/gpu_check.py $(and $(WHEELS),--wheels "$(WHEELS)") --out "$(or $(OUT),$(error make gpu-check OUT=directory))"

format: setup ## let ruff rewrite the sources
	$(IN_VENV) ruff check --fix .
	$(IN_VENV) ruff format .

clean: ## remove the environment and everything built (the cache of built wheels stays)
	rm -rf .venv .venv-* build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
