"""The worker's end of the ring of batches that arrive while the network runs (docs/worker-protocol.md, "The
ring of batches")."""
import os

from errors import WorkerError
from safetensors_io import DTYPE_BYTES, Tensor, elements

ALIGNMENT = 4096


def pages(size):
    """A size rounded up to whole pages."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class Ring(object):
    """batches is a list, one entry for each slot, of (inputs, labels): lists of Tensor over the memory of
    the slot. waited and copied are nanoseconds since begin()."""

    def __init__(self, request):
        """`request` is the member `ring` of hello. Takes over its descriptors."""
        try:
            self.ready, self.free = request["ready_fd"], request["free_fd"]
            for descriptor in (self.ready, self.free):
                os.set_inheritable(descriptor, False)
        except (TypeError, KeyError, OSError) as error:
            raise WorkerError("invalid", "hello: ring %r: %s" % (request, error))
        self.waited = self.copied = 0

    def lay_out(self, case, room, region):
        """Divides `region` (offset, bytes) of the memory `room` into the case's slots."""
        inputs, labels = case.batch(0)
        sizes = [DTYPE_BYTES[like.dtype] * elements(like.shape) for like in inputs + labels]
        # A slot has room for one label per sample even if the network has no labels.
        stride = sum(map(pages, sizes)) + (0 if labels else pages(8 * case.recipe["batch"]))
        if stride * case.slots > region[1]:
            raise WorkerError("invalid", "the ring of %d bytes is too small for %d slots of %d bytes"
                              % (region[1], case.slots, stride))
        view = memoryview(room)
        self.batches = []
        for slot in range(case.slots):
            offset, tensors = region[0] + slot * stride, []
            for like, size in zip(inputs + labels, sizes):
                tensors.append(Tensor(like.name, like.dtype, like.shape, view[offset:offset + size]))
                offset += pages(size)
            self.batches.append((tensors[:len(inputs)], tensors[len(inputs):]))

    def begin(self):
        self.waited = self.copied = 0

    def stepping(self, feed, step, now):
        """Returns a step that waits for the batch of its slot, feeds it, steps, and frees the slot. A
        framework has copied the batch when feed returns, or no longer needs it when step returns. Without
        a step (None) it only waits."""
        ready, free, batches = self.ready, self.free, self.batches
        read, write = os.read, os.write

        def stream(slot):
            begin = now()
            if not read(ready, 1):
                raise WorkerError("invalid", "the sender closed the ring of batches")
            taken = now()
            self.waited += taken - begin
            if step:
                feed(slot, *batches[slot])
                self.copied += now() - taken
                step(slot)
            write(free, b"\0")
        return stream
