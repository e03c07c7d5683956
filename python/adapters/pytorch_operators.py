"""Torch's calls for each operator of a graph (OPERATORS), and the reasons for attributes that are not supported
(REFUSALS)."""
import operator

import torch
import torch.nn.functional as F

import adapters.pytorch_recurrent as recurrent
from case import IGNORED
from graph_attention import ATTENTION
from graph_analysis import (
    even, free_shape, gather_problem, lone_value_per_channel, owner_problem, window_reach, within_half)

LARGEST = 3.4028234e38  # default bounds of Clip


class Translation(object):
    """The argument of a row of OPERATORS. call(function, *args, **kwargs) appends a call and returns its fx
    node, module(Module, *args) that of a layer. inputs: fx nodes (None = omitted); weights: the inputs that are
    torch.nn.Parameter; attributes: dict; dropout: whether dropout is active; inplace: whether the first input
    may be overwritten."""

    def __init__(self, call, module, inputs, weights, attributes, case, node, dropout, inplace):
        self.call = call
        self.module = module
        self.inputs = inputs
        self.weights = weights
        self.attributes = attributes
        self.dropout = dropout
        self.inplace = inplace
        self.training = case.stage != "forward"
        self.case, self.node = case, node
        self.shape = case.shape(node["outputs"][0])
        self.input_shape = case.shape(node["inputs"][0])

    def input(self, index):
        """The fx node of an input, or None if it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def pad(self, pads, value):
        """Pads the first input at [top, left, bottom, right]."""
        top, left, bottom, right = pads
        self.inputs[0] = self.call(F.pad, self.inputs[0], [left, right, top, bottom], value=value)


def _conv(t):
    a = t.attributes
    padding = a["pads"][:2]
    if not even(a["pads"]):
        t.pad(a["pads"], 0.0)
        padding = [0, 0]
    return t.call(F.conv2d, t.input(0), t.input(1), t.input(2), a["strides"], padding,
                  a["dilations"], a["group"])


def _conv_transpose(t):
    a = t.attributes
    top, left, bottom, right = a["pads"]
    padding = a["pads"][:2] if even(a["pads"]) else [0, 0]
    y = t.call(F.conv_transpose2d, t.input(0), t.input(1), t.input(2), a["strides"], padding,
               a["output_padding"], a["group"], a["dilations"])
    return y if even(a["pads"]) else t.call(F.pad, y, [-left, -right, -top, -bottom])


def _max_pool(t):
    a = t.attributes
    dilations = a.get("dilations", [1, 1])
    if within_half(a):
        return t.call(F.max_pool2d, t.input(0), a["kernel_shape"], a["strides"], a["pads"][:2],
                      dilations, bool(a.get("ceil_mode", 0)))
    # Pads up to the end of the last window, which makes ceil_mode unnecessary.
    behind = [max(0, size) for size in window_reach(a, t.input_shape, t.shape)]
    t.pad(a["pads"][:2] + behind, float("-inf"))
    return t.call(F.max_pool2d, t.input(0), a["kernel_shape"], a["strides"], 0, dilations)


def _average_pool(t):
    a = t.attributes
    padding = a["pads"][:2]
    if not within_half(a):
        t.pad(a["pads"], 0.0)
        padding = [0, 0]
    return t.call(F.avg_pool2d, t.input(0), a["kernel_shape"], a["strides"], padding,
                  bool(a.get("ceil_mode", 0)), bool(a.get("count_include_pad", 0)))


def _average_pool_problem(case, node):
    a = node["attributes"]
    ceil, counts = a.get("ceil_mode", 0), a.get("count_include_pad", 0)
    if ceil and counts and "compile" in case.options and case.stage != "forward":
        return "torch.compile computes a wrong gradient for ceil_mode with count_include_pad"
    if within_half(a):
        return None
    if not counts:
        return "padding that is uneven or above half a window needs count_include_pad"
    if ceil:
        return "padding that is uneven or above half a window is not supported with ceil_mode"
    return None


def _gemm(t):
    a, b, c = t.input(0), t.input(1), t.input(2)
    alpha, beta = t.attributes["alpha"], t.attributes["beta"]
    if t.attributes["transA"]:
        a = t.call(torch.t, a)
    if alpha == 1 and (c is None or beta == 1) and t.attributes["transB"]:
        return t.call(F.linear, a, b, c)
    if t.attributes["transB"]:
        b = t.call(torch.t, b)
    if c is not None:
        return t.call(torch.addmm, c, a, b, beta=beta, alpha=alpha)
    product = t.call(torch.mm, a, b)
    return product if alpha == 1 else t.call(torch.mul, product, alpha)


def _batch_norm(t):
    a = t.attributes
    return t.call(F.batch_norm, t.input(0), t.input(3), t.input(4), t.input(1), t.input(2),
                  t.training, 1.0 - a["momentum"], a["epsilon"])


def _batch_norm_problem(case, node):
    if case.stage != "forward" and lone_value_per_channel(case, node):
        return "training needs more than one value per channel"
    return None


def _lrn(t):
    a = t.attributes
    return t.call(F.local_response_norm, t.input(0), a["size"], a["alpha"], a["beta"], a["bias"])


def _lrn_problem(case, node):
    if node["attributes"]["size"] % 2 == 0:
        return "the size must be odd, because torch centres even sizes differently"
    if len(case.shape(node["inputs"][0])) < 3:
        return "the input has no height and width"
    return None


def _hard_sigmoid(t):
    alpha, beta = t.attributes["alpha"], t.attributes["beta"]
    if abs(alpha - 1 / 6.0) < 1e-7 and beta == 0.5:
        return t.call(F.hardsigmoid, t.input(0))
    line = t.call(torch.add, t.call(torch.mul, t.input(0), alpha), beta)
    return t.call(F.hardtanh, line, 0.0, 1.0)


def _clip(t):
    low, high = t.attributes["min"], t.attributes["max"]
    if low <= -LARGEST and high >= LARGEST:
        return t.input(0)
    if high >= LARGEST:
        return (t.call(F.relu, t.input(0), inplace=t.inplace) if low == 0
                else t.call(torch.clamp, t.input(0), min=low))
    if low <= -LARGEST:
        return t.call(torch.clamp, t.input(0), max=high)
    if (low, high) == (0, 6):
        return t.call(F.relu6, t.input(0), inplace=t.inplace)
    return t.call(F.hardtanh, t.input(0), low, high, inplace=t.inplace)


def _swish(t):
    alpha = t.attributes["alpha"]
    if alpha == 1:
        return t.call(F.silu, t.input(0))
    return t.call(torch.mul, t.input(0), t.call(torch.sigmoid, t.call(torch.mul, t.input(0), alpha)))


def _reshape(t):
    return t.call(torch.reshape, t.input(0), free_shape(t.case, t.shape))


def _flatten(t):
    return t.call(torch.flatten, t.input(0), 1) if t.attributes["axis"] == 1 else _reshape(t)


def _slice(t):
    a = t.attributes
    if a["step"] == 1:
        return t.call(torch.narrow, t.input(0), a["axis"], a["start"], a["end"] - a["start"])
    slices = (slice(None),) * a["axis"] + (slice(a["start"], a["end"], a["step"]),)
    return t.call(operator.getitem, t.input(0), slices)


def _resize(t):
    if t.attributes["mode"] == "nearest":
        return t.call(F.interpolate, t.input(0), t.shape[2:], mode="nearest")
    return t.call(F.interpolate, t.input(0), t.shape[2:], mode="bilinear",
                  align_corners=t.attributes["coordinate_transformation_mode"] == "align_corners")


def _pad(t):
    pads = t.attributes["pads"]
    rank = len(pads) // 2
    flat = []  # torch's list starts with the last dimension
    for axis in range(rank - 1, -1, -1):
        flat += [pads[axis], pads[axis + rank]]
    while len(flat) > 2 and flat[-2:] == [0, 0]:
        del flat[-2:]
    return t.call(F.pad, t.input(0), flat, value=t.attributes["value"])


def _gather(t):
    """Rows of a table. F.embedding, which users write, only supports tables of rank 2."""
    table, indices = t.input(0), t.input(1)
    if len(t.input_shape) == 2:
        return t.call(F.embedding, indices, table)
    rows = t.call(torch.index_select, table, 0, t.call(torch.flatten, indices))
    return t.call(torch.reshape, rows, t.shape)


def write_rows(past, rows, index, axis):
    """Writes rows into a cache, in place, from row `index` of each sample on."""
    if index is None:
        past.narrow(axis, 0, rows.shape[axis]).copy_(rows)
        return past
    shape = [1] * rows.dim()
    shape[axis] = -1
    places = torch.arange(rows.shape[axis], device=rows.device).reshape(shape)
    return past.scatter_(axis, (index.reshape([-1] + [1] * (rows.dim() - 1)) + places).expand_as(rows), rows)


def _cross_entropy(t):
    """Mean over the labels other than -1."""
    labels = t.input(1)
    if len(t.case.shape(t.node["inputs"][1])) != 1:
        labels = t.call(torch.flatten, labels)
    return t.call(F.cross_entropy, t.input(0), labels, ignore_index=IGNORED)


def _attention(t):
    a, (q, k, v) = t.attributes, t.inputs[:3]
    if a["key_order"] != [0, 1, 2, 3]:
        k = t.call(torch.permute, k, a["key_order"])
    return t.call(F.scaled_dot_product_attention, q, k, v, attn_mask=None if a["causal"] else t.input(3),
                  dropout_p=a["ratio"] if t.dropout else 0.0, is_causal=a["causal"], scale=a["scale"])


def _dropout(t):
    return t.call(F.dropout, t.input(0), t.attributes["ratio"], True) if t.dropout else t.input(0)


def _half_squares(t):
    return t.call(torch.mul, t.call(torch.sum, t.call(torch.square, t.input(0))), 0.5)


def _plain(function, count=1):
    """A row for an operator without attributes."""
    return lambda t: t.call(function, *[t.input(i) for i in range(count)])


OPERATORS = {
    ATTENTION: _attention,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda t: t.call(F.adaptive_avg_pool2d, t.input(0), 1),
    "Gemm": _gemm,
    "MatMul": _plain(torch.matmul, 2),
    "Relu": lambda t: t.call(F.relu, t.input(0), inplace=t.inplace),
    "Tanh": _plain(torch.tanh),
    "Sigmoid": _plain(torch.sigmoid),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _plain(F.hardswish),
    "Clip": _clip,
    "Elu": lambda t: t.call(F.elu, t.input(0), t.attributes["alpha"]),
    "LeakyRelu": lambda t: t.call(F.leaky_relu, t.input(0), t.attributes["alpha"]),
    "Exp": _plain(torch.exp),
    "Log": _plain(torch.log),
    "Sqrt": _plain(torch.sqrt),
    "Gelu": lambda t: t.call(F.gelu, t.input(0), approximate=t.attributes["approximate"]),
    "Erf": _plain(torch.erf),
    "Pow": lambda t: t.call(torch.pow, t.input(0), t.attributes["exponent"]),
    "Swish": _swish,
    "Neg": _plain(torch.neg),
    "Softmax": lambda t: t.call(torch.softmax, t.input(0), t.attributes["axis"]),
    "BatchNormalization": _batch_norm,
    "LayerNormalization": lambda t: t.call(F.layer_norm, t.input(0), t.input_shape[t.attributes["axis"]:],
                                           t.input(1), t.input(2), t.attributes["epsilon"]),
    "RMSNormalization": lambda t: t.call(F.rms_norm, t.input(0), t.input_shape[t.attributes["axis"]:],
                                         t.input(1), t.attributes["epsilon"]),
    "GroupNormalization": lambda t: t.call(F.group_norm, t.input(0), t.attributes["num_groups"], t.input(1),
                                           t.input(2), t.attributes["epsilon"]),
    "InstanceNormalization": lambda t: t.call(F.instance_norm, t.input(0), None, None, t.input(1), t.input(2),
                                              True, 0.0, t.attributes["epsilon"]),
    "LRN": _lrn,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Identity": lambda t: t.input(0),
    "Transpose": lambda t: t.call(torch.permute, t.input(0), t.attributes["perm"]),
    "Expand": lambda t: t.call(torch.broadcast_to, t.input(0), t.shape),
    "Concat": lambda t: t.call(torch.cat, list(t.inputs), t.attributes["axis"]),
    "Slice": _slice,
    "Resize": _resize,
    "Pad": _pad,
    "ReduceMean": lambda t: t.call(torch.mean, t.input(0), t.attributes["axes"],
                                   bool(t.attributes["keepdims"])),
    "Gather": _gather,
    "TensorScatter": lambda t: t.call(write_rows, t.input(0), t.input(1), t.input(2), t.attributes["axis"]),
    "Dropout": _dropout,
    "Add": _plain(torch.add, 2),
    "Sub": _plain(torch.sub, 2),
    "Mul": _plain(torch.mul, 2),
    "Div": _plain(torch.div, 2),
    "LSTM": recurrent.layer,
    "GRU": recurrent.layer,
    "RNN": recurrent.layer,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    "HalfSumOfSquares": _half_squares,
}

# (case, node) -> why this node is not supported, or None.
REFUSALS = {
    "AveragePool": _average_pool_problem,
    "BatchNormalization": _batch_norm_problem,
    "Gather": gather_problem,
    "LRN": _lrn_problem,
    "LSTM": owner_problem,
    "GRU": owner_problem,
    "RNN": owner_problem,
}
