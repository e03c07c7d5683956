#!/usr/bin/env python3
"""prony network: the published figures, shapes for any batch, ONNX files. $PRONY names the program."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import counted  # noqa: E402
from prony_program import ProgramTest  # noqa: E402

# Parameters and MACs of one sample (Caffe's LeNet; Keras' mnist_mlp).
KNOWN = {"lenet": (431080, 2293000), "mlp": (669706, 668672)}


class NetworkTest(ProgramTest):
    def described(self, *words):
        return json.loads(self.prony("network", *words, "--format", "json", expect=0).stdout)

    def test_published_figures(self):
        for name, (parameters, macs) in KNOWN.items():
            for batch in (1, 7, 64):
                network = self.described(name, "-b", str(batch))
                self.assertEqual((network["name"], network["batch"]), (name, batch))
                self.assertEqual((network["parameters"], network["macs"]),
                                 (parameters, batch * macs))
                self.assertEqual(network["input"][0], batch)
                for key in ("parameters", "macs"):
                    self.assertEqual(sum(layer[key] for layer in network["layers"]), network[key])

    def test_layers(self):
        layers = {layer["name"]: layer for layer in self.described("lenet", "-b", "2")["layers"]}
        self.assertEqual(layers["conv1"]["shape"], [2, 20, 24, 24])
        self.assertEqual(layers["conv1"]["attributes"], "kernel_shape 5x5")
        self.assertEqual((layers["conv1"]["parameters"], layers["conv1"]["macs"]),
                         (20 * 25 + 20, 2 * 24 * 24 * 20 * 25))
        self.assertEqual(layers["pool1"]["attributes"], "kernel_shape 2x2, strides 2x2")
        self.assertEqual((layers["ip2"]["shape"], layers["loss"]["shape"]), ([2, 10], []))

    def test_memory_grows_with_batch_and_training(self):
        small, large = self.described("lenet"), self.described("lenet", "-b", "64")
        for network in (small, large):
            weights = 4 * network["parameters"]
            self.assertGreater(network["memory_bytes"]["forward"], weights)
            self.assertGreater(network["memory_bytes"]["train"], 3 * weights)
        self.assertGreater(large["memory_bytes"]["train"], small["memory_bytes"]["train"])

    def test_table(self):
        text = self.prony("network", "lenet", expect=0).stdout
        for part in ("conv2", "1x50x8x8", "parameters  431080", "MACs        2293000"):
            self.assertIn(part, text)

    def onnx(self, *words):
        path = os.path.join(self.folder, "x.onnx")
        done = self.prony("network", *words, "--onnx", path, expect=0)
        self.assertIn("wrote " + path, done.stderr)
        with open(path, "rb") as stream:
            return stream.read()

    def test_onnx(self):
        image = self.onnx("lenet")
        self.assertEqual(image[:2], b"\x08\x08", "IR version 8")
        self.assertGreater(len(image), 4 * 431080)
        for name in (b"conv1.weight", b"ip2.bias", b"MaxPool", b"Gemm"):
            self.assertIn(name, image)
        self.assertEqual(self.onnx("lenet", "--seed", "1"), image, "same seed, same file")
        self.assertNotEqual(self.onnx("lenet", "--seed", "2"), image)

    def test_refusals(self):
        there = os.path.join(self.folder, "no", "where", "x.onnx")
        for words, code, part in ((["lenett"], 64, "did you mean 'lenet'?; there are mlp, lenet"),
                                  (["resnet9000"], 64, "there are mlp, lenet"),
                                  ([], 64, "takes one NAME"),
                                  (["mlp", "lenet"], 64, "takes one NAME"),
                                  (["mlp", "-b", "0"], 64, "out of range"),
                                  (["mlp", "--seed", "-1"], 64, "out of range"),
                                  (["mlp", "--onnx", there], 74, there)):
            with self.subTest(words):
                done = self.prony("network", *words, expect=code)
                self.assertEqual(done.stdout, "")
                self.assertIn(part, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    sys.exit(counted.main())
