"""The adapter of Caffe: a net built from the graph, and Caffe's own solvers (docs/frameworks-discontinued.md,
"caffe"."""
import os
import tempfile

os.environ.setdefault("GLOG_minloglevel", "2")  # before the import: no log of every layer

import caffe  # noqa: E402
import numpy  # noqa: E402
import own_loader  # noqa: E402
from caffe.proto import caffe_pb2  # noqa: E402

from adapters import caffe_data  # noqa: E402
from adapters.caffe_layers import OPERATORS, REFUSALS, Net  # noqa: E402
from adapters.numpy_adapter import NumpyAdapter, gates_first  # noqa: E402
from adapters.numpy_tensors import array  # noqa: E402

SOLVERS = {"sgd": "SGD", "momentum": "SGD", "rmsprop": "RMSProp"}


class Adapter(NumpyAdapter):
    name, version = "caffe", getattr(caffe, "__version__", "1.0")
    operators, refusals = OPERATORS, REFUSALS
    inputs = ("resident", "stream", "native")

    def open(self, case):
        caffe.set_mode_cpu()
        caffe.set_random_seed(case.recipe["seed"])
        return self.opened(case, int(os.environ.get("OMP_NUM_THREADS", "1")),
                           solver=SOLVERS[case.recipe["optimiser"]])

    def build(self, case):
        self.start(case)
        self.made = Net(case)
        for node in case.nodes:
            if node["op"] == "LSTM":
                self.layouts.update((name, gates_first("ifoc")) for name in node["inputs"][1:])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.prototxt")
            with open(path, "w") as out:
                out.write(str(self.made.net))
            if case.stage == "train":
                self.solver = self.make_solver(folder, path, case.recipe)
                self.net = self.solver.net
            else:
                self.net = caffe.Net(path, caffe.TEST if case.stage == "forward" else caffe.TRAIN)
        for name in case.parameters + case.states:
            self.put(name, self.weight(name))
        self.made.finish(self.net)
        self.make_step()
        return {"parameters": sum(self.blob(name).data.size for name in case.parameters),
                "macs": self.made.macs(self.net), "notes": self.made.notes()}

    @staticmethod
    def make_solver(folder, path, recipe):
        solver = caffe_pb2.SolverParameter(
            net=path, type=SOLVERS[recipe["optimiser"]], base_lr=recipe["learning_rate"],
            lr_policy="fixed", weight_decay=recipe["weight_decay"], display=0, snapshot=0,
            snapshot_after_train=False, max_iter=2 ** 31 - 1, random_seed=recipe["seed"],
            solver_mode=caffe_pb2.SolverParameter.CPU)
        if recipe["optimiser"] == "momentum":
            solver.momentum = recipe["momentum"]
        elif recipe["optimiser"] == "rmsprop":
            solver.rms_decay, solver.delta = recipe["rho"], recipe["epsilon"]
        name = os.path.join(folder, "solver.prototxt")
        with open(name, "w") as out:
            out.write(str(solver))
        return caffe.get_solver(name)

    def blob(self, name):
        """The blob of a parameter or state."""
        layer, index = self.made.places[name]
        return self.net.params[layer][index]

    def put(self, name, value):
        if name in self.made.states:
            self.made.states[name][...] = value
            return
        blob = self.blob(name)
        blob.data[...] = (value * self.made.scales.get(name, 1)).reshape(blob.data.shape)

    def parameter(self, name):
        if name in self.made.states:
            return self.made.states[name]
        value = self.blob(name).data / numpy.float32(self.made.scales.get(name, 1))
        return value.reshape(self.case.shape(name))

    def gradient(self, name):
        if self.case.stage == "train":  # its solver overwrites gradients with the updates
            return NumpyAdapter.gradient(self, name)
        return self.blob(name).diff.reshape(self.case.shape(name))

    def make_step(self):
        batches, net = self.batches, self.net
        put = self.made.put
        if self.case.stage == "forward":
            run = net.forward
        elif self.case.stage == "forward-backward":
            def run():
                net.clear_param_diffs()
                net.forward()
                net.backward()
        else:
            advance = self.solver.step

            def run():
                advance(1)

        statistics = self.made.statistics

        def step(slot):
            put(net, *batches[slot])
            run()
            for each in statistics:
                each.follow()
        self.step = step
        self.blobs = [self.made.loss, self.made.tops[self.case.graph["logits"]]]

    def batch(self, inputs, labels):
        x = self.made.arranged(array(inputs[0]))
        y = array(labels[0]).astype(numpy.float32) if labels else numpy.zeros(len(x), numpy.float32)
        return numpy.array(x, order="C"), y

    def loader_problems(self, case):
        return caffe_data.problems(own_loader.Data(case))

    def loader(self, case):
        return caffe_data.loader(own_loader.Data(case))

    def take(self, slot, batch):
        """Returns views, because each step copies its batch into the net."""
        x, labels = batch
        self.batches[slot] = (self.made.arranged(x), labels)

    def read(self, what, tensors):
        if what in ("logits", "loss"):
            self.results = [None if name is None else self.net.blobs[name].data
                            for name in self.blobs]
        NumpyAdapter.read(self, what, tensors)
