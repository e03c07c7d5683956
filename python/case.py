"""The case bundle (docs/case-bundle.md): what one process has to do."""
import json
import os

import safetensors_io
from errors import WorkerError

SCHEMA = 2
FILES = {"weights": "weights.safetensors", "input": "input.safetensors",
         "records": "records.bin", "read": "read.safetensors", "profile": "profile.json"}


class Case(object):
    """recipe and graph are the dicts of case.json; values maps a value's name to its dict, and
    parameters and states are lists of names in graph order. device, backend and options are those
    of the Target that hello named."""

    def __init__(self, folder, target):
        self.folder = folder
        self.device, self.backend, self.options = target.device, target.backend, target.options
        path = os.path.join(folder, "case.json")
        try:
            with open(path, encoding="utf-8") as source:
                document = json.load(source)
            if document["schema"] != SCHEMA:
                raise ValueError("schema is %r, this worker reads %d"
                                 % (document["schema"], SCHEMA))
            self.recipe = document["recipe"]
            self.graph = document["graph"]
            self.values = {value["name"]: value for value in self.graph["values"]}
            self.nodes = self.graph["nodes"]
            self.slots = self.recipe["slots"]
            if type(self.slots) is not int or self.slots < 1:
                raise ValueError("slots must be at least 1, not %r" % (self.slots,))
            self.stage = self.recipe["stage"]
        except KeyError as error:
            raise WorkerError("invalid", "%s: %s is missing" % (path, error))
        except (OSError, ValueError, TypeError) as error:
            raise WorkerError("invalid", "%s: %s" % (path, error))
        self.parameters = self._of_kind("parameter")
        self.states = self._of_kind("state")
        self.data = document.get("data")  # for the framework's own loader, or None
        self._files = document.get("files", {})
        self._maps = {}

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
            raise WorkerError("invalid", "%s: tensor %s is %s %s, the graph says %s %s"
                              % (self.path(which), name, tensor.dtype, tensor.shape,
                                 dtype, self.shape(value)))
        return tensor

    def shape(self, name):
        """Shape (list of int) of a value."""
        return self.values[name]["shape"]

    def weight(self, name):
        """Tensor with the initial value of a parameter or state."""
        return self._tensor("weights", name, name, "F32")

    def batch(self, number):
        """(input Tensor F32, label Tensor I64 or None) of batch `number`."""
        label = self.graph.get("label")
        return (self._tensor("input", "input.%d" % number, self.graph["input"], "F32"),
                self._tensor("input", "label.%d" % number, label, "I64") if label else None)

    def nodes_for(self, wanted):
        """The nodes (in order) that the values named in the list `wanted` depend on."""
        needed, kept = set(wanted), []
        for node in reversed(self.nodes):
            if needed.intersection(node["outputs"]):
                needed.update(name for name in node["inputs"] if name)
                kept.append(node)
        return kept[::-1]
