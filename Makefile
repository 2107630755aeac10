# Each target sets up what it needs: a virtual environment in .venv with the pinned packages and steelyard itself.
PYTHON ?= python3
BIN := .venv/bin
# Many tests wait for a time limit, a server or a browser: four at a time keep two processors busy.
WORKERS := $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 2 )))
# Tests start hundreds of commands: without compiled modules on disk each of them would compile ours again.
export PYTHONDONTWRITEBYTECODE :=

# What nothing may weaken: verdicts are true and an outage is none, numbers are exact, every reply survives a crash, kept runs
# stay readable, bad input gets one sentence, no key is shown, and imports point one way. They need no program but Python's.
CORE_TESTS := tests/test_architecture.py tests/test_public_surface.py tests/seeds tests/test_kept_run.py \
	tests/test_kept_run_before_separation.py tests/test_no_key_is_shown.py tests/test_one_attempt.py tests/test_plugins.py \
	tests/test_records.py tests/test_settings.py tests/evalsets/test_load_toml.py tests/providers/test_replay.py \
	tests/providers/test_openai.py tests/engine/test_plan.py tests/engine/test_steps.py tests/engine/test_resume.py \
	tests/engine/test_faults.py tests/engine/test_crash.py tests/store/test_store.py tests/analysis tests/stats/test_passk.py \
	tests/reports/test_terminal.py tests/cli/test_streams_and_exits.py tests/verifiers/test_trouble.py

.PHONY: release site pictures check demo test test-slow size bench bench-all chaos chaos-kills chaos-fuzz chaos-machines format pins docs clean

demo: .venv/core
	$(BIN)/steelyard demo

# mypy has one process and takes long without its cache: the tests need not wait for it.
TESTED_WITH_TYPES = $(BIN)/ruff format --check --quiet src tests benchmarks docs && \
	$(BIN)/ruff check --quiet src tests benchmarks docs || exit 1; \
	$(BIN)/mypy > .venv/types.txt & types=$$!; \
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "not slow" $(1); ended=$$?; \
	wait $$types || ended=1; cat .venv/types.txt; exit $$ended

# The core promises on any machine that has Python, in less than three minutes on two processors; nothing but these files is collected.
check: .venv/ready
	@$(call TESTED_WITH_TYPES,$(CORE_TESTS))

test: .venv/ready .venv/system
	@$(call TESTED_WITH_TYPES)

# Lines, options and words, for a reviewer: no number is a limit. AGAINST=COMMIT shows what has changed since.
AGAINST ?=
size: .venv/core
	@$(BIN)/python tools/size $(if $(AGAINST),--against $(AGAINST))

test-slow: .venv/ready .venv/system
	$(BIN)/pytest -q -m slow

# One table: ours, a peer in the same run, the floor. RELEASE=1.2.0 adds a line to benchmarks/history.jsonl.
# QUICK=1 takes a tenth of the attempts, ONLY="python engine" some of the rows: python, engine, rust, rust-together.
RELEASE ?=
INSPECT := .venv/inspect/bin/python
bench: .venv/ready .venv/inspect/ready
	$(BIN)/python -m benchmarks.table --peer-python $(INSPECT) $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(RELEASE),--record $(RELEASE))

# A peer with an environment of its own, because it needs other versions of our packages. Where it cannot be installed, the table says so.
.venv/inspect/ready: tools/inspect.txt | .venv/ready
	@{ $(PYTHON) -m venv .venv/inspect && .venv/inspect/bin/pip install --quiet --disable-pip-version-check \
		--requirement tools/inspect.txt && touch $@; } || echo "Inspect AI could not be installed" >&2

# Every subject in more detail; takes an hour.
bench-all: bench
	$(BIN)/python benchmarks/engine.py --peer-python $(INSPECT)
	$(BIN)/python benchmarks/conversations.py
	$(BIN)/python benchmarks/verify.py
	$(BIN)/python benchmarks/cores.py
	$(BIN)/python benchmarks/feeder.py
	$(BIN)/python benchmarks/passk.py
	$(BIN)/python benchmarks/terraform.py
	$(BIN)/python benchmarks/gate.py
	$(BIN)/python benchmarks/classify.py
	$(BIN)/python benchmarks/viewer.py
	$(BIN)/python benchmarks/scale.py --memory 100000,200000
	$(BIN)/python benchmarks/statistics_at_size.py --rows 1000000 10000000
	$(BIN)/python benchmarks/many_runs.py
	$(BIN)/python benchmarks/large_run.py

# For MINUTES each: kills of every command, and damaged files of every kind. Then a server with every fault, and broken machines.
MINUTES ?= 10
SEED ?= 1
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
chaos: chaos-kills chaos-fuzz chaos-machines

chaos-kills: .venv/ready
	$(BIN)/python -m benchmarks.nightly.kills --minutes $(MINUTES) --seed $(SEED) --jobs $(JOBS)
	$(BIN)/python -m benchmarks.nightly.conversation_kills --kills 60 --seed $(SEED)

# Atheris has wheels for x86_64 and some versions of Python only; without it all inputs come from the seeded mutator.
chaos-fuzz: .venv/ready
	@[ "$$(uname -m)" != x86_64 ] || $(BIN)/pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps atheris==3.0.0 || \
		echo "atheris cannot be installed here; no job looks for inputs by coverage"
	$(BIN)/python -m benchmarks.nightly.fuzz --minutes $(MINUTES) --seed $(SEED) --jobs $(JOBS)

chaos-machines: .venv/ready .venv/system
	$(BIN)/pytest -q tests/engine/test_faults.py tests/engine/test_faults_of_formats.py tests/providers/test_odd_responses.py \
		tests/engine/test_broken_machines.py tests/engine/test_crash.py \
		tests/cli/test_streams_and_exits.py tests/store/test_numbers_at_the_door.py

format: .venv/ready
	$(BIN)/ruff check --quiet --fix src tests benchmarks docs
	$(BIN)/ruff format --quiet src tests benchmarks docs

# Pages that are generated from the code, and the output that pages show; a test checks both.
docs: .venv/ready
	$(BIN)/python docs/generate.py
	UPDATE_DOCS=1 $(BIN)/pytest -q tests/test_docs.py

# The pictures in docs/images, taken of real pages by the test that compares them.
pictures: .venv/ready .venv/system
	UPDATE_DOCS=1 $(BIN)/pytest -q tests/viewer/test_pictures.py

# Pins every package; the file must not name a registry host.
pins: .venv/ready
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --no-emit-index-url --no-header --python-version 3.11 \
		--extra dev pyproject.toml --output-file requirements.txt

# What steelyard itself needs, at the pinned versions: all that a demo waits for.
.venv/core: pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steelyard needs Python 3.11 or later; name one with: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	@# what a demo imports is compiled when it does: a quarter of what pip would compile
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --constraint requirements.txt --editable .
	@touch $@

.venv/ready: .venv/core
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.txt
	@touch $@

# What tests need from the system: a sandbox to compare ours with, a fast linker, a browser, another architecture, the
# real Terraform, and checkers for pages and the HTTP API. Nothing else needs these, so a demo does not wait for them. The
# checker of the API has its own environment: in ours, every start of pytest would load it.
.venv/system: tools/system-packages tools/terraform tools/terraform.txt tools/axe tools/schemathesis.txt | .venv/ready
	@tools/system-packages
	@$(BIN)/python tools/terraform .venv/terraform
	@$(BIN)/python tools/axe .venv/axe
	@{ $(PYTHON) -m venv .venv/schemathesis && .venv/schemathesis/bin/pip install --quiet --disable-pip-version-check \
		--requirement tools/schemathesis.txt; } || { echo "some tests need schemathesis, which could not be installed" >&2; [ -z "$$CI" ]; }
	@touch $@

# Wheel and source distribution of HEAD, built twice and tried on every Python here and, as root with debootstrap, in these releases of Debian.
SUITES ?= $(shell [ "$$(id -u)" = 0 ] && command -v debootstrap >/dev/null && echo bookworm trixie forky)
release: .venv/release/ready
	.venv/release/bin/python tools/release --keep .venv/chroots $(addprefix --suite ,$(SUITES))

.venv/release/ready: tools/release.txt
	$(PYTHON) -m venv .venv/release
	.venv/release/bin/pip install --quiet --disable-pip-version-check --requirement tools/release.txt
	@touch $@

# The documentation site; a dead link, or a page that the menu does not have, is an error.
site: .venv/site/ready
	NO_MKDOCS_2_WARNING=1 .venv/site/bin/mkdocs build --strict --quiet

.venv/site/ready: tools/site.txt
	$(PYTHON) -m venv .venv/site
	.venv/site/bin/pip install --quiet --disable-pip-version-check --requirement tools/site.txt
	@touch $@

clean:
	rm -rf .venv build dist site src/*.egg-info
