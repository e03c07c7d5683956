"""The adapter of JAX, with the whole step under jax.jit (docs/frameworks-python.md, "jax")."""
import math
import os

import adapters

if adapters.target and adapters.target.device == "cpu":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # otherwise it reserves a GPU's memory at its start

if adapters.target and adapters.target.world_size > 1:
    os.environ.setdefault("JAX_CPU_COLLECTIVES_IMPLEMENTATION", "gloo")

import jax
import jax.numpy as jnp
import jaxlib
import numpy

import graph_analysis
import graph_attention
import graph_evaluation
from adapters import jax_ranks, jax_trace, traced_layers
from adapters.jax_operators import OPERATORS, REFUSALS
from adapters.numpy_tensors import array, batch_arrays, fill
from adapters.xla_threads import pool_threads
from errors import WorkerError
from safetensors_io import elements

SPEED_VARIABLES = ("JAX_", "XLA_", "NPROC", "OMP_", "CUDA_", "CUDNN_", "TF_")
# The types that products may have, by precision; on a CPU all three are float32.
MATMUL_PRECISION = {"fp32": "highest", "tf32": "tensorfloat32", "bf16": "default"}


def products(jaxpr, times=1):
    """Yields (equation, number of runs) for the convolutions and products in a jaxpr, its calls and its
    loops."""
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("conv_general_dilated", "dot_general"):
            yield equation, times
        if equation.params.get("name") == "_resize":  # of jax.image.resize, whose products are not the network's
            continue
        inside = times * (equation.params.get("length", 1) if equation.primitive.name == "scan" else 1)
        for inner in equation.params.values():
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from products(inner, inside)


def macs_of(jaxpr, transposed):
    """Multiply-accumulates (int) of a jaxpr; transposed: the scopes of transposed convolutions."""
    total = 0
    for equation, times in products(jaxpr):
        result, operands = equation.outvars[0].aval, [variable.aval for variable in equation.invars]
        numbers = equation.params["dimension_numbers"]
        if equation.primitive.name == "conv_general_dilated":
            if str(equation.source_info.name_stack) in transposed:
                total += times * (operands[0].size * operands[1].size // operands[0].shape[numbers.lhs_spec[1]])
            else:
                total += times * (result.size * operands[1].size // operands[1].shape[numbers.rhs_spec[0]])
        else:
            total += times * result.size * elements([operands[0].shape[axis] for axis in numbers[0][0]])
    return total


class Adapter(adapters.Adapter):
    options = ("channels_first", "explicit", "global_batch")
    collectives = "gloo"

    @property
    def no_layers(self):
        return "" if adapters.target.device == "cpu" else "the adapter does not read jax.profiler's data of GPUs"

    def profile_begin(self, steps):
        self.plain_step = self.step
        self.trace = jax_trace.layer_trace(self.case)
        self.step = self.trace.begin(self.step)

    def profile_end(self, instants):
        self.step = self.plain_step
        return self.trace.end(instants)

    def hello(self):
        self.ranks = jax_ranks.Ranks(adapters.target) if adapters.target.world_size > 1 else None
        self.gpus = []
        if "cpu" not in os.environ.get("JAX_PLATFORMS", ""):
            try:
                self.gpus = jax.devices("gpu")
            except RuntimeError:
                pass
        devices = ["cpu"] + ["cuda:%d" % i for i in range(len(self.gpus))]
        precisions = ["fp32", "bf16"] + (["tf32"] if self.gpus else [])
        return {"name": "jax", "version": jax.__version__,
                "libraries": {"jaxlib": jaxlib.__version__}, "devices": devices,
                "precisions": precisions, "stages": ["forward", "forward-backward", "train"]}

    def supports(self, case):
        known = ["fp32", "bf16"] if case.device == "cpu" else ["fp32", "bf16", "tf32"]
        return (adapters.unsupported(
            case, input=["resident", "stream"], stage=["forward", "forward-backward", "train"],
            optimiser=["sgd", "momentum", "rmsprop", "adamw"], precision=known)
            + graph_analysis.problems(case, OPERATORS, REFUSALS)
            + (self._global_problems(case) if "global_batch" in case.options else [])
            + graph_evaluation.order_problems(case))

    def _global_problems(self, case):
        if not self.ranks:
            return ["option global_batch needs several ranks"]
        return ["option global_batch: " + problem for problem in jax_ranks.global_problems(case)]

    def open(self, case):
        recipe = case.recipe
        os.environ["NPROC"] = str(recipe["threads"])  # XLA reads it when it creates its pool
        cpu = case.device == "cpu"
        self.device = jax.local_devices(backend="cpu")[0] if cpu else self.gpus[int(case.device.split(":")[1])]
        jax.config.update("jax_default_device", self.device)
        jax.config.update("jax_default_matmul_precision", MATMUL_PRECISION[recipe["precision"]])
        self.low = jnp.bfloat16 if recipe["precision"] == "bf16" else None
        self.layout = graph_evaluation.layout_for(case, "channels_first" not in case.options)
        jax.block_until_ready(jnp.zeros(1) + 1)
        effective = jax.config.jax_default_matmul_precision
        settings = {"layout": "NCHW" if "channels_first" in case.options else "NHWC", "execution": "jit, compiled ahead",
                    "matmul_precision": str(effective), "donated": "parameters, optimiser, state, gradients",
                    "async_dispatch": "on"}
        if self.ranks:
            self.ranks.divided = "global_batch" not in case.options
            settings["data_parallel"] = ("shard_map, pmean of gradients" if self.ranks.divided
                                         else "jit over a sharded batch")
        if self.low is not None:
            settings["low_precision"] = ("weights converted" if case.stage == "forward"
                                         else "products in bf16, weights fp32")
        if recipe["optimiser"] == "rmsprop":
            settings["rmsprop_epsilon"] = "outside"
        settings.update((name, os.environ[name]) for name in sorted(os.environ)
                        if name.startswith(SPEED_VARIABLES))
        # bf16 is part of the program itself; build checks it.
        asked = {word: name for name, word in MATMUL_PRECISION.items()}[effective]
        return {"device": case.device, "settings": settings, "precision": asked,
                "threads": pool_threads() if cpu else recipe["threads"]}

    def build(self, case):
        self.case = case = graph_attention.fused(case, drops=False)
        self.forward_only = case.stage == "forward"
        filters = [2, 3, 1, 0] if self.layout.last else [0, 1, 2, 3]
        self.orders = {name: graph_evaluation.kept_order(case, self.layout, name, filters)
                       for name in case.parameters + case.states}
        # The factors of a normalisation are not part of a product.
        self.wide = {name for node in case.nodes if node["op"] == "BatchNormalization"
                     for name in node["inputs"][1:]}
        self.batches = [None] * case.slots
        parameters = {name: self._weight(name) for name in case.parameters}
        state = {"parameters": parameters,
                 "states": {name: self._weight(name) for name in case.states},
                 "key": jax.random.key(case.recipe["seed"])}
        if case.stage == "train" and case.recipe["optimiser"] == "adamw":
            state["slots"] = {"m": jax.tree.map(jnp.zeros_like, parameters),
                              "s": jax.tree.map(jnp.zeros_like, parameters), "updates": jnp.zeros(())}
        elif case.stage == "train" and case.recipe["optimiser"] != "sgd":
            state["slots"] = jax.tree.map(jnp.zeros_like, parameters)
        batch = [jax.ShapeDtypeStruct(part.shape, part.dtype) for part in self._batch(*case.batch(0))]
        self.program = case  # what one program computes
        if self.ranks:
            state = self.ranks.everywhere(state)
            batch, self.program = self.ranks.program(case, batch)
        program = jax.make_jaxpr(self._forward)(parameters, state["states"], state["key"], batch).jaxpr
        transposed = {traced_layers.scope(index) for index, node in enumerate(case.nodes) if node["op"] == "ConvTranspose"}
        macs = macs_of(program, transposed) * case.recipe["batch"] // batch[0].shape[0]
        self._check_precision(program)
        self._make_step(state, batch)
        notes = ["jax.jit of the whole step"]
        if graph_analysis.normalised(case):
            notes.append("running variance divided by n")
        if case.attention_note:
            notes.append(case.attention_note)
        return {"parameters": sum(value.size for value in parameters.values()), "macs": int(macs),
                "notes": "; ".join(notes)}

    def _check_precision(self, program):
        """Raises WorkerError if the traced program's products do not have the recipe's precision."""
        wanted = jnp.dtype(self.low or jnp.float32)
        others = {operand.aval.dtype for equation, _ in products(program)
                  for operand in equation.invars} - {wanted}
        if others:
            raise WorkerError("unsupported", "precision %s did not take effect: the program multiplies %s" % (
                self.case.recipe["precision"], ", ".join(sorted(map(str, others)))))

    def _weight(self, name):
        value = jnp.array(array(self.case.weight(name), self.orders[name]))
        low = self.low is not None and self.forward_only and name not in self.wide
        return value.astype(self.low) if low else value

    def _forward(self, parameters, states, key, batch):
        """([loss or None, logits], new states) for a batch, a list of inputs and labels."""
        def product(name, value):
            if self.low is None or name in self.wide or not jnp.issubdtype(value.dtype, jnp.floating):
                return value
            return value.astype(self.low)
        given = dict(zip(self.case.inputs + self.case.labels, batch))
        values = {name: product(name, value)
                  for group in (parameters, states, given) for name, value in group.items()}
        run = graph_evaluation.Evaluation(
            self.program, self.layout, traced_layers.scoped(self.case, OPERATORS, jax.named_scope), values, key=key)
        results = run.compute(graph_analysis.wanted(self.case))
        logits = results[-1].astype(jnp.float32)
        return [None if self.forward_only else results[0], logits], dict(states, **run.updates)

    def _update(self, parameters, slots, gradients):
        """(parameters, slots) after the optimiser's update."""
        recipe = self.case.recipe
        rate, decay = recipe["learning_rate"], recipe["weight_decay"]
        if recipe.get("clip_norm"):
            norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradients)))
            factor = jnp.minimum(1.0, recipe["clip_norm"] / (norm + 1e-6))
            gradients = jax.tree.map(lambda g: factor * g, gradients)
        if recipe["optimiser"] == "adamw":
            return self._adamw(parameters, slots, gradients)
        if decay:
            gradients = jax.tree.map(lambda g, w: g + decay * w, gradients, parameters)
        if recipe["optimiser"] == "momentum":
            slots = gradients = jax.tree.map(lambda v, g: recipe["momentum"] * v + g, slots, gradients)
        elif recipe["optimiser"] == "rmsprop":
            rho, epsilon = recipe["rho"], recipe["epsilon"]
            slots = jax.tree.map(lambda s, g: rho * s + (1.0 - rho) * g * g, slots, gradients)
            gradients = jax.tree.map(lambda g, s: g / (jnp.sqrt(s) + epsilon), gradients, slots)
        return jax.tree.map(lambda w, g: w - rate * g, parameters, gradients), slots

    def _adamw(self, parameters, slots, gradients):
        recipe = self.case.recipe
        rate, betas = recipe["learning_rate"], (recipe["beta1"], recipe["beta2"])
        updates = slots["updates"] + 1
        # In float32, 1 - beta ** updates would lose digits.
        scales = [-1.0 / jnp.expm1(updates * math.log(beta)) for beta in betas]
        moments = jax.tree.map(lambda m, g: betas[0] * m + (1.0 - betas[0]) * g, slots["m"], gradients)
        squares = jax.tree.map(lambda s, g: betas[1] * s + (1.0 - betas[1]) * g * g, slots["s"], gradients)

        def updated(w, m, s):
            kept = 1.0 - rate * (recipe["weight_decay"] if w.ndim >= 2 else 0.0)
            return kept * w - rate * scales[0] * m / (jnp.sqrt(scales[1] * s) + recipe["epsilon"])
        return (jax.tree.map(updated, parameters, moments, squares),
                {"m": moments, "s": squares, "updates": updates})

    def _train(self, state, gradients, batch):
        """(new state, gradients, [loss, logits]). `old` gradients only donate their memory."""
        key, drawn = jax.random.split(state["key"]) if graph_analysis.drops(self.case) else (
            state["key"], None)

        def loss(parameters):
            results, states = self._forward(parameters, state["states"], drawn, batch)
            return results[0], (results, states)
        divided = self.ranks and self.ranks.divided
        if divided and drawn is not None:
            drawn = self.ranks.own_key(drawn)
        gradients, (results, states) = jax.grad(loss, has_aux=True)(state["parameters"])
        if divided:
            gradients = self.ranks.mean(gradients)
        state = dict(state, states=states, key=key)
        if self.case.stage == "train":
            with jax.named_scope(traced_layers.UPDATE):
                state["parameters"], slots = self._update(state["parameters"], state.get("slots"), gradients)
            if "slots" in state:
                state["slots"] = slots
        return state, gradients, results

    def _make_step(self, state, batch):
        """Compiles the step and sets step, sync and kept: [state, gradients (forward: caches), [loss, logits]]."""
        self.kept = kept = [state, None, [None, None]]
        batches = self.batches
        if self.forward_only:
            # Constant values are arguments too, because XLA would fold constants for minutes.
            written = graph_analysis.caches(self.case)
            caches = {name: state["states"].pop(name) for name in written}

            def run(caches, state, batch):
                results, states = self._forward(
                    state["parameters"], dict(state["states"], **caches), None, batch)
                return results[1], {name: states[name] for name in written}
            forward = jax.jit(run, donate_argnums=0).lower(caches, state, batch).compile()
            kept[1] = caches

            def step(slot):
                kept[2][1], kept[1] = forward(kept[1], state, batches[slot])
        else:
            kept[1] = jax.tree.map(jnp.zeros_like, state["parameters"])
            train = self._train
            if self.ranks:
                train, batch = self.ranks.mapped(train), self.ranks.whole(batch, self.case)
            train = jax.jit(train, donate_argnums=(0, 1), keep_unused=True).lower(
                state, kept[1], batch).compile()

            def step(slot):
                kept[0], kept[1], kept[2] = train(kept[0], kept[1], batches[slot])
        self.step = step
        self.sync = lambda: jax.block_until_ready(kept[2])

    def _batch(self, inputs, labels):
        """List of the arrays that a step takes: the inputs and, for training, the labels."""
        return batch_arrays(inputs, [] if self.forward_only else labels, self.layout)

    def feed(self, slot, inputs, labels):
        # jnp.array copies in the queue of the device, behind earlier steps; by then a slot of the ring may hold a later batch.
        place = self.ranks.share if self.ranks else jnp.asarray
        self.batches[slot] = [place(numpy.array(part)) for part in self._batch(inputs, labels)]

    def read(self, what, tensors):
        state, gradients, results = self.kept
        for tensor in tensors:
            if what in ("logits", "loss"):
                value = results[what == "logits"]
                order = self.layout.order(value.ndim)
            else:
                group = {"weights": state["parameters"], "state": dict(state["states"], **gradients if self.forward_only else {}),
                         "gradients": gradients}[what]
                value, order = group[tensor.name], self.orders[tensor.name]
            fill(tensor, (self.ranks.own(value) if self.ranks else value).astype(jnp.float32), order)

    def close(self):
        if self.ranks:
            jax.distributed.shutdown()

    def status_of(self, error):
        return "out-of-memory" if "RESOURCE_EXHAUSTED" in str(error) else None
