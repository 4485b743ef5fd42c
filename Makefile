# Two commands do all the set-up:
#   make publish   builds build/tables and build/site
#   make test      proves it
# Everything is installed into .venv from the hash-locked requirements.lock, by uv where it is there, else by pip.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready-$(shell cksum requirements.lock | cut -d' ' -f1)
# an older DuckDB for one test, in a folder of its own: one environment holds one DuckDB
OLD_DUCKDB := $(VENV)/old-duckdb
# a cluster's and the auditors' libraries, in folders of their own: what builds and tests needs none of them
CLUSTER := $(VENV)/cluster
CLUSTER_READY := $(CLUSTER)/.ready-$(shell cksum cluster.lock | cut -d' ' -f1)
SUPPLY := $(VENV)/supply
SUPPLY_READY := $(SUPPLY)/.ready-$(shell cksum supply.lock | cut -d' ' -f1)
OLD_READY := $(OLD_DUCKDB)/.ready-$(shell cksum tests/old-duckdb.lock | cut -d' ' -f1)
# Planning a question is a million small allocations: with jemalloc, where the system has it, a quarter less of the CPU. Where Python may not write what
# it compiles beside the sources, each process would compile all by itself: it lies in .venv then, for this run.
COMPILED = $(if $(PYTHONDONTWRITEBYTECODE),rm -rf $(VENV)/bytecode; env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX="$(CURDIR)/$(VENV)/bytecode")
QUICKER = $(COMPILED) LD_PRELOAD="$$(ls /usr/lib/*/libjemalloc.so.2 2>/dev/null | head -n 1)$${LD_PRELOAD:+:$$LD_PRELOAD}"

# the libraries of a lock, into a folder of their own
define into
rm -rf $(1) && mkdir -p $(1) && if command -v uv >/dev/null 2>&1; then \
	uv pip install --quiet --python $(BIN)/python --target $(1) --require-hashes -r $(2); \
else \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(1) --require-hashes -r $(2); \
fi
endef

.DEFAULT_GOAL := help
.PHONY: help install publish crawl test check check-full accuracy mutants lint serve bench lock clean browser release hosting gates last-release diff promise assets to-folder to-hub-dataset to-space cluster spread licences sbom audit bench-build peers

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

install: $(READY) ## Install what the other commands need, into .venv (each of them does so too)

publish: $(READY) ## Build tables and site into build/, from the Hub where it answers, else from the newest snapshot (ARGS=--no-crawl)
	@$(BIN)/python -m pipeline publish $(ARGS)

crawl: $(READY) ## Refresh the snapshot in tables/hub from the Hub; goes on where the last crawl stopped (ARGS=--dry-run only looks)
	@$(BIN)/python -m pipeline crawl $(ARGS)

test: $(READY) ## Run the whole test suite (installs a browser where there is none; where none can be, all tests but the browser's)
	@sh tests/browser/install.sh $(BIN); found=$$?; \
	if [ $$found = 3 ]; then export ALMANAC_BROWSER=none; elif [ $$found != 0 ]; then exit $$found; fi; \
	$(QUICKER) $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

check: $(READY) ## Check what is published: every file by its checksum, and the data by queries that return bad rows
	@$(BIN)/python -m pipeline check

accuracy: $(READY) ## Compare the formulas with the published measurements and print our error
	@$(BIN)/python -m pipeline accuracy

check-full: $(READY) $(OLD_READY) check ## Check what is published in other programs too, and the long properties (slow; needs a package registry)
	@$(QUICKER) $(BIN)/python -m pytest -m full -n auto --maxprocesses 2 --dist loadfile --no-loadscope-reorder

release: $(READY) ## Keep a digest of build/ in tables/release; the next builds tell what changed since
	@$(BIN)/python -m pipeline release

gates: $(READY) ## Say whether build/ may take the place of the last release: counts, coverage, accuracy, promise (tables/gate.csv)
	@$(BIN)/python -m pipeline gates

last-release: $(READY) ## Take what is published at an address as the last release (FROM=https://example.org/almanac/)
	@$(BIN)/python -m pipeline last-release --from "$(FROM)"

diff: $(READY) ## Say how two releases differ, and why (OLD=folder or address NEW=the same; ARGS="--table FOLDER" for tables)
	@$(BIN)/python -m pipeline diff "$(OLD)" "$(NEW)" $(ARGS)

assets: $(READY) ## Put what a GitHub release is made of into a new folder: tables, notes, tag (DEST=release)
	@$(BIN)/python -m pipeline assets "$(DEST)"

promise: $(READY) ## Write what the schema promises to tables/schema/promise.json (ARGS=--released: a break needs a new version from now on)
	@$(BIN)/python -m pipeline promise $(ARGS)

to-folder: $(READY) ## Bring a folder that a web server serves up to date, at once (DEST=/srv/www/almanac)
	@$(BIN)/python -m pipeline to-folder "$(DEST)"

to-hub-dataset: $(READY) ## Send the tables to a data set of the Hub (REPO=owner/name; needs a token that may write)
	@$(BIN)/python -m pipeline to-hub-dataset "$(REPO)"

to-space: $(READY) ## Send the site to a static Space of the Hub (REPO=owner/name; needs a token that may write)
	@$(BIN)/python -m pipeline to-space "$(REPO)"

bench: $(READY) ## Measure how long readers of the tables wait, as ratios of one run
	@$(BIN)/python -m tests.bench.tables

bench-build: $(READY) ## Measure what the tables of a build take, cold and after one model changed, by stage (EVERY=10: every tenth model)
	@$(BIN)/python -m tests.bench.build $(EVERY)

peers: $(READY) ## Ask other estimators the same questions, beside us: their error and speed (needs a package registry; installs them into .build-peers)
	@$(BIN)/python -m tests.peers.run

mutants: $(READY) ## Change each number and operator inside the formulas in turn and name those that no figure holds (slow; FILES="overhead state" for some files, FILES="40 state" for 40 places)
	@$(BIN)/python -m tests.golden.mutants $(FILES)

lint: $(READY) ## Lint and check formatting
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

cluster: $(READY) $(CLUSTER_READY) ## Install Dask, for `make spread`

spread: cluster ## Have footprints worked out by a Dask cluster before a publish (SCHEDULER=tcp://…; without it by two workers of this machine)
	@PYTHONPATH=$(CLUSTER) $(BIN)/python -m pipeline spread $(if $(SCHEDULER),--scheduler "$(SCHEDULER)") $(ARGS)

licences: $(READY) ## Write licences.csv anew: every part that builds or is shipped, with its licence
	@$(BIN)/python -m tests.supply.licences

sbom: $(READY) $(SUPPLY_READY) ## Write build-sbom.json, a bill of materials in CycloneDX
	@$(BIN)/python -c 'import runpy, sys; sys.path.insert(0, "$(SUPPLY)"); runpy.run_module("cyclonedx_py", run_name="__main__")' \
		environment $(BIN)/python --pyproject pyproject.toml --output-reproducible -o build-sbom.json

audit: $(READY) $(SUPPLY_READY) ## Ask a database of vulnerabilities about every locked version (needs a network)
	@PYTHONPATH=$(SUPPLY) $(BIN)/python -m pip_audit --require-hashes --disable-pip -r requirements.lock

serve: $(READY) ## Serve the built site on this machine
	@$(BIN)/python -m pipeline serve

hosting: $(READY) ## Say whether hosts take the built site and tables: bytes, files, the largest file (ARGS="--host 'GitHub Pages'")
	@$(BIN)/python -m pipeline hosting $(ARGS)

browser: $(READY)
	@sh tests/browser/install.sh $(BIN)

lock: ## Resolve requirements.lock anew (needs uv); it names versions and hashes only
	uv pip compile pyproject.toml --extra build --extra test --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -o requirements.lock
	printf "duckdb==1.5.5\nduckdb-extension-httpfs==1.5.5\n" | uv pip compile - --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate -o tests/old-duckdb.lock

	printf "distributed>=2026.8,<2027\n" | uv pip compile - -c requirements.lock --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate -o cluster.lock
	printf "cyclonedx-bom>=7.5,<8\npip-audit>=2.10,<3\n" | uv pip compile - -c requirements.lock --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate -o supply.lock

clean: ## Remove what was built
	rm -rf build .build-next .build-previous build-sbom.json .build-peers

$(READY): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, this is " + sys.version.split()[0])'
	@rm -rf $(VENV)
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --python $(PYTHON) $(VENV) && uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock; \
	else \
		echo "Installing into $(VENV) ..." && $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock; \
	fi
	@touch $@

# where there is no wheel for this Python or machine, its test says that it is left out (and fails in CI)
$(OLD_READY): tests/old-duckdb.lock | $(READY)
	@rm -rf $(OLD_DUCKDB) && mkdir -p $(OLD_DUCKDB)
	@if command -v uv >/dev/null 2>&1; then \
		uv pip install --quiet --python $(BIN)/python --target $(OLD_DUCKDB) --require-hashes --only-binary :all: -r $<; \
	else \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(OLD_DUCKDB) --require-hashes --only-binary :all: -r $<; \
	fi && touch $@ || echo "No DuckDB of tests/old-duckdb.lock for this Python: its test is left out"

$(CLUSTER_READY): cluster.lock | $(READY)
	@$(call into,$(CLUSTER),$<) && touch $@

$(SUPPLY_READY): supply.lock | $(READY)
	@$(call into,$(SUPPLY),$<) && touch $@
