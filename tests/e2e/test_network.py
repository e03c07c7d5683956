#!/usr/bin/env python3
"""prony network: the published figures, shapes for any batch, ONNX files. $PRONY names the program."""
import itertools
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import counted
from prony_program import PRONY, ProgramTest, read, read_bytes, write

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
GOLDEN = os.path.join(TESTS, "golden", "network")
TABLES = os.path.join(TESTS, "oracles", "tables.py")
DOCS = os.path.join(TESTS, "..", "docs", "networks.md")
SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"-?[0-9.]+")

# Parameters and MACs of one sample (Caffe's LeNet; Keras' mnist_mlp).
KNOWN = {"lenet": (431080, 2293000), "mlp": (669706, 668672)}


class NetworkTest(ProgramTest):
    def described(self, *words):
        return json.loads(self.prony("network", *words, "--format", "json", expect=0).stdout)

    def networks(self):
        listed = json.loads(self.prony("list", "networks", "--format", "json", expect=0).stdout)
        return [row["network"] for row in listed]

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
        self.assertIn("parameters  ", done.stdout)
        self.assertNotIn("attributes", done.stdout, "the summary without layers")
        return read_bytes(path)

    def test_onnx(self):
        image = self.onnx("lenet")
        self.assertEqual(image[:2], b"\x08\x08", "IR version 8")
        self.assertGreater(len(image), 4 * 431080)
        for name in (b"conv1.weight", b"ip2.bias", b"MaxPool", b"Gemm"):
            self.assertIn(name, image)
        self.assertEqual(self.onnx("lenet", "--seed", "1"), image, "same seed, same file")
        self.assertNotEqual(self.onnx("lenet", "--seed", "2"), image)

    def drawn(self, end, *words):
        path = os.path.join(self.folder, "x" + end)
        self.assertIn("wrote " + path, self.prony("network", *words, "--draw", path, expect=0).stderr)
        return read(path)

    def test_pictures_of_lenet(self):
        for end in (".svg", ".dot"):
            golden = os.path.join(GOLDEN, "lenet" + end)
            text = self.drawn(end, "lenet")
            if "PRONY_REFRESH_GOLDEN" in os.environ:
                write(golden, text)
            self.assertEqual(text, read(golden), golden)

    def test_every_picture(self):
        """Well-formed; boxes within the page and apart; no line crosses a box that it passes."""
        for name in self.networks():
            with self.subTest(name):
                page = xml.etree.ElementTree.fromstring(self.drawn(".svg", name))
                width, height = float(page.get("width")), float(page.get("height"))
                boxes = [tuple(float(box.get(key)) for key in ("x", "y", "width", "height"))
                         for box in page.iter(SVG + "rect")]
                layers = self.described(name)["layers"]
                self.assertGreater(len(boxes), len(layers) / 5)
                self.assertLessEqual(len(boxes), len(layers) + 1)
                for x, y, w, h in boxes:
                    self.assertTrue(0 <= x and x + w <= width and 0 <= y and y + h <= height)
                rows = {}
                for box in boxes:
                    rows.setdefault(box[1], []).append(box)
                tops = sorted(rows)
                for above, below in zip(tops, tops[1:]):
                    self.assertLess(max(box[1] + box[3] for box in rows[above]), below)
                for row in rows.values():
                    row.sort()
                    for left, right in zip(row, row[1:]):
                        self.assertLess(left[0] + left[2], right[0])
                for path in page.find(SVG + "g").iter(SVG + "path"):
                    self.check_line(path.get("d"), rows)
                texts = [text.text for text in page.iter(SVG + "text")]
                self.assertLessEqual({layers[0]["name"], layers[-1]["name"]}, set(texts))
                self.assertEqual(
                    sum(int(count.replace(",", "")) for text in texts[1:]
                        for count in re.findall(r", ([0-9,]+) parameters$", text)),
                    sum(layer["parameters"] for layer in layers))

    def check_line(self, line, rows):
        """Vertical lines pass between boxes of a row; bends are between two rows."""
        x = y = None
        for kind, text in re.findall(r"([MVC])([^MVC]*)", line):
            numbers = [float(number) for number in NUMBER.findall(text)]
            if kind == "V":
                for left, top, width, height in itertools.chain(*rows.values()):
                    passes = y < top + height - 0.2 and numbers[0] > top + 0.2
                    self.assertFalse(passes and left <= x <= left + width, line)
                y = numbers[0]
                continue
            for top, row in rows.items():
                if kind == "C":
                    self.assertTrue(numbers[-1] <= top + 0.2 or y >= top + row[0][3] - 0.2, line)
            x, y = numbers[-2:]

    def tables(self, docs, code):
        done = subprocess.run([sys.executable, TABLES, "--prony", PRONY, "--check", "--docs", docs],
                              env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def test_the_documentation_has_the_figures(self):
        """And the check finds a wrong digit, a row too few, a row too many."""
        text = read(DOCS)
        self.assertEqual(self.tables(DOCS, 0), "")
        alexnet = next(line for line in text.split("\n") if line.startswith("| `alexnet` | one"))
        googlenet = next(line for line in text.split("\n") if line.startswith("| `googlenet` | torch"))
        changes = (("61,100,840", "61,100,841"), (alexnet + "\n", ""),
                   (alexnet, alexnet + "\n| `other` | x | 1 | 2 | 3 |"),
                   (googlenet, googlenet.replace("e-15", "e-16")))
        for old, new in changes:
            with self.subTest(new):
                self.assertIn(old, text)
                path = os.path.join(self.folder, "networks.md")
                write(path, text.replace(old, new))
                self.assertIn("networks.md", self.tables(path, 1))

    def test_layers_run_as_networks_of_their_own(self):
        words = ("layers", "-n", "lenet", "-f", "fake", "-b", "2", "--gate-only", "--store",
                 os.path.join(self.folder, "layers.db"))
        done = self.prony(*words, expect=0)
        self.assertRegex(done.stdout, r"\n01 Conv5x5.20x24x24 +1 +ok\n")
        self.assertIn("parity: 7 of 7 checked cells match the reference", done.stdout)
        cells = json.loads(self.prony(*words, "--format", "json", expect=0).stdout)["cells"]
        self.assertEqual(sum(cell["network"].startswith("lenet.0") for cell in cells), 6)
        for wrong, message in ((("-s", "train"), "layers have no loss"), (("-n", "mlp"), "takes one network"),
                               (("--sequence", "8,16"), "takes one length")):
            self.assertIn(message, self.prony(*words, *wrong, expect=64).stderr)
        self.environment["XDG_CACHE_HOME"] = os.path.join(self.folder, "a,b")
        self.assertIn("set XDG_CACHE_HOME", self.prony(*words, expect=64).stderr)

    def test_refusals(self):
        there = os.path.join(self.folder, "no", "where", "x.onnx")
        for words, code, part in ((["lenett"], 64, "did you mean 'lenet'?); known: mlp, lenet"),
                                  (["resnet9000"], 64, "known: mlp, lenet"),
                                  ([], 64, "takes one FILE.onnx"),
                                  (["mlp", "lenet"], 64, "takes one FILE.onnx"),
                                  (["mlp", "-b", "0"], 64, "out of range"),
                                  (["mlp", "--seed", "-1"], 64, "out of range"),
                                  (["mlp", "--draw", "x.png"], 64, "end in .svg or .dot"),
                                  (["mlp", "--draw", "svg"], 64, "'svg': the file name of a picture"),
                                  (["mlp", "--draw", there[:-4] + "svg"], 74, there[:-4] + "svg"),
                                  (["mlp", "--onnx", there], 74, there)):
            with self.subTest(words):
                done = self.prony("network", *words, expect=code)
                self.assertEqual(done.stdout, "")
                self.assertIn(part, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    sys.exit(counted.main())
