# `make demo` or `make test` on a fresh clone is all the set-up there is: every target first brings .venv up to date.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
NATIVE := $(wildcard native/*.h native/*/*.h native/*/*.cpp)

# A cmake from the machine where there is one, else from pip.
CMAKE_PACKAGE := $(if $(shell command -v cmake),,cmake)
CMAKE = $(if $(CMAKE_PACKAGE),$(BIN)/cmake,cmake)

SAN_VENV := .venv-sanitize
SAN_BIN := $(SAN_VENV)/bin
SAN_BUILD := build/sanitize
SAN_SITE := $(SAN_BUILD)/site

.PHONY: FORCE docs install wheels tools demo test check format lint types layers stub symbols doctest sanitize bench experiments pictures clean

# An environment whose Python or pip does not work any more, as after an interrupted upgrade, is made anew.
ifneq ($(wildcard $(VENV)/.build),)
ifneq ($(shell $(BIN)/python -c 'import pip' 2>/dev/null && echo works),works)
$(shell rm -f $(VENV)/.build)
endif
endif

install: $(VENV)/.native
tools: install $(VENV)/.tools

# What it takes to compile and run. A virtual environment without pip, left by a set-up that failed, is made anew.
$(VENV)/.build: pyproject.toml tools/requirements.py tools/check_machine.py
	@$(PYTHON) tools/check_machine.py
	$(BIN)/python -m pip --version >/dev/null 2>&1 || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); }
	$(PIP) install -qq $$($(BIN)/python tools/requirements.py build) $(CMAKE_PACKAGE)
	touch $@

# The tools and test dependencies, pinned in pyproject.toml. After the package: make -j runs one pip at a time.
$(VENV)/.tools: $(VENV)/.build | $(VENV)/.native
	$(PIP) install -qq $$($(BIN)/python tools/requirements.py dev)
	touch $@

# An editable install remembers where modules are: it is made again when one comes, goes or moves.
$(VENV)/.modules: $(VENV)/.build FORCE
	@find src/tallytree -name '*.py' | sort > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# The package in editable mode; the compiled extension is copied into the virtual environment. pip does not show progress.
COMPILING := Compiling tallytree: about three minutes on two idle cores, seconds with ccache or if little has changed
$(VENV)/.native: $(VENV)/.build $(VENV)/.modules CMakeLists.txt $(NATIVE)
	@$(if $(filter CMakeLists.txt $(NATIVE),$?),echo "$(COMPILING)")
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) install -qq --no-build-isolation --no-deps -e .
	touch $@

FORCE:

demo: install
	$(BIN)/python -m tallytree.demo

test: tools
	$(BIN)/python -m pytest -n 2 tests

bench: tools
	$(PIP) install -qq $$($(BIN)/python tools/requirements.py bench)
	$(BIN)/python benchmarks/run.py

pictures: tools
	$(BIN)/python docs/pictures.py

# The site, in build/site: strict, so a broken link fails, as does a page too wide for a screen. Tests run the examples.
docs: tools
	$(PIP) install -qq $$($(BIN)/python tools/requirements.py docs)
	$(BIN)/python tools/stage_docs.py build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python tools/check_site.py build/site

# The sdist, and wheels from it for the Pythons that are named; each is tried in a fresh environment.
PYTHONS ?= $(PYTHON)
wheels:
	$(PYTHON) tools/wheels.py $(PYTHONS)

experiments: tools
	$(PIP) install -qq $$($(BIN)/python tools/requirements.py experiments)
	$(BIN)/python experiments/run.py

# ---------------------------------------------------------------- checks

check: lint types layers stub symbols doctest sanitize

format: tools
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE)
	$(BIN)/ruff check --fix .

lint: tools
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(NATIVE)
	$(BIN)/ruff check .

types: tools
	$(BIN)/mypy --strict src

layers: tools
	$(BIN)/lint-imports

stub: tools
	$(BIN)/python tools/check_stub.py

symbols: tools
	$(BIN)/python tools/check_symbols.py build/editable

doctest: tools
	$(BIN)/python -m pytest -n 2 -p no:cacheprovider --doctest-modules src

# A second environment, because the editable install in the first would win over PYTHONPATH.
$(SAN_VENV)/.tools: pyproject.toml tools/requirements.py
	test -x $(SAN_BIN)/python || $(PYTHON) -m venv $(SAN_VENV)
	$(SAN_BIN)/python -m pip --disable-pip-version-check install -qq \
	  $$($(PYTHON) tools/requirements.py --only numpy,pytest,pytest-xdist,hypothesis test)
	touch $@

$(SAN_BUILD)/.native: $(VENV)/.build $(SAN_VENV)/.tools CMakeLists.txt $(NATIVE) | $(VENV)/.native
	PATH="$(CURDIR)/$(BIN):$$PATH" $(CMAKE) -S . -B $(SAN_BUILD) -G Ninja --log-level=WARNING \
	  -DTALLYTREE_SANITIZE=ON -DCMAKE_BUILD_TYPE=None -DPython_EXECUTABLE=$(CURDIR)/$(SAN_BIN)/python \
	  -Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir)
	MAKEFLAGS= PATH="$(CURDIR)/$(BIN):$$PATH" $(CMAKE) --build $(SAN_BUILD)
	touch $@

# --capture=sys: the sanitizers write to the file descriptor and abort, so captured text would be lost.
sanitize: $(SAN_BUILD)/.native
	rm -rf $(SAN_SITE) && mkdir -p $(SAN_SITE)
	cp -r src/tallytree $(SAN_SITE)/tallytree
	cp $(SAN_BUILD)/_native*.so $(SAN_SITE)/tallytree/
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH=$(SAN_SITE) \
	  $(SAN_BIN)/python -m pytest -n 2 -p no:cacheprovider --capture=sys tests -m sanitize

clean:
	rm -rf $(VENV) $(SAN_VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
