"""Converts tensors of a case to arrays of NumPy and back."""
import numpy

from errors import WorkerError
from safetensors_io import elements

DTYPES = {"F32": numpy.float32, "F16": numpy.float16, "I64": numpy.int64, "I32": numpy.int32, "BOOL": numpy.bool_}
TAKEN = {"I64": numpy.int32, "F16": numpy.float32}  # types to which a batch is converted


def array(tensor, order=None):
    """A Tensor's data as an array, transposed by `order`: dimension i of the result is dimension order[i] of
    the tensor. It shares the tensor's memory; a transposed array is a contiguous copy."""
    value = numpy.frombuffer(tensor.data, dtype=DTYPES[tensor.dtype]).reshape(tensor.shape)
    if order is None or list(order) == sorted(order):
        return value
    return numpy.ascontiguousarray(value.transpose(order))


def batch_arrays(inputs, labels, layout):
    """List of the arrays of a batch, as most frameworks need them: inputs in `layout` (a
    graph_evaluation.Layout), integers as int32, floats as float32. inputs and labels are lists of Tensor."""
    found = []
    for tensor in inputs + labels:
        if elements(tensor.shape) == 0:
            raise WorkerError("unsupported", "tensor %s has no elements" % tensor.name)
        value = array(tensor, layout.order(len(tensor.shape)) if tensor in inputs else None)
        found.append(value.astype(TAKEN[tensor.dtype]) if tensor.dtype in TAKEN else value)
    return found


def fill(tensor, value, order=None):
    """Copies an array that was transposed by `order` (see above) to the data of an F32 Tensor."""
    value = numpy.asarray(value)
    if order is not None:
        value = value.transpose(numpy.argsort(order))
    if list(value.shape) != tensor.shape:
        raise ValueError("%s has the shape %s, but the case says %s"
                         % (tensor.name, list(value.shape), tensor.shape))
    target = numpy.frombuffer(tensor.data, dtype=numpy.float32).reshape(tensor.shape)
    target[...] = value
