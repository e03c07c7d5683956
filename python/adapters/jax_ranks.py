"""Several ranks of JAX: one process each, joined by jax.distributed. The step is one program over all of them. By
default a rank has its part of the batch and all of the state (shard_map), and normalises by its part; with the option
global_batch the program is that of the whole batch (jit), which XLA divides, and it normalises by all of it."""
import copy
import functools

import jax
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "ranks"


def global_problems(case):
    """List of str: why one program cannot compute the whole batch."""
    fixed = sorted({node["op"] for node in case.nodes if node["op"] in ("Reshape", "Expand")})
    return ["%s has the batch of a rank in its shape" % op for op in fixed]


class Ranks(object):
    def __init__(self, target):
        """Joins the other ranks. Must precede any use of a device."""
        self.count, self.divided = target.world_size, True
        jax.distributed.initialize("127.0.0.1:%d" % target.ports[0], target.world_size, target.rank)

    @functools.cached_property
    def mesh(self):
        return Mesh(numpy.array(jax.devices()), (AXIS,))

    def _array(self, spec, value):
        return jax.make_array_from_process_local_data(NamedSharding(self.mesh, spec), numpy.asarray(value))

    def share(self, part):
        """The array of a whole batch, of which this rank gives `part`."""
        return self._array(PartitionSpec(AXIS), part)

    def everywhere(self, tree):
        """The arrays of a tree, equal on all ranks."""
        def one(value):
            if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
                return jax.random.wrap_key_data(self._array(PartitionSpec(), jax.random.key_data(value)))
            return self._array(PartitionSpec(), value)
        return jax.tree.map(one, tree)

    def whole(self, parts, case):
        """The shapes of the whole batch for those of parts."""
        samples = case.recipe["batch"] * self.count
        return [jax.ShapeDtypeStruct((samples,) + part.shape[1:], part.dtype,
                                     sharding=NamedSharding(self.mesh, PartitionSpec(AXIS))) for part in parts]

    def whole_case(self, case):
        """The Case of the whole batch."""
        whole, batch = copy.copy(case), case.recipe["batch"]
        whole.values = {name: dict(value, shape=[batch * self.count] + value["shape"][1:])
                        if value["kind"] not in ("parameter", "state") and value["shape"][:1] == [batch] else value
                        for name, value in case.values.items()}
        return whole

    def program(self, case, parts):
        """(shapes of a batch, Case) of what one program computes: a rank's part, or the whole batch."""
        return (parts, case) if self.divided else (self.whole(parts, case), self.whole_case(case))

    def mapped(self, train):
        """train(state, gradients, batch) -> (state, gradients, [loss, logits]) as a program of all ranks. What
        differs between them though it is no part of a batch, as running statistics, is each rank's own."""
        if not self.divided:
            return train
        everywhere, parts = PartitionSpec(), PartitionSpec(AXIS)

        def step(state, gradients, batch):
            state, gradients, (loss, logits) = train(state, gradients, batch)
            return state, gradients, [jax.lax.pmean(loss, AXIS), logits]
        return jax.shard_map(step, mesh=self.mesh, in_specs=(everywhere, everywhere, parts),
                             out_specs=(everywhere, everywhere, [everywhere, parts]), check_vma=False)

    @staticmethod
    def own_key(key):
        """The rank's own random numbers."""
        return jax.random.fold_in(key, jax.lax.axis_index(AXIS))

    @staticmethod
    def mean(gradients):
        return jax.lax.pmean(gradients, AXIS)

    @staticmethod
    def own(value):
        """What this rank has of an array."""
        return value.addressable_data(0)
