#!/usr/bin/env python3
"""JAX: LeNet trained as in jax-ml/jax examples/mnist_classifier_fromscratch.py (parameters in a list, value_and_grad, one jitted
update) with its convolutions as in jax.example_libraries.stax: N x H x W x C."""
import os

import window

options = window.arguments(__doc__, ["lenet"])
os.environ["NPROC"] = str(options.threads)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax, nn, random  # noqa: E402


def init(key):
    shapes = [(5, 5, 1, 20), (20,), (5, 5, 20, 50), (50,), (800, 500), (500,), (500, 10), (10,)]
    return [0.05 * random.normal(k, s) for k, s in zip(random.split(key, len(shapes)), shapes)]


def convolve(x, w, b):
    return lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def predict(params, x):
    w1, b1, w2, b2, w3, b3, w4, b4 = params
    x = pool(convolve(pool(convolve(x, w1, b1)), w2, b2))
    return nn.relu(x.reshape(x.shape[0], -1) @ w3 + b3) @ w4 + b4


def loss(params, x, y):
    return -jnp.mean(jnp.take_along_axis(nn.log_softmax(predict(params, x)), y[:, None], 1))


def update(params, velocity, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    velocity = [0.9 * v + g for v, g in zip(velocity, grads)]
    return [p - 0.001 * v for p, v in zip(params, velocity)], velocity, value


def main():
    params = init(random.PRNGKey(0))
    state = [params, [jnp.zeros_like(p) for p in params], None]
    keys = random.split(random.PRNGKey(1), 2 * window.SLOTS)
    batches = [(random.normal(keys[2 * i], (options.batch, 28, 28, 1)),
                random.randint(keys[2 * i + 1], (options.batch,), 0, 10))
               for i in range(window.SLOTS)]
    step, infer = jax.jit(update, donate_argnums=(0, 1)), jax.jit(predict)

    def train(slot):
        state[:] = step(state[0], state[1], *batches[slot])

    def forward(slot):
        state[2] = infer(params, batches[slot][0])

    window.run(train if options.stage == "train" else forward, options, jax.__version__,
               lambda: jax.block_until_ready(state[2]))


if __name__ == "__main__":
    main()
