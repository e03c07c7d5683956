#!/usr/bin/env python3
"""The ONNX file of each network: valid for onnx's checker, and ONNX Runtime computes our logits.

    PRONY=BUILD/prony PRONY_ORACLE=BUILD/tests/oracle onnx_oracle.py [--batch N] [NETWORK...]

The weights that the interpreter gets are the file's. Exit status 1 when a file is not valid or a
difference is out of bounds.

Needs onnx and onnxruntime; docs/networks.md names the versions whose figures it shows.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

import common

BOUND = 1e-5  # largest difference over the root mean square, float32 through up to 161 layers


def listing(*arguments):
    program = os.environ.get("PRONY")
    if not program:
        raise SystemExit("PRONY must name the program of a build")
    return json.loads(subprocess.run([program, *arguments, "--format", "json"], check=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


# What ONNX wants of a recurrent layer: one more dimension, and a second bias, which is zero.
RECURRENT = {"weight": "W", "recurrent": "R", "bias": "B"}


def weights_in(model, wanted):
    """The file's, by our names and in our shapes."""
    found = {}
    initializers = {row.name: onnx.numpy_helper.to_array(row) for row in model.graph.initializer}
    for row in wanted:
        name, shape = row["name"], row["shape"]
        if name not in initializers:
            layer, kind = name.rsplit(".", 1)
            name = f"{layer}.{RECURRENT[kind]}"
        found[row["name"]] = initializers[name].reshape(-1)[:numpy.prod(shape)].reshape(shape)
    return found


def check(network, batch_size, folder):
    """True when the exported file is valid and computes what the interpreter does."""
    path = os.path.join(folder, network + ".onnx")
    description = listing("network", network, "-b", str(batch_size), "--onnx", path)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    random = numpy.random.default_rng(7)
    batch = random.normal(size=description["input"]).astype(numpy.float32)
    labels = numpy.zeros(batch_size, numpy.int64)
    oracle = common.Oracle(network, batch_size)
    ours = oracle.run(weights_in(model, oracle.weights), batch, labels)["evaluation"]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (theirs,) = session.run(None, {session.get_inputs()[0].name: batch})
    found = common.logits_difference(ours, theirs)
    print(f"{network:15} opset {model.opset_import[0].version}  valid  evaluation {found:.1e}",
          flush=True)
    os.remove(path)
    return found <= BOUND


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--batch", type=int, default=2)
    options = parser.parse_args()
    known = [row["network"] for row in listing("list", "networks")]
    unknown = set(options.networks) - set(known)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}, but {', '.join(known)}")
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        good = [check(network, options.batch, folder) for network in options.networks or known]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
