# Two commands: `make run` and `make test`. `make run` installs what running needs into .venv (requirements.lock); tests,
# checks and benches install their tools besides (requirements-test.lock).
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
# A machine's own settings must not leak into tests: no key, no engine but the embedded ones. Bytecode is written: tests
# start hundreds of processes, and each would compile the package again.
CLEAN_ENV := env -u PYTHONDONTWRITEBYTECODE -u GEMINI_API_KEY -u OPENAI_API_KEY -u COHERE_API_KEY -u QDRANT_API_KEY -u DATABASE_URL -u REDIS_URL -u JUDGE_API_KEY

# A file is run by one process. tests/conftest.py puts those that take longest first.
SIDE_BY_SIDE = -q -n $(TESTERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup run test test-without-vnni test-docusaurus quick check format bench bench-retrieval bench-index bench-server bench-ingest bench-readers bench-answering bench-answers bench-keyless bench-gaps bench-editions scoreboard reliability load streams race race-setup soak lock clean injection eval-llm fuzz flips hostile

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(TOOLS) ## Install everything into .venv, the tools of tests and checks too

# Installing takes a minute or two; pip says what it is doing.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name it with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Installing Chapterverse into $(VENV) (once; $$(grep -c == requirements.lock) packages, a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(TOOLS): $(READY) requirements-all.lock requirements-test.lock
	@echo "Installing the tools of tests and checks into $(VENV) (once, a minute or two)"
	@$(PIP) install --require-hashes -r requirements-test.lock
	@touch $@

run: $(READY) ## Ingest the example book and serve it (PORT=8000)
	@$(BIN)/chapterverse ingest examples/book
	@BOOK_TITLE="$${BOOK_TITLE:-Physical AI}" exec $(BIN)/chapterverse serve --port $(PORT)

test: $(TOOLS) ## Run all tests, two processes side by side (TESTERS=1 for one)
	$(CLEAN_ENV) $(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-without-vnni: $(TOOLS) ## Run all tests as on a CPU without AVX-512 and VNNI
	$(CLEAN_ENV) $(BIN)/python tools/without_vnni.py $(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-docusaurus: $(TOOLS) ## Install Docusaurus (minutes, 240 MB below .cache) and test widget and plug-in on its output
	$(BIN)/python -m tests.browser.generators
	$(CLEAN_ENV) $(BIN)/python -m pytest -q tests/browser/test_widget_sites.py tests/browser/test_plugins.py -k docusaurus

quick: $(TOOLS) ## Run the fast tests (each process loads all of them, so two are faster than three)
	$(CLEAN_ENV) $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not slow and not browser"

check: $(TOOLS) ## Format, lint, types, layers, audit of the dependencies, pages of the code as it is: what CI checks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/audit.py
	$(BIN)/python tools/pages.py

format: $(TOOLS) ## Format and repair what can be repaired
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: bench-retrieval bench-index bench-ingest bench-answering ## Run all benchmarks (long)

bench-retrieval: $(TOOLS) ## Retrieval quality on public sets: BM25, dense, ours
	$(BIN)/python -m bench.retrieval.run

bench-index: $(TOOLS) ## The embedded index at 50,000 and 100,000 chunks
	$(BIN)/python -m bench.index_scale

bench-server: $(TOOLS) ## A million passages in a Qdrant server of its own, or in the one at QDRANT_URL (long)
	$(BIN)/python -m bench.server_scale

bench-ingest: $(TOOLS) ## The Kubernetes documentation: first run, no change, ten pages changed
	$(BIN)/python -m bench.ingest_k8s

bench-readers: $(TOOLS) ## What readers make of books, beside what the books' own generators make of them, into docs/READERS.md (installs Sphinx)
	$(BIN)/python -m bench.readers.run
	$(BIN)/python -m bench.readers.parameters
	$(BIN)/python -m bench.readers.page

bench-answering: $(TOOLS) ## What we add to a language model's time, and the example book's questions
	$(BIN)/python -m bench.answering
	$(BIN)/python -m bench.example_book

bench-answers: $(TOOLS) ## Recorded answers of a strong model through the real gate, with judges whose errors are known
	$(CLEAN_ENV) $(BIN)/python -m bench.answers

bench-keyless: $(TOOLS) ## Answers without a key on whole books (KEYLESS_BOOKS=folder of the books, KEYLESS="--split test --squad file")
	$(CLEAN_ENV) $(BIN)/python -m bench.keyless $(KEYLESS)

bench-gaps: $(TOOLS) ## Whether the author's report finds pages that were hidden (KEYLESS_BOOKS=folder of the books, GAPS="--book numpy")
	$(CLEAN_ENV) $(BIN)/python -m bench.gaps $(GAPS)

bench-editions: $(TOOLS) ## Two versions of one documentation, 200 questions: citations of the wrong version
	$(CLEAN_ENV) $(BIN)/python -m bench.editions

scoreboard: $(TOOLS) ## Every figure of trust on public sets, with two baselines, into docs/SCOREBOARD.md
	$(CLEAN_ENV) $(BIN)/python -m bench.scoreboard

fuzz: $(TOOLS) ## Read 20,000 damaged and hostile documents (minutes)
	$(CLEAN_ENV) $(BIN)/python -m tests.fuzz.documents --cases 20000 --readers 2

flips: $(TOOLS) ## Change 300 random bytes of an index and 100 of a database: the same answer, or an error (minutes)
	$(CLEAN_ENV) FLIPS=300 $(BIN)/python -m pytest -q -s tests/security/test_damage.py -k random_bytes

hostile: $(TOOLS) ## Send each of 17 hostile requests 20 times beside ordinary ones: how long /livez takes (minutes)
	$(CLEAN_ENV) HOSTILE_TIMES=20 $(BIN)/python -m pytest -q -s tests/security/test_hostile_requests.py

reliability: $(TOOLS) ## Every fault and what came of it, into docs/RELIABILITY.md (ten minutes)
	mkdir -p .cache && rm -f .cache/outcomes.jsonl
	$(CLEAN_ENV) RELIABILITY_OUTCOMES=$(CURDIR)/.cache/outcomes.jsonl $(BIN)/python -m pytest -q tests/faults --timeout 600 \
	  -n 3 --dist loadfile --no-loadscope-reorder
	$(BIN)/python -m tools.reliability .cache/outcomes.jsonl

load: $(TOOLS) ## Our own server under 1, 10, 50 and 200 requests at once
	$(CLEAN_ENV) $(BIN)/python -m bench.load

streams: $(TOOLS) ## 200 open streams at the default settings, with a model of 300 ms and 20 ms a token (a minute)
	$(CLEAN_ENV) $(BIN)/python -m bench.open_streams

race-setup: $(TOOLS) ## Install the peers of the race and the product without developers' tools
	$(CLEAN_ENV) $(BIN)/python -m bench.race --setup

race: $(TOOLS) ## The product against other frameworks, in one run (twelve minutes; RACE=--quick for one short round)
	$(CLEAN_ENV) $(BIN)/python -m bench.race $(RACE)

soak: $(TOOLS) ## Whether memory grows over 20,000 requests (ten minutes at most)
	$(CLEAN_ENV) $(BIN)/python -m bench.soak

injection: $(TOOLS) ## Hostile texts planted in pages and selections (REAL=36: asks the small real model, too)
	$(CLEAN_ENV) $(BIN)/python -m bench.injection --real $(REAL)

eval-llm: $(TOOLS) ## Fetch a small real language model (0.5 GB) and ask it the example book's questions
	$(CLEAN_ENV) $(BIN)/python -m bench.eval_llm

lock: $(TOOLS) ## Pin what is installed now, with the hashes that the package index tells
	$(BIN)/python tools/lock.py

clean: ## Remove the environment and the book that `make run` made
	rm -rf $(VENV) .chapterverse .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
