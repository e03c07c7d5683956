"""The layer of Keras 2 for each operator of a graph, and the reasons for those that are not supported."""
import numpy
from keras import backend as K
from keras import layers, regularizers

import graph_analysis
from adapters import theano_setup
from adapters.keras2_backends import power
from errors import WorkerError

# Operators whose result is never negative, so that padding it with 0 does not change a MaxPool.
KEEPS_SIGN = ("MaxPool", "AveragePool", "GlobalAveragePool", "Dropout", "Concat", "LRN", "Flatten",
              "Reshape", "Identity", "Slice", "Transpose")
ACTIVATIONS = {"Relu": "relu", "Tanh": "tanh", "Sigmoid": "sigmoid"}
# Operators that may be between a Flatten and the dense layer that reads it.
ELEMENTWISE = tuple(ACTIVATIONS) + ("Dropout", "Identity", "Elu", "LeakyRelu")


def _never_negative(case, name):
    """Whether a value is never negative, whatever the weights are."""
    makers = [node for node in case.nodes if node["outputs"][0] == name]
    if not makers:
        return False
    if makers[0]["op"] in ("Relu", "Sigmoid", "Softmax", "HardSigmoid"):
        return True
    return makers[0]["op"] in KEEPS_SIGN and all(
        _never_negative(case, other) for other in makers[0]["inputs"])


def _same(attributes):
    """Whether an operator's padding is `same` in all backends: stride 1 and half a window."""
    kernel = attributes["kernel_shape"]
    return (attributes["strides"] == [1, 1] and all(size % 2 for size in kernel)
            and attributes["pads"] == [size // 2 for size in kernel] * 2)


def _pads_itself(case, node):
    """Whether a backend pads for a kernel itself; CNTK only if the input is not smaller than the kernel."""
    sizes = zip(case.shape(node["inputs"][0])[2:], node["attributes"]["kernel_shape"])
    return K.backend() != "cntk" or all(size >= kernel for size, kernel in sizes)


def _pool_pads(case, node):
    """[top, left, bottom, right]: the padding that a pool's windows reach."""
    a = node["attributes"]
    behind = graph_analysis.window_reach(a, case.shape(node["inputs"][0]),
                                         case.shape(node["outputs"][0]))
    return a["pads"][:2] + [max(0, n) for n in behind]


def flattened(case):
    """{value: [C, H, W]} for flattened images, whose order of elements depends on the layout."""
    found = {}
    for node in case.nodes:
        source, out = node["inputs"][0], node["outputs"][0]
        if node["op"] in ("Flatten", "Reshape") and len(case.shape(source)) == 4:
            if case.shape(source)[2:] != [1, 1]:
                found[out] = case.shape(source)[1:]
        elif node["op"] in ELEMENTWISE and source in found:
            found[out] = found[source]
    return found


# (case, node) -> why this node is not supported, or None; `problems` has more reasons.
REFUSALS = {
    "LSTM": graph_analysis.states_problem,
    "RNN": graph_analysis.states_problem,
    "MaxPool": graph_analysis.dilated_problem,
    "Gemm": graph_analysis.dense_problem,
    "BatchNormalization": graph_analysis.statistics_problem,
    "Add": graph_analysis.shapes_problem,
}


def problems(case, channels_last):
    """List of str: parts of a graph, besides its operators, that Keras does not support."""
    reasons, flat = [], flattened(case)
    for node in case.nodes:
        why = _problem(case, node)
        if not why and channels_last and node["op"] not in ELEMENTWISE + ("Gemm", "Flatten", "Reshape"):
            if any(name in flat for name in node["inputs"]):
                why = "on TensorFlow the elements after its Flatten have another order"
        if why:
            reasons.append("%s %s: %s" % (node["op"], node["name"], why))
    return reasons


def _problem(case, node):
    a, op = node["attributes"], node["op"]
    rank = len(case.shape(node["inputs"][0]))
    if op == "Conv" and a["group"] != 1:
        return "groups are not supported"
    if op == "BatchNormalization" and K.backend() == "theano":
        return theano_setup.epsilon_problem(node)
    if op == "Conv" and a["dilations"] != [1, 1] and a["strides"] != [1, 1]:
        return "strides together with dilations are not supported"
    if op == "MaxPool":
        return _max_pool_problem(case, node)
    if op == "AveragePool" and any(_pool_pads(case, node)):
        return "padding is not supported"
    if op in ("Flatten", "Reshape") and len(case.shape(node["outputs"][0])) != 2:
        return "the result must be batch x features"
    if op == "Concat" and (rank not in (2, 4) or a["axis"] != 1):
        return "only along the channels"
    if op == "GlobalAveragePool" and any(
            other["op"] not in ("Flatten", "Reshape") for other in case.nodes
            if node["outputs"][0] in other["inputs"]):
        return "a Flatten must follow"
    if op in ("Conv", "Gemm", "BatchNormalization", "LSTM", "RNN"):
        return _weights_problem(case, node)
    return None


def _weights_problem(case, node):
    for name in filter(None, node["inputs"][1:]):
        if case.values[name]["kind"] not in ("parameter", "state"):
            return "its weights are computed"
        if sum(other["inputs"].count(name) for other in case.nodes) != 1:
            return "another operator also reads its weights"
    return None


def _max_pool_problem(case, node):
    a = node["attributes"]
    if any(_pool_pads(case, node)) and not _same(a) and not _never_negative(case, node["inputs"][0]):
        return "its input may be negative, and Keras pads with zeros"
    return None


class Builder(object):
    """Makes layers. variables: {parameter or state: variable of Keras}; layouts as in NumpyAdapter; macs (int):
    of one sample, counted on the layers' weights and output shapes."""

    def __init__(self, case, channels_last):
        self.case, self.channels_last = case, channels_last
        self.flat = flattened(case) if channels_last else {}
        self.variables, self.layouts, self.macs = {}, {}, 0
        self.training = case.stage != "forward"
        penalised = case.stage == "train" and case.recipe["optimiser"] != "adamw"
        decay = case.recipe["weight_decay"] if penalised else 0
        self.decay = regularizers.l2(decay / 2) if decay else None
        shape = case.shape(case.inputs[0])
        self.input = layers.Input(shape=self.turned(shape)[1:])
        self.axis = -1 if channels_last else 1

    def turned(self, shape):
        """A shape in this backend's order."""
        if len(shape) == 4 and self.channels_last:
            return [shape[0], shape[2], shape[3], shape[1]]
        return shape

    def logits(self):
        """Builds the layers; returns Keras' tensor of the logits."""
        case = self.case
        made = {case.inputs[0]: self.input}
        for node in case.nodes_for([case.graph["logits"]]):
            value = OPERATORS[node["op"]](self, node, [made.get(name) for name in node["inputs"]])
            expected = self.turned(case.shape(node["outputs"][0]))[1:]
            got = [size for size in K.int_shape(value)[1:]]
            if got != expected and node["op"] != "GlobalAveragePool":
                raise WorkerError("unsupported", "%s: Keras' result has the shape %s, but the graph says %s"
                                  % (node["name"], got, expected))
            made[node["outputs"][0]] = value
        return made[case.graph["logits"]]

    def own(self, node, *variables):
        """Declares that a layer's variables are the node's weights, in this order; None is skipped."""
        names = [name for name in node["inputs"][1:] if name]
        self.variables.update(zip(names, [v for v in variables if v is not None]))


def _conv(b, node, inputs):
    a = node["attributes"]
    x, padding = inputs[0], "valid"
    if a["dilations"] == [1, 1] and _same(a) and _pads_itself(b.case, node):
        padding = "same"
    elif any(a["pads"]):
        x = _zeros(x, a["pads"])
    shape = b.case.shape(node["inputs"][1])
    bias = len(node["inputs"]) > 2
    layer = layers.Conv2D(shape[0], tuple(a["kernel_shape"]), strides=tuple(a["strides"]),
                          padding=padding, dilation_rate=tuple(a["dilations"]), use_bias=bias,
                          kernel_regularizer=b.decay, bias_regularizer=b.decay if bias else None)
    y = layer(x)
    b.own(node, layer.kernel, layer.bias if bias else None)
    if K.backend() != "mxnet":  # Keras-MXNet stores them like a bundle
        b.layouts[node["inputs"][1]] = _flipped if K.backend() == "theano" else _kernel
    out = K.int_shape(y)
    b.macs += int(numpy.prod(K.int_shape(layer.kernel)) * numpy.prod(out[1:]) // shape[0])
    return y


def _kernel(w):
    """Layout of a kernel: height x width x in x out."""
    return w.transpose(2, 3, 1, 0)


def _flipped(w):
    """The same for Theano, whose convolution reverses kernels."""
    return _kernel(w[:, :, ::-1, ::-1])


def _zeros(x, pads):
    top, left, bottom, right = pads
    return layers.ZeroPadding2D(((top, bottom), (left, right)))(x)


def _max_pool(b, node, inputs):
    a = node["attributes"]
    x, padding, pads = inputs[0], "valid", _pool_pads(b.case, node)
    if _same(a) and a["kernel_shape"] == [3, 3]:
        padding = "same"
    elif any(pads):
        x = _zeros(x, pads)
    return layers.MaxPooling2D(tuple(a["kernel_shape"]), tuple(a["strides"]), padding)(x)


def _average_pool(b, node, inputs):
    a = node["attributes"]
    return layers.AveragePooling2D(tuple(a["kernel_shape"]), tuple(a["strides"]))(inputs[0])


def _gemm(b, node, inputs):
    shape = b.case.shape(node["inputs"][1])
    bias = len(node["inputs"]) > 2
    layer = layers.Dense(shape[0], use_bias=bias, kernel_regularizer=b.decay,
                         bias_regularizer=b.decay if bias else None)
    y = layer(inputs[0])
    b.own(node, layer.kernel, layer.bias if bias else None)
    b.macs += int(numpy.prod(K.int_shape(layer.kernel)))
    picture = b.flat.get(node["inputs"][0])

    def layout(w):
        if picture:
            w = w.reshape([len(w)] + picture).transpose(0, 2, 3, 1).reshape(len(w), -1)
        return w.T
    b.layouts[node["inputs"][1]] = layout
    return y


def _batch_norm(b, node, inputs):
    a = node["attributes"]
    # A Python number: a numpy number makes Keras' running variance float64.
    epsilon = float(theano_setup.epsilon(a["epsilon"])) if K.backend() == "theano" else a["epsilon"]
    layer = layers.BatchNormalization(axis=b.axis, momentum=a["momentum"], epsilon=epsilon,
                                      beta_regularizer=b.decay, gamma_regularizer=b.decay)
    y = layer(inputs[0])
    b.own(node, layer.gamma, layer.beta, layer.moving_mean, layer.moving_variance)
    return y


def _lrn(b, node, inputs):
    """Keras has no such layer: sums over channels are convolutions with ones, which every backend has."""
    a = node["attributes"]
    channels = b.case.shape(node["inputs"][0])[1]
    front = (a["size"] - 1) // 2
    band = numpy.zeros((1, 1, channels, channels), numpy.float32)
    for out in range(channels):
        band[0, 0, max(0, out - front):out - front + a["size"], out] = a["alpha"] / a["size"]
    kernel = K.variable(band.transpose(3, 2, 0, 1) if K.backend() == "mxnet" else band)

    def normalised(x):
        return x / power(K.backend(), a["bias"] + K.conv2d(K.square(x), kernel), a["beta"])
    return layers.Lambda(normalised, output_shape=K.int_shape(inputs[0])[1:])(inputs[0])


def _flatten(b, node, inputs):
    return inputs[0] if K.ndim(inputs[0]) == 2 else layers.Flatten("channels_last")(inputs[0])


def _dropout(b, node, inputs):
    if not graph_analysis.drops(b.case):
        return inputs[0]
    return layers.Dropout(node["attributes"]["ratio"])(inputs[0])


def _recurrent(b, node, inputs):
    size = b.case.shape(node["outputs"][0])[1]
    # MXNet's loop over time adds the first gate's bias to all gates, and loses the weights that were set.
    how = {"kernel_regularizer": b.decay, "recurrent_regularizer": b.decay,
           "bias_regularizer": b.decay, "unroll": K.backend() == "mxnet"}
    if node["op"] == "LSTM":
        # On CNTK Keras returns the last state of an LSTM as its output, which is the cell.
        apart = K.backend() == "cntk"
        layer = layers.LSTM(size, recurrent_activation="sigmoid", return_state=apart, **how)
        y = layer(inputs[0])[1] if apart else layer(inputs[0])
    else:
        layer = layers.SimpleRNN(size, activation="relu", **how)
        y = layer(inputs[0])
    cell = layer.cell
    b.own(node, cell.kernel, cell.recurrent_kernel, cell.bias)
    time = b.case.shape(node["inputs"][0])[1]
    b.macs += int(time * sum(numpy.prod(K.int_shape(w)) for w in (cell.kernel,
                                                                  cell.recurrent_kernel)))
    order = graph_analysis.gate_order("ifco")

    def layout(w):
        if node["op"] == "LSTM":
            w = w.reshape((4, size) + w.shape[1:])[order].reshape(w.shape)
        return w.T
    b.layouts.update((name, layout) for name in node["inputs"][1:])
    return y


OPERATORS = {
    "Conv": _conv,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda b, node, inputs: layers.GlobalAveragePooling2D()(inputs[0]),
    "Gemm": _gemm,
    "Elu": lambda b, node, inputs: layers.ELU(node["attributes"]["alpha"])(inputs[0]),
    "LeakyRelu": lambda b, node, inputs: layers.LeakyReLU(node["attributes"]["alpha"])(inputs[0]),
    "BatchNormalization": _batch_norm,
    "LRN": _lrn,
    "Flatten": _flatten,
    "Reshape": _flatten,
    "Identity": lambda b, node, inputs: inputs[0],
    "Concat": lambda b, node, inputs: layers.Concatenate(axis=b.axis)(inputs),
    "Dropout": _dropout,
    "Add": lambda b, node, inputs: layers.Add()(inputs),
    "Mul": lambda b, node, inputs: layers.Multiply()(inputs),
    "LSTM": _recurrent,
    "RNN": _recurrent,
    "SoftmaxCrossEntropyLoss": None,  # it is the model's loss
}
for _op, _word in ACTIVATIONS.items():
    OPERATORS[_op] = lambda b, node, inputs, word=_word: layers.Activation(word)(inputs[0])
