#!/usr/bin/env python3
"""JAX: trained as in jax-ml/jax examples/mnist_classifier_fromscratch.py (parameters in a pytree, gradients, one jitted update whose old
parameters are donated), layers as in jax.example_libraries.stax: N x H x W x C. ResNet-50 as in its examples/resnet50.py, in version 1.5
and with running statistics as in google/flax examples/imagenet. GPT-2 as in karpathy/nanoGPT, with jax.nn.dot_product_attention. With --plugin JAX drives another PJRT plug-in, as
openxla.org's "PJRT plugin integration" says."""
import os

import window

options = window.arguments(__doc__, ["lenet", "resnet50", "gpt2-bytes"], plugin="FILE? of a PJRT plug-in",
                           closed="ResNet-50 with the gradient of batch normalisation in closed form, not by JAX's differentiation")
os.environ["NPROC"] = str(options.threads)
if options.plugin:
    os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = "plugin:" + options.plugin
os.environ["JAX_PLATFORMS"] = "plugin" if options.plugin else "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax, nn, random  # noqa: E402

if options.plugin:
    from jax._src.interpreters import mlir
    mlir._platforms_with_donation.append("plugin")  # else JAX drops what is donated

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def convolve(x, w, stride=1, padding=0):
    return lax.conv_general_dilated(x, w, (stride, stride), [(padding, padding)] * 2,
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


@jax.custom_vjp
def batch_norm(x, scale, shift):
    return batch_norm_forward(x, scale, shift)[0]


def batch_norm_forward(x, scale, shift):
    """Of x in N x H x W x C; also its mean and variance over all but channels."""
    mean = jnp.mean(x, (0, 1, 2))
    centred = x - mean
    variance = jnp.mean(centred * centred, (0, 1, 2))
    return (centred * (scale * lax.rsqrt(variance + 1e-5)) + shift, mean, variance), (x, scale, mean, variance)


def batch_norm_backward(saved, gradients):
    """Of x, scale and shift; what is kept of mean and variance is not trained through."""
    (x, scale, mean, variance), dy = saved, gradients[0]
    inverse, share = lax.rsqrt(variance + 1e-5), x.shape[-1] / x.size
    z = (x - mean) * inverse
    dscale, dshift = jnp.sum(dy * z, (0, 1, 2)), jnp.sum(dy, (0, 1, 2))
    return (dy - dshift * share - z * (dscale * share)) * (scale * inverse), dscale, dshift


batch_norm.defvjp(batch_norm_forward, batch_norm_backward)


def pool(x, size, stride, padding=0):
    pads = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), pads)


class Lenet(object):
    def __init__(self, key):
        shapes = [(5, 5, 1, 20), (20,), (5, 5, 20, 50), (50,), (800, 500), (500,), (500, 10), (10,)]
        self.params = [0.05 * random.normal(k, s) for k, s in zip(random.split(key, len(shapes)), shapes)]
        self.state = []

    def apply(self, params, state, x, train):
        w1, b1, w2, b2, w3, b3, w4, b4 = params
        x = pool(convolve(pool(convolve(x, w1) + b1, 2, 2), w2) + b2, 2, 2)
        return nn.relu(x.reshape(x.shape[0], -1) @ w3 + b3) @ w4 + b4, state


class Resnet50(object):
    """Each convolution is followed by a normalisation: params is a list of (weight, scale, shift), state of (mean, variance)."""

    def __init__(self, key):
        self.key, self.params, self.state = key, [], []
        self.layer(7, 3, 64)
        inputs = 64
        for width, count, _ in STAGES:
            for i in range(count):
                if i == 0:
                    self.layer(1, inputs, 4 * width)
                self.layer(1, inputs, width)
                self.layer(3, width, width)
                self.layer(1, width, 4 * width)
                inputs = 4 * width
        self.params.append((0.02 * random.normal(key, (inputs, 1000)), jnp.zeros(1000)))

    def layer(self, size, inputs, outputs):
        self.key, key = random.split(self.key)
        scale = (2.0 / (size * size * inputs)) ** 0.5
        self.params.append((scale * random.normal(key, (size, size, inputs, outputs)),
                            jnp.ones(outputs), jnp.zeros(outputs)))
        self.state.append((jnp.zeros(outputs), jnp.ones(outputs)))

    def apply(self, params, state, x, train):
        params, state, changed = iter(params), iter(state), []

        def normalised(x, stride=1, padding=0):
            w, scale, shift = next(params)
            mean, variance = next(state)
            x = convolve(x, w, stride, padding)
            running = mean, variance
            if train and options.closed:
                y, mean, variance = batch_norm(x, scale, shift)
            elif train:
                mean = jnp.mean(x, (0, 1, 2))
                variance = jnp.mean(jnp.square(x), (0, 1, 2)) - jnp.square(mean)
            if train:
                changed.append(tuple(0.9 * old + 0.1 * new for old, new in zip(running, (mean, variance))))
            return y if train and options.closed else (x - mean) * (lax.rsqrt(variance + 1e-5) * scale) + shift

        x = pool(nn.relu(normalised(x, 2, 3)), 3, 2, 1)
        for _, count, first in STAGES:
            for i in range(count):
                stride = first if i == 0 else 1
                shortcut = normalised(x, stride) if i == 0 else x
                x = nn.relu(normalised(x))
                x = nn.relu(normalised(x, stride, 1))
                x = nn.relu(normalised(x) + shortcut)
        weight, bias = next(params)
        return jnp.mean(x, (1, 2)) @ weight + bias, changed


def layer_norm(x, scale, shift):
    mean = jnp.mean(x, -1, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * scale + shift


class Gpt2(object):
    """With the sizes of prony's gpt2-bytes; the embedding's table is the matrix of the logits."""

    WIDTH, HEADS, DEPTH, POSITIONS = 128, 4, 4, 1024

    def __init__(self, key):
        width, self.keys, self.state = self.WIDTH, iter(random.split(key, 64)), []
        self.params = {"words": self.weight(window.WORDS, width), "positions": self.weight(self.POSITIONS, width),
                       "norm": self.norm(), "blocks": [
            {"norm1": self.norm(), "qkv": self.linear(3 * width), "project": self.linear(width), "norm2": self.norm(),
             "mlp1": self.linear(4 * width), "mlp2": (self.weight(4 * width, width), jnp.zeros(width))}
            for _ in range(self.DEPTH)]}

    def weight(self, *shape):
        return 0.02 * random.normal(next(self.keys), shape)

    def linear(self, outputs):
        return self.weight(self.WIDTH, outputs), jnp.zeros(outputs)

    def norm(self):
        return jnp.ones(self.WIDTH), jnp.zeros(self.WIDTH)

    def apply(self, params, state, tokens, train):
        x = params["words"][tokens] + params["positions"][:tokens.shape[1]]
        for block in params["blocks"]:
            y = layer_norm(x, *block["norm1"]) @ block["qkv"][0] + block["qkv"][1]
            q, k, v = (part.reshape(*tokens.shape, self.HEADS, -1) for part in jnp.split(y, 3, -1))
            y = nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
            x = x + y @ block["project"][0] + block["project"][1]
            y = layer_norm(x, *block["norm2"]) @ block["mlp1"][0] + block["mlp1"][1]
            x = x + nn.gelu(y, approximate=True) @ block["mlp2"][0] + block["mlp2"][1]
        return (layer_norm(x, *params["norm"]) @ params["words"].T).reshape(-1, window.WORDS), state


def make_batches():
    keys = random.split(random.PRNGKey(1), 2 * window.SLOTS)
    if options.network == "gpt2-bytes":
        shape = options.batch, window.TOKENS
        return [(random.randint(keys[2 * i], shape, 0, window.WORDS),
                 random.randint(keys[2 * i + 1], (shape[0] * shape[1],), 0, window.WORDS)) for i in range(window.SLOTS)]
    channels, rows, columns, classes = window.image_shape(options.network)
    return [(random.normal(keys[2 * i], (options.batch, rows, columns, channels)),
             random.randint(keys[2 * i + 1], (options.batch,), 0, classes))
            for i in range(window.SLOTS)]


def main():
    model = {"lenet": Lenet, "resnet50": Resnet50, "gpt2-bytes": Gpt2}[options.network](random.PRNGKey(0))

    def loss(params, state, x, y):
        logits, state = model.apply(params, state, x, True)
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), y[:, None], 1)), state

    def update(params, velocity, state, x, y):
        (value, state), grads = jax.value_and_grad(loss, has_aux=True)(params, state, x, y)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        return jax.tree.map(lambda p, v: p - 0.001 * v, params, velocity), velocity, state, value

    kept = [model.params, jax.tree.map(jnp.zeros_like, model.params), model.state, None]
    batches = make_batches()
    step = jax.jit(update, donate_argnums=(0, 1, 2))
    infer = jax.jit(lambda params, state, x: model.apply(params, state, x, False)[0])

    def train(slot):
        kept[:] = step(kept[0], kept[1], kept[2], *batches[slot])

    def forward(slot):
        kept[3] = infer(kept[0], kept[2], batches[slot][0])

    window.run(train if options.stage == "train" else forward, options, jax.__version__,
               lambda: jax.block_until_ready(kept[3]))


if __name__ == "__main__":
    main()
