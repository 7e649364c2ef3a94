# Every target works by itself on a fresh machine: it makes .venv first if that is missing or old.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed, each into the same .venv: enough for the demo and the page; the documentation
# site; everything, which tests need.
LIGHT := $(VENV)/.light
DOCS := $(VENV)/.docs
ALL := $(VENV)/.all
# Workers with one thread each are faster than one with several, and results stay the same. Two more
# than two cores have to do: many tests wait for a browser, a camera or a process.
WORKERS ?= 4
PYTEST_ARGS ?=
# Whole systems (pages in a browser, a cluster, killed servers, the built package and site, other
# libraries' own suites) are marked slow. Without them all tests take less than ten minutes on two
# cores. They run where CI is set, in "make test-all", and where PYTEST_ARGS names them.
QUICK := $(if $(CI)$(PYTEST_ARGS),,-m "not slow")
# File by file in the order of their names: the small files of verse/ come last, so that no worker
# is left alone with a long one (ordered by the number of tests, files of few long ones would be).
SPREAD := --dist loadfile --no-loadscope-reorder
# Bytecode is kept, even where the environment says otherwise: without it every process compiles
# torch anew, which takes seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo test test-all test-numbers lint bench docs build clean
.DEFAULT_GOAL := help

.PHONY: help
help:
	@echo "make setup   create $(VENV) with everything the commands need"
	@echo "make demo    show a small world to four learners, a minute (demo/index.html)"
	@echo "make test    run the tests        (WORKERS=4 PYTEST_ARGS='tests/test_x.py -k name')"
	@echo "make test-all    those of whole systems, too: browser, cluster, killed servers, package"
	@echo "make test-numbers  the tests of numbers without this processor's vector instructions"
	@echo "make lint    style, types and import layers"
	@echo "make bench   measure speed"
	@echo "make docs    build the documentation into site/"
	@echo "make build   build wheel and sdist into dist/"

setup: $(ALL)

# Exact versions come from constraints.txt, torch's among them, so that nothing picks another one.
INSTALL = test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); \
	echo "Installing into $(VENV): once, a minute or two plus what the download takes …"; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

$(LIGHT): pyproject.toml constraints.txt
	@$(INSTALL) -e '.[report,serve]'
	@touch $@

$(DOCS): pyproject.toml constraints.txt
	@$(INSTALL) -e '.[docs]'
	@touch $@

$(ALL): pyproject.toml constraints.txt
	@$(INSTALL) -e '.[all,docs,dev]'
	@touch $@ $(LIGHT) $(DOCS)

demo: announce $(LIGHT)
	@$(BIN)/python demo.py

.PHONY: announce
announce:
	@test -e $(LIGHT) || echo "The first time this installs verse, then the demo takes about a minute."

test: $(ALL)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) $(SPREAD) $(QUICK) $(PYTEST_ARGS)

test-all: QUICK :=
test-all: test

# What is computed must not depend on the processor beyond the last bits: the tests of numbers once
# more, without the vector instructions that this machine may have (NUMBERS=avx2: with AVX2 alone;
# THREADS=2: with two threads).
# Of the checks that every learner passes, those of what is learned: the others compare no numbers.
NUMBERS ?= default
THREADS ?= 1
LEARNED := not check_ or check_learns or check_exact_resume or check_forget_keeps or check_memory
test-numbers: $(ALL)
	OMP_NUM_THREADS=$(THREADS) ATEN_CPU_CAPABILITY=$(NUMBERS) ONEDNN_MAX_CPU_ISA=AVX2 \
	$(BIN)/python -m pytest -n $(WORKERS) $(SPREAD) -m "not slow" -k "$(LEARNED)" $(PYTEST_ARGS) \
	tests/kernels tests/network tests/memory tests/learners tests/test_evaluate.py \
	tests/test_metrics.py tests/test_classifier.py

lint: $(ALL)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(LIGHT)
	$(BIN)/verse bench

docs: $(DOCS)
	$(BIN)/mkdocs build --strict

build: $(ALL)
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) build dist site demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
