"""Theano's functions for each operator of a graph, and the reasons for those that are not supported."""
import numpy
import theano
import theano.tensor as T
from theano.tensor.signal import pool

import graph_analysis
from adapters import theano_setup
from case import IGNORED
from safetensors_io import elements

LARGEST = 3.4028234e38


class Translation(object):
    """The argument of a row of OPERATORS. inputs: variables (None = omitted); attributes: dict; updates: list
    for the updates of running statistics; a row sets macs to its multiply-accumulates."""

    def __init__(self, case, node, inputs, random, updates):
        self.case = case
        self.inputs, self.attributes = inputs, node["attributes"]
        self.training = case.stage != "forward"
        self.dropout = graph_analysis.drops(case)
        self.random, self.updates = random, updates
        self.shape = case.shape(node["outputs"][0])
        self.shapes = [case.shape(name) if name else None for name in node["inputs"]]
        self.batch = case.recipe["batch"]
        self.macs = 0

    def padded(self, pads, value):
        """The first input padded at [top, left, bottom, right]."""
        if not any(pads):
            return self.inputs[0]
        n, c, h, w = self.shapes[0]
        top, left, bottom, right = pads
        room = T.alloc(numpy.float32(value), n, c, top + h + bottom, left + w + right)
        return T.set_subtensor(room[:, :, top:top + h, left:left + w], self.inputs[0])


def _conv(t):
    a = t.attributes
    x, pads = t.inputs[0], tuple(a["pads"][:2])
    shape = list(t.shapes[0])
    if not graph_analysis.even(a["pads"]):
        x, pads = t.padded(a["pads"], 0.0), (0, 0)
        shape[2] += a["pads"][0] + a["pads"][2]
        shape[3] += a["pads"][1] + a["pads"][3]
    y = T.nnet.conv2d(x, t.inputs[1], input_shape=shape, filter_shape=t.shapes[1],
                      border_mode=pads, subsample=tuple(a["strides"]), filter_flip=False,
                      filter_dilation=tuple(a["dilations"]), num_groups=a["group"])
    t.macs = elements(t.shape) * elements(t.shapes[1][1:])
    return y if len(t.inputs) < 3 else y + t.inputs[2].dimshuffle("x", 0, "x", "x")


def _conv_transpose(t):
    """Uneven padding is cut off behind the gradient of the convolution."""
    a, even = t.attributes, graph_analysis.even(t.attributes["pads"])
    size = t.shape[2:] if even else graph_analysis.transposed_size(a, t.shapes[0])
    y = T.nnet.abstract_conv.conv2d_grad_wrt_inputs(
        t.inputs[0], t.inputs[1], t.shape[:2] + size, t.shapes[1], tuple(a["pads"][:2]) if even else (0, 0),
        tuple(a["strides"]), False, tuple(a["dilations"]), a["group"])
    if not even:
        top, left = a["pads"][:2]
        y = y[:, :, top:top + t.shape[2], left:left + t.shape[3]]
    t.macs = elements(t.shapes[0]) * elements(t.shapes[1][1:])
    return y if len(t.inputs) < 3 else y + t.inputs[2].dimshuffle("x", 0, "x", "x")


def _pool(t, mode, fill):
    """A pool. If Theano's own pool does not support the padding or rounding, the input is padded first. It
    supports even padding below the window, and rounding up without padding if the last window reaches a new
    element."""
    a = t.attributes
    behind = [max(0, n) for n in graph_analysis.window_reach(a, t.shapes[0], t.shape)]
    front, kernel = a["pads"][:2], a["kernel_shape"]
    x, pads, down = t.inputs[0], (0, 0), True
    up = pool.Pool.out_shape(t.shapes[0], tuple(kernel), False, tuple(a["strides"]))[2:]
    if front == [0, 0] and behind != [0, 0] and mode == "max" and list(up) == t.shape[2:]:
        down = False  # the last windows extend beyond the input
    elif all(n <= p < k for n, p, k in zip(behind, front, kernel)):
        pads = tuple(front)
    else:
        x = t.padded(front + behind, fill)
    y = pool.pool_2d(x, tuple(kernel), ignore_border=down, stride=tuple(a["strides"]), pad=pads,
                     mode=mode)
    return y[:, :, :t.shape[2], :t.shape[3]] if pads != (0, 0) else y


def _average_pool(t):
    return _pool(t, "average_inc_pad" if t.attributes["count_include_pad"] else "average_exc_pad",
                 0.0)


def _average_pool_problem(case, node):
    a = node["attributes"]
    if any(a["pads"]) and not graph_analysis.within_half(a):
        return "padding that is uneven or above half a window is not supported"
    if a["ceil_mode"]:
        return "ceil_mode is not supported"
    return None


def _gemm(t):
    a, b = t.inputs[:2]
    alpha, beta = t.attributes["alpha"], t.attributes["beta"]
    y = T.dot(a.T if t.attributes["transA"] else a, b.T if t.attributes["transB"] else b)
    if alpha != 1:
        y = y * numpy.float32(alpha)
    t.macs = elements(t.shape) * t.shapes[0][0 if t.attributes["transA"] else 1]
    if len(t.inputs) < 3 or t.inputs[2] is None:
        return y
    return y + (t.inputs[2] if beta == 1 else t.inputs[2] * numpy.float32(beta))


def _matmul(t):
    """Theano's product of many matrices takes three dimensions and does not broadcast."""
    t.macs = elements(t.shape) * t.shapes[0][-1]
    if len(t.shape) == 2:
        return T.dot(*t.inputs)
    many = elements(t.shape[:-2])
    factors = [T.reshape(_expanded(x, shape, t.shape[:-2] + shape[-2:]), [many] + shape[-2:])
               for x, shape in zip(t.inputs, t.shapes)]
    return T.reshape(T.batched_dot(*factors), t.shape)


def _expanded(x, shape, to):
    """x, of that shape, broadcast to another."""
    return x if shape == to else T.alloc(T.patternbroadcast(x, [size == 1 for size in shape]), *to)


def _gather(t):
    """Theano has gradients of rows that a vector of indices takes."""
    return T.reshape(t.inputs[0][t.inputs[1].flatten()], t.shape)


def _softmax(t):
    """Theano's own takes the last of two dimensions."""
    if t.attributes["axis"] == len(t.shape) - 1:
        return T.reshape(T.nnet.softmax(T.reshape(t.inputs[0], [-1, t.shape[-1]])), t.shape)
    powers = T.exp(t.inputs[0] - t.inputs[0].max(axis=t.attributes["axis"], keepdims=True))
    return powers / powers.sum(axis=t.attributes["axis"], keepdims=True)


def _gelu(t):
    x, half = t.inputs[0], numpy.float32(0.5)
    if t.attributes["approximate"] == "tanh":
        return half * x * (1 + T.tanh(numpy.float32((2 / numpy.pi) ** 0.5) * (x + numpy.float32(0.044715) * x ** 3)))
    return half * x * (1 + T.erf(numpy.float32(0.5 ** 0.5) * x))


def _batch_norm(t):
    a = t.attributes
    x, scale, bias, mean, variance = t.inputs
    epsilon = theano_setup.epsilon(a["epsilon"])
    if not t.training:
        return T.nnet.bn.batch_normalization_test(x, scale, bias, mean, variance, axes="spatial",
                                                  epsilon=epsilon)
    made = T.nnet.bn.batch_normalization_train(
        x, scale, bias, axes="spatial", epsilon=epsilon,
        running_average_factor=1.0 - a["momentum"], running_mean=mean, running_var=variance)
    t.updates += [(mean, made[3]), (variance, made[4])]
    return made[0]


def _batch_norm_problem(case, node):
    return theano_setup.epsilon_problem(node) or graph_analysis.statistics_problem(case, node)


def _mean_of_rows(t, x):
    """The mean over the axes from `axis` on."""
    return x.mean(axis=list(range(t.attributes["axis"], len(t.shape))), keepdims=True)


def _layer_norm(t):
    x = t.inputs[0] - _mean_of_rows(t, t.inputs[0])
    return _rms_norm(t, x) + t.inputs[2]


def _rms_norm(t, x=None):
    x = t.inputs[0] if x is None else x
    size = T.sqrt(_mean_of_rows(t, T.sqr(x)) + numpy.float32(t.attributes["epsilon"]))
    return x / size * t.inputs[1]


def _group_norm(t):
    shape = t.shape
    groups = t.attributes.get("num_groups", shape[1])
    x = T.reshape(t.inputs[0], [shape[0], groups, elements(shape[1:]) // groups])
    x = x - x.mean(axis=2, keepdims=True)
    x = x / T.sqrt(T.sqr(x).mean(axis=2, keepdims=True) + numpy.float32(t.attributes["epsilon"]))
    scale, bias = (T.reshape(w, [1, shape[1]] + [1] * (len(shape) - 2)) for w in t.inputs[1:])
    along = [axis != 1 for axis in range(len(shape))]
    return T.reshape(x, shape) * T.patternbroadcast(scale, along) + T.patternbroadcast(bias, along)


def _resize(t):
    """Repetition, or for each axis a product with a matrix, because Theano's own aligns to neither form."""
    a, x = t.attributes, t.inputs[0]
    for axis, order in ((0, (0, 1, 3, 2)), (1, (0, 1, 2, 3))):
        if a["mode"] == "nearest":
            x = T.repeat(x, a["scales"][axis], 2 + axis)
        else:
            weights = numpy.float32(graph_analysis.resize_weights(a, axis, t.shapes[0][2 + axis]))
            x = T.dot(x.dimshuffle(*order), weights.T).dimshuffle(*order)
    return x


def _lrn(t):
    a, (n, c, h, w) = t.attributes, t.shapes[0]
    front = (a["size"] - 1) // 2
    room = T.alloc(numpy.float32(0), n, c + a["size"] - 1, h, w)
    squares = T.set_subtensor(room[:, front:front + c], T.sqr(t.inputs[0]))
    total = sum((squares[:, i:i + c] for i in range(1, a["size"])), squares[:, :c])
    scale = numpy.float32(a["bias"]) + numpy.float32(a["alpha"] / a["size"]) * total
    return t.inputs[0] / scale ** numpy.float32(a["beta"])


def _dropout(t):
    if not t.dropout:
        return t.inputs[0]
    keep = 1.0 - t.attributes["ratio"]
    mask = t.random.binomial(size=t.inputs[0].shape, p=keep, dtype="float32")
    return t.inputs[0] * mask / numpy.float32(keep)


def _scan(t, states, step):
    """The hidden states of a recurrence, or the last one: the products with the input for all times at once, then
    theano.scan. step(products at a time, states.., recurrent weights, bias) -> states, the hidden one first."""
    x, weight, recurrent, bias = t.inputs
    n, time, _ = t.shapes[0]
    rows, size = t.shapes[2]
    a = t.attributes
    t.macs = n * time * (elements(t.shapes[1]) + elements(t.shapes[2]))
    given = T.dot(x.dimshuffle(1, 0, 2), weight.T) + bias[:rows]
    every, _ = theano.scan(step, given, [T.zeros((n, size), "float32")] * states, [recurrent.T, bias], strict=True,
                           go_backwards=a.get("direction", "forward") == "reverse")
    hidden = every[0] if states > 1 else every
    if not a.get("sequence", False):
        return hidden[-1]
    if a.get("direction", "forward") == "reverse":
        hidden = hidden[::-1]
    return hidden.dimshuffle(1, 0, 2)


def _lstm(t):
    size = t.shape[-1]

    def step(now, hidden, cell, recurrent, bias):
        gates = now + T.dot(hidden, recurrent)
        squashed = T.nnet.sigmoid(gates[:, :3 * size])
        cell = (squashed[:, size:2 * size] * cell
                + squashed[:, :size] * T.tanh(gates[:, 3 * size:]))
        return squashed[:, 2 * size:] * T.tanh(cell), cell
    return _scan(t, 2, step)


def _gru(t):
    """Gates z, r, h. With linear_before_reset, the last block of the bias is that of h's recurrent product."""
    size, linear = t.shape[-1], t.attributes.get("linear_before_reset", False)

    def step(now, hidden, recurrent, bias):
        both = T.nnet.sigmoid(now[:, :2 * size] + T.dot(hidden, recurrent[:, :2 * size]))
        update, reset = both[:, :size], both[:, size:]
        if linear:
            fresh = reset * (T.dot(hidden, recurrent[:, 2 * size:]) + bias[3 * size:])
        else:
            fresh = T.dot(reset * hidden, recurrent[:, 2 * size:])
        fresh = T.tanh(now[:, 2 * size:] + fresh)
        return fresh + update * (hidden - fresh)
    return _scan(t, 1, step)


def _rnn(t):
    activation = T.tanh if t.attributes.get("activation", "Relu") == "Tanh" else T.nnet.relu
    return _scan(t, 1, lambda now, hidden, recurrent, bias: activation(now + T.dot(hidden, recurrent)))


def _reshape(t):
    return T.reshape(t.inputs[0], t.shape)


def _hard_sigmoid(t):
    a = t.attributes
    return T.clip(t.inputs[0] * numpy.float32(a["alpha"]) + numpy.float32(a["beta"]), 0.0, 1.0)


def _clip(t):
    return T.clip(t.inputs[0], numpy.float32(t.attributes["min"]),
                  numpy.float32(t.attributes["max"]))


def _loss(t):
    labels = t.inputs[1].flatten()
    if not t.case.ignores_labels():
        return T.nnet.categorical_crossentropy(T.nnet.softmax(t.inputs[0]), labels).mean()
    valid = T.neq(labels, IGNORED)
    losses = T.nnet.categorical_crossentropy(T.nnet.softmax(t.inputs[0]), T.switch(valid, labels, 0))
    return (losses * valid).sum() / T.cast(valid.sum(), "float32")


def _slice(t):
    a = t.attributes
    slices = (slice(None),) * a["axis"] + (slice(a["start"], a["end"], a["step"]),)
    return t.inputs[0][slices]


def _broadcast(function):
    """A row for a function of two operands, which broadcasts dimensions of 1."""
    def row(t):
        operands = [T.patternbroadcast(x, [size == 1 for size in shape])
                    for x, shape in zip(t.inputs, t.shapes)]
        return function(*operands)
    return row


OPERATORS = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": lambda t: _pool(t, "max", -LARGEST),
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda t: t.inputs[0].mean(axis=(2, 3), keepdims=True),
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Relu": lambda t: T.nnet.relu(t.inputs[0]),
    "Tanh": lambda t: T.tanh(t.inputs[0]),
    "Sigmoid": lambda t: T.nnet.sigmoid(t.inputs[0]),
    "HardSigmoid": _hard_sigmoid,
    "Clip": _clip,
    "LeakyRelu": lambda t: T.nnet.relu(t.inputs[0], t.attributes["alpha"]),
    "Elu": lambda t: T.nnet.elu(t.inputs[0], t.attributes["alpha"]),
    "Gelu": _gelu,
    "Swish": lambda t: t.inputs[0] * T.nnet.sigmoid(numpy.float32(t.attributes["alpha"]) * t.inputs[0]),
    "Exp": lambda t: T.exp(t.inputs[0]),
    "Log": lambda t: T.log(t.inputs[0]),
    "Sqrt": lambda t: T.sqrt(t.inputs[0]),
    "Erf": lambda t: T.erf(t.inputs[0]),
    "Pow": lambda t: t.inputs[0] ** numpy.float32(t.attributes["exponent"]),
    "Neg": lambda t: -t.inputs[0],
    "Identity": lambda t: t.inputs[0],
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _group_norm,
    "Softmax": _softmax,
    "LRN": _lrn,
    "Flatten": _reshape,
    "Reshape": _reshape,
    "Transpose": lambda t: t.inputs[0].dimshuffle(*t.attributes["perm"]),
    "Expand": lambda t: _expanded(t.inputs[0], t.shapes[0], t.shape),
    "Gather": _gather,
    "Concat": lambda t: T.concatenate(t.inputs, axis=t.attributes["axis"]),
    "Slice": _slice,
    "Resize": _resize,
    "ReduceMean": lambda t: t.inputs[0].mean(axis=t.attributes["axes"],
                                             keepdims=bool(t.attributes["keepdims"])),
    "Dropout": _dropout,
    "Add": _broadcast(lambda a, b: a + b),
    "Sub": _broadcast(lambda a, b: a - b),
    "Mul": _broadcast(lambda a, b: a * b),
    "Div": _broadcast(lambda a, b: a / b),
    "LSTM": _lstm,
    "GRU": _gru,
    "RNN": _rnn,
    "SoftmaxCrossEntropyLoss": _loss,
    "HalfSumOfSquares": lambda t: T.sqr(t.inputs[0]).sum() * numpy.float32(0.5),
}

# (case, node) -> why this node is not supported, or None.
REFUSALS = {
    "MaxPool": graph_analysis.dilated_problem,
    "AveragePool": _average_pool_problem,
    "BatchNormalization": _batch_norm_problem,
    "Gather": graph_analysis.gather_problem,
}
