# `make help` lists the targets. Everything is brought on first use: uv where it is missing (.uv/), the locked Python
# packages (.venv/) and the Pulumi CLI (a cache folder outside the checkout).
UV := $(shell command -v uv || echo .uv/bin/uv)
PYTHON := .venv/bin/python
export PATH := $(PATH):$(CURDIR)/.uv/bin
# Files of tests side by side, where each has accounts of its own in its process.
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist loadfile
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo up down test lint types unit emulator e2e lifecycle test-docker pulumi clean

help:  ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

demo: pulumi  ## the whole way on an embedded AWS account: up, train five seeds, plot, destroy (KEEP=1 leaves it up)
	@$(PYTHON) -m emulator.demo

up: pulumi  ## start the embedded AWS account and deploy the stack to it
	@$(PYTHON) -m emulator up

down: .venv/.synced  ## destroy that stack and stop the account
	@$(PYTHON) -m emulator down

test: pulumi lint types unit emulator e2e  ## everything below

lint: .venv/.synced  ## style and format
	@$(PYTHON) -m ruff check --quiet
	@$(PYTHON) -m ruff format --check --quiet
	@echo "lint: clean"

types: .venv/.synced  ## strict type check
	@$(PYTHON) -m mypy

unit: .venv/.synced  ## tests without a process or a network
	@$(PYTHON) -m pytest -q $(SIDE_BY_SIDE) tests/unit

emulator: .venv/.synced  ## tests of the embedded AWS account
	@$(PYTHON) -m pytest -q $(SIDE_BY_SIDE) tests/emulator

e2e: pulumi  ## tests with the real Pulumi engine and real commands
	@$(PYTHON) -m pytest -q tests/e2e --ignore=tests/e2e/lifecycle

lifecycle: pulumi  ## stacks killed halfway, repeated, and side by side, on the real Pulumi engine
	@$(PYTHON) -m pytest -q tests/e2e/lifecycle

test-docker: pulumi  ## tests with real containers: the image, local runs, a sweep (Linux, as root)
	@$(PYTHON) -m tools.docker >/dev/null
	@$(PYTHON) -m pytest -q tests/docker

pulumi: .venv/.synced  ## get the Pulumi CLI
	@$(PYTHON) -m tools.pulumi >/dev/null

clean:  ## remove caches and environments, not the embedded account (`make down`)
	rm -rf .venv .uv dist demo-output .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.synced: pyproject.toml uv.lock | $(UV)
	@echo "uv: installing the locked packages into .venv/"
	@$(UV) sync --locked --quiet
	@touch $@

.uv/bin/uv:
	@command -v python3 >/dev/null || { echo "error: there is no python3: install Python 3.11 or newer, then try again." >&2; exit 1; }
	@echo "uv: not found, installing it into .uv/"
	@python3 -m venv .uv >/dev/null || { rm -rf .uv; echo "error: python3 cannot make a virtual environment: install its venv module (Debian: apt-get install python3-venv) or uv, then try again." >&2; exit 1; }
	@.uv/bin/python -m pip install --quiet uv || { rm -rf .uv; echo "error: pip could not install uv (see above): install it (https://docs.astral.sh/uv/), then try again." >&2; exit 1; }
