"""JAX's calls for each operator of a graph, on values in the adapter's layout. A row of OPERATORS is called
with a graph_evaluation.Operation, whose run's context has `low` (dtype of products, or None) and `key` (random
numbers, or None without dropout)."""
import jax
import jax.numpy as jnp
import numpy
from jax import lax

import graph_analysis
from case import IGNORED
from graph_attention import ATTENTION
from graph_evaluation import SPLIT

LARGEST = 3.4028234e38  # default bounds of Clip


def _dimensions(t):
    return ("NHWC", "HWIO", "NHWC") if t.layout.last else ("NCHW", "OIHW", "NCHW")


def _conv(t):
    a = t.attributes
    top, left, bottom, right = a["pads"]
    result = lax.conv_general_dilated(
        t.input(0), t.input(1), a["strides"], [(top, bottom), (left, right)],
        rhs_dilation=a["dilations"], dimension_numbers=_dimensions(t),
        feature_group_count=a["group"])
    if t.input(2) is None:
        return result
    return result + (t.input(2) if t.layout.last else t.input(2)[:, None, None])


def _conv_transpose(t):
    """A convolution of the spaced input with the reversed weights."""
    a, w = t.attributes, t.input(1)
    reach = [(a["kernel_shape"][i] - 1) * a["dilations"][i] for i in range(2)]
    pads = [(reach[i] - a["pads"][i], reach[i] - a["pads"][2 + i] + a["output_padding"][i]) for i in range(2)]
    kernel = "HWOI" if t.layout.last else "IOHW"  # the orders of Conv's weights, whose I and O are exchanged
    rows, inputs, outputs = kernel.index("H"), kernel.index("I"), kernel.index("O")
    w = jnp.flip(w, (rows, rows + 1))
    if a["group"] > 1:
        w = jnp.concatenate(jnp.split(w, a["group"], inputs), outputs)
    data = _dimensions(t)[0]
    result = lax.conv_general_dilated(
        t.input(0), w, [1, 1], pads, lhs_dilation=a["strides"], rhs_dilation=a["dilations"],
        dimension_numbers=(data, kernel, data), feature_group_count=a["group"])
    if t.input(2) is None:
        return result
    return result + (t.input(2) if t.layout.last else t.input(2)[:, None, None])


def _windows(t, pads):
    """Arguments of lax.reduce_window for a pool."""
    a = t.attributes
    return dict(window_dimensions=t.layout.spatial(a["kernel_shape"], 1),
                window_strides=t.layout.spatial(a["strides"], 1), padding=t.pads(pads),
                window_dilation=t.layout.spatial(a.get("dilations", [1, 1]), 1))


def _max_pool(t):
    return lax.reduce_window(t.input(0), -jnp.inf, lax.max, **_windows(t, t.pooled_pads()))


def _average_pool(t):
    x = t.input(0)
    total = lax.reduce_window(x, 0.0, lax.add, **_windows(t, t.pooled_pads()))
    rows, columns = graph_analysis.window_counts(t.attributes, t.input_shape, t.shape)
    count = numpy.outer(rows, columns).reshape(t.layout.shape([1, 1, len(rows), len(columns)]))
    if (count == count.flat[0]).all():
        return total * (1.0 / float(count.flat[0]))
    return total * (1.0 / count).astype(x.dtype)


def _mean(t, axes, keepdims):
    return jnp.mean(t.input(0), axis=tuple(t.axis(axis) for axis in axes), keepdims=keepdims)


def _reduce_mean(t):
    value = _mean(t, t.attributes["axes"], True)
    if t.attributes["keepdims"]:
        return value
    value = jnp.transpose(value, t.layout.back(value.ndim))
    return jnp.transpose(value.reshape(t.shape), t.layout.order(len(t.shape)))


def _gemm(t):
    a = t.attributes
    contract = ((0,) if a["transA"] else (1,), (1,) if a["transB"] else (0,))
    result = lax.dot_general(t.input(0), t.input(1), (contract, ((), ())))
    if a["alpha"] != 1:
        result = result * a["alpha"]
    if t.input(2) is None:
        return result
    return result + (t.input(2) if a["beta"] == 1 else a["beta"] * t.input(2))


def _batch_norm(t):
    """Statistics are float32 even if products are not, as in flax."""
    a = t.attributes
    x, scale, bias, mean, variance = t.inputs
    rank = len(t.input_shape)
    channel = t.layout.axis(1, rank)
    along = [-1 if axis == channel else 1 for axis in range(rank)]
    wide = x.astype(jnp.float32)
    if t.training:
        others = tuple(axis for axis in range(rank) if axis != channel)
        batch_mean, batch_variance = jnp.mean(wide, others), jnp.var(wide, others)
        for index, value in ((3, batch_mean), (4, batch_variance)):
            t.run.updates[t.names[index]] = (a["momentum"] * t.inputs[index]
                                             + (1.0 - a["momentum"]) * value)
        mean, variance = batch_mean, batch_variance
    factor = scale * lax.rsqrt(variance + a["epsilon"])
    result = (wide - mean.reshape(along)) * factor.reshape(along) + bias.reshape(along)
    return result.astype(x.dtype)


def _row_norm(t):
    """LayerNormalization and RMSNormalization, which has no mean and no bias. Statistics are float32 even if products
    are not, as in flax."""
    x = t.input(0).astype(jnp.float32)
    axes = tuple(t.axis(axis) for axis in range(t.attributes["axis"], x.ndim))
    if t.op == "LayerNormalization":
        x = x - jnp.mean(x, axes, keepdims=True)
    x = x * lax.rsqrt(jnp.mean(x * x, axes, keepdims=True) + t.attributes["epsilon"])
    x = x * t.operand(1, jnp.reshape, jnp.transpose)
    if t.op == "LayerNormalization":
        x = x + t.operand(2, jnp.reshape, jnp.transpose)
    return x.astype(t.input(0).dtype)


def _group_norm(t):
    """GroupNormalization and InstanceNormalization, whose groups are the channels."""
    shape, axes, along = t.grouped()
    wide = t.input(0).astype(jnp.float32).reshape(shape)
    wide = wide - jnp.mean(wide, tuple(axes), keepdims=True)
    wide = wide * lax.rsqrt(jnp.mean(wide * wide, tuple(axes), keepdims=True) + t.attributes["epsilon"])
    x = wide.reshape(t.input(0).shape) * t.input(1).reshape(along) + t.input(2).reshape(along)
    return x.astype(t.input(0).dtype)


def _resize(t):
    x = t.input(0)
    if t.attributes["mode"] == "nearest":
        for axis, scale in zip((2, 3), t.attributes["scales"]):
            x = jnp.repeat(x, scale, t.axis(axis))
        return x
    return jax.image.resize(x, t.layout.shape(t.shape), "linear")


def _resize_problem(case, node):
    a = node["attributes"]
    return ("jax.image.resize does not align corners"
            if a["mode"] == "linear" and a["coordinate_transformation_mode"] == "align_corners" else None)


def _pow(t):
    exponent = t.attributes["exponent"]
    return t.input(0) ** (int(exponent) if exponent == int(exponent) else exponent)


def _lrn(t):
    a = t.attributes
    x = t.input(0).astype(jnp.float32)
    channel = t.axis(1)
    before = (a["size"] - 1) // 2
    window, pads = [1] * x.ndim, [(0, 0)] * x.ndim
    window[channel], pads[channel] = a["size"], (before, a["size"] - 1 - before)
    sums = lax.reduce_window(x * x, 0.0, lax.add, window, [1] * x.ndim, pads)
    return (x * (a["bias"] + a["alpha"] / a["size"] * sums) ** -a["beta"]).astype(t.input(0).dtype)


def _bound(x, low, high):
    """x clipped to bounds, with derivative 0 at the bounds."""
    if low > -LARGEST:
        x = jnp.where(x > low, x, jnp.asarray(low, x.dtype))
    return jnp.where(x < high, x, jnp.asarray(high, x.dtype)) if high < LARGEST else x


def _softmax(t):
    return jax.nn.softmax(t.input(0), axis=t.axis(t.attributes["axis"]))


def _concat(t):
    return jnp.concatenate(t.inputs, t.axis(t.attributes["axis"]))


def _slice(t):
    a = t.attributes
    return lax.slice_in_dim(t.input(0), a["start"], a["end"], a["step"], t.axis(a["axis"]))


def _pad(t):
    return jnp.pad(t.input(0), t.pads(), constant_values=t.attributes["value"])


def _dropout(t):
    if not t.drops:
        return t.input(0)
    keep = 1.0 - t.attributes["ratio"]
    key = jax.random.fold_in(t.run.context["key"], t.index)
    kept = jax.random.bernoulli(key, keep, t.input(0).shape)
    return jnp.where(kept, t.input(0) / keep, 0.0)


def _broadcast(function):
    def row(t):
        return function(t.operand(0, jnp.reshape, jnp.transpose),
                        t.operand(1, jnp.reshape, jnp.transpose))
    return row


def _scan(t, states, step):
    """The hidden states of a recurrence, or the last one: the products with the inputs for all times at once, then a
    lax.scan over time. step: (products at a time, state, recurrent weights) -> state, whose first part is the hidden
    state; the state has that many parts."""
    x, weight, recurrent, bias = t.inputs
    rows, hidden = recurrent.shape
    sequence = t.attributes.get("sequence", False)
    given = jnp.einsum("nti,gi->tng", x, weight) + bias[:rows]
    start = (jnp.zeros((x.shape[0], hidden), given.dtype),) * states

    def at_time(state, at):
        state = step(at, state, recurrent)
        return state, state[0] if sequence else None
    last, every = lax.scan(at_time, start, given, reverse=t.attributes.get("direction", "forward") == "reverse")
    return jnp.swapaxes(every, 0, 1) if sequence else last[0]


def _rnn(t):
    activation = jnp.tanh if t.attributes.get("activation", "Relu") == "Tanh" else jax.nn.relu
    return _scan(t, 1, lambda at, state, recurrent: (activation(at + state[0] @ recurrent.T),))


def _gru(t):
    """Gates z, r, h. With linear_before_reset, the last block of the bias is that of h's recurrent product."""
    linear, bias = t.attributes.get("linear_before_reset", False), t.inputs[3]

    def step(at, state, recurrent):
        state, hidden = state[0], recurrent.shape[1]
        z, r = jnp.split(jax.nn.sigmoid(at[:, :2 * hidden] + state @ recurrent[:2 * hidden].T), 2, axis=1)
        if linear:
            fresh = r * (state @ recurrent[2 * hidden:].T + bias[3 * hidden:])
        else:
            fresh = (r * state) @ recurrent[2 * hidden:].T
        fresh = jnp.tanh(at[:, 2 * hidden:] + fresh)
        return (fresh + z * (state - fresh),)
    return _scan(t, 1, step)


def _lstm_step(at, state, recurrent):
    i, o, f, c = jnp.split(at + state[0] @ recurrent.T, 4, axis=1)
    memory = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(c)
    return jax.nn.sigmoid(o) * jnp.tanh(memory), memory


def _cross_entropy(t):
    """Mean over the labels that are not ignored."""
    logits, labels = jax.nn.log_softmax(t.input(0).astype(jnp.float32)), t.input(1)
    if not t.case.ignores_labels():
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], axis=1))
    labels = labels.reshape(-1)
    valid = labels != IGNORED
    right = jnp.take_along_axis(logits, jnp.where(valid, labels, 0)[:, None], axis=1)[:, 0]
    return -jnp.sum(jnp.where(valid, right, 0.0)) / jnp.sum(valid)


def _attention(t):
    """jax.nn.dot_product_attention; its layout is N x T x H x d."""
    a = t.attributes

    def call(q, k, v, mask=None):
        if a["key_order"] != [0, 1, 2, 3]:
            k = jnp.transpose(k, a["key_order"])
        q, k, v = (jnp.transpose(x, (0, 2, 1, 3)) for x in (q, k, v))
        if a["causal"] or mask is None:
            mask = None
        else:
            mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        result = jax.nn.dot_product_attention(q, k, v, mask, scale=a["scale"], is_causal=a["causal"])
        return jnp.transpose(result, (0, 2, 1, 3))
    return t.in_graph_order(call, jnp.transpose)


def _gather(t):
    return t.in_graph_order(lambda table, indices: jnp.take(table, indices, axis=0), jnp.transpose)


def _half_squares(t):
    return 0.5 * jnp.sum(jnp.square(t.input(0).astype(jnp.float32)))


def _plain(function):
    return lambda t: function(t.input(0))


def _reshape(t):
    return t.reshaped(jnp.reshape, jnp.transpose)


def _hard_swish(x):
    return x * _bound(x / 6.0 + 0.5, 0.0, 1.0)


def _tensor_scatter(t):
    """The cache with rows written from the row of each sample on. The step donates the cache's memory."""
    past, rows, axis = t.input(0), t.input(1), t.axis(t.attributes["axis"])
    if t.input(2) is None:
        present = lax.dynamic_update_slice_in_dim(past, rows, 0, axis)
    else:
        present = jax.vmap(lambda one, new, start: lax.dynamic_update_slice_in_dim(one, new, start, axis - 1))(
            past, rows, t.input(2))
    t.run.updates[t.names[0]] = present
    return present


OPERATORS = {
    ATTENTION: _attention,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda t: _mean(t, (2, 3), True),
    "Gemm": _gemm,
    "MatMul": lambda t: t.in_graph_order(jnp.matmul, jnp.transpose),
    "Relu": _plain(jax.nn.relu),
    "Tanh": _plain(jnp.tanh),
    "Sigmoid": _plain(jax.nn.sigmoid),
    "HardSigmoid": lambda t: _bound(t.attributes["alpha"] * t.input(0) + t.attributes["beta"], 0.0, 1.0),
    "Swish": lambda t: t.input(0) * jax.nn.sigmoid(t.attributes["alpha"] * t.input(0)),
    "HardSwish": _plain(_hard_swish),
    "Clip": lambda t: _bound(t.input(0), t.attributes["min"], t.attributes["max"]),
    "Elu": lambda t: jax.nn.elu(t.input(0), t.attributes["alpha"]),
    "LeakyRelu": lambda t: jnp.where(t.input(0) > 0, t.input(0), t.attributes["alpha"] * t.input(0)),
    "Erf": _plain(lax.erf),
    "Pow": _pow,
    "Exp": _plain(jnp.exp),
    "Log": _plain(jnp.log),
    "Sqrt": _plain(jnp.sqrt),
    "Gelu": lambda t: jax.nn.gelu(t.input(0), approximate=t.attributes["approximate"] == "tanh"),
    "Neg": _plain(jnp.negative),
    "Softmax": _softmax,
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _row_norm,
    "RMSNormalization": _row_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _group_norm,
    "LRN": _lrn,
    "Flatten": _reshape,
    "Reshape": _reshape,
    "Identity": _plain(lambda x: x),
    "Transpose": lambda t: jnp.transpose(t.input(0), t.layout.permutation(t.attributes["perm"])),
    "Expand": lambda t: jnp.broadcast_to(t.operand(0, jnp.reshape, jnp.transpose), t.layout.shape(t.shape)),
    "Concat": _concat,
    "Slice": _slice,
    SPLIT: lambda t, sizes, axis: lax.split(t.input(0), sizes, axis),
    "Resize": _resize,
    "Pad": _pad,
    "ReduceMean": _reduce_mean,
    "Gather": _gather,
    "TensorScatter": _tensor_scatter,
    "Dropout": _dropout,
    "Add": _broadcast(jnp.add),
    "Sub": _broadcast(jnp.subtract),
    "Mul": _broadcast(jnp.multiply),
    "Div": _broadcast(jnp.divide),
    "LSTM": lambda t: _scan(t, 2, _lstm_step),
    "GRU": _gru,
    "RNN": _rnn,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    "HalfSumOfSquares": _half_squares,
}

# (case, node) -> why this node is not supported, or None.
REFUSALS = {"Gather": graph_analysis.gather_problem, "Resize": _resize_problem}
