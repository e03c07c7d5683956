"""The bundle's graph as a torch.fx.GraphModule: generated Python without interpretation, which
releases each activation after its last use as hand-written code does.

OPERATORS is the one table: an operator that is added is a row there.
"""
import torch
import torch.fx
import torch.nn.functional as F

from errors import WorkerError


class Translation(object):
    """What a row of OPERATORS gets: call(function, *args, **kwargs) appends a call and returns its
    fx node; inputs are fx nodes (None = left out); attributes is a dict; training says whether
    dropout drops; inplace whether the first input may be overwritten."""

    def __init__(self, call, inputs, attributes, training, inplace):
        self.call = call
        self.inputs = inputs
        self.attributes = attributes
        self.training = training
        self.inplace = inplace

    def input(self, index):
        """fx node of an input, None when it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def padding(self, value):
        """[top, left] of the padding for the operator itself. Where begins and ends differ, the
        first input is padded with `value` before and this is [0, 0]."""
        top, left, bottom, right = self.attributes["pads"]
        if (top, left) == (bottom, right):
            return [top, left]
        self.inputs[0] = self.call(F.pad, self.inputs[0], [left, right, top, bottom],
                                   value=value)
        return [0, 0]


def _conv(t):
    padding = t.padding(0.0)
    a = t.attributes
    return t.call(F.conv2d, t.input(0), t.input(1), t.input(2), a["strides"], padding,
                  a["dilations"], a["group"])


def _max_pool(t):
    padding = t.padding(float("-inf"))
    a = t.attributes
    return t.call(F.max_pool2d, t.input(0), a["kernel_shape"], a["strides"], padding,
                  a.get("dilations", [1, 1]), bool(a.get("ceil_mode", 0)))


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


def _relu(t):
    return t.call(F.relu, t.input(0), inplace=t.inplace)


def _flatten(t):
    axis = t.attributes["axis"]
    if axis == 1:
        return t.call(torch.flatten, t.input(0), 1)
    raise WorkerError("unsupported", "Flatten with axis %d" % axis)


def _dropout(t):
    return t.call(F.dropout, t.input(0), t.attributes["ratio"], True) if t.training else t.input(0)


def _add(t):
    return t.call(torch.add, t.input(0), t.input(1))


def _loss(t):
    return t.call(F.cross_entropy, t.input(0), t.input(1))


OPERATORS = {
    "Conv": _conv,
    "MaxPool": _max_pool,
    "Gemm": _gemm,
    "Relu": _relu,
    "Flatten": _flatten,
    "Dropout": _dropout,
    "Add": _add,
    "SoftmaxCrossEntropyLoss": _loss,
}

# Multiply-accumulates, without bias, of one call: (result, arguments of the call) -> int.
MACS = {
    F.conv2d: lambda out, args: out.numel() * args[1][0].numel(),
    F.linear: lambda out, args: out.numel() * args[0].shape[-1],
    torch.mm: lambda out, args: out.numel() * args[0].shape[1],
    torch.addmm: lambda out, args: out.numel() * args[1].shape[1],
}

# A Relu may overwrite the result of these: their gradients do not need it.
OVERWRITABLE = ("Conv", "Gemm", "Add")


def problems(case):
    """List of str: what in the case's graph has no translation."""
    used = {name for node in case.nodes for name in node["inputs"] if name}
    reasons = ["operator " + op for op in
               sorted({node["op"] for node in case.nodes} - set(OPERATORS))]
    for node in case.nodes:
        if used.intersection(node["outputs"][1:]):
            reasons.append("second output of %s %s" % (node["op"], node["name"]))
        if node["op"] == "Flatten" and node["attributes"]["axis"] != 1:
            reasons.append("Flatten %s with axis %d" % (node["name"], node["attributes"]["axis"]))
    if case.stage != "forward" and not case.graph.get("loss"):
        reasons.append("stage %s of a graph without a loss" % case.stage)
    return reasons


class Builder(object):
    """Builds the module of a case. `parameters` maps names to torch.nn.Parameter, `states` to
    Tensor; `dtype` is that in which a forward pass computes, or None for fp32 and autocast."""

    def __init__(self, case, parameters, states, dtype):
        self.case = case
        self.forward_only = case.stage == "forward"
        self.dropout = case.recipe["dropout"] and not self.forward_only
        self.dtype = dtype
        self.root = torch.nn.Module()
        self.places = {}
        for name, parameter in parameters.items():
            self.places[name] = "p%d" % len(self.places)
            self.root.register_parameter(self.places[name], parameter)
        for name, state in states.items():
            self.places[name] = "s%d" % len(self.places)
            self.root.register_buffer(self.places[name], state)
        self.fx = torch.fx.Graph()
        self.made = {}      # value's name -> fx node
        self.shapes = {}    # fx node -> (bundle node's name, shape)
        self.inplace = 0

    def _call(self, function, *args, **kwargs):
        return self.fx.call_function(function, args, kwargs)

    def _value(self, name):
        if not name:
            return None
        return self.fx.get_attr(self.places[name]) if name in self.places else self.made[name]

    def _overwritable(self, nodes, node, wanted):
        """Whether a Relu may overwrite its input: nobody else reads it, and see OVERWRITABLE."""
        name = node["inputs"][0]
        readers = sum(other["inputs"].count(name) for other in nodes)
        producers = [other["op"] for other in nodes if name in other["outputs"]]
        return (node["op"] == "Relu" and readers == 1 and name not in wanted
                and producers and producers[0] in OVERWRITABLE)

    def module(self):
        """The GraphModule: (x) -> logits for the stage forward, else (x, y) -> (loss, logits)."""
        graph = self.case.graph
        wanted = [graph["logits"]] if self.forward_only else [graph["loss"], graph["logits"]]
        x = self.fx.placeholder("x")
        self.made[graph["input"]] = x if self.dtype is None else self._call(
            torch.Tensor.to, x, self.dtype)
        if not self.forward_only:
            self.made[graph["label"]] = self.fx.placeholder("y")
        nodes = self.case.nodes_for(wanted)
        for node in nodes:
            inplace = bool(self._overwritable(nodes, node, wanted))
            self.inplace += inplace
            result = OPERATORS[node["op"]](Translation(
                self._call, [self._value(name) for name in node["inputs"]],
                node["attributes"], self.dropout, inplace))
            self.made[node["outputs"][0]] = result
            self.shapes.setdefault(result, (node["name"], self.case.shape(node["outputs"][0])))
        results = [self.made[name] for name in wanted]
        self.fx.output(results[0] if self.forward_only else tuple(results))
        return torch.fx.GraphModule(self.root, self.fx, self.case.graph["name"])


class Counter(torch.fx.Interpreter):
    """Runs a module on a few samples: counts its multiply-accumulates in `macs` and checks the
    shape that torch gives to each value against the graph's. States are not touched."""

    def __init__(self, module, builder, samples):
        torch.fx.Interpreter.__init__(self, module)
        batch = builder.case.recipe["batch"]
        self.macs = 0
        self.expected = {
            node.name: (name, [samples] + shape[1:] if shape[:1] == [batch] else shape)
            for node, (name, shape) in builder.shapes.items()}

    def fetch_attr(self, target):
        value = getattr(self.module, target)
        return value if isinstance(value, torch.nn.Parameter) else value.clone()

    def call_function(self, target, args, kwargs):
        result = torch.fx.Interpreter.call_function(self, target, args, kwargs)
        if target in MACS:
            self.macs += MACS[target](result, args)
        return result

    def run_node(self, n):
        result = torch.fx.Interpreter.run_node(self, n)
        name, shape = self.expected.get(n.name, (None, None))
        if name is not None and list(result.shape) != shape:
            raise WorkerError("unsupported", "%s: torch makes the shape %s, the graph says %s"
                              % (name, list(result.shape), shape))
        return result


def count(module, builder, device):
    """Multiply-accumulates (int) of a forward batch, counted on the calls that the module makes
    for two samples of zeros: torch's tensors without data would cost an import of half a second,
    a whole batch its time and memory. Draws random numbers where dropout is on."""
    case = builder.case
    batch = case.recipe["batch"]
    samples = min(batch, 2)
    inputs = [torch.zeros([samples] + case.shape(case.graph["input"])[1:], device=device)]
    if not builder.forward_only:
        inputs.append(torch.zeros(samples, dtype=torch.long, device=device))
    counter = Counter(module, builder, samples)
    with torch.no_grad():
        counter.run(*inputs)
    return counter.macs // samples * batch
