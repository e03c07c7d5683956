#!/usr/bin/env python3
"""Our network tagger against the same written with PyTorch's own modules.

    PRONY_ORACLE=BUILD/tests/oracle tagger_oracle.py [--batch N]

Our float64 interpreter and PyTorch in float64 get the same seeded weights and batch, in which tokens
repeat and a fifth of the labels are -1 (ignored). Compared: logits, loss, and the gradients of all
parameters, that of the embedding included. Exit status 1 when a figure is out of bounds. A second
row shows PyTorch in float32, which is not judged. Needs torch.
"""
import argparse
import sys

import numpy
import torch

import common

BOUNDS = {"evaluation": 1e-12, "logits": 1e-12, "loss": 1e-12, "gradient": 1e-12}


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(64, 24)
        self.hidden = torch.nn.Linear(32, 48)
        self.tags = torch.nn.Linear(48, 10)

    def forward(self, tokens, features):
        rows = torch.cat([self.embed(tokens), features], dim=-1).flatten(0, 1)
        return self.tags(torch.tanh(self.hidden(rows)))


def run_theirs(model, tokens, features, labels):
    """One step, named as oracle.c names it; there is no difference between its modes."""
    logits = model(tokens, features)
    loss = torch.nn.functional.cross_entropy(logits, labels.flatten(), ignore_index=-1)
    loss.backward()
    found = {"evaluation": logits.detach().numpy(), "logits": logits.detach().numpy(),
             "loss": loss.detach().numpy()}
    for name, parameter in model.named_parameters():
        found["gradient/" + name] = parameter.grad.numpy()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=8)
    batch = parser.parse_args().batch
    torch.manual_seed(7)
    model = Tagger()
    tokens = torch.randint(64, (batch, 16))
    features = torch.randn(batch, 16, 8)
    labels = torch.where(torch.rand(batch, 16) < 0.2, -1, torch.randint(10, (batch, 16)))
    ours = common.Oracle("tagger", batch).run(
        {name: tensor.numpy() for name, tensor in model.state_dict().items()},
        {"tokens": tokens.numpy(), "features": features.numpy().astype(numpy.float32)},
        labels.numpy())
    print(f"torch {torch.__version__}")
    good = True
    for precision, dtype in (("float64", torch.float64), ("float32", torch.float32)):
        model.to(dtype).zero_grad()
        found = common.compare(ours, run_theirs(model, tokens, features.to(dtype), labels))
        bounds = BOUNDS if dtype == torch.float64 else {}
        good = common.report("tagger", 16, "PyTorch", precision, found, bounds) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
