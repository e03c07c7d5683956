"""The adapter of PaddlePaddle: its dynamic graph, layers and optimisers (docs/frameworks-python.md,
"paddle")."""
import os

import adapters


def join(target):
    """Sets what Paddle reads during its import to find the other ranks."""
    ends = ["127.0.0.1:%d" % port for port in target.ports]
    os.environ.update(PADDLE_TRAINER_ID=str(target.rank), PADDLE_TRAINERS_NUM=str(target.world_size),
                      PADDLE_MASTER=ends[0], PADDLE_TRAINER_ENDPOINTS=",".join(ends[1:]),
                      PADDLE_CURRENT_ENDPOINT=ends[1 + target.rank], PADDLE_DISTRI_BACKEND="gloo",
                      FLAGS_selected_gpus="")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


if adapters.target and adapters.target.world_size > 1:
    join(adapters.target)

import paddle

import graph_analysis
import graph_attention
from adapters.eager_program import Program
from adapters.numpy_adapter import NumpyAdapter, gates_first, speed_settings, transposed
from adapters.numpy_tensors import array
from adapters.paddle_operators import OPERATORS, REFUSALS, plain_linear, recurrent_layer


class Adapter(NumpyAdapter):
    name, version = "paddle", paddle.__version__
    operators, refusals, several = OPERATORS, REFUSALS, True
    optimisers = NumpyAdapter.optimisers + ("adamw",)
    options = ("explicit",)
    collectives = "gloo"

    def open(self, case):
        paddle.set_device("cpu")
        target = adapters.target
        self.ranks, self.seed = target.world_size, case.recipe["seed"] + target.rank  # each rank its own masks
        paddle.seed(self.seed)
        if self.ranks > 1:
            paddle.distributed.init_parallel_env()
        self.inference = paddle.no_grad()
        if case.stage == "forward":
            self.inference.__enter__()
        settings = {"execution": "dynamic", "rmsprop_epsilon": "inside"}
        if case.stage != "train" or case.recipe["optimiser"] != "rmsprop":
            del settings["rmsprop_epsilon"]
        if self.ranks > 1:
            settings["data_parallel"] = "all_reduce of each gradient"
        settings.update(speed_settings(("FLAGS_",)))
        return self.opened(case, int(os.environ.get("OMP_NUM_THREADS", "1")), **settings)

    def build(self, case):
        case = graph_attention.fused(case)
        self.start(case)
        self.layouts = {name: gates_first("ifco") for name in graph_analysis.gated(case)}
        self.layouts.update((node["inputs"][1], transposed) for node in case.nodes
                            if node["op"] == "Gemm" and plain_linear(case, node))
        self.values = {name: paddle.to_tensor(self.weight(name)) for name in case.states}
        rows, owned, self.cleared = dict(OPERATORS), {}, []
        for node in case.nodes:
            if node["op"] in ("LSTM", "RNN"):
                owned.update(self.recurrent(node))
        rows["LSTM"] = rows["RNN"] = lambda case, node: owned[node["name"]]
        for name in case.parameters:
            if name not in self.values:
                self.values[name] = self.trained(self.weight(name))
        program = Program(case, rows)
        macs = self.count(program)
        self.make_step(program)
        return {"parameters": sum(self.values[name].size for name in case.parameters),
                "macs": macs, "notes": case.attention_note}

    @staticmethod
    def trained(value):
        return paddle.create_parameter(value.shape, "float32", default_initializer=(
            paddle.nn.initializer.Assign(value)))

    def recurrent(self, node):
        """{node's name: call of a Paddle layer}. Adds the layers' parameters to the values."""
        names = node["inputs"][1:]
        layer, call = recurrent_layer(node, *[self.weight(name) for name in names])
        for name, parameter in zip(names, (layer.weight_ih_l0, layer.weight_hh_l0,
                                           layer.bias_ih_l0)):
            self.values[name] = parameter
        self.cleared.append(layer.bias_hh_l0)
        return {node["name"]: call}

    def count(self, program):
        """Multiply-accumulates of a pass over batch 0, which changes nothing."""
        kept = {name: self.values[name].numpy().copy() for name in self.case.states}
        with paddle.no_grad():
            macs = program.count(self.given(*self.case.batch(0)))
        for name, value in kept.items():
            self.values[name].set_value(value)
        paddle.seed(self.seed)
        return macs

    def batch(self, inputs, labels):
        return [paddle.to_tensor(array(tensor)) for tensor in inputs + labels]

    def optimiser(self):
        recipe = self.case.recipe
        how = {"parameters": [self.values[name] for name in self.case.parameters],
               "weight_decay": recipe["weight_decay"] or None}
        if recipe.get("clip_norm"):
            how["grad_clip"] = paddle.nn.ClipGradByGlobalNorm(recipe["clip_norm"])
        rate = recipe["learning_rate"]
        if recipe["optimiser"] == "momentum":
            return paddle.optimizer.Momentum(rate, recipe["momentum"], **how)
        if recipe["optimiser"] == "rmsprop":
            return paddle.optimizer.RMSProp(rate, recipe["rho"], recipe["epsilon"], **how)
        if recipe["optimiser"] == "adamw":
            decayed = {value.name for value in how["parameters"] if value.ndim >= 2}
            how["weight_decay"] = recipe["weight_decay"]
            return paddle.optimizer.AdamW(rate, recipe["beta1"], recipe["beta2"], recipe["epsilon"],
                                          apply_decay_param_fun=decayed.__contains__, **how)
        return paddle.optimizer.SGD(rate, **how)

    def average(self):
        """Averages the gradients over all ranks."""
        with paddle.no_grad():
            for name in self.case.parameters:
                gradient = self.values[name].grad
                paddle.distributed.all_reduce(gradient)
                gradient.scale_(1.0 / self.ranks)

    def make_step(self, program):
        self.ready = given = [None] * self.case.slots
        results = self.results
        cleared = self.cleared + [self.values[name] for name in self.case.parameters]
        update = self.optimiser().step if self.case.stage == "train" else None
        average = self.average if self.ranks > 1 else None

        def forward(slot):
            results[1], = program(given[slot])

        def train(slot):
            for parameter in cleared:
                parameter.clear_gradient(False)
            results[:] = program(given[slot])
            results[0].backward()
            if average:
                average()
            if update:
                update()
        self.step = forward if self.case.stage == "forward" else train

    def feed(self, slot, inputs, labels):
        self.ready[slot] = self.given(inputs, labels)

    def parameter(self, name):
        return self.values[name].numpy()

    def gradient(self, name):
        gradient = self.values[name].grad
        return None if gradient is None else gradient.numpy()
