"""Translates a bundle's graph to a torch.fx.GraphModule: generated Python that releases each activation after
its last use, like hand-written code. pytorch_operators.py has a row for each operator."""
import operator

import torch
import torch.fx
import torch.nn.functional as F

import adapters.pytorch_recurrent as recurrent
import graph_analysis
import graph_attention
from adapters.pytorch_operators import OPERATORS, REFUSALS, Translation
from errors import WorkerError

try:
    from torch._C import _SDPBackend as SDPBackend
except ImportError:  # before 2.1, where attention has no scale either
    SDPBackend = None

TYPES = {"F32": torch.float32, "F16": torch.float16, "I64": torch.long, "I32": torch.int32, "BOOL": torch.bool}

# Multiply-accumulates of one call, without bias: (result, arguments of the call) -> int.
MACS = {
    F.conv2d: lambda out, args: out.numel() * args[1][0].numel(),
    F.conv_transpose2d: lambda out, args: args[0].numel() * args[1][0].numel(),
    F.linear: lambda out, args: out.numel() * args[0].shape[-1],
    torch.matmul: lambda out, args: out.numel() * args[0].shape[-1],
    torch.mm: lambda out, args: out.numel() * args[0].shape[1],
    torch.addmm: lambda out, args: out.numel() * args[1].shape[1],
}

# A Relu or Clip may overwrite the result of these operators, whose gradients do not need it.
OVERWRITABLE = ("Conv", "Gemm", "Add", "Sub", "BatchNormalization", "Concat")
OVERWRITERS = ("Relu", "Clip")


def problems(case):
    """List of str: why the case's graph cannot be translated."""
    return graph_analysis.problems(case, OPERATORS, REFUSALS)


class Builder(object):
    """Builds the module of a case. `parameters` maps names to torch.nn.Parameter, `states` to Tensor; `dtype`
    is the type of a forward pass, or None for fp32 and autocast."""

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
        """Whether a node may overwrite its input: it is the only reader, and OVERWRITABLE has the input's
        operator."""
        name = node["inputs"][0]
        readers = sum(other["inputs"].count(name) for other in nodes)
        producers = [other["op"] for other in nodes if name in other["outputs"]]
        return (node["op"] in OVERWRITERS and readers == 1 and name not in wanted
                and producers and producers[0] in OVERWRITABLE)

    def _translate(self, node, inplace):
        """Appends a node; returns the fx node of its first output."""
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
    """Runs a module on a few samples, counts its multiply-accumulates in `macs` and compares torch's shapes
    with the graph's. Does not change states."""

    def __init__(self, module, builder, samples):
        torch.fx.Interpreter.__init__(self, module)
        batch = builder.case.recipe["batch"]
        self.macs = 0
        self.kernels = set()  # of attention
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
        elif SDPBackend and target == F.scaled_dot_product_attention:
            q, k = args[:2]
            self.macs += (result.numel() + q.numel()) * k.shape[-2]
            self.kernels.add(SDPBackend(torch._fused_sdp_choice(*args, **kwargs)).name.lower())
        return result

    def call_module(self, target, args, kwargs):
        self.macs += recurrent.macs(getattr(self.module, target), args[0])
        return torch.fx.Interpreter.call_module(self, target, args, kwargs)

    def run_node(self, n):
        result = torch.fx.Interpreter.run_node(self, n)
        name, shape = self.expected.get(n.name, (None, None))
        if name is not None and list(result.shape) != shape:
            raise WorkerError("unsupported", "%s: torch's result has the shape %s, but the graph says %s"
                              % (name, list(result.shape), shape))
        return result


def count(module, builder, device):
    """(multiply-accumulates (int) of a forward batch, names of the kernels of attention), found on the module's calls for two samples of zeros, or
    for the whole batch if the graph mixes samples. Torch's tensors without data would take half a second to
    import, a whole batch more time and memory. Draws random numbers if dropout is on."""
    case = builder.case
    batch = case.recipe["batch"]
    samples = min(batch, 2) if graph_analysis.batch_stays_first(case, builder.nodes) else batch
    inputs = [torch.zeros([samples] + case.shape(name)[1:], dtype=TYPES[case.dtype(name)], device=device)
              for name in case.inputs + ([] if builder.forward_only else case.labels)]
    counter = Counter(module, builder, samples)
    with torch.set_grad_enabled(not builder.forward_only):  # torch's choice of a kernel depends on it
        counter.run(*inputs)
    return counter.macs // samples * batch, sorted(counter.kernels)
