# make demo   sets up .venv and solves the worked example
# make test   adds the development tools, then runs every check and the tests
# Needs Python 3.11 or newer and pip 22.3 or newer; another Python: make demo PYTHON=python3.13

PYTHON ?= python3
PIP = $(PYTHON) -m pip --python .venv/bin/python --disable-pip-version-check --quiet
BIN = .venv/bin

CODE = models solver api
CHECKED = $(CODE) tests $(wildcard benchmarks)

.PHONY: demo test lint bench clean
.DEFAULT_GOAL := demo

demo: .venv/.installed
	$(BIN)/inferplan solve instances/chapter/eight-cards.yaml

test: lint
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile

lint: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict $(CHECKED)
	$(BIN)/lint-imports --no-logo

bench: .venv/.installed
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are written last: a set-up that was interrupted has none, and is made anew.
# --without-pip, because a Debian without python3-venv has no ensurepip.
.venv/.installed: requirements.lock pyproject.toml
	$(require-python)
	@echo "Setting up .venv (a minute or two) ..."
	@rm -rf .venv/.installed .venv/.installed-dev .venv
	@$(PYTHON) -m venv --without-pip .venv
	@$(PIP) install -r requirements.lock
	@$(PIP) install --no-deps -e .
	@$(BIN)/python -m compileall -q $(CODE)
	@touch $@

# Until the tools are all there, .venv as a whole counts as not made.
.venv/.installed-dev: .venv/.installed requirements-dev.lock
	$(require-python)
	@echo "Adding the development tools to .venv ..."
	@rm -f $@ .venv/.installed
	@$(PIP) install -r requirements-dev.lock
	@touch .venv/.installed
	@touch $@

# One clear line and a stop when Python or pip is missing or too old.
HAS_PYTHON = import sys; sys.exit(sys.version_info < (3, 11))
HAS_PIP = import re, sys, pip; sys.exit([int(n) for n in re.findall("[0-9]+", pip.__version__)[:2]] < [22, 3])
PYTHON_IS = import platform; print(platform.python_version())
PIP_IS = import pip; print(pip.__version__)
missing = $(shell \
	if ! $(PYTHON) -c '$(HAS_PYTHON)' >/dev/null 2>&1; then \
		echo "Python 3.11 or newer, found: `$(PYTHON) -c '$(PYTHON_IS)' 2>/dev/null || echo none`"; \
	elif ! $(PYTHON) -c '$(HAS_PIP)' >/dev/null 2>&1; then \
		echo "pip 22.3 or newer, found: `$(PYTHON) -c '$(PIP_IS)' 2>/dev/null || echo none`"; fi)
require-python = $(if $(missing),$(error inferplan needs $(missing) (for PYTHON=$(PYTHON))))
