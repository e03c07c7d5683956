#!/usr/bin/env python3
"""Our transformers against the same written with PyTorch's functions.

    PRONY_ORACLE=BUILD/tests/oracle transformer_oracle.py [--batch N] [--length N] [NETWORK...]

Our float64 interpreter and PyTorch in float64 get the same seeded weights and batch, in which some
labels are -1 (ignored). Attention is scaled_dot_product_attention, the mask is its `is_causal`, and
grouped queries its `enable_gqa`. Compared: logits, loss, and the gradients of all parameters. Exit
status 1 when a figure is out of bounds. A second row shows PyTorch in float32, which is not judged.
Needs torch.
"""
import argparse
import sys

import numpy
import torch
from torch.nn import functional

import common

BOUNDS = {"evaluation": 1e-12, "logits": 1e-12, "loss": 1e-12, "gradient": 1e-11}


class Parameters(dict):
    """Ours by name, with the layers that read them."""

    def linear(self, name, x):
        return functional.linear(x, self[name + ".weight"], self[name + ".bias"])

    def norm(self, name, x, epsilon):
        return functional.layer_norm(x, x.shape[-1:], self[name + ".scale"], self[name + ".bias"], epsilon)


def scale(features):
    """Of the scores, rounded as our state is."""
    return float(numpy.float32(features ** -0.5))


def attention(q, k, v, heads, causal, kv_heads=None, turn=lambda x: x):
    """All batch x tokens x width."""
    q, k, v = (x.unflatten(-1, (n or heads, -1)).transpose(1, 2) for x, n in
               ((q, heads), (k, kv_heads), (v, kv_heads)))
    mixed = functional.scaled_dot_product_attention(
        turn(q), turn(k), v, is_causal=causal, scale=scale(q.shape[-1]), enable_gqa=kv_heads is not None)
    return mixed.transpose(1, 2).flatten(2)


def gpt2(p, tokens, *, depth, heads):
    x = p["embed.weight"][tokens] + p["positions"][:tokens.shape[1]]
    for block in (f"block{i}." for i in range(depth)):
        q, k, v = p.linear(block + "qkv", p.norm(block + "norm1", x, 1e-5)).chunk(3, -1)
        x = x + p.linear(block + "project", attention(q, k, v, heads, True))
        y = functional.gelu(p.linear(block + "mlp1", p.norm(block + "norm2", x, 1e-5)), approximate="tanh")
        x = x + p.linear(block + "mlp2", y)
    return p.norm("norm", x, 1e-5) @ p["embed.weight"].T


def bert(p, input_ids, token_type_ids, *, depth, heads):
    x = p["words.weight"][input_ids] + p["segments.weight"][token_type_ids]
    x = p.norm("norm", x + p["positions"][:input_ids.shape[1]], 1e-12)
    for block in (f"block{i}." for i in range(depth)):
        q, k, v = (p.linear(block + part, x) for part in ("query", "key", "value"))
        y = p.linear(block + "project", attention(q, k, v, heads, False))
        x = p.norm(block + "norm1", x + y, 1e-12)
        y = p.linear(block + "mlp2", functional.gelu(p.linear(block + "mlp1", x)))
        x = p.norm(block + "norm2", x + y, 1e-12)
    x = p.norm("transform.norm", functional.gelu(p.linear("transform", x)), 1e-12)
    return functional.linear(x, p["words.weight"], p["head.bias"])


def rotary(length, features):
    """Cosines and sines of the positions' angles."""
    rates = 10000.0 ** (-torch.arange(0, features, 2, dtype=torch.float64) / features)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), rates)
    return angles.cos().float(), angles.sin().float()


def llama(p, tokens, *, depth, heads, kv_heads):
    x = p["embed.weight"][tokens]
    cosine, sine = (part.to(x.dtype) for part in rotary(tokens.shape[1], x.shape[-1] // heads))

    def turn(x):  # pairs of features as complex numbers
        real, imaginary = x.chunk(2, -1)
        return torch.cat([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)

    def norm(name, x):
        return functional.rms_norm(x, x.shape[-1:], p[name + ".scale"], 1e-5)

    for block in (f"block{i}." for i in range(depth)):
        y = norm(block + "norm1", x)
        q, k, v = (y @ p[f"{block}{part}.weight"].T for part in ("query", "key", "value"))
        x = x + attention(q, k, v, heads, True, kv_heads, turn) @ p[block + "project.weight"].T
        y = norm(block + "norm2", x)
        y = functional.silu(y @ p[block + "gate.weight"].T) * (y @ p[block + "up.weight"].T)
        x = x + y @ p[block + "down.weight"].T
    return norm("norm", x) @ p["embed.weight"].T


NETWORKS = {  # function, its sizes, words, share of ignored labels
    "gpt2": (gpt2, {"depth": 12, "heads": 12}, 50257, 0),
    "gpt2-bytes": (gpt2, {"depth": 4, "heads": 4}, 256, 0),
    "bert-base": (bert, {"depth": 12, "heads": 12}, 30522, 0.85),
    "bert-tiny": (bert, {"depth": 2, "heads": 2}, 30522, 0.85),
    "llama-small": (llama, {"depth": 30, "heads": 9, "kv_heads": 3}, 49152, 0),
    "llama-tiny": (llama, {"depth": 5, "heads": 8, "kv_heads": 4}, 512, 0),
}


def draw(weights):
    """Matrices with a deviation of 0.02, factors near 1, biases that are not 0."""
    return {ours["name"]: torch.randn(ours["shape"]) * (0.02 if len(ours["shape"]) > 1 else 0.1)
            + ours["name"].endswith(".scale") for ours in weights if ours["trained"]}


def run_theirs(function, sizes, given, inputs, labels, dtype):
    """One step, named as oracle.c names it; there is no difference between its modes."""
    p = Parameters((name, tensor.to(dtype).requires_grad_()) for name, tensor in given.items())
    logits = function(p, *inputs, **sizes).flatten(0, 1)
    loss = functional.cross_entropy(logits, labels.flatten(), ignore_index=-1)
    loss.backward()
    found = {"evaluation": logits.detach().numpy(), "logits": logits.detach().numpy(),
             "loss": loss.detach().numpy()}
    found.update(("gradient/" + name, tensor.grad.numpy()) for name, tensor in p.items())
    return found


def is_nothing(name):
    """A constant, or the gradient of a bias of keys: 0 except for rounding."""
    return name.startswith("state/") or name.endswith(".key.bias")


def check(network, batch, length):
    function, sizes, words, ignored = NETWORKS[network]
    oracle = common.Oracle(network, batch, length)
    torch.manual_seed(7)
    given = draw(oracle.weights)
    width = next(iter(given.values())).shape[-1]
    inputs = {"tokens": torch.randint(words, (batch, length))}
    if function is bert:
        inputs = {"input_ids": inputs["tokens"], "token_type_ids": torch.randint(2, (batch, length))}
    labels = torch.randint(words, (batch, length))
    labels[torch.rand(batch, length) < ignored] = -1
    labels[0, 0] = 0
    known = {"causal": torch.full((length, length), -1e9).triu(1)}
    known.update(zip(("cosine", "sine"), (part.repeat(1, 2) for part in rotary(length, width // sizes["heads"]))))
    states = {ours["name"]: known.get(ours["name"], scale(width / sizes["heads"]))
              for ours in oracle.weights if not ours["trained"]}
    ours = oracle.run({**given, **states}, {name: x.numpy() for name, x in inputs.items()}, labels.numpy())
    good = True
    for precision, dtype in (("float64", torch.float64), ("float32", torch.float32)):
        theirs = run_theirs(function, sizes, given, inputs.values(), labels, dtype)
        found = common.compare({n: v for n, v in ours.items() if not is_nothing(n)},
                               {n: v for n, v in theirs.items() if not is_nothing(n)})
        bounds = BOUNDS if dtype == torch.float64 else {}
        good = common.report(network, length, "PyTorch", precision, found, bounds) and good
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=list(NETWORKS))
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--length", type=int, default=32, help="tokens of a sequence")
    options = parser.parse_args()
    unknown = set(options.networks) - set(NETWORKS)
    if unknown:
        parser.error(f"no transformer is called {', '.join(sorted(unknown))}")
    print(f"torch {torch.__version__}")
    good = [check(network, options.batch, options.length) for network in options.networks]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
