# Every target is one command of a tool that can be called without make.
PYTHON ?= python3
STACK ?= dev
BIN := .venv/bin
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header pyproject.toml

.PHONY: preview test check policy policy-bundle golden bench catalog prices diagram lock

preview: .venv/locked  ## rehearse a stack: no account, no Pulumi CLI
	@$(BIN)/python -m rehearsal $(STACK)

test: .venv/locked-dev  ## everything that needs no account and no CLI
	$(BIN)/python -m pytest -n 2

check: .venv/locked-dev  ## format, lint, types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright
	$(BIN)/python -m rehearsal.diagram dev --update README.md --check

policy: .venv/locked  ## judge every example with the policy pack, no CLI
	@$(BIN)/python -m policy.check

policy-bundle: .venv/locked  ## the pack as a folder that works anywhere: dist/policy-pack
	@$(BIN)/python -m policy.bundle

golden: .venv/locked-dev  ## refresh the golden resource lists; review the diff
	$(BIN)/python -m tests.golden.refresh

bench: .venv/locked-dev  ## time and memory of rehearsals
	$(BIN)/python -m tests.bench.bench
	$(BIN)/python -m tests.bench.policy_bench

catalog: .venv/locked-dev  ## instance types from EC2, with credentials
	$(BIN)/python -m fabric.refresh.catalogue

prices: .venv/locked-dev  ## prices from AWS's Price List API, with credentials
	$(BIN)/python -m fabric.refresh.prices

diagram: .venv/locked  ## redraw the README's picture of the dev stack
	$(BIN)/python -m rehearsal.diagram dev --update README.md

lock: .venv/locked-dev  ## newest versions that pyproject.toml allows
	$(LOCK) --upgrade --output-file requirements.txt
	$(LOCK) --upgrade --extra dev --constraint requirements.txt --output-file requirements-dev.txt

.venv/locked: requirements.txt
.venv/locked-dev: requirements-dev.txt

.venv/locked .venv/locked-dev:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("trainyard needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r $<
	@touch $@
