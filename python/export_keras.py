"""A model of Keras 3 for export_model.py, on Keras' backend torch, where layers are modules of PyTorch.

Keras computes some layers by plain arithmetic or Einsum, and leaves Dropout out of a model that it evaluates. For the
export they are computed by PyTorch's own functions, so that the ONNX file has operators that a graph can have.
"""
import contextlib
import inspect
import math
import os
import sys

# Before Keras is imported.
VARIABLES = {"KERAS_BACKEND": "torch", "KERAS_TORCH_DEVICE": "cpu"}


def prepare():
    """Keras reads these variables when it is imported."""
    os.environ.update(VARIABLES)


def is_model(thing):
    """Whether it is a layer or model of Keras 3."""
    keras = sys.modules.get("keras")
    return keras is not None and hasattr(keras, "Layer") and isinstance(thing, keras.Layer)


def seed(number):
    """Seeds all that Keras draws weights from, if it was imported."""
    if "keras" in sys.modules:
        sys.modules["keras"].utils.set_random_seed(number)


def wrap(model, torch):
    """A torch.nn.Module that takes the model's inputs one by one. Its attribute `keras_inputs` has {name: (dims,
    dtype)}; dims are None where Keras does not know them."""

    class Wrapper(torch.nn.Module):
        """Calls the model as in evaluation."""

        def __init__(self):
            super().__init__()
            self.model = model
            self.keras_inputs = {}
            for tensor in getattr(model, "inputs", None) or []:
                dims = tuple(tensor.shape[1:])
                self.keras_inputs[tensor.name] = None if None in dims else dims, getattr(torch, tensor.dtype)
            for name in [] if self.keras_inputs else inspect.signature(model.call).parameters:
                if name not in ("training", "mask", "args", "kwargs"):
                    self.keras_inputs[name] = None, torch.float32

        def forward(self, *inputs):
            return self.model(inputs[0] if len(inputs) == 1 else list(inputs), training=False)

    return Wrapper()


def table_sizes(model):
    """The rows of its embeddings."""
    return {layer.input_dim for layer in model.model._flatten_layers() if type(layer).__name__ == "Embedding"}


def _value(variable):
    return None if variable is None else variable.value


def _batch_normalisation(layer, inputs, training=None, mask=None):
    from torch.nn import functional
    axis = layer.axis % inputs.ndim
    features = inputs if axis == 1 else inputs.movedim(axis, 1)
    out = functional.batch_norm(features, layer.moving_mean.value, layer.moving_variance.value, _value(layer.gamma),
                                _value(layer.beta), False, 1 - layer.momentum, layer.epsilon)
    return out if axis == 1 else out.movedim(1, axis)


def _layer_normalisation(layer, inputs):
    from torch.nn import functional
    axes = [layer.axis] if isinstance(layer.axis, int) else list(layer.axis)
    factor = layer.beta if layer.gamma is None else layer.gamma
    last = sorted(axis % inputs.ndim for axis in axes) == list(range(inputs.ndim - len(axes), inputs.ndim))
    if layer.rms_scaling or factor is None or not last:
        return layer.plain_call(inputs)
    return functional.layer_norm(inputs, tuple(factor.shape), _value(layer.gamma), _value(layer.beta), layer.epsilon)


def _dropout(layer, inputs, training=False):
    from torch.nn import functional
    if layer.noise_shape is not None or layer.rate == 0:
        return inputs
    return functional.dropout(inputs, layer.rate, True)


def _embedding(layer, inputs):
    from torch.nn import functional
    if inputs.dtype.is_floating_point:
        return layer.plain_call(inputs)
    return functional.embedding(inputs, layer.embeddings.value)


def _dense(layer, inputs, training=None):
    """A matrix product, where the last dimensions of the input are the first of the kernel: abc,cde->abde."""
    left, _, out = layer.equation.partition("->")
    left, _, right = left.partition(",")
    count = sum(letter in left for letter in right)
    if not (count and left[-count:] == right[:count] and out == left[:-count] + right[count:] and left.isalpha()):
        return layer.plain_call(inputs, training)
    kernel = layer.kernel.value if hasattr(layer.kernel, "value") else layer.kernel
    sizes = tuple(kernel.shape)
    outputs = inputs.flatten(-count) if count > 1 else inputs
    outputs = outputs @ kernel.reshape(math.prod(sizes[:count]), math.prod(sizes[count:]))
    if len(sizes) > count + 1:
        outputs = outputs.unflatten(-1, sizes[count:])
    if layer.bias is not None:
        outputs = outputs + layer.bias.value
    return outputs if layer.activation is None else layer.activation(outputs)


def _attention(layer, query, key, value, attention_mask=None, training=None, return_attention_scores=False, **more):
    """Where the layer drops weights of the attention; the others are one call in Keras, too."""
    import torch
    if layer._dropout == 0 or return_attention_scores or query.ndim != 4:
        return layer.plain_call(query, key, value, attention_mask=attention_mask, training=training,
                                return_attention_scores=return_attention_scores, **more)
    scores = query.transpose(1, 2) @ key.permute(0, 2, 3, 1) * layer._inverse_sqrt_key_dim
    if more.get("use_causal_mask"):
        causal = torch.ones(int(query.shape[1]), int(key.shape[1]), dtype=torch.bool).tril()[None]
        attention_mask = causal if attention_mask is None else attention_mask.bool() & causal
    if attention_mask is not None:
        scores = torch.where(attention_mask.bool().unsqueeze(1), scores, -1e9)
    weights = torch.nn.functional.dropout(torch.softmax(scores, -1), layer._dropout, True)
    return (weights @ value.transpose(1, 2)).transpose(1, 2), None


@contextlib.contextmanager
def own_operators():
    """Within it, Keras' layers are exported as operators of their own."""
    layers = sys.modules["keras"].layers
    changed = ((layers.BatchNormalization, "call", _batch_normalisation), (layers.Dropout, "call", _dropout),
               (layers.LayerNormalization, "call", _layer_normalisation), (layers.Embedding, "call", _embedding),
               (layers.EinsumDense, "call", _dense), (layers.MultiHeadAttention, "_compute_attention", _attention))
    plain = [getattr(kind, name) for kind, name, _ in changed]
    for kind, name, call in changed:
        kind.plain_call = getattr(kind, name)
        setattr(kind, name, call)
    try:
        yield
    finally:
        for (kind, name, _), call in zip(changed, plain):
            setattr(kind, name, call)
            del kind.plain_call
