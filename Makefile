# Two commands matter: `make run` shows it, `make test` proves it. `make help` lists the rest.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
PACKAGES := agents agents-webhook agents-sidecar agents-tests

# Where the C library can be linked statically, every build is static: what is tested is what the lab's images hold.
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
ifneq ($(wildcard $(shell cc -print-file-name=libc.a 2>/dev/null)),)
export CARGO_BUILD_TARGET := $(HOST)
export RUSTFLAGS := -C target-feature=+crt-static
endif
LAB := cargo run --quiet --package agents-tests --bin lab --

.PHONY: help
help: ## Show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: run
run: ## Start a real Kubernetes with everything in it, say what to try, stay until Ctrl-C
	@cargo build --bins
	@$(LAB) tour

.PHONY: test
test: ## Lint, then unit and integration tests on a real Kubernetes; ends with the counts
	@echo '==> Building the lab program'
	@cargo build --package agents-tests --bin lab
	@$(LAB) left-out --forget
	@echo '==> Building Kubernetes in the background, while the sources are linted and compiled'
	@$(LAB) build >/dev/null & tools=$$!; $(MAKE) lint && cargo test --no-run && cargo build --bins && wait $$tools
	@echo '==> Running the tests'
	@cargo test --no-fail-fast 2>&1 | tee target/test.log && failed=0 || failed=1; $(MAKE) counts && exit $$failed

.PHONY: counts
counts: # How the last `make test` went; fails if a test was left out that tests/left-out.txt does not name
	@$(LAB) left-out
	@awk '/^test result:/ { passed += $$4; failed += $$6 } END { printf "%d passed, %d failed\n", passed, failed }' target/test.log

.PHONY: lint
lint: ## Format, clippy, every package alone, generated files, licences
	@echo '==> Format' && cargo fmt --all --check
	@echo '==> Clippy' && cargo clippy --workspace --all-targets --quiet -- --deny warnings
	@echo '==> Every package alone' && for package in $(PACKAGES); do echo "    $$package" && cargo check --quiet --package $$package; done
	@cargo check --quiet --package agents --no-default-features

.PHONY: generate
generate: ## Write crds/ and the generated documents from the sources
	@cargo run --quiet --bin agents -- crds --output crds
	@GENERATE=1 cargo test --quiet --package agents-tests --test integration -- documents::

.PHONY: deny
deny: ## Licences, sources and banned crates of everything that is linked
	@command -v cargo-deny >/dev/null || cargo install --quiet --locked cargo-deny@0.20.2
	@cargo deny check bans licenses sources

.PHONY: clean
clean: ## Stop every lab and remove what was built (the cache of the Kubernetes programs stays)
	@-$(LAB) down --all
	@cargo clean
