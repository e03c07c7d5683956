"""LSTM and RNN as torch's own layers, which run in oneDNN or C++ loops on a CPU and in cuDNN on a GPU. Torch's
order of gates is i, f, g, o, the bundle's is i, o, f, c; torch has two biases, the bundle one. Parameters of an
LSTM are stored in torch's order; the second bias is zero and is not trained."""
import operator

import torch

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


def layer(t, make):
    """Appends a recurrent layer; returns the fx node of the last state (batch x hidden). `make` creates the
    layer (torch.nn.RNNBase)."""
    weight, recurrent, bias = t.weights[1:]
    module = make(weight.shape[1], recurrent.shape[1], batch_first=True, device="meta")
    module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0 = weight, recurrent, bias
    module.bias_hh_l0 = torch.nn.Parameter(torch.zeros_like(bias), requires_grad=False)
    module.flatten_parameters()  # on a GPU: cuDNN needs them contiguous
    states = t.call(operator.getitem, t.module(module, t.input(0)), 1)
    if isinstance(module, torch.nn.LSTM):
        states = t.call(operator.getitem, states, 0)  # the other one is the cell
    return t.call(torch.squeeze, states, 0)


def macs(module, x):
    """Multiply-accumulates (int) of a layer on a batch x time x features."""
    return x.shape[0] * x.shape[1] * (module.weight_ih_l0.numel() + module.weight_hh_l0.numel())
