#!/usr/bin/env python3
"""ONNX Runtime: InferenceSession and run in a loop, as in onnxruntime.ai's "Get started with ONNX Runtime in Python", on a file that
`prony network NAME --onnx FILE` wrote."""
import numpy
import onnxruntime

import window


def main():
    options = window.arguments(__doc__, ["lenet", "resnet50"], ["forward"], model="FILE of the network")
    wanted = onnxruntime.SessionOptions()
    wanted.intra_op_num_threads, wanted.inter_op_num_threads = options.threads, 1
    session = onnxruntime.InferenceSession(options.model, wanted, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    channels, rows, columns, _ = window.image_shape(options.network)
    generator = numpy.random.default_rng(1)
    batches = [{name: generator.standard_normal((options.batch, channels, rows, columns), "float32")}
               for _ in range(window.SLOTS)]
    window.run(lambda slot: session.run(None, batches[slot]), options, onnxruntime.__version__)


if __name__ == "__main__":
    main()
