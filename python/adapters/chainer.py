"""The adapter of Chainer: functions called one by one, its own optimisers (docs/frameworks-discontinued.md,
"chainer")."""
import math
import os
import warnings

warnings.filterwarnings("ignore")  # about Chainer's use of numpy

import chainer  # noqa: E402
import numpy  # noqa: E402

import graph_analysis  # noqa: E402
from adapters.chainer_operators import OPERATORS, REFUSALS, gates_together  # noqa: E402
from adapters.eager_program import Program  # noqa: E402
from adapters.numpy_adapter import NumpyAdapter  # noqa: E402


class Adapter(NumpyAdapter):
    name, version = "chainer", chainer.__version__
    operators, refusals, several = OPERATORS, REFUSALS, True
    optimisers = NumpyAdapter.optimisers + ("adamw",)

    def open(self, case):
        chainer.config.train = case.stage != "forward"
        chainer.config.enable_backprop = case.stage != "forward"
        numpy.random.seed(case.recipe["seed"])  # for dropout
        return self.opened(case, int(os.environ.get("OMP_NUM_THREADS", "1")),
                           use_ideep=chainer.config.use_ideep, dtype=chainer.config.dtype)

    def build(self, case):
        self.start(case)
        self.layouts = {name: gates_together for name in graph_analysis.gated(case)}
        self.link = chainer.Link()
        with self.link.init_scope():
            for i, name in enumerate(case.parameters):
                setattr(self.link, "p%d" % i, chainer.Parameter(self.weight(name)))
        self.values = {name: getattr(self.link, "p%d" % i)
                       for i, name in enumerate(case.parameters)}
        self.values.update((name, self.weight(name)) for name in case.states)
        program = Program(case, OPERATORS)
        macs = self.count(program)
        self.make_step(program, self.optimiser() if case.stage == "train" else None)
        return {"parameters": sum(p.size for p in self.link.params()), "macs": macs,
                "notes": graph_analysis.variance_note(case)}

    def count(self, program):
        """Multiply-accumulates of a pass over batch 0, which changes nothing."""
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return program.count(self.given(*self.case.batch(0)))

    def optimiser(self):
        recipe = self.case.recipe
        rate = recipe["learning_rate"]
        if recipe["optimiser"] == "momentum":
            made = chainer.optimizers.MomentumSGD(rate, recipe["momentum"])
        elif recipe["optimiser"] == "rmsprop":
            made = chainer.optimizers.RMSprop(rate, recipe["rho"], recipe["epsilon"])
        elif recipe["optimiser"] == "adamw":
            made = self.adamw()
        else:
            made = chainer.optimizers.SGD(rate)
        if recipe["optimiser"] != "adamw":  # a second setup would forget which parameters do not decay
            made.setup(self.link)
        if recipe.get("clip_norm"):
            made.add_hook(chainer.optimizer_hooks.GradientClipping(recipe["clip_norm"]))
        if recipe["weight_decay"] and recipe["optimiser"] != "adamw":
            made.add_hook(chainer.optimizer_hooks.WeightDecay(recipe["weight_decay"]))
        return made

    def adamw(self):
        """Chainer's AdamW multiplies decay by no rate and does not correct epsilon for bias."""
        recipe = self.case.recipe
        decay, beta2 = recipe["learning_rate"] * recipe["weight_decay"], recipe["beta2"]

        class AdamW(chainer.optimizers.AdamW):
            def update(self, *arguments, **keywords):
                self.eps = recipe["epsilon"] * math.sqrt(1.0 - beta2 ** (self.t + 1))
                super(AdamW, self).update(*arguments, **keywords)
        made = AdamW(recipe["learning_rate"], recipe["beta1"], beta2, recipe["epsilon"], weight_decay_rate=decay)
        made.setup(self.link)
        for parameter in self.link.params():
            if parameter.ndim < 2:
                parameter.update_rule.hyperparam.weight_decay_rate = 0.0
        return made

    def make_step(self, program, optimiser):
        given, results = [None] * self.case.slots, self.results
        self.ready = given
        clear = self.link.cleargrads

        def forward(slot):
            results[1], = program(given[slot])

        def train(slot):
            loss, logits = program(given[slot])
            clear()
            loss.backward()
            if optimiser:
                optimiser.update()
            results[:] = loss.array, logits.array
        self.step = forward if self.case.stage == "forward" else train

    def feed(self, slot, inputs, labels):
        self.ready[slot] = self.given(inputs, labels)

    def read(self, what, tensors):
        if self.case.stage == "forward" and what == "logits":
            self.results[1] = getattr(self.results[1], "array", self.results[1])
        NumpyAdapter.read(self, what, tensors)

    def parameter(self, name):
        return getattr(self.values[name], "array", self.values[name])

    def gradient(self, name):
        recipe = self.case.recipe
        if self.case.stage == "train" and (recipe["weight_decay"] or recipe.get("clip_norm")):  # hooks change it
            return NumpyAdapter.gradient(self, name)
        return self.values[name].grad
