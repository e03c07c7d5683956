"""Reads a case bundle (docs/case-bundle.md), which describes the work of one process."""
import json
import os

import safetensors_io
from errors import WorkerError

SCHEMA = 2
IGNORED = -1  # label of a token that the loss leaves out
FILES = {"weights": "weights.safetensors", "input": "input.safetensors",
         "records": "records.bin", "read": "read.safetensors", "profile": "profile.json"}


class Case(object):
    """recipe and graph are the dicts of case.json; values maps a value's name to its dict; parameters, states,
    inputs and labels are lists of names in graph order. device, backend and options come from hello's
    Target."""

    def __init__(self, folder, target):
        self.folder = folder
        self.device, self.backend, self.options = target.device, target.backend, target.options
        path = os.path.join(folder, "case.json")
        try:
            with open(path, encoding="utf-8") as source:
                document = json.load(source)
            if document["schema"] != SCHEMA:
                raise ValueError("schema %r is not supported: this worker reads schema %d"
                                 % (document["schema"], SCHEMA))
            self.recipe = document["recipe"]
            self.graph = document["graph"]
            self.values = {value["name"]: value for value in self.graph["values"]}
            self.nodes = self.graph["nodes"]
            self.slots = self.recipe["slots"]
            if type(self.slots) is not int or self.slots < 1:
                raise ValueError("slots must be at least 1, not %r" % (self.slots,))
            self.stage = self.recipe["stage"]
            self.inputs = self._listed("input")
            self.labels = self._listed("label")
            for name in self.inputs + self.labels:
                self.values[name]
        except KeyError as error:
            raise WorkerError("invalid", "%s: %s is missing" % (path, error))
        except (OSError, ValueError, TypeError) as error:
            raise WorkerError("invalid", "%s: %s" % (path, error))
        self.parameters = self._of_kind("parameter")
        self.states = self._of_kind("state")
        self.data = document.get("data")  # for the framework's own loader, or None
        self._files = document.get("files", {})
        self._maps = {}

    def _listed(self, role):
        """Names of the graph's inputs or labels. The graph may give a single name directly."""
        names = self.graph.get(role + "s")
        if names is None:
            names = [self.graph[role]] if self.graph.get(role) else []
        if not isinstance(names, list) or role == "input" and not names:
            raise ValueError("the graph's %ss must be a list of names, not %r" % (role, names))
        return names

    def _of_kind(self, kind):
        return [v["name"] for v in self.graph["values"] if v["kind"] == kind]

    def path(self, which):
        """Path of a file of the bundle; `which` is a key of FILES."""
        return os.path.join(self.folder, self._files.get(which, FILES[which]))

    def _map(self, which):
        if which not in self._maps:
            try:
                self._maps[which] = safetensors_io.map_file(self.path(which))
            except (OSError, ValueError) as error:
                raise WorkerError("invalid", str(error))
        return self._maps[which]

    def _tensor(self, which, name, value, dtype):
        tensor = self._map(which).get(name)
        if tensor is None:
            raise WorkerError("invalid", "%s: tensor %s is missing" % (self.path(which), name))
        if tensor.shape != self.shape(value) or tensor.dtype != dtype:
            raise WorkerError("invalid", "%s: tensor %s is %s %s, but the graph says %s %s"
                              % (self.path(which), name, tensor.dtype, tensor.shape,
                                 dtype, self.shape(value)))
        return tensor

    def shape(self, name):
        """Shape (list of int) of a value."""
        return self.values[name]["shape"]

    def dtype(self, name):
        """Element type of a value: a key of safetensors_io.DTYPE_BYTES."""
        return self.values[name]["dtype"]

    def weight(self, name):
        """Tensor with the initial value of a parameter or state."""
        return self._tensor("weights", name, name, "F32")

    def batch(self, number):
        """(inputs, labels) of batch `number`: lists of Tensor in the order of `inputs` and `labels`."""
        batch = tuple(
            [self._tensor("input", "%s.%d" % (role, number) + (".%d" % i if len(names) > 1 else ""), name,
                          self.dtype(name)) for i, name in enumerate(names)]
            for role, names in (("input", self.inputs), ("label", self.labels)))
        for node in self.nodes:
            if node["op"] == "SoftmaxCrossEntropyLoss" and node["inputs"][1] in self.labels:
                self._check_labels(batch[1][self.labels.index(node["inputs"][1])],
                                   self.shape(node["inputs"][0])[-1])
        return batch

    @staticmethod
    def _check_labels(tensor, classes):
        """Raises WorkerError if a label is neither a class nor IGNORED, or if all are IGNORED."""
        labels = tensor.data.cast("q")
        if len(labels) and (min(labels) < IGNORED or not 0 <= max(labels) < classes):
            raise WorkerError("invalid", "tensor %s has labels from %d to %d; classes are 0 to %d, %d is "
                              "ignored, and at least one label must be a class"
                              % (tensor.name, min(labels), max(labels), classes - 1, IGNORED))

    def ignores_labels(self):
        """Whether the loss has to leave out labels of -1. If there is one label per sample and none in the
        bundle is -1, the loss is the plain mean over the batch."""
        if any(len(self.shape(name)) != 1 for name in self.labels):
            return True
        return any(IGNORED in tensor.data.cast("q") for name, tensor in self._map("input").items()
                   if name.startswith("label.") and tensor.dtype == "I64")

    def nodes_for(self, wanted):
        """The nodes, in order, that are needed to compute the values in `wanted` (list of names), and those that
        write a cache."""
        needed, kept = set(wanted), []
        for node in reversed(self.nodes):
            if needed.intersection(node["outputs"]) or node["op"] == "TensorScatter":
                needed.update(name for name in node["inputs"] if name)
                kept.append(node)
        return kept[::-1]
