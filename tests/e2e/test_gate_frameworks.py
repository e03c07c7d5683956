#!/usr/bin/env python3
"""LeNet through the parity gate in each framework that lives in an old Python of its own, and in native on later
versions of oneDNN, as `prony run` starts it, each stage that it has, with momentum and weight decay. One that is not
installed is skipped, with its reason.

$PRONY names the program.
"""
import json
import os
import re
import sys

import counted
from prony_program import HOME, ProgramTest, write
from random_networks import upsampler

FRAMEWORKS = ["caffe", "caffe2", "chainer", "cntk", "keras2:cntk", "keras2:mxnet", "keras2:tensorflow",
              "keras2:theano", "native@3.13", "native@3.6", "paddle", "theano"]
UPSAMPLERS = ["chainer", "jax", "keras3:jax", "keras3:tensorflow", "mxnet", "paddle", "tensorflow", "tensorflow-python",
              "tensorflow1", "theano", "xla"]
STAGES = ["forward", "forward-backward", "train"]


class GateTest(ProgramTest):
    def cells(self, framework, *words, network="lenet", batch=8, stages=tuple(STAGES)):
        """{stage: (status, reason)} of a network in a framework, gates only."""
        done = self.prony("run", "-n", network, "-d", "synthetic", "-f", framework, "-s", ",".join(stages),
                          "-b", str(batch), "-D", "cpu:1", "--gate-only", "--store", self.store, "--format",
                          "json", *words, seconds=600,
                          **HOME)
        self.assertTrue(done.stdout, done.stderr)
        return {cell["stage"]: (cell["status"], cell.get("reason"))
                for cell in json.loads(done.stdout)["cells"]}

    def passes(self, framework, *words):
        found = self.cells(framework, "--weight-decay", "0.0005", *words)
        if found["forward"][0] == "missing":
            self.skipTest(found["forward"][1])
        expected = dict.fromkeys(STAGES, "ok")
        if framework.startswith("keras2"):
            expected["forward-backward"] = "unsupported"  # train_on_batch does not stop there
        self.assertEqual({stage: status for stage, (status, _) in found.items()}, expected, found)

    def test_epochs(self):
        """Keras' own loop; --loop fit."""
        self.passes("keras2:tensorflow", "--loop", "fit")

    def test_time_between_epochs_is_none_of_theirs(self):
        """Each epoch of predict is a call, before which Keras makes what reads the data."""
        done = self.prony("run", "-f", "keras3:tensorflow", "-n", "mlp", "-d", "synthetic", "-s", "forward", "-b", "16",
                          "--loop", "fit", "--sync", "step", "--quick", "--steps", "5", "--warm-up", "2", "--repeat", "1",
                          "--store", self.store, "--format", "json", seconds=600,
                          **HOME)
        cell, = json.loads(done.stdout)["cells"]
        if cell["status"] == "missing":
            self.skipTest(cell["reason"])
        (mean, window, median), = self.rows("select step_mean_ns, window_ns, step_median_ns from process")
        self.assertLess(5 * mean, 0.99 * window)
        self.assertLess(mean, 3 * median)

    def test_tokens_of_sequences(self):
        """Tokens a second of an LSTM over 40 characters, with a gate that ran and with one that was kept."""
        for kept in (False, True):
            done = self.prony("run", "-f", "native", "-n", "lstm", "-s", "forward", "-b", "8", "--steps", "2",
                              "--warm-up", "1", "--repeat", "1", "--store", self.store, "--format", "json",
                              **HOME)
            cell, = json.loads(done.stdout)["cells"]
            if cell["status"] == "missing":
                self.skipTest(cell["reason"])
            self.assertEqual("cached" in cell["parity"]["evidence"], kept)
            self.assertAlmostEqual(cell["tokens_per_second"] * cell["step"]["center_ns"] / 1e9, 8 * 40, places=6)

    def test_attention(self):
        """The vision transformer in frameworks whose operators only Python has."""
        for framework in ("jax", "pytorch", "tensorflow-python"):
            with self.subTest(framework):
                found = self.cells(framework, network="vit-small", batch=2)
                if found["forward"][0] == "missing":
                    self.skipTest(found["forward"][1])
                self.assertEqual({status for status, _ in found.values()}, {"ok"}, found)

    def test_upsampling(self):
        """Operators that grow and normalise images; some are made of several of a framework's own."""
        path = os.path.join(self.folder, "upsampler.onnx")
        write(path, upsampler())
        for framework in UPSAMPLERS:
            with self.subTest(framework):
                (found, reason), = self.cells(framework, network=path, batch=2, stages=["train"]).values()
                if found == "missing":
                    self.skipTest(reason)
                self.assertEqual(found, "ok", reason)

    def test_caches(self):
        """Prefill and decode; steps that run at once would share the caches."""
        for framework in ("native", "pytorch", "jax", "onnxruntime", "openvino", "onnxruntime+throughput"):
            with self.subTest(framework):
                found = self.cells(framework, network="llama-tiny", batch=2, stages=["prefill", "decode"])
                if found["decode"][0] == "missing":
                    self.skipTest(found["decode"][1])
                refuses = "+" in framework
                self.assertEqual({status for status, _ in found.values()}, {"unsupported" if refuses else "ok"}, found)
                self.assertIn("same caches" if refuses else "", found["decode"][1] or "")

    def test_nasnet_in_mxnet(self):
        """Parts of a Concat that share a block of channels: small networks do not get such blocks."""
        stage = "forward-backward"
        found = self.cells("mxnet", network="nasnet", batch=1, stages=[stage])
        if found[stage][0] == "missing":
            self.skipTest(found[stage][1])
        self.assertEqual(found[stage][0], "ok", found)


for row in FRAMEWORKS:
    setattr(GateTest, "test_" + re.sub(r"\W", "_", row), lambda self, name=row: self.passes(name))


if __name__ == "__main__":
    sys.exit(counted.main())
