"""The adapter of Theano: its own graph and gradients, and updates of shared variables
(docs/frameworks-discontinued.md, "theano")."""
import os

import numpy

import adapters.theano_setup

adapters.theano_setup.prepare()

import theano  # noqa: E402
import theano.tensor as T  # noqa: E402

import graph_analysis  # noqa: E402
from adapters.numpy_adapter import NumpyAdapter, gates_first  # noqa: E402
from adapters.theano_operators import OPERATORS, REFUSALS, Translation  # noqa: E402


def _compiler():
    """Theano's C++ compiler; "" if it has none and interprets."""
    return os.path.basename(theano.config.cxx or "")


def _zeros(weight):
    """A new shared variable like a weight, of zeros."""
    return theano.shared(numpy.zeros_like(weight.get_value(borrow=True)), broadcastable=weight.broadcastable)


class Adapter(NumpyAdapter):
    name, version = "theano", theano.__version__
    operators, refusals, several = OPERATORS, REFUSALS, True
    optimisers = NumpyAdapter.optimisers + ("adamw",)

    def supports(self, case):
        reasons = NumpyAdapter.supports(self, case)
        if not _compiler():
            reasons.append("Theano needs a C++ compiler: install g++")
        return reasons

    def open(self, case):
        threads = int(os.environ.get("OMP_NUM_THREADS", "1")) if theano.config.openmp else 1
        return self.opened(case, threads, openmp=theano.config.openmp, compiler=_compiler(),
                           blas_ldflags=theano.config.blas.ldflags, mode=theano.config.mode,
                           optimizer=theano.config.optimizer)

    def gradient_of_equals(self):
        x = theano.shared(numpy.ones((1, 1, 2, 2), numpy.float32))
        y = theano.tensor.signal.pool.pool_2d(x, (2, 2), ignore_border=True)
        return T.grad(y.sum(), x).eval()

    def build(self, case):
        self.start(case)
        for node in case.nodes:
            if node["op"] == "LSTM":
                self.layouts.update((name, _gates) for name in node["inputs"][1:])
        self.shared = {name: theano.shared(self.weight(name), name, borrow=True)
                       for name in case.parameters + case.states}
        given = [T.TensorType("float32" if case.dtype(name) in ("F32", "F16") else "int32",
                              (False,) * len(case.shape(name)))() for name in case.inputs + case.labels]
        wanted = graph_analysis.wanted(case)
        macs, made = self.translate(given, case.nodes_for(wanted))
        if case.stage == "forward":
            self.forward(theano.function(given[:len(case.inputs)], made[case.graph["logits"]], updates=self.updates))
        else:
            self.train(given, [made[name] for name in wanted])
        count = sum(self.shared[name].get_value(borrow=True).size for name in case.parameters)
        return {"parameters": count, "macs": macs,
                "notes": graph_analysis.variance_note(case)}

    def translate(self, given, nodes):
        """(multiply-accumulates, {value: Theano's variable}). Appends the updates of running statistics to
        `updates`."""
        case = self.case
        made = dict(self.shared)
        made.update(zip(case.inputs + case.labels, given))
        self.updates, macs = [], 0
        random = T.shared_randomstreams.RandomStreams(case.recipe["seed"])
        for node in nodes:
            t = Translation(case, node, [made[name] if name else None for name in node["inputs"]],
                            random, self.updates)
            made[node["outputs"][0]] = OPERATORS[node["op"]](t)
            macs += t.macs
        return macs, made

    def forward(self, function):
        batches, results, count = self.batches, self.results, len(self.case.inputs)

        def step(slot):
            results[1] = function(*batches[slot][:count])
        self.step = step

    def train(self, given, outputs):
        case = self.case
        trained = [self.shared[name] for name in case.parameters]
        gradients = T.grad(outputs[0], trained)
        if case.stage == "train":
            updates = self.rule(trained, gradients)
        else:
            # Gradients go to shared variables, to be read. When training, this second use would keep Theano
            # from fusing product and update into one Gemm in place.
            self.gradients = {name: _zeros(w) for name, w in zip(case.parameters, trained)}
            updates = [(self.gradients[name], g) for name, g in zip(case.parameters, gradients)]
        self.function = function = theano.function(given, outputs, updates=self.updates + updates)
        batches, results = self.batches, self.results

        def step(slot):
            results[:] = function(*batches[slot])
        self.step = step

    def rule(self, trained, gradients):
        """The updates of the recipe's optimiser, because Theano has no optimisers."""
        recipe = self.case.recipe
        if recipe.get("clip_norm"):
            norm = T.sqrt(sum(T.sum(T.sqr(gradient)) for gradient in gradients)) + numpy.float32(1e-6)
            factor = T.minimum(numpy.float32(1), numpy.float32(recipe["clip_norm"]) / norm)
            gradients = [gradient * factor for gradient in gradients]
        if recipe["optimiser"] == "adamw":
            return self.adamw(trained, gradients)
        rate, momentum, decay, rho, epsilon = (numpy.float32(recipe[key]) for key in (
            "learning_rate", "momentum", "weight_decay", "rho", "epsilon"))
        updates = []
        for weight, gradient in zip(trained, gradients):
            if decay:
                gradient = gradient + decay * weight
            if recipe["optimiser"] == "sgd":
                updates.append((weight, weight - rate * gradient))
                continue
            kept = _zeros(weight)
            if recipe["optimiser"] == "momentum":
                new = momentum * kept + gradient
                updates += [(kept, new), (weight, weight - rate * new)]
            else:
                new = rho * kept + (numpy.float32(1) - rho) * T.sqr(gradient)
                updates += [(kept, new),
                            (weight, weight - rate * gradient / (T.sqrt(new) + epsilon))]
        return updates

    def adamw(self, trained, gradients):
        """The updates of AdamW; the scalars of its corrections for bias are computed in float64."""
        recipe, single = self.case.recipe, numpy.float32
        done = theano.shared(numpy.float64(0))
        mean, square = (1 - recipe[key] ** (done + 1) for key in ("beta1", "beta2"))
        rate, root = T.cast(recipe["learning_rate"] / mean, "float32"), T.cast(T.sqrt(square), "float32")
        updates = [(done, done + 1)]
        for weight, gradient in zip(trained, gradients):
            first, second = _zeros(weight), _zeros(weight)
            m = single(recipe["beta1"]) * first + single(1 - recipe["beta1"]) * gradient
            s = single(recipe["beta2"]) * second + single(1 - recipe["beta2"]) * T.sqr(gradient)
            kept = weight * single(1 - recipe["learning_rate"] * recipe["weight_decay"] * (weight.ndim > 1))
            updates += [(first, m), (second, s),
                        (weight, kept - rate * m / (T.sqrt(s) / root + single(recipe["epsilon"])))]
        return updates

    def parameter(self, name):
        return self.shared[name].get_value(borrow=True)

    def gradient(self, name):
        if self.case.stage == "train":
            return NumpyAdapter.gradient(self, name)
        return self.gradients[name].get_value(borrow=True)


_gates = gates_first("ifoc")
