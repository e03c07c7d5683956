"""Translates a bundle's graph to a torch.fx.GraphModule. That is generated Python, which releases each
activation after its last use as hand-written code does.

pytorch_operators.py has a row for each operator.
"""
import operator

import torch
import torch.fx
import torch.nn.functional as F

import adapters.pytorch_recurrent as recurrent
import graph_analysis
from adapters.pytorch_operators import OPERATORS, REFUSALS, Translation
from errors import WorkerError

TYPES = {"F32": torch.float32, "F16": torch.float16, "I64": torch.long, "I32": torch.int32, "BOOL": torch.bool}

# Multiply-accumulates, without bias, of one call: (result, arguments of the call) -> int.
MACS = {
    F.conv2d: lambda out, args: out.numel() * args[1][0].numel(),
    F.linear: lambda out, args: out.numel() * args[0].shape[-1],
    torch.mm: lambda out, args: out.numel() * args[0].shape[1],
    torch.addmm: lambda out, args: out.numel() * args[1].shape[1],
}

# A Relu or Clip may overwrite the result of these: their gradients do not need it.
OVERWRITABLE = ("Conv", "Gemm", "Add", "Sub", "BatchNormalization", "Concat")
OVERWRITERS = ("Relu", "Clip")


def problems(case):
    """List of str: what in the case's graph has no translation."""
    return graph_analysis.problems(case, OPERATORS, REFUSALS)


class Builder(object):
    """Builds the module of a case. `parameters` maps names to torch.nn.Parameter, `states` to
    Tensor; `dtype` is that in which a forward pass computes, or None for fp32 and autocast."""

    def __init__(self, case, parameters, states, dtype):
        self.case = case
        self.forward_only = case.stage == "forward"
        self.dropout = graph_analysis.drops(case)
        self.dtype = dtype
        self.root = torch.nn.Module()
        self.parameters = parameters
        self.attributes = {}
        for name, parameter in parameters.items():
            self.attributes[name] = "p%d" % len(self.attributes)
            self.root.register_parameter(self.attributes[name], parameter)
        for name, state in states.items():
            self.attributes[name] = "s%d" % len(self.attributes)
            self.root.register_buffer(self.attributes[name], state)
        self.fx = torch.fx.Graph()
        self.made = {}      # value's name -> fx node
        self.shapes = {}    # fx node -> (bundle node's name, shape)
        self.inplace = 0

    def _call(self, function, *args, **kwargs):
        return self.fx.call_function(function, args, kwargs)

    def _module(self, module, *args):
        name = "m%d" % len(list(self.root.children()))
        self.root.add_module(name, module)
        return self.fx.call_module(name, args)

    def _value(self, name):
        if not name:
            return None
        return self.fx.get_attr(self.attributes[name]) if name in self.attributes else self.made[name]

    def _overwritable(self, nodes, node, wanted):
        """Whether a node may overwrite its input: nobody else reads it, and see OVERWRITABLE."""
        name = node["inputs"][0]
        readers = sum(other["inputs"].count(name) for other in nodes)
        producers = [other["op"] for other in nodes if name in other["outputs"]]
        return (node["op"] in OVERWRITERS and readers == 1 and name not in wanted
                and producers and producers[0] in OVERWRITABLE)

    def _translate(self, node, inplace):
        """fx node of the first output."""
        if node["name"] in self.splits:
            group, sizes, index = self.splits[node["name"]]
            if group not in self.pieces:
                self.pieces[group] = self._call(torch.split, self._value(node["inputs"][0]),
                                                sizes, node["attributes"]["axis"])
            return self._call(operator.getitem, self.pieces[group], index)
        return OPERATORS[node["op"]](Translation(
            self._call, self._module, [self._value(name) for name in node["inputs"]],
            [self.parameters.get(name) for name in node["inputs"]], node["attributes"],
            self.case, node, self.dropout, inplace))

    def module(self):
        """The GraphModule: (inputs) -> logits for the stage forward, else (inputs, labels) -> (loss, logits)."""
        case = self.case
        wanted = graph_analysis.wanted(case)
        for i, name in enumerate(case.inputs):
            x = self.fx.placeholder("x%d" % i)
            dtype = {"F32": self.dtype, "F16": self.dtype or torch.float32}.get(case.dtype(name))
            self.made[name] = x if dtype is None else self._call(torch.Tensor.to, x, dtype)
        for i, name in enumerate([] if self.forward_only else case.labels):
            self.made[name] = self.fx.placeholder("y%d" % i)
        self.nodes = nodes = self.case.nodes_for(wanted)
        self.splits, self.pieces = graph_analysis.splits(self.case, nodes), {}
        for node in nodes:
            inplace = bool(self._overwritable(nodes, node, wanted))
            self.inplace += inplace
            result = self._translate(node, inplace)
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
        trained = isinstance(value, (torch.nn.Parameter, torch.nn.Module))
        return value if trained else value.clone()

    def call_function(self, target, args, kwargs):
        result = torch.fx.Interpreter.call_function(self, target, args, kwargs)
        if target in MACS:
            self.macs += MACS[target](result, args)
        return result

    def call_module(self, target, args, kwargs):
        self.macs += recurrent.macs(getattr(self.module, target), args[0])
        return torch.fx.Interpreter.call_module(self, target, args, kwargs)

    def run_node(self, n):
        result = torch.fx.Interpreter.run_node(self, n)
        name, shape = self.expected.get(n.name, (None, None))
        if name is not None and list(result.shape) != shape:
            raise WorkerError("unsupported", "%s: torch makes the shape %s, the graph says %s"
                              % (name, list(result.shape), shape))
        return result


def count(module, builder, device):
    """Multiply-accumulates (int) of a forward batch, counted on the calls that the module makes
    for two samples of zeros (all of them where a graph mixes samples): torch's tensors without
    data would cost an import of half a second, a whole batch its time and memory. Draws random
    numbers where dropout is on."""
    case = builder.case
    batch = case.recipe["batch"]
    samples = min(batch, 2) if graph_analysis.batch_stays_first(case, builder.nodes) else batch
    inputs = [torch.zeros([samples] + case.shape(name)[1:], dtype=TYPES[case.dtype(name)], device=device)
              for name in case.inputs + ([] if builder.forward_only else case.labels)]
    counter = Counter(module, builder, samples)
    with torch.no_grad():
        counter.run(*inputs)
    return counter.macs // samples * batch
