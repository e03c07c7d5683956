#!/usr/bin/env python3
"""OpenVINO: compile_model with the hint LATENCY and one request's infer in a loop, as in openvinotoolkit/openvino
samples/python/benchmark/sync_benchmark, on a file that `prony network NAME --onnx FILE` wrote."""
import numpy
import openvino

import window


def main():
    options = window.arguments(__doc__, ["lenet", "resnet50"], ["forward"], model="FILE of the network")
    core = openvino.Core()
    model = core.read_model(options.model)
    channels, rows, columns, _ = window.image_shape(options.network)
    model.reshape([options.batch, channels, rows, columns])
    compiled = core.compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": options.threads,
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    generator = numpy.random.default_rng(1)
    batches = [openvino.Tensor(generator.standard_normal((options.batch, channels, rows, columns), "float32"))
               for _ in range(window.SLOTS)]

    def step(slot):
        request.set_input_tensor(batches[slot])
        request.infer()

    window.run(step, options, openvino.__version__)


if __name__ == "__main__":
    main()
