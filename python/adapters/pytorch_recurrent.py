"""LSTM and RNN as torch's own layers, which on a CPU are oneDNN's or loops in C++, on a GPU cuDNN's.

torch's gates come in the order i, f, g, o, the bundle's in i, o, f, c; torch adds two biases, the
bundle has one. The parameters of an LSTM are kept in torch's order, and the second bias is a zero
that is not trained.
"""
import operator

import torch

from graph_analysis import gate_order, gate_order_back

GATES = "ifco"


def _in_order(value, order):
    """A copy of a tensor whose four blocks of rows stand in another order."""
    blocks = value.chunk(4)
    return torch.cat([blocks[i] for i in order])


def to_torch(value):
    """The tensor, of an LSTM's weight or bias in the bundle's order of gates, in torch's."""
    return _in_order(value, gate_order(GATES))


def from_torch(value):
    """The other way round."""
    return _in_order(value, gate_order_back(GATES))


def layer(t, make):
    """fx node of the last state: batch x hidden. `make` makes the layer (torch.nn.RNNBase)."""
    weight, recurrent, bias = t.weights[1:]
    module = make(weight.shape[1], recurrent.shape[1], batch_first=True, device="meta")
    module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0 = weight, recurrent, bias
    module.bias_hh_l0 = torch.nn.Parameter(torch.zeros_like(bias), requires_grad=False)
    module.flatten_parameters()  # on a GPU: cuDNN wants them in one piece
    states = t.call(operator.getitem, t.module(module, t.input(0)), 1)
    if isinstance(module, torch.nn.LSTM):
        states = t.call(operator.getitem, states, 0)  # the other one is the cells'
    return t.call(torch.squeeze, states, 0)


def macs(module, x):
    """Multiply-accumulates (int) of a layer on a batch x time x features."""
    return x.shape[0] * x.shape[1] * (module.weight_ih_l0.numel() + module.weight_hh_l0.numel())
