# Two commands matter: `make run` shows it, `make test` proves it. `make help` lists the rest.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
PROGRAMS := agents agents-webhook agents-sidecar
PACKAGES := agents agents-webhook agents-sidecar agents-tests agents-bench

# cargo-deny is built once, beside the programs of the lab.
DENY_VERSION := 0.20.2
DENY_FOLDER := $(or $(LAB_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/agents-lab)/cargo-deny-$(DENY_VERSION)
DENY := $(DENY_FOLDER)/bin/cargo-deny

# cargo-auditable as well. The Dockerfile names the same.
AUDITABLE_VERSION := 0.7.7
AUDITABLE_FOLDER := $(dir $(DENY_FOLDER))cargo-auditable-$(AUDITABLE_VERSION)
AUDITABLE := $(AUDITABLE_FOLDER)/bin/cargo-auditable

# And cargo-fuzz, for whoever fuzzes.
FUZZ_VERSION := 0.13.1
FUZZ_FOLDER := $(dir $(DENY_FOLDER))cargo-fuzz-$(FUZZ_VERSION)
FUZZ := $(FUZZ_FOLDER)/bin/cargo-fuzz

# Where the C library can be linked statically, every build is static: what is tested is what the lab's images hold.
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
ifneq ($(wildcard $(shell cc -print-file-name=libc.a 2>/dev/null)),)
export CARGO_BUILD_TARGET := $(HOST)
export RUSTFLAGS := -C target-feature=+crt-static
endif
# What helps the next build only costs time where there is none.
ifdef CI
export CARGO_INCREMENTAL := 0
endif
# Tests under load have this in their path: they run last, one at a time, so that nothing else is measured with them.
ALONE := ::alone::
# Tests of releases take turns on one cluster with real pods: they wait for that more than they compute, so they run as one
# line beside the others, which would otherwise stand behind them.
TURNS := chart::install::
# Most tests wait for a cluster more than they compute, so twice as many run at once as there are cores.
export RUST_TEST_THREADS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 2)))
# Profiles are in no ordinary build, so their tests are built apart, and without the controllers, which they do not need.
PROFILE := cargo test --package agents --lib --no-default-features --features profile
# Make carries out a line that names it even if it should only print it.
AGAIN := $(MAKE)
# What a run says is kept beside what cargo builds.
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Clippy and the compiler share nothing but macros, so each has a folder: neither waits for the other.
# It takes what is left of the processors, also beside the tests: it is waited for before those that need the machine alone.
LINT := --target-dir '$(TARGET)/lint'
# Who drives a program that is measured need not be linked as that program is, which takes minutes. The lab must be beside it.
DRIVER := cargo build --quiet --profile simulation --package agents-tests --bin lab && \
	cargo bench --quiet --profile simulation --package agents-bench
LAB := cargo run --quiet --package agents-tests --bin lab --

.PHONY: help
help: ## Show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

.PHONY: run
run: ## Start a real Kubernetes with everything in it, say what to try, stay until Ctrl-C
	@cargo run --package agents-tests --bin lab -- tour

.PHONY: test
test: ## Lint, then unit and integration tests on a real Kubernetes; ends with the counts
	@echo '==> Building the lab program'
	@cargo build --package agents-tests --bin lab || { echo '0 passed, 0 failed: the lab program does not compile'; exit 1; }
	@$(LAB) left-out --forget && : >'$(TARGET)/test.log'
	@echo '==> Building Kubernetes and Prometheus and linting in the background, while the sources are compiled'
	@setsid $(LAB) build >/dev/null & tools=$$!; turns=$$tools; \
	setsid nice -n 19 $(AGAIN) lint >'$(TARGET)/lint.log' 2>&1 & lint=$$!; \
	trap 'kill -- -$$tools -$$lint -$$turns $$tools $$lint $$turns 2>/dev/null || true' EXIT; \
	stop() { echo "$$1"; $(AGAIN) counts || true; exit 1; }; \
	cargo test --no-run && $(PROFILE) --no-run && cargo build --bins && wait $$tools || stop 'Stopped before the tests: something could not be built'; \
	kill -0 $$lint 2>/dev/null || wait $$lint || { cat '$(TARGET)/lint.log'; stop 'Stopped before the tests: lint failed'; }; \
	echo '==> Running the tests, those of releases in the background'; \
	setsid cargo test --test integration -- --test-threads=1 $(TURNS) >'$(TARGET)/turns.log' 2>&1 & turns=$$!; \
	cargo test --no-fail-fast -- --skip $(ALONE) --skip $(TURNS) 2>&1 | tee '$(TARGET)/test.log' && failed=0 || failed=1; \
	$(PROFILE) admin::profile 2>&1 | tee --append '$(TARGET)/test.log' || failed=1; \
	echo '==> Waiting for the tests of releases'; \
	wait $$turns || failed=1; tee --append '$(TARGET)/test.log' <'$(TARGET)/turns.log'; \
	wait $$lint || failed=1; cat '$(TARGET)/lint.log'; trap - EXIT; \
	echo '==> Running the tests that need the machine for themselves'; \
	cargo test --test integration -- --test-threads=1 --skip $(TURNS) $(ALONE) 2>&1 | tee --append '$(TARGET)/test.log' || failed=1; \
	$(AGAIN) counts && exit $$failed

.PHONY: counts
counts: ## Show how the last `make test` went; fails if a test was left out that tests/left-out.txt does not name
	@$(LAB) left-out && agreed=0 || agreed=1; \
	awk '/^test result:/ { passed += $$4; failed += $$6 } END { printf "%d passed, %d failed\n", passed, failed }' '$(TARGET)/test.log'; \
	exit $$agreed

.PHONY: lint
lint: lint-sources deny ## Format, clippy, every package alone, licences and what else is linked

.PHONY: lint-sources
lint-sources: ## The same without licences and what else is linked
	@echo '==> Format' && cargo fmt --all --check
	@echo '==> Clippy, every package alone' && for package in $(PACKAGES); do \
		echo "    $$package" && cargo clippy --quiet $(LINT) --package $$package --all-targets -- --deny warnings; done
	@cargo clippy --quiet $(LINT) --package agents --no-default-features --all-targets -- --deny warnings
	@echo '==> With every feature' && cargo clippy --quiet $(LINT) $(PROGRAMS:%=--package %) --all-features --all-targets -- --deny warnings

.PHONY: generate
generate: ## Write crds/, the dashboards, the copies in the chart, the generated documents and the pictures from the sources; scrapes the programs and opens the console, so it starts a lab
	@cargo run --quiet --bin agents -- crds print --output crds
	@GENERATE=1 cargo test --quiet --package agents-tests --test integration -- documents:: observability::dashboards::
	@GENERATE=1 cargo test --quiet --package agents-tests --test integration -- observability::live:: console::pages::
	@mkdir -p charts/agents/crds charts/agents/dashboards && rm -f charts/agents/crds/* charts/agents/dashboards/*
	@cp crds/*.yaml charts/agents/crds/ && cp dashboards/*.json charts/agents/dashboards/

.PHONY: deny
deny: $(DENY) ## Licences, sources, banned crates and known faults of everything that is linked
	@echo '==> What is linked'
	@'$(DENY)' --log-level error check bans licenses sources
	@if timeout 120 '$(DENY)' --log-level error fetch db 2>/dev/null; then '$(DENY)' --log-level error check advisories; \
		else $(LAB) left-out --note deny::advisories 'the database of known faults could not be fetched'; fi

# Without optimisation and debug information: it runs for seconds and is built on every fresh machine.
$(DENY):
	@env -u CARGO_BUILD_TARGET -u RUSTFLAGS CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 cargo install --quiet --locked --debug --root '$(DENY_FOLDER)' cargo-deny@$(DENY_VERSION)

.PHONY: images
images: $(AUDITABLE) ## Make the images of a release without Docker, each with a list of what it is made of (target/images); fails if one has not the size that it should have
	@for program in $(PROGRAMS); do \
		PATH='$(AUDITABLE_FOLDER)/bin':"$$PATH" cargo auditable build --release --locked --package $$program --bin $$program; done
	@$(LAB) images --output '$(TARGET)/images'

$(AUDITABLE):
	@env -u CARGO_BUILD_TARGET -u RUSTFLAGS CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 cargo install --quiet --locked --debug --root '$(AUDITABLE_FOLDER)' cargo-auditable@$(AUDITABLE_VERSION)

.PHONY: bench
bench: ## Measure what one unit of work costs; prints tables for docs/performance.md
	@cargo bench --quiet --package agents-bench --bench units

.PHONY: bench-webhook
bench-webhook: ## Measure the release build of the webhook over TLS; prints a table and whether each bar is met
	@cargo build --quiet --release --package agents-webhook
	@cargo bench --quiet --package agents-bench --bench webhook

.PHONY: bench-sidecar
bench-sidecar: ## Measure the release build of the sidecar; prints tables and whether each bar is met
	@cargo build --quiet --release --package agents-sidecar
	@$(DRIVER) --bench sidecar

.PHONY: bench-controller
bench-controller: ## Measure the release build of the controllers on a lab; prints tables and whether each bar is met
	@cargo build --quiet --release --bin agents --bin agents-webhook
	@$(DRIVER) --bench controller

.PHONY: bench-check
bench-check: ## Measure the release build of `agents check` on 1,000 manifests; prints a table and whether the bar is met
	@cargo build --quiet --release --package agents --bin agents
	@$(DRIVER) --bench check

.PHONY: simulate
simulate: ## Play 100,000 seeded orders of events against the reconciler of runs; SIMULATE_SEED=N replays one, SIMULATE_FIRST=N begins there
	@SIMULATE_SCHEDULES=$${SIMULATE_SCHEDULES:-100000} \
		cargo test --profile simulation --package agents --lib -- --nocapture simulation

# Unstable flags of the compiler make the fuzzer see where it goes. What it finds is kept apart from the corpus.
.PHONY: fuzz
fuzz: $(FUZZ) ## Look for input that breaks a promise of a parser, SECONDS (60) for each target; TARGETS=json takes only some
	@export PATH='$(FUZZ_FOLDER)/bin':"$$PATH" RUSTC_BOOTSTRAP=1 CARGO_PROFILE_DEV_DEBUG=0 folder="$$(realpath '$(TARGET)')/fuzz"; \
	unset CARGO_BUILD_TARGET RUSTFLAGS; \
	for package in sidecar webhook; do cd '$(CURDIR)'/$$package; \
		for target in $$(cargo fuzz list); do case " $(or $(TARGETS),$$target) " in *" $$target "*) ;; *) continue ;; esac; \
			echo "==> $$package: $$target" && mkdir -p "$$folder/found/$$target" && \
			cargo fuzz run -s none --dev --target-dir "$$folder" $$target "$$folder/found/$$target" fuzz/corpus/$$target -- \
				-max_total_time=$(or $(SECONDS),60) -print_final_stats=1 -verbosity=0; \
	done; done

$(FUZZ):
	@env -u CARGO_BUILD_TARGET -u RUSTFLAGS CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 cargo install --quiet --locked --debug --root '$(FUZZ_FOLDER)' cargo-fuzz@$(FUZZ_VERSION)

.PHONY: clean
clean: ## Stop every lab and remove what was built (the cache of the Kubernetes programs stays)
	@-$(LAB) down --all
	@cargo clean
