#!/usr/bin/env python3
"""Every function of the operator table through `prony run`: import, gate, forward and backward.

$PRONY names the program, $FUNCTION_MODELS the one that writes the models. A class of tests is the
argument: FakeTest needs nothing, FrameworkTest takes what is installed on this machine.
"""
import json
import os
import subprocess
import sys

import counted
from prony_program import HOME, ProgramTest


class FunctionTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.names = subprocess.run([os.environ["FUNCTION_MODELS"], self.folder], text=True,
                                    stdout=subprocess.PIPE, check=True).stdout.split()

    def run_all(self, frameworks, stages, **environment):
        """(framework, file, stage) -> status and reason of each cell."""
        models = ",".join(os.path.join(self.folder, name + ".onnx") for name in self.names)
        done = self.prony("run", "-n", models, "-f", frameworks, "-s", stages, "-b", "8", "-D",
                          "cpu:1", "--quick", "--steps", "1", "--warm-up", "0", "--repeat", "1", "--store",
                          self.store, "--format", "json", seconds=1200, **environment)
        found = {}
        for cell in json.loads(done.stdout)["cells"]:
            name = cell["network"].partition(".onnx")[0]
            found[cell["framework"], name, cell["stage"]] = (cell["status"], cell.get("reason"))
        self.assertTrue(found, done.stderr)
        return found

    def expect_ok(self, found):
        wrong = {key: value for key, value in found.items() if value[0] != "ok"}
        self.assertEqual(wrong, {})


class FakeTest(FunctionTest):
    def test_each_passes_the_gate(self):
        self.names.remove("all")  # its branches are joined, which the fake does not know
        found = self.run_all("fake", "forward,forward-backward,train")
        self.expect_ok(found)
        self.assertEqual(len(found), 3 * len(self.names))
        self.assertIn(("fake", "Gelu-tanh", "train"), found)


class FrameworkTest(FunctionTest):
    def test_each_passes_the_gate(self):
        """All in one model, and Gelu with tanh, which has another way in MXNet."""
        self.names = ["all", "Gelu-tanh"]
        ready = {row["name"] for row in self.ready()} & {"native", "mxnet", "pytorch", "onnxruntime", "openvino", "xla"}
        if not ready:
            self.skipTest("none of native, mxnet, pytorch, onnxruntime, openvino and xla is installed")
        self.expect_ok(self.run_all(",".join(sorted(ready)), "forward", **HOME))
        training = sorted(ready - {"onnxruntime", "openvino", "xla"})
        if training:
            self.expect_ok(self.run_all(",".join(training), "train", **HOME))


if __name__ == "__main__":
    sys.exit(counted.main())
