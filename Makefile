# Every command of this project; needs make, and Python 3.11 or newer as `python3`
# (or `make PYTHON=python3.12 ...`).  The environments are made on first use and made again
# when pyproject.toml changes.
#
#   make demo      train on scikit-learn's digits and show the graph (examples/digits.py)
#   make examples  run every example in full
#   make test      lint, layers, types, tests and documentation: what CI runs
#   make quick     lint, layers and a few cases of each test: a minute
#   make test-all  what `make test` runs, with the slow tests
#   make test-durations  run the tests, and write down how long they took (tests/durations.json)
#   make test-oldest  a broad selection with the oldest NumPy, SciPy, llvmlite and optree
#                  that pyproject.toml allows (part of the two above); OLDEST_PYTHON=python3.12 where
#                  `python3` is newer than these versions know
#   make bench     measure beside the peers, on one thread and on all, and write the pages (an hour
#                  or two; downloads PyTorch and JAX into .venv-bench); for some suites only:
#                  `make bench BENCH_OPTIONS="--only native --one-thread"`
#   make guard     hot paths against what they cost when it was last written down (a minute);
#                  `make guard-update` writes down what they cost now
#   make gradbench GradBench's own evals against wengert: GRADBENCH=path of a checkout of it
#   make docs      write the generated pages, then run every code block and docstring example
#   make lint      ruff alone; `make format` repairs what it can
#   make clean     remove the environments and every cache

PYTHON ?= python3
BIN := .venv/bin
BENCH := .venv-bench/bin
OLDEST := .venv-oldest/bin
OLDEST_PYTHON ?= $(PYTHON)
PYTENSOR := .venv-pytensor/bin

# How many processes the tests are divided among.
PROCESSES ?= 2
# Small products gain nothing from threads, and lose much where the cores are busy.
quick test test-all test-oldest test-durations: export OPENBLAS_NUM_THREADS ?= 1

# Modules are compiled when they are first imported, and kept: pip, which would compile all of them,
# takes twice the time, and a process that keeps none pays for each import again.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile

.DEFAULT_GOAL := test
.NOTPARALLEL:
.PHONY: demo examples quick test test-all test-durations test-oldest bench gradbench guard guard-update docs lint format layers types clean

demo: .venv/ready
	@$(BIN)/python examples/digits.py

examples: .venv/ready
	@for script in examples/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

quick: lint layers
	@$(BIN)/python tests/run.py -n $(PROCESSES) --quick

test: lint layers types
	@$(BIN)/python tests/run.py -n $(PROCESSES)
	@$(MAKE) --no-print-directory test-oldest

test-all: lint layers types
	@$(BIN)/python tests/run.py -n $(PROCESSES) -m ""
	@$(MAKE) --no-print-directory test-oldest

test-durations: .venv/ready
	@$(BIN)/python tests/run.py -n $(PROCESSES) --record

test-oldest: .venv-oldest/ready
	@$(OLDEST)/python tests/run.py -n $(PROCESSES) -p no:cacheprovider $$($(OLDEST)/python tests/oldest.py tests)

lint: .venv/ready
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: .venv/ready
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

layers: .venv/ready
	@$(BIN)/lint-imports

types: .venv/ready
	@$(BIN)/mypy

docs: .venv/ready
	@$(BIN)/python benchmarks/suites.py --render
	@for script in docs/generate/*.py; do test ! -e $$script || $(BIN)/python $$script || exit 1; done
	@$(BIN)/python -m pytest tests/test_docs.py

bench: .venv-bench/ready .venv-pytensor/ready
	@$(BENCH)/python benchmarks/suites.py $(BENCH_OPTIONS)

guard: .venv/ready
	@$(BIN)/python benchmarks/guard.py --instructions

guard-update: .venv/ready
	@$(BIN)/python benchmarks/guard.py --instructions --update

# GradBench's evals need these two; ARGUMENTS are those of benchmarks/gradbench/checkout.py.
gradbench: .venv-bench/ready .venv-pytensor/ready
	@test -n "$(GRADBENCH)" || { echo "say GRADBENCH=path of a checkout of gradbench/gradbench"; exit 1; }
	@$(BENCH)/python -c 'import pydantic, dataclasses_json' 2>/dev/null \
		|| $(BENCH)/python -m pip install --quiet pydantic dataclasses-json
	@PYTHONPATH=benchmarks $(BENCH)/python -m gradbench.checkout "$(GRADBENCH)" $(ARGUMENTS)

clean:
	rm -rf .venv .venv-bench .venv-oldest .venv-pytensor build dist .mypy_cache .ruff_cache .pytest_cache
	rm -rf .import_linter_cache .hypothesis src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp marks an environment as complete, so that an interrupted install is repeated.

.venv/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "wengert needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@echo "preparing .venv (once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(INSTALL) -e '.[dev,demo,show,learn,onnx]'
	@touch $@

.venv-oldest/ready: pyproject.toml tests/oldest.py
	@echo "preparing .venv-oldest (once)"
	@$(OLDEST_PYTHON) -m venv --clear .venv-oldest
	@$(OLDEST)/python $(INSTALL) $$($(OLDEST)/python tests/oldest.py requirements)
	@$(OLDEST)/python $(INSTALL) --no-deps -e .
	@touch $@

.venv-bench/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "wengert needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@echo "preparing .venv-bench (once; this downloads PyTorch and JAX)"
	@$(PYTHON) -m venv .venv-bench
	@$(BENCH)/python $(INSTALL) -e '.[bench]'
	@touch $@

# PyTensor alone, whose pins are not ours; the benchmarks run it as a process (native/elsewhere.py).
.venv-pytensor/ready: pyproject.toml
	@echo "preparing .venv-pytensor (once)"
	@$(PYTHON) -m venv .venv-pytensor
	@$(PYTENSOR)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["bench-pytensor"], sep="\n")' > .venv-pytensor/requirements.txt
	@$(PYTENSOR)/python $(INSTALL) -r .venv-pytensor/requirements.txt
	@touch $@
