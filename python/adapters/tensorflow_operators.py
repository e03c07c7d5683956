"""TensorFlow's calls for each operator of a graph, on values as N x H x W x C (OPERATORS), and the reasons for
attributes that it does not support on a CPU (REFUSALS). A row is called with a graph_evaluation.Operation and
adds its multiply-accumulates to run.macs."""
import tensorflow as tf

import graph_analysis
from case import IGNORED
from graph_evaluation import SPLIT
from safetensors_io import elements

LARGEST = 3.4028234e38  # default bounds of Clip


def _window(t, pads, value=0.0):
    """(first input, TensorFlow's padding word). The input is padded if no word describes its padding. A list of
    pads would do for forward, but its gradient does not run in oneDNN: for a convolution of ResNet-50 it takes
    1.3 times as long in fp32 and 120 times as long in bf16."""
    if not any(pads):
        return t.input(0), "VALID"
    if graph_analysis.same_padding(t.attributes, t.input_shape, t.shape):
        return t.input(0), "SAME"
    return tf.pad(t.input(0), t.pads(pads), constant_values=value), "VALID"


def _count_conv(t, result, weights):
    t.run.macs += elements(result.shape) * elements(weights.shape[:3])


def _depthwise(t, x, padding):
    a, w = t.attributes, t.input(1)
    channels = t.input_shape[1]
    w = tf.reshape(w, list(w.shape[:2]) + [channels, w.shape[3] // channels])
    return tf.nn.depthwise_conv2d(x, w, t.layout.spatial(a["strides"], 1), padding,
                                  dilations=a["dilations"])


def _grouped(t, x, padding):
    """One convolution per group: on a CPU TensorFlow has no gradient of grouped convolutions."""
    a = t.attributes
    parts = zip(tf.split(x, a["group"], 3), tf.split(t.input(1), a["group"], 3))
    return tf.concat([tf.nn.conv2d(part, w, a["strides"], padding, dilations=a["dilations"])
                      for part, w in parts], 3)


def _conv(t):
    a = t.attributes
    x, padding = _window(t, a["pads"])
    if a["group"] == 1:
        result = tf.nn.conv2d(x, t.input(1), a["strides"], padding, dilations=a["dilations"])
    else:
        result = (_depthwise if a["group"] == t.input_shape[1] else _grouped)(t, x, padding)
    _count_conv(t, result, t.input(1))
    return result if t.input(2) is None else tf.nn.bias_add(result, t.input(2))


def _conv_problem(case, node):
    a = node["attributes"]
    if (a["group"] > 1 and a["group"] == case.shape(node["inputs"][0])[1]
            and (a["strides"][0] != a["strides"][1] or a["dilations"] != [1, 1])):
        return "a depthwise convolution with uneven strides or dilations is not supported"
    if a["dilations"] != [1, 1] and a["strides"] != [1, 1]:
        return "strides together with dilations are not supported"
    return None


def _conv_transpose(t):
    """The gradient of the convolution whose padding TensorFlow names, or else of one of the padded result; one for
    each group, as in _grouped."""
    a, x, w = t.attributes, t.input(0), t.input(1)
    same = graph_analysis.same_padding(a, t.shape, t.input_shape)
    rows, columns = t.shape[2:] if same else graph_analysis.transposed_size(a, t.input_shape)
    size = [t.shape[0], rows, columns, t.shape[1] // a["group"]]
    parts = zip(tf.split(x, a["group"], 3), tf.split(w, a["group"], 3))
    result = tf.concat([tf.nn.conv2d_transpose(part, kernel, size, a["strides"], "SAME" if same else "VALID",
                                               dilations=a["dilations"]) for part, kernel in parts], 3)
    t.run.macs += elements(x.shape) * elements(w.shape[:3])
    result = result if same else t.cut(result)
    return result if t.input(2) is None else tf.nn.bias_add(result, t.input(2))


def _conv_transpose_problem(case, node):
    a = node["attributes"]
    if a["dilations"] != [1, 1] and a["strides"] != [1, 1]:
        return "strides together with dilations are not supported"
    return None


def _max_pool(t):
    a = t.attributes
    x, padding = _window(t, t.pooled_pads(), t.input(0).dtype.min)
    return tf.nn.max_pool2d(x, a["kernel_shape"], a["strides"], padding)


def _max_pool_problem(case, node):
    a = node["attributes"]
    if a.get("dilations", [1, 1]) != [1, 1]:
        return "dilations are not supported"
    if any(pad >= size for pad, size in zip(a["pads"], a["kernel_shape"] * 2)):
        return "the padding must be smaller than the window"
    return None


def _average_pool(t):
    a, x = t.attributes, t.input(0)
    counts = a.get("count_include_pad", False)
    pads = t.pooled_pads()
    if not counts and graph_analysis.same_padding(a, t.input_shape, t.shape):
        return tf.nn.avg_pool2d(x, a["kernel_shape"], a["strides"], "SAME")
    if any(pads):
        x = tf.pad(x, t.pads(pads))
    result = tf.nn.avg_pool2d(x, a["kernel_shape"], a["strides"], "VALID")
    rows, columns = graph_analysis.window_counts(a, t.input_shape, t.shape)
    whole = a["kernel_shape"][0] * a["kernel_shape"][1]
    scale = [[[float(whole) / (row * column)] for column in columns] for row in rows]
    if all(item == [1.0] for row in scale for item in row):
        return result
    return result * tf.constant(scale, result.dtype)


def _mean(t, axes, keepdims=True):
    return tf.reduce_mean(t.input(0), [t.axis(axis) for axis in axes], keepdims=keepdims)


def _reduce_mean(t):
    value = _mean(t, t.attributes["axes"])
    if t.attributes["keepdims"]:
        return value
    value = tf.reshape(tf.transpose(value, t.layout.back(len(value.shape))), t.shape)
    return tf.transpose(value, t.layout.order(len(t.shape)))


def _gemm(t):
    a = t.attributes
    result = tf.matmul(t.input(0), t.input(1), bool(a["transA"]), bool(a["transB"]))
    t.run.macs += elements(result.shape) * t.input(0).shape[0 if a["transA"] else 1]
    if a["alpha"] != 1:
        result = result * a["alpha"]
    if t.input(2) is None:
        return result
    return tf.nn.bias_add(result, t.input(2) if a["beta"] == 1 else a["beta"] * t.input(2))


def _matmul(t):
    t.run.macs += elements(t.shape) * t.input_shape[-1]
    return t.in_graph_order(tf.matmul, tf.transpose)


def _batch_norm(t):
    """The fused operator; its variance for the running statistics is divided by n - 1."""
    a = t.attributes
    x, scale, bias, mean, variance = t.inputs
    shape = x.shape
    if len(shape) == 2:
        x = x[:, None, None, :]
    given = {} if t.training else {"mean": mean, "variance": variance}
    out = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=bias, mean=given.get("mean", []),
        variance=given.get("variance", []), epsilon=a["epsilon"], is_training=t.training)
    if t.training:
        for index, value in ((3, out.batch_mean), (4, out.batch_variance)):
            old = t.inputs[index]
            t.run.updates[t.names[index]] = old - (old - value) * (1.0 - a["momentum"])
    return tf.reshape(out.y, shape)


def _batch_norm_problem(case, node):
    if len(case.shape(node["inputs"][0])) not in (2, 4):
        return "only inputs of 2 or 4 dimensions"
    if case.stage != "forward" and graph_analysis.lone_value_per_channel(case, node):
        return "training needs more than one value per channel"
    return None


def _layer_norm(t):
    axes = [t.axis(axis) for axis in range(t.attributes["axis"], len(t.input_shape))]
    mean, variance = tf.nn.moments(t.input(0), axes, keepdims=True)
    scale, bias = (t.operand(place, tf.reshape, tf.transpose) for place in (1, 2))
    return tf.nn.batch_normalization(t.input(0), mean, variance, bias, scale, t.attributes["epsilon"])


def _rms_norm(t):
    axes = [t.axis(axis) for axis in range(t.attributes["axis"], len(t.input_shape))]
    factor = tf.math.rsqrt(tf.reduce_mean(tf.square(t.input(0)), axes, keepdims=True) + t.attributes["epsilon"])
    return t.input(0) * factor * t.operand(1, tf.reshape, tf.transpose)


def _group_norm(t):
    shape, axes, along = t.grouped()
    wide = tf.reshape(tf.cast(t.input(0), tf.float32), shape)
    mean, variance = tf.nn.moments(wide, axes, keepdims=True)
    wide = tf.nn.batch_normalization(wide, mean, variance, None, None, t.attributes["epsilon"])
    y = tf.cast(tf.reshape(wide, t.input(0).shape), t.input(0).dtype)
    return y * tf.reshape(t.input(1), along) + tf.reshape(t.input(2), along)


def _resize(t):
    a, x = t.attributes, t.input(0)
    if a["mode"] == "nearest":
        for axis in range(2):
            x = tf.repeat(x, a["scales"][axis], t.axis(2 + axis))
        return x
    return tf.compat.v1.image.resize_bilinear(
        x, t.shape[2:], a["coordinate_transformation_mode"] == "align_corners",
        half_pixel_centers=a["coordinate_transformation_mode"] == "half_pixel")


def _lrn(t):
    a = t.attributes
    x = tf.cast(t.input(0), tf.float32)
    return tf.cast(tf.nn.local_response_normalization(
        x, a["size"] // 2, a["bias"], a["alpha"] / a["size"], a["beta"]), t.input(0).dtype)


def _lrn_problem(case, node):
    if node["attributes"]["size"] % 2 == 0:
        return "the size must be odd"
    if len(case.shape(node["inputs"][0])) != 4:
        return "only inputs of 4 dimensions"
    return None


def _clip(t):
    x, low, high = t.input(0), t.attributes["min"], t.attributes["max"]
    if (low, high) == (0, 6):
        return tf.nn.relu6(x)
    if low == 0 and high >= LARGEST:
        return tf.nn.relu(x)
    return tf.clip_by_value(x, low, high)


def _elu(t):
    x, alpha = t.input(0), t.attributes["alpha"]
    if alpha == 1:
        return tf.nn.elu(x)
    return tf.where(x > 0, x, alpha * tf.math.expm1(tf.minimum(x, 0)))


def _slice(t):
    a = t.attributes
    slices = [slice(None)] * len(t.input_shape)
    slices[t.axis(a["axis"])] = slice(a["start"], a["end"], a["step"])
    return t.input(0)[tuple(slices)]


def _dropout(t):
    return tf.nn.dropout(t.input(0), t.attributes["ratio"]) if t.drops else t.input(0)


def _broadcast(function):
    return lambda t: function(t.operand(0, tf.reshape, tf.transpose),
                              t.operand(1, tf.reshape, tf.transpose))


def _recurrence(t, states, step):
    """The hidden states of a recurrence, or the last one: the products with the inputs for all times at once, then a
    loop over time. step: (products at a time, states, recurrent weights) -> states; the first state is the hidden one."""
    x, weight, recurrent, bias = t.inputs
    samples, times, features = x.shape
    gates, hidden = recurrent.shape
    sequence, reverse = t.attributes.get("sequence", False), t.attributes.get("direction", "forward") == "reverse"
    given = tf.matmul(tf.reshape(x, [-1, features]), weight, transpose_b=True)
    given = tf.transpose(tf.reshape(tf.nn.bias_add(given, bias[:gates]), [samples, times, gates]), [1, 0, 2])
    t.run.macs += samples * times * gates * (features + hidden)

    def at_time(at, every, *state):
        time = times - 1 - at if reverse else at
        state = step(given[time], state, recurrent)
        return (at + 1, every.write(time, state[0]) if sequence else every) + state
    every = (tf.TensorArray(given.dtype, times, element_shape=[samples, hidden]) if sequence
             else tf.zeros([], given.dtype))
    start = (tf.constant(0), every) + (tf.zeros([samples, hidden], given.dtype),) * states
    end = tf.while_loop(lambda at, *_: at < times, at_time, start, maximum_iterations=times)
    return tf.transpose(end[1].stack(), [1, 0, 2]) if sequence else end[2]


def _lstm_step(given, state, recurrent):
    i, o, f, c = tf.split(given + tf.matmul(state[0], recurrent, transpose_b=True), 4, 1)
    memory = tf.sigmoid(f) * state[1] + tf.sigmoid(i) * tf.tanh(c)
    return tf.sigmoid(o) * tf.tanh(memory), memory


def _rnn(t):
    activation = tf.tanh if t.attributes.get("activation", "Relu") == "Tanh" else tf.nn.relu
    return _recurrence(t, 1, lambda given, state, recurrent: (
        activation(given + tf.matmul(state[0], recurrent, transpose_b=True)),))


def _gru(t):
    """Gates z, r, h. With linear_before_reset, the last block of the bias is that of h's recurrent product."""
    linear, bias, hidden = t.attributes.get("linear_before_reset", False), t.inputs[3], t.inputs[2].shape[1]

    def step(given, state, recurrent):
        state, both, last = state[0], recurrent[:2 * hidden], recurrent[2 * hidden:]
        z, r = tf.split(tf.sigmoid(given[:, :2 * hidden] + tf.matmul(state, both, transpose_b=True)), 2, 1)
        if linear:
            fresh = r * (tf.matmul(state, last, transpose_b=True) + bias[3 * hidden:])
        else:
            fresh = tf.matmul(r * state, last, transpose_b=True)
        fresh = tf.tanh(given[:, 2 * hidden:] + fresh)
        return (fresh + z * (state - fresh),)
    return _recurrence(t, 1, step)


def _cross_entropy(t):
    """Mean over the valid labels. TensorFlow's function does not accept labels of -1."""
    logits, labels = tf.cast(t.input(0), tf.float32), t.input(1)
    if not t.case.ignores_labels():
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    labels = tf.reshape(labels, [-1])
    valid = tf.cast(labels != IGNORED, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), logits)
    return tf.reduce_sum(losses * valid) / tf.reduce_sum(valid)


def _plain(function):
    return lambda t: function(t.input(0))


def _reshape(t):
    return t.reshaped(tf.reshape, tf.transpose)


OPERATORS = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda t: _mean(t, (2, 3)),
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Relu": _plain(tf.nn.relu),
    "Tanh": _plain(tf.tanh),
    "Sigmoid": _plain(tf.sigmoid),
    "HardSigmoid": lambda t: tf.clip_by_value(
        t.attributes["alpha"] * t.input(0) + t.attributes["beta"], 0.0, 1.0),
    "Swish": lambda t: tf.nn.silu(t.input(0), t.attributes["alpha"]),
    "HardSwish": _plain(lambda x: x * tf.nn.relu6(x + 3.0) * (1 / 6.0)),
    "Clip": _clip,
    "Elu": _elu,
    "LeakyRelu": lambda t: tf.nn.leaky_relu(t.input(0), t.attributes["alpha"]),
    "Exp": _plain(tf.exp),
    "Log": _plain(tf.math.log),
    "Sqrt": _plain(tf.sqrt),
    "Gelu": lambda t: tf.nn.gelu(t.input(0), t.attributes["approximate"] == "tanh"),
    "Erf": _plain(tf.math.erf),
    "Pow": lambda t: tf.pow(t.input(0), t.attributes["exponent"]),
    "Neg": _plain(tf.negative),
    "Softmax": lambda t: tf.nn.softmax(t.input(0), t.axis(t.attributes["axis"])),
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _group_norm,
    "LRN": _lrn,
    "Flatten": _reshape,
    "Reshape": _reshape,
    "Identity": _plain(tf.identity),
    "Transpose": lambda t: tf.transpose(t.input(0), t.layout.permutation(t.attributes["perm"])),
    "Expand": lambda t: tf.broadcast_to(t.operand(0, tf.reshape, tf.transpose), t.layout.shape(t.shape)),
    "Concat": lambda t: tf.concat(t.inputs, t.axis(t.attributes["axis"])),
    "Slice": _slice,
    SPLIT: lambda t, sizes, axis: tf.split(t.input(0), sizes, axis),
    "Resize": _resize,
    "Pad": lambda t: tf.pad(t.input(0), t.pads(), constant_values=t.attributes["value"]),
    "ReduceMean": _reduce_mean,
    "Gather": lambda t: t.in_graph_order(tf.gather, tf.transpose),
    "Dropout": _dropout,
    "Add": _broadcast(tf.add),
    "Sub": _broadcast(tf.subtract),
    "Mul": _broadcast(tf.multiply),
    "Div": _broadcast(tf.divide),
    "LSTM": lambda t: _recurrence(t, 2, _lstm_step),
    "GRU": _gru,
    "RNN": _rnn,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    "HalfSumOfSquares": lambda t: tf.nn.l2_loss(tf.cast(t.input(0), tf.float32)),
}

# (case, node) -> why this node is not supported, or None.
REFUSALS = {
    "Conv": _conv_problem,
    "ConvTranspose": _conv_transpose_problem,
    "MaxPool": _max_pool_problem,
    "BatchNormalization": _batch_norm_problem,
    "Gather": graph_analysis.gather_problem,
    "LRN": _lrn_problem,
}
