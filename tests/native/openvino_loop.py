#!/usr/bin/env python3
"""OpenVINO: compile_model with the hint LATENCY and one request's infer in a loop, as in openvinotoolkit/openvino
samples/python/benchmark/sync_benchmark, on a file that `prony network NAME --onnx FILE` wrote."""
import openvino

import window


def main():
    options = window.arguments(__doc__, ["lenet", "resnet50", "gpt2-bytes"], ["forward"], model="FILE of the network")
    core = openvino.Core()
    model = core.read_model(options.model)
    inputs = window.inputs(options)
    model.reshape(list(inputs[0].shape))
    compiled = core.compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": options.threads,
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    batches = [openvino.Tensor(batch) for batch in inputs]

    def step(slot):
        request.set_input_tensor(batches[slot])
        request.infer()

    window.run(step, options, openvino.__version__)


if __name__ == "__main__":
    main()
