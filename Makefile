# `make demo` and `make test` do everything on a fresh Debian or Ubuntu with root or sudo.
# Everything lands in .venv/ and build/; afterwards .venv/bin/trena is the command.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# PyTorch is optional: TORCH= leaves it out, and its tests are skipped by name.
TORCH ?= torch==2.13.0
BUILD := build/release
# Random programs of the slow tier, without and with sanitizers.
FUZZ ?= 100000
# The C++ tests take as long to compile as Trena: only `make test` wants them.
TESTS ?= OFF

.PHONY: demo test test-slow bench accuracy build clean sanitize tidy

demo: build
	$(BIN)/trena run --target trn2 examples/matmul.py

build: $(VENV)/.tools
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --force-reinstall \
	  -C build-dir=$(BUILD) -C cmake.define.TRENA_TESTS=$(TESTS) .

# What the build and the tests need. The system libraries come first: pip builds against them.
$(VENV)/.tools: scripts/install_system_libraries.sh pyproject.toml
	sh scripts/install_system_libraries.sh
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet "cmake>=3.25" ninja nanobind scikit-build-core pyproject-metadata pathspec \
	  numpy ml_dtypes rich pytest hypothesis threadpoolctl
	touch $@

$(VENV)/.torch: $(VENV)/.tools
	test -z "$(TORCH)" || $(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet matplotlib
	touch $@

test: $(VENV)/.torch
	$(MAKE) build TESTS=ON
	$(BUILD)/trena_tests --gtest_brief=1
	$(BIN)/python -m pytest -q -m "not slow" tests

test-slow: $(VENV)/.torch
	$(MAKE) build TESTS=ON
	TRENA_FUZZ_PROGRAMS=$(FUZZ) $(BUILD)/trena_tests --gtest_brief=1
	$(BIN)/python -m pytest -q tests

bench: build
	$(BIN)/python bench/bench.py

accuracy: build
	$(BIN)/trena accuracy

# The C++ tests under AddressSanitizer and UBSan (random programs: FUZZ of them), then under ThreadSanitizer.
sanitize: $(VENV)/.tools
	for preset in asan+ubsan tsan; do \
	  $(BIN)/cmake --preset $$preset && $(BIN)/cmake --build --preset $$preset && UBSAN_OPTIONS=halt_on_error=1 TSAN_OPTIONS=suppressions=tests/tsan.supp TRENA_FUZZ_PROGRAMS=$$(test $$preset = tsan && echo 400 || echo $(FUZZ)) build/$$preset/trena_tests --gtest_brief=1 || exit 1; \
	done

# clang-tidy with the rules of .clang-tidy, on the library and its bindings (Debian: clang-tidy).
tidy: $(VENV)/.tools
	$(BIN)/cmake --preset dev -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
	run-clang-tidy -quiet -p build/dev '^$(CURDIR)/(src|bindings)/'

clean:
	rm -rf build $(VENV)
