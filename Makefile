# A thin front: Meson builds (build/prony), the scripts in tools/ do the rest.

all: build

help:
	@echo 'make build   install what is missing (dependencies.tsv), then build build/prony'
	@echo 'make run     build, install three frameworks, run the suite quickstart on real MNIST'
	@echo 'make test    build, install three frameworks, run the tests (CI=true: all)'
	@echo 'make bundle  build/packages/prony-*.tar.gz, which runs where it is unpacked'
	@echo 'make clean   remove all build folders'

build: setup build/build.ninja
	ninja -C build $$(test -t 1 || echo --quiet)

setup:
	@tools/setup

# The kernels for GPUs take nvcc minutes: only where a driver is.
CUDA = $(if $(wildcard /dev/nvidiactl),auto,disabled)

# What tools/setup fetched decides what Meson finds, so a new stamp means a new look.
build/deps/stamp: setup
	@:
build/build.ninja: build/deps/stamp
	if [ -f $@ ]; then meson setup --reconfigure build; else meson setup -Dcuda=$(CUDA) build; fi
	@touch $@

run: build
	@tools/quickstart

test: build
	@tools/run-tests

bundle:
	@tools/package bundle

clean:
	rm -rf build build-asan build-clang

.PHONY: all help build setup run test bundle clean
