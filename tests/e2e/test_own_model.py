#!/usr/bin/env python3
"""`-n model.py:NAME`: a user's own PyTorch model, exported and held to its own eager run.

$PRONY names the program.
"""
import json
import os
import unittest

from prony_program import ProgramTest, write
from python_environments import Environment

BAD_INPUT, FAILED = 65, 1
MODEL = """
import torch
from torch import nn
from width import WIDTH


class Net(nn.Module):
    input_shapes = [(1, 8, 8)]

    def __init__(self):
        super().__init__()
        self.convolution, self.normalisation = nn.Conv2d(1, WIDTH, 3), nn.BatchNorm2d(WIDTH)
        self.dropout, self.dense = nn.Dropout(0.25), nn.Linear(WIDTH * 36, 5)
        with torch.no_grad():
            self.normalisation.running_mean.fill_(0.5)
            self.normalisation.running_var.fill_(3)

    def forward(self, x):
        return self.dense(self.dropout(torch.relu(self.normalisation(self.convolution(x))).flatten(1)))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.dense = nn.Embedding(9, 4), nn.Linear(4, 3)

    def forward(self, words, weights):
        return torch.log_softmax(self.dense(self.table(words).mean(1) * weights), -1)


def tokens():
    return Tokens()


tokens.input_shapes = [((6,), "int64"), (1,)]


def drops():
    model = Net()
    model.forward = lambda x: Net.forward(model, nn.functional.dropout(x))
    return model


def fails():
    raise ValueError("no weights")


class Second(nn.Module):
    input_shapes = [(8,), (8,)]

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 4)

    def forward(self, unused, x):
        return self.dense(x)


class Branch(Net):
    def forward(self, x):
        return super().forward(x if x.sum() > 0 else -x)
"""


class OwnModelTest(ProgramTest):
    def setUp(self):
        super().setUp()
        pytorch = Environment("pytorch")
        pytorch.need(self)
        self.environment["PRONY_PYTORCH_PYTHON"] = pytorch.python
        self.path = os.path.join(self.folder, "model.py")
        write(self.path, MODEL)
        self.set_width(4)

    def set_width(self, width):
        write(os.path.join(self.folder, "width.py"), f"WIDTH = {width}\n")

    def network(self, name):
        done = self.prony("network", f"{self.path}:{name}", "--format", "json", expect=0)
        return json.loads(done.stdout)

    def test_a_class_becomes_a_network_with_all_its_layers(self):
        shown = self.network("Net")
        self.assertRegex(shown["name"], r"^model\.py:Net@[0-9a-f]{8}$")
        self.assertLessEqual({"BatchNormalization", "Dropout", "Conv"},
                             {layer["operator"] for layer in shown["layers"]})
        # The statistics are the model's own: the exporter's run changed neither them nor the logits.
        self.assertIn("eager run in PyTorch", shown["remark"])
        self.assertEqual(self.network("Net")["name"], shown["name"])
        # Another file of the user's makes another network.
        self.set_width(5)
        self.assertNotEqual(self.network("Net")["parameters"], shown["parameters"])

    def test_it_trains_through_the_gate(self):
        done = self.prony("run", "-n", f"{self.path}:Net", "-f", "pytorch", "-s", "train", "-b", "2", "--gate-only",
                          "--format", "json", "--store", self.store, expect=0)
        self.assertEqual([cell["status"] for cell in json.loads(done.stdout)["cells"]], ["ok"])

    def test_a_function_with_integers_and_a_softmax(self):
        shown = self.network("tokens")
        self.assertIn("the final softmax is computed in the loss", shown["remark"])
        self.assertIn("eager run in PyTorch", shown["remark"])

    def test_an_input_that_is_not_used(self):
        self.assertIn("eager run in PyTorch", self.network("Second")["remark"])

    def test_logits_that_are_not_the_models_are_refused(self):
        done = self.prony("network", f"{self.path}:drops", expect=FAILED)
        self.assertIn("differ by", done.stderr)

    def test_lines_that_the_trace_froze_are_named(self):
        self.assertIn("at model.py:61 the model turns tensors into Python values", self.network("Branch")["remark"])
        self.assertNotIn("Python values", self.network("Net")["remark"])

    def test_messages_say_what_to_write(self):
        for word, wanted in ((":fails", "model.py:45 in fails: raise ValueError(\"no weights\"); ValueError: no weights"),
                             (":Tokens", "the shape of its input words, weights is not known: write input_shapes"),
                             (":Nett", "the file has no Nett; it defines Branch, Net, Second, Tokens"),
                             ("", "write model.py:NAME")):
            done = self.prony("run", "-n", self.path + word, "-f", "fake", "-s", "forward", "--dry-run",
                              expect=BAD_INPUT)
            self.assertIn(wanted, done.stderr)
        hiding = os.path.join(self.folder, "json.py")
        write(hiding, MODEL)
        self.assertIn("json.py hides the module json", self.prony("network", hiding, expect=BAD_INPUT).stderr)


KERAS = """
import keras
from keras import layers


def net():
    return keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(4, 3), layers.BatchNormalization(), layers.ReLU(), layers.Dropout(0.25),
        layers.Flatten(), layers.Dense(5, activation="softmax")])


class Block(keras.Model):
    def __init__(self):
        super().__init__()
        self.table, self.attention = layers.Embedding(11, 8), layers.MultiHeadAttention(2, 4, dropout=0.1)
        self.normalisation, self.dense = layers.LayerNormalization(), layers.Dense(3)

    def call(self, ids):
        x = self.table(ids)
        return self.dense(self.normalisation(self.attention(x, x, use_causal_mask=True)))


Block.input_shapes = [((6,), "int64")]
"""


class KerasModelTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "own.py")
        write(self.path, KERAS)

    def show(self, name):
        keras = Environment("keras3", "torch")
        keras.need(self)
        self.environment["PRONY_KERAS3_TORCH_PYTHON"] = keras.python
        shown = json.loads(self.prony("network", f"{self.path}:{name}", "--format", "json", expect=0).stdout)
        self.assertRegex(shown["remark"], "eager run in Keras 3.* on PyTorch")
        self.assertNotIn("Python values", shown["remark"])
        return {layer["operator"] for layer in shown["layers"]}

    def test_layers_of_keras_are_kept(self):
        self.assertLessEqual({"Conv", "BatchNormalization", "Dropout", "Gemm"}, self.show("net"))

    def test_attention_is_a_graph(self):
        self.assertLessEqual({"Gather", "LayerNormalization", "Softmax", "Dropout"}, self.show("Block"))

    def test_without_keras(self):
        self.environment["PRONY_KERAS3_TORCH_PYTHON"] = os.path.join(self.folder, "none")
        done = self.prony("network", f"{self.path}:net", expect=FAILED)
        self.assertIn("a model of Keras needs keras3:torch", done.stderr)


if __name__ == "__main__":
    unittest.main()
