"""The adapter of Keras 3 on TensorFlow, JAX or PyTorch, by train_on_batch and predict_on_batch
(docs/frameworks-python.md, "keras3")."""
import math
import os
import types

import adapters

BACKENDS = ("tensorflow", "jax", "torch")
backend = adapters.target.backend if adapters.target else ""
if backend in BACKENDS:
    os.environ["KERAS_BACKEND"] = backend
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("KERAS_TORCH_DEVICE", "cpu")

ranks = None
if backend == "jax" and adapters.target.world_size > 1:  # they are joined before anything uses a device
    os.environ.setdefault("JAX_CPU_COLLECTIVES_IMPLEMENTATION", "gloo")
    from adapters import jax_ranks
    ranks = jax_ranks.Ranks(adapters.target)

import keras
import numpy

import graph_analysis
import graph_attention
import graph_evaluation
from adapters import keras3_profile, keras_epochs
from adapters.keras3_layers import OPERATORS, REFUSALS, Weight, loose_parameters
from adapters.numpy_tensors import array, batch_arrays, fill
from case import IGNORED
from errors import WorkerError
from safetensors_io import elements

if ranks:
    from adapters import keras3_ranks

SPEED_VARIABLES = ("KERAS_", "TF_", "XLA_", "JAX_", "NPROC", "OMP_", "MKL_", "TORCH")
TYPES = {"F32": "float32", "F16": "float32", "I64": "int32", "I32": "int32", "BOOL": "bool"}
POLICIES = {"fp32": "float32", "bf16": "mixed_bfloat16"}


class _Tensorflow(object):
    """Calls of a backend that do not go through Keras."""

    def version(self):
        import tensorflow
        return tensorflow.__version__

    def threads(self, count):
        """Sets the number of threads; returns the number that took effect."""
        from tensorflow import config
        config.threading.set_intra_op_parallelism_threads(count)
        config.threading.set_inter_op_parallelism_threads(count)  # the same number, as by default
        return config.threading.get_intra_op_parallelism_threads()


class _Jax(object):
    def version(self):
        import jax
        return jax.__version__

    def threads(self, count):
        import jax
        from adapters.xla_threads import pool_threads
        os.environ["NPROC"] = str(count)  # XLA reads it when it creates its pool, perhaps earlier
        jax.block_until_ready(jax.numpy.zeros(1) + 1)
        return pool_threads()


class _Torch(object):
    def version(self):
        import torch
        return torch.__version__

    def threads(self, count):
        import torch
        torch.set_num_threads(count)
        if torch.get_num_interop_threads() != 1:
            torch.set_num_interop_threads(1)
        return torch.get_num_threads()


def _whole(kind):
    """A class of optimisers that gets whole gradients: on TensorFlow, Keras squares the parts of a table's gradient
    before it adds those of the same row."""
    if keras.backend.backend() != "tensorflow":
        return kind  # on torch one that Keras makes instead, for all variables together
    import tensorflow as tf

    class Whole(kind):
        def _backend_update_step(self, grads, variables, rate):
            super()._backend_update_step([tf.convert_to_tensor(g) for g in grads], variables, rate)
    return Whole


class Kept(keras.layers.Layer):
    """Passes its input on, and stores it when training, because train_on_batch does not return logits."""

    def build(self, shape):
        self.kept = self.add_weight(shape=shape, initializer="zeros", trainable=False, name="logits")

    def call(self, x, training=False):
        if training:
            self.kept.assign(x)
        return x


class Remembering(keras.Model):
    """On torch, where nothing is traced, this stores a reference to the logits: no layer and no copy."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        self.remembered.kept = y_pred.detach()
        return super().compute_loss(x, y, y_pred, sample_weight, training)


class HalfSquares(keras.losses.Loss):
    """Half the sum of squares; the labels are not used."""

    def __init__(self):
        super().__init__(reduction="sum")

    def call(self, y_true, y_pred):
        return 0.5 * keras.ops.sum(keras.ops.square(y_pred))


class ValidCrossentropy(keras.losses.Loss):
    """Mean of the cross-entropy over the valid labels."""

    def __init__(self):
        super().__init__(reduction="sum")

    def call(self, y_true, y_pred):
        valid = keras.ops.cast(y_true != IGNORED, y_pred.dtype)
        losses = keras.ops.sparse_categorical_crossentropy(keras.ops.maximum(y_true, 0), y_pred, from_logits=True)
        return keras.ops.sum(losses * valid) / keras.ops.sum(valid)


class Adapter(adapters.Adapter):
    options = ("channels_first", "eager", "explicit", "fit")
    backends = BACKENDS
    collectives = "gloo" if backend == "jax" else ""

    @property
    def no_layers(self):
        words = adapters.target.options
        if "fit" in words:
            return "the framework's own loop cannot be profiled; use --loop step"
        if "eager" in words and adapters.target.backend != "torch":
            return "eager operations do not keep the names of layers; profile without +eager"
        return ""

    def profile_begin(self, steps):
        self.plain_step = self.step
        if not self.compiled:
            self.scopes.put(self.loss, self.model.optimizer)
        self.trace = keras3_profile.trace(self.case)
        self.step = self.trace.begin(self.step)

    def profile_end(self, instants):
        self.step = self.plain_step
        if not self.compiled:
            self.scopes.take_away(self.loss, self.model.optimizer)
        return self.trace.end(instants)

    def hello(self):
        self.below = {"tensorflow": _Tensorflow, "jax": _Jax, "torch": _Torch}[keras.backend.backend()]()
        return {"name": "keras3", "version": keras.__version__,
                "libraries": {keras.backend.backend(): self.below.version()},
                "devices": ["cpu"], "precisions": sorted(POLICIES), "stages": ["forward", "train"]}

    def supports(self, case):
        reasons = adapters.unsupported(
            case, input=["resident", "stream"], stage=["forward", "train"], precision=sorted(POLICIES),
            optimiser=["sgd", "momentum", "rmsprop", "adamw"])
        if case.recipe.get("clip_norm") and case.recipe["weight_decay"] and case.recipe["optimiser"] != "adamw":
            reasons.append("clip norm with weight decay: Keras clips the sum of gradient and decay")
        if "fit" in case.options:
            reasons += ["option fit: " + reason for reason in graph_analysis.single_problems(case)]
        if "channels_first" in case.options and case.backend == "tensorflow":
            reasons.append("option channels_first: TensorFlow has no such convolutions on a CPU")
        if ranks:
            reasons += keras3_ranks.problems(case)
        return (reasons + graph_analysis.problems(case, OPERATORS, REFUSALS)
                + graph_evaluation.order_problems(case))

    def open(self, case):
        recipe = case.recipe
        last = "channels_first" not in case.options
        self.layout = graph_evaluation.layout_for(case, last)
        threads = self.below.threads(recipe["threads"])
        keras.utils.set_random_seed(recipe["seed"])  # alike on all ranks
        keras.mixed_precision.set_dtype_policy(POLICIES[recipe["precision"]])
        keras.backend.set_image_data_format("channels_last" if last else "channels_first")
        settings = {"backend": keras.backend.backend(),
                    "image_data_format": keras.backend.image_data_format(),
                    "dtype_policy": keras.mixed_precision.dtype_policy().name,
                    "loop": ("fit, predict" if "fit" in case.options
                             else "train_on_batch, predict_on_batch"),
                    "run_eagerly": str("eager" in case.options)}
        if ranks:
            settings["data_parallel"] = keras3_ranks.SETTING
        if case.stage == "train" and recipe["optimiser"] == "rmsprop":
            settings["rmsprop_epsilon"] = "inside"
        settings.update((name, os.environ[name]) for name in sorted(os.environ)
                        if name.startswith(SPEED_VARIABLES))
        asked = {policy: name for name, policy in POLICIES.items()}[settings["dtype_policy"]]
        return {"device": "cpu", "settings": settings, "precision": asked,
                "threads": threads}

    def build(self, case):
        self.whole = ranks.count if ranks else 1  # times the batch of a rank: what the model computes
        if ranks:
            keras3_ranks.divide()
            case = ranks.whole_case(case)
        self.case = case = graph_attention.fused(case, drops=False)
        self.forward_only = case.stage == "forward"
        self.batches, self.labels = [None] * case.slots, [None] * case.slots
        self.loss = self._loss()
        model = self._model()
        self._check_precision(model)
        self._load()
        optimiser = self._optimiser()
        optimiser.global_clipnorm = case.recipe.get("clip_norm")
        # Scopes cost nothing if calls are traced once.
        self.compiled = keras.backend.backend() != "torch" and "eager" not in case.options
        if self.compiled:
            self.scopes.put(self.loss, optimiser)
        model.compile(optimizer=optimiser, loss=self.loss,
                      run_eagerly="eager" in case.options)
        self._make_step(model)
        notes = ["jit_compile %s" % model.jit_compile]
        if graph_analysis.normalised(case):
            notes.append("running variance divided by n")
        if case.attention_note:
            notes.append(case.attention_note)
        return {"parameters": sum(elements(self.kept[name][0].shape) for name in case.parameters),
                "macs": int(self.macs) // self.whole, "notes": "; ".join(notes)}

    def _regularizer(self):
        """Keras' own weight_decay is not part of the gradient, as AdamW has it; an L2 penalty of half of it is."""
        decay = self.case.recipe["weight_decay"]
        if not decay or self.forward_only or self.case.recipe["optimiser"] == "adamw":
            return None
        return keras.regularizers.L2(0.5 * decay)

    def _model(self):
        """The functional model. Sets kept, {name: (variable, there, back)}, and macs."""
        case, graph = self.case, self.case.graph
        self.kept = {}
        inputs = [self._input(name) for name in case.inputs]
        values = {name: None for name in case.parameters}
        values.update((name, array(case.weight(name), self.layout.order(len(case.shape(name)))))
                      for name in case.states)
        values.update(zip(case.inputs, inputs))
        for name in loose_parameters(case):
            order = self.layout.order(len(case.shape(name)))
            layer = Weight(self.layout.shape(case.shape(name)), self._regularizer())
            values[name] = layer(inputs[0])
            self.kept[name] = (layer.kept, lambda array, order=order: array.transpose(order),
                               lambda array, order=order: array.transpose(numpy.argsort(order)))
        self.scopes = keras3_profile.Scopes(case, inputs[0])
        run = graph_evaluation.Evaluation(
            case, self.layout, self.scopes.noting(OPERATORS), values, kept=self.kept, regularizer=self._regularizer,
            data_format=keras.backend.image_data_format(), flattened={})
        logits = run.compute([graph["logits"]])[0]
        self.macs = run.macs
        if keras.backend.backend() == "torch" and case.recipe["precision"] == "fp32":
            model = Remembering(inputs, logits)
            model.remembered = self.last = types.SimpleNamespace(kept=None)
            return model
        self.last = Kept(dtype="float32")
        return keras.Model(inputs, self.last(logits))

    def _input(self, name):
        shape = self.layout.shape(self.case.shape(name))
        return keras.Input(shape=shape[1:], batch_size=shape[0], dtype=TYPES[self.case.dtype(name)])

    def _check_precision(self, model):
        """Raises WorkerError if a layer with weights does not compute in the recipe's precision."""
        wanted = keras.mixed_precision.DTypePolicy(POLICIES[self.case.recipe["precision"]]).compute_dtype
        others = {layer.compute_dtype for layer in model.layers
                  if layer.weights and not isinstance(layer, Kept)} - {wanted}
        if others:
            raise WorkerError("unsupported", "precision %s did not take effect: layers compute in %s" % (
                self.case.recipe["precision"], ", ".join(sorted(others))))

    def _load(self):
        for name, (variable, there, _) in self.kept.items():
            variable.assign(numpy.ascontiguousarray(there(array(self.case.weight(name)))))

    def _optimiser(self):
        recipe = self.case.recipe
        if recipe["optimiser"] == "rmsprop":
            return _whole(type(keras.optimizers.RMSprop()))(recipe["learning_rate"], rho=recipe["rho"],
                                                            epsilon=recipe["epsilon"])
        if recipe["optimiser"] == "adamw":
            return self._adamw()
        momentum = recipe["momentum"] if recipe["optimiser"] == "momentum" else 0.0
        return keras.optimizers.SGD(recipe["learning_rate"], momentum=momentum)

    def _adamw(self):
        """Keras' AdamW does not correct its epsilon for bias and decays all variables."""
        recipe, ops = self.case.recipe, keras.ops

        class AdamW(_whole(type(keras.optimizers.AdamW()))):
            @property
            def epsilon(self):
                updates = ops.cast(self.iterations + 1, "float32")
                # In float32, 1 - beta ** updates would lose digits.
                return recipe["epsilon"] * ops.sqrt(-ops.expm1(updates * math.log(recipe["beta2"])))

            @epsilon.setter
            def epsilon(self, value):
                pass
        made = AdamW(recipe["learning_rate"], beta_1=recipe["beta1"], beta_2=recipe["beta2"])
        made.weight_decay = recipe["weight_decay"] or None
        made.exclude_from_weight_decay([variable for name, (variable, _, _) in self.kept.items()
                                        if len(self.case.shape(name)) < 2])
        return made

    def _loss(self):
        node = [node for node in self.case.nodes if self.case.graph.get("loss") in node["outputs"]]
        if node and node[0]["op"] == "HalfSumOfSquares":
            return HalfSquares()
        if self.case.ignores_labels():
            return ValidCrossentropy()
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def _make_step(self, model):
        """Sets step. results: what the last step returned (the loss or the logits), and its slot."""
        self.model = model
        self.results = results = [None, None]
        batches = self.batches
        if self.forward_only:
            predict = model.predict_on_batch

            def step(slot):
                results[0] = predict(batches[slot][0])
        else:
            train = model.train_on_batch

            def step(slot):
                results[0], results[1] = train(*batches[slot]), slot
        self.step = step

    def fit(self, blocks, slot, mark):
        if self.forward_only:
            self.results[0] = keras_epochs.predict(self.model, self.batches, blocks, slot, mark)
        else:
            self.results[1] = keras_epochs.fit(self.model, self.batches, blocks, slot,
                                               keras_epochs.Marks(mark))

    def feed(self, slot, inputs, labels):
        # fit and predict take arrays and convert them themselves.
        convert = numpy.asarray if "fit" in self.case.options else keras.ops.convert_to_tensor
        arrays = batch_arrays(inputs, labels, self.layout)
        # Each row of logits has one label.
        label = arrays[-1].reshape(-1) if labels else numpy.zeros(inputs[0].shape[0], "int32")
        given = [convert(value.copy()) for value in arrays[:len(inputs)]]
        self.batches[slot] = (given[0] if len(given) == 1 else given, convert(label))
        self.labels[slot] = label

    def read(self, what, tensors):
        for tensor in tensors:
            if what == "loss":
                fill(tensor, numpy.asarray(self._read_loss()))
            elif what == "logits":
                fill(tensor, self._logits(), self.layout.order(len(tensor.shape)))
            elif what == "gradients":
                raise WorkerError("unsupported", "train_on_batch does not return gradients")
            else:
                variable, _, back = self.kept.get(tensor.name, (None, None, None))
                if variable is None:  # a constant
                    fill(tensor, array(self.case.weight(tensor.name)))
                else:
                    fill(tensor, back(keras.ops.convert_to_numpy(variable)))

    def _logits(self):
        """The logits of the last step; of several ranks those of its part."""
        value = self.results[0] if self.forward_only else self.last.kept
        return keras.ops.convert_to_numpy(ranks.own(value.value) if ranks else value)

    def _read_loss(self):
        """The loss that train_on_batch returned. It is computed from the logits if regularizers added to it,
        and after fit, which returns the mean of an epoch."""
        if not self.case.recipe["weight_decay"] and "fit" not in self.case.options:
            return self.results[0]
        logits = self._logits().astype("float64")
        if isinstance(self.loss, HalfSquares):
            return 0.5 * numpy.square(logits).sum()
        logits -= logits.max(axis=1, keepdims=True)
        labels = self.labels[self.results[1]]
        right = numpy.take_along_axis(logits, numpy.maximum(labels, 0)[:, None], axis=1)
        return (numpy.log(numpy.exp(logits).sum(axis=1)) - right[:, 0])[labels != IGNORED].mean()

    def status_of(self, error):
        text = str(error)
        return "out-of-memory" if any(word in text for word in (
            "RESOURCE_EXHAUSTED", "OOM when", "can't allocate memory", "out of memory")) else None
