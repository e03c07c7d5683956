#!/usr/bin/env python3
"""Every operator as ONNX: valid for onnx's checker, and in ONNX Runtime what the reference says.

PRONY_OPERATORS names the program tests/operators of a build; needs onnx and onnxruntime."""
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

BOUND = 2e-5  # of fp32 against float64, relative to the largest output


def difference(folder, number):
    """None where ONNX Runtime has no such operator."""
    path = os.path.join(folder, number)
    model = onnx.load(path + ".onnx")
    onnx.checker.check_model(model, full_check=True)
    # Even sizes are ONNX, but not in ONNX Runtime. (onnx's own evaluator of LRN 1.23 takes the batch
    # for the channels.)
    if any(node.op_type == "LRN" and attribute.name == "size" and attribute.i % 2 == 0
           for node in model.graph.node for attribute in node.attribute):
        return None
    session = onnxruntime.InferenceSession(path + ".onnx", providers=["CPUExecutionProvider"])
    batch = numpy.fromfile(path + ".in", numpy.float32).reshape(session.get_inputs()[0].shape)
    expected = numpy.fromfile(path + ".out", numpy.float64)
    got = session.run(None, {"input": batch})[0].astype(numpy.float64)
    return abs(got.reshape(-1) - expected).max() / max(1.0, abs(expected).max())


def main():
    program = os.environ.get("PRONY_OPERATORS")
    if not program:
        raise SystemExit("PRONY_OPERATORS must name the program tests/operators of a build")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        lines = subprocess.run([program, folder], check=True, stdout=subprocess.PIPE).stdout
        for line in lines.decode().splitlines():
            number, what = line.split(" ", 1)
            off = difference(folder, number)
            if off is None:
                print("%-40s not in ONNX Runtime" % what)
                continue
            worst = max(worst, off)
            print("%-40s %.1e%s" % (what, off, "" if off < BOUND else "  TOO FAR"))
    sys.exit(0 if worst < BOUND else 1)


main()
