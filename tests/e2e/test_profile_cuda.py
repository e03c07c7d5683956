#!/usr/bin/env python3
"""prony profile of native on cuda:0, with the fakes of tests/cuda for CUPTI and NVIDIA's libraries.

$PRONY names the program, $CUDA_FAKES the folder of the fakes.
"""
import json
import sys

import counted
from test_native_cuda import FAKES, CudaTest
from test_profile import ProfileTest

LENET = ("-n", "lenet", "-f", "native", "-D", "cuda:0", "-d", "synthetic", "-b", "2", "--warm-up", "1",
         "--steps", "3")


class CudaProfileTest(CudaTest, ProfileTest):
    def setUp(self):
        super().setUp()
        self.environment["PRONY_CUPTI"] = FAKES

    def layers(self, *words, **more):
        row = self.profiles(*words, base=LENET, **more)["native"]
        self.assertEqual((row["status"], row["reason"]), ("ok", None))
        self.check_sums(row)
        return row["layers"]

    def check_layers(self, layers):
        """The layers of LeNet with what the GPU ran for each of them, and nothing else."""
        calls = {row["layer"]: row["calls"] for row in layers["rows"]}
        self.assertEqual(set(calls), {"conv1", "pool1", "conv2", "pool2", "ip1", "relu1", "ip2", "loss", "(update)"})
        self.assertEqual(layers["named_ns"], layers["sum_ns"])
        # The product, its gradients by weights and input, and the gradient by bias.
        self.assertEqual(calls["ip2"], 4)
        self.assertEqual((calls["pool1"], calls["pool2"]), (2, 2))
        device = layers["device"]
        self.assertEqual(device["kernel"]["calls"], sum(calls.values()))
        self.assertEqual(device["copy"], {"calls": 0, "ns": 0, "bytes": 0})
        self.assertAlmostEqual(device["busy_ns"], layers["covered_ns"], delta=1)
        self.assertLessEqual(device["busy_share"], 1)
        return calls

    def test_captured_step(self):
        captured = self.check_layers(self.layers("-s", "train"))
        one_by_one = self.check_layers(self.layers("-s", "train", PRONY_CUDA_GRAPH="0"))
        self.assertEqual(captured, one_by_one)

    def test_trace(self):
        done = self.prony("profile", *LENET, "-s", "forward", "--format", "chrome", expect=0)
        events = [one for one in json.loads(done.stdout)["traceEvents"] if "device" in one.get("args", {})]
        names = [(one["name"], one["args"]["layer"]) for one in events if one["args"]["step"] == 2]
        self.assertEqual([layer for _, layer in names], ["conv1", "pool1", "conv2", "pool2", "ip1", "ip2"])
        self.assertEqual(names[1], ("max_pool_f32", "pool1"))
        for before, after in zip(events, events[1:]):
            self.assertLessEqual(before["ts"] + before["dur"], after["ts"] + 0.001)
        text = self.prony("profile", *LENET, "-s", "forward", expect=0).stdout
        self.assertRegex(text, r"GPU: busy [0-9.]+ % of the step, idle for .*; per\s+step\s+6 kernels, 0 copies")
        text = self.prony("profile", *LENET, "-s", "forward", "--format", "csv", expect=0).stdout
        self.assertIn("\ngpu,native,kernel,,6,", text)

    def test_what_it_cannot(self):
        for says, more in (("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", {"FAKE_CUPTI": "refuse"}),
                           ("CUPTI lost 3 records", {"FAKE_CUPTI": "lose"}),
                           ("needs CUPTI of CUDA 12 or 13", {"PRONY_CUPTI": self.folder})):
            with self.subTest(says):
                row = self.profiles("-s", "forward", base=LENET, expect=1, **more)["native"]
                self.assertNotEqual(row["status"], "ok")
                self.assertIn(says, row["reason"])


if __name__ == "__main__":
    sys.exit(counted.main())
