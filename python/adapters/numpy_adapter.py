"""The base of adapters whose frameworks take and give arrays of NumPy: which cases they refuse, where
parameters and batches come from, how results go back. A derived class fills in its tables.
"""
import os

import numpy

import adapters
import graph_analysis
import graph_evaluation
from adapters.numpy_tensors import array, batch_arrays, fill
from errors import WorkerError

LAYOUT = graph_evaluation.Layout(last=False)  # values stay in the graph's order
SPEED_VARIABLES = ("OMP_", "MKL_", "KMP_", "GOMP_", "DNNL_", "ONEDNN_", "OPENBLAS_")


def undone(value, layout, shape):
    """The array of a bundle's shape that `layout`, which moves elements about and does nothing else,
    made `value` of."""
    indices = numpy.arange(value.size).reshape(shape)
    out = numpy.empty(value.size, value.dtype)
    out[layout(indices).ravel()] = value.ravel()
    return out.reshape(shape)


def transposed(value):
    """Layout of a weight [in, out], of a bundle's [out, in] and the other way round."""
    return value.T


def gates_first(letters):
    """Layout of an LSTM's weight or bias whose four blocks of rows stand in the order `letters`."""
    order = graph_analysis.gate_order(letters)

    def layout(value):
        rows = value.shape[0] // 4
        return numpy.concatenate([value[i * rows:(i + 1) * rows] for i in order])
    return layout


def speed_settings(prefixes=()):
    """dict: the variables of this process that change speed."""
    return {name: os.environ[name] for name in sorted(os.environ)
            if name.startswith(SPEED_VARIABLES + tuple(prefixes))}


def equal_maxima_setting(gradient):
    """{"equal_maxima": word} of what gradient_of_equals found, which the gate holds the framework to: "first" of
    several equal maxima has the gradient, or "each", whole; else the numbers."""
    if gradient is None:
        return {}
    numbers = tuple(float(number) for number in numpy.ravel(gradient))
    return {"equal_maxima": {(1, 0, 0, 0): "first", (1, 1, 1, 1): "each"}.get(numbers, str(numbers))}


class NumpyAdapter(adapters.Adapter):
    """operators: {operator: row}, refusals: {operator: (case, node) -> why not or None}; layouts:
    {parameter: function that turns a bundle's array into the framework's, by moving elements}."""

    operators, refusals = {}, {}
    stages = ("forward", "forward-backward", "train")
    optimisers = ("sgd", "momentum", "rmsprop")
    inputs = ("resident", "stream")  # and "native" of those with a loader
    several = False  # whether it takes several inputs, integers among them, and labels that are ignored
    name = version = None
    layouts = {}

    def libraries(self):
        """dict of hello's reply: math libraries and their versions."""
        return {"numpy": numpy.__version__}

    def hello(self):
        return {"name": self.name, "version": self.version, "libraries": self.libraries(),
                "devices": ["cpu"], "precisions": ["fp32"], "stages": list(self.stages)}

    def supports(self, case):
        reasons = adapters.unsupported(case, input=self.inputs, precision=["fp32"],
                                       stage=self.stages)
        if case.stage == "train":
            reasons += adapters.unsupported(case, optimiser=self.optimisers)
        if not self.several:
            reasons += graph_analysis.single_problems(case)
        return reasons + graph_analysis.problems(case, self.operators, self.refusals)

    def gradient_of_equals(self):
        """The gradient that the framework, asked now, gives a 2 x 2 window of ones which a max-pool of 2 x 2
        reads, where that of the maximum is 1: four numbers; None where it is not asked."""
        return None

    def opened(self, case, threads, **settings):
        """The reply to open."""
        settings.update(speed_settings())
        if graph_analysis.differentiates(case, "MaxPool"):
            settings.update(equal_maxima_setting(self.gradient_of_equals()))
        if case.stage == "train" and case.recipe["optimiser"] == "rmsprop":
            settings.setdefault("rmsprop_epsilon", "outside")
        return {"device": "cpu", "threads": threads, "precision": "fp32",
                "settings": {key: str(value) for key, value in settings.items()}}

    def start(self, case):
        """What every build begins with: no batches, and no results (`results` is [loss, logits])."""
        self.case, self.layouts = case, {}
        self.batches, self.results = [None] * case.slots, [None, None]

    def weight(self, name):
        """A new array: a parameter or state as the framework keeps it."""
        value = array(self.case.weight(name))
        return numpy.array(self.layouts[name](value) if name in self.layouts else value, order="C")

    def batch(self, inputs, labels):
        """List of inputs and labels as the framework takes them, in memory of their own."""
        return [value.copy() for value in batch_arrays(inputs, labels, LAYOUT)]

    def feed(self, slot, inputs, labels):
        self.batches[slot] = self.batch(inputs, labels)

    def given(self, inputs, labels):
        """dict of a batch, the parameters and the states by their names in the graph, where `values` has the
        latter two."""
        names = self.case.inputs + self.case.labels
        return dict(self.values, **dict(zip(names, self.batch(inputs, labels))))

    def parameter(self, name):
        """The framework's array of a parameter or state."""
        raise NotImplementedError

    def gradient(self, name):
        """The framework's array of a parameter's gradient."""
        raise WorkerError("unsupported", "%s keeps no gradients in the stage %s"
                          % (self.name, self.case.stage))

    def read(self, what, tensors):
        for tensor in tensors:
            if what in ("logits", "loss"):
                fill(tensor, numpy.reshape(self.results[what == "logits"], tensor.shape))
                continue
            value = (self.gradient if what == "gradients" else self.parameter)(tensor.name)
            if value is None:
                raise WorkerError("invalid", "no gradient of %s" % tensor.name)
            layout = self.layouts.get(tensor.name)
            fill(tensor, undone(numpy.asarray(value), layout, tensor.shape) if layout else value)

    def status_of(self, error):
        text = str(error).lower()
        return "out-of-memory" if "out of memory" in text or "bad_alloc" in text else None
