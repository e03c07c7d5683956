"""Tensors of a case as NumPy's arrays, for frameworks that bring NumPy along."""
import numpy

DTYPES = {"F32": numpy.float32, "I64": numpy.int64}


def array(tensor, order=None):
    """A Tensor's data as an array, transposed by `order` (the tensor's dimension at each of the
    result's). It shares the tensor's memory unless dimensions move; then it is a contiguous copy."""
    value = numpy.frombuffer(tensor.data, dtype=DTYPES[tensor.dtype]).reshape(tensor.shape)
    if order is None or list(order) == sorted(order):
        return value
    return numpy.ascontiguousarray(value.transpose(order))


def fill(tensor, value, order=None):
    """Copies an array whose dimensions stand in `order` (see above) to the data of a Tensor F32."""
    value = numpy.asarray(value)
    if order is not None:
        value = value.transpose(numpy.argsort(order))
    if list(value.shape) != tensor.shape:
        raise ValueError("%s is %s, the case says %s" % (tensor.name, list(value.shape), tensor.shape))
    place = numpy.frombuffer(tensor.data, dtype=numpy.float32).reshape(tensor.shape)
    place[...] = value
