#!/usr/bin/env python3
"""Tests python/graph_analysis.py and python/case.py on small graphs, under every Python from 3.6 to 3.13
that is found.
"""
import array
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "python")]

import adapters  # noqa: E402
import batch_ring  # noqa: E402
import counted  # noqa: E402
import graph_analysis  # noqa: E402
import graph_attention  # noqa: E402
from case import Case  # noqa: E402
from errors import WorkerError  # noqa: E402
from safetensors_io import Tensor  # noqa: E402
from worker_driver import Bundle, Network, arranged, normalised, sequences, small, tagger  # noqa: E402

TARGET = adapters.Target("cpu", "", [], 0, 1)


class CaseMaker(unittest.TestCase):
    def case(self, graph, **recipe):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        bundle = Bundle(folder.name, graph, **recipe)
        return Case(bundle.folder, TARGET)


class AnalysisTest(CaseMaker):
    def node(self, case, name):
        return next(node for node in case.nodes if node["name"] == name)

    def window(self, case, name):
        node = self.node(case, name)
        return (node["attributes"], case.shape(node["inputs"][0]), case.shape(name))

    def test_problems(self):
        graph = small(4)
        every = {node["op"] for node in graph["nodes"]}
        case = self.case(graph)
        self.assertEqual(graph_analysis.problems(case, every, {}), [])
        said = graph_analysis.problems(
            case, every - {"Gemm"},
            {"Conv": lambda case, node: "groups" if node["attributes"]["group"] > 1 else None})
        self.assertEqual(said, ["operator Gemm is not supported", "Conv c2: groups"])
        self.node(case, "f1")["inputs"][0] = "d1.1"
        self.assertEqual(graph_analysis.problems(case, every, {}), ["Dropout d1: its second output is used"])
        case.graph["loss"] = None
        self.assertIn("stage train: the network has no loss",
                      graph_analysis.problems(case, every, {}))

    def test_wanted_and_drops(self):
        self.assertEqual(graph_analysis.wanted(self.case(small(4))), ["loss", "f2"])
        case = self.case(small(4), stage="forward", dropout=True)
        self.assertEqual(graph_analysis.wanted(case), ["f2"])
        self.assertFalse(graph_analysis.drops(case))
        self.assertTrue(graph_analysis.drops(self.case(small(4), dropout=True)))

    def test_last_uses(self):
        case = self.case(small(4))
        free = dict(zip((node["name"] for node in case.nodes),
                        graph_analysis.last_uses(case.nodes, ["loss", "f2"])))
        self.assertNotIn("c1", free["r1"])  # the sum reads it later
        self.assertIn("c1", free["sum"])
        self.assertIn("c2", free["sum"])
        self.assertIn("d1.1", free["d1"])   # nobody reads it at all
        self.assertNotIn("f2", free["loss"])
        names = [name for names in free.values() for name in names]
        self.assertEqual(len(names), len(set(names)))

    def test_windows(self):
        case = self.case(normalised(4))
        self.assertFalse(graph_analysis.within_half(self.window(case, "m1")[0]))
        self.assertTrue(graph_analysis.within_half(self.window(case, "a1")[0]))
        # Seven rows, padding 1 and 1: windows end at 8; six columns: ceil_mode adds one to 8.
        self.assertEqual(graph_analysis.window_reach(*self.window(case, "a1")), [1, 2])
        self.assertEqual(graph_analysis.window_counts(*self.window(case, "a1")),
                         ([2, 3, 3, 2], [2, 3, 3, 1]))
        self.assertEqual(graph_analysis.window_counts(*self.window(case, "a2")),
                         ([3, 3, 3, 3], [3, 3, 3, 2]))

    def test_splits(self):
        found = graph_analysis.splits(self.case(arranged(4)), arranged(4)["nodes"])
        self.assertEqual(found, {"left": ("left", [1, 3], 0), "right": ("left", [1, 3], 1)})
        graph = arranged(4)
        next(n for n in graph["nodes"] if n["name"] == "right")["attributes"]["end"] = 3
        self.assertEqual(graph_analysis.splits(self.case(graph), graph["nodes"]), {})

    def test_batch_stays_first(self):
        case = self.case(arranged(4))
        self.assertTrue(graph_analysis.batch_stays_first(case, case.nodes[:-1]))
        net = Network("mixed", [4, 6])
        net.linear("f1", 8)
        net.unary("Transpose", "turn", [8, 4], perm=[1, 0])
        net.unary("Transpose", "back", [4, 8], perm=[1, 0])
        case = self.case(net.graph())
        self.assertFalse(graph_analysis.batch_stays_first(case, case.nodes))
        self.assertEqual(graph_analysis.free_shape(case, [4, 2, 3]), [-1, 2, 3])
        self.assertEqual(graph_analysis.free_shape(case, [8, 4]), [8, 4])

    def test_recurrent(self):
        case = self.case(sequences(4))
        self.assertEqual(graph_analysis.gated(case), {"lstm.weight", "lstm.recurrent", "lstm.bias"})
        lstm = self.node(case, "lstm")
        self.assertIsNone(graph_analysis.recurrent_problem(case, lstm))
        lstm["inputs"][2] = lstm["inputs"][1]
        self.assertIn("another operator", graph_analysis.recurrent_problem(case, lstm))
        for letters in ("ifco", "ifgo".replace("g", "c"), "iofc", "cifo"):
            there, back = graph_analysis.gate_order(letters), graph_analysis.gate_order_back(letters)
            self.assertEqual("".join("iofc"[i] for i in there), letters)
            self.assertEqual([there[i] for i in back], [0, 1, 2, 3])

    def test_normalised(self):
        case = self.case(normalised(4))
        self.assertTrue(graph_analysis.normalised(case))
        self.assertFalse(graph_analysis.normalised(self.case(normalised(4), stage="forward")))
        self.assertFalse(graph_analysis.lone_value_per_channel(case, self.node(case, "b1")))
        net = Network("lone", [1, 3])
        net.linear("f1", 6)
        net.batch_norm("b1", 1e-5, 0.9)
        case = self.case(net.graph())
        self.assertTrue(graph_analysis.lone_value_per_channel(case, self.node(case, "b1")))


class AttentionTest(CaseMaker):
    """softmax(2 x (x / 4)' + mask) x: the factors become the scale of one call."""

    def attention(self, options=(), axis=3, mask=(0, -1e9, 0, 0), **recipe):
        net = Network("attention", [4, 3, 2, 5])
        net.value("two", "state", [])
        net.value("four", "state", [1])
        net.value("mask", "state", [2, 2])
        net.node("Div", "part", ["x", "four"], [4, 3, 2, 5])
        net.unary("Transpose", "turned", [4, 3, 5, 2], perm=[0, 1, 3, 2])
        net.node("MatMul", "scores", ["x", "turned"], [4, 3, 2, 2])
        net.node("Mul", "scaled", ["two", "scores"], [4, 3, 2, 2])
        net.node("Add", "masked", ["scaled", "mask"], [4, 3, 2, 2])
        net.unary("Softmax", "softmax", axis=axis)
        net.dropout("drop", 0.25)
        net.node("MatMul", "mixed", ["drop", "x"], [4, 3, 2, 5])
        net.flatten("flat")
        case = self.case(net.graph(), **recipe)
        numbers = {"two": [2], "four": [4], "mask": mask}
        case.weight = lambda name: Tensor(name, "F32", case.shape(name),
                                          memoryview(array.array("f", numbers[name])))
        case.options = list(options)
        return case

    def test_fused(self):
        case = graph_attention.fused(self.attention())
        self.assertEqual([node["op"] for node in case.nodes],
                         ["Identity", "Attention", "Flatten", "SoftmaxCrossEntropyLoss"])
        self.assertEqual(case.nodes[0]["inputs"], ["x"])
        self.assertEqual((case.nodes[1]["inputs"], case.nodes[1]["outputs"]), (["x", "part", "x", "mask"], ["mixed"]))
        self.assertEqual(case.nodes[1]["attributes"], {
            "scale": 0.5, "key_order": [0, 1, 2, 3], "causal": True, "ratio": 0.25})
        self.assertEqual(case.attention_note, "attention: fused 1 of 1")

    def test_masks_that_are_not_causal(self):
        for mask in ((0, -1, 0, 0), (0, -1e9, -1e9, 0)):
            case = graph_attention.fused(self.attention(mask=mask))
            self.assertFalse(case.nodes[1]["attributes"]["causal"])

    def test_not_fused(self):
        for case, note in ((graph_attention.fused(self.attention(["explicit"])), "0 of 1"),
                           (graph_attention.fused(self.attention(), known=False), "0 of 1"),
                           (graph_attention.fused(self.attention(dropout=True), drops=False), "0 of 1"),
                           (graph_attention.fused(self.attention(axis=2)), "")):
            self.assertEqual(len(case.nodes), 9 + 1)
            self.assertTrue(case.attention_note.endswith(note))
        case = self.attention()
        case.nodes[-2]["inputs"] = ["scores"]  # another reader
        self.assertEqual(graph_attention.fused(case).attention_note, "")


class CaseTest(CaseMaker):
    """Inputs and labels of a bundle, and their places in the ring."""

    def test_one_input(self):
        """A graph of earlier bundles names its only input and label alone."""
        case = self.case(small(4))
        path = os.path.join(case.folder, "case.json")
        with open(path) as source:
            document = json.load(source)
        del document["graph"]["inputs"], document["graph"]["labels"]
        with open(path, "w") as out:
            json.dump(document, out)
        case = Case(case.folder, TARGET)
        self.assertEqual((case.inputs, case.labels), (["x"], ["y"]))
        (x,), (y,) = case.batch(0)
        self.assertEqual((x.dtype, x.shape, y.dtype, y.shape), ("F32", [4, 2, 9, 8], "I64", [4]))
        self.assertFalse(case.ignores_labels())
        self.assertEqual(graph_analysis.single_problems(case), [])

    def test_several_inputs(self):
        case = self.case(tagger(4))
        (tokens, features), (labels,) = case.batch(1)
        self.assertEqual((tokens.name, tokens.dtype, tokens.shape), ("input.1.0", "I64", [4, 6]))
        self.assertEqual((features.name, features.dtype, features.shape), ("input.1.1", "F32", [4, 6, 3]))
        self.assertEqual((labels.name, labels.shape), ("label.1", [4, 6]))
        self.assertTrue(case.ignores_labels())
        self.assertEqual(graph_analysis.single_problems(case), [
            "2 inputs: only one is supported", "input x: type I64 is not supported",
            "the loss ignores labels or has several per sample"])

    def test_ring_of_several(self):
        case = self.case(tagger(4))
        ends = os.pipe()
        for end in ends:
            self.addCleanup(os.close, end)
        ring = batch_ring.Ring({"ready_fd": ends[0], "free_fd": ends[1]})
        room = bytearray(16 + case.slots * 3 * 4096)
        for place in range(case.slots * 3):
            room[16 + place * 4096] = place
        ring.lay_out(case, room, (16, len(room) - 16))
        self.assertEqual([[part.data[0] for part in inputs + labels] for inputs, labels in ring.batches],
                         [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(case.slots)])
        self.assertEqual([len(part.data) for part in ring.batches[0][0]], [4 * 6 * 8, 4 * 6 * 3 * 4])
        self.assertRaisesRegex(WorkerError, "is too small", ring.lay_out, case, room, (16, len(room) - 17))

    def test_labels(self):
        for labels, why in (([0, 1, 2, -2], "from -2 to 2"), ([0, 5, 1, 2], "from 0 to 5"),
                            ([-1, -1, -1, -1], "from -1 to -1")):
            with tempfile.TemporaryDirectory() as folder:
                bundle = Bundle(folder, small(4))
                bundle.batches[0]["y"] = labels
                bundle.write()
                case = Case(folder, TARGET)
                self.assertRaisesRegex(WorkerError, why, case.batch, 0)
                bundle.batches[0]["y"] = [4, -1, 0, 1]
                bundle.write()
                case = Case(folder, TARGET)
                self.assertTrue(case.ignores_labels())
                case.batch(0)


class PythonsTest(unittest.TestCase):
    def test_every_python(self):
        """The tests above under each of them."""
        from test_python_worker import PYTHONS
        self.assertTrue(PYTHONS, "no Python 3.6 to 3.13 found")
        for version, path in sorted(PYTHONS.items()):
            with self.subTest(python=version):
                done = subprocess.run([path, os.path.abspath(__file__), "AnalysisTest", "CaseTest"],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertEqual(done.returncode, 0, done.stdout.decode())


if __name__ == "__main__":
    sys.exit(counted.main())
