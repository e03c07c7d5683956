"""Paddle's functions for each operator of a graph, and the reasons for those that are not supported."""
import numpy
import paddle
import paddle.nn.functional as F

import graph_analysis
from case import IGNORED
from graph_attention import ATTENTION
from adapters.eager_program import dropped, identity, plain, reshaped, sliced, tuned


def _sides(pads):
    """[top, bottom, left, right] from ONNX's pads."""
    return [pads[0], pads[2], pads[1], pads[3]]


def _conv(case, node):
    a = node["attributes"]
    pads = a["pads"][:2] if graph_analysis.even(a["pads"]) else _sides(a["pads"])
    return lambda x, w, b=None: F.conv2d(x, w, b, a["strides"], pads, a["dilations"], a["group"])


def _conv_transpose(case, node):
    a = node["attributes"]
    pads = a["pads"][:2] if graph_analysis.even(a["pads"]) else _sides(a["pads"])
    return lambda x, w, b=None: F.conv2d_transpose(x, w, b, a["strides"], pads, a["output_padding"],
                                                   a["dilations"], a["group"])


def _max_pool(case, node):
    a = node["attributes"]
    behind = graph_analysis.window_reach(a, case.shape(node["inputs"][0]),
                                         case.shape(node["outputs"][0]))
    pads = _sides(a["pads"][:2] + [max(0, n) for n in behind])
    if graph_analysis.within_half(a) and not a["ceil_mode"]:
        pads = a["pads"][:2]
    return lambda x: F.max_pool2d(x, a["kernel_shape"], a["strides"], pads)


def _average_pool(case, node):
    a = node["attributes"]
    return lambda x: F.avg_pool2d(x, a["kernel_shape"], a["strides"], _sides(a["pads"]),
                                  exclusive=not a["count_include_pad"])


def _average_pool_problem(case, node):
    return "ceil_mode is not supported" if node["attributes"]["ceil_mode"] else None


def plain_linear(case, node):
    """Whether a Gemm can be F.linear, perhaps with a weight that is stored transposed."""
    a, name = node["attributes"], node["inputs"][1]
    return (not a["transA"] and a["transB"] and a["alpha"] == 1 and a["beta"] == 1
            and case.values[name]["kind"] == "parameter"
            and sum(other["inputs"].count(name) for other in case.nodes) == 1)


def _gemm(case, node):
    a = node["attributes"]
    if plain_linear(case, node):
        return F.linear

    def call(x, w, c=None):
        y = paddle.matmul(x, w, bool(a["transA"]), bool(a["transB"])) * a["alpha"]
        return y if c is None else y + c * a["beta"]
    return call


def _batch_norm(case, node):
    a, training = node["attributes"], case.stage != "forward"
    return lambda x, scale, bias, mean, variance: F.batch_norm(
        x, mean, variance, scale, bias, training, a["momentum"], a["epsilon"])


def _layer_norm(case, node):
    a = node["attributes"]
    shape = case.shape(node["inputs"][0])[a["axis"]:]
    return lambda x, scale, bias: F.layer_norm(x, shape, scale, bias, a["epsilon"])


def _rms_norm(case, node):
    axes = list(range(node["attributes"]["axis"], len(case.shape(node["inputs"][0]))))
    epsilon = node["attributes"]["epsilon"]
    return lambda x, scale: x * paddle.rsqrt(paddle.mean(x * x, axes, True) + epsilon) * scale


def _group_norm(case, node):
    """F.instance_norm has no gradient of its weights if its input is one of the network, which has none."""
    a, name = node["attributes"], node["inputs"][0]
    if node["op"] == "InstanceNormalization" and case.values[name]["kind"] != "input":
        return lambda x, scale, bias: F.instance_norm(x, weight=scale, bias=bias, eps=a["epsilon"])
    groups = a.get("num_groups", case.shape(name)[1])
    return lambda x, scale, bias: F.group_norm(x, groups, a["epsilon"], scale, bias)


def _resize(case, node):
    a, size = node["attributes"], case.shape(node["outputs"][0])[2:]
    mode = "bilinear" if a["mode"] == "linear" else "nearest"
    corners = a["coordinate_transformation_mode"] == "align_corners"
    return lambda x: F.interpolate(x, size, mode=mode, align_corners=corners)


def _swish(case, node):
    alpha = node["attributes"]["alpha"]
    return F.silu if alpha == 1 else lambda x: x * F.sigmoid(alpha * x)


def _lrn(case, node):
    a = node["attributes"]
    return lambda x: F.local_response_norm(x, a["size"], a["alpha"], a["beta"], a["bias"])


def _in_time(node, run):
    """The call of a recurrent layer: run(batch, weights..) -> every state in the order of the steps, the last one."""
    a = node["attributes"]
    sequence, reverse = a.get("sequence", False), a.get("direction", "forward") == "reverse"

    def call(x, *weights):
        every, last = run(paddle.flip(x, [1]) if reverse else x, *weights)
        if sequence:
            return paddle.flip(every, [1]) if reverse else every
        return paddle.squeeze(last[0] if node["op"] == "LSTM" else last, 0)
    return call


def recurrent_layer(node, weight, recurrent, bias):
    """(paddle.nn.LSTM or SimpleRNN with these weights, function of a batch that returns its states).
    Paddle's second bias is zero and is not trained. It needs a gradient all the same, because Paddle's backward
    pass crashes without it."""
    size, width = recurrent.shape[1], weight.shape[1]
    layer = (paddle.nn.LSTM(width, size) if node["op"] == "LSTM" else paddle.nn.SimpleRNN(
        width, size, activation=node["attributes"].get("activation", "Relu").lower()))
    for parameter, value in ((layer.weight_ih_l0, weight), (layer.weight_hh_l0, recurrent),
                             (layer.bias_ih_l0, bias), (layer.bias_hh_l0, numpy.zeros_like(bias))):
        parameter.set_value(value)
    return layer, _in_time(node, lambda x, *_: layer(x))


def _gru(case, node):
    """paddle.nn.GRU, whose gates are r, z, h, with weights that each step arranges: only h has a second bias."""
    size, width = case.shape(node["inputs"][2])[1], case.shape(node["inputs"][1])[1]
    layer = paddle.nn.GRU(width, size)

    def run(x, *weights):
        swapped = [paddle.concat([value[size:2 * size], value[:size], value[2 * size:3 * size]])
                   for value in weights]
        layer._all_weights = swapped + [paddle.concat([paddle.zeros([2 * size]), weights[2][3 * size:]])]
        return layer(x)
    return _in_time(node, run)


def _gru_problem(case, node):
    if not node["attributes"].get("linear_before_reset", False):
        return "Paddle resets after the product only (linear_before_reset)"
    return None


def _gather_problem(case, node):
    if len(case.shape(node["inputs"][0])) != 2:
        return "the table must have two dimensions"
    return graph_analysis.gather_problem(case, node)


def _attention(case, node):
    """F.scaled_dot_product_attention; its layout is N x T x H x d."""
    a, drops = node["attributes"], graph_analysis.drops(case)
    ratio = a["ratio"] if drops else 0.0
    order = [a["key_order"][i] for i in (0, 2, 1, 3)]

    def call(q, k, v, mask=None):
        q, k, v = (paddle.transpose(x, perm) for x, perm in ((q, [0, 2, 1, 3]), (k, order), (v, [0, 2, 1, 3])))
        result = F.scaled_dot_product_attention(q, k, v, None if a["causal"] else mask, ratio, a["causal"], drops,
                                                scale=a["scale"])
        return paddle.transpose(result, [0, 2, 1, 3])
    return call


def _cross_entropy(case, node):
    """Mean over the valid labels. With a negative ignore_index Paddle's own mean divides by the number of all
    labels, so this is the sum divided by the number of valid labels."""
    if not case.ignores_labels():
        return F.cross_entropy

    def call(logits, labels):
        labels = paddle.flatten(labels)
        total = F.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")
        return total / paddle.sum(paddle.cast(labels != IGNORED, "float32"))
    return call


def _half_squares(x):
    return paddle.sum(x * x) * 0.5


OPERATORS = {
    ATTENTION: _attention,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": plain(lambda x: F.adaptive_avg_pool2d(x, 1)),
    "Gemm": _gemm,
    "MatMul": plain(paddle.matmul),
    "Relu": plain(F.relu),
    "Tanh": plain(paddle.tanh),
    "Sigmoid": plain(F.sigmoid),
    "HardSigmoid": tuned(F.hardsigmoid, "alpha", "beta"),
    "Swish": _swish,
    "HardSwish": plain(F.hardswish),
    "Clip": tuned(paddle.clip, "min", "max"),
    "Elu": tuned(F.elu, "alpha"),
    "LeakyRelu": tuned(F.leaky_relu, "alpha"),
    "Gelu": lambda case, node: lambda x: F.gelu(x, node["attributes"]["approximate"] == "tanh"),
    "Exp": plain(paddle.exp),
    "Log": plain(paddle.log),
    "Sqrt": plain(paddle.sqrt),
    "Erf": plain(paddle.erf),
    "Pow": tuned(paddle.pow, "exponent"),
    "Neg": plain(paddle.neg),
    "Softmax": tuned(F.softmax, "axis"),
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _group_norm,
    "LRN": _lrn,
    "Flatten": reshaped(paddle.reshape),
    "Reshape": reshaped(paddle.reshape),
    "Identity": identity,
    "Transpose": tuned(paddle.transpose, "perm"),
    "Expand": lambda case, node: lambda x: paddle.broadcast_to(x, node["attributes"]["shape"]),
    "Concat": lambda case, node: lambda *xs: paddle.concat(xs, node["attributes"]["axis"]),
    "Slice": sliced,
    "Resize": _resize,
    "ReduceMean": tuned(paddle.mean, "axes", "keepdims"),
    "Gather": plain(lambda table, indices: F.embedding(indices, table)),
    "Dropout": dropped(F.dropout),
    "Add": plain(paddle.add),
    "Sub": plain(paddle.subtract),
    "Mul": plain(paddle.multiply),
    "Div": plain(paddle.divide),
    "LSTM": None,  # set by the adapter, because the layer owns its weights
    "GRU": _gru,
    "RNN": None,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    "HalfSumOfSquares": plain(_half_squares),
}

# (case, node) -> why this node is not supported, or None.
REFUSALS = {
    "MaxPool": graph_analysis.dilated_problem,
    "AveragePool": _average_pool_problem,
    "BatchNormalization": graph_analysis.statistics_problem,
    "Gather": _gather_problem,
    "LRN": graph_analysis.even_size_problem,
    "LSTM": graph_analysis.owner_problem,
    "GRU": _gru_problem,
    "RNN": graph_analysis.owner_problem,
}
