"""Runs a case's graph node by node on a framework's values, for frameworks that trace or record such a run.
Standard library only (Python 3.6 or newer).

An adapter passes a table {operator: function of an Operation}. If it has the row SPLIT, Slices that together
divide a whole value become one call of it."""
import graph_analysis
from errors import WorkerError

SPLIT = "split"  # row: (operation, sizes, axis in our order) -> sequence of values


IMAGE_OPERATORS = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "BatchNormalization", "LRN",
                   "Resize")
CONVOLUTIONS = ("Conv", "ConvTranspose")


def layout_for(case, last):
    """The Layout of a case: channels are last only in a network of images, because the heads of attention would be
    moved for nothing."""
    return Layout(last and any(node["op"] in IMAGE_OPERATORS for node in case.nodes))


class Layout(object):
    """The order in which an adapter stores the dimensions of values of rank 4: N x H x W x C if `last`, else
    the graph's order. All other values stay in the graph's order."""

    def __init__(self, last):
        self.last = last

    def order(self, rank):
        """The permutation from the graph's order to ours."""
        return [0, 2, 3, 1] if self.last and rank == 4 else list(range(rank))

    def back(self, rank):
        """The permutation from our order to the graph's."""
        return [0, 3, 1, 2] if self.last and rank == 4 else list(range(rank))

    def axis(self, axis, rank):
        """Our axis for an axis of the graph, which may be negative."""
        return self.back(rank)[axis]

    def shape(self, shape):
        return [shape[i] for i in self.order(len(shape))]

    def permutation(self, perm):
        """The permutation of a Transpose between values in our order."""
        return [self.axis(perm[i], len(perm)) for i in self.order(len(perm))]

    def moves(self, shape):
        """Whether our order changes the order of a value's elements in memory; `shape` is in the graph's
        order."""
        return self.last and len(shape) == 4 and shape[1] != 1 and shape[2] * shape[3] != 1

    def spatial(self, two, fill=0):
        """A list for [N, C, H, W], in our order: `two` for H and W, `fill` for the others."""
        return self.shape([fill, fill, two[0], two[1]])


class Operation(object):
    """A node, as passed to a row of an adapter's table. inputs: values (None if omitted); names: their names;
    attributes: dict; shape and input_shape (list of int) in the graph's order; training, drops: whether the
    stage trains, whether Dropout is active; index: of the node; run: the Evaluation."""

    def __init__(self, run, node, index):
        self.run, self.case, self.layout = run, run.case, run.layout
        self.name, self.op, self.index = node["name"], node["op"], index
        self.attributes = node["attributes"]
        self.names = [name for name in node["inputs"]]
        self.inputs = [run.values[name] if name else None for name in node["inputs"]]
        self.shape = run.case.shape(node["outputs"][0])
        self.input_shape = run.case.shape(node["inputs"][0])
        self.training = run.case.stage != "forward"
        self.drops = graph_analysis.drops(run.case)

    def input(self, index):
        """An input, or None if it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def rank(self, index=0):
        return len(self.case.shape(self.names[index]))

    def axis(self, axis):
        """Our axis for an axis of the first input."""
        return self.layout.axis(axis, len(self.input_shape))

    def pads(self, pads=None):
        """[(before, after)] for each dimension of the first input, in our order: of the node's own Pad, or of
        `pads` [top, left, bottom, right]."""
        if pads is None:
            both = self.attributes["pads"]
            rank = len(both) // 2
            pairs = [(both[i], both[i + rank]) for i in range(rank)]
        else:
            pairs = [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])]
        return [pairs[i] for i in self.layout.order(len(pairs))]

    def pooled_pads(self):
        """[top, left, bottom, right] with which rounding down gives the graph's windows."""
        behind = graph_analysis.window_reach(self.attributes, self.input_shape, self.shape)
        return self.attributes["pads"][:2] + [max(0, size) for size in behind]

    def grouped(self):
        """For a normalisation of groups of channels: (the input's shape with the channels as groups x members,
        the axes over which a group is normalised, the shape in which scale and bias broadcast), in our order."""
        shape, channel = self.layout.shape(self.input_shape), self.axis(1)
        groups = self.attributes.get("num_groups", shape[channel])
        wide = shape[:channel] + [groups, shape[channel] // groups] + shape[channel + 1:]
        axes = [axis for axis in range(1, len(wide)) if axis != channel]
        return wide, axes, [-1 if axis == channel else 1 for axis in range(len(shape))]

    def cut(self, value):
        """The result of a ConvTranspose without its padding; `value` is in our order and still has it."""
        top, left = self.attributes["pads"][:2]
        height, width = self.shape[2:]
        slices = [slice(None), slice(None), slice(top, top + height), slice(left, left + width)]
        if not any(self.attributes["pads"]):
            return value
        return value[tuple(slices[i] for i in self.layout.order(4))]

    def reshaped(self, reshape, transpose):
        """The first input in the shape of the result. reshape(value, shape) and transpose(value, permutation)
        are the framework's functions."""
        value, layout = self.inputs[0], self.layout
        if layout.moves(self.input_shape):
            value = transpose(value, layout.back(4))
        if not layout.moves(self.shape):
            return reshape(value, layout.shape(self.shape))
        return transpose(reshape(value, self.shape), layout.order(4))

    def in_graph_order(self, function, transpose):
        """The result of function(*inputs) on values in the graph's order."""
        layout = self.layout
        result = function(*[transpose(value, layout.back(4)) if layout.last and self.rank(i) == 4 else value
                            for i, value in enumerate(self.inputs)])
        return transpose(result, layout.order(4)) if layout.last and len(self.shape) == 4 else result

    def operand(self, index, reshape, transpose):
        """An input of a broadcasting operator, reshaped so that it broadcasts to the result in our order."""
        shape, rank = self.case.shape(self.names[index]), len(self.shape)
        value = self.inputs[index]
        if not self.layout.last or rank != 4 or not 0 < len(shape) < 4:
            return value
        full = [1] * (4 - len(shape)) + shape
        if self.layout.moves(full):
            return transpose(reshape(value, full), self.layout.order(4))
        return reshape(value, self.layout.shape(full))


class Evaluation(object):
    """values: {name: value} in our order, at first of inputs, labels, parameters and states; updates: {name of
    a state: its new value}, which rows fill in."""

    def __init__(self, case, layout, operators, values, **context):
        self.case, self.layout, self.operators = case, layout, operators
        self.values, self.updates = dict(values), {}
        self.context = context  # anything else that the adapter's rows need
        self.macs = 0           # for rows that count their multiply-accumulates

    def compute(self, wanted):
        """Computes the values named in `wanted` (list of str). Raises WorkerError if the framework's shape of a
        value differs from the graph's."""
        nodes = self.case.nodes_for(wanted)
        keep = list(wanted) + self.case.parameters + self.case.states
        free = graph_analysis.last_uses(nodes, keep)
        splits = graph_analysis.splits(self.case, nodes) if SPLIT in self.operators else {}
        pieces = {}
        for index, node in enumerate(nodes):
            operation = Operation(self, node, index)
            if node["name"] in splits:
                group, sizes, piece = splits[node["name"]]
                if group not in pieces:
                    pieces[group] = self.operators[SPLIT](
                        operation, sizes, operation.axis(node["attributes"]["axis"]))
                result = pieces[group][piece]
            else:
                result = self.operators[node["op"]](operation)
            self._check(operation, result)
            self.values[node["outputs"][0]] = result
            for name in free[index]:
                self.values.pop(name, None)
        return [self.values[name] for name in wanted]

    def _check(self, operation, value):
        shape = [int(size) for size in value.shape]
        if shape != self.layout.shape(operation.shape):
            raise WorkerError("unsupported", "%s %s: the framework's result has the shape %s, "
                              "but the graph says %s"
                              % (operation.op, operation.name, shape,
                                 self.layout.shape(operation.shape)))


def convolution_weights(case):
    """Set of str: the parameters and states that are the weights of a convolution."""
    return {node["inputs"][1] for node in case.nodes if node["op"] in CONVOLUTIONS}


def kept_order(case, layout, name, filters):
    """The permutation (list of int) with which an adapter stores a parameter or state; filters: the one for
    weights of convolutions."""
    if name in convolution_weights(case):
        return filters
    return layout.order(len(case.shape(name)))


def order_problems(case):
    """List of str: weights of convolutions that cannot be stored in the framework's order, because they are
    computed or other operators read them."""
    weights = convolution_weights(case)
    reasons = []
    for name in sorted(weights):
        if case.values[name]["kind"] not in ("parameter", "state"):
            reasons.append("the weights %s of a convolution are computed" % name)
        others = [node["op"] for node in case.nodes if node["op"] not in CONVOLUTIONS and name in node["inputs"]]
        if others:
            reasons.append("%s also reads the weights %s of a convolution" % (others[0], name))
    return reasons
