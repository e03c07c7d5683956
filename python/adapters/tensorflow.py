"""The adapter of TensorFlow 2 through its Python interface, with tf.function or eager
(docs/frameworks-python.md, "tensorflow-python")."""
import contextlib
import json
import math
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the import: no messages about the CPU

import adapters

if adapters.target and adapters.target.world_size > 1:
    os.environ["TF_CONFIG"] = json.dumps({  # before the import: who the ranks are
        "cluster": {"worker": ["127.0.0.1:%d" % port for port in adapters.target.ports[1:]]},
        "task": {"type": "worker", "index": adapters.target.rank}})

import numpy
import tensorflow as tf

import graph_analysis
import graph_evaluation
import own_loader
from adapters import tensorflow_data, traced_layers
from adapters.numpy_tensors import array, batch_arrays, fill
from adapters.tensorflow_operators import OPERATORS, REFUSALS
from errors import WorkerError
from safetensors_io import elements

SPEED_VARIABLES = ("TF_", "XLA_", "OMP_", "MKL_", "DNNL_", "ONEDNN_", "CUDA_", "CUDNN_")
FILTERS = [2, 3, 1, 0]
PRODUCTS = ("Conv2D", "DepthwiseConv2dNative", "MatMul", "BatchMatMulV2")


class Adapter(adapters.Adapter):
    options = ("eager", "xla")
    collectives = "ring over grpc"

    @property
    def no_layers(self):
        if "eager" in adapters.target.options:
            return "eager operations do not keep the names of layers; profile without +eager"
        return "" if adapters.target.device == "cpu" else "the adapter does not read tf.profiler's data of GPUs"

    def profile_begin(self, steps):
        from adapters.tensorflow_trace import layer_trace
        self.plain_step = self.step
        self.trace = layer_trace(self.case)
        self.step = self.trace.begin(self.step)

    def profile_end(self, instants):
        self.step = self.plain_step
        return self.trace.end(instants)

    def hello(self):
        self.gpus = tf.config.list_physical_devices("GPU")
        return {"name": "tensorflow-python", "version": tf.__version__,
                "libraries": {"numpy": numpy.__version__},
                "devices": ["cpu"] + ["cuda:%d" % i for i in range(len(self.gpus))],
                "precisions": ["fp32", "bf16"] + (["tf32"] if self.gpus else []),
                "stages": ["forward", "forward-backward", "train"]}

    def supports(self, case):
        known = ["fp32", "bf16"] if case.device == "cpu" else ["fp32", "bf16", "tf32"]
        reasons = adapters.unsupported(
            case, input=["resident", "stream", "native"], stage=["forward", "forward-backward", "train"],
            optimiser=["sgd", "momentum", "rmsprop", "adamw"], precision=known)
        if "eager" in case.options and "xla" in case.options:
            reasons.append("options eager and xla exclude each other")
        if adapters.target.world_size > 1:
            reasons += ["option %s is not supported with several ranks" % word for word in case.options]
        return (reasons + graph_analysis.problems(case, OPERATORS, REFUSALS)
                + graph_evaluation.order_problems(case))

    def open(self, case):
        recipe = case.recipe
        cpu = case.device == "cpu"
        if cpu:
            tf.config.set_visible_devices([], "GPU")
        else:
            tf.config.set_visible_devices(self.gpus[int(case.device.split(":")[1])], "GPU")
            self.sync = tf.test.experimental.sync_devices
        tf.config.threading.set_intra_op_parallelism_threads(recipe["threads"])
        tf.config.threading.set_inter_op_parallelism_threads(recipe["threads"])  # the same number, as by default
        tf.config.experimental.enable_tensor_float_32_execution(recipe["precision"] == "tf32")
        target, self.strategy = adapters.target, None
        if target.world_size > 1:  # before any operation
            self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        tf.random.set_seed(recipe["seed"] + target.rank)  # each rank its own masks
        self.low = tf.bfloat16 if recipe["precision"] == "bf16" else None
        self.eager, self.xla = "eager" in case.options, "xla" in case.options
        settings = {"execution": "eager" if self.eager else "tf.function",
                    "xla": "on" if self.xla else "off", "layout": "NHWC",
                    "interop_threads": str(tf.config.threading.get_inter_op_parallelism_threads())}
        if self.strategy:
            settings["data_parallel"] = "MultiWorkerMirroredStrategy"
        if self.low is not None:
            settings["low_precision"] = ("weights converted" if case.stage == "forward"
                                         else "products in bf16, weights fp32")
        if case.stage == "train" and recipe["optimiser"] == "rmsprop":
            settings["rmsprop_epsilon"] = "inside"
        settings.update((name, os.environ[name]) for name in sorted(os.environ)
                        if name.startswith(SPEED_VARIABLES))
        # bf16 is part of the graph itself; build checks it.
        tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
        return {"device": case.device, "settings": settings,
                "precision": "tf32" if tf32 else "bf16" if self.low is not None else "fp32",
                "threads": tf.config.threading.get_intra_op_parallelism_threads()}

    def build(self, case):
        self.case = case
        self.forward_only = case.stage == "forward"
        self.layout = graph_evaluation.layout_for(case, True)  # the only one of convolutions on a CPU
        self.orders = {name: graph_evaluation.kept_order(case, self.layout, name, FILTERS)
                       for name in case.parameters + case.states}
        # The factors and statistics of a normalisation stay in fp32.
        self.wide = {name for node in case.nodes if node["op"] == "BatchNormalization"
                     for name in node["inputs"][1:]}
        self.batches = [None] * case.slots
        self.variables = {name: self._variable(name, name in case.parameters)
                          for name in case.parameters + case.states}
        self.trained = [self.variables[name] for name in case.parameters]
        self.slots = [tf.Variable(tf.zeros_like(value), trainable=False) for value in self.trained
                      ] if case.stage == "train" and case.recipe["optimiser"] != "sgd" else []
        self.squares = [tf.Variable(value) for value in self.slots]
        self.updates = tf.Variable(0.0, trainable=False)
        specs = [tf.TensorSpec(part.shape, part.dtype) for part in self._batch(*case.batch(0))]
        self._make_step(specs)
        notes = ["eager" if self.eager else "tf.function of the whole step"]
        if graph_analysis.normalised(case):
            notes.append("running variance divided by n - 1")
        return {"parameters": sum(elements(value.shape) for value in self.trained),
                "macs": int(self.macs), "notes": "; ".join(notes)}

    def _variable(self, name, trained):
        value = array(self.case.weight(name), self.orders[name])
        low = self.low is not None and self.forward_only and name not in self.wide
        return tf.Variable(tf.cast(value, self.low) if low else value,
                           trainable=trained and not self.forward_only)

    def _forward(self, *batch):
        """([loss or None, logits], {state: new value}) for a batch: inputs and, for training, labels."""
        def product(name, value):
            value = tf.convert_to_tensor(value)
            return (value if self.low is None or name in self.wide or not value.dtype.is_floating
                    else tf.cast(value, self.low))
        given = dict(zip(self.case.inputs + self.case.labels, batch))
        values = {name: product(name, value)
                  for group in (self.variables, given) for name, value in group.items()}
        # Scopes cost nothing in a traced function.
        rows = OPERATORS if self.eager else traced_layers.scoped(self.case, OPERATORS, tf.name_scope)
        run = graph_evaluation.Evaluation(self.case, self.layout, rows, values)
        results = run.compute(graph_analysis.wanted(self.case))
        self.macs = run.macs
        logits = tf.cast(results[-1], tf.float32)
        return [None if self.forward_only else results[0], logits], run.updates

    def _train(self, *batch):
        """(loss, logits, list of gradients), after the update of states."""
        with tf.GradientTape() as tape:
            (loss, logits), updates = self._forward(*batch)
        # The gradient of a table is IndexedSlices; make it dense.
        gradients = [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, self.trained)]
        if self.strategy:
            gradients = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
        for name, value in updates.items():
            self.variables[name].assign(value)
        if self.case.stage == "train":
            with contextlib.nullcontext() if self.eager else tf.name_scope(traced_layers.UPDATE):
                self._update(gradients)
        return loss, logits, gradients

    def _update(self, gradients):
        """The update of tf.keras' optimisers, by TensorFlow's own operators."""
        recipe, ops = self.case.recipe, tf.raw_ops
        rate = recipe["learning_rate"]
        if recipe.get("clip_norm"):
            gradients, _ = tf.clip_by_global_norm(gradients, recipe["clip_norm"])
        if recipe["optimiser"] == "adamw":
            return self._adamw(gradients)
        for index, (w, g) in enumerate(zip(self.trained, gradients)):
            if recipe["weight_decay"]:
                g = g + recipe["weight_decay"] * w
            if recipe["optimiser"] == "sgd":
                ops.ResourceApplyGradientDescent(var=w.handle, alpha=rate, delta=g)
            elif recipe["optimiser"] == "momentum":
                ops.ResourceApplyMomentum(var=w.handle, accum=self.slots[index].handle, lr=rate,
                                          grad=g, momentum=recipe["momentum"])
            else:
                slot = self.slots[index]
                slot.assign(recipe["rho"] * slot + (1.0 - recipe["rho"]) * tf.square(g))
                w.assign_sub(rate * g * tf.math.rsqrt(slot + recipe["epsilon"]))

    def _adamw(self, gradients):
        """TensorFlow's fused Adam, whose epsilon is not corrected for bias, with a corrected one."""
        recipe, betas = self.case.recipe, (self.case.recipe["beta1"], self.case.recipe["beta2"])
        self.updates.assign_add(1.0)
        # In float32, 1 - beta ** updates would lose digits.
        mean, square = (-tf.math.expm1(self.updates * math.log(beta)) for beta in betas)
        rate, epsilon = recipe["learning_rate"] * tf.sqrt(square) / mean, recipe["epsilon"] * tf.sqrt(square)
        for w, m, s, g in zip(self.trained, self.slots, self.squares, gradients):
            if recipe["weight_decay"] and len(w.shape) >= 2:
                w.assign_sub(recipe["learning_rate"] * recipe["weight_decay"] * w)
            tf.raw_ops.ResourceApplyAdam(
                var=w.handle, m=m.handle, v=s.handle, beta1_power=0.0, beta2_power=0.0, lr=rate,
                beta1=betas[0], beta2=betas[1], epsilon=epsilon, grad=g)

    def _make_step(self, specs):
        """Sets step and kept ([loss or None, logits, list of gradients]), and traces the step."""
        self.kept = kept = [None, None, None]
        batches = self.batches
        forward, train = (lambda *batch: self._forward(*batch)[0][1]), self._train
        if self.strategy:
            train = lambda *batch: self.strategy.run(self._train, batch)
        compiled = tf.function(forward if self.forward_only else train, jit_compile=self.xla or None)
        self._check_precision(compiled.get_concrete_function(*specs).graph)
        if not self.eager:
            forward = train = compiled
        if self.forward_only:
            def step(slot):
                kept[1] = forward(*batches[slot])
        else:
            def step(slot):
                kept[:] = train(*batches[slot])
        self.step = step

    def _check_precision(self, graph):
        """Raises WorkerError if the traced graph's products do not have the recipe's precision."""
        wanted = self.low or tf.float32
        others = {source.dtype for operation in graph.get_operations() if operation.type in PRODUCTS
                  for source in operation.inputs} - {wanted}
        if others:
            raise WorkerError("unsupported", "precision %s did not take effect: the graph multiplies %s" % (
                self.case.recipe["precision"], ", ".join(sorted(kind.name for kind in others))))

    def _batch(self, inputs, labels):
        """List of the arrays that a step takes: the inputs and, for training, the labels."""
        return batch_arrays(inputs, [] if self.forward_only else labels, self.layout)

    def feed(self, slot, inputs, labels):
        self.batches[slot] = [tf.identity(tf.constant(part)) for part in self._batch(inputs, labels)]

    def loader_problems(self, case):
        return own_loader.Data(case).problems()

    def loader(self, case):
        return tensorflow_data.loader(own_loader.Data(case))

    def take(self, slot, batch):
        self.batches[slot] = batch[:1] if self.forward_only else batch

    def read(self, what, tensors):
        for tensor in tensors:
            if what in ("logits", "loss"):
                value = self.kept[what == "logits"]
                order = self.layout.order(len(value.shape))
            else:
                name = tensor.name
                value = (self.kept[2][self.case.parameters.index(name)] if what == "gradients"
                         else self.variables[name])
                order = self.orders[name]
            fill(tensor, tf.cast(value, tf.float32).numpy(), order)

    def status_of(self, error):
        return "out-of-memory" if isinstance(error, tf.errors.ResourceExhaustedError) else None
