#!/usr/bin/env python3
"""The values that prony declares of NVIDIA's libraries, against NVIDIA's own headers.

The fakes include prony's declarations, so a wrong value there would pass every other test. The names
are NVIDIA's, so that a C compiler can compare them. Skipped where the headers are not installed.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import counted

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "adapters", "native", "cuda")
HEADERS = {"cudnn.h": ["cudnn.h"], "cublaslt.h": ["cublasLt.h"], "driver.h": ["cuda.h"],
           "cupti.h": ["cupti.h"], "cupti.c": ["cupti.h"]}
# Of these a name is prony's own.
OWN = re.compile(r"^(CUDA_DRIVER_OLDEST|CUDNN_(NUMERICAL|BEHAVIOR)_NOTES|CUDNN_OLDEST)$")
VALUE = re.compile(r"^\s*((?:CU|CUDNN|CUBLAS|CUBLASLT|CUDA|CUPTI)_\w+) = (-?(?:0x)?[0-9a-fA-F]+)\b", re.M)


def include_folder():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    folder = os.path.join(os.path.dirname(os.path.dirname(nvcc)), "include")
    return folder if os.path.exists(os.path.join(folder, "cudnn.h")) else None


class ValuesTest(unittest.TestCase):
    def test_declarations_have_the_values_of_nvidias_headers(self):
        include = include_folder()
        if not include:
            self.skipTest("the headers of CUDA and cuDNN are not installed")
        checked = 0
        for own, theirs in HEADERS.items():
            path = os.path.join(ROOT, own)
            if not os.path.exists(path):
                continue
            with open(path) as file:
                values = [(name, value) for name, value in VALUE.findall(file.read()) if not OWN.match(name)]
            text = "".join(f"#include <{header}>\n" for header in theirs) + "".join(
                f'_Static_assert((long long)({name}) == {value}, "{own}: {name}");\n' for name, value in values)
            with tempfile.TemporaryDirectory() as folder:
                source = os.path.join(folder, "values.c")
                with open(source, "w") as file:
                    file.write(text)
                done = subprocess.run(["cc", "-std=c11", "-w", "-fsyntax-only", "-I", include, source],
                                      capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr[:3000])
            checked += len(values)
        self.assertGreater(checked, 100)


if __name__ == "__main__":
    sys.exit(counted.main())
