"""Chainer's functions for each operator of a graph, and the reasons for those that are not supported."""
import chainer
import chainer.functions as F
import numpy

import graph_analysis
from adapters.eager_program import dropped, identity, plain, pooled, reshaped, sliced, tuned
from safetensors_io import elements

TANH_SCALE = (2 / numpy.pi) ** 0.5  # of Gelu

_order = graph_analysis.gate_order("cifo")


def gates_together(value):
    """Layout of an LSTM's weight or bias, in which the four gates of a unit are neighbours."""
    size = value.shape[0] // 4
    blocks = value.reshape((4, size) + value.shape[1:])[_order]
    return numpy.moveaxis(blocks, 0, 1).reshape(value.shape)


def _pad(x, pads, fill):
    top, left, bottom, right = pads
    return F.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)], "constant",
                 constant_values=fill)


def _conv(case, node):
    a = node["attributes"]
    pads, even = a["pads"], graph_analysis.even(a["pads"])

    def call(x, w, b=None):
        if not even:
            x = _pad(x, pads, 0)
        return F.convolution_2d(x, w, b, a["strides"], pads[:2] if even else 0,
                                dilate=a["dilations"], groups=a["group"])
    return call


def _conv_transpose(case, node):
    """Uneven padding is cut off behind the function."""
    a, shape = node["attributes"], case.shape(node["outputs"][0])
    (top, left), even = a["pads"][:2], graph_analysis.even(a["pads"])
    size = shape[2:] if even else graph_analysis.transposed_size(a, case.shape(node["inputs"][0]))

    def call(x, w, b=None):
        y = F.deconvolution_2d(x, w, b, a["strides"], (top, left) if even else 0, tuple(size),
                               dilate=a["dilations"], groups=a["group"])
        return y if even else y[:, :, top:top + shape[2], left:left + shape[3]]
    return call


def _conv_transpose_problem(case, node):
    """Its backward pass takes arrays for shapes if only the weights need gradients."""
    if case.stage != "forward" and case.values[node["inputs"][0]]["kind"] == "input":
        return "Chainer cannot train it on an input of the network"
    return None


def _max_pool(case, node):
    a = node["attributes"]
    return pooled(case, node, True, -numpy.inf, _pad,
                  lambda x, pads, up: F.max_pooling_2d(x, a["kernel_shape"], a["strides"], pads,
                                                       cover_all=up))


def _average_pool(case, node):
    a = node["attributes"]
    return pooled(case, node, False, 0, _pad,
                  lambda x, pads, up: F.average_pooling_2d(x, a["kernel_shape"], a["strides"], pads))


def _average_pool_problem(case, node):
    a = node["attributes"]
    if any(a["pads"]) and not a["count_include_pad"]:
        return "padding needs count_include_pad"
    return "ceil_mode is not supported" if a["ceil_mode"] else None


def _gemm(case, node):
    a = node["attributes"]
    alpha, beta = a["alpha"], a["beta"]

    def call(x, w, c=None):
        if alpha == 1 and (c is None or beta == 1) and not a["transA"] and a["transB"]:
            return F.linear(x, w, c)
        y = F.matmul(x, w, transa=bool(a["transA"]), transb=bool(a["transB"])) * alpha
        return y if c is None else y + F.broadcast_to(c * beta, y.shape)
    return call


def _batch_norm(case, node):
    a = node["attributes"]

    def call(x, scale, bias, mean, variance):
        if chainer.config.train:
            return F.batch_normalization(x, scale, bias, eps=a["epsilon"], running_mean=mean,
                                         running_var=variance, decay=a["momentum"])
        return F.fixed_batch_normalization(x, scale, bias, mean, variance, eps=a["epsilon"])
    return call


def _rows(case, node):
    """(rows, length of a row) for a normalisation over the axes from `axis` on."""
    shape, axis = case.shape(node["inputs"][0]), node["attributes"]["axis"]
    return elements(shape[:axis]), elements(shape[axis:])


def _layer_norm(case, node):
    """Chainer's function takes two dimensions only."""
    rows, epsilon = _rows(case, node), node["attributes"]["epsilon"]

    def call(x, scale, bias):
        flat = x if x.ndim == 2 else F.reshape(x, rows)
        y = F.layer_normalization(flat, F.flatten(scale), F.flatten(bias), epsilon)
        return y if x.ndim == 2 else F.reshape(y, x.shape)
    return call


def _rms_norm(case, node):
    rows, epsilon = _rows(case, node), node["attributes"]["epsilon"]

    def call(x, scale):
        flat = F.reshape(x, rows)
        size = F.sqrt(F.mean(F.square(flat), axis=1, keepdims=True) + epsilon)
        return F.reshape(flat / F.broadcast_to(size, rows) * F.broadcast_to(F.flatten(scale), rows), x.shape)
    return call


def _group_norm(case, node):
    a, groups = node["attributes"], node["attributes"].get("num_groups", case.shape(node["inputs"][0])[1])
    return lambda x, scale, bias: F.group_normalization(x, groups, scale, bias, a["epsilon"])


def _resize(case, node):
    a, size = node["attributes"], tuple(case.shape(node["outputs"][0])[2:])
    corners = a["coordinate_transformation_mode"] == "align_corners"
    if a["mode"] == "linear":
        return lambda x: F.resize_images(x, size, align_corners=corners)
    return lambda x: F.unpooling_2d(x, a["scales"], outsize=size)


def _gelu(case, node):
    if node["attributes"]["approximate"] == "tanh":
        return lambda x: 0.5 * x * (1 + F.tanh(TANH_SCALE * (x + 0.044715 * x ** 3)))
    return lambda x: 0.5 * x * (1 + F.erf(0.5 ** 0.5 * x))


def _lrn(case, node):
    a = node["attributes"]
    return lambda x: F.local_response_normalization(x, a["size"], a["bias"],
                                                    a["alpha"] / a["size"], a["beta"])


def _recurrence(node, states, step):
    """A row for a layer: the products with the input for all times at once, then step(products at a time, states,
    recurrent weights, bias) for each, where states are None at first; it gives the states, the hidden one first."""
    a = node["attributes"]

    def call(x, weight, recurrent, bias):
        n, time, features = x.shape
        given = F.linear(F.reshape(x, (n * time, features)), weight, bias[:len(recurrent)])
        given = F.separate(F.reshape(given, (n, time, -1)), axis=1)
        state, every = (None,) * states, [None] * time
        for at in reversed(range(time)) if a.get("direction", "forward") == "reverse" else range(time):
            state = step(given[at], state, recurrent, bias)
            every[at] = state[0]
        return F.stack(every, axis=1) if a.get("sequence", False) else state[0]
    return call


def _lstm(case, node):
    def step(now, state, recurrent, bias):
        hidden, cell = state
        if hidden is None:
            cell = numpy.zeros((now.shape[0], recurrent.shape[1]), numpy.float32)
        else:
            now = now + F.linear(hidden, recurrent)
        return F.lstm(cell, now)[::-1]
    return _recurrence(node, 2, step)


def _rnn(case, node):
    activation = F.tanh if node["attributes"].get("activation", "Relu") == "Tanh" else F.relu
    return _recurrence(node, 1, lambda now, state, recurrent, bias: (
        activation(now if state[0] is None else now + F.linear(state[0], recurrent)),))


def _gru(case, node):
    """Gates z, r, h. With linear_before_reset, the last block of the bias is that of h's recurrent product."""
    linear = node["attributes"].get("linear_before_reset", False)

    def step(now, state, recurrent, bias):
        size = recurrent.shape[1]
        state = numpy.zeros((now.shape[0], size), numpy.float32) if state[0] is None else state[0]
        z, r = F.split_axis(F.sigmoid(now[:, :2 * size] + F.linear(state, recurrent[:2 * size])), 2, axis=1)
        if linear:
            fresh = r * F.linear(state, recurrent[2 * size:], bias[3 * size:])
        else:
            fresh = F.linear(r * state, recurrent[2 * size:])
        fresh = F.tanh(now[:, 2 * size:] + fresh)
        return (fresh + z * (state - fresh),)
    return _recurrence(node, 1, step)


def _gather_problem(case, node):
    if len(case.shape(node["inputs"][0])) != 2:
        return "the table must have two dimensions"
    return graph_analysis.gather_problem(case, node)


def _two(function):
    """A row for a function of two operands. Chainer does not broadcast them itself."""
    def call(a, b):
        shape = numpy.broadcast(numpy.empty(a.shape, "b"), numpy.empty(b.shape, "b")).shape
        return function(a if a.shape == shape else F.broadcast_to(a, shape),
                        b if b.shape == shape else F.broadcast_to(b, shape))
    return plain(call)


def _matmul(case, node):
    """Chainer's product does not broadcast."""
    shape = case.shape(node["outputs"][0])

    def call(*factors):
        full = [tuple(shape[:-2]) + x.shape[-2:] for x in factors]
        return F.matmul(*[x if x.shape == to else F.broadcast_to(x, to) for x, to in zip(factors, full)])
    return call


def _cross_entropy(case, node):
    """Mean over the labels other than -1, which Chainer leaves out."""
    return lambda logits, labels: F.softmax_cross_entropy(logits, labels.ravel())


OPERATORS = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": plain(lambda x: F.average_pooling_2d(x, x.shape[2:])),
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Relu": plain(F.relu),
    "Tanh": plain(F.tanh),
    "Sigmoid": plain(F.sigmoid),
    "Clip": tuned(F.clip, "min", "max"),
    "Elu": tuned(F.elu, "alpha"),
    "LeakyRelu": tuned(F.leaky_relu, "alpha"),
    "Gelu": _gelu,
    "Swish": lambda case, node: lambda x: x * F.sigmoid(node["attributes"]["alpha"] * x),
    "Exp": plain(F.exp),
    "Log": plain(F.log),
    "Sqrt": plain(F.sqrt),
    "Erf": plain(F.erf),
    "Pow": lambda case, node: lambda x: x ** node["attributes"]["exponent"],
    "Neg": plain(lambda x: -x),
    "Softmax": tuned(F.softmax, "axis"),
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _group_norm,
    "LRN": _lrn,
    "Flatten": reshaped(F.reshape),
    "Reshape": reshaped(F.reshape),
    "Identity": identity,
    "Transpose": tuned(F.transpose, "perm"),
    "Expand": lambda case, node: lambda x: F.broadcast_to(x, tuple(node["attributes"]["shape"])),
    "Concat": lambda case, node: lambda *xs: F.concat(xs, node["attributes"]["axis"]),
    "Slice": sliced,
    "Resize": _resize,
    "ReduceMean": lambda case, node: lambda x: F.mean(
        x, tuple(node["attributes"]["axes"]), keepdims=bool(node["attributes"]["keepdims"])),
    "Gather": plain(lambda table, indices: F.embed_id(indices, table)),
    "Dropout": dropped(F.dropout),
    "Add": _two(lambda a, b: a + b),
    "Sub": _two(lambda a, b: a - b),
    "Mul": _two(lambda a, b: a * b),
    "Div": _two(lambda a, b: a / b),
    "LSTM": _lstm,
    "GRU": _gru,
    "RNN": _rnn,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    "HalfSumOfSquares": plain(lambda x: F.sum(x * x) * 0.5),
}

# (case, node) -> why this node is not supported, or None.
REFUSALS = {
    "ConvTranspose": _conv_transpose_problem,
    "MaxPool": graph_analysis.dilated_problem,
    "AveragePool": _average_pool_problem,
    "BatchNormalization": graph_analysis.statistics_problem,
    "Gather": _gather_problem,
    "LRN": graph_analysis.even_size_problem,
}
