#!/usr/bin/env python3
"""The nine light models of the package onnx: architectures as exporters of 2017 wrote them (opset 8 and
9), whose weights are all 0.02. They import as they are and pass the gate forward in native and
onnxruntime, with those weights and with seeded random ones. Only the latter prove something: under them
swapped channels and a wrong epsilon of batch normalisation are rejected, in both.

$PRONY and $ONNX_GATE name the programs, $LIGHT_MODELS the folder, which tools/setup makes where CI=true.
There nothing of this may be absent. LIGHT_ALL=1 takes all nine through the whole of `prony run`.
"""
import json
import os
import subprocess
import sys

import counted
from prony_program import HOME, ProgramTest

FOLDER = os.environ.get("LIGHT_MODELS", "build/deps/light")
# Parameters and multiply-accumulates of one sample.
MODELS = {
    "bvlc_alexnet": (60965224, 654560384),
    "densenet121": (7979112, 2834161664),
    "inception_v1": (6998552, 1431556352),
    "inception_v2": (11196584, 2018851840),
    "resnet50": (25557032, 4089184256),
    "shufflenet": (1393320, 124664528),
    "squeezenet": (1235496, 349151936),
    "vgg19": (143667240, 19632062464),
    "zfnet512": (87250536, 1481727008),
}
NORMALISED = {"densenet121", "inception_v2", "resnet50", "shufflenet"}
# Through the whole of `prony run` each time; the gate, which ONNX_GATE asks for all nine, is the same.
RUN = ("squeezenet", "shufflenet", "bvlc_alexnet")


def path(name):
    return os.path.join(FOLDER, f"light_{name}.onnx")


class LightTest(ProgramTest):
    """Skips where the models are absent, and fails where they may not be."""

    def absent(self, reason):
        if os.environ.get("CI") == "true":
            self.fail(reason)
        self.skipTest(reason)

    def setUp(self):
        super().setUp()
        if not os.path.exists(path("squeezenet")):
            self.absent(f"no models in {FOLDER}: CI=true tools/setup fetches them")


class ImportTest(LightTest):
    def test_each_imports(self):
        for name, figures in MODELS.items():
            found = json.loads(self.prony("network", path(name), "--format", "json",
                                          expect=0).stdout)
            self.assertEqual((found["parameters"], found["macs"]), figures, name)


class GateTest(LightTest):
    def setUp(self):
        super().setUp()
        self.libraries = {row["name"]: row["path"] for row in self.ready() if row["name"] in ("native", "onnxruntime")}
        if len(self.libraries) < 2:
            self.absent("native and onnxruntime are not both installed")

    def verdicts(self, name, seed):
        """{(framework, what is wrong): (passed or rejected, worst figure in bounds)}."""
        done = subprocess.run([os.environ["ONNX_GATE"], path(name), str(seed),
                               self.libraries["native"], self.libraries["onnxruntime"]],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()]
        print(name, "seed", seed, *[" ".join(row) for row in rows], sep="  ")
        return {(who, what): (verdict, float(figure)) for who, what, verdict, figure in rows}

    def through_run(self, names):
        done = self.prony("run", "-n", ",".join(map(path, names)), "-f", "native,onnxruntime", "-s",
                          "forward", "-b", "1", "--quick", "--steps", "1", "--warm-up", "0", "--repeat", "1",
                          "--store", self.store, "--format", "json", expect=0, seconds=900,
                          **HOME)
        cells = json.loads(done.stdout)["cells"]
        self.assertEqual([cell["status"] for cell in cells], ["ok"] * 2 * len(names))

    def test_some_run(self):
        self.through_run(RUN)

    def test_the_others_run(self):
        others = [name for name in MODELS if name not in RUN]
        if os.environ.get("LIGHT_ALL") != "1":
            self.skipTest(f"five minutes for {', '.join(others)}, whose gates the other tests ask: "
                          "LIGHT_ALL=1 runs them")
        for name in others:
            self.through_run([name])

    def test_the_files_weights_pass(self):
        for name in MODELS:
            found = self.verdicts(name, 0)
            for framework in self.libraries:
                self.assertEqual(found[framework, "nothing"][0], "passed", (name, framework))
                # Weights that are all the same hide it, which is why there is the next test.
                self.assertEqual(found[framework, "channels"][0], "passed", (name, framework))

    def test_random_weights_pass_and_mistakes_do_not(self):
        for name in MODELS:
            found = self.verdicts(name, 1)
            mistakes = ["channels"] + ["epsilon"] * (name in NORMALISED)
            self.assertEqual({what for _, what in found}, {"nothing", *mistakes}, name)
            for framework in self.libraries:
                self.assertEqual(found[framework, "nothing"][0], "passed", (name, framework))
                for what in mistakes:
                    self.assertEqual(found[framework, what][0], "rejected", (name, framework, what))


if __name__ == "__main__":
    sys.exit(counted.main())
