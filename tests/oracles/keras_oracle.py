#!/usr/bin/env python3
"""Our networks against Keras', which defined them: nasnet, and those of Keras' old examples.

    PRONY_ORACLE=BUILD/tests/oracle keras_oracle.py [--batch N] [NETWORK...]

As torchvision_oracle.py, with Keras in float64 on PyTorch: seeded variables of Keras' model go to
our float64 interpreter, in our layout and under our names. Exit status 1 when a figure is out of
bounds.

Needs keras and torch; docs/networks.md names the versions whose figures it shows.
"""
import argparse
import os
import sys

os.environ["KERAS_BACKEND"] = "torch"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras  # noqa: E402  the variables above come first
import numpy  # noqa: E402
import torch  # noqa: E402
from keras import layers  # noqa: E402
from keras.src.backend.common import dtypes  # noqa: E402
from keras.src.applications.nasnet import NASNet  # noqa: E402

import common  # noqa: E402

BOUNDS = {"evaluation": 1e-12, "logits": 1e-11, "loss": 1e-11, "gradient": 1e-10, "state": 1e-11}


def conv(kernel):
    return kernel.transpose(3, 2, 0, 1)


def depthwise(kernel):
    return kernel.transpose(2, 3, 0, 1)


def dense(kernel):
    return kernel.T


def dense_after(channels):
    """A full layer behind a flattened image, whose channels are last for Keras and first for us."""
    def transform(kernel):
        side = int(round((kernel.shape[0] / channels) ** 0.5))
        split = kernel.reshape(side, side, channels, -1)
        return split.transpose(3, 2, 0, 1).reshape(kernel.shape[1], -1)
    return transform


def gates(array):
    """LSTM: Keras has input, forget, cell, output; ONNX input, output, forget, cell."""
    i, f, c, o = numpy.split(numpy.asarray(array), 4, axis=-1)
    return numpy.concatenate([i, o, f, c], axis=-1).T


def as_is(array):
    return array


def batch_norm(ours, theirs):
    return {f"{ours}.scale": (f"{theirs}/gamma", as_is), f"{ours}.bias": (f"{theirs}/beta", as_is),
            f"{ours}.mean": (f"{theirs}/moving_mean", as_is),
            f"{ours}.var": (f"{theirs}/moving_variance", as_is)}


def with_bias(ours, theirs, transform):
    return {f"{ours}.weight": (f"{theirs}/kernel", transform),
            f"{ours}.bias": (f"{theirs}/bias", as_is)}


def mlp():
    model = keras.Sequential([
        keras.Input((784,)), layers.Dense(512, "relu", name="fc1"), layers.Dropout(0.2),
        layers.Dense(512, "relu", name="fc2"), layers.Dropout(0.2), layers.Dense(10, name="fc3")])
    return model, {k: v for name in ("fc1", "fc2", "fc3")
                   for k, v in with_bias(name, name, dense).items()}


def cnn():
    def convolution(number, channels, padding):
        return layers.Conv2D(channels, 3, padding=padding, activation="relu", name=f"conv{number}")
    model = keras.Sequential([
        keras.Input((32, 32, 3)), convolution(1, 32, "same"), convolution(2, 32, "valid"),
        layers.MaxPooling2D(2), layers.Dropout(0.25), convolution(3, 64, "same"),
        convolution(4, 64, "valid"), layers.MaxPooling2D(2), layers.Dropout(0.25), layers.Flatten(),
        layers.Dense(512, "relu", name="fc1"), layers.Dropout(0.5), layers.Dense(10, name="fc2")])
    names = {k: v for number in range(1, 5)
             for k, v in with_bias(f"conv{number}", f"conv{number}", conv).items()}
    return model, names | with_bias("fc1", "fc1", dense_after(64)) | with_bias("fc2", "fc2", dense)


def lstm():
    model = keras.Sequential([keras.Input((40, 60)), layers.LSTM(128, name="lstm"),
                              layers.Dense(60, name="fc")])
    return model, {"lstm.weight": ("lstm/lstm_cell/kernel", gates),
                   "lstm.recurrent": ("lstm/lstm_cell/recurrent_kernel", gates),
                   "lstm.bias": ("lstm/lstm_cell/bias", gates)} | with_bias("fc", "fc", dense)


def irnn():
    model = keras.Sequential([
        keras.Input((784, 1)),
        layers.SimpleRNN(100, activation="relu", name="rnn",
                         kernel_initializer=keras.initializers.RandomNormal(stddev=0.001),
                         recurrent_initializer=keras.initializers.Identity()),
        layers.Dense(10, name="fc")])
    return model, {"rnn.weight": ("rnn/simple_rnn_cell/kernel", dense),
                   "rnn.recurrent": ("rnn/simple_rnn_cell/recurrent_kernel", dense),
                   "rnn.bias": ("rnn/simple_rnn_cell/bias", as_is)} | with_bias("fc", "fc", dense)


def separable(ours, theirs, names):
    for half in (1, 2):
        names[f"{ours}.{half}.depthwise.weight"] = (
            f"separable_conv_{half}_{theirs}/depthwise_kernel", depthwise)
        names[f"{ours}.{half}.pointwise.weight"] = (
            f"separable_conv_{half}_{theirs}/pointwise_kernel", conv)
        names.update(batch_norm(f"{ours}.{half}.bn", f"separable_conv_{half}_bn_{theirs}"))


def nasnet_cell(ours, theirs, kind, branches, names):
    names[f"{ours}.begin.conv.weight"] = (f"{kind}_conv_1_{theirs}/kernel", conv)
    names.update(batch_norm(f"{ours}.begin.bn", f"{kind}_bn_1_{theirs}"))
    names[f"{ours}.adjust.conv.weight"] = (f"adjust_conv_projection_{theirs}/kernel", conv)
    names[f"{ours}.adjust.conv1.weight"] = (f"adjust_conv_1_{theirs}/kernel", conv)
    names[f"{ours}.adjust.conv2.weight"] = (f"adjust_conv_2_{theirs}/kernel", conv)
    names.update(batch_norm(f"{ours}.adjust.bn", f"adjust_bn_{theirs}"))
    for branch, block in branches.items():
        separable(f"{ours}.{branch}", f"{kind}_{block}_{theirs}", names)


def nasnet():
    normal = {name: name for name in ("left1", "right1", "left2", "right2", "left5")}
    # Keras calls the block behind its fifth pair left4 as well.
    reduction = {"left1": "left1", "right1": "right1", "right2": "right2", "right3": "right3",
                 "left5": "left4"}
    names = {"stem.weight": ("stem_conv1/kernel", conv)} | batch_norm("stem.bn", "stem_bn1")
    for ours, theirs in (("stem1", "stem_1"), ("stem2", "stem_2"), ("reduction1", "reduce_4"),
                         ("reduction2", "reduce_8")):
        nasnet_cell(ours, theirs, "reduction", reduction, names)
    for stage in range(3):
        for cell in range(4):
            nasnet_cell(f"stage{stage + 1}.{cell}", str(stage * 5 + cell - (stage == 2)), "normal",
                        normal, names)
    names.update(with_bias("fc", "predictions", dense))
    # keras.applications.NASNetMobile, which refuses this backend, calls it so.
    return NASNet((224, 224, 3), penultimate_filters=1056, num_blocks=4, stem_block_filters=32,
                  skip_reduction=False, filter_multiplier=2, include_top=True, weights=None,
                  default_size=224, classifier_activation=None), names


MODELS = {"mlp": mlp, "cnn": cnn, "irnn": irnn, "lstm": lstm, "nasnet": nasnet}


def perturb(model, random):
    """Nothing stays zero or one: batch normalisation, biases."""
    for variable in model.variables:
        kind = variable.path.split("/")[-1]
        if kind in ("gamma", "moving_variance"):
            variable.assign(random.uniform(0.5, 1.5, variable.shape))
        elif kind in ("beta", "moving_mean", "bias"):
            variable.assign(random.normal(0, 0.1, variable.shape))
        elif kind == "recurrent_kernel":  # still near the identity where it was
            variable.assign(0.9 * to_numpy(variable) + random.normal(0, 0.005, variable.shape))
        if "seed" not in kind:  # to what float32 holds, which is what we read
            variable.assign(to_numpy(variable).astype(numpy.float32).astype(numpy.float64))


def without_dropout(model):
    return keras.models.clone_model(
        model, clone_function=lambda layer: layer.__class__.from_config(
            layer.get_config() | ({"rate": 0.0} if isinstance(layer, layers.Dropout) else {})))


def to_numpy(variable):
    return variable.value.detach().numpy().copy()


def run_theirs(model, x, labels):
    """Evaluation and a training step: logits, loss, gradients and states by Keras' paths."""
    x, labels = torch.from_numpy(x), torch.from_numpy(labels)
    with torch.no_grad():
        evaluation = model(x, training=False).numpy()
    logits = model(x, training=True)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    return ({"evaluation": evaluation, "logits": logits.detach().numpy(),
             "loss": loss.detach().numpy()},
            {variable.path: variable.value.grad.numpy() for variable in model.trainable_variables},
            {variable.path: to_numpy(variable) for variable in model.non_trainable_variables})


def find(paths, ending):
    """The path, which may begin with the name of the model."""
    found = [path for path in paths if path == ending or path.endswith("/" + ending)]
    if len(found) != 1:
        raise SystemExit(f"Keras has {len(found)} variables called {ending}")
    return found[0]


def check(network, batch_size):
    """True when our network does what Keras' does."""
    random = numpy.random.default_rng(7)
    keras.utils.set_random_seed(7)
    model, names = MODELS[network]()
    model = without_dropout(model)
    perturb(model, random)
    x = random.normal(size=(batch_size, *model.input_shape[1:])).astype(numpy.float32)
    labels = random.integers(model.output_shape[1], size=batch_size)
    oracle = common.Oracle(network, batch_size)
    variables = {variable.path: to_numpy(variable) for variable in model.variables}
    wanted = {row["name"]: row for row in oracle.weights}
    places = {ours: (find(variables, names[ours][0]), names[ours][1]) for ours in wanted}
    weights = {ours: transform(variables[path]) for ours, (path, transform) in places.items()}
    for ours, array in weights.items():
        if list(array.shape) != wanted[ours]["shape"]:
            raise SystemExit(f"{ours} is {wanted[ours]['shape']}, Keras' is {array.shape}")
    batch = x.transpose(0, 3, 1, 2) if x.ndim == 4 else x
    ours = oracle.run(weights, batch, labels)
    theirs, gradients, states = run_theirs(model, x.astype(numpy.float64), labels)
    for name, (path, transform) in places.items():
        kind, source = ("gradient", gradients) if wanted[name]["trained"] else ("state", states)
        theirs[f"{kind}/{name}"] = transform(source[path])
    return common.report(network, x.shape[1], "Keras", "float64", common.compare(ours, theirs),
                         BOUNDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=list(MODELS))
    parser.add_argument("--batch", type=int, default=4)
    options = parser.parse_args()
    unknown = set(options.networks) - set(MODELS)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))} here, but {', '.join(MODELS)}")
    keras.config.set_floatx("float64")
    # Otherwise Keras computes in float32 on everything but TensorFlow, whatever floatx is.
    dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"
    print(f"keras {keras.__version__}, torch {torch.__version__}")
    good = [check(network, options.batch) for network in options.networks]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
