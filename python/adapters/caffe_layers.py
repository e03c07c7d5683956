"""Caffe's layers for each operator of a graph, and the reasons for those that are not supported."""
from caffe.proto import caffe_pb2

import graph_analysis
from adapters import caffe_normalisation

POOL_METHODS = {"MaxPool": caffe_pb2.PoolingParameter.MAX,
                "AveragePool": caffe_pb2.PoolingParameter.AVE}
# ReLU and dropout overwrite the results of these layers, as in Caffe's own nets: no gradient reads them.
OVERWRITABLE = ("Conv", "Gemm", "BatchNormalization", "Add", "Concat", "Relu", "MaxPool")
ROUNDS = "round_mode" in caffe_pb2.PoolingParameter.DESCRIPTOR.fields_by_name


class Net(object):
    """net: caffe_pb2.NetParameter; places: {parameter or state: (layer, index of its blob)}; scales: {state:
    factor of its blob}; states: {state: its array, if no blob has it}; statistics:
    [caffe_normalisation.Statistics] that update these; fixed: [(layer, index, value)] for other blobs; tops:
    {value: its blob}; loss: name of the loss's blob or None."""

    def __init__(self, case):
        self.case, self.net = case, caffe_pb2.NetParameter(name=case.graph["name"])
        self.training = case.stage != "forward"
        self.places, self.scales, self.loss, self.fixed = {}, {}, None, []
        self.states, self.statistics = {}, []
        self.sequences = any(node["op"] == "LSTM" for node in case.nodes)
        self.input("data", self.arranged_shape(case.shape(case.inputs[0])))
        self.tops = {case.inputs[0]: "data"}
        if self.training:
            self.input("label", [case.recipe["batch"]])
            self.tops.update((name, "label") for name in case.labels)
        nodes = case.nodes_for(graph_analysis.wanted(case))
        self.overwritable = set()
        for node in nodes:
            out = node["outputs"][0]
            readers = sum(other["inputs"].count(out) for other in nodes)
            if node["op"] in OVERWRITABLE and readers == 1 and out != graph["logits"]:
                self.overwritable.add(out)
        for node in nodes:
            OPERATORS[node["op"]](self, node, node["attributes"])

    def input(self, name, shape):
        layer = self.net.layer.add(name=name, type="Input", top=[name])
        layer.input_param.shape.add(dim=shape)

    def arranged_shape(self, shape):
        return [shape[1], shape[0], shape[2]] if self.sequences else shape

    def arranged(self, x):
        """A batch in the net's layout: time first for recurrent layers."""
        return x.transpose(1, 0, 2) if self.sequences else x

    def layer(self, kind, node, name=None, bottom=None, top=None):
        """Appends a layer; by default its bottom is the node's first input and its top the node's output."""
        layer = self.net.layer.add(name=name or node["name"], type=kind)
        layer.bottom.extend(bottom or [self.tops[node["inputs"][0]]])
        layer.top.append(top or node["outputs"][0])
        self.tops[node["outputs"][0]] = layer.top[0]
        return layer

    def own(self, layer, node, *inputs):
        """Declares that the layer's blobs are these inputs of the node, in this order."""
        for index, place in enumerate(inputs):
            self.places[node["inputs"][place]] = (layer.name, index)

    def inplace(self, node):
        """The blob to overwrite, or None if another layer needs it."""
        name = node["inputs"][0]
        return self.tops[name] if name in self.overwritable else None

    def put(self, net, x, labels):
        """Copies a batch into the net."""
        net.blobs["data"].data[...] = x
        if self.training:
            net.blobs["label"].data[...] = labels

    def finish(self, net):
        """Sets the blobs that are not parameters of the graph."""
        for layer, index, value in self.fixed:
            net.params[layer][index].data[...] = value
        for statistics in self.statistics:
            statistics.find(net)
        if self.sequences:
            cont = net.blobs["cont"].data
            cont[...] = 1
            cont[0] = 0

    def macs(self, net):
        """Multiply-accumulates (int) of a forward batch, counted on Caffe's blobs."""
        total = 0
        helpers = {layer for layer, _, _ in self.fixed}
        for layer in self.net.layer:
            if layer.name in helpers:
                continue
            if layer.type == "Convolution":
                weight = net.params[layer.name][0].data
                total += net.blobs[layer.top[0]].data.size * (weight.size // weight.shape[0])
            elif layer.type == "InnerProduct":
                weight = net.params[layer.name][0].data
                total += net.blobs[layer.top[0]].data.size * weight.shape[1]
            elif layer.type == "LSTM":
                steps = net.blobs[layer.bottom[0]].data.shape
                total += steps[0] * steps[1] * (net.params[layer.name][0].data.size
                                                + net.params[layer.name][2].data.size)
        return int(total)

    def notes(self):
        notes = [graph_analysis.variance_note(self.case)]
        if self.statistics:
            notes.append("batch normalisation composed of %d layers, because this build's "
                         "BatchNorm computes no statistics of a batch" % caffe_normalisation.LAYERS)
        return "; ".join(note for note in notes if note)


def _conv(net, node, a):
    layer = net.layer("Convolution", node)
    p = layer.convolution_param
    p.num_output, p.group = net.case.shape(node["inputs"][1])[0], a["group"]
    p.kernel_h, p.kernel_w = a["kernel_shape"]
    p.stride_h, p.stride_w = a["strides"]
    p.pad_h, p.pad_w = a["pads"][:2]
    if a["dilations"] != [1, 1]:
        p.dilation.extend(a["dilations"])
    p.bias_term = len(node["inputs"]) > 2
    net.own(layer, node, *range(1, len(node["inputs"])))


def _conv_problem(case, node):
    return None if graph_analysis.even(node["attributes"]["pads"]) else (
        "the padding must be the same on both sides")


def _counts(case, node, up):
    """[rows, columns]: Caffe's number of windows, rounded up or down."""
    a, size = node["attributes"], case.shape(node["inputs"][0])[2:]
    found = []
    for i in range(2):
        pad, stride = a["pads"][i], a["strides"][i]
        spare = size[i] + 2 * pad - a["kernel_shape"][i]
        count = (-(-spare // stride) if up else spare // stride) + 1
        if pad and (count - 1) * stride >= size[i] + pad:
            count -= 1
        found.append(count)
    return found


def _pool(net, node, a):
    """Caffe rounds up; if the graph has fewer windows, the last ones are sliced off."""
    wanted = net.case.shape(node["outputs"][0])[2:]
    up, down = _counts(net.case, node, True), _counts(net.case, node, False)
    rounds = ROUNDS and up != wanted and down == wanted
    exact = up == wanted or rounds
    layer = net.layer("Pooling", node, top=None if exact else node["name"] + ".all")
    p = layer.pooling_param
    p.pool = POOL_METHODS[node["op"]]
    p.kernel_h, p.kernel_w = a["kernel_shape"]
    p.stride_h, p.stride_w = a["strides"]
    p.pad_h, p.pad_w = a["pads"][:2]
    if rounds:
        p.round_mode = caffe_pb2.PoolingParameter.FLOOR
    for axis in range(2):
        if not exact and up[axis] > wanted[axis]:
            _first(net, node, 2 + axis, wanted[axis])


def _first(net, node, axis, count):
    """Keeps the first `count` entries of a node's blob along an axis."""
    name = "%s.%d" % (node["name"], axis)
    layer = net.layer("Slice", node, name=name, bottom=[net.tops[node["outputs"][0]]],
                      top=name + ".first")
    layer.top.append(name + ".rest")
    layer.slice_param.axis = axis
    layer.slice_param.slice_point.append(count)
    net.net.layer.add(name=name + ".silence", type="Silence", bottom=[name + ".rest"])


def _pool_problem(case, node):
    a = node["attributes"]
    wanted, up = case.shape(node["outputs"][0])[2:], _counts(case, node, True)
    if a.get("dilations", [1, 1]) != [1, 1]:
        return "dilations are not supported"
    if any(p >= k for p, k in zip(a["pads"], a["kernel_shape"])):
        return "the padding must be smaller than the window"
    if any(have < need for have, need in zip(up, wanted)):
        return "the bottom or right padding is too large"
    if node["op"] == "AveragePool" and (any(a["pads"]) and not a["count_include_pad"]):
        return "padding needs count_include_pad"
    if node["op"] == "AveragePool" and (a["ceil_mode"] or not graph_analysis.even(a["pads"])):
        return "Caffe counts this padding differently"
    return None


def _global_pool(net, node, a):
    p = net.layer("Pooling", node).pooling_param
    p.pool, p.global_pooling = caffe_pb2.PoolingParameter.AVE, True


def _gemm(net, node, a):
    layer = net.layer("InnerProduct", node)
    layer.inner_product_param.num_output = net.case.shape(node["outputs"][0])[1]
    layer.inner_product_param.bias_term = len(node["inputs"]) > 2
    net.own(layer, node, *range(1, len(node["inputs"])))


def _gemm_problem(case, node):
    return (graph_analysis.dense_problem(case, node)
            or graph_analysis.recurrent_problem(case, node))


def _relu(net, node, a):
    net.layer("ReLU", node, top=net.inplace(node)).relu_param.negative_slope = a.get("alpha", 0)


def _unary(kind):
    return lambda net, node, a: net.layer(kind, node) and None


def _lrn(net, node, a):
    p = net.layer("LRN", node).lrn_param
    p.local_size, p.alpha, p.beta, p.k = a["size"], a["alpha"], a["beta"], a["bias"]


def _dropout(net, node, a):
    if not graph_analysis.drops(net.case):
        net.tops[node["outputs"][0]] = net.tops[node["inputs"][0]]
        return
    net.layer("Dropout", node, top=net.inplace(node)).dropout_param.dropout_ratio = a["ratio"]


def _flatten(net, node, a):
    """InnerProduct flattens its input itself."""
    if len(net.case.shape(node["inputs"][0])) == 2:
        net.tops[node["outputs"][0]] = net.tops[node["inputs"][0]]
    else:
        net.layer("Flatten", node)


def _flatten_problem(case, node):
    shape = case.shape(node["outputs"][0])
    return None if len(shape) == 2 and shape[0] == case.recipe["batch"] else (
        "the result must be batch x features")


def _identity(net, node, a):
    net.tops[node["outputs"][0]] = net.tops[node["inputs"][0]]


def _concat(net, node, a):
    layer = net.layer("Concat", node, bottom=[net.tops[name] for name in node["inputs"]])
    layer.concat_param.axis = a["axis"]


def _eltwise(operation):
    def row(net, node, a):
        layer = net.layer("Eltwise", node, bottom=[net.tops[name] for name in node["inputs"]])
        layer.eltwise_param.operation = operation
    return row


def _eltwise_problem(case, node):
    kinds = {case.values[name]["kind"] for name in node["inputs"]}
    return graph_analysis.shapes_problem(case, node) or (
        "an operand is a parameter or state" if kinds - {"activation", "input"} else None)


def _lstm(net, node, a):
    """Caffe's layer computes all time steps; a slice takes the last state."""
    batch, time, _ = net.case.shape(node["inputs"][0])
    net.input("cont", [time, batch])
    layer = net.layer("LSTM", node, bottom=[net.tops[node["inputs"][0]], "cont"],
                      top=node["name"] + ".all")
    layer.recurrent_param.num_output = net.case.shape(node["outputs"][0])[1]
    net.own(layer, node, 1, 3, 2)  # input's weights, bias, state's weights
    cut = net.layer("Slice", node, name=node["name"] + ".last", bottom=[layer.top[0]],
                    top=node["name"] + ".before")
    cut.top.append(node["name"] + ".one")
    cut.slice_param.axis = 0
    cut.slice_param.slice_point.append(time - 1)
    net.net.layer.add(name=node["name"] + ".silence", type="Silence",
                      bottom=[node["name"] + ".before"])
    reshape = net.layer("Reshape", node, name=node["name"] + ".shape",
                        bottom=[node["name"] + ".one"])
    reshape.reshape_param.shape.dim.extend(net.case.shape(node["outputs"][0]))


def _lstm_problem(case, node):
    if node["inputs"][0] != case.inputs[0]:
        return "it must read the network's input"
    return graph_analysis.recurrent_problem(case, node)


def _loss(net, node, a):
    layer = net.layer("SoftmaxWithLoss", node,
                      bottom=[net.tops[name] for name in node["inputs"]])
    net.loss = layer.top[0]


OPERATORS = {
    "Conv": _conv,
    "MaxPool": _pool,
    "AveragePool": _pool,
    "GlobalAveragePool": _global_pool,
    "Gemm": _gemm,
    "Relu": _relu,
    "LeakyRelu": _relu,
    "Tanh": _unary("TanH"),
    "Sigmoid": _unary("Sigmoid"),
    "BatchNormalization": caffe_normalisation.layers,
    "LRN": _lrn,
    "Flatten": _flatten,
    "Reshape": _flatten,
    "Identity": _identity,
    "Concat": _concat,
    "Dropout": _dropout,
    "Add": _eltwise(caffe_pb2.EltwiseParameter.SUM),
    "Mul": _eltwise(caffe_pb2.EltwiseParameter.PROD),
    "LSTM": _lstm,
    "SoftmaxCrossEntropyLoss": _loss,
}

# (case, node) -> why this node is not supported, or None.
REFUSALS = {
    "Conv": _conv_problem,
    "MaxPool": _pool_problem,
    "AveragePool": _pool_problem,
    "Gemm": _gemm_problem,
    "BatchNormalization": caffe_normalisation.problem,
    "LRN": graph_analysis.even_size_problem,
    "Flatten": _flatten_problem,
    "Reshape": _flatten_problem,
    "Add": _eltwise_problem,
    "Mul": _eltwise_problem,
    "LSTM": _lstm_problem,
}
