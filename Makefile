# make run and make test set up everything they need; `make help` lists the rest.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
ENGINE ?= aioboto3
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install run test test-real test-package check docs format lock bench-memory clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.installed: requirements-dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed: install it, or give PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) cannot make virtual environments: install python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than Python 3.11: give PYTHON=/path/to/python3"; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version): once, a minute or two"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

install: $(VENV)/.installed ## set up .venv; the command is then .venv/bin/auditor

run: install ## the whole audit on an AWS inside the process; or BUCKET=s3://...
ifdef BUCKET
	@$(BIN)/auditor audit $(BUCKET) --engine $(ENGINE) $(ARGS) || \
		{ code=$$?; echo "the audit's exit code is $$code (make gives its own): see README.md" >&2; exit $$code; }
else
	@$(BIN)/auditor demo --engine $(ENGINE) $(ARGS)
endif

test: install ## the tests that need no server but our own
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal --ignore=tests/real --ignore=tests/packaging --ignore=tests/deploy/test_package_contents.py $(ARGS)

test-real: install ## the tests against Ceph RGW, a server that enforces ACLs (skipped where radosgw is missing)
	@$(BIN)/python -m pytest -q tests/real $(ARGS)

test-package: install ## the built wheel in an environment of its own
	@$(BIN)/python -m pytest -q tests/packaging tests/deploy/test_package_contents.py $(ARGS)

check: install ## what CI runs: format, lint, types, documents in step, tests
	@$(BIN)/ruff format --check --quiet . || { echo "run make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/python -m tests.documents --check
	@$(MAKE) --no-print-directory test

docs: install ## write the generated documents anew (docs/rules.md, docs/cli.md)
	@$(BIN)/python -m tests.documents

format: install ## format the code and sort the imports
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

lock: install ## write requirements*.txt anew from pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml \
		-o requirements.txt
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml \
		--extra demo --group dev -c requirements.txt -o requirements-dev.txt

bench-memory: install ## peak memory of an audit of 10,000 and of 100,000 objects
	@$(BIN)/python -m benchmarks.memory $(ARGS)

clean: ## remove what was set up
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
