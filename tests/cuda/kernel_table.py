#!/usr/bin/env python3
"""Writes the C++ source that gives the kernels of a .cu file to the fake driver.

The names are read after preprocessing, since most kernels come from a macro for each type; the C++
compiler derives the arguments (host_kernel in host_cuda.h).
"""
import argparse
import os
import re
import subprocess
import sys

TEXT = '''/* Made by kernel_table.py from {source}. */
#include "tests/cuda/host_cuda.h"

#include "{source}"

static const struct fake_kernel kernels[] = {{
{rows}}};
static const bool added = fake_kernels_add(kernels, {count});
'''


def kernels_of(compiler, root, source, depfile, output):
    """[(name, has barriers)] in the order of the file."""
    result = subprocess.run(
        compiler + ["-x", "c++", "-std=c++17", "-E", "-P", "-DKERNEL_NAMES", "-I", root, "-include",
                    os.path.join(root, "tests/cuda/host_cuda.h"), "-MD", "-MF", depfile, "-MT", output,
                    os.path.join(root, source)],
        stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"kernel_table: cannot preprocess {source}")
    found = re.findall(r"\b(plain|block)_kernel\s+(\w+)", result.stdout)
    return [(name, kind == "block") for kind, name in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True, help="the top of the tree")
    parser.add_argument("--depfile", required=True)
    parser.add_argument("source", help="a .cu file, from the top of the tree")
    parser.add_argument("output")
    parser.add_argument("compiler", nargs="+")
    options = parser.parse_args()

    source = os.path.relpath(options.source, options.root)
    kernels = kernels_of(options.compiler, options.root, source, options.depfile, options.output)
    if not kernels:
        sys.exit(f"kernel_table: {source}: no KERNEL(name)(...) and no BLOCK_KERNEL(name)(...)")
    rows = "".join(f'\thost_kernel<{name}>::row("{name}", {str(block).lower()}),\n'
                   for name, block in kernels)
    with open(options.output, "w", encoding="utf-8") as stream:
        stream.write(TEXT.format(source=source, rows=rows, count=len(kernels)))


if __name__ == "__main__":
    main()
