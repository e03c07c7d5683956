#!/usr/bin/env python3
"""`-n model.onnx`: a user's own model as a network, with the models that prony itself exports.

$PRONY names the program.
"""
import json
import os
import unittest

from prony_program import ProgramTest, read_bytes

USAGE, BAD_INPUT = 64, 65


class OnnxModelTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = os.path.join(self.folder, "my model.onnx")
        self.prony("network", "lenet", "--onnx", self.model, "-b", "4", expect=0)

    def network(self, *words):
        return json.loads(self.prony("network", self.model, "--format", "json", *words,
                                     expect=0).stdout)

    def test_a_file_is_shown_like_a_network(self):
        lenet = json.loads(self.prony("network", "lenet", "--format", "json", expect=0).stdout)
        mine = self.network()
        self.assertRegex(mine["name"], r"^my_model\.onnx@[0-9a-f]{8}$")
        self.assertEqual(mine["file_parameters"], lenet["parameters"])
        self.assertIsNone(mine["remark"])
        for key in ("parameters", "macs", "classes", "input"):
            self.assertEqual(mine[key], lenet[key])
        # The file's batch is 4; any other can be asked for.
        self.assertEqual(self.network("-b", "7")["input"], [7, 1, 28, 28])
        self.assertEqual(self.network("-b", "7")["macs"], 7 * lenet["macs"])

    def test_a_file_survives_being_exported_again(self):
        source, written = self.model, []
        for folder in ("first", "second"):
            os.mkdir(os.path.join(self.folder, folder))
            target = os.path.join(self.folder, folder, "my model.onnx")
            self.prony("network", source, "--onnx", target, expect=0)
            written.append(read_bytes(target))
            source = target
        self.assertEqual(*written)

    def test_a_file_runs(self):
        done = self.prony("run", "-n", f"{self.model},mlp", "-f", "fake", "-s", "train", "-b", "2",
                          "--dry-run", "--format", "json", expect=0)
        names = {cell["network"] for cell in json.loads(done.stdout)}
        self.assertEqual(len(names), 2)
        self.assertTrue(any(name.startswith("my_model.onnx@") for name in names), names)

    def test_other_weights_are_another_network(self):
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        path = os.path.join(other, "my model.onnx")
        self.prony("network", "lenet", "--onnx", path, "--seed", "2", expect=0)
        name = json.loads(self.prony("network", path, "--format", "json", expect=0).stdout)["name"]
        self.assertNotEqual(name, self.network()["name"])

    def test_what_is_wrong_is_said_once(self):
        broken = os.path.join(self.folder, "broken.onnx")
        with open(self.model, "rb") as whole, open(broken, "wb") as part:
            part.write(whole.read()[:5000])
        for words in (("network", broken), ("run", "-n", broken, "-f", "fake")):
            done = self.prony(*words, expect=BAD_INPUT)
            self.assertIn("broken.onnx", done.stderr)
            self.assertIn("truncated or damaged", done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for words in (("network", "./nothing.onnx"), ("run", "-n", "no/such", "-f", "fake")):
            self.assertIn("No such file", self.prony(*words, expect=BAD_INPUT).stderr)
        self.assertIn("FILE.onnx", self.prony("run", "-n", "lenett", "-f", "fake",
                                              expect=USAGE).stderr)

    def test_an_export_without_normalisation_is_named(self):
        with open(self.model, "ab") as file:
            file.write(b"\x12\x07pytorch")  # the last producer_name counts
        done = self.prony("run", "-n", self.model, "-f", "fake", "-s", "forward,train", "-b", "2",
                          "--gate-only", "--format", "json", "--store", self.store, expect=0)
        flags = {cell["stage"]: cell["flags"] for cell in json.loads(done.stdout)["cells"]}
        self.assertEqual(flags, {"forward": ["gate-only"], "train": ["gate-only", "no-normalisation"]})
        shown = " ".join(self.prony("show", "--store", self.store, expect=0).stdout.split())
        self.assertIn("no normalisation beside the convolutions of my_model.onnx@", shown)
        self.assertIn("export it again with model.train(); torch.onnx.export(", shown)

    def test_other_models_are_told_how_to_export(self):
        for word, part in (("model.pt", "dynamo=False, training=torch.onnx.TrainingMode.PRESERVE"),
                           ("model.pth", "-n model.py:FUNCTION"), ("model.keras", "Keras 3")):
            for words in (("network", word), ("run", "-n", word, "-f", "fake")):
                self.assertIn(part, self.prony(*words, expect=BAD_INPUT).stderr)

    def test_an_operator_without_translation(self):
        other = os.path.join(self.folder, "other.onnx")
        with open(self.model, "rb") as whole, open(other, "wb") as part:
            part.write(whole.read().replace(b"Relu", b"Celu"))
        done = self.prony("network", other, expect=BAD_INPUT)
        self.assertRegex(done.stderr, "unsupported operators: Celu \\('[^']+'")
        done = self.prony("run", "-n", other, "-f", "fake", "-s", "forward", "--dry-run", expect=0)
        self.assertIn("unsupported operators: Celu", done.stdout)
        # Cells that one thing keeps from running share a line.
        done = self.prony("run", "-n", other, "-f", "fake", "-s", "forward", "-b", "2,4,8", "--dry-run", expect=0)
        self.assertIn("3 of 3 cells cannot run:\n  fake (3 cells): unsupported: ", done.stdout)


if __name__ == "__main__":
    unittest.main()
