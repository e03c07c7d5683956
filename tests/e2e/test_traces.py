#!/usr/bin/env python3
"""Traces of TensorFlow's and XLA's profiler (python/xplane.py, python/adapters/traced_layers.py), written here
byte by byte: whose each operation is, when it ran, and what is no trace."""
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "python")]

import counted  # noqa: E402
import xplane  # noqa: E402
from adapters import traced_layers  # noqa: E402
from errors import WorkerError  # noqa: E402
from onnx_bytes import field, varint  # noqa: E402

NAMES = ("conv1", "bn1", "relu1")


class Plane(object):
    """A plane whose names of events and stats are numbered as they come."""

    def __init__(self, name):
        self.parts, self.names = [field(2, name)], {4: {}, 5: {}}

    def id_of(self, place, name):
        return self.names[place].setdefault(name, len(self.names[place]) + 1)

    def stats(self, **stats):
        return b"".join(field(4, field(1, self.id_of(5, key)) + field(3 if isinstance(value, int) else 5, value))
                        for key, value in stats.items())

    def line(self, at_ns, *events):
        """events: (name, begin, duration in ns from at_ns, stats)."""
        self.parts.append(field(3, field(3, at_ns) + b"".join(
            field(4, field(1, self.id_of(4, name)) + field(2, 1000 * begin) + field(3, 1000 * took)
                  + self.stats(**stats)) for name, begin, took, stats in events)))

    def metadata(self, program, stat, value):
        """A program's event with a stat of bytes."""
        entry = field(1, program) + field(2, "program") + field(
            5, field(1, self.id_of(5, stat)) + field(6, value))
        self.parts.append(field(4, field(1, program) + field(2, entry)))

    def bytes(self):
        maps = b"".join(field(place, field(1, at) + field(2, field(1, at) + field(2, name)))
                        for place, names in self.names.items() for name, at in names.items())
        return field(1, b"".join(self.parts) + maps)


def instruction(name, opcode, at, made="", operands=(), called=(), parameter=0):
    packed = b"".join(varint(operand) for operand in operands)
    return field(2, field(1, name) + field(2, opcode) + field(7, field(2, made)) + field(9, parameter)
                 + field(35, at) + field(36, packed) + b"".join(field(38, other) for other in called))


def module():
    """conv -> fusion (of bn's, update last); iota without a name that the conv reads; a while."""
    entry = field(5, 1) + b"".join((
        instruction("iota", "iota", 10),
        instruction("conv", "convolution", 11, "jit(f)/jvp(prony_node_0_)/conv", [10]),
        instruction("nameless", "fusion", 12, "", [11]),
        instruction("fusion", "fusion", 13, "jit(f)/prony_update_/sub", [12], [2]),
        instruction("back", "fusion", 14, "jit(f)/transpose(jvp(prony_node_2_))/mul", [12]),
        instruction("loop", "while", 15, "jit(f)/jvp(prony_node_2_)/while", [14])))
    fused = field(5, 2) + b"".join((
        instruction("p", "parameter", 20, "args[0]"),
        instruction("mul", "multiply", 21, "jit(f)/transpose(jvp(prony_node_1_))/mul", [20]),
        instruction("sub", "subtract", 22, "jit(f)/prony_update_/sub", [21])))
    return field(1, field(1, "jit_f") + field(3, entry) + field(3, fused) + field(5, 7))


class Case(object):
    folder = None  # of the bundle
    nodes = [{"name": name, "op": op, "inputs": [given, ""], "outputs": [name + ".out"]}
             for name, op, given in zip(NAMES, ("Conv", "BatchNormalization", "Relu"),
                                        ("input", "conv1.out", "bn1.out"))]


class TraceTest(unittest.TestCase):
    def events(self, data, instants=(1000000, 1090000, 2000000, 2090000)):
        """Reads a trace's bytes; no trace file stays in the bundle."""
        def start(folder):
            os.makedirs(os.path.join(folder, "plugins"))
            with open(os.path.join(folder, "plugins", "vm.xplane.pb"), "wb") as out:
                out.write(data)
        case = Case()
        with tempfile.TemporaryDirectory() as case.folder:
            trace = traced_layers.LayerTrace(case, start, lambda: None, None)
            self.assertEqual(len(os.listdir(case.folder)), 1)
            try:
                return trace.end(list(instants))
            finally:
                self.assertEqual(os.listdir(case.folder), [])

    def xla(self):
        def op(name, context=0):
            return {"hlo_op": name, "program_id": 7, "_pt": 0, "_p": context}
        cpu, meta = Plane("/host:CPU"), Plane("/host:metadata")
        step = traced_layers.STEP
        cpu.line(5000, (step, 0, 90000, {}), (step, 200000, 90000, {}), ("Python", 1000, 50, {}))
        cpu.line(5000, ("iota", 10, 5, op("iota")), ("conv", 100, 40, op("conv", 9)),
                 ("end: conv", 70100, 1, {"_ct": 0, "_c": 9}), ("nameless", 200, 20, op("nameless")),
                 ("fusion", 200300, 7, op("fusion")), ("back", 200400, 8, op("back")),
                 ("loop", 200500, 900, op("loop")), ("unknown", 200600, 9, op("unknown")))
        meta.metadata(7, "Hlo Proto", module())
        return cpu.bytes() + meta.bytes()

    def test_compiled(self):
        rows = {row["name"]: row for row in self.events(self.xla())}
        self.assertEqual(sorted(rows), ["back", "conv", "fusion", "iota", "nameless"])
        self.assertEqual((rows["conv"]["layer"], rows["conv"]["pass"], rows["conv"]["step"]), ("conv1", "forward", 0))
        self.assertEqual((rows["conv"]["begin_ns"], rows["conv"]["duration_ns"]), (1000100, 70000))  # to its end
        self.assertEqual(rows["iota"]["layer"], "conv1")  # which reads it
        self.assertEqual((rows["nameless"]["layer"], rows["nameless"]["pass"]), ("bn1", "backward"))  # within its reader
        self.assertNotEqual(rows["nameless"]["thread"], rows["conv"]["thread"])
        self.assertEqual((rows["fusion"]["pass"], rows["fusion"]["step"]), ("update", 1))
        self.assertNotIn("layer", rows["fusion"])
        self.assertEqual((rows["back"]["layer"], rows["back"]["pass"]), ("relu1", "backward"))
        self.assertEqual(rows["back"]["begin_ns"], 2000400)

    def test_kernels(self):
        cpu, scope = Plane("/host:CPU"), traced_layers.scope
        cpu.line(0, (traced_layers.STEP, 10, 80000, {}))
        cpu.line(0, (scope(0) + "/Conv2D:Conv2D", 20, 5, {}), (scope(2) + "/Relu:_MklNativeFusedConv2D", 30, 6, {}),
                 ("gradient_tape/%s/MulGrad:Mul" % scope(1), 40, 7, {}), ("prony_update_/Apply:Assign", 50, 8, {}),
                 ("f:PartitionedCall", 20, 60, {}), ("EagerExecute: x", 15, 70, {}), ("Add:AddV2", 99999, 8, {}))
        rows = self.events(cpu.bytes(), (1000, 81000))
        self.assertEqual([(row.get("layer"), row.get("pass"), row["operator"]) for row in rows],
                         [("conv1", "forward", "Conv2D"), ("conv1", "forward", "_MklNativeFusedConv2D"),
                          ("bn1", "backward", "Mul"), (None, "update", "Assign"), (None, None, "AddV2")])
        self.assertEqual(rows[1]["name"], "conv1 + bn1 + relu1")
        for row in rows:
            self.assertGreaterEqual(row["begin_ns"], 1000)
            self.assertLessEqual(row["begin_ns"] + row["duration_ns"], 81000)

    def test_malformed(self):
        whole = self.xla()
        for end in range(0, len(whole), 7):
            with self.subTest(end):
                try:
                    self.events(whole[:end])
                except WorkerError as error:
                    self.assertEqual(error.status, "crashed")
        with self.assertRaisesRegex(WorkerError, "has 2 steps instead of 1"):
            self.events(whole, (0, 9))
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(WorkerError, "wrote 0 trace files"):
            xplane.read(folder)


if __name__ == "__main__":
    sys.exit(counted.main())
