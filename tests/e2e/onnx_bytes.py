"""Protobuf messages and ONNX models as bytes, with nothing but the standard library: the messages of
onnx.proto3 by their field numbers (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3)."""
import struct

FLOAT, INT64, STRING, BOOL = 1, 7, 8, 9


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(place, value):
    """A field of a message: a number, bytes or a text."""
    if isinstance(value, int):
        return varint(place << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(place << 3 | 2) + varint(len(value)) + value


def fields(place, values):
    return b"".join(field(place, value) for value in values)


def attribute(name, value):
    """An integer, a real, a text, a list of integers or texts, or a graph (bytes)."""
    if isinstance(value, float):
        return field(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if isinstance(value, bytes):
        return field(1, name) + field(6, value) + field(20, 5)
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    if value and isinstance(value[0], str):
        return field(1, name) + fields(9, value) + field(20, 8)
    return field(1, name) + fields(8, value) + field(20, 7)


def node(operator, inputs, outputs, **attributes):
    """A node, named after its first output."""
    return fields(1, inputs) + fields(2, outputs) + field(3, outputs[0]) + field(4, operator) + fields(
        5, (attribute(*each) for each in attributes.items()))


def tensor(name, shape, values, kind=FLOAT):
    data = struct.pack("<%d%s" % (len(values), "f" if kind == FLOAT else "q"), *values)
    return fields(1, shape) + field(2, kind) + field(8, name) + field(9, data)


def outside(name, shape, file, offset, length):
    """A tensor of floats that lies in another file."""
    entries = (("location", file), ("offset", str(offset)), ("length", str(length)))
    return fields(1, shape) + field(2, FLOAT) + field(8, name) + fields(
        13, (field(1, key) + field(2, value) for key, value in entries)) + field(14, 1)


def value_info(name, shape, kind=FLOAT):
    """Dimensions are numbers, or the names of those that are open, "" where they have none."""
    dims = fields(1, (field(1, each) if isinstance(each, int) else field(2, each) if each else b"" for each in shape))
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, dims)))


def graph(nodes, tensors, inputs, outputs):
    return (fields(1, nodes) + field(2, "g") + fields(5, tensors) + fields(11, inputs) + fields(12, outputs))


def model(nodes, tensors, inputs, outputs, opset=17):
    return field(1, 8 if opset < 21 else 10) + field(7, graph(nodes, tensors, inputs, outputs)) + field(
        8, field(1, "") + field(2, opset))
