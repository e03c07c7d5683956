"""The adapter null computes nothing: it measures and tests prony itself. It supports everything. Weights and
states stay as loaded; everything else reads as zero."""
import platform

import adapters


class Adapter(adapters.Adapter):
    collectives = "nothing"

    def hello(self):
        return {"name": "null", "version": platform.python_version(), "libraries": {},
                "devices": ["cpu"], "precisions": ["fp32", "tf32", "fp16", "bf16"],
                "stages": ["forward", "forward-backward", "train", "load"]}

    def supports(self, case):
        return []

    def open(self, case):
        return {"device": case.device, "threads": case.recipe["threads"],
                "precision": case.recipe["precision"], "settings": {}}

    def build(self, case):
        self.case = case
        return {"parameters": None, "macs": None}

    def feed(self, slot, inputs, labels):
        pass

    def step(self, slot):
        pass

    def read(self, what, tensors):
        for tensor in tensors:
            given = what in ("weights", "state")
            tensor.data[:] = self.case.weight(tensor.name).data if given else bytes(len(tensor.data))
