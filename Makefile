# One place for every task; `make help` lists them. Works on a machine with Python 3.11+, pip and make.

PYTHON ?= python3
JOBS   ?= 0
# Processes that run tests: more than cores, since a test of what hangs waits most of its time.
WORKERS ?= 4
CHROMIUM ?= chromium
BIN    := $(CURDIR)/.venv/bin
PY     := $(BIN)/python
export PATH := $(BIN):$(PATH)
# Small tensors, and notebooks side by side: more threads would only get in each other's way.
export OMP_NUM_THREADS ?= 1

CHAPTERS := $(notdir $(wildcard solutions/[0-9][0-9]_*))
RELEASES := $(foreach chapter,$(CHAPTERS),exercises/$(chapter)/$(chapter).ipynb)
# What the book is made of, without what Python writes beside modules that somebody imports
IMPORTED := $(filter-out %/__pycache__,$(wildcard lab/*.py lab/*.npz lab/page/* trainer/*.py trainer/*/*.py benchmarks/results/*.jsonl))
BOOK     := $(shell find book \( -path book/_build -o -name __pycache__ \) -prune -o -type f -print)
REQUIRED := requirements.txt constraints.txt $(wildcard requirements/*.txt)
HTML     := book/_build/html/index.html
# Tests start many processes: none compiles these again, also where Python may write no bytecode.
ROOMS    := autograder lab trainer benchmarks

.DEFAULT_GOAL := help
.DELETE_ON_ERROR: # a book that was built with errors is not built
.PHONY: help course test quick book pdf release handout demo grade mutants bench drill load busy nbgrader constraints check format serve pictures sources clean

help: ## list these tasks
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

course: ## set up, build the book and the exercises, grade a demo class (start here)
	@$(MAKE) --no-print-directory release book demo
	@echo "book:         $(HTML)"

test: .venv/ready build/released ## run the whole test suite
	@$(PY) -m compileall -q $(ROOMS)
	$(PY) -m pytest -n $(WORKERS) --no-loadscope-reorder

quick: .venv/ready build/released ## run the tests that take little: no browser, no class, no book
	@$(PY) -m compileall -q $(ROOMS)
	$(PY) -m pytest -n auto --maxprocesses 4 --no-loadscope-reorder -m "not slow"

book: .venv/ready $(HTML) ## build the book into book/_build/html

pdf: book ## print the whole book into book/_build/the-graded-transformer.pdf (needs Chromium)
	@jupyter-book build book -q --builder custom --custom-builder singlehtml
	@$(CHROMIUM) --headless --no-sandbox --disable-gpu --no-pdf-header-footer --virtual-time-budget=60000 \
		--print-to-pdf=book/_build/the-graded-transformer.pdf $(CURDIR)/book/_build/singlehtml/index.html 2>/dev/null
	@echo "on paper:     book/_build/the-graded-transformer.pdf"

release: .venv/ready build/released ## make exercises/ and solutions/transformer.py from their sources

handout: .venv/ready build/released ## write what students get, and nothing else, to build/handout.zip
	@rm -f build/handout.zip
	@$(PY) -m autograder handout build/handout.zip

demo: .venv/ready build/released ## make and grade a demo class of 24 in build/demo
	@$(PY) -m autograder demo --jobs $(JOBS)

grade: .venv/ready build/released ## grade what lies in submitted/
	@$(PY) -m autograder grade --jobs $(JOBS)

mutants: .venv/ready ## try every known right and wrong answer against the tests
	@$(PY) -m autograder mutants

bench: .venv/ready build/released ## grade a class of 100 with stock nbgrader and with ours, and compare
	@$(PY) -m autograder bench

drill: .venv/ready build/released ## kill the grader 50 times in a class of 60; the end must be the same
	@$(PY) -m tests.kill_drill

load: .venv/ready build/released ## grade 10,000 made submissions here and on a cluster with kills (LOAD="--students 300")
	@$(PY) -m tests.load_drill $(LOAD)

busy: .venv/ready build/released ## grade a class with three of the worst in it on a busy machine
	@$(PY) -m tests.busy_drill

nbgrader: .venv/ready ## run nbgrader's own tests with this grader; what differs is listed
	@$(PY) -m tests.nbgraders_own

check: .venv/ready ## lint, check formatting and types
	ruff check .
	ruff format --check .
	pyright --pythonpath $(PY)

format: .venv/ready ## put all Python files in the house's format
	ruff check --fix .
	ruff format .

serve: book ## show the book at http://localhost:8000
	$(PY) -m http.server --directory book/_build/html 8000

pictures: book demo ## take README's pictures again (needs Chromium)
	@$(PY) tests/pictures.py

sources: .venv/ready ## count which items and errors of the five documents are treated
	@PYTHONPATH=book/_ext $(PY) -c 'import sys; from pathlib import Path; from course import coverage; sys.exit(coverage.main(Path()))'

constraints: ## renew constraints.txt: what the newest versions are that the requirements allow
	$(PYTHON) -m venv --clear build/constraints
	build/constraints/bin/python -m pip install --disable-pip-version-check --progress-bar off -q \
		$(foreach one,students instructors book developers hub cluster,-r requirements/$(one).txt)
	@{ sed -n '/^#/p' constraints.txt; build/constraints/bin/python -m pip freeze | sed 's/+cpu$$//' \
		| grep -Ev '^(nvidia|cuda|triton)' | sort -f; } > build/constraints.txt
	@mv build/constraints.txt constraints.txt

clean: ## remove everything that was built, but not the environment
	rm -rf build book/_build

.venv/ready: $(REQUIRED) pyproject.toml
	@echo "Installing into .venv (a few minutes the first time)"
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 to 3.13 is needed, this is " + sys.version) if not (3, 11) <= sys.version_info[:2] <= (3, 13) else None'
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --disable-pip-version-check --progress-bar off -q -r requirements.txt
	@touch $@

build/released: $(wildcard solutions/*/*.py solutions/*/rules.toml) nbgrader_config.py autograder/authoring/source.py autograder/authoring/release.py \
		lab/assemble.py solutions/transformer.py $(RELEASES) | .venv/ready
	@$(PY) -m autograder release
	@$(PY) -m lab assemble build/source --out solutions/transformer.py
	@mkdir -p build && touch $@

# What is missing is made with the others.
$(RELEASES) solutions/transformer.py: ;

$(HTML): build/released $(IMPORTED) $(REQUIRED) $(BOOK) | .venv/ready
	@echo "Building the book (minutes the first time, then only what has changed)"
	@touch build/book-begun # what is changed from here on makes the book stale again
	jupyter-book build book -W --keep-going -q
	@touch -r build/book-begun $@
