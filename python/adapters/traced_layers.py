"""Converts traces of TensorFlow's and XLA's profiler to layers of the network (docs/case-bundle.md,
"profile.json").

An adapter makes the operations of each node in a scope of the framework, named by scope(). Names of operations
begin with the name of their scope, and compiled operations keep the names of the operations that they come
from."""
import bisect
import re
import shutil
import tempfile

import xplane
from errors import WorkerError

STEP = "prony step"
UPDATE = "prony_update_"
NODE = re.compile(r"prony_node_(\d+)_")
KERNEL = re.compile(r"([^:\s]+):(\w+)$")  # an operation of TensorFlow: name and type
# Operations that run others, which have their own events.
CALLS = ("while", "conditional", "call")
CALLS_OF_KERNELS = ("PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile", "If", "StatelessIf")
# Operations with which TensorFlow fuses others; the result has the name of the last: (word in the type,
# operator).
FUSED = re.compile(r"_(?:Mkl|MklNative)?Fused")
PRODUCTS = (("Conv", "Conv"), ("MatMul", "Gemm"), ("BatchNorm", "BatchNormalization"))


def scope(index):
    """Name of the scope of the node with this index."""
    return "prony_node_%d_" % index


def scoped(case, operators, enter):
    """An adapter's table of rows, each wrapped to run in the scope of its node; enter(name) is the framework's
    context manager."""
    places = {node["name"]: index for index, node in enumerate(case.nodes)}

    def within(row):
        def run(t, *more):
            with enter(scope(places[t.name])):
                return row(t, *more)
        return run
    return {op: row and within(row) for op, row in operators.items()}


class LayerTrace(object):
    """start(folder) and stop() are the framework's; stop writes a trace into the folder. mark(name) is a
    context manager that the trace records under that name."""

    def __init__(self, case, start, stop, mark):
        self.case, self.stop, self.mark = case, stop, mark
        self.made_by = {name: node for node in case.nodes for name in node["outputs"]}
        # In the bundle, so that it is deleted even if the worker is killed.
        self.folder = tempfile.mkdtemp(prefix="trace-", dir=case.folder)
        try:
            start(self.folder)
        except Exception:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def begin(self, step):
        """The step to run instead of `step`."""
        mark = self.mark

        def marked(slot):
            with mark(STEP):
                step(slot)
        return marked

    def end(self, instants):
        """List of dict, the events of the steps."""
        try:
            self.stop()
            events, modules = xplane.read(self.folder)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        marks = sorted(event.begin for event in events if event.name == STEP)
        if len(marks) != len(instants) // 2:
            raise WorkerError("crashed", "the profiler's trace has %d steps instead of %d"
                              % (len(marks), len(instants) // 2))
        compiled = any("hlo_op" in event.stats for event in events)
        ran = self._compiled(events, modules) if compiled else self._kernels(events)
        return _placed(ran, marks, instants)

    def _told(self, begin, duration, name, operator, made):
        """(begin, duration, dict of the event). `made`: the names of the operations that it comes from, most
        important first."""
        for said in made:
            if UPDATE in said:
                return begin, duration, {"name": name, "operator": operator, "pass": "update"}
            found = NODE.search(said)
            if found and int(found.group(1)) < len(self.case.nodes):
                back = "transpose(" in said or "gradient_tape" in said
                return begin, duration, {
                    "name": name, "operator": operator, "pass": "backward" if back else "forward",
                    "layer": self.case.nodes[int(found.group(1))]["name"]}
        return begin, duration, {"name": name, "operator": operator}

    def _compiled(self, events, modules):
        """Yields a row for each of XLA's instructions that ran. Work in other threads has a separate event at
        its end."""
        ends = {(event.stats.get("_ct"), event.stats["_c"]): event.begin
                for event in events if event.name.startswith("end: ") and "_c" in event.stats}
        for event in events:
            instruction = event.stats.get("hlo_op")
            module = modules.get(event.stats.get("program_id"))
            row = module.instructions.get(instruction) if module else None
            if row is None or row.opcode in CALLS:
                continue
            end = ends.get((event.stats.get("_pt"), event.stats.get("_p")), 0)
            yield self._told(event.begin, max(event.duration, end - event.begin), instruction,
                             row.op_name.split("/")[-1] or row.opcode, module.op_names(instruction))

    def _kernels(self, events):
        """Yields a row for each operation of TensorFlow that ran."""
        for event in events:
            found = KERNEL.match(event.name)
            if not found or found.group(2) in CALLS_OF_KERNELS or found.group(2).startswith("__"):
                continue
            made, kind = found.groups()
            row = self._told(event.begin, event.duration, made, kind, [made])
            if FUSED.match(kind) and row[2].get("pass") == "forward":
                row[2].update(self._fused(row[2]["layer"], kind))
            yield row

    def _fused(self, layer, kind):
        """dict with the layer of a fused operation, which is the product's, and the names of all its
        operations."""
        wanted = next((op for word, op in PRODUCTS if word in kind), None)
        node = next(node for node in self.case.nodes if node["name"] == layer)
        names = [layer]
        while node and node["op"] != wanted and len(names) < 5:
            node = self.made_by.get(node["inputs"][0])
            names.append(node["name"] if node else "")
        if not node or node["op"] != wanted or len(names) == 1:
            return {}
        return {"layer": node["name"], "name": " + ".join(names[::-1])}


def _placed(rows, marks, instants):
    """List of dict: the events with step, time and thread. marks: begin of each step by the trace's clock;
    instants: begin and end of each step by ours. Events of one thread do not overlap."""
    found, lanes = [], []
    for begin, duration, event in sorted(rows, key=lambda row: row[0]):
        number = bisect.bisect_right(marks, begin) - 1
        if number < 0:
            continue
        first, last = instants[2 * number], instants[2 * number + 1]
        took = min(duration, last - first)
        at = max(first, min(first + begin - marks[number], last - took))
        lane = next((i for i, free in enumerate(lanes) if free <= at), len(lanes))
        lanes[lane:lane + 1] = [at + took]
        found.append(dict(event, step=number, begin_ns=at, duration_ns=took, thread=lane))
    return found
