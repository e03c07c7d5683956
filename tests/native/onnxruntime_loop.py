#!/usr/bin/env python3
"""ONNX Runtime: InferenceSession and run in a loop, as in onnxruntime.ai's "Get started with ONNX Runtime in Python", on a file that
`prony network NAME --onnx FILE` wrote."""
import onnxruntime

import window


def main():
    options = window.arguments(__doc__, ["lenet", "resnet50", "gpt2-bytes"], ["forward"], model="FILE of the network")
    wanted = onnxruntime.SessionOptions()
    wanted.intra_op_num_threads, wanted.inter_op_num_threads = options.threads, 1
    session = onnxruntime.InferenceSession(options.model, wanted, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    batches = [{name: batch} for batch in window.inputs(options)]
    window.run(lambda slot: session.run(None, batches[slot]), options, onnxruntime.__version__)


if __name__ == "__main__":
    main()
