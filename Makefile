# All commands of this project (CONTRIBUTING.md).  Python 3.11 or newer is needed as `python3`
# (or `make PYTHON=python3.12 ...`).  Virtual environments are created at first use and recreated
# when pyproject.toml changes.
#
#   make demo      train on scikit-learn's digits and show the graph (examples/digits.py)
#   make examples  run all examples
#   make test      lint, layers, types, tests and documentation: what CI runs
#   make quick     lint, layers and a few cases of each test: a minute
#   make test-all  what `make test` runs, with the slow tests, `make package` and `make first-steps`
#   make test-durations  run the tests and record their durations (tests/durations.json)
#   make test-oldest  a broad selection with the oldest NumPy, SciPy, llvmlite and optree
#                  that pyproject.toml allows (part of the two above); OLDEST_PYTHON=python3.12 where
#                  `python3` is newer than these versions know
#   make bench     run the benchmarks, on one thread and on all, and render their pages (an hour
#                  or two; downloads PyTorch and JAX into .venv-bench); for some suites only:
#                  `make bench BENCH_OPTIONS="--only native --one-thread"`
#   make guard     costs of hot paths compared with stored ones (a minute);
#                  `make guard-update` stores the present ones
#   make gradbench GradBench's own evals against wengert: GRADBENCH=path of a checkout of it
#   make peers     run both sides of the pages for users of JAX, PyTorch, CasADi, Stan and PyMC
#   make docs      generate pages, then run all code blocks and docstring examples
#   make docs-site the documentation site, in out/site/html; a warning is a failure
#   make browser   install Chromium with apt, for the tests that look at pages; they are skipped, and
#                  the run says so, where there is none
#   make package   build wheels and sdists, and install them in new environments
#   make first-steps  install in a new environment, and follow the pages for beginners literally
#   make lint      ruff; `make format` fixes what it can
#   make clean     remove environments and caches

PYTHON ?= python3
BIN := .venv/bin
BENCH := .venv-bench/bin
OLDEST := .venv-oldest/bin
OLDEST_PYTHON ?= $(PYTHON)
PYTENSOR := .venv-pytensor/bin
PYMC := .venv-pymc/bin

# Number of test processes.
PROCESSES ?= 2
# Small matrix products do not gain from threads, and are slow with them on busy cores.
quick test test-all test-oldest test-durations: export OPENBLAS_NUM_THREADS ?= 1

# Bytecode is compiled at first import and cached: with pip's compilation installing takes twice as
# long, and without a cache each process compiles again.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile

.DEFAULT_GOAL := test
.NOTPARALLEL:
.PHONY: demo examples quick test test-all test-durations test-oldest peers bench gradbench guard guard-update docs docs-site browser package first-steps lint format layers types clean

demo: .venv/ready
	@$(BIN)/python examples/digits.py

examples: .venv/ready
	@for script in examples/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

quick: lint layers
	@$(BIN)/python tests/run.py -n $(PROCESSES) --quick

test: lint layers
	@$(BIN)/python tests/run.py -n $(PROCESSES)
	@$(MAKE) --no-print-directory test-oldest

test-all: lint layers .venv/ptxas
	@$(BIN)/python tests/run.py -n $(PROCESSES) -m ""
	@$(MAKE) --no-print-directory test-oldest package first-steps

test-durations: .venv/ready
	@$(BIN)/python tests/run.py -n $(PROCESSES) --record

test-oldest: .venv-oldest/ready
	@$(OLDEST)/python tests/run.py -n $(PROCESSES) -p no:cacheprovider $$($(OLDEST)/python tests/oldest.py tests)

peers: .venv/ready .venv-bench/ready .venv-pymc/ready
	@$(BIN)/python -m pytest -m "" tests/compat/test_pages_of_peers.py tests/compat/test_stan_page.py

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

docs-site: .venv/ready
	@$(BIN)/python -m tools.documentation.build

browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
		command -v $$name && exit 0; done; \
	command -v apt-get > /dev/null || { echo "no apt here: install Chromium, so that \`chromium\` is on the path"; exit 1; }; \
	$$(test $$(id -u) = 0 || echo sudo) apt-get install --yes --no-install-recommends chromium

package: .venv/ready
	@$(BIN)/python tools/package_check.py

first-steps: .venv/ready
	@$(BIN)/python tools/first_steps.py

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
	rm -rf .venv .venv-bench .venv-oldest .venv-pytensor .venv-pymc build dist .mypy_cache .ruff_cache .pytest_cache
	rm -rf .import_linter_cache .hypothesis src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The file `ready` marks an environment as complete, so that an interrupted install is repeated.

.venv/ready: pyproject.toml extras/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "wengert needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@echo "preparing .venv (once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(INSTALL) -e '.[dev,demo,show,learn,onnx,editors,docs]' -e extras
	@touch $@

# NVIDIA's assembler, which only `make test-all` runs: 40 MB, on platforms that have it.
.venv/ptxas: .venv/ready
	@$(BIN)/python $(INSTALL) -e '.[ptxas]'
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

# PyMC needs an older PyTensor than the benchmarks.
.venv-pymc/ready:
	@echo "preparing .venv-pymc (once)"
	@$(PYTHON) -m venv .venv-pymc
	@$(PYMC)/python $(INSTALL) 'pymc>=5'
	@touch $@

# PyTensor has its own environment, since it pins other versions (benchmarks/native/elsewhere.py).
.venv-pytensor/ready: pyproject.toml
	@echo "preparing .venv-pytensor (once)"
	@$(PYTHON) -m venv .venv-pytensor
	@$(PYTENSOR)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["bench-pytensor"], sep="\n")' > .venv-pytensor/requirements.txt
	@$(PYTENSOR)/python $(INSTALL) -r .venv-pytensor/requirements.txt
	@touch $@
