"""LSTM, GRU and RNN as torch's own layers, which run in oneDNN or C++ loops on a CPU and in cuDNN on a GPU. Torch's
order of gates is i, f, g, o, the bundle's is i, o, f, c; torch has two biases, the bundle one. Parameters of an
LSTM are stored in torch's order; the second bias is zero and is not trained."""
import operator

import torch
import torch.nn.functional as F

from graph_analysis import gate_order, gate_order_back

GATES = "ifco"


def _in_order(value, order):
    """A copy of a tensor with its four blocks of rows in another order."""
    blocks = value.chunk(4)
    return torch.cat([blocks[i] for i in order])


def to_torch(value):
    """An LSTM's weight or bias, from the bundle's order of gates to torch's."""
    return _in_order(value, gate_order(GATES))


def from_torch(value):
    """The inverse of to_torch."""
    return _in_order(value, gate_order_back(GATES))


class Gru(torch.nn.Module):
    """A GRU with the bundle's weights: gates z, r, h. torch.gru, whose order is r, z, h, if linear_before_reset; torch
    has no other, so its steps are written out."""

    def __init__(self, weight, recurrent, bias, linear):
        super().__init__()
        self.weight_ih_l0, self.weight_hh_l0, self.bias = weight, recurrent, bias
        self.linear = linear

    def forward(self, x):
        weight, recurrent, bias = self.weight_ih_l0, self.weight_hh_l0, self.bias
        hidden = recurrent.shape[1]
        state = x.new_zeros(x.shape[0], hidden)
        if self.linear:
            second = torch.cat([bias.new_zeros(2 * hidden), bias[3 * hidden:]])
            swapped = [torch.cat([value[hidden:2 * hidden], value[:hidden], value[2 * hidden:3 * hidden]])
                       for value in (weight, recurrent, bias)]
            return torch.gru(x, state[None], swapped + [second], True, 1, 0.0, self.training, False, True)
        states = []
        for given in F.linear(x, weight, bias).unbind(1):
            update, reset = torch.sigmoid(
                given[:, :2 * hidden] + F.linear(state, recurrent[:2 * hidden])).chunk(2, 1)
            fresh = torch.tanh(given[:, 2 * hidden:] + F.linear(reset * state, recurrent[2 * hidden:]))
            state = fresh + update * (state - fresh)
            states.append(state)
        return torch.stack(states, 1), state[None]


def _module(t):
    """Torch's layer for a node."""
    op, a = t.node["op"], t.attributes
    weight, recurrent, bias = t.weights[1:]
    if op == "GRU":
        return Gru(weight, recurrent, bias, a.get("linear_before_reset", False))
    options = {"nonlinearity": a.get("activation", "Relu").lower()} if op == "RNN" else {}
    module = getattr(torch.nn, op)(weight.shape[1], recurrent.shape[1], batch_first=True, device="meta", **options)
    module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0 = weight, recurrent, bias
    module.bias_hh_l0 = torch.nn.Parameter(torch.zeros_like(bias), requires_grad=False)
    module.flatten_parameters()  # on a GPU: cuDNN needs them contiguous
    return module


def layer(t):
    """Appends a recurrent layer; returns the fx node of its last state (batch x hidden), or of all states (batch x
    time x hidden)."""
    reverse = t.attributes.get("direction", "forward") == "reverse"
    x = t.call(torch.flip, t.input(0), [1]) if reverse else t.input(0)
    result = t.module(_module(t), x)
    if t.attributes.get("sequence", False):
        states = t.call(operator.getitem, result, 0)
        return t.call(torch.flip, states, [1]) if reverse else states
    states = t.call(operator.getitem, result, 1)
    if t.node["op"] == "LSTM":
        states = t.call(operator.getitem, states, 0)  # the other one is the cell
    return t.call(torch.squeeze, states, 0)


def macs(module, x):
    """Multiply-accumulates (int) of a layer on a batch x time x features."""
    return x.shape[0] * x.shape[1] * (module.weight_ih_l0.numel() + module.weight_hh_l0.numel())
