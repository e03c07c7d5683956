#!/usr/bin/env python3
"""Writes the seed corpus of tests/fuzz/fuzz_onnx.c: small ONNX models, whole and broken.

Usage: onnx_seeds.py FOLDER (needs the onnx package)
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def floats(name, *shape):
    count = int(np.prod(shape)) if shape else 1
    values = (np.arange(count) % 7 - 3).reshape(shape).astype(np.float32) / 8
    return numpy_helper.from_array(values, name)


def ints(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(nodes, inputs, initializers, output="y", opset=17, outputs=None):
    graph = helper.make_graph(
        [helper.make_node(*node[:3], name=f"n{i}", **(node[3] if len(node) > 3 else {}))
         for i, node in enumerate(nodes)],
        "g", [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, FLOAT, ["a", "b"]) for name in outputs or [output]],
        initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def layer(op, inputs="x", opset=17, shape=(2, 4, 6, 6), constants=(), **attributes):
    """One operator and a Flatten behind it."""
    return model([(op, inputs.split(","), ["h"], attributes), ("Flatten", ["h"], ["y"])],
                 [("x", list(shape))], list(constants), opset=opset)


def layers():
    yield "conv", layer("Conv", "x,w,b", constants=[floats("w", 6, 2, 3, 3), floats("b", 6)],
                        group=2, strides=[2, 1], pads=[1, 0, 1, 2], dilations=[1, 2])
    yield "conv_same", layer("Conv", "x,w", constants=[floats("w", 2, 4, 3, 3)],
                             auto_pad="SAME_UPPER", strides=[2, 2])
    yield "batch_norm", layer("BatchNormalization", "x,s,b,m,v", constants=[
        floats(name, 4) for name in "sbmv"])
    yield "max_pool", layer("MaxPool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    yield "average_pool", layer("AveragePool", kernel_shape=[2, 3], pads=[0, 1, 1, 1],
                                count_include_pad=1)
    yield "global_pools", model([("GlobalAveragePool", ["x"], ["a"]), ("GlobalMaxPool", ["x"], ["m"]),
                                 ("Add", ["a", "m"], ["s"]), ("Squeeze", ["s", "axes"], ["y"])],
                                [("x", ["n", 3, 4, 4])], [ints("axes", [2, 3])])
    yield "gemm", layer("Gemm", "x,w,b", shape=(2, 5), transB=1, alpha=0.5,
                        constants=[floats("w", 3, 5), floats("b", 3)])
    yield "matmul_bias", model([("MatMul", ["x", "w"], ["h"]), ("Add", ["b", "h"], ["g"]),
                                ("Softmax", ["g"], ["y"])],
                               [("x", ["n", 4])], [floats("w", 4, 3), floats("b", 3)])
    yield "shared", model([("Identity", ["w"], ["v"]), ("MatMul", ["x", "w"], ["h"]),
                           ("MatMul", ["h", "v"], ["y"])], [("x", [1, 3])], [floats("w", 3, 3)])
    yield "shuffle", model([("Reshape", ["x", "five"], ["a"]),
                            ("Transpose", ["a"], ["b"], {"perm": [0, 2, 1, 3, 4]}),
                            ("Reshape", ["b", "four"], ["c"]),
                            ("ReduceMean", ["c"], ["y"], {"axes": [2, 3], "keepdims": 0})],
                           [("x", [2, 4, 3, 3])],
                           [ints("five", [2, 2, 2, 3, 3]), ints("four", [2, 4, 3, -1])])


def chains():
    yield "view", model([("Shape", ["x"], ["s"]), ("Gather", ["s", "zero"], ["n"]),
                         ("Unsqueeze", ["n", "axis"], ["u"]),
                         ("Concat", ["u", "minus"], ["t"], {"axis": 0}),
                         ("Reshape", ["x", "t"], ["y"])], [("x", ["n", 2, 3])],
                        [numpy_helper.from_array(np.array(0, np.int64), "zero"), ints("axis", [0]),
                         ints("minus", [-1])])
    yield "squeeze_excite", model([("GlobalAveragePool", ["x"], ["p"]), ("Conv", ["p", "w"], ["c"]),
                                   ("HardSigmoid", ["c"], ["s"], {"alpha": 1 / 6}),
                                   ("Mul", ["x", "s"], ["m"]), ("HardSwish", ["m"], ["h"]),
                                   ("Flatten", ["h"], ["y"])],
                                  [("x", [1, 4, 3, 3])], [floats("w", 4, 4, 1, 1)])
    yield "silu_clip", model([("Sigmoid", ["x"], ["s"]), ("Mul", ["x", "s"], ["m"]),
                              ("Clip", ["m", "low", "high"], ["y"])], [("x", ["n", 5])],
                             [numpy_helper.from_array(np.float32(0), "low"),
                              numpy_helper.from_array(np.float32(6), "high")])
    yield "split_slice", model([("Split", ["x", "sizes"], ["a", "b"], {"axis": 1}),
                                ("Slice", ["b", "s", "e", "ax", "st"], ["c"]),
                                ("Concat", ["c", "a"], ["d"], {"axis": 1}), ("Flatten", ["d"], ["y"])],
                               [("x", [2, 4, 3])],
                               [ints("sizes", [1, 3]), ints("s", [-3, 0]), ints("e", [2**63 - 1, 2]),
                                ints("ax", [1, -1]), ints("st", [2, 1])])
    yield "pad", layer("Pad", "x,p,v,a", opset=18, constants=[
        ints("p", [1, 2, 0, 1]), numpy_helper.from_array(np.float32(1), "v"), ints("a", [2, -1])])
    yield "fold", model([("Constant", [], ["a"], {"value_ints": [2, 3]}),
                         ("Constant", [], ["b"], {"value_int": 1}),
                         ("Mul", ["a", "b"], ["c"]), ("Range", ["b", "six", "b"], ["r"]),
                         ("ReduceSum", ["r"], ["q"], {"keepdims": 0}), ("Size", ["x"], ["z"]),
                         ("Div", ["z", "six"], ["d"]), ("Unsqueeze", ["d", "axis"], ["e"]),
                         ("ConstantOfShape", ["axis1"], ["f"],
                          {"value": numpy_helper.from_array(np.array([1], np.int64), "v")}),
                         ("Concat", ["f", "c"], ["g"], {"axis": 0}), ("Expand", ["e", "axis1"], ["k"]),
                         ("Equal", ["g", "g"], ["m"]), ("Where", ["m", "g", "k"], ["w"]),
                         ("Reshape", ["x", "w"], ["h"]), ("Flatten", ["h"], ["y"])],
                        [("x", [1, 6])], [numpy_helper.from_array(np.array(6, np.int64), "six"),
                                          ints("axis", [0]), ints("axis1", [1])])
    yield "weights_moved", model([("Transpose", ["w"], ["t"], {"perm": [1, 0]}),
                                  ("Cast", ["t"], ["c"], {"to": FLOAT}), ("Sqrt", ["two"], ["q"]),
                                  ("MatMul", ["x", "c"], ["h"]), ("Div", ["h", "q"], ["y"])],
                                 [("x", [1, 4])], [floats("w", 3, 4),
                                                   numpy_helper.from_array(np.float32(2), "two")])
    yield "dropout_lrn", model([("LRN", ["x"], ["l"], {"size": 3}), ("Dropout", ["l", "r"], ["d"]),
                                ("Flatten", ["d"], ["y"])], [("x", [1, 4, 2, 2])],
                               [numpy_helper.from_array(np.float32(0.25), "r")])
    yield "half", model([("Cast", ["w"], ["v"], {"to": FLOAT}), ("MatMul", ["x", "v"], ["y"])],
                        [("x", [1, 2])],
                        [numpy_helper.from_array(np.ones((2, 2), np.float16), "w")])


def broken():
    base = [("Relu", ["x"], ["a"]), ("Flatten", ["a"], ["y"])]
    yield "cycle", model([("Add", ["x", "b"], ["a"]), ("Relu", ["a"], ["b"]),
                          ("Flatten", ["b"], ["y"])], [("x", [1, 2])], [])
    yield "dangling", model([("Add", ["x", "nowhere"], ["y"])], [("x", [1, 2])], [])
    yield "duplicate", model([("Relu", ["x"], ["y"]), ("Relu", ["x"], ["y"])], [("x", [1, 2])], [])
    yield "negative", model(base, [("x", [1, -2])], [])
    yield "huge", model(base, [("x", [2**31 - 1] * 5)], [])
    yield "old_opset", model(base, [("x", [1, 2])], [], opset=12)
    yield "two_inputs", model([("Add", ["x", "z"], ["y"])], [("x", [1, 2]), ("z", [1, 2])], [])
    yield "unsupported", model([("Gelu", ["x"], ["a"]), ("Erf", ["a"], ["y"])], [("x", [1, 2])], [],
                               opset=20)
    lying = floats("w", 4, 3)
    lying.dims[0] = 2**60
    yield "lying_tensor", model([("MatMul", ["x", "w"], ["y"])], [("x", [1, 4])], [lying])
    outside = floats("w", 4, 3)
    outside.ClearField("raw_data")
    outside.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "../secret"), ("offset", "-1"), ("length", "99")):
        entry = outside.external_data.add()
        entry.key, entry.value = key, value
    yield "outside", model([("MatMul", ["x", "w"], ["y"])], [("x", [1, 4])], [outside])
    yield "bombs", model([("ConstantOfShape", ["big"], ["a"]), ("Range", ["z", "many", "o"], ["b"]),
                          ("Add", ["x", "a"], ["c"]), ("Reshape", ["c", "b"], ["y"])],
                         [("x", [1, 4])], [ints("big", [2**40, 2**20])] +
                         [numpy_helper.from_array(np.array(v, np.int64), n)
                          for n, v in (("z", 0), ("many", 2**62), ("o", 1))])


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, proto in [*layers(), *chains()]:
        onnx.checker.check_model(proto)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(proto.SerializeToString())
    for name, proto in broken():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(proto.SerializeToString())
    conv = open(os.path.join(folder, "conv"), "rb").read()
    with open(os.path.join(folder, "cut_off"), "wb") as file:
        file.write(conv[:len(conv) // 2])
    with open(os.path.join(folder, "empty"), "wb"):
        pass


main()
