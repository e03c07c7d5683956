"""The layer of Keras 3 for each operator of a graph, or a function of keras.ops if there is no layer. A row is
called with a graph_evaluation.Operation on symbolic tensors. Its run's context has `data_format`, `regularizer`
(returns a new one, or None) and `flattened`, {name of a value: channels, rows and columns} of images flattened
in our order. A row passes each weight of its layer to keep(t, index, variable, there, back); `there` converts a
bundle's array to the variable's, `back` does the reverse."""
import keras
import numpy
from keras import layers, ops

import graph_analysis
from graph_attention import ATTENTION
from graph_evaluation import SPLIT
from safetensors_io import elements

LARGEST = 3.4028234e38  # default bounds of Clip
GATES = "ifco"


# The inputs that are weights of the layer of an operator.
OWNED = {"Conv": (1, 2), "ConvTranspose": (1, 2), "Gemm": (1, 2), "BatchNormalization": (1, 2, 3, 4),
         "LayerNormalization": (1, 2), "GroupNormalization": (1, 2), "InstanceNormalization": (1, 2), "Gather": (0,),
         "LSTM": (1, 2, 3), "GRU": (1, 2, 3), "RNN": (1, 2, 3)}


class Weight(layers.Layer):
    """Owns a parameter that no layer of Keras can own, and returns it, whatever its input is."""

    def __init__(self, shape, regularizer):
        super().__init__()
        self.kept = self.add_weight(shape=shape, initializer="zeros", regularizer=regularizer, name="kept")

    def call(self, x):
        return ops.cast(self.kept, self.compute_dtype)


def loose_parameters(case):
    """Names of the parameters that need a Weight: several operators read them, or one that is no layer."""
    readers = [(name, node, place) for node in case.nodes for place, name in enumerate(node["inputs"]) if name]
    found = []
    for name in case.parameters:
        places = [(node, place) for read, node, place in readers if read == name]
        tables = [node for node, _ in places if node["op"] == "Gather" and len(case.shape(name)) != 2]
        if len(places) != 1 or tables or places[0][1] not in OWNED.get(places[0][0]["op"], ()):
            found.append(name)
    # A layer that cannot own one weight owns none.
    for node in case.nodes:
        weights = [name for name in node["inputs"][1:] if name in case.parameters]
        if node["op"] in ("Gemm", "LayerNormalization") and set(weights).intersection(found):
            found += [name for name in weights if name not in found]
    return found


def _loose_problem(case, node):
    """The reason if a layer cannot own its weights, else None."""
    loose = loose_parameters(case)
    for place in OWNED[node["op"]]:
        if place < len(node["inputs"]) and node["inputs"][place] in loose:
            return "another operator also reads its weights"
    return None


def keep(t, index, variable, there=lambda array: array, back=lambda array: array):
    """Records the variable that holds the parameter or state at an input of the node."""
    t.run.context["kept"][t.names[index]] = (variable, there, back)


def _regularizers(t, *words):
    return {word + "_regularizer": t.run.context["regularizer"]() for word in words}


def _format(t):
    return t.run.context["data_format"]


def _padded(t, pads, value):
    return ops.pad(t.input(0), t.pads(pads), constant_values=value)


def _window(t, pads, value):
    """(first input, Keras' padding word). The input is padded if neither word describes its padding."""
    if not any(pads):
        return t.input(0), "valid"
    if graph_analysis.same_padding(t.attributes, t.input_shape, t.shape):
        return t.input(0), "same"
    return _padded(t, pads, value), "valid"


def _conv(t):
    a = t.attributes
    x, padding = _window(t, a["pads"], 0.0)
    filters, (channels, group) = t.shape[1], (t.input_shape[1], a["group"])
    common = dict(strides=tuple(a["strides"]), padding=padding, data_format=_format(t),
                  dilation_rate=tuple(a["dilations"]), use_bias=len(t.names) > 2 and bool(t.names[2]))
    if common["use_bias"]:
        common.update(_regularizers(t, "bias"))
    if group > 1 and group == channels:
        times, size = filters // channels, a["kernel_shape"]
        layer = layers.DepthwiseConv2D(tuple(size), depth_multiplier=times,
                                       **dict(common, **_regularizers(t, "depthwise")))
        result = layer(x)
        keep(t, 1, layer.kernel, lambda w: w.reshape([channels, times] + size).transpose(2, 3, 0, 1),
             lambda w: w.transpose(2, 3, 0, 1).reshape([filters, 1] + size))
    else:
        layer = layers.Conv2D(filters, tuple(a["kernel_shape"]), groups=group,
                              **dict(common, **_regularizers(t, "kernel")))
        result = layer(x)
        keep(t, 1, layer.kernel, lambda w: w.transpose(2, 3, 1, 0), lambda w: w.transpose(3, 2, 0, 1))
    if common["use_bias"]:
        keep(t, 2, layer.bias)
    t.run.macs += elements(t.shape) * elements(layer.kernel.shape) // filters
    return result


def _conv_transpose(t):
    """Padding that Keras does not call "same" is cut off behind the layer."""
    a, (height, width) = t.attributes, t.input_shape[2:]
    same = (graph_analysis.same_padding(a, t.shape, t.input_shape)
            and t.shape[2:] == [height * a["strides"][0], width * a["strides"][1]])
    biased = len(t.names) > 2 and bool(t.names[2])
    layer = layers.Conv2DTranspose(
        t.shape[1], tuple(a["kernel_shape"]), tuple(a["strides"]), "same" if same else "valid",
        output_padding=None if same else tuple(a["output_padding"]), data_format=_format(t),
        dilation_rate=tuple(a["dilations"]), use_bias=biased, **_regularizers(t, "kernel", "bias"))
    result = layer(t.input(0))
    keep(t, 1, layer.kernel, lambda w: w.transpose(2, 3, 1, 0), lambda w: w.transpose(3, 2, 0, 1))
    if biased:
        keep(t, 2, layer.bias)
    t.run.macs += elements(t.input_shape) * elements(layer.kernel.shape[:3])
    return result if same else t.cut(result)


def _weights_problem(case, node):
    """The reason if a layer cannot own its weights, else None."""
    if any(case.values[name]["kind"] != "parameter" for name in node["inputs"][1:] if name):
        return "its weights are not parameters"
    return _loose_problem(case, node)


def _conv_transpose_problem(case, node):
    a = node["attributes"]
    if a["group"] > 1:
        return "groups are not supported"
    if a["dilations"] != [1, 1] and a["strides"] != [1, 1]:
        return "strides together with dilations are not supported"
    return _weights_problem(case, node)


def _conv_problem(case, node):
    a = node["attributes"]
    if _weights_problem(case, node):
        return _weights_problem(case, node)
    if a["strides"][0] != a["strides"][1] and a["group"] > 1:
        return "groups need equal strides"
    if a["dilations"] != [1, 1] and a["strides"] != [1, 1]:
        return "strides together with dilations are not supported"
    return None


def _max_pool(t):
    a = t.attributes
    x, padding = _window(t, t.pooled_pads(), float("-inf"))
    return layers.MaxPooling2D(tuple(a["kernel_shape"]), tuple(a["strides"]), padding,
                               data_format=_format(t))(x)


def _dilated(case, node):
    return "dilations are not supported" if node["attributes"].get("dilations", [1, 1]) != [1, 1] else None


def _average_pool(t):
    a = t.attributes
    def pool(padding):
        return layers.AveragePooling2D(tuple(a["kernel_shape"]), tuple(a["strides"]), padding,
                                       data_format=_format(t))
    if not a.get("count_include_pad", False) and graph_analysis.same_padding(
            a, t.input_shape, t.shape):
        return pool("same")(t.input(0))
    pads = t.pooled_pads()
    result = pool("valid")(_padded(t, pads, 0.0) if any(pads) else t.input(0))
    rows, columns = graph_analysis.window_counts(a, t.input_shape, t.shape)
    scale = elements(a["kernel_shape"]) / numpy.outer(rows, columns)
    if (scale == 1.0).all():
        return result
    return result * scale.reshape(t.layout.shape([1, 1] + t.shape[2:])).astype("float32")


def _loose(t):
    """Whether the node is a function: its weights are values, not those of a layer."""
    return any(t.input(place) is not None for place in OWNED[t.op])


def _gemm_function(t):
    a, x, w = t.attributes, t.input(0), t.input(1)
    t.run.macs += elements(t.shape) * t.input_shape[1]
    result = ops.matmul(x, ops.transpose(w) if a["transB"] else w)
    return result if t.input(2) is None else result + t.input(2)


def _gemm(t):
    if _loose(t):
        return _gemm_function(t)
    layer = layers.Dense(t.shape[1], use_bias=len(t.names) > 2 and bool(t.names[2]),
                         **_regularizers(t, "kernel", "bias"))
    result = layer(t.input(0))
    turn = (lambda w: w.T) if t.attributes["transB"] else (lambda w: w)
    there, back = turn, turn
    image = t.run.context["flattened"].get(t.names[0])
    if image:
        rows = numpy.arange(elements(image)).reshape(image).transpose(1, 2, 0).ravel()
        home = numpy.argsort(rows)
        there, back = (lambda w: turn(w)[rows]), (lambda w: turn(w[home]))
    keep(t, 1, layer.kernel, there, back)
    if layer.use_bias:
        keep(t, 2, layer.bias)
    t.run.macs += t.shape[0] * elements(layer.kernel.shape)
    return result


def _gemm_problem(case, node):
    a = node["attributes"]
    if a["transA"] or a["alpha"] != 1 or a["beta"] != 1:
        return "only x w + b is supported (no transA, alpha or beta)"
    weights = [name for name in node["inputs"][1:] if name]
    if any(case.values[name]["kind"] != "parameter" for name in weights):
        return "its weights are not parameters"
    return None


def _attention(t):
    """ops.dot_product_attention; its layout is N x T x H x d."""
    a = t.attributes
    t.run.macs += elements(t.shape[:3]) * t.case.shape(t.names[1])[a["key_order"][2]] * (t.input_shape[3] + t.shape[3])

    def call(q, k, v, mask=None):
        q, v = (ops.transpose(x, (0, 2, 1, 3)) for x in (q, v))
        k = ops.transpose(k, [a["key_order"][i] for i in (0, 2, 1, 3)])
        bias = None
        if mask is not None and not a["causal"]:
            bias = ops.reshape(ops.convert_to_tensor(mask), [1] * (4 - len(mask.shape)) + list(mask.shape))
        result = ops.dot_product_attention(q, k, v, bias, scale=a["scale"], is_causal=a["causal"])
        return ops.transpose(result, (0, 2, 1, 3))
    return t.in_graph_order(call, ops.transpose)


def _matmul(t):
    t.run.macs += elements(t.shape) * t.input_shape[-1]
    return t.in_graph_order(ops.matmul, ops.transpose)


def _batch_norm(t):
    a = t.attributes
    layer = layers.BatchNormalization(
        axis=t.axis(1), momentum=a["momentum"], epsilon=a["epsilon"], **_regularizers(t, "gamma", "beta"))
    result = layer(t.input(0))
    for index, variable in enumerate((layer.gamma, layer.beta, layer.moving_mean,
                                      layer.moving_variance), 1):
        keep(t, index, variable)
    return result


def _batch_norm_problem(case, node):
    kinds = [case.values[name]["kind"] for name in node["inputs"][1:]]
    if kinds != ["parameter"] * 2 + ["state"] * 2:
        return "scale and bias must be parameters, mean and variance states"
    return _loose_problem(case, node)


def _layer_norm(t):
    a, rank = t.attributes, len(t.input_shape)
    axes = [t.axis(axis) for axis in range(a["axis"], rank)]
    if _loose(t):
        scale, bias = (t.operand(place, ops.reshape, ops.transpose) for place in (1, 2))
        mean, variance = ops.moments(t.input(0), axes, keepdims=True)
        return (t.input(0) - mean) * ops.rsqrt(variance + a["epsilon"]) * scale + bias
    layer = layers.LayerNormalization(axis=axes, epsilon=a["epsilon"], **_regularizers(t, "gamma", "beta"))
    result = layer(t.input(0))
    for index, variable in ((1, layer.gamma), (2, layer.beta)):
        keep(t, index, variable)
    return result


def _layer_norm_problem(case, node):
    names = node["inputs"][1:]
    if any(case.values[name]["kind"] != "parameter" for name in names):
        return "its weights are not parameters"
    return "only up to three dimensions" if len(case.shape(node["inputs"][0])) > 3 else None


def _rms_norm(t):
    """The function of keras.layers.RMSNormalization, which has no regularizer."""
    axes = [t.axis(axis) for axis in range(t.attributes["axis"], len(t.input_shape))]
    return ops.rms_normalization(t.input(0), t.input(1), axes, t.attributes["epsilon"])


def _rms_norm_problem(case, node):
    return "only up to three dimensions" if len(case.shape(node["inputs"][0])) > 3 else None


def _group_norm(t):
    a = t.attributes
    layer = layers.GroupNormalization(a.get("num_groups", -1), t.axis(1), a["epsilon"],
                                      **_regularizers(t, "gamma", "beta"))
    result = layer(t.input(0))
    for index, variable in ((1, layer.gamma), (2, layer.beta)):
        keep(t, index, variable)
    return result


def _resize(t):
    a = t.attributes
    return layers.UpSampling2D(tuple(a["scales"]), _format(t), "bilinear" if a["mode"] == "linear" else "nearest")(t.input(0))


def _resize_problem(case, node):
    aligned = node["attributes"]["coordinate_transformation_mode"] == "align_corners"
    return "Keras does not align corners" if aligned else None


def _lrn(t):
    """Keras has no such layer: sums the squares of neighbouring channels."""
    a, x = t.attributes, t.input(0)
    channel, count = t.axis(1), t.input_shape[1]
    before = (a["size"] - 1) // 2
    pads = [(0, 0)] * len(t.input_shape)
    pads[channel] = (before, a["size"] - 1 - before)
    squares = ops.pad(ops.square(x), pads)
    sums = None
    for start in range(a["size"]):
        slices = [slice(None)] * len(pads)
        slices[channel] = slice(start, start + count)
        part = squares[tuple(slices)]
        sums = part if sums is None else sums + part
    return x * ops.power(a["bias"] + a["alpha"] / a["size"] * sums, -a["beta"])


class LinearGru(layers.GRUCell):
    """A GRU's cell whose second bias is that of the gate h alone; Keras' own trains three gates' twice."""

    def build(self, input_shape):
        self.use_bias = False
        super().build(input_shape)
        self.use_bias = True
        self.both = self.add_weight(shape=(4 * self.units,), name="both", initializer="zeros",
                                    regularizer=self.bias_regularizer)

    def call(self, inputs, states, training=False):
        both, size = ops.cast(self.both, self.compute_dtype), self.units
        second = ops.concatenate([ops.zeros((2 * size,), both.dtype), both[3 * size:]])
        self.bias = ops.stack([both[:3 * size], second])
        return super().call(inputs, states, training)


def _cell(t):
    """Keras' layer for a node."""
    op, a, size = t.op, t.attributes, t.shape[-1]
    how = dict(_regularizers(t, "kernel", "recurrent", "bias"))
    steps = dict(return_sequences=a.get("sequence", False), go_backwards=a.get("direction", "forward") == "reverse")
    if op == "LSTM":
        return layers.LSTM(size, **steps, **how)
    if op == "RNN":
        return layers.SimpleRNN(size, activation=a.get("activation", "Relu").lower(), **steps, **how)
    if a.get("linear_before_reset", False):
        return layers.RNN(LinearGru(size, **how), **steps)
    return layers.GRU(size, reset_after=False, **steps, **how)


def _recurrent(t):
    layer = _cell(t)
    result = layer(t.input(0))
    if layer.return_sequences and layer.go_backwards:
        result = ops.flip(result, 1)  # it comes in the order of the steps

    def blocks(array, letters):
        """Reorders the rows of an LSTM's gates."""
        if t.op != "LSTM":
            return array
        parts = numpy.split(array, 4)
        return numpy.concatenate([parts[i] for i in letters])
    order, home = graph_analysis.gate_order(GATES), graph_analysis.gate_order_back(GATES)
    bias = layer.cell.both if isinstance(layer.cell, LinearGru) else layer.cell.bias
    for index, variable in enumerate((layer.cell.kernel, layer.cell.recurrent_kernel, bias), 1):
        keep(t, index, variable, lambda w: blocks(w, order).T, lambda w: blocks(w.T, home))
    steps = t.input_shape[0] * t.input_shape[1]
    t.run.macs += steps * (elements(layer.cell.kernel.shape) + elements(layer.cell.recurrent_kernel.shape))
    return result


def _bound(t):
    x, low, high = t.input(0), t.attributes["min"], t.attributes["max"]
    if low == 0 and high >= LARGEST:
        return layers.ReLU()(x)
    if (low, high) == (0, 6):
        return layers.ReLU(6.0)(x)
    return ops.clip(x, low, high)


def _slice(t):
    a = t.attributes
    slices = [slice(None)] * len(t.input_shape)
    slices[t.axis(a["axis"])] = slice(a["start"], a["end"], a["step"])
    return t.input(0)[tuple(slices)]


def _mean(t, axes, kept):
    value = ops.mean(t.input(0), [t.axis(axis) for axis in axes], keepdims=True)
    if kept:
        return value
    value = ops.reshape(ops.transpose(value, t.layout.back(len(value.shape))), t.shape)
    return ops.transpose(value, t.layout.order(len(t.shape)))


def _gather(t):
    """The layer Embedding if it can own the table, as users write it; else the function."""
    if not _loose(t):
        layer = layers.Embedding(t.input_shape[0], t.input_shape[1], **_regularizers(t, "embeddings"))
        result = layer(t.input(1))
        keep(t, 0, layer.embeddings)
        return result
    return t.in_graph_order(lambda table, indices: ops.take(table, indices, axis=0), ops.transpose)


def _dropout(t):
    return layers.Dropout(t.attributes["ratio"])(t.input(0)) if t.drops else t.input(0)


def _broadcast(function):
    return lambda t: function(t.operand(0, ops.reshape, ops.transpose),
                              t.operand(1, ops.reshape, ops.transpose))


def _plain(function):
    return lambda t: function(t.input(0))


def _activation(word):
    return lambda t: layers.Activation(word)(t.input(0))


def _reshape(t):
    return t.reshaped(ops.reshape, ops.transpose)


def _only_reader(t, name):
    """The only node that reads a value, or None."""
    readers = [node for node in t.case.nodes for read in node["inputs"] if read == name]
    return readers[0] if len(readers) == 1 else None


def _flatten(t):
    """Keeps our order if a dense layer follows, whose rows are then rearranged."""
    name = next(node["outputs"][0] for node in t.case.nodes if node["name"] == t.name)
    reader = _only_reader(t, name)
    if (t.attributes["axis"] == 1 and t.layout.moves(t.input_shape) and reader
            and reader["op"] == "Gemm" and reader["inputs"][0] == name):
        t.run.context["flattened"][name] = t.input_shape[1:]
        return layers.Flatten()(t.input(0))
    return _reshape(t)


def _relu(t):
    """Becomes the activation of the preceding layer, as users write it, if nothing else reads that layer's
    result. The layer must produce this very value: after an Identity or an inactive Dropout the same tensor has
    other names."""
    x = t.input(0)
    layer = getattr(getattr(x, "_keras_history", None), "operation", None)
    maker = next((node["op"] for node in t.case.nodes if t.names[0] in node["outputs"]), None)
    if (maker in ("Conv", "Gemm") and isinstance(layer, (layers.Dense, layers.Conv2D)) and _only_reader(t, t.names[0])
            and layer.activation is keras.activations.linear and t.names[0] != t.case.graph["logits"]):
        layer.activation = keras.activations.relu
        return x
    return layers.Activation("relu")(x)


OPERATORS = {
    ATTENTION: _attention,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda t: layers.GlobalAveragePooling2D(
        data_format=_format(t), keepdims=True)(t.input(0)),
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Relu": _relu,
    "Tanh": _activation("tanh"),
    "Sigmoid": _activation("sigmoid"),
    "HardSigmoid": lambda t: ops.clip(
        t.attributes["alpha"] * t.input(0) + t.attributes["beta"], 0.0, 1.0),
    "Swish": lambda t: t.input(0) * ops.sigmoid(t.attributes["alpha"] * t.input(0)),
    "HardSwish": _plain(ops.hard_silu),
    "Clip": _bound,
    "Elu": lambda t: layers.ELU(t.attributes["alpha"])(t.input(0)),
    "LeakyRelu": lambda t: layers.LeakyReLU(t.attributes["alpha"])(t.input(0)),
    "Exp": _plain(ops.exp),
    "Log": _plain(ops.log),
    "Sqrt": _plain(ops.sqrt),
    "Gelu": lambda t: ops.gelu(t.input(0), approximate=t.attributes["approximate"] == "tanh"),
    "Erf": _plain(ops.erf),
    "Pow": lambda t: ops.power(t.input(0), t.attributes["exponent"]),
    "Neg": _plain(ops.negative),
    "Softmax": lambda t: layers.Softmax(t.axis(t.attributes["axis"]))(t.input(0)),
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _group_norm,
    "LRN": _lrn,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Identity": _plain(lambda x: x),
    "Transpose": lambda t: ops.transpose(t.input(0), t.layout.permutation(t.attributes["perm"])),
    "Expand": lambda t: ops.broadcast_to(t.operand(0, ops.reshape, ops.transpose), t.layout.shape(t.shape)),
    "Concat": lambda t: layers.Concatenate(t.axis(t.attributes["axis"]))(t.inputs),
    "Slice": _slice,
    SPLIT: lambda t, sizes, axis: ops.split(
        t.input(0), [sum(sizes[:i]) for i in range(1, len(sizes))], axis),
    "Resize": _resize,
    "Pad": lambda t: ops.pad(t.input(0), t.pads(), constant_values=t.attributes["value"]),
    "ReduceMean": lambda t: _mean(t, t.attributes["axes"], t.attributes["keepdims"]),
    "Gather": _gather,
    "Dropout": _dropout,
    "Add": _broadcast(ops.add),
    "Sub": _broadcast(ops.subtract),
    "Mul": _broadcast(ops.multiply),
    "Div": _broadcast(ops.divide),
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "SoftmaxCrossEntropyLoss": None,  # passed to compile()
    "HalfSumOfSquares": None,
}

# (case, node) -> why this node is not supported, or None.
REFUSALS = {
    "Conv": _conv_problem,
    "ConvTranspose": _conv_transpose_problem,
    "MaxPool": _dilated,
    "Gemm": _gemm_problem,
    "BatchNormalization": _batch_norm_problem,
    "Gather": graph_analysis.gather_problem,
    "LayerNormalization": _layer_norm_problem,
    "RMSNormalization": _rms_norm_problem,
    "GroupNormalization": _weights_problem,
    "InstanceNormalization": _weights_problem,
    "Resize": _resize_problem,
    "LSTM": graph_analysis.owner_problem,
    "GRU": graph_analysis.owner_problem,
    "RNN": graph_analysis.owner_problem,
}

