"""Reads and writes safetensors images with the standard library only.

An image is 8 bytes of header length (little-endian), a JSON header, the data
(https://huggingface.co/docs/safetensors). Frameworks read and write the data as buffers."""
import json
import mmap
import struct

DTYPE_BYTES = {"F32": 4, "F64": 8, "BF16": 2, "F16": 2, "I32": 4, "I64": 8, "U8": 1,
               "BOOL": 1}
HEADER_BYTES_MAX = 16 << 20
ALIGNMENT = 64


class Tensor(object):
    """A named array in host memory: dtype is a key of DTYPE_BYTES, shape a list of int, data a
    bytes-like object, contiguous, row-major, little-endian."""

    __slots__ = ("name", "dtype", "shape", "data")

    def __init__(self, name, dtype, shape, data=None):
        self.name = name
        self.dtype = dtype
        self.shape = list(shape)
        self.data = data


def elements(shape):
    """Number of elements of a shape (list of int); 1 for a scalar."""
    count = 1
    for dimension in shape:
        count *= dimension
    return count


def header(tensors):
    """(header (bytes), size of the whole image) for a list of Tensor. The header ends at a multiple of 64; the
    data follow in the list's order without gaps, and may still be missing."""
    offset = 0
    entries = {}
    for tensor in tensors:
        size = elements(tensor.shape) * DTYPE_BYTES[tensor.dtype]
        entries[tensor.name] = {"dtype": tensor.dtype, "shape": tensor.shape,
                                "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    return struct.pack("<Q", len(text)) + text, 8 + len(text) + offset


def lay_out(tensors, room):
    """Writes the header of a list of Tensor to `room`, a writable memoryview of the size that header() returns,
    and sets each tensor's data to its part of `room`, to be filled by the caller."""
    head, _ = header(tensors)
    offset = len(head)
    room[:offset] = head
    for tensor in tensors:
        size = elements(tensor.shape) * DTYPE_BYTES[tensor.dtype]
        tensor.data = room[offset:offset + size]
        offset += size


def _entry(name, entry, data, path):
    begin, end = entry["data_offsets"]
    shape = entry["shape"]
    if entry["dtype"] not in DTYPE_BYTES:
        raise ValueError("%s: tensor %s has the unknown dtype %s" % (path, name, entry["dtype"]))
    if (any(type(dimension) is not int or dimension < 0 for dimension in shape)
            or not 0 <= begin <= end <= len(data)
            or end - begin != elements(shape) * DTYPE_BYTES[entry["dtype"]]):
        raise ValueError("%s: tensor %s does not fit its shape or the file" % (path, name))
    return Tensor(name, entry["dtype"], shape, data[begin:end])


def read(room, path):
    """{name: Tensor} in the header's order, from an image in a buffer, which holds the data. `path` is for
    messages. Raises ValueError if the image is damaged."""
    view = memoryview(room)
    length = struct.unpack_from("<Q", view)[0] if len(view) >= 8 else len(view)
    if length > HEADER_BYTES_MAX or 8 + length > len(view):
        raise ValueError("%s: not a safetensors file (header of %d bytes)" % (path, length))
    try:
        header = json.loads(bytes(view[8:8 + length]).decode())
        header.pop("__metadata__", None)
        return {name: _entry(name, entry, view[8 + length:], path)
                for name, entry in header.items()}
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError("%s: bad safetensors header: %r" % (path, error))


def map_file(path):
    """{name: Tensor} of a file, which is mapped privately, so that pages are read when they are used."""
    with open(path, "rb") as source:
        if source.seek(0, 2) == 0:
            raise ValueError("%s: empty file" % path)
        return read(mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_COPY), path)
