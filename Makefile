# Everything is set up on first use: a virtual environment in .venv, and Java if root may install it.

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
JAVA  := JAVA_HOME="$$(scripts/find-java)" && export JAVA_HOME &&

.DEFAULT_GOAL := help
.PHONY: help setup demo test long bench lint

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## Create .venv and install the package into it
	@$(JAVA) echo "Java: $$JAVA_HOME"

# Installs again only when the project's metadata changed.
$(STAMP): pyproject.toml
	@scripts/make-venv $(VENV)
	@echo "Installing into $(VENV) (the first time takes a minute or two)"
	@$(BIN)/pip install --quiet --no-input --disable-pip-version-check --progress-bar off -e '.[spark,dev]'
	@touch $@

demo: $(STAMP) ## Live cameras with a burst of ten times as many rows, and a report of it
	@$(JAVA) $(BIN)/sparkshed demo

bench: $(STAMP) ## Time every kind of join, in batch and streaming, beside its peers (about an hour)
	@$(JAVA) for name in join kernels policies microbatches streaming scaling; do $(BIN)/sparkshed bench $$name || exit 1; done

lint: $(STAMP) ## Style and types
	$(BIN)/ruff check .
	scripts/typecheck

test: lint ## Style, types, doctests, tests
	@$(JAVA) set -x && $(BIN)/python scripts/doctests && scripts/run-tests $(BIN)/pytest

long: $(STAMP) ## Tests that take long: all streaming statements, 25 crashes, a long run (about half an hour)
	@$(JAVA) $(BIN)/pytest --long tests/streaming && $(BIN)/pytest --long -m long --ignore tests/streaming
