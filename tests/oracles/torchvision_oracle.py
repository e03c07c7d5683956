#!/usr/bin/env python3
"""Our networks against torchvision's, with torchvision's own seeded random state.

    PRONY_ORACLE=BUILD/tests/oracle torchvision_oracle.py [--size N] [--batch N] [NETWORK...]

Our float64 interpreter gets the state of torchvision's model in the order of its state_dict (names
differ, shapes must not), with the statistics and factors of every batch normalisation perturbed, and
a seeded batch. Compared with that model in float64: logits in evaluation mode; logits, loss,
gradients of all parameters and running statistics of a training step without dropout. Exit status 1
when a figure is out of bounds. A second row shows torchvision in float32, which is not judged: what
lies next to zero falls on either side of a ReLU, and gradients jump.

Needs torch and torchvision; docs/networks.md names the versions whose figures it shows.
"""
import argparse
import sys
import warnings

import torch
import torchvision

import common

MODELS = {
    "alexnet": torchvision.models.alexnet,
    "vgg16": torchvision.models.vgg16,
    "googlenet": lambda: torchvision.models.googlenet(aux_logits=False, init_weights=False),
    "inception3": lambda: torchvision.models.inception_v3(aux_logits=False, init_weights=False),
    "resnet50": torchvision.models.resnet50,
    "resnet152": torchvision.models.resnet152,
    "densenet161": torchvision.models.densenet161,
}
OWN_SIZE = {"inception3": 299}
BOUNDS = {"evaluation": 1e-12, "logits": 1e-11, "loss": 1e-11, "gradient": 1e-10, "state": 1e-11}


def perturb(model):
    """Statistics of a network that has seen something, and factors that are not all one."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            with torch.no_grad():
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.1)
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
        elif isinstance(module, torch.nn.Dropout):
            module.p = 0.0


def to_ours(weights, state):
    """Our names for theirs, by order; a shape that differs ends the comparison."""
    theirs = [name for name in state if not name.endswith("num_batches_tracked")]
    if len(theirs) != len(weights):
        raise SystemExit(f"torchvision has {len(theirs)} tensors, we have {len(weights)}")
    for ours, name in zip(weights, theirs):
        if ours["shape"] != list(state[name].shape):
            raise SystemExit(f"{ours['name']} is {ours['shape']}, {name} {list(state[name].shape)}")
    return {name: ours["name"] for ours, name in zip(weights, theirs)}


def count_samples(model, counts):
    """Has each batch normalisation note over how many numbers a channel's variance is taken."""
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.register_forward_hook(
                lambda _, given, __, name=name, channels=module.num_features:
                counts.update({name: given[0].numel() // channels}))


def population_variance(after, before, count):
    """PyTorch's running variance takes in the batch's with n - 1, ONNX's with n."""
    momentum = 0.1
    return (1 - momentum) * before + (after - (1 - momentum) * before) * (count - 1) / count


def run_theirs(model, names, batch, labels):
    """One evaluation and one training step, named as oracle.c names them."""
    found, counts = {}, {}
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.eval()
    with torch.no_grad():
        found["evaluation"] = model(batch).numpy()
    model.train()
    count_samples(model, counts)
    logits = model(batch)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    found["logits"], found["loss"] = logits.detach().numpy(), loss.detach().numpy()
    for name, parameter in model.named_parameters():
        found["gradient/" + names[name]] = parameter.grad.numpy()
    for name, buffer in model.named_buffers():
        if name.endswith("running_var"):
            buffer = population_variance(buffer, before[name],
                                         counts[name.removesuffix(".running_var")])
        if name in names:
            found["state/" + names[name]] = buffer.numpy()
    return found


def check(network, batch_size, size):
    """True when our network does what torchvision's does."""
    own = OWN_SIZE.get(network, 224)
    oracle = common.Oracle(network, batch_size, size)
    torch.manual_seed(7)
    model = MODELS[network]()
    perturb(model)
    batch = torch.randn(batch_size, 3, size or own, size or own)
    labels = torch.randint(1000, (batch_size,))
    names = to_ours(oracle.weights, model.state_dict())
    ours = oracle.run({names[name]: tensor.numpy() for name, tensor in model.state_dict().items()
                       if name in names}, batch.numpy(), labels.numpy())
    good = True
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for precision, dtype in (("float64", torch.float64), ("float32", torch.float32)):
        model.load_state_dict(state)
        model.to(dtype).zero_grad()
        found = common.compare(ours, run_theirs(model, names, batch.to(dtype), labels))
        bounds = BOUNDS if dtype == torch.float64 else {}
        good = common.report(network, size or own, "torchvision", precision, found, bounds) and good
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=list(MODELS))
    parser.add_argument("--size", type=int, help="height and width instead of the network's own")
    parser.add_argument("--batch", type=int, default=2)
    options = parser.parse_args()
    unknown = set(options.networks) - set(MODELS)
    if unknown:
        parser.error(f"torchvision has no {', '.join(sorted(unknown))}; it has {', '.join(MODELS)}")
    warnings.filterwarnings("ignore")
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}")
    good = [check(network, options.batch, options.size) for network in options.networks]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
