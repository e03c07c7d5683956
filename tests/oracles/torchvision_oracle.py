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

class UNet(torch.nn.Module):
    """Ronneberger 2015 with padding and batch normalisation; torchvision has none. Its logits are rows, one a pixel."""

    def __init__(self):
        super().__init__()
        widths = [64, 128, 256, 512, 1024]
        self.down = torch.nn.ModuleList(self.twice(*pair) for pair in zip([3] + widths, widths))
        self.up = torch.nn.ModuleList(torch.nn.ModuleList([torch.nn.ConvTranspose2d(2 * w, w, 2, 2), self.twice(2 * w, w)])
                                      for w in widths[-2::-1])
        self.classes = torch.nn.Conv2d(64, 2, 1)

    @staticmethod
    def twice(before, width):
        return torch.nn.Sequential(*(layer for channels in (before, width) for layer in (
            torch.nn.Conv2d(channels, width, 3, padding=1, bias=False), torch.nn.BatchNorm2d(width), torch.nn.ReLU())))

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(torch.nn.functional.max_pool2d(x, 2) if i else x)
            skips.append(x)
        skips.pop()
        for turn, block in self.up:
            x = block(torch.cat([skips.pop(), turn(x)], 1))
        return self.classes(x).permute(0, 2, 3, 1).flatten(0, 2)


MODELS = {
    "alexnet": torchvision.models.alexnet,
    "vgg16": torchvision.models.vgg16,
    "googlenet": lambda: torchvision.models.googlenet(aux_logits=False, init_weights=False),
    "inception3": lambda: torchvision.models.inception_v3(aux_logits=False, init_weights=False),
    "resnet50": torchvision.models.resnet50,
    "resnet152": torchvision.models.resnet152,
    "densenet161": torchvision.models.densenet161,
    "vit-b16": torchvision.models.vit_b_16,
    "unet": UNet,
    "vit-small": lambda: torchvision.models.VisionTransformer(
        image_size=32, patch_size=4, num_layers=4, num_heads=4, hidden_dim=64, mlp_dim=256, num_classes=10),
}
HEAD_SCALES = {"vit-b16": 64 ** -0.5, "vit-small": 16 ** -0.5}  # inside torchvision's attention
OWN_SIZE = {"inception3": 299, "vit-small": 32, "unet": 64}
CLASSES = {"vit-small": 10, "unet": 2}
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
    if isinstance(model, torchvision.models.VisionTransformer):  # its token and its head are zeros
        with torch.no_grad():
            for parameter in model.parameters():
                if not parameter.any():
                    parameter.normal_(0, 0.1)


def apart(tensors):
    """{name: tensor} with query, key and value of an attention apart, in our networks' order."""
    tensors, found = dict(tensors), {}
    for name, tensor in tensors.items():
        if name.endswith("in_proj_weight"):
            bias = name.removesuffix("weight") + "bias"
            for i, parts in enumerate(zip(tensor.chunk(3), tensors[bias].chunk(3))):
                found[f"{name}.{i}"], found[f"{bias}.{i}"] = parts
        elif not name.endswith("in_proj_bias"):
            found[name] = tensor
    return found


def to_ours(weights, state):
    """Our names for theirs, by order; a shape that differs ends the comparison."""
    theirs = [name for name in state if not name.endswith("num_batches_tracked")]
    weights = [ours for ours in weights if not is_scale(ours)]
    if len(theirs) != len(weights):
        raise SystemExit(f"torchvision has {len(theirs)} tensors, we have {len(weights)}")
    for ours, name in zip(weights, theirs):
        if ours["shape"] != list(state[name].shape):
            raise SystemExit(f"{ours['name']} is {ours['shape']}, {name} {list(state[name].shape)}")
    return {name: ours["name"] for ours, name in zip(weights, theirs)}


def is_scale(ours):
    """Whether a state of ours is the factor of an attention's scores."""
    return not ours["trained"] and not ours["shape"]


def is_nothing(name, scales):
    """Whether it is a constant, or the gradient of a bias of keys: 0 except for rounding."""
    return name in ["state/" + scale for scale in scales] or name.startswith("gradient/") and name.endswith(
        ".key.bias")


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
    loss = torch.nn.functional.cross_entropy(logits, labels.flatten())
    loss.backward()
    found["logits"], found["loss"] = logits.detach().numpy(), loss.detach().numpy()
    for name, gradient in apart((name, p.grad) for name, p in model.named_parameters()).items():
        found["gradient/" + names[name]] = gradient.numpy()
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
    labels = torch.randint(CLASSES.get(network, 1000), (batch_size,) + (batch.shape[2:] if network == "unet" else ()))
    given = apart(model.state_dict().items())
    names = to_ours(oracle.weights, given)
    given = {names[name]: tensor.numpy() for name, tensor in given.items() if name in names}
    scales = [ours["name"] for ours in oracle.weights if is_scale(ours)]
    given.update((name, HEAD_SCALES[network]) for name in scales)
    ours = oracle.run(given, batch.numpy(), labels.numpy())
    ours = {name: value for name, value in ours.items() if not is_nothing(name, scales)}
    good = True
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for precision, dtype in (("float64", torch.float64), ("float32", torch.float32)):
        model.load_state_dict(state)
        model.to(dtype).zero_grad()
        theirs = run_theirs(model, names, batch.to(dtype), labels)
        found = common.compare(ours, {name: value for name, value in theirs.items()
                                      if not is_nothing(name, scales)})
        bounds = BOUNDS if dtype == torch.float64 else {}
        good = common.report(network, size or own, "PyTorch" if network == "unet" else "torchvision", precision, found, bounds) and good
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
