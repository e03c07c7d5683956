"""Converts torch.profiler's events to layers of the network (docs/case-bundle.md, "profile.json"."""
import torch
import torch.fx
import torch.profiler

STEP = "prony step"
LAYER = "prony layer "
UPDATE = "Optimizer.step"  # prefix of torch's own names of updates
BACKWARD = "autograd::engine::evaluate_function: "


class Named(torch.fx.Interpreter):
    """Runs a GraphModule node by node, each under the name of its layer; `layers` maps fx names to layers."""

    def __init__(self, module, layers):
        torch.fx.Interpreter.__init__(self, module)
        self.layers = layers

    def run_node(self, n):
        layer = self.layers.get(n.name)
        if layer is None:
            return torch.fx.Interpreter.run_node(self, n)
        with torch.profiler.record_function(LAYER + layer):
            return torch.fx.Interpreter.run_node(self, n)


def layers_of(module, builder):
    """{name of an fx node that computes: name of the bundle's node}."""
    ends = {node.name: name for node, (name, _) in builder.shapes.items()}
    layers, waiting = {}, []
    for node in module.graph.nodes:
        if node.op not in ("call_function", "call_method", "call_module"):
            continue
        waiting.append(node.name)
        if node.name in ends:  # the nodes before it prepare its inputs
            layers.update((name, ends[node.name]) for name in waiting)
            waiting = []
    return layers


class LayerProfile(object):
    """Profiles steps in which each layer runs under record_function(LAYER + its name)."""

    def __init__(self):
        self.profiler = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU])

    def begin(self, step):
        """The step to run instead of `step`."""
        self.profiler.__enter__()

        def marked(slot):
            with torch.profiler.record_function(STEP):
                step(slot)
        return marked

    def end(self, instants):
        """List of dict, the events of the steps."""
        self.profiler.__exit__(None, None, None)
        found = self.profiler.events()
        steps = sorted((event for event in found if event.name == STEP),
                       key=lambda event: event.time_range.start)
        if len(steps) != len(instants) // 2:
            raise RuntimeError("torch.profiler recorded %d steps instead of %d" % (len(steps), len(instants) // 2))
        return [event for number, step in enumerate(steps)
                for event in events_of(step, number, instants[2 * number], instants[2 * number + 1])]


def descendants(event):
    for child in event.cpu_children:
        yield child
        for found in descendants(child):
            yield found


def events_of(step, number, begin, end):
    """Yields the events of one step, with times between begin and end."""
    layers = {}  # autograd's number of an operator: its layer

    def told(event, **more):
        # torch has its own clock, in microseconds, with decimals in some versions
        took = min(int(1000 * (event.time_range.end - event.time_range.start)), end - begin)
        at = begin + int(1000 * (event.time_range.start - step.time_range.start))
        return dict(more, step=number, duration_ns=max(took, 0), begin_ns=max(begin, min(at, end - took)))
    for event in step.cpu_children:
        if event.name.startswith(LAYER):
            layer = event.name[len(LAYER):]
            layers.update((child.sequence_nr, layer) for child in descendants(event)
                          if child.sequence_nr >= 0)
            for child in event.cpu_children:
                yield told(child, name=child.name, operator=child.name, layer=layer, **{"pass": "forward"})
        elif event.name.startswith(BACKWARD):
            name = event.name[len(BACKWARD):]
            layer = layers.get(event.sequence_nr)
            yield told(event, name=name, operator=name, **({"pass": "backward", "layer": layer} if layer
                                                           else {"pass": "backward"}))
        elif event.name.startswith(UPDATE):
            yield told(event, name=event.name, operator="Update", **{"pass": "update"})
        else:
            yield told(event, name=event.name, operator=event.name)
