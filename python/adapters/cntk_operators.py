"""CNTK's functions for each operator of a graph, and the reasons for those that are not supported. Shapes are
those of one sample, because the batch is a separate kind of axis in CNTK."""
import math

import cntk
import numpy

import graph_analysis
from safetensors_io import elements

# Number of samples that CNTK is told the running statistics are from; at 0 CNTK would replace them by those of
# the first batch.
SEEN = 1000000


class Translation(object):
    """The argument of a row of OPERATORS. inputs are functions of CNTK (None = omitted); a row sets macs to its
    multiply-accumulates for one sample."""

    def __init__(self, case, node, inputs):
        self.inputs, self.attributes = inputs, node["attributes"]
        self.case = case
        self.training = case.stage != "forward"
        self.shape = case.shape(node["outputs"][0])
        self.shapes = [case.shape(name) if name else None for name in node["inputs"]]
        self.macs = 0


def _pad(x, pads, value):
    """Pads at [top, left, bottom, right]."""
    top, left, bottom, right = pads
    if not any(pads):
        return x
    return cntk.pad(x, [(0, 0), (top, bottom), (left, right)], constant_value=value)


def _same(t):
    """Whether CNTK's automatic padding is the right one; it does not support windows larger than the input."""
    a = t.attributes
    return (a["strides"] == [1, 1] and all(size % 2 for size in a["kernel_shape"])
            and a["pads"] == [size // 2 for size in a["kernel_shape"]] * 2
            and all(k <= size for k, size in zip(a["kernel_shape"], t.shapes[0][2:])))


def _conv(t):
    a, same = t.attributes, _same(t)
    x = t.inputs[0] if same else _pad(t.inputs[0], a["pads"], 0)
    y = cntk.convolution(t.inputs[1], x, tuple(a["strides"]), auto_padding=[False, same, same],
                         dilation=tuple(a["dilations"]), groups=a["group"])
    t.macs = elements(y.shape) * elements(t.inputs[1].shape[1:])
    if len(t.inputs) < 3 or t.inputs[2] is None:
        return y
    return y + cntk.reshape(t.inputs[2], (-1, 1, 1))


def _pool(t, kind, fill):
    a = t.attributes
    behind = graph_analysis.window_reach(a, t.shapes[0], t.shape)
    same, x = _same(t), t.inputs[0]
    if not same:
        x = _pad(x, a["pads"][:2] + [max(0, n) for n in behind], fill)
    return cntk.pooling(x, kind, tuple(a["kernel_shape"]), tuple(a["strides"]),
                        auto_padding=[False, same, same])


def _gemm(t):
    t.macs = elements(t.inputs[1].shape)
    y = cntk.times(t.inputs[0], t.inputs[1])
    return y if len(t.inputs) < 3 or t.inputs[2] is None else y + t.inputs[2]


def _gemm_problem(case, node):
    return (graph_analysis.dense_problem(case, node)
            or graph_analysis.recurrent_problem(case, node))


def _batch_norm(t):
    a = t.attributes
    x, scale, bias, mean, variance = t.inputs
    # CNTK's factor is 1 - exp(-samples / constant).
    constant = -t.shapes[0][0] / math.log(a["momentum"]) if a["momentum"] else 0
    return cntk.batch_normalization(
        x, scale, bias, mean, variance, spatial=len(t.shape) == 4, running_count=cntk.constant(SEEN),
        normalization_time_constant=constant, epsilon=a["epsilon"], use_cudnn_engine=False)


def _lrn(t):
    a = t.attributes
    return cntk.local_response_normalization(t.inputs[0], (a["size"] - 1) // 2, a["bias"],
                                             a["alpha"], a["beta"])


def _dropout(t):
    if not graph_analysis.drops(t.case):
        return t.inputs[0]
    return cntk.dropout(t.inputs[0], t.attributes["ratio"], seed=t.case.recipe["seed"])


def _concat(t):
    return cntk.splice(*t.inputs, axis=t.attributes["axis"] - 1)


def _time(t):
    """The inputs, the first as a sequence; the network's input already is one if only recurrent layers read
    it."""
    t.macs = t.shapes[0][1] * (elements(t.shapes[1]) + elements(t.shapes[2]))
    x = t.inputs[0]
    return [x if len(x.dynamic_axes) > 1 else cntk.to_sequence(x)] + t.inputs[1:]


def _lstm(t):
    x, weight, recurrent, bias = _time(t)
    size = t.shape[1]

    def step(hidden, cell, x):
        gates = bias + cntk.times(x, weight) + cntk.times(hidden, recurrent)
        i, c, f, o = (cntk.slice(gates, 0, k * size, (k + 1) * size) for k in range(4))
        cell = cntk.sigmoid(f) * cell + cntk.sigmoid(i) * cntk.tanh(c)
        return cntk.sigmoid(o) * cntk.tanh(cell), cell
    return cntk.sequence.last(cntk.layers.Recurrence(cntk.Function(step))(x))


def _rnn(t):
    x, weight, recurrent, bias = _time(t)

    def step(hidden, x):
        return cntk.relu(bias + cntk.times(x, weight) + cntk.times(hidden, recurrent))
    return cntk.sequence.last(cntk.layers.Recurrence(cntk.Function(step))(x))


def _reduce_mean(t):
    axes = tuple(axis - 1 for axis in t.attributes["axes"])
    y = cntk.reduce_mean(t.inputs[0], axis=axes)
    return cntk.reshape(y, tuple(t.shape[1:]))


def _reshape(t):
    return cntk.reshape(t.inputs[0], tuple(t.shape[1:]))


OPERATORS = {
    "Conv": _conv,
    "MaxPool": lambda t: _pool(t, cntk.MAX_POOLING, -3.4e38),
    "AveragePool": lambda t: _pool(t, cntk.AVG_POOLING, 0),
    "GlobalAveragePool": lambda t: cntk.pooling(t.inputs[0], cntk.AVG_POOLING,
                                                tuple(t.shapes[0][2:])),
    "Gemm": _gemm,
    "Relu": lambda t: cntk.relu(t.inputs[0]),
    "Tanh": lambda t: cntk.tanh(t.inputs[0]),
    "Sigmoid": lambda t: cntk.sigmoid(t.inputs[0]),
    "LeakyRelu": lambda t: cntk.leaky_relu(t.inputs[0], t.attributes["alpha"]),
    "Swish": lambda t: t.inputs[0] * cntk.sigmoid(t.attributes["alpha"] * t.inputs[0]),
    "Pow": lambda t: cntk.pow(t.inputs[0], t.attributes["exponent"]),
    "Exp": lambda t: cntk.exp(t.inputs[0]),
    "Log": lambda t: cntk.log(t.inputs[0]),
    "Sqrt": lambda t: cntk.sqrt(t.inputs[0]),
    "Neg": lambda t: -t.inputs[0],
    "Identity": lambda t: t.inputs[0],
    "BatchNormalization": _batch_norm,
    "LRN": _lrn,
    "Flatten": _reshape,
    "Reshape": _reshape,
    "Concat": _concat,
    "ReduceMean": _reduce_mean,
    "Dropout": _dropout,
    "Add": lambda t: t.inputs[0] + t.inputs[1],
    "Sub": lambda t: t.inputs[0] - t.inputs[1],
    "Mul": lambda t: t.inputs[0] * t.inputs[1],
    "Div": lambda t: t.inputs[0] / t.inputs[1],
    "LSTM": _lstm,
    "RNN": _rnn,
    "SoftmaxCrossEntropyLoss": None,  # it is the trainer's criterion
}


ACROSS = "operations across samples are not supported"


def _average_pool_problem(case, node):
    a = node["attributes"]
    return "padding and ceil_mode are not supported" if any(a["pads"]) or a["ceil_mode"] else None


def _batch_first(case, node):
    shape = case.shape(node["outputs"][0])
    return None if shape[:1] == [case.recipe["batch"]] else ACROSS


# (case, node) -> why this node is not supported, or None.
REFUSALS = {
    "Conv": graph_analysis.dilated_problem,  # "Dilated convolution on CPU is not yet implemented"
    "MaxPool": graph_analysis.dilated_problem,
    "AveragePool": _average_pool_problem,
    "Gemm": _gemm_problem,
    "LRN": graph_analysis.even_size_problem,
    "LSTM": graph_analysis.recurrent_problem,
    "RNN": graph_analysis.recurrent_problem,
    "Reshape": _batch_first,
    "Concat": lambda case, node: None if node["attributes"]["axis"] else ACROSS,
    "ReduceMean": lambda case, node: None if 0 not in node["attributes"]["axes"] else ACROSS,
}
