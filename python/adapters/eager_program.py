"""Runs a graph as a sequence of function calls, for frameworks that compute eagerly."""
import graph_analysis
from errors import WorkerError
from graph_attention import ATTENTION
from safetensors_io import elements

# {operator: multiply-accumulates of a call: (shape of the output, shapes of the inputs, attributes)}
MACS = {
    "Conv": lambda out, inputs, a: elements(out) * elements(inputs[1][1:]),
    "ConvTranspose": lambda out, inputs, a: elements(inputs[0]) * elements(inputs[1][1:]),
    "Gemm": lambda out, inputs, a: elements(out) * inputs[0][0 if a["transA"] else 1],
    ATTENTION: lambda out, inputs, a: (elements(out) + elements(inputs[0])) * inputs[1][a["key_order"][2]],
    "MatMul": lambda out, inputs, a: elements(out) * inputs[0][-1],
}
for _name in ("LSTM", "GRU", "RNN"):
    MACS[_name] = lambda out, inputs, a: elements(inputs[0][:2]) * (
        elements(inputs[1]) + elements(inputs[2]))


class Program(object):
    """rows: {operator: (case, node) -> function of the node's inputs that returns its first output}. Calling it
    with a dict of inputs, labels, parameters and states returns the wanted values; each activation is released
    after its last use."""

    def __init__(self, case, rows):
        self.case = case
        self.wanted = graph_analysis.wanted(case)
        self.nodes = case.nodes_for(self.wanted)
        self.calls = []
        computed = set()
        for node, unused in zip(self.nodes, graph_analysis.last_uses(self.nodes, self.wanted)):
            computed.add(node["outputs"][0])
            inputs = tuple(name or None for name in node["inputs"])
            while inputs and inputs[-1] is None:
                inputs = inputs[:-1]
            self.calls.append((rows[node["op"]](case, node), inputs, node["outputs"][0],
                               tuple(computed.intersection(unused))))

    def __call__(self, given):
        values = dict(given)
        for function, inputs, output, unused in self.calls:
            values[output] = function(*[values.get(name) for name in inputs])
            for name in unused:
                del values[name]
        return [values[name] for name in self.wanted]

    def count(self, given):
        """Multiply-accumulates (int) of a call, from the framework's shapes. Raises WorkerError if one differs
        from the graph's."""
        values, macs = dict(given), 0
        for node, (function, inputs, output, _) in zip(self.nodes, self.calls):
            operands = [values.get(name) for name in inputs]
            values[output] = function(*operands)
            shape, expected = list(values[output].shape), self.case.shape(output)
            if elements(shape) != elements(expected) or shape and shape != expected:
                raise WorkerError("unsupported", "%s: the framework's result has the shape %s, but the graph "
                                  "says %s" % (node["name"], shape, expected))
            if node["op"] in MACS:
                macs += MACS[node["op"]](shape, [x is not None and list(x.shape) for x in operands],
                                         node["attributes"])
        return macs


def plain(function):
    """A row for an operator without attributes."""
    return lambda case, node: function


def tuned(function, *names):
    """A row whose function takes its first input and then the node's attributes `names`."""
    def row(case, node):
        more = [node["attributes"][name] for name in names]
        return lambda x: function(x, *more)
    return row


def identity(case, node):
    """A row for operators that change nothing."""
    return lambda x: x


def dropped(dropout):
    """A row for Dropout: dropout(value, ratio)."""
    def row(case, node):
        ratio = node["attributes"]["ratio"]
        return (lambda x: dropout(x, ratio)) if graph_analysis.drops(case) else (lambda x: x)
    return row


def reshaped(reshape):
    """A row for Flatten and Reshape: reshape(value, shape)."""
    def row(case, node):
        shape = graph_analysis.free_shape(case, case.shape(node["outputs"][0]))
        return lambda x: reshape(x, shape)
    return row


def sliced(case, node):
    """A row for Slice, for values that support Python's slices."""
    a = node["attributes"]
    slices = (slice(None),) * a["axis"] + (slice(a["start"], a["end"], a["step"]),)
    return lambda x: x[slices]


def pooled(case, node, up, fill, pad, pool):
    """A row for a pool that only supports equal padding on both sides and, if `up`, rounding up. pad(x, pads,
    fill) pads at [top, left, bottom, right]; pool(x, pads, up) is the pool itself, with pads two numbers, and
    may compute more windows than the graph's."""
    a, shape = node["attributes"], case.shape(node["outputs"][0])
    size = case.shape(node["inputs"][0])
    behind = [max(0, n) for n in graph_analysis.window_reach(a, size, shape)]
    front = a["pads"][:2]
    rows, columns = shape[2:]

    def windows(pads, up):
        spare = [size[2 + i] + 2 * pads[i] - a["kernel_shape"][i] for i in range(2)]
        return [-(-n // s) + 1 if up else n // s + 1 for n, s in zip(spare, a["strides"])]
    half = all(2 * p <= k for p, k in zip(front, a["kernel_shape"]))
    if half and windows(front, False) == [rows, columns]:
        return lambda x: pool(x, front, False)
    if half and up and windows(front, True) == [rows, columns]:
        return lambda x: pool(x, front, True)
    pads = front + behind
    return lambda x: pool(pad(x, pads, fill), [0, 0], False)[:, :, :rows, :columns]
