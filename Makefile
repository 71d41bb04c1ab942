# Two commands matter: `make demo` and `make test`. Each does all its own set-up, on a machine that has
# Python 3.11 or newer and make, and nothing else. Pass PYTHON=/path/to/python3.12 to choose an interpreter.

VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.radii-run
STAMP := $(VENV)/.radii-setup
OUT ?= out/demo
WORKERS ?= 2

# The first interpreter that is new enough.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)

# PyTorch always comes through constraints.txt: without the pin, pip may fetch gigabytes of GPU packages.
# Modules are compiled when they are first imported: of most packages that is a small part.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --no-compile -c constraints.txt

.PHONY: help setup demo test lint types unit system vibecheck bench pictures docs clean

help:
	@echo "make demo    radii on three shipped networks, under a minute; pictures and tables in $(OUT)"
	@echo "make test    format, lint, types and all tests"
	@echo "make docs    the documentation site, in site/, with pictures from real runs"
	@echo "make pictures  the demo and the examples, and their pictures into docs/pictures"
	@echo "make bench   the benchmarks (BENCH=quick for a tenth of the work)"
	@echo "make study-001  what a paper of docs/papers says, measured again, and its page (also 000, 002, 003, 004; hours; SMALL=1: a small part)"
	@echo "make setup   only the virtual environment in $(VENV), with the development tools"
	@echo "make clean   remove what the other targets made"

setup: $(STAMP)

# What radii itself needs: all that the demo takes.
$(BASE): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "radii needs Python 3.11 or newer; got none on PATH: install it or pass PYTHON=/path/to/python" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "radii needs Python 3.11 or newer; got $$($(PYTHON) --version 2>&1): pass PYTHON=/path/to/python" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "this Python cannot make virtual environments: install its venv module (Debian: apt install python3-venv)" >&2; exit 2; }
	@echo "radii: setting up $(VENV) with what radii needs: PyTorch for the CPU, ONNX, SciPy, … (1.2 GB, a minute or two)"
	$(PIP) torch==2.13.0
	$(PIP) -e .
	@touch $@

# What its developers need as well.
$(STAMP): $(BASE)
	@echo "radii: adding the development tools: test tools, documentation, other verifiers (1.6 GB, some minutes)"
	$(PIP) --quiet -e '.[dev]'
	@touch $@

demo: $(BASE)
	$(BIN)/radii demo --output $(OUT)

test: setup system vibecheck lint types unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

# One torch thread per worker: more would only fight for the cores. Workers take files in a row (worksteal), so that
# what the tests of a file share is mostly made once.
unit: setup
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --durations=25 --durations-min=5 $(TESTS)

# Another verifier, in an environment of its own, for the tests of the `command` verifier.
vibecheck: setup
	@bash scripts/setup_vibecheck.sh $(PYTHON) || echo "vibecheck could not be installed: its tests will be skipped" >&2

# A browser for the report's tests, sources of locales for one test. Needs root; `make test` runs without them and says
# which tests it skipped.
system:
	@test -e /usr/share/i18n/locales/de_DE || \
		{ command -v apt-get >/dev/null 2>&1 && test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq locales; } || \
		echo "no sources of locales here, and no apt-get as root to install them: the test of decimal commas will be skipped" >&2
	@command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || \
		{ command -v apt-get >/dev/null 2>&1 && test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq chromium; } || \
		echo "no chromium here, and no apt-get as root to install it: browser tests will be skipped" >&2

# The engine on published networks, beside vibecheck (which gets an environment of its own).
bench: setup vibecheck
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python benchmarks/bench_engine.py $(if $(filter quick,$(BENCH)),--quick)

# The study of a paper: goes on where it was stopped; SMALL=1 is the same path on a small part, below build/.
study-%: setup
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python studies/run.py $* --workers $(WORKERS) $(if $(SMALL),--small)

# The pictures of the README and the site, from real runs: the demo, its report in a browser, and every example.
pictures: setup demo
	mkdir -p docs/pictures out/examples
	cp $(OUT)/robust-accuracy.png $(OUT)/fooled.png docs/pictures/
	$(BIN)/python scripts/page_picture.py $(OUT)/report.html docs/pictures/report.png || true
	for example in examples/[0-9]*.py; do OMP_NUM_THREADS=1 $(BIN)/python $$example out/examples || exit 1; done
	cp out/examples/[0-9]*.png docs/pictures/
	$(BIN)/python scripts/page_picture.py out/examples/reach.html docs/pictures/reach-report.png || true
	$(BIN)/python scripts/architecture_picture.py

docs: pictures
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) .venv-vibecheck site out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
