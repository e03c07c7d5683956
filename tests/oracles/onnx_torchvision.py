#!/usr/bin/env python3
"""Models that torchvision exports, imported: logits and gradients against the models' own.

    PRONY_ONNX_LOGITS=BUILD/tests/onnx_logits onnx_torchvision.py [--keep FOLDER] [MODEL...]

Each model gets seeded weights and perturbed statistics and is exported for evaluation (folded by the
exporter, opset 13), with its batch normalisation kept (opset 17), the same with an open batch, and by
the newer exporter (opset 18); the interpreter in float64 is compared with the model in float64: logits
for the file's batch and for another one; where batch normalisation is kept, loss and gradients of a
training step (labels 0, no dropout). Needs torch, torchvision, onnx and onnxscript; slow.
"""
import argparse
import copy
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import torchvision

MODELS = ["resnet18", "vgg11", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5",
          "efficientnet_b0", "squeezenet1_1", "mnasnet0_5", "regnet_y_400mf", "densenet121"]
SIZE, CLASSES, BATCH = 64, 100, 2
LOGITS_BOUND, GRADIENT_BOUND = 1e-5, 1e-4
# Name, opset, exporter, batch normalisation kept, batch left open.
FORMS = [("folded", 13, False, False, False), ("kept", 17, False, True, False),
         ("open", 17, False, True, True), ("newer", 18, True, False, False)]


def make_model(name):
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = getattr(torchvision.models, name)(weights=None, num_classes=CLASSES)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            size = module.running_mean.shape
            module.running_mean.copy_(torch.randn(size, generator=generator) * 0.1)
            module.running_var.copy_(torch.rand(size, generator=generator) * 0.45 + 0.8)
            with torch.no_grad():
                module.weight.copy_(torch.rand(size, generator=generator) * 0.4 + 0.8)
                module.bias.copy_(torch.randn(size, generator=generator) * 0.1)
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0
    return model.eval()


def export(model, example, path, form):
    _, opset, newer, keep, is_open = form
    if newer:
        torch.onnx.export(model, (example,), path, opset_version=opset, dynamo=True, verbose=False)
        return
    mode = torch.onnx.TrainingMode
    torch.onnx.export(
        model, (example,), path, opset_version=opset, dynamo=False, input_names=["x"],
        output_names=["y"], training=mode.PRESERVE if keep else mode.EVAL,
        do_constant_folding=not keep,
        dynamic_axes={"x": {0: "n"}, "y": {0: "n"}} if is_open else None)


def ours(path, x, train=False):
    """What onnx_logits prints and writes."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = os.path.join(folder, "x"), os.path.join(folder, "y")
        x.numpy().astype(np.float32).tofile(given)
        done = subprocess.run([os.environ["PRONY_ONNX_LOGITS"], path, str(len(x)), given, made] +
                              (["train"] if train else []), check=True, text=True,
                              stdout=subprocess.PIPE)
        return done.stdout.splitlines(), np.fromfile(made, np.float64)


def relative(mine, theirs):
    return float(np.linalg.norm(mine - theirs) / np.linalg.norm(theirs))


def compare_logits(path, model, x):
    _, logits = ours(path, x)
    with torch.no_grad():
        return relative(logits, model(x.double()).numpy().reshape(-1))


def compare_training(path, model, x):
    """Loss, and the gradients whose initializers carry a parameter's name; (worst, compared, all)."""
    model = copy.deepcopy(model).train()
    loss = torch.nn.functional.cross_entropy(model(x.double()), torch.zeros(len(x), dtype=torch.long))
    loss.backward()
    theirs = {name: value.grad.numpy() for name, value in model.named_parameters()}
    lines, numbers = ours(path, x, train=True)
    worst = [(abs(numbers[0] - loss.item()) / abs(loss.item()), "loss")]
    offset = 1
    for line in lines[1:]:
        name, count = line.rsplit(" ", 1)
        mine = numbers[offset:offset + int(count)]
        offset += int(count)
        # A scale of 1e-12 of the whole is rounding: a bias before batch normalisation has none.
        if name in theirs and np.linalg.norm(theirs[name]) > 1e-9:
            worst.append((relative(mine, theirs[name].reshape(-1)), name))
    return max(worst), len(worst) - 1, len(theirs)


def check(name, form, folder):
    model = make_model(name)
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(BATCH + 1, 3, SIZE, SIZE, generator=generator)
    path = os.path.join(folder, f"{name}_{form[0]}.onnx")
    export(model, x[:BATCH], path, form)
    model = model.double()
    same = compare_logits(path, model, x[:BATCH])
    other = compare_logits(path, model, x)
    row = f"{name:20} {form[0]:7} opset {form[1]}  logits {same:.1e}  other batch {other:.1e}"
    good = same <= LOGITS_BOUND and other <= LOGITS_BOUND
    if form[3]:
        (worst, where), compared, count = compare_training(path, model, x)
        good = good and worst <= GRADIENT_BOUND
        row += f"  gradients {worst:.1e} in {where} ({compared} of {count})"
    print(row + ("" if good else "  OUT OF BOUNDS"), flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", help="folder that keeps the models")
    parser.add_argument("models", nargs="*", default=MODELS)
    options = parser.parse_args()
    if "PRONY_ONNX_LOGITS" not in os.environ:
        sys.exit("PRONY_ONNX_LOGITS must name the program tests/onnx_logits of a build")
    warnings.simplefilter("ignore")
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        for name in options.models or MODELS:
            for form in FORMS:
                good = check(name, form, folder) and good
    sys.exit(0 if good else 1)


main()
