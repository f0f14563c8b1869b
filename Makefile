# The two that matter: `make demo` and `make test`. They need Python 3.11+, GCC 12 or newer (or Clang 15+ with OpenMP) and
# make; everything else comes from PyPI into a virtual environment.

PYTHON ?= python3
VENV ?= .venv
OCDL_WERROR ?= OFF
OCDL_VARIANTS ?= native
PYTEST_ARGS ?=
SOAK_ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
ON_PATH := PATH="$(abspath $(BIN)):$$PATH"

# `make dev` leaves a mark, so that later targets keep the editable installation, which rebuilds by itself.
EDITABLE := $(wildcard $(VENV)/.editable)
CPP := $(sort $(shell find cpp -name '*.[ch]pp' 2>/dev/null))
SOURCES := $(if $(EDITABLE),,$(filter-out cpp/tests/% cpp/wasm/%,$(CPP)) $(sort $(shell find python -name '*.py' -o -name '*.pyi')))

# Prints the requirements of the named groups: "build" or an extra.
REQUIREMENTS := $(BIN)/python -c 'import sys, tomllib; p = tomllib.load(open("pyproject.toml", "rb")); \
  g = p["project"]["optional-dependencies"] | {"build": p["build-system"]["requires"]}; \
  print(*(r for name in sys.argv[1:] for r in g[name] if not r.startswith("ocdl")), sep="\n")'

.DELETE_ON_ERROR:
.PHONY: help demo playground test test-cpp test-python test-all test-sanitized portability docs soak sanitize wheels check check-page format dev clean distclean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

demo: $(VENV)/.installed  ## install into .venv and let four networks learn two spirals
	$(ON_PATH) $(BIN)/python -m ocdl demo

playground: $(VENV)/.installed $(VENV)/.playground  ## compile the core to WebAssembly and write the page of `ocdl playground`
	$(ON_PATH) $(BIN)/python playground/build.py

test: test-cpp test-python  ## install into .venv, run the C++ tests (ctest) and the Python tests (pytest)

# The C++ tests run with the instructions of this machine; where more cores are built than it needs, as in CI, without as well.
BASELINE_TESTS := $(if $(filter native,$(OCDL_VARIANTS)),OFF,ON)

# Without build isolation, so that a second run compiles only what changed.
test-cpp: $(VENV)/.test
	$(ON_PATH) cmake -S . -B build/tests -G Ninja -DCMAKE_BUILD_TYPE=Release -DPython_ROOT_DIR="$(abspath $(VENV))" \
	  -DPython_EXECUTABLE="$(abspath $(BIN))/python" -DOCDL_BUILD_PYTHON=OFF -DOCDL_BUILD_TESTS=ON -DOCDL_WERROR=$(OCDL_WERROR) \
	  -DOCDL_BUILD_BASELINE_TESTS=$(BASELINE_TESTS)
	$(ON_PATH) cmake --build build/tests
	$(ON_PATH) ctest --test-dir build/tests --output-on-failure --no-tests=error -j2

test-python: $(VENV)/.installed $(VENV)/.test test-cpp
	$(ON_PATH) $(BIN)/python -m pytest -n auto --maxprocesses=4 --timeout=300 $(PYTEST_ARGS)

# PyPI has PyTorch for Linux with CUDA, gigabytes of it. Of this version there is a build for the CPU, 190 MB, that pip prefers
# if one is named: PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS name PyTorch's own index, or a folder.
TORCH ?= torch==2.13.0
EXTRAS := parquet torch jax onnx dask mpi
test-all: $(VENV)/.installed $(VENV)/.extras $(VENV)/.release $(VENV)/.docs playground browser  ## install the extras into .venv and run the tests that need them
	$(ON_PATH) $(BIN)/python -m pytest -n auto --maxprocesses=4 --timeout=300 -m "extras and not slow"
	$(ON_PATH) $(BIN)/python tests/portability.py clang
	$(MAKE) --no-print-directory test-sanitized

test-sanitized: $(VENV)/.test  ## the C++ tests with assertions, under the sanitizers of addresses and undefined behaviour: minutes
	$(ON_PATH) $(BIN)/python tests/sanitize.py quick

portability: $(VENV)/.installed $(VENV)/.test $(VENV)/.release  ## the C++ tests by Clang and, emulated, on aarch64; a package without OpenMP
	$(ON_PATH) $(BIN)/python tests/portability.py

# The page's tests drive the system's browser; where there is none and it cannot be had, they skip and say so.
.PHONY: browser
browser:
	@command -v chromium || command -v google-chrome || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } || \
	  echo "no chromium: the tests of the playground will be skipped"

docs: $(VENV)/.installed $(VENV)/.docs playground  ## build the site into docs/_build/html: two minutes, no network, no warning
	$(ON_PATH) $(BIN)/python -m sphinx -W --keep-going -n -q -j 2 -d docs/_build/doctrees docs docs/_build/html

# The fuzzer that looks at coverage has no wheel for every system; the table says where it was left out.
soak: $(VENV)/.installed $(VENV)/.extras $(VENV)/.playground  ## run the long tests at their full counts and print a table; SOAK_ARGS=--brief takes a minute
	-$(PIP) install atheris
	$(ON_PATH) $(BIN)/python tests/soak.py $(SOAK_ARGS)

sanitize: $(VENV)/.installed $(VENV)/.test  ## the tests under the sanitizers of addresses, leaks, undefined behaviour and races
	$(ON_PATH) $(BIN)/python tests/sanitize.py

# Releases are built by cibuildwheel, for more machines than this one; it takes the same ways (pyproject.toml).
PYTHONS ?=
wheels: $(VENV)/.release playground  ## build the sdist and a wheel for every Python found (or PYTHONS=...) into dist, repaired and tested
	$(ON_PATH) $(BIN)/python .ci/wheels.py $(PYTHONS)

check: $(VENV)/.installed $(VENV)/.dev  ## lint, formatting, types, and the stubs against the compiled modules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(ON_PATH) MYPYPATH=python $(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml ocdl._core ocdl._cpu
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory check-page; \
	  else echo "npm is missing: the playground's modules were not checked"; fi

NPM := build/playground/npm
check-page: $(NPM)/.installed  ## format, types and lint of the playground's modules
	$(NPM)/node_modules/.bin/prettier --check --log-level warn playground/src
	$(NPM)/node_modules/.bin/tsc -p playground
	$(NPM)/node_modules/.bin/eslint -c $(NPM)/eslint.config.js playground/src

format: $(VENV)/.dev  ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

dev: $(VENV)/.dev  ## editable installation that recompiles on import
	touch $(VENV)/.editable
	$(MAKE) --no-print-directory $(VENV)/.installed

clean:  ## remove what was built
	rm -rf build dist docs/_build docs/gallery docs/reference/generated $(VENV)/.installed

distclean: clean  ## remove the virtual environment as well
	rm -rf $(VENV)

# ---- stamps: each is renewed only when what it depends on has changed ----

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ocdl needs Python 3.11 or newer; name one with: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.build $(VENV)/.test $(VENV)/.extras $(VENV)/.release $(VENV)/.playground $(VENV)/.docs $(VENV)/.dev: pyproject.toml
$(VENV)/.build: $(VENV)/.created
	$(REQUIREMENTS) build > $@.txt
	$(PIP) install -r $@.txt cmake ninja
	@touch $@

$(VENV)/.test: $(VENV)/.build
	$(REQUIREMENTS) test > $@.txt
	$(PIP) install -r $@.txt
	@touch $@

$(VENV)/.extras: $(VENV)/.test
	$(REQUIREMENTS) $(EXTRAS) > $@.txt
	$(PIP) install -r $@.txt '$(TORCH)' torchdiffeq diffrax zarr h5py
	@touch $@

$(VENV)/.release: $(VENV)/.build
	$(REQUIREMENTS) release > $@.txt
	$(PIP) install -r $@.txt
	@touch $@

$(VENV)/.playground: $(VENV)/.build
	$(REQUIREMENTS) playground > $@.txt
	$(PIP) install -r $@.txt
	@touch $@

$(NPM)/.installed: playground/package.json playground/eslint.config.js
	mkdir -p $(@D)
	cp $^ $(@D)
	cd $(@D) && npm install --silent --no-audit --no-fund --no-package-lock
	@touch $@

$(VENV)/.docs: $(VENV)/.test
	$(REQUIREMENTS) docs > $@.txt
	$(PIP) install -r $@.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.test
	$(REQUIREMENTS) dev > $@.txt
	$(PIP) install -r $@.txt
	@touch $@

# The settings and the list of sources, rewritten only when they differ: notices a deleted file and a changed option.
SETTINGS := $(OCDL_WERROR) $(OCDL_VARIANTS) $(if $(EDITABLE),editable,regular) $(SOURCES)
$(VENV)/.settings: $(VENV)/.created FORCE
	@echo '$(SETTINGS)' | cmp -s - $@ || echo '$(SETTINGS)' > $@
.PHONY: FORCE
FORCE:

EDITABLE_ARGS := $(foreach s,build-dir=build/editable editable.rebuild=true editable.verbose=false,--config-settings=$(s)) -e .
$(VENV)/.installed: $(VENV)/.build $(VENV)/.settings pyproject.toml CMakeLists.txt $(SOURCES)
	$(ON_PATH) $(PIP) install --no-build-isolation --config-settings=cmake.define.OCDL_WERROR=$(OCDL_WERROR) \
	  --config-settings=cmake.define.OCDL_VARIANTS='$(OCDL_VARIANTS)' \
	  $(if $(EDITABLE),$(EDITABLE_ARGS),--config-settings=build-dir=build/install .)
	@touch $@
