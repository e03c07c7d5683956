#!/usr/bin/env python3
"""prony profile: on the fake, whose delays are known; on workers in Python; on native.

$PRONY names the program.
"""
import csv
import json
import os
import signal
import sys
import time

import counted
from prony_program import HOME, PRONY, ProgramTest, read, timed

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CARELESS_WORKER = os.path.join(ROOT, "tests", "workers", "careless.py")
LITTLE = ("-n", "mlp", "-d", "synthetic", "-b", "4", "--warm-up", "1", "--steps", "3")
SHAPE = {"fc1", "fc2", "fc3"}  # of mlp, what takes its time


class ProfileTest(ProgramTest):
    def profiles(self, *words, base=LITTLE, expect=0, **more):
        done = self.prony("profile", *base, *words, "--format", "json", expect=expect, **more)
        return {row["framework"]: row for row in json.loads(done.stdout)}

    def check_sums(self, row):
        """Two forms of the same: rows and their sum, the sum and the step."""
        layers = row["layers"]
        rows = layers["rows"]
        self.assertAlmostEqual(sum(one["ns"] for one in rows), layers["sum_ns"], delta=1)
        self.assertAlmostEqual(sum(one["share"] for one in rows),
                               layers["sum_ns"] / layers["step_ns"], places=6)
        self.assertLessEqual(layers["covered_ns"], layers["step_ns"])
        self.assertLessEqual(layers["named_ns"], layers["sum_ns"] + 1)
        for one in rows:
            self.assertAlmostEqual(one["forward_ns"] + one["backward_ns"] + one["other_ns"], one["ns"],
                                   delta=1)


class FakeTest(ProfileTest):
    def test_known_delay(self):
        """What the fake waits is in no layer: a step is the layers and that."""
        for stage in ("forward", "train"):
            with self.subTest(stage):
                row = self.profiles("-f", "fake+delay-ms=20", "-s", stage)["fake+delay-ms=20"]
                self.check_sums(row)
                layers = row["layers"]
                names = {one["layer"] for one in layers["rows"]}
                self.assertTrue(SHAPE < names, names)
                self.assertEqual(layers["named_ns"], layers["sum_ns"])
                self.assertGreaterEqual(layers["step_ns"] - layers["covered_ns"], 20e6)
                self.assertGreaterEqual(row["step_ns"], 20e6)
                self.assertEqual("(update)" in names, stage == "train")
                back = {one["layer"] for one in layers["rows"] if one["backward_ns"] > 0}
                self.assertEqual(SHAPE <= back, stage == "train")
                self.assertIsNone(row["lines"])

    def test_phases(self):
        row = self.profiles("-f", "fake", "-s", "train")["fake"]
        phases = {one["phase"]: one for one in row["phases"]}
        self.assertEqual(list(phases), ["start-up", "import", "open", "build", "feed", "first step",
                                        "warm-up", "steps", "steps, layers timed", "read back"])
        self.assertEqual(phases["steps, layers timed"]["steps"], 3)
        self.assertEqual(phases["warm-up"]["steps"], 1)
        self.assertAlmostEqual(phases["steps"]["ns"] / phases["steps"]["steps"], row["step_ns"], delta=1)
        self.assertEqual(row["status"], "ok")
        self.assertIn("not a measurement", row["caution"])

    def test_side_by_side(self):
        done = self.prony("profile", *LITTLE, "-f", "fake,null", expect=0)
        self.assertIn("fake  steps", done.stdout)
        self.assertRegex(done.stdout, r"null \S+: no times per layer from this framework\n")
        self.assertIn("not a measurement", done.stdout)
        self.assertFalse(os.path.exists(self.store))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "prony", "prony.db")))

    def test_files(self):
        for kind in ("csv", "chrome", "folded", "table"):
            path = os.path.join(self.folder, kind)
            done = self.prony("profile", *LITTLE, "-f", "fake", "--format", kind, "-o", path, expect=0)
            self.assertEqual(done.stdout, "")
            text = read(path)
            self.assertIn("fc1", text)
            if kind == "chrome":
                events = json.loads(text)["traceEvents"]
                steps = [one for one in events if one["name"] == "steps, layers timed"][0]
                for one in (one for one in events if one.get("args", {}).get("layer")):
                    self.assertGreaterEqual(one["ts"], steps["ts"])
                    self.assertLessEqual(one["ts"] + one["dur"], steps["ts"] + steps["dur"] + 0.01)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("prony-run")], [])

    def test_narrow(self):
        done = self.prony("profile", *LITTLE, "-f", "fake+delay-ms=100", expect=0, COLUMNS="40")
        self.assertIn("processor use", done.stdout)
        self.assertEqual([line for line in done.stdout.splitlines() if len(line) > 40], [])

    def test_wrong_words(self):
        for words, expect, part in (
                (("-f", "fake", "-b", "1,2"), 64, "a profile shows one cell"),
                (("-f", "no-such"), 64, "no-such"),
                (("-f", "fake", "--format", "svg"), 64, "use one of table, json, csv, chrome, folded"),
                (("-f", "fake", "--steps", "0"), 64, "--steps"),
                (("-f", "fake", "-o", "/nowhere/at/all"), 74, "/nowhere/at/all")):
            with self.subTest(words):
                done = self.prony("profile", "-n", "mlp", *words, expect=expect)
                self.assertIn(part, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_bare(self):
        """Not all frameworks on the network that `prony run` takes by itself."""
        done = self.prony("profile", expect=64)
        self.assertIn("which cell?", done.stderr)

    def test_failures(self):
        for option, status, part in (("fail", "crashed", "as requested"),
                                     ("after=2,crash", "crashed", "signal 11"),
                                     ("exit-at=build,exit=3", "crashed", "exit code 3")):
            with self.subTest(option):
                name = "fake+" + "+".join(sorted(option.split(",")))
                row = self.profiles("-f", name, expect=1)[name]
                self.assertEqual((row["status"], row["layers"]), (status, None))
                self.assertIn(part, row["reason"])
        self.assert_nothing_stays()

    def test_interrupted(self):
        process = self.start("profile", *LITTLE, "-f", "fake+hang")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not any(
                name.startswith("prony-run") for name in os.listdir(self.folder)):
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)
        self.assert_nothing_stays()
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("prony-run")], [])


    def test_interrupted_later(self):
        """What was profiled before is kept."""
        log, out = (os.path.join(self.folder, name) for name in ("said", "done.json"))

        def said():
            return read(log)
        process = self.start("profile", *LITTLE, "-f", "fake,fake+hang", "--format", "json", "-o", out, log=log)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and "profiling fake+hang" not in said():
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)
        self.assertEqual([(row["framework"], row["status"]) for row in json.loads(read(out))], [("fake", "ok")])
        self.assertIn("interrupted after 1 of 2 profiles", said())
        self.assert_nothing_stays()


class PythonTest(ProfileTest):
    def worker(self, fault, expect=0):
        command = "mine=%s %s %s" % (sys.executable, CARELESS_WORKER, fault)
        return self.profiles("--worker", command, "-f", "mine", expect=expect)["mine"]

    @timed
    def test_lines(self):
        row = self.worker("slow-lines")
        lines = row["lines"]
        functions = {one["function"]: one for one in lines["functions"]}
        total = lines["all_steps_ns"]
        self.assertLess(abs(lines["all_lines_ns"] / total - 1), 0.02)
        for one in functions.values():
            own = sum(line["self_ns"] for line in one["lines"])
            self.assertEqual(own, one["self_ns"])
        root = functions["timed_loop"]
        self.assertLess(abs(root["ns"] / total - 1), 0.02)
        self.assertLess(abs(sum(line["ns"] for line in root["lines"]) / total - 1), 0.02)
        # 3 steps that sleep 4 ms in a line and 8 ms in another's callee.
        by_text = {line["text"].strip(): line for one in functions.values() for line in one["lines"]}
        self.assertEqual(by_text["short_nap()"]["hits"], 3)
        self.assertGreaterEqual(by_text["time.sleep(0.004)"]["self_ns"], 12e6)
        self.assertGreaterEqual(by_text["time.sleep(0.008)"]["self_ns"], 24e6)
        self.assertGreater(by_text["long_nap()"]["ns"], by_text["short_nap()"]["ns"])
        self.assertLess(by_text["long_nap()"]["self_ns"], 12e6)
        self.assertIsNone(row["layers"])

    def test_malformed(self):
        for fault, part in (("no-profile", "cannot be read"),
                            ("half-profile", "the worker's profile has 0 steps, but 1 were requested"),
                            ("long-profile", "total_ns in the worker's profile must be above 0")):
            with self.subTest(fault):
                row = self.worker(fault, expect=1)
                self.assertEqual(row["status"], "crashed")
                self.assertIn(part, row["reason"])


class FrameworkTest(ProfileTest):
    """Installed frameworks: the profile covers nearly all of the step, with the network's names."""

    def setUp(self):
        super().setUp()
        self.installed = {row["framework"] for row in self.ready()}

    def need(self, framework):
        if framework not in self.installed:
            self.skipTest(framework + " is not installed")

    def words(self, framework, network, stage, batch="64", steps="20"):
        return ("-f", framework, "-n", network, "-b", batch, "-s", stage, "-d", "synthetic", "--steps", steps)

    def layers(self, framework, network, stage, batch="64"):
        row = self.profiles(*self.words(framework, network, stage, batch), base=(), **HOME)[framework]
        self.assertEqual((row["status"], row["reason"]), ("ok", None))
        self.check_sums(row)
        return row["layers"]

    def check_files(self, framework, network, stage, layers):
        """Every form has the same layers."""
        for kind in ("csv", "chrome", "folded"):
            text = self.prony("profile", *self.words(framework, network, stage, "8", "3"), "--format", kind,
                              expect=0, **HOME).stdout
            if kind == "chrome":
                found = {one["args"]["layer"] for one in json.loads(text)["traceEvents"]
                         if one.get("args", {}).get("layer")}
            elif kind == "csv":
                found = {one["name"] for one in csv.DictReader(text.splitlines()) if one["kind"] == "layer"}
            else:
                found = {line.split(";")[2] for line in text.splitlines() if ";layers;" in line}
            self.assertLessEqual(layers, found, kind)

    @timed
    def test_onnxruntime(self):
        self.need("onnxruntime")
        layers = self.layers("onnxruntime", "lenet", "forward")
        self.assertGreaterEqual(layers["sum_ns"] / layers["step_ns"], 0.8)
        self.assertGreaterEqual(layers["named_ns"] / layers["sum_ns"], 0.8)
        self.assertLessEqual({"conv1", "conv2", "ip1", "ip2"}, {one["layer"] for one in layers["rows"]})

    @timed
    def test_openvino(self):
        """Means of whole microseconds: of few steps they may be more than the step is."""
        self.need("openvino")
        layers = self.layers("openvino", "lenet", "forward")
        self.assertGreaterEqual(layers["sum_ns"] / layers["step_ns"], 0.7)
        self.assertGreaterEqual(layers["named_ns"] / layers["sum_ns"], 0.9)
        times = {one["layer"]: one["forward_ns"] for one in layers["rows"]}
        self.assertLessEqual({"conv1", "conv2", "ip1"}, set(times))
        self.assertGreater(times["conv2"], times["ip1"])  # 102 and 26 million MACs
        self.check_files("openvino", "lenet", "forward", {"conv1", "conv2", "ip1"})
        row = self.profiles(*self.words("openvino+throughput", "lenet", "forward"), base=(), expect=1,
                            **HOME)["openvino+throughput"]
        self.assertEqual((row["status"], row["layers"]), ("unsupported", None))
        self.assertIn("several steps run at once", row["reason"])

    @timed
    def test_openvino_folded(self):
        """What was folded and fused has the names of all its parts, and counts for the first."""
        self.need("openvino")
        layers = self.layers("openvino", "resnet50-cifar", "forward", "1")
        self.assertGreaterEqual(layers["named_ns"] / layers["sum_ns"], 0.95)
        fused = {one["layer"]: one["fused"] for one in layers["rows"]}
        self.assertEqual(fused["conv1"], "conv1 + conv1.bn + conv1.relu")
        self.assertEqual(fused["stage1.0.conv2"],
                         "stage1.0.conv2 + stage1.0.conv2.bn + stage1.0.add + stage1.0.relu")
        row = self.profiles(*self.words("openvino", "lstm", "forward", "1", "3"), base=(), **HOME)["openvino"]
        self.assertGreaterEqual({one["layer"] for one in row["layers"]["rows"]}, {"lstm", "fc"})

    @timed
    def check_mxnet(self, network, stage, shape):
        layers = self.layers("mxnet", network, stage, "64" if network == "lenet" else "2")
        # 180 nodes of some microseconds: what the engine does between them was up to 0.44 of a step.
        self.assertGreaterEqual(layers["sum_ns"] / layers["step_ns"], 0.6 if network == "lenet" else 0.4)
        self.assertGreaterEqual(layers["named_ns"] / layers["sum_ns"], 0.9)
        names = {one["layer"] for one in layers["rows"]}
        self.assertEqual("(update)" in names, stage == "train")
        # The last node forward, and the last one backward.
        self.assertEqual([one["backward_ns"] for one in layers["rows"] if one["layer"] == "prony.logits"], [0] * (stage == "train"))
        if network == "lenet":
            self.assertLessEqual(shape, names)
            back = {one["layer"] for one in layers["rows"] if one["backward_ns"] > 0}
            self.assertEqual(shape & back, shape if stage == "train" else set())

    def test_mxnet(self):
        """Nodes that became one, and those of the backward pass, have their layer's name."""
        self.need("mxnet")
        shape = {"conv1", "conv2", "ip1", "ip2", "pool1", "pool2"}
        for network, stage in (("lenet", "forward"), ("lenet", "train"), ("resnet50-cifar", "forward")):
            with self.subTest(network=network, stage=stage):
                self.check_mxnet(network, stage, shape)
        self.check_files("mxnet", "lenet", "train", shape | {"(update)"})

    @timed
    def check_tensorflow_stage(self, framework, stage, shape):
        layers = self.layers(framework, "lenet", stage)
        self.assertGreaterEqual(layers["covered_ns"] / layers["step_ns"], 0.4)
        self.assertGreaterEqual(layers["named_ns"] / layers["sum_ns"], 0.9)
        rows = {one["layer"]: one for one in layers["rows"]}
        self.assertLessEqual(shape, set(rows))
        self.assertEqual("(update)" in rows, stage == "train")
        self.assertGreater(rows["ip1"]["forward_ns"], rows["ip2"]["forward_ns"])  # 80 times the work
        back = {name for name, one in rows.items() if one["backward_ns"] > 0}
        self.assertEqual(shape & back, shape if stage == "train" else set())

    def check_tensorflow(self, framework):
        """What was fused has the name of its product."""
        self.need(framework)
        shape = {"conv1", "conv2", "ip1", "ip2", "pool1", "pool2"}
        for stage in ("forward", "train"):
            with self.subTest(stage=stage):
                self.check_tensorflow_stage(framework, stage, shape)
        self.check_files(framework, "lenet", "train", shape | {"(update)"})

    def test_tensorflow(self):
        self.check_tensorflow("tensorflow")

    def test_tensorflow1(self):
        self.check_tensorflow("tensorflow1")

    @timed
    def check_traced(self, framework, covered):
        """Forward, backward and update of each layer, whatever the compiler made of them."""
        self.need(framework)
        row = self.profiles(*self.words(framework, "lenet", "train", "16", "3"), base=(), **HOME)[framework]
        self.assertEqual((row["status"], row["reason"], row["no_layers"]), ("ok", None, None))
        layers = row["layers"]
        self.check_sums(row)
        self.assertGreaterEqual(layers["named_ns"] / layers["sum_ns"], 0.9)
        self.assertGreaterEqual(layers["covered_ns"] / layers["step_ns"], covered)
        rows = {one["layer"]: one for one in layers["rows"]}
        for name in ("conv1", "conv2", "pool1", "pool2", "ip1", "ip2"):
            self.assertGreater(rows[name]["forward_ns"], 0, name)
            self.assertGreater(rows[name]["backward_ns"], 0, name)
        self.assertGreater(rows["(update)"]["other_ns"], 0)
        self.assertIsNotNone(row["lines"])

    def test_jax(self):
        self.check_traced("jax", 0.2)

    def test_tensorflow_python(self):
        self.check_traced("tensorflow-python", 0.1)

    def test_keras3_torch(self):
        self.check_traced("keras3:torch", 0.1)

    def test_keras3_jax(self):
        self.check_traced("keras3:jax", 0.1)

    def test_keras3_tensorflow(self):
        self.check_traced("keras3:tensorflow", 0.1)

    def test_no_layers(self):
        """Why there are none."""
        for framework, part in (("xla", "has no profiler"), ("tensorflow-python+eager", "without +eager")):
            if framework.split("+")[0] not in self.installed:
                continue
            with self.subTest(framework):
                row = self.profiles(*self.words(framework, "mlp", "forward", "1", "2"), base=(),
                                    **HOME)[framework]
                self.assertEqual((row["status"], row["layers"]), ("ok", None))
                self.assertIn(part, row["no_layers"])

    @timed
    def check_native(self, network, stage):
        layers = self.layers("native", network, stage)
        self.assertGreaterEqual(layers["named_ns"] / layers["step_ns"], 0.9)

    def test_native(self):
        """What it does beside its primitives is next to nothing."""
        self.need("native")
        for network, stage in (("lenet", "forward"), ("lenet", "train"), ("mlp", "train")):
            with self.subTest(network=network, stage=stage):
                self.check_native(network, stage)


if __name__ == "__main__":
    sys.exit(counted.main())
