"""Runs steps by Keras' own loop over epochs (the axis loop = fit), for Keras 2 and 3. A block is an epoch; its
batches are one array, like a user's data set."""
import itertools

import keras
import numpy

# predict of Keras 2 takes no callbacks
PREDICT_CALLS_BACK = int(keras.__version__.split(".")[0]) > 2


class Marks(keras.callbacks.Callback):
    """Calls `mark` at the beginning and at the end of each epoch."""

    def __init__(self, mark):
        super(Marks, self).__init__()
        self.mark = mark

    def on_epoch_begin(self, epoch, logs=None):
        self.mark()

    def on_epoch_end(self, epoch, logs=None):
        self.mark()

    def on_predict_begin(self, logs=None):
        self.mark()

    def on_predict_end(self, logs=None):
        self.mark()


def _joined(batches, slot, steps):
    """The arrays of `count` batches, from `slot` on, joined into one."""
    taken = [batches[(slot + i) % len(batches)] for i in range(steps)]
    return [numpy.concatenate(arrays) for arrays in zip(*taken)]


def fit(model, batches, blocks, slot, callback):
    """Trains for blocks of steps (list of int); each block begins with the batch of `slot`. batches: [(input,
    labels)]. Returns the slot of the last step."""
    for steps, group in itertools.groupby(blocks):
        x, y = _joined(batches, slot, steps)
        model.fit(x, y, batch_size=len(batches[slot][0]), epochs=len(list(group)), verbose=0,
                  shuffle=False, callbacks=[callback])
    return (slot + blocks[-1] - 1) % len(batches)


def predict(model, batches, blocks, slot, mark):
    """The same with predict; returns its result for the last batch."""
    size, found = len(batches[slot][0]), None
    for steps, group in itertools.groupby(blocks):
        x, = _joined([batch[:1] for batch in batches], slot, steps)
        for _ in group:
            if PREDICT_CALLS_BACK:
                found = model.predict(x, batch_size=size, verbose=0, callbacks=[Marks(mark)])
            else:
                mark()
                found = model.predict(x, batch_size=size)
                mark()
    return found[-size:]
