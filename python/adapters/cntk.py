"""The adapter of CNTK 2, with its own functions, learners and trainer (docs/frameworks-discontinued.md,
"cntk"."""
import numpy

import adapters.cntk_setup  # before CNTK itself
import cntk
import graph_analysis
import own_loader
import photographs
from adapters import cntk_data
from adapters.cntk_operators import OPERATORS, REFUSALS, Translation
from adapters.numpy_adapter import NumpyAdapter, gates_first, transposed
from adapters.numpy_tensors import array


def _array(value):
    """The NumPy array of a CNTK value, an array or a list of arrays."""
    return value.asarray() if hasattr(value, "asarray") else numpy.asarray(value)


def _mean(beta, value, shape):
    """The running mean of a value, which starts with zeros and is updated in each step."""
    kept = cntk.constant(0, shape=shape)
    return cntk.assign(kept, beta * kept + (1.0 - beta) * value)


def _rmsprop(recipe):
    """The function of CNTK's universal learner: RMSprop, because CNTK's own follows another rule."""
    def updates(parameters, gradients):
        made = []
        for p, g in zip(parameters, gradients):
            g = g / recipe["batch"] + recipe["weight_decay"] * p  # CNTK sums over the samples
            root = cntk.sqrt(_mean(recipe["rho"], g * g, p.shape)) + recipe["epsilon"]
            made.append(cntk.assign(p, p - recipe["learning_rate"] * g / root))
        return cntk.combine(made)
    return updates


def _adamw(recipe):
    """The same: AdamW, because CNTK's Adam does not correct epsilon for bias. The corrections are running means of
    ones."""
    rate, betas = recipe["learning_rate"], (recipe["beta1"], recipe["beta2"])

    def updates(parameters, gradients):
        ones, made = [_mean(beta, cntk.constant(1, shape=(1,)), (1,)) for beta in betas], []
        for p, g in zip(parameters, gradients):
            g = g / recipe["batch"]  # CNTK sums over the samples
            m, s = _mean(betas[0], g, p.shape) / ones[0], _mean(betas[1], g * g, p.shape) / ones[1]
            decay = rate * recipe["weight_decay"] if len(p.shape) > 1 else 0.0
            made.append(cntk.assign(p, (1.0 - decay) * p - rate * m / (cntk.sqrt(s) + recipe["epsilon"])))
        return cntk.combine(made)
    return updates


class Adapter(NumpyAdapter):
    name, version = "cntk", cntk.__version__
    operators, refusals = OPERATORS, REFUSALS
    inputs = ("resident", "stream", "native")
    optimisers = NumpyAdapter.optimisers + ("adamw",)

    def open(self, case):
        threads = adapters.cntk_setup.start(case.recipe)
        loader = {"loader": "UserMinibatchSource"} if case.recipe["input"] == "native" else {}
        return self.opened(case, threads, learner="unit_gain=False", **loader)

    def build(self, case):
        self.start(case)
        for node in case.nodes:
            self.arrange(node)
        graph = case.graph
        self.values = {}
        for name in case.parameters:
            value = self.weight(name)
            self.values[name] = cntk.parameter(value.shape, init=value, name=name)
        self.states = {name: cntk.constant(self.weight(name), name=name) for name in case.states}
        self.x = self.make_input(case.shape(case.inputs[0]))
        self.y = cntk.input_variable(case.shape(graph["logits"])[1:])
        made, macs = dict(self.values, **self.states), 0
        made[case.inputs[0]] = self.x
        for node in case.nodes_for([graph["logits"]]):
            t = Translation(case, node, [made[name] if name else None for name in node["inputs"]])
            made[node["outputs"][0]] = OPERATORS[node["op"]](t)
            macs += t.macs
        self.make_step(made[graph["logits"]])
        return {"parameters": sum(int(numpy.prod(p.shape)) for p in self.values.values()),
                "macs": macs * case.recipe["batch"],
                "notes": graph_analysis.variance_note(case)}

    def arrange(self, node):
        """Stores weights like CNTK's own layers."""
        if node["op"] == "Gemm":
            self.layouts[node["inputs"][1]] = transposed
        elif node["op"] in ("LSTM", "RNN"):
            gates = gates_first("icfo") if node["op"] == "LSTM" else None
            for name in node["inputs"][1:]:
                self.layouts[name] = lambda w: (gates(w) if gates else w).T

    def make_input(self, shape):
        readers = [node["op"] for node in self.case.nodes if self.case.inputs[0] in node["inputs"]]
        if all(op in ("LSTM", "RNN") for op in readers):
            return cntk.sequence.input_variable(shape[2:])
        return cntk.input_variable(shape[1:])

    def make_step(self, logits):
        batches, results, recipe = self.batches, self.results, self.case.recipe
        self.gradients = None
        if self.case.stage == "forward":
            def step(slot):
                results[1] = logits.eval(batches[slot])
            self.step = step
            return
        loss = cntk.cross_entropy_with_softmax(logits, self.y)
        trained = [self.values[name] for name in self.case.parameters]
        if self.case.stage == "forward-backward":
            # The logits must be an output of the function: for logits inside the loss's function CNTK
            # fails with "GetEvalOrder: Called without prior call to FormEvalOrder()".
            outputs = [loss.output, logits.output]
            both = cntk.combine([loss, logits])

            # CNTK's own values, valid until the next step; an array of each gradient would be a needless copy.
            # read() makes arrays of the gradients that it returns.
            def step(slot):
                self.gradients, out = both.grad(batches[slot], trained, outputs, as_numpy=False,
                                                grad_root=outputs[0])
                results[:] = [out[output] for output in outputs]
            self.step = step
            return
        trainer = cntk.Trainer(logits, loss, [self.learner(recipe, trained)])

        def step(slot):
            _, out = trainer.train_minibatch(batches[slot], outputs=[logits])
            results[1] = out[logits]
        self.trainer, self.step = trainer, step

    @staticmethod
    def learner(recipe, trained):
        rate = cntk.learning_parameter_schedule(recipe["learning_rate"])
        decay = recipe["weight_decay"]
        if recipe["optimiser"] == "adamw":
            return cntk.universal(_adamw(recipe), trained)
        if recipe["optimiser"] == "rmsprop":
            return cntk.universal(_rmsprop(recipe), trained)
        if recipe["optimiser"] == "sgd":
            return cntk.sgd(trained, rate, l2_regularization_weight=decay)
        return cntk.momentum_sgd(trained, rate, cntk.momentum_schedule(recipe["momentum"]),
                                 unit_gain=False, l2_regularization_weight=decay)

    def batch(self, inputs, labels):
        given = {self.x: array(inputs[0]).copy()}
        if self.case.stage != "forward":
            classes = self.y.shape[0]
            given[self.y] = numpy.eye(classes, dtype=numpy.float32)[array(labels[0])]
        return given

    def loader_problems(self, case):
        if any(node["op"] in ("LSTM", "RNN") for node in case.nodes):
            return ["input native: CNTK's UserMinibatchSource provides no sequences for recurrent layers"]
        return photographs.problems(own_loader.Data(case))

    def loader(self, case):
        return cntk_data.loader(own_loader.Data(case), case.shape(case.graph["logits"])[1])

    def take(self, slot, batch):
        self.batches[slot] = {self.x: batch[0]}
        if self.case.stage != "forward":
            self.batches[slot][self.y] = batch[1]

    def read(self, what, tensors):
        if what == "loss":
            self.results[0] = (self.trainer.previous_minibatch_loss_average
                               if self.case.stage == "train" else numpy.mean(_array(self.results[0])))
        elif what == "logits":
            self.results[1] = _array(self.results[1])
        NumpyAdapter.read(self, what, tensors)

    def parameter(self, name):
        return self.values[name].value if name in self.values else self.states[name].value

    def gradient(self, name):
        if self.gradients is None:
            return NumpyAdapter.gradient(self, name)
        # CNTK sums over the samples; a trainer would divide.
        return _array(self.gradients[self.values[name]]) / self.case.recipe["batch"]
