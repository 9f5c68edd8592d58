# Everything that a developer runs. `make` alone lists it.
# Needs Python 3.11 with venv, make and git: no Java, no database server, no Docker.

VENV := .venv
PYTHON := $(VENV)/bin/python
UV := $(VENV)/bin/uv
UV_VERSION := 0.13.8
DATA := .demo

export PYTHONPATH := plugins:.
# Like pip, uv then trusts what the system trusts: a company's proxy may sign with a certificate of its own.
export UV_SYSTEM_CERTS ?= $(if $(wildcard /etc/ssl/certs/ca-certificates.crt),true,false)
# The environment of a shell must not lead uv or Spark elsewhere, nor have Python compile everything anew at each start.
unexport PYTHONHOME VIRTUAL_ENV CONDA_PREFIX SPARK_HOME PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: install
install: $(VENV)/installed ## Install what running Concord and its demo needs into .venv

.PHONY: install-dev
install-dev: $(VENV)/installed-dev ## Install what testing and checking need, too

.PHONY: demo
demo: install ## Synchronize two embedded PostgreSQL sites on real data, and report
	@$(PYTHON) -m demo

.PHONY: own
own: install ## Write what two databases of your own need: SITES="london=HOST:PORT/DB capetown=…" TABLES="public.t …"
	@test -n "$(SITES)" -a -n "$(TABLES)" || { \
	    echo 'Name both: make own SITES="london=db.london.example:5432/crm capetown=…" TABLES="public.customers …"' >&2; \
	    exit 1; }
	@$(PYTHON) -m concord prepare own $(SITES) $(foreach table,$(TABLES),--table $(table)) $(OPTIONS)

.PHONY: airflow
airflow: install ## Start a local Airflow with the demo's sites and DAGs; Ctrl-C stops it
	@$(PYTHON) -m demo.airflow

PYTEST = $(if $(POSTGRES),TESTS_POSTGRES=$(POSTGRES)) $(PYTHON) -m pytest -n $(or $(WORKERS),2) --dist loadfile --no-loadscope-reorder
.PHONY: test
test: install-dev ## Run the tests that every commit must pass; TESTS="FILE …" and POSTGRES=18 choose, WORKERS=4 on four cores
	$(PYTEST) --quick=$(or $(shell git rev-parse HEAD 2>/dev/null),none) $(TESTS)

.PHONY: test-all
test-all: install-dev ## Run all tests, long ones and both values of doubled parameters too, and record the run
	$(PYTEST) --record


.PHONY: check
check: install-dev ## Check format, lint, types, import rules and prose
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PYTHON) -m tests.prose
	$(PYTHON) -m tests.suite.whole_run

.PHONY: format
format: install-dev ## Format the code and mend what the linter can mend
	$(VENV)/bin/ruff format
	$(VENV)/bin/ruff check --fix

#: Rivals come first: they need packages that make does not install, and say at once which.
BENCHMARKS := rivals link link_start growth capture log_link many lag tables conflicts compare distance executors replay logger forgetting
.PHONY: bench
bench: install-dev ## The benchmarks of docs/benchmarks.md, an afternoon; OPTIONS=--record writes them there, BENCHMARKS=… chooses
	@set -e; for each in $(BENCHMARKS); do $(PYTHON) -m benchmarks.$$each $(OPTIONS); done

.PHONY: soak
soak: install-dev ## Writers, links and faults for MINUTES, then every invariant
	@$(PYTHON) -m tests.soak --minutes $(or $(MINUTES),2)

.PHONY: planted
planted: install-dev ## Plant known errors in a copy of the project: a test must find each; ONLY=… chooses, RESULTS=file continues
	@$(PYTHON) -m tests.mutants $(if $(RESULTS),--results $(RESULTS)) $(ONLY)

.PHONY: mutants
mutants: install-dev ## Change the modules without I/O by mutmut, and print each change that no test notices; ROOM=… chooses
	@$(PYTHON) -m tests.mutants.library $(ROOM)

.PHONY: up
up: ## Start Airflow, Spark and two sites with docker compose
	@docker info >/dev/null 2>&1 || { \
	    echo "make up needs a running Docker engine, and 'docker info' finds none." >&2; \
	    echo "Start it, or use 'make demo' and 'make airflow', which need no Docker." >&2; exit 1; }
	@test -f .env || python3 compose/make_env.py
	docker compose up --build --wait

.PHONY: config-schema
config-schema: install ## Print the JSON schema of the configuration file, for editors
	@$(PYTHON) -m concord config-schema

PIN = $(UV) pip compile --upgrade --quiet --generate-hashes --no-emit-index-url --no-annotate
.PHONY: requirements
requirements: $(UV) ## Pin the newest versions that requirements*.in allow
	$(PIN) -o requirements.txt requirements.in requirements-spark.in
	$(PIN) -o requirements-demo.txt -c requirements.txt requirements-demo.in
	$(PIN) -o requirements-build.txt requirements-build.in
	$(PIN) -o requirements-dev.txt requirements-dev.in

.PHONY: clean
clean: ## Stop the demo's servers and delete all that was installed or generated
	@if [ -x $(PYTHON) ] && [ -d $(DATA) ]; then $(PYTHON) -m embedded remove $(DATA); fi
	rm -rf $(DATA) $(VENV) .mutants .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps below are written last, so that an interrupted installation is taken up again. The installers say nothing
# but their errors.

$(UV):
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Concord needs Python 3.11 or later as python3." >&2; exit 1; }
	@python3 -c 'import ensurepip' 2>/dev/null || { \
	    echo "Python cannot make virtual environments here. On Debian: apt-get install python3-venv" >&2; exit 1; }
	@python3 -m venv $(VENV)
	@$(PYTHON) -m pip install -qq --disable-pip-version-check uv==$(UV_VERSION)

$(VENV)/installed: requirements.txt requirements-demo.txt | $(UV)
	@echo "Installing Airflow, Spark, PostgreSQL and Java into $(VENV): 1.4 GB, some minutes at first …"
	@$(UV) pip install --quiet --python $(PYTHON) --require-hashes -r requirements.txt -r requirements-demo.txt
	@touch $@

$(VENV)/installed-dev: requirements-dev.txt $(VENV)/installed | $(UV)
	@echo "Installing what tests and checks need into $(VENV) …"
	@$(UV) pip install --quiet --python $(PYTHON) --require-hashes -r requirements-dev.txt
	@touch $@
