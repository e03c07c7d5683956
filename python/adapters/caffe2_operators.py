"""Caffe2's operators for each operator of a graph, and the reasons for those that are not supported."""
import numpy
from caffe2.proto import caffe2_pb2
from caffe2.python import core, rnn_cell

import graph_analysis
from adapters.numpy_adapter import gates_first
from safetensors_io import elements

RECURRENT = ("LSTM", "RNN")
WEIGHTS = ".weights"  # behind the name of labels: 0 where they are ignored, else 1


class Builder(object):
    """Adds operators to a model's net. Blobs have the names of the graph's values, except for `blobs`
    {parameter: its blob}. layouts as in NumpyAdapter; constants: {blob: value} for blobs that are not
    parameters of the graph; tables: [(blob with the rows of a table, the table)]."""

    def __init__(self, case, model):
        self.case, self.model, self.net = case, model, model.net
        self.training = case.stage != "forward"
        self.nodes = case.nodes_for([case.graph["logits"]])
        readers = [node["op"] for node in self.nodes if case.inputs[0] in node["inputs"]]
        self.sequences = all(op in RECURRENT for op in readers)
        self.blobs, self.layouts, self.constants, self.tables = {}, {}, {}, []

    def arranged(self, x):
        """A batch in the net's layout: time first for recurrent layers, which are then its only readers."""
        return x.transpose(1, 0, 2) if self.sequences else x

    def logits(self):
        """Appends the forward pass; returns the name of the logits' blob."""
        for node in self.nodes:
            inputs = [name for name in node["inputs"] if name]
            OPERATORS[node["op"]](self, inputs, node["outputs"][0], node)
        return self.case.graph["logits"]

    def loss(self):
        """Appends the loss; returns its blob."""
        graph = self.case.graph
        name = graph["loss"]
        inputs = [graph["logits"], self.case.labels[0]]
        if self.case.ignores_labels():
            inputs = [inputs[0]] + [self.net.FlattenToVec([blob], blob + ".flat")
                                    for blob in (inputs[1], inputs[1] + WEIGHTS)]
        return self.net.SoftmaxWithLoss(inputs, [name + ".probabilities", name])[1]

    def macs(self, node):
        """Multiply-accumulates of a node."""
        case, op = self.case, node["op"]
        if op == "MatMul":
            return elements(case.shape(node["outputs"][0])) * case.shape(node["inputs"][0])[-1]
        if op not in ("Conv", "ConvTranspose", "Gemm") + RECURRENT:
            return 0
        weight = case.shape(node["inputs"][1])
        if op == "ConvTranspose":
            return elements(case.shape(node["inputs"][0])) * elements(weight[1:])
        if op in RECURRENT:
            steps = elements(case.shape(node["inputs"][0])[:2])
            return steps * (elements(weight) + elements(case.shape(node["inputs"][2])))
        return elements(case.shape(node["outputs"][0])) * elements(weight[1:])


def _conv(b, inputs, out, node):
    a = node["attributes"]
    b.net.Conv(inputs, out, kernels=a["kernel_shape"], strides=a["strides"], pads=a["pads"],
               dilations=a["dilations"], group=a["group"], order="NCHW")


def _conv_transpose(b, inputs, out, node):
    a = node["attributes"]
    b.net.ConvTranspose(inputs, out, kernels=a["kernel_shape"], strides=a["strides"], pads=a["pads"],
                        adjs=a["output_padding"], group=a["group"], order="NCHW")


def _pool(operator):
    def row(b, inputs, out, node):
        a = node["attributes"]
        pads = a["pads"]
        if a["ceil_mode"]:
            behind = graph_analysis.window_reach(a, b.case.shape(node["inputs"][0]),
                                                 b.case.shape(out))
            pads = pads[:2] + [max(0, n) for n in behind]
        more = {"count_include_pad": 1} if a.get("count_include_pad") else {}
        getattr(b.net, operator)(inputs, out, kernels=a["kernel_shape"], strides=a["strides"],
                                 pads=pads, order="NCHW", **more)
    return row


def _pool_problem(case, node):
    a = node["attributes"]
    if node["op"] == "AveragePool" and a["ceil_mode"]:
        return "ceil_mode is not supported"
    if any(p >= k for p, k in zip(a["pads"], a["kernel_shape"] * 2)):
        return "the padding must be smaller than the window"
    return graph_analysis.dilated_problem(case, node)


def _gemm(b, inputs, out, node):
    if len(inputs) == 2:
        b.net.MatMul(inputs, out, trans_b=1)
    else:
        b.net.FC(inputs, out)


def _batch_norm(b, inputs, out, node):
    a = node["attributes"]
    outs = [out]
    if b.training:
        # Not NAME.mean, which is the name of the running mean of a layer NAME.
        outs += inputs[3:5] + [out + ".saved_mean", out + ".saved_inverse"]
    b.net.SpatialBN(inputs, outs, order="NCHW", epsilon=a["epsilon"], momentum=a["momentum"],
                    is_test=int(not b.training))


def _layer_norm(b, inputs, out, node):
    """Caffe2's normalises rows of two dimensions."""
    shape = b.case.shape(out)
    rows = b.net.Reshape(inputs[:1], [out + ".rows", out + ".rows_shape"], shape=[-1, shape[-1]])[0]
    normal = b.net.LayerNorm([rows] + inputs[1:], [out + ".normal", out + ".centre", out + ".deviation"], axis=1,
                             epsilon=node["attributes"]["epsilon"], elementwise_affine=1)[0]
    b.net.Reshape([normal], [out, out + ".shape"], shape=shape)


def _group_norm(b, inputs, out, node):
    a = node["attributes"]
    b.net.GroupNorm(inputs, [out, out + ".centre", out + ".deviation"], group=a["num_groups"], epsilon=a["epsilon"],
                    order="NCHW")


def _instance_norm(b, inputs, out, node):
    b.net.InstanceNorm(inputs, [out, out + ".centre", out + ".deviation"], epsilon=node["attributes"]["epsilon"],
                       order="NCHW")


def _resize(b, inputs, out, node):
    rows, columns = node["attributes"]["scales"]
    b.net.ResizeNearest(inputs, out, height_scale=float(rows), width_scale=float(columns), order="NCHW")


def _resize_problem(case, node):
    return "only nearest" if node["attributes"]["mode"] != "nearest" else None


def _row_problem(case, node):
    last = len(case.shape(node["inputs"][0])) - 1
    return None if node["attributes"]["axis"] == last else "only over the last axis"


def _rms_norm(b, inputs, out, node):
    b.constants[out + ".epsilon"] = numpy.array(node["attributes"]["epsilon"], numpy.float32)
    squares = b.net.Sqr(inputs[:1], out + ".squares")
    mean = b.net.ReduceMean([squares], out + ".mean", axes=[len(b.case.shape(out)) - 1], keepdims=1)
    size = b.net.Sqrt([b.net.Add([mean, out + ".epsilon"], out + ".sum")], out + ".size")
    b.net.Mul([b.net.Div([inputs[0], size], out + ".normal"), inputs[1]], out)


def _matmul(b, inputs, out, node):
    if len(b.case.shape(out)) == 2:
        b.net.MatMul(inputs, out)
    else:
        b.net.BatchMatMul(inputs, out)


def _matmul_problem(case, node):
    first, second = (case.shape(name)[:-2] for name in node["inputs"])
    return None if first == second else "the leading dimensions must be the same"


def _gather(b, inputs, out, node):
    """Reads the rows from a blob that shares the table's memory, because Caffe2 cannot add the gradient of a Gather,
    which is sparse, to that of another reader."""
    rows = inputs[0]
    if rows in b.case.parameters:
        rows = out + ".table"
        b.tables.append((rows, inputs[0]))
    indices = b.net.FlattenToVec(inputs[1:], out + ".indices")
    b.net.Reshape([b.net.Gather([rows, indices], out + ".rows")], [out, out + ".shape"], shape=b.case.shape(out))


def _expand(b, inputs, out, node):
    b.constants[out + ".to"] = numpy.array(b.case.shape(out), numpy.int64)
    b.net.Expand([inputs[0], out + ".to"], out)


def _swish(b, inputs, out, node):
    scaled = b.net.Scale(inputs, out + ".scaled", scale=node["attributes"]["alpha"])
    b.net.Mul([inputs[0], b.net.Sigmoid([scaled], out + ".sigmoid")], out)


def _lrn(b, inputs, out, node):
    a = node["attributes"]
    b.net.LRN(inputs, [out, out + ".scale"], size=a["size"], alpha=a["alpha"], beta=a["beta"],
              bias=a["bias"], order="NCHW")


def _dropout(b, inputs, out, node):
    if not graph_analysis.drops(b.case):
        b.net.Copy(inputs, out)
        return
    seed = (b.case.recipe["seed"] + b.nodes.index(node)) % 2 ** 31
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CPU, random_seed=seed)):
        b.net.Dropout(inputs, [out, out + ".mask"], ratio=node["attributes"]["ratio"], is_test=0)


def _reshape(b, inputs, out, node):
    shape = graph_analysis.free_shape(b.case, b.case.shape(out))
    b.net.Reshape(inputs, [out, out + ".shape"], shape=shape)


def _concat(b, inputs, out, node):
    b.net.Concat(inputs, [out, out + ".split"], axis=node["attributes"]["axis"])


def _slice(b, inputs, out, node):
    a = node["attributes"]
    rank = len(b.case.shape(node["inputs"][0]))
    starts, ends = [0] * rank, [-1] * rank
    starts[a["axis"]], ends[a["axis"]] = a["start"], a["end"]
    if a["end"] == b.case.shape(node["inputs"][0])[a["axis"]]:
        ends[a["axis"]] = -1  # to the end
    b.net.Slice(inputs, out, starts=starts, ends=ends)


def _slice_problem(case, node):
    return None if node["attributes"]["step"] == 1 else "steps other than 1 are not supported"


def _plain(operator, **names):
    """A row for an operator with arguments {Caffe2's name: the node's attribute}."""
    def row(b, inputs, out, node):
        getattr(b.net, operator)(inputs, out, **{
            name: node["attributes"][names[name]] for name in names})
    return row


def _global_pool(b, inputs, out, node):
    b.net.AveragePool(inputs, out, global_pooling=1, order="NCHW")


def _recurrent(b, inputs, out, node):
    """A layer of rnn_cell, which names its parameters itself. Its second bias stays zero."""
    lstm, name, a = node["op"] == "LSTM", node["name"], node["attributes"]
    batch, time, width = b.case.shape(node["inputs"][0])
    size = b.case.shape(out)[-1]
    sequence, reverse = a.get("sequence", False), a.get("direction", "forward") == "reverse"
    states = [name + ".hidden", name + ".cell"][:1 + lstm]
    for state in states:
        b.constants[state] = numpy.zeros((1, batch, size), numpy.float32)
    more = {} if lstm else {"activation": a.get("activation", "Relu").lower()}
    layer = rnn_cell.LSTM if lstm else rnn_cell.BasicRNN
    x = inputs[0]
    if x != b.case.inputs[0] or not b.sequences:
        x = b.net.Transpose([x], name + ".time", axes=[1, 0, 2])
    lengths = name + ".lengths"
    if reverse:
        b.constants[lengths] = numpy.full(batch, time, numpy.int32)
        x = b.net.ReversePackedSegs([x, lengths], name + ".reversed")
    which = 0 if sequence else 1
    states = layer(b.model, x, None, tuple(states) if lstm else states, width, size, name,
                   outputs_with_grads=(which,), forward_only=not b.training, **more)[which]
    if sequence and reverse:
        states = b.net.ReversePackedSegs([states, lengths], name + ".back")
    if sequence:
        b.net.Transpose([states], out, axes=[1, 0, 2])
    else:
        b.net.Reshape([states], [out, out + ".shape"], shape=[-1, size])
    second = name + "/gates_t_b"
    b.constants[second] = numpy.zeros((4 if lstm else 1) * size, numpy.float32)
    for parameter, blob in zip(node["inputs"][1:], ("i2h_w", "gates_t_w", "i2h_b")):
        b.blobs[parameter] = name + "/" + blob
        if lstm:
            b.layouts[parameter] = gates_first("ifoc")


OPERATORS = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _pool("MaxPool"),
    "AveragePool": _pool("AveragePool"),
    "GlobalAveragePool": _global_pool,
    "Gemm": _gemm,
    "Relu": _plain("Relu"),
    "LeakyRelu": _plain("LeakyRelu", alpha="alpha"),
    "Elu": _plain("Elu", alpha="alpha"),
    "Clip": _plain("Clip", min="min", max="max"),
    "Tanh": _plain("Tanh"),
    "Sigmoid": _plain("Sigmoid"),
    "Exp": _plain("Exp"),
    "Sqrt": _plain("Sqrt"),
    "Neg": _plain("Negative"),
    "Softmax": _plain("Softmax", axis="axis"),
    "Identity": _plain("Copy"),
    "Gelu": lambda b, inputs, out, node: b.net.Gelu(
        inputs, out, fast_gelu=int(node["attributes"]["approximate"] == "tanh")),
    "Erf": _plain("Erf"),
    "Pow": _plain("Pow", exponent="exponent"),
    "Swish": _swish,
    "MatMul": _matmul,
    "Gather": _gather,
    "Expand": _expand,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "Resize": _resize,
    "BatchNormalization": _batch_norm,
    "LRN": _lrn,
    "Flatten": _reshape,
    "Reshape": _reshape,
    "Transpose": _plain("Transpose", axes="perm"),
    "Concat": _concat,
    "Slice": _slice,
    "ReduceMean": _plain("ReduceMean", axes="axes", keepdims="keepdims"),
    "Dropout": _dropout,
    "Add": _plain("Add"),
    "Sub": _plain("Sub"),
    "Mul": _plain("Mul"),
    "Div": _plain("Div"),
    "LSTM": _recurrent,
    "RNN": _recurrent,
    "SoftmaxCrossEntropyLoss": None,  # Builder.loss
}

# (case, node) -> why this node is not supported, or None.
REFUSALS = {
    "ConvTranspose": graph_analysis.dilated_problem,
    "Resize": _resize_problem,
    "MaxPool": _pool_problem,
    "AveragePool": _pool_problem,
    "Gemm": graph_analysis.dense_problem,
    "BatchNormalization": graph_analysis.statistics_problem,
    "Gather": graph_analysis.gather_problem,
    "LayerNormalization": _row_problem,
    "RMSNormalization": _row_problem,
    "Softmax": _row_problem,
    "MatMul": _matmul_problem,
    "LRN": graph_analysis.even_size_problem,
    "Slice": _slice_problem,
    "LSTM": graph_analysis.owner_problem,
    "RNN": graph_analysis.owner_problem,
}
