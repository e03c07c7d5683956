#!/usr/bin/env python3
"""Files that no graph expresses, as they are: `-n model.onnx --shape NAME=DIMS`.

$PRONY names the program. PlanTest needs no framework; EngineTest runs what is installed: files with two
inputs, one of them of integers, whose batch and length are open; one of them is of opset 21 and has an If and a Loop.
"""
import json
import os
import struct
import sys

import counted
from onnx_bytes import BOOL, FLOAT, INT64, STRING, field, graph, model, node, outside, tensor, value_info
from prony_program import HOME, ProgramTest

USAGE = 64


TABLE = [0.37 * i for i in range(40)]


def lookup(kind=INT64, table=tensor("table", [10, 4], TABLE)):
    """Rows of a table by the integers `rows`, added to `x`, and their maximum over the open length; no graph has a Celu."""
    return model([node("Gather", ["table", "rows"], ["r"]), node("Add", ["r", "x"], ["s"]), node("Celu", ["s"], ["y"]),
                  node("ReduceMax", ["y"], ["m"], axes=[1], keepdims=0),
                  node("Cast", ["m"], ["last"], to=INT64)],
                 [table],
                 [value_info("rows", ["n", "length"], kind), value_info("x", ["n", "", 4])],
                 [value_info("y", ["n", "length", 4]), value_info("last", ["n", 4], INT64)])


def control():
    """The rows' sum decides whether their table's values and `x` are doubled or negated (If); then
    three times half of what there is and `x` (Loop, which reads `x` from outside)."""
    some = ["n", "length", 4]
    body = graph([node("Identity", ["on"], ["still"]), node("Mul", ["v", "half"], ["h"]),
                  node("Add", ["h", "x"], ["w"])], [],
                 [value_info("i", [], INT64), value_info("on", [], BOOL), value_info("v", some)],
                 [value_info("still", [], BOOL), value_info("w", some)])
    return model([node("Gather", ["table", "rows"], ["r"]), node("Add", ["r", "x"], ["s"]),
                  node("ReduceSum", ["rows"], ["sum"], keepdims=0), node("Greater", ["sum", "limit"], ["large"]),
                  node("If", ["large"], ["chosen"],
                       then_branch=graph([node("Add", ["s", "s"], ["a"])], [], [], [value_info("a", some)]),
                       else_branch=graph([node("Neg", ["s"], ["b"])], [], [], [value_info("b", some)])),
                  node("Loop", ["trips", "", "chosen"], ["y"], body=body)],
                 [tensor("table", [10, 4], [0.37 * i for i in range(40)]), tensor("half", [], [0.5]),
                  tensor("trips", [], [3], INT64), tensor("limit", [], [45], INT64)],
                 [value_info("rows", ["n", "length"], INT64), value_info("x", some)],
                 [value_info("y", some), value_info("sum", [], INT64)], opset=21)


class FileTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.folder, "lookup.onnx")
        self.write(lookup())

    def write(self, data):
        with open(self.file, "wb") as stream:
            stream.write(data)

    def cells(self, *words, expect=0, **more):
        done = self.prony("run", "-n", self.file, "-b", "2", "--format", "json", *words, expect=expect,
                          **more)
        found = json.loads(done.stdout)
        return {cell["framework"]: cell for cell in (found["cells"] if "cells" in found else found)}


class PlanTest(FileTest):
    def plan(self, *words, stage="forward", frameworks="native,onnxruntime,fake"):
        return self.cells("-f", frameworks, "-s", stage, "--dry-run", *words)

    def test_who_can_be_given_a_file(self):
        planned = self.plan("--shape", "rows=1x5", "--shape", "x=1x5x4")
        for name, part in (("native", "native cannot read ONNX files"),
                           ("fake", "fake cannot read ONNX files")):
            self.assertEqual(planned[name]["status"], "unsupported")
            self.assertIn(part, planned[name]["reason"])
        self.assertIn(planned["onnxruntime"]["status"], ("pending", "missing"))
        trained = self.plan("--shape", "rows=1x5", "--shape", "x=1x5x4", stage="train")
        self.assertEqual(trained["onnxruntime"]["status"], "unsupported")

    def test_open_dimensions_have_to_be_said(self):
        reason = self.plan("--shape", "rows=1x5")["onnxruntime"]["reason"]
        self.assertIn("its input 'x' is ?x?x4", reason)
        self.assertIn("--shape x=", reason)

    def test_all_open_dimensions_are_named(self):
        reason = self.plan()["onnxruntime"]["reason"]
        self.assertIn("for example --shape rows=1x128 --shape x=1x128x4", reason)

    def test_network_shows_what_is_in_a_file(self):
        done = self.prony("network", self.file, "--shape", "rows=1x5", "--shape", "x=1x5x4", expect=65)
        for part in ("opset 17, fp32", "rows  int64  n x length", "Cast 1, Celu 1, Gather 1", "parameters  40 in 1 tensors"):
            self.assertIn(part, done.stdout)
        self.assertIn("unsupported operators: Celu ('y')", done.stderr)
        about = json.loads(self.prony("network", self.file, "--format", "json", expect=65).stdout)
        self.assertEqual((about["opset"], about["operators"]["Celu"], about["inputs"][1]["shape"]), (17, 1, "n x ? x 4"))

    def test_inputs_are_filled_as_asked(self):
        for text, part in (("rows=many", "write ones, zeros, positions"), ("z=ones", "has an input with that name")):
            done = self.prony("run", "-n", self.file, "-f", "native", "--input", text, expect=USAGE)
            self.assertIn(part, done.stderr)
        names = {self.plan("--shape", "rows=1x5", "--shape", "x=1x5x4", *words)["native"]["network"]
                 for words in ((), ("--input", "rows=ones"), ("--input", "rows=0..9"))}
        self.assertEqual(len(names), 3)

    def test_a_name_of_the_file_is_one_number(self):
        self.write(model([node("Gather", ["table", "rows"], ["r"]), node("Gather", ["table", "more"], ["s"]),
                          node("Add", ["r", "s"], ["y"])], [tensor("table", [10, 4], [0.37 * i for i in range(40)])],
                         [value_info("rows", ["n", "t"], INT64), value_info("more", ["n", "t"], INT64)],
                         [value_info("y", ["n", "t", 4])]))
        shown = self.prony("network", self.file, "--shape", "more=1x6", expect=0).stdout
        self.assertIn("rows I64 1x6", shown)
        self.assertIn("6 rows of 4 classes", shown)
        self.assertIn("--shape rows=1x128", self.prony("network", self.file, expect=65).stderr)
        self.prony("network", self.file, "--shape", "rows=1x6", "--shape", "more=1x7", expect=USAGE)
        self.assertEqual(self.plan("--shape", "rows=1x6")["fake"]["status"], "pending")

    def test_other_shapes_are_another_network(self):
        names = {self.plan("--shape", f"rows=1x{n}", "--shape", f"x=1x{n}x4")["native"]["network"]
                 for n in (3, 4)}
        self.assertEqual(len(names), 2)

    def test_a_recurrent_batch_is_the_second_dimension(self):
        recurrent = [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2),
                     node("If", ["on"], ["z"])]  # no graph has an If
        for element, dims, words, status in (
                (FLOAT, [5, "B", 4], (), "pending"), (FLOAT, [5, 2, 4], (), "pending"),
                (FLOAT, [5, "", 4], ("--shape", "x=5xNx4"), "pending"),
                (FLOAT, [2, "", 4], ("--shape", "x=Nx7x4"), "pending"),
                (FLOAT, [5, 3, 4], (), "its batch is fixed at 3; use -b 3")):
            self.write(model(recurrent, [tensor("w", [1, 1], [0.0]), tensor("r", [1, 1], [0.0])],
                             [value_info("x", dims, element), value_info("on", [], BOOL)], [value_info("y", [])]))
            cell = self.plan(*words)["onnxruntime"]
            if cell["status"] != "missing":
                self.assertIn(status, (cell["status"], cell["reason"]))

    def test_a_fixed_first_dimension_may_not_be_the_batch(self):
        self.write(model([node("Celu", ["x"], ["y"])], [], [value_info("x", [5, "n", 4])], [value_info("y", [])]))
        self.assertIn("does not know which is the batch; name it with N",
                      self.plan("--shape", "x=5x1x4")["onnxruntime"]["reason"])
        marked = self.plan("--shape", "x=5xNx4")["onnxruntime"]
        self.assertIn(marked["status"], ("pending", "missing"))

    def test_a_file_has_the_precision_of_its_weights(self):
        quantise = [node("QuantizeLinear", ["x", "s"], ["q"]), node("DequantizeLinear", ["q", "s"], ["y"])]
        half = (field(1, 4) + field(2, 10) + field(8, "h") + field(9, bytes(8)))
        for element, nodes, weights, word in (
                (FLOAT, [node("Celu", ["x"], ["y"])], [], "fp32"), (10, [node("Celu", ["x"], ["y"])], [], "fp16"),
                (FLOAT, quantise, [tensor("s", [], [1.0])], "int8"), (11, [node("Celu", ["x"], ["y"])], [], "fp64"),
                (10, [node("Celu", ["x"], ["y"])], [half, tensor("w", [2], [1, 2])], "mixed")):
            self.write(model(nodes, weights, [value_info("x", ["n", 4], element)], [value_info("y", [], element)]))
            self.assertEqual(self.plan()["onnxruntime"]["precision"], word)
            if word != "fp32":
                other = self.plan("-p", "bf16")["onnxruntime"]["reason"]
                self.assertIn(f"the file itself is {word}; leave out -p", other)
        done = self.prony("run", "-n", "mlp", "-f", "fake", "-p", "int8", "--dry-run", expect=0)
        self.assertIn("precision int8: fake has", done.stdout)

    def test_wrong_shapes(self):
        for text, part in (("x", "for example NAME=1x3x48x320"), ("x=1x", "for example NAME="),
                           ("x=0x1x4", "for example NAME="), ("x=1x5x3", "the file's shape is ?x?x4"),
                           ("z=1", "no ONNX file in this run has an input with that name")):
            done = self.prony("run", "-n", self.file, "-f", "native", "--shape", text, expect=USAGE)
            self.assertIn(part, done.stderr)

    def test_what_cannot_be_run_as_it_is(self):
        self.write(lookup(STRING))
        planned = self.plan()["onnxruntime"]
        self.assertEqual(planned["status"], "unsupported")
        self.assertIn("running the file unchanged fails too: 'rows' has the element type string",
                      planned["reason"])


class EngineTest(FileTest):
    SHAPES = ("--shape", "rows=1x5", "--shape", "x=1x5x4")
    LITTLE = ("-s", "forward", "--quick", "--steps", "2", "--warm-up", "0", "--repeat", "1")

    def setUp(self):
        super().setUp()
        if not {"onnxruntime", "openvino"} <= {row["name"] for row in self.ready()}:
            self.skipTest("onnxruntime and openvino are not both installed")

    def run_on(self, frameworks, expect, *words):
        return self.cells("-f", frameworks, *self.LITTLE, *self.SHAPES, *words, "--store", self.store,
                          expect=expect, **HOME)

    def test_two_engines_agree(self):
        cells = self.run_on("onnxruntime,openvino,openvino+throughput", 0)
        for name, cell in cells.items():
            self.assertEqual((name, cell["status"], "agreement" in cell["flags"]), (name, "ok", True))
            rows = cell["parity"]["evidence"]["agreement"]
            self.assertEqual([row["with"] for row in rows],
                             ["openvino" if name == "onnxruntime" else "onnxruntime"])
            self.assertLess(rows[0]["value"], 1e-5)
        shown = self.prony("show", "--store", self.store, expect=0).stdout
        self.assertIn("no cell was checked against the reference; 3 agree with other engines only", shown)

    def test_weights_in_another_file(self):
        self.write(lookup(table=outside("table", [10, 4], "table.bin", 8, 160)))
        names = set()
        for table in (TABLE, TABLE[::-1]):
            with open(os.path.join(self.folder, "table.bin"), "wb") as stream:
                stream.write(bytes(8) + struct.pack("<40f", *table))
            for name, cell in self.run_on("onnxruntime,openvino", 0, "--gate-only").items():
                self.assertEqual((name, cell["status"]), (name, "ok"), cell["reason"])
                names.add(cell["network"])
        self.assertEqual(len(names), 2)

    def test_control_flow_of_a_late_opset(self):
        self.write(control())
        for name, cell in self.run_on("onnxruntime,openvino", 0).items():
            self.assertEqual((name, cell["status"], cell["flags"]), (name, "ok", ["screening", "agreement"]),
                             cell["reason"])
            row, = cell["parity"]["evidence"]["agreement"]
            self.assertLess(row["value"], 1e-5)

    def test_a_quantised_file_may_differ_by_what_rounding_changes(self):
        # Noise turns a few of 65,536 numbers to the next step, 0.05.
        self.write(model([node("QuantizeLinear", ["x", "s"], ["q"]), node("DequantizeLinear", ["q", "s"], ["y"])],
                         [tensor("s", [], [0.05])], [value_info("x", ["n", 65536])], [value_info("y", ["n", 65536])]))
        for name, cell in self.cells("-f", "onnxruntime,openvino", *self.LITTLE, "--store", self.store, **HOME).items():
            self.assertEqual((name, cell["status"]), (name, "ok"), cell["reason"])
            row, = cell["parity"]["evidence"]["agreement"]
            self.assertLess(1e-4, row["bound"])
            self.assertLess(row["bound"], 0.1)

    def test_one_engine_proves_nothing(self):
        cell = self.run_on("openvino,openvino+throughput", 1)["openvino"]
        self.assertEqual(cell["status"], "unproven")
        self.assertIn("no other engine ran it", cell["reason"])


if __name__ == "__main__":
    sys.exit(counted.main())
