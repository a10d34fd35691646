# Thin on purpose: each target names a script, or a cargo command, that can also be run by itself.
#
#   make demo          everything from a fresh Debian or Ubuntu machine to lit and hotstart side by side
#   make demo FAIL=1   how failing tests look
#   make test          all tests
#   make test-runtime  of these, the unit tests of the C runtime under sanitizers
#   make test-faults   what dies, fills up and runs out, against the release binary
#   make test-remote   tests on other machines, by services on this one
#   make test-aarch64  cross-built for aarch64, in an emulated machine; as root
#   make test-systems  on Debian 13, in a chroot; as root
#   make test-long     an hour of the fuzzer of warm starts, half an hour of fuzzing the parsers, and the systems
#   make allocators    mimalloc and rpmalloc, for `hotstart lit --allocator`
#
# Settings: LLVM_BIN (directory of the LLVM tools), CARGO_TARGET_DIR, ROUNDS (rounds of the demo), and
# whatever pip and cargo read by themselves.

export CARGO_TARGET_DIR ?= $(CURDIR)/target

# Commands of a recipe that need cargo follow it.
with_rust = rust=$$(tools/rust-bin) && PATH=$$rust:$$PATH

.PHONY: build allocators demo test test-aarch64 test-faults test-long test-remote test-runtime test-systems setup venv clean

build:
	$(with_rust) cargo build --release --locked

allocators:
	$(with_rust) tools/allocators

demo: setup venv build
	$(with_rust) demo/run $(if $(FAIL),--fail) $(if $(ROUNDS),--rounds $(ROUNDS))

test: setup venv
	$(with_rust) tools/check

test-faults: setup venv build
	$(with_rust) tests/faults/run

test-remote: setup venv build
	tests/remote/fetch
	$(with_rust) env HOTSTART_LIT_PYTHON=$(CURDIR)/.venv/bin/python tests/remote/run $(CARGO_TARGET_DIR)/release/hotstart --faults

test-aarch64: venv
	env HOTSTART_LIT_PYTHON=$(CURDIR)/.venv/bin/python tests/aarch64/run

test-systems: setup
	$(with_rust) tests/systems/run

test-long: setup venv build
	$(CARGO_TARGET_DIR)/release/warm-fuzz --minutes 60 --jobs $$(nproc)
	$(with_rust) tools/fuzz-parsers 225
	$(with_rust) tests/systems/run

test-runtime:
	$(with_rust) cargo test --locked -p hotstart-launch --test units -- --nocapture

# Packages of the distribution that are missing; nothing when all are there.
setup:
	tools/setup

# The private Python environment with lit, which evaluates the suites' configs and is the runner compared with.
venv: setup
	tools/venv

clean:
	rm -rf .venv demo/out bench/out
	$(with_rust) cargo clean
