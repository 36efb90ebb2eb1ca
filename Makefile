# Every command that a person or a workflow runs here; `make` lists them.
PYTHON ?= python3
BIN := .venv/bin
PORT ?= 8000

export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: site
site: .venv/everything ## run every example on this machine, then build the site strictly into site/
	$(BIN)/captures run -j 2
	$(BIN)/mkdocs build --strict --site-dir .cache/site
	@rm -rf site && mv .cache/site site # a build that fails leaves the former site as it was
	@echo && cat .cache/captures/last-words.txt
	@echo "site/ is built. To look at it on http://127.0.0.1:8001/: python3 -m http.server --directory site 8001"

.PHONY: test
test: .venv/everything ## the whole suite, as CI runs it
	$(BIN)/pytest -n 2 --dist worksteal -m "not gpu and not soak"

.PHONY: serve
serve: .venv/pages ## edit the lessons with live reload on http://127.0.0.1:8000/, or PORT=8001 (needs no torch)
	$(BIN)/mkdocs serve --dev-addr 127.0.0.1:$(PORT)

.PHONY: check
check: .venv/everything ## the quick checks: format, lint, types, and whether every capture is fresh
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/captures check

.PHONY: format
format: .venv/everything ## put the code into its one format and mend what the linter can
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.PHONY: capture
capture: .venv/everything ## on a GPU: run every example and refresh the committed GPU transcripts
	$(BIN)/captures run --machine gpu -j 8

.PHONY: test-gpu
test-gpu: .venv/everything ## on a GPU: the tests whose figures only a GPU can prove
	$(BIN)/pytest tests/kernels -m gpu --report tests/kernels/gpu_report.txt

.PHONY: release
release: .venv/everything ## what publishing builds: as site, and no GPU capture may be stale
	$(BIN)/captures check --release
	$(BIN)/mkdocs build --strict

.PHONY: propose
propose: ## in the publish workflow: open the pull request that refreshes the GPU transcripts
	bash .github/propose-transcripts.sh

.PHONY: soak
soak: .venv/everything ## the long runs that make test leaves out
	$(BIN)/pytest -m soak

# A stamp remembers what was installed, so that a second call of any target starts at once.
# `everything` holds what `pages` holds, so installing it stamps both.
.venv/pages: pyproject.toml constraints.txt $(BIN)/python
	$(call install,site)
	@touch $@

.venv/everything: pyproject.toml constraints.txt $(BIN)/python
	$(call install,kernels$(comma)site$(comma)test)
	@touch .venv/pages $@

# Missing also where the system's interpreter it links to is gone: the stamps then no longer hold.
$(BIN)/python: ;

comma := ,

# pip cannot tell a half-copied package from a whole one: what was interrupted starts afresh.
define install
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
  echo "Python 3.11 or newer is needed and '$(PYTHON)' is not: make PYTHON=python3.12 …" >&2; exit 1; }
@if [ -e .venv ] && { [ -e .venv/unfinished ] || ! $(BIN)/python -c '' 2>/dev/null; }; then \
  echo "the last install was not finished, or its Python is gone: .venv is made afresh"; \
  rm -rf .venv.old && mv .venv .venv.old && rm -rf .venv.old; fi
@mkdir -p .venv && touch .venv/unfinished
@[ -e $(BIN)/pip ] || { echo "making .venv"; $(PYTHON) -m venv .venv; }
@echo "installing into .venv what constraints.txt pins: the first time, this takes some minutes"
$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(1)]'
@rm .venv/unfinished
endef
