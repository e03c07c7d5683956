"""Batches that arrive while the network runs: the worker's end of the ring (docs/worker-protocol.md,
"The ring of batches")."""
import os

from errors import WorkerError
from safetensors_io import Tensor, elements

ALIGNMENT = 4096


def pages(size):
    """A size rounded up to whole pages."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class Ring(object):
    """inputs and labels are lists of Tensor over the memory of the slots (labels: None where the case
    has none); waited and copied are nanoseconds since begin()."""

    def __init__(self, request):
        """`request` is the member `ring` of hello; the descriptors are ours from now on."""
        try:
            self.ready, self.free = request["ready_fd"], request["free_fd"]
            for descriptor in (self.ready, self.free):
                os.set_inheritable(descriptor, False)
        except (TypeError, KeyError, OSError) as error:
            raise WorkerError("invalid", "hello: ring %r: %s" % (request, error))
        self.waited = self.copied = 0

    def lay_out(self, case, room, region):
        """Lays the case's slots over `region` (offset, bytes) of the memory `room`."""
        x, y = case.batch(0)
        # Labels have their place also where the network has none.
        labels = pages(4 * elements(x.shape))
        stride = labels + pages(8 * case.recipe["batch"])
        if stride * case.slots > region[1]:
            raise WorkerError("invalid", "the ring has %d bytes, %d slots of %d need more"
                              % (region[1], case.slots, stride))
        view = memoryview(room)
        self.inputs, self.labels = [], []
        for slot in range(case.slots):
            place = region[0] + slot * stride
            self.inputs.append(self._over(x, view, place))
            self.labels.append(y and self._over(y, view, place + labels))

    @staticmethod
    def _over(like, view, place):
        size = elements(like.shape) * (8 if like.dtype == "I64" else 4)
        return Tensor(like.name, like.dtype, like.shape, view[place:place + size])

    def begin(self):
        self.waited = self.copied = 0

    def stepping(self, feed, step, now):
        """A step that waits for the batch of its slot, feeds it, steps, and gives the slot back: a
        framework has copied it when feed returns, or is done with it when step returns. step None: it
        only waits."""
        ready, free, inputs, labels = self.ready, self.free, self.inputs, self.labels
        read, write = os.read, os.write

        def stream(slot):
            begin = now()
            if not read(ready, 1):
                raise WorkerError("invalid", "no more batches come")
            taken = now()
            self.waited += taken - begin
            if step:
                feed(slot, inputs[slot], labels[slot])
                self.copied += now() - taken
                step(slot)
            write(free, b"\0")
        return stream
