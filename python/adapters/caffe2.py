"""The adapter of Caffe2: a net built from the graph, run in Caffe2's workspace, with its own optimisers
(docs/frameworks-discontinued.md, "caffe2")."""
import os

import numpy
from caffe2.python import core, model_helper, optimizer, workspace
from caffe2.python.modeling.parameter_info import ParameterInfo, ParameterTags

import adapters
import graph_analysis
from adapters.caffe2_operators import OPERATORS, REFUSALS, WEIGHTS, Builder
from adapters.numpy_adapter import LAYOUT, NumpyAdapter
from adapters.numpy_tensors import batch_arrays
from case import IGNORED
from errors import WorkerError

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
workspace.GlobalInit(["caffe2", "--caffe2_log_level=2", "--caffe2_omp_num_threads=%d" % THREADS,
                      "--caffe2_mkl_num_threads=%d" % THREADS])


def _version():
    """The version of the package of PyTorch, which contains Caffe2; torch itself is not imported."""
    try:
        from importlib import metadata  # Python 3.8
        return metadata.version("torch")
    except ImportError:
        import torch
        return torch.__version__


class Adapter(NumpyAdapter):
    name, version = "caffe2", _version()
    operators, refusals, several = OPERATORS, REFUSALS, True
    optimisers = NumpyAdapter.optimisers + ("adamw",)
    collectives = "gloo"

    def open(self, case):
        self.ranks = adapters.target.world_size
        settings = {"net_type": "simple"}
        if self.ranks > 1:
            settings["data_parallel"] = "Allreduce of each gradient"
        if case.stage == "train" and case.recipe["optimiser"] == "rmsprop":
            settings["rmsprop_epsilon"] = "inside"
        return self.opened(case, THREADS, **settings)

    def gradient_of_equals(self):
        workspace.ResetWorkspace()
        net = core.Net("equals")
        y = net.MaxPool("x", "y", kernel=2, stride=2, order="NCHW")
        gradients = net.AddGradientOperators([net.SumElements(y, "sum")])
        workspace.FeedBlob("x", numpy.ones((1, 1, 2, 2), numpy.float32))
        workspace.RunNetOnce(net)
        return workspace.FetchBlob(str(gradients["x"]))

    def build(self, case):
        self.start(case)
        workspace.ResetWorkspace()
        graph = case.graph
        self.fed = case.inputs + case.labels[:case.stage != "forward"]
        self.fed += [name + WEIGHTS for name in case.labels]
        self.model = model = model_helper.ModelHelper(
            graph["name"], init_params=False, arg_scope={"order": "NCHW"})
        self.builder = builder = Builder(case, model)
        logits = builder.logits()
        loss = builder.loss() if case.stage != "forward" else None
        self.blobs = builder.blobs
        self.layouts = builder.layouts
        self.load()
        macs = self.count(model.net)
        if loss:
            self.differentiate(model, loss)
        # The init net reads the parameters' shapes and refills rnn_cell's layers: load before and after it.
        workspace.RunNetOnce(model.param_init_net)
        self.load()
        workspace.CreateNet(model.net, overwrite=True)
        self.make_step(model.net.Name())
        self.outputs = [loss and str(loss), str(logits)]
        return {"parameters": sum(int(workspace.FetchBlob(self.blobs.get(name, name)).size)
                                  for name in case.parameters),
                "macs": macs, "notes": graph_analysis.variance_note(case)}

    def load(self):
        """Sets the blobs of parameters, states and constants."""
        for name in self.case.parameters + self.case.states:
            workspace.FeedBlob(self.blobs.get(name, name), self.weight(name))
        for name, value in self.builder.constants.items():
            workspace.FeedBlob(name, value)
        for rows, table in self.builder.tables:  # they share the memory, so the update reaches both
            workspace.RunOperatorOnce(core.CreateOperator("Alias", [table], [rows]))

    def count(self, net):
        """Multiply-accumulates of a pass over batch 0, counted on the blobs. Changes states."""
        self.give(*self.batch(*self.case.batch(0)))
        workspace.RunNetOnce(net)
        macs = 0
        for node in self.builder.nodes:
            out = node["outputs"][0]
            shape = list(workspace.FetchBlob(out).shape)
            if shape != self.case.shape(out):
                raise WorkerError("unsupported", "%s: Caffe2's result has the shape %s, but the graph says %s"
                                  % (node["name"], shape, self.case.shape(out)))
            macs += self.builder.macs(node)
        return int(macs)

    def differentiate(self, model, loss):
        """Appends the backward pass and, for training, the updates."""
        recipe = self.case.recipe
        owned = {str(blob) for blob in model.params}
        for name in self.case.parameters:
            if self.blobs.get(name, name) not in owned:
                model.AddParameter(core.BlobReference(name), ParameterTags.WEIGHT)
        model.params = [blob for blob in model.params if str(blob) not in self.builder.constants]
        model.weights = list(model.params)  # all parameters decay
        for blob in model.params:
            if not model.param_init_net.BlobIsDefined(blob):
                model.param_init_net.AddExternalInput(blob)
        self.add_gradients_of_tables(model, model.AddGradientOperators([loss]))
        if self.ranks > 1:
            self.average(model)
        self.gradients = {str(blob): str(grad) for blob, grad in model.param_to_grad.items()}
        if self.case.stage != "train":
            return
        rate = recipe["learning_rate"]
        if recipe["optimiser"] == "adamw":
            self.adamw(model)
            return
        if recipe["weight_decay"]:
            optimizer.add_weight_decay(model, recipe["weight_decay"])
        if recipe["optimiser"] == "rmsprop":
            optimizer.build_rms_prop(model, rate, epsilon=recipe["epsilon"], decay=recipe["rho"],
                                     momentum=0.0, policy="fixed")
        else:
            momentum = recipe["momentum"] if recipe["optimiser"] == "momentum" else 0.0
            optimizer.build_sgd(model, rate, policy="fixed", momentum=momentum, nesterov=0)

    def adamw(self, model):
        """Appends the updates of AdamW, because Caffe2's own does not correct epsilon for bias. The corrections are
        running means of ones."""
        recipe, net = self.case.recipe, model.net
        decay = 1.0 - recipe["learning_rate"] * recipe["weight_decay"]

        def constant(name, value):
            return model.param_init_net.ConstantFill([], "adamw." + name, value=value, shape=[1])

        def mean(name, kept, value):
            beta = recipe[name]
            return net.WeightedSum([kept, constant(name, beta), value, constant("1-" + name, 1.0 - beta)], kept)

        def zeros(weight, name):
            return model.param_init_net.ConstantFill([weight], "%s.%s" % (weight, name), value=0.0)
        one, epsilon, rate = constant("1", 1.0), constant("epsilon", recipe["epsilon"]), constant(
            "rate", -recipe["learning_rate"])
        ones = [mean(name, constant("mean of " + name, 0.0), one) for name in ("beta1", "beta2")]
        for weight, gradient in model.param_to_grad.items():
            matrix = len(workspace.FetchBlob(str(weight)).shape) > 1
            m, s = "adamw.m", net.Sqr(gradient, "adamw.s")  # the net runs one operator at a time
            m = net.Div([mean("beta1", zeros(weight, "m"), gradient), ones[0]], m, broadcast=1)
            s = net.Div([mean("beta2", zeros(weight, "s"), s), ones[1]], s, broadcast=1)
            s = net.Add([net.Sqrt(s, s), epsilon], s, broadcast=1)
            net.WeightedSum([weight, constant("kept", decay) if matrix else one, net.Div([m, s], m), rate], weight)

    def add_gradients_of_tables(self, model, gradients):
        """Makes the gradients of tables dense and adds them to those of other readers."""
        for rows, table in self.builder.tables:
            part, table = gradients[rows], core.BlobReference(table)
            dense = model.net.SparseToDense([part.indices, part.values, table], rows + ".gradient")
            if table in model.param_to_grad:
                dense = model.net.Add([dense, model.param_to_grad[table]], rows + ".sum")
            model.param_to_grad[table] = dense
            model._parameters_info[table] = ParameterInfo(None, table, grad=dense)

    def average(self, model):
        """Joins the other ranks and appends the averages of the gradients over all of them."""
        workspace.RunOperatorOnce(core.CreateOperator(
            "FileStoreHandlerCreate", [], ["ranks.store"], path=adapters.target.folder, prefix="caffe2"))
        workspace.RunOperatorOnce(core.CreateOperator(
            "CreateCommonWorld", ["ranks.store"], ["ranks"], size=self.ranks, rank=adapters.target.rank,
            engine="GLOO", interface="lo", transport="tcp"))
        for gradient in model.param_to_grad.values():
            model.net.Allreduce(["ranks", gradient], [gradient], engine="GLOO")
            model.net.Scale(gradient, gradient, scale=1.0 / self.ranks)

    def give(self, *arrays):
        """Copies a batch to the net's inputs."""
        for name, value in zip(self.fed, arrays):
            workspace.FeedBlob(name, value)

    def make_step(self, net):
        batches, give, run = self.batches, self.give, workspace.RunNet

        def step(slot):
            give(*batches[slot])
            run(net)
        self.step = step

    def batch(self, inputs, labels):
        found = batch_arrays(inputs, labels, LAYOUT)
        found[0] = self.builder.arranged(found[0])
        if self.case.stage == "forward":
            found = found[:len(inputs)]
        elif self.case.ignores_labels():
            valid = found[-1] != IGNORED
            found[-1:] = [numpy.maximum(found[-1], 0), valid.astype(numpy.float32)]
        return [numpy.array(value, order="C") for value in found]

    def read(self, what, tensors):
        if what in ("logits", "loss"):
            self.results = [name and workspace.FetchBlob(name) for name in self.outputs]
        NumpyAdapter.read(self, what, tensors)

    def parameter(self, name):
        return workspace.FetchBlob(self.blobs.get(name, name))

    def gradient(self, name):
        if self.case.stage == "train":  # its optimisers overwrite gradients with the updates
            return NumpyAdapter.gradient(self, name)
        return workspace.FetchBlob(self.gradients[self.blobs.get(name, name)])
