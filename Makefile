# Two commands do everything: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(firstword $(foreach v,3.11 3.12 3.13,$(shell command -v python$(v))) python3)
SUDO := $(if $(filter 0,$(shell id -u)),,sudo -E)
BIN := $(CURDIR)/.venv/bin
PROFILE ?= qwen
export PATH := $(BIN):$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: .venv/complete .collections/ansible_collections/llmfleet/sglang ## Install the development tools into .venv

.venv/complete: requirements-dev.txt
	@if [ -L .venv ]; then echo ".venv is a link to $$(readlink .venv), which would be emptied: remove the link" >&2; exit 1; fi
	@fleet/install-packages python
	@echo "==> Installing the development tools into .venv"
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

# The checkout is what runs, always: ansible.cfg looks here and nowhere else.
.collections/ansible_collections/llmfleet/sglang:
	@mkdir -p $(@D)
	@ln -sfn ../../.. $@

.PHONY: check-machine
check-machine:
	@$(PYTHON) -m fleet check

.PHONY: fleet
fleet: check-machine setup ## Start the demo fleet: three systemd nodes on this machine
	@fleet/install-packages fleet
	@$(SUDO) $(BIN)/python -m fleet up

.PHONY: demo
demo: fleet ## Deploy to the demo fleet and ask each node a question
	@echo "==> Deploying"
	$(BIN)/ansible-playbook playbooks/deploy_$(PROFILE).yml -i inventories/demo
	@$(BIN)/python -m fleet.ask

.PHONY: demo-down
demo-down: setup ## End the demo fleet; nothing of it stays
	@$(SUDO) $(BIN)/python -m fleet down

.PHONY: clean-cache
clean-cache: demo-down ## End the fleet and empty its cache of images and packages
	@$(SUDO) $(BIN)/python -m fleet clean-cache

.PHONY: test
test: lint docs unit sanity galaxy molecule corpus ## Everything that guards a commit: lint, units, sanity, the fleet

.PHONY: lint
lint: setup ## ruff, mypy, ansible-lint (profile production), and what is said of licences, changes and documentation
	ruff check .
	ruff format --check .
	mypy plugins playbooks/callback_plugins fleet benchmarks tests molecule
	ansible-lint --offline --strict
	reuse lint --quiet || reuse lint
	antsibull-changelog lint
	antsibull-docs lint-collection-docs --plugin-docs .

.PHONY: unit
unit: setup ## Unit tests
	@fleet/install-packages tests
	pytest tests/unit

.PHONY: sanity
sanity: setup ## ansible-test sanity with the oldest Ansible and targets' Python 3.9 and 3.13, and a few units
	@fleet/install-packages sanity
	@$(BIN)/python -m tests.matrix quick-sanity quick-units

.PHONY: matrix
matrix: setup ## ansible-test sanity and units with each Ansible and Python that is promised (long)
	@fleet/install-packages tests
	@fleet/install-packages sanity
	@$(BIN)/python -m tests.matrix

.PHONY: corpus
corpus: setup ## The source editor over nine SGLang releases
	pytest tests/unit/source -m corpus -k "not standard"

.PHONY: molecule
molecule: check-machine setup ## The main job on the fleet, from create to destroy
	@fleet/install-packages fleet
	@rm -f .pytest_cache/molecule.xml
	molecule test || { python -m tests.fleet.failures .pytest_cache/molecule.xml; exit 1; }

.PHONY: test-faults
test-faults: setup ## Break a node of the fleet that is up, in every way; run again, it goes on where it ended
	@fleet/install-packages faults
	@$(SUDO) $(BIN)/pytest tests/faults --resume --verbose

.PHONY: build
build: setup ## Build the collection's tarball into build/, from what is in the repository alone
	rm -rf build/tree && mkdir -p build/tree
	git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory=build/tree
	ansible-galaxy collection build --force --output-path build build/tree

.PHONY: galaxy
galaxy: build ## Check the tarball as Galaxy does when it takes one
	cd build && env -u ANSIBLE_CONFIG $(BIN)/python -m galaxy_importer.main \
	  llmfleet-sglang-$$(sed -n 's/^version: //p' ../galaxy.yml).tar.gz 2>&1 | tee importer.log
	@! grep '^ERROR' build/importer.log # it ends well when a linter of its own came to no end

.PHONY: changelog
changelog: setup ## Write CHANGELOG.md anew from changelogs/changelog.yaml
	antsibull-changelog generate

.PHONY: docs
docs: setup ## Build the site of the guides and of every module, filter and role into build/docs
	rm -rf build/docs && mkdir -p build/docs/source/collection
	cp -r README.md docs docs/docsite/sphinx/. build/docs/source
	rm -r build/docs/source/docs/docsite
	antsibull-docs collection --use-current --squash-hierarchy --fail-on-error \
	  --dest-dir build/docs/source/collection llmfleet.sglang
	sphinx-build -q -W --keep-going build/docs/source build/docs/html
	@echo "==> build/docs/html/index.html"
