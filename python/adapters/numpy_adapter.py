"""The base class of adapters for frameworks that use NumPy arrays: reasons for unsupported cases, loading of
parameters and batches, and reading of results. A derived class sets the tables."""
import os

import numpy

import adapters
import graph_analysis
import graph_evaluation
from adapters.numpy_tensors import array, batch_arrays, fill
from errors import WorkerError

LAYOUT = graph_evaluation.Layout(last=False)  # the graph's order
SPEED_VARIABLES = ("OMP_", "MKL_", "KMP_", "GOMP_", "DNNL_", "ONEDNN_", "OPENBLAS_")


def undone(value, layout, shape):
    """The inverse of `layout`, which only moves elements: the array of a bundle's shape from which it made
    `value`."""
    indices = numpy.arange(value.size).reshape(shape)
    out = numpy.empty(value.size, value.dtype)
    out[layout(indices).ravel()] = value.ravel()
    return out.reshape(shape)


def transposed(value):
    """Converts a weight from a bundle's [out, in] to [in, out], and back."""
    return value.T


def gates_first(letters):
    """Layout of an LSTM's weight or bias with its four blocks of rows in the order `letters`."""
    order = graph_analysis.gate_order(letters)

    def layout(value):
        rows = value.shape[0] // 4
        return numpy.concatenate([value[i * rows:(i + 1) * rows] for i in order])
    return layout


def speed_settings(prefixes=()):
    """dict: the environment variables that change speed."""
    return {name: os.environ[name] for name in sorted(os.environ)
            if name.startswith(SPEED_VARIABLES + tuple(prefixes))}


def equal_maxima_setting(gradient):
    """{"equal_maxima": word}, from the result of gradient_of_equals; the gate checks it. "first": the first of
    several equal maxima gets the gradient; "each": each gets all of it; else the numbers."""
    if gradient is None:
        return {}
    numbers = tuple(float(number) for number in numpy.ravel(gradient))
    return {"equal_maxima": {(1, 0, 0, 0): "first", (1, 1, 1, 1): "each"}.get(numbers, str(numbers))}


class NumpyAdapter(adapters.Adapter):
    """operators: {operator: row}; refusals: {operator: (case, node) -> the reason or None}; layouts:
    {parameter: function that converts a bundle's array to the framework's by moving elements}."""

    operators, refusals = {}, {}
    stages = ("forward", "forward-backward", "train")
    optimisers = ("sgd", "momentum", "rmsprop")
    inputs = ("resident", "stream")  # adapters with a loader add "native"
    several = False  # whether it supports several inputs, integer inputs and ignored labels
    name = version = None
    layouts = {}

    def libraries(self):
        """dict for hello's reply: math libraries and their versions."""
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
        """The framework's gradient of a max-pool over a 2 x 2 window of ones: four numbers, or None if it is
        not tested."""
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
        """Begins a build: no batches and no results (`results` is [loss, logits])."""
        self.case, self.layouts = case, {}
        self.batches, self.results = [None] * case.slots, [None, None]

    def weight(self, name):
        """A new array with a parameter or state in the framework's layout."""
        value = array(self.case.weight(name))
        return numpy.array(self.layouts[name](value) if name in self.layouts else value, order="C")

    def batch(self, inputs, labels):
        """List of inputs and labels in the framework's layout and types, as copies."""
        return [value.copy() for value in batch_arrays(inputs, labels, LAYOUT)]

    def feed(self, slot, inputs, labels):
        self.batches[slot] = self.batch(inputs, labels)

    def given(self, inputs, labels):
        """{name in the graph: array} of a batch, and of the parameters and states in `values`."""
        names = self.case.inputs + self.case.labels
        return dict(self.values, **dict(zip(names, self.batch(inputs, labels))))

    def parameter(self, name):
        """The framework's array of a parameter or state."""
        raise NotImplementedError

    def gradient(self, name):
        """The framework's array of a parameter's gradient."""
        raise WorkerError("unsupported", "%s does not keep gradients in the stage %s"
                          % (self.name, self.case.stage))

    def read(self, what, tensors):
        for tensor in tensors:
            if what in ("logits", "loss"):
                fill(tensor, numpy.reshape(self.results[what == "logits"], tensor.shape))
                continue
            value = (self.gradient if what == "gradients" else self.parameter)(tensor.name)
            if value is None:
                raise WorkerError("invalid", "%s has no gradient" % tensor.name)
            layout = self.layouts.get(tensor.name)
            fill(tensor, undone(numpy.asarray(value), layout, tensor.shape) if layout else value)

    def status_of(self, error):
        text = str(error).lower()
        return "out-of-memory" if "out of memory" in text or "bad_alloc" in text else None
