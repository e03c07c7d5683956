"""The adapter of Keras 2 on TensorFlow 1, Theano, CNTK or MXNet: train_on_batch and predict_on_batch
(docs/frameworks-discontinued.md, "keras2")."""
import os

import numpy

import adapters

backend = adapters.target.backend if adapters.target else ""
os.environ["KERAS_BACKEND"] = backend or "tensorflow"
if backend == "theano":
    import adapters.theano_setup
    adapters.theano_setup.prepare()
if backend == "cntk":
    import adapters.cntk_setup  # noqa: F401
if backend == "tensorflow":
    import warnings
    warnings.filterwarnings("ignore")  # about Keras' use of numpy
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
from keras import backend as K  # noqa: E402

import adapters.keras2_backends as backends  # noqa: E402
import graph_analysis  # noqa: E402
from adapters import keras_epochs  # noqa: E402
from adapters.keras2_layers import OPERATORS, REFUSALS, Builder, problems  # noqa: E402
from adapters.numpy_adapter import NumpyAdapter  # noqa: E402
from adapters.numpy_tensors import array  # noqa: E402


class Marks(keras_epochs.Marks):
    """last: {name of a metric: its value} of the last batch."""

    def on_batch_end(self, batch, logs=None):
        self.last = logs


class Adapter(NumpyAdapter):
    name, version = "keras2", keras.__version__
    backends = ("tensorflow", "theano", "cntk", "mxnet")
    options = ("fit",)
    operators, refusals = OPERATORS, REFUSALS
    stages = ("forward", "train")
    optimisers = NumpyAdapter.optimisers + ("adamw",)

    def libraries(self):
        return dict(NumpyAdapter.libraries(self), **backends.libraries(backend))

    def supports(self, case):
        return NumpyAdapter.supports(self, case) + problems(case, backends.channels_last(backend))

    def open(self, case):
        numpy.random.seed(case.recipe["seed"])
        K.set_image_data_format("channels_last" if backends.channels_last(backend)
                                else "channels_first")
        threads, settings = backends.start(backend, case.recipe)
        if backend == "mxnet":
            self.sync = backends.finished
            if case.stage == "train" and case.recipe["optimiser"] == "rmsprop":
                settings["rmsprop_epsilon"] = "inside"
        return self.opened(case, threads, image_data_format=K.image_data_format(),
                           loop="fit, predict" if "fit" in case.options
                           else "train_on_batch, predict_on_batch", **settings)

    def gradient_of_equals(self):
        return backends.gradient_of_equals(backend)

    def build(self, case):
        self.start(case)
        builder = Builder(case, backends.channels_last(backend))
        logits = builder.logits()
        self.variables, self.layouts = builder.variables, builder.layouts
        self.classes = case.shape(case.graph["logits"])[1]
        self.model = model = keras.models.Model(builder.input, logits)
        # All in one call, as in a model's set_weights: TensorFlow reads the grown graph again for each call.
        K.batch_set_value([(self.variables[name], self.weight(name))
                           for name in case.parameters + case.states])
        if case.stage == "train":
            model.compile(backends.optimiser(backend, case.recipe), backends.loss(backend))
            backends.also_return(backend, model, logits)
        if backend != "mxnet":
            # Compile here and not before the first epoch: Theano takes seconds to minutes.
            (model._make_predict_function if case.stage == "forward"
             else model._make_train_function)()
        self.make_step(model)
        unbiased = backend in ("tensorflow", "theano")
        counted = sum(numpy.prod(K.int_shape(w)) for w in model.trainable_weights)
        return {"parameters": int(counted), "macs": builder.macs * case.recipe["batch"],
                "notes": graph_analysis.variance_note(case) if unbiased else ""}

    def make_step(self, model):
        batches, results = self.batches, self.results
        predict, train = model.predict_on_batch, model.train_on_batch
        self.last = last = [None]

        def forward(slot):
            results[1] = predict(batches[slot][0])

        def update(slot):
            results[:] = train(*batches[slot])
            last[0] = slot

        def update_alone(slot):
            results[0] = train(*batches[slot])
            last[0] = slot
        if backend == "mxnet":
            update = update_alone
        self.step = forward if self.case.stage == "forward" else update

    def fit(self, blocks, slot, mark):
        if self.case.stage == "forward":
            self.results[1] = keras_epochs.predict(self.model, self.batches, blocks, slot, mark)
            return
        marks = Marks(mark)
        self.last[0] = keras_epochs.fit(self.model, self.batches, blocks, slot, marks)
        self.results[:] = marks.last["loss"], marks.last["logits"]

    def batch(self, inputs, labels):
        x = array(inputs[0])
        if x.ndim == 4 and backends.channels_last(backend):
            x = x.transpose(0, 2, 3, 1)
        x = numpy.array(x, order="C")
        if not labels:
            return x, None
        return x, numpy.eye(self.classes, dtype=numpy.float32)[array(labels[0])]

    def read(self, what, tensors):
        if backend == "mxnet" and self.case.stage == "train" and what in ("logits", "loss"):
            self.results[1] = backends.trained_value(self.model)
        if what == "loss" and self.case.recipe["weight_decay"]:
            # Keras' loss includes the penalty whose gradient is the weight decay.
            logits = numpy.asarray(self.results[1], numpy.float64)
            logits -= logits.max(axis=1, keepdims=True)
            labels = self.batches[self.last[0]][1]
            self.results[0] = numpy.mean(numpy.log(numpy.exp(logits).sum(axis=1))
                                         - (logits * labels).sum(axis=1))
        NumpyAdapter.read(self, what, tensors)

    def parameter(self, name):
        return backends.value(backend, self.model, self.variables[name])
