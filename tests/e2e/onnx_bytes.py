"""ONNX models as bytes, with nothing but the standard library: the messages of onnx.proto3 by their field
numbers (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3)."""
import struct

FLOAT, INT64 = 1, 7


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def integer(field, number):
    return varint(field << 3) + varint(number)


def message(field, *parts):
    data = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    """Of the kinds that the generator needs: an integer, a real, a list of integers."""
    if isinstance(value, float):
        return message(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + integer(20, 1)
    if isinstance(value, int):
        return message(1, name) + integer(3, value) + integer(20, 2)
    return message(1, name) + b"".join(integer(8, each) for each in value) + integer(20, 7)


def node(operator, inputs, output, **attributes):
    """A node of one output, which has its name."""
    return b"".join([*(message(1, each) for each in inputs), message(2, output), message(3, output),
                     message(4, operator),
                     *(message(5, attribute(*each)) for each in attributes.items())])


def tensor(name, shape, values, kind=FLOAT):
    data = struct.pack("<%d%s" % (len(values), "f" if kind == FLOAT else "q"), *values)
    return b"".join(integer(1, each) for each in shape) + integer(2, kind) + message(8, name) \
        + message(9, data)


def value_info(name, shape):
    """Dimensions are numbers, or the names of those that are open."""
    dims = b"".join(message(1, integer(1, each) if isinstance(each, int) else message(2, each))
                    for each in shape)
    return message(1, name) + message(2, message(1, integer(1, FLOAT), message(2, dims)))


def model(nodes, tensors, inputs, outputs, opset=17):
    graph = b"".join([*(message(1, each) for each in nodes), message(2, "random"),
                      *(message(5, each) for each in tensors),
                      *(message(11, each) for each in inputs),
                      *(message(12, each) for each in outputs)])
    return integer(1, 8) + message(7, graph) + message(8, message(1, ""), integer(2, opset))
