# The main targets are `make run` and `make test`. `make run` installs requirements.lock into .venv; tests, checks and
# benchmarks also install requirements-test.lock.
PYTHON ?= python3
PORT ?= 8000
TESTERS ?= 2
REAL ?= 0
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
PIP := $(BIN)/python -m pip --disable-pip-version-check
export CHAPTERVERSE_HOME ?= $(CURDIR)/.chapterverse
# Settings of this machine must not affect tests: no keys, and only embedded engines. Bytecode is written, because tests
# start hundreds of processes, each of which would compile the package again.
CLEAN_ENV := env -u PYTHONDONTWRITEBYTECODE -u GEMINI_API_KEY -u OPENAI_API_KEY -u COHERE_API_KEY -u QDRANT_API_KEY -u DATABASE_URL -u REDIS_URL -u JUDGE_API_KEY

# Each test file is run by one process. tests/conftest.py sorts the slowest files first.
SIDE_BY_SIDE = -q -n $(TESTERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup run test any-cpu test-without-vnni test-docusaurus quick check format bench bench-retrieval bench-index bench-server bench-ingest bench-readers bench-answering bench-answers bench-keyless bench-gaps bench-editions scoreboard reliability load streams race race-setup soak lock clean injection eval-llm fuzz flips hostile

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(TOOLS) ## Install everything into .venv, including the tools for tests and checks

# Installing takes a minute or two; pip shows its progress.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed. Choose it with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Installing Chapterverse into $(VENV) (once; $$(grep -c == requirements.lock) packages, a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(TOOLS): $(READY) requirements-all.lock requirements-test.lock
	@echo "Installing the tools for tests and checks into $(VENV) (once, a minute or two)"
	@$(PIP) install --require-hashes -r requirements-test.lock
	@touch $@

run: $(READY) ## Ingest the example book and serve it (PORT=8000)
	@$(BIN)/chapterverse ingest examples/book
	@BOOK_TITLE="$${BOOK_TITLE:-Physical AI}" exec $(BIN)/chapterverse serve --port $(PORT)

test: $(TOOLS) ## Run all tests in two processes (TESTERS=1 for one)
	$(CLEAN_ENV) $(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-without-vnni: $(TOOLS) ## Run all tests as on a CPU without AVX-512 and VNNI
	$(CLEAN_ENV) $(BIN)/python tools/without_vnni.py $(BIN)/python -m pytest $(SIDE_BY_SIDE)

any-cpu: $(TOOLS) ## Vectors and scores on an emulated Haswell and an emulated ARM CPU (ten minutes; needs qemu-user-static, debootstrap, root)
	$(CLEAN_ENV) $(BIN)/python -m tools.any_cpu

test-docusaurus: $(TOOLS) ## Install Docusaurus (minutes, 240 MB below .cache) and test widget and plug-in on its output
	$(BIN)/python -m tests.browser.generators
	$(CLEAN_ENV) $(BIN)/python -m pytest -q tests/browser/test_widget_sites.py tests/browser/test_plugins.py -k docusaurus

quick: $(TOOLS) ## Run the fast tests
	$(CLEAN_ENV) $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not slow and not browser"

check: $(TOOLS) ## Check format, lint, types, layers, dependencies and generated pages, as CI does
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/audit.py
	$(BIN)/python tools/pages.py

format: $(TOOLS) ## Format the code and apply automatic fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: bench-retrieval bench-index bench-ingest bench-answering ## Run all benchmarks (long)

bench-retrieval: $(TOOLS) ## Measure retrieval on public sets: BM25, dense, ours
	$(BIN)/python -m bench.retrieval.run

bench-index: $(TOOLS) ## Measure the embedded index with 50,000 and 100,000 chunks
	$(BIN)/python -m bench.index_scale

bench-server: $(TOOLS) ## Measure a Qdrant server with a million passages (long; QDRANT_URL names an existing server)
	$(BIN)/python -m bench.server_scale

bench-ingest: $(TOOLS) ## Ingest the Kubernetes documentation: first run, no changes, ten changed pages
	$(BIN)/python -m bench.ingest_k8s

bench-readers: $(TOOLS) ## Compare the readers with the books' own generators and write docs/READERS.md (installs Sphinx)
	$(BIN)/python -m bench.readers.run
	$(BIN)/python -m bench.readers.parameters
	$(BIN)/python -m bench.readers.page

bench-answering: $(TOOLS) ## Measure the time added to a language model's, and ask the example book's questions
	$(BIN)/python -m bench.answering
	$(BIN)/python -m bench.example_book

bench-answers: $(TOOLS) ## Replay recorded answers of a strong model through the gate
	$(CLEAN_ENV) $(BIN)/python -m bench.answers

bench-keyless: $(TOOLS) ## Measure answers without a key on whole books (KEYLESS_BOOKS=folder, KEYLESS="--split test --squad file")
	$(CLEAN_ENV) $(BIN)/python -m bench.keyless $(KEYLESS)

bench-gaps: $(TOOLS) ## Measure whether the report finds hidden pages (KEYLESS_BOOKS=folder, GAPS="--book numpy")
	$(CLEAN_ENV) $(BIN)/python -m bench.gaps $(GAPS)

bench-editions: $(TOOLS) ## Count citations of the wrong version: two versions of one documentation, 200 questions
	$(CLEAN_ENV) $(BIN)/python -m bench.editions

scoreboard: $(TOOLS) ## Measure answers on public sets with two baselines, and write docs/SCOREBOARD.md
	$(CLEAN_ENV) $(BIN)/python -m bench.scoreboard

fuzz: $(TOOLS) ## Read 20,000 damaged and malicious documents (minutes)
	$(CLEAN_ENV) $(BIN)/python -m tests.fuzz.documents --cases 20000 --readers 2

flips: $(TOOLS) ## Flip random bytes of an index and a database: answers must be the same, or errors (minutes)
	$(CLEAN_ENV) FLIPS=300 $(BIN)/python -m pytest -q -s tests/security/test_damage.py -k random_bytes

hostile: $(TOOLS) ## Send malicious requests and measure how long /livez takes meanwhile (minutes)
	$(CLEAN_ENV) HOSTILE_TIMES=20 $(BIN)/python -m pytest -q -s tests/security/test_hostile_requests.py

reliability: $(TOOLS) ## Run the fault suite and write docs/RELIABILITY.md (ten minutes)
	mkdir -p .cache && rm -f .cache/outcomes.jsonl
	$(CLEAN_ENV) RELIABILITY_OUTCOMES=$(CURDIR)/.cache/outcomes.jsonl $(BIN)/python -m pytest -q tests/faults --timeout 600 \
	  -n 3 --dist loadfile --no-loadscope-reorder
	$(BIN)/python -m tools.reliability .cache/outcomes.jsonl

load: $(TOOLS) ## Load a server with 1, 10, 50 and 200 requests at once
	$(CLEAN_ENV) $(BIN)/python -m bench.load

streams: $(TOOLS) ## Open 200 streams at the default settings (a minute)
	$(CLEAN_ENV) $(BIN)/python -m bench.open_streams

race-setup: $(TOOLS) ## Install the peers of the race, and the product without development tools
	$(CLEAN_ENV) $(BIN)/python -m bench.race --setup

race: $(TOOLS) ## Compare the product with other frameworks (twelve minutes; RACE=--quick for one short round)
	$(CLEAN_ENV) $(BIN)/python -m bench.race $(RACE)

soak: $(TOOLS) ## Check that memory does not grow over 20,000 requests (at most ten minutes)
	$(CLEAN_ENV) $(BIN)/python -m bench.soak

injection: $(TOOLS) ## Plant instructions in pages and selections (REAL=36 also asks a small real model)
	$(CLEAN_ENV) $(BIN)/python -m bench.injection --real $(REAL)

eval-llm: $(TOOLS) ## Download a small language model (0.5 GB) and ask it the example book's questions
	$(CLEAN_ENV) $(BIN)/python -m bench.eval_llm

lock: $(TOOLS) ## Pin the installed versions, with hashes from the package index
	$(BIN)/python tools/lock.py

clean: ## Remove the environment, caches and the book that `make run` ingested
	rm -rf $(VENV) .chapterverse .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
