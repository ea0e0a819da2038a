# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` each do all the set-up on a bare Debian 12 or Ubuntu 24.04, and are quick when run again.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.SILENT:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

LONG ?= 0
SERVERS ?= 0
JOBS ?= $(shell nproc)
VENV := .venv
BUILD := build/release
RUN := $(VENV)/bin/python
WERROR ?= OFF

export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export INGOT_LONG := $(LONG)
export INGOT_SERVERS := $(SERVERS)
export RUFF := $(CURDIR)/$(VENV)/bin/ruff
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Objects of another folder that was built the same way are found.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

# Everything that the libraries and the programs are built from, and the C++ tests.
SOURCES := -type f -regex '.*\.\(cpp\|c\|h\|inc\|def\|fbs\|html\|css\|py\|cmake\|in\)'
BUILD_INPUTS := CMakeLists.txt pyproject.toml $(shell find src include python cmake $(SOURCES) 2>/dev/null)
TEST_INPUTS := $(shell find tests $(SOURCES) -not -path 'tests/errors/*' -not -path 'tests/python/*' 2>/dev/null)

.PHONY: help demo test build tests setup system bench wheel aarch64 windows format lint clean fuzz
help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: build ## MiniLM in four ways beside eager and inductor; figures in build/demo.json
	$(RUN) examples/demo/demo.py --output build/demo.json
	if $(RUN) -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then $(RUN) examples/demo/demo.py --device cuda --output build/demo.json; fi

test: tests $(VENV)/.test ## every test and check; SERVERS=1 makes the environments of model servers; LONG=1 adds the long ones, and goes on where it was cut off (SHARD=K/N: a part of them)
	status=0
	export INGOT_NVRTC=$$(ls $(CURDIR)/$(VENV)/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13 2>/dev/null || true)
	if [[ $(LONG) == 1 ]]; then exec $(RUN) tools/test_long.py --jobs $(JOBS) --state build/long_tests.jsonl $(if $(SHARD),--shard $(SHARD)); fi
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS) || status=1
	$(RUN) -m pytest -n $(JOBS) --dist loadfile --max-worker-restart 0 || status=1
	$(MAKE) --no-print-directory lint || status=1
	exit $$status

build: $(VENV)/.package ## the libraries, the programs and the Python package

tests: $(VENV)/.tests ## the C++ tests too

setup: $(VENV)/.test ## system packages and the virtual environment

bench: build $(VENV)/.bench ## compares with the peers
	$(RUN) -m bench $(ARGS)

wheel: system ## wheels for Python 3.11, and for 3.12 and later, in dist/; tried in fresh environments
	tools/build_wheels.sh
	tools/test_wheels.sh

aarch64: system ## for Linux on aarch64, built here: the runtime, the program and the examples in an archive, and a wheel, in dist/ (docs/aarch64.md)
	tools/build_aarch64.sh

windows: system ## for Windows, built here: the runtime, the program and the examples in a zip, and a wheel, in dist/ (docs/windows.md)
	tools/build_windows.sh

format: $(VENV)/.test ## corrects the format of all sources
	tools/check_format.sh --fix

lint: $(VENV)/.test ## format, layers, sizes, language, names
	status=0
	tools/check_format.sh || status=1
	tools/check_layers.py || status=1
	tools/check_sizes.py || status=1
	tools/check_language.py || status=1
	tools/check_names.py || status=1
	tools/check_runtime.sh $(BUILD) || status=1
	exit $$status

fuzz: system ## each fuzz target for a minute
	tools/fuzz.sh 60

clean: ## removes build/, dist/ and .venv
	rm -rf build dist $(VENV)

system:
	tools/setup_system.sh $(if $(filter 1,$(LONG)),--long)

$(VENV)/bin/python: | system
	python=$$(tools/find_python.sh)
	echo "Making $(VENV) with $$python"
	"$$python" -m venv $(VENV)

# torch comes first, so that nothing else decides its version. The tests were made with 2.13.
$(VENV)/.torch: | $(VENV)/bin/python
	echo "Installing torch"
	$(RUN) -m pip install -q torch==2.13.0 || $(RUN) -m pip install -q 'torch>=2.11,<3'
	touch $@

$(VENV)/.runtime: requirements/runtime.txt requirements/build.txt $(VENV)/.torch
	echo "Installing Python packages"
	$(RUN) -m pip install -q -r requirements/runtime.txt -r requirements/build.txt
	touch $@

$(VENV)/.test: requirements/test.txt $(VENV)/.runtime
	$(RUN) -m pip install -q -r $<
	touch $@

$(VENV)/.bench: requirements/bench.txt $(VENV)/.test
	$(RUN) -m pip install -q -r $<
	touch $@

# Installing the package is the build. Its tree takes the C++ tests too, which no one but `make test` waits for.
SHOW_STEPS := { grep --line-buffered -E '\[[0-9]*0/[0-9]+\]|FAILED|[Ee]rror' || true; } || { tail -n 40 build/build.log; exit 1; }

$(VENV)/.package: $(VENV)/.runtime $(BUILD_INPUTS) | system
	mkdir -p build
	echo "Building (everything is in build/build.log)"
	$(RUN) -m pip install -v --no-build-isolation --no-deps --force-reinstall \
	  --config-settings cmake.define.INGOT_UNITY=ON --config-settings cmake.define.INGOT_WERROR=$(WERROR) . 2>&1 \
	  | tee build/build.log | $(SHOW_STEPS)
	touch $@

$(VENV)/.tests: $(VENV)/.package $(TEST_INPUTS)
	echo "Building the C++ tests"
	{ cmake -DINGOT_TESTS=ON $(BUILD) && cmake --build $(BUILD); } 2>&1 | tee -a build/build.log | $(SHOW_STEPS)
	touch $@
