# Every target works by itself on a fresh machine: it makes .venv first if that is missing or old.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two workers with one thread each are faster than one with two, and results stay the same.
WORKERS ?= 2
PYTEST_ARGS ?=

.PHONY: setup demo test lint bench docs build clean
.DEFAULT_GOAL := help

.PHONY: help
help:
	@echo "make setup   create $(VENV) with everything the commands need"
	@echo "make demo    teach three learners a small world and compare them (demo/index.html)"
	@echo "make test    run all tests        (WORKERS=2 PYTEST_ARGS='tests/test_x.py -k name')"
	@echo "make lint    style, types and import layers"
	@echo "make bench   measure speed"
	@echo "make docs    build the documentation into site/"
	@echo "make build   build wheel and sdist into dist/"

setup: $(STAMP)

# Exact versions come from constraints.txt, torch's among them, so that nothing picks another one.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[all,docs,dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/python demo.py

test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/verse bench

docs: $(STAMP)
	$(BIN)/mkdocs build --strict

build: $(STAMP)
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) build dist site demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
