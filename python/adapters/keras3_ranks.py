"""Several ranks of Keras 3 on JAX, by its DataParallel: one program of the whole batch, which XLA divides."""
import keras

from adapters import jax_ranks

SETTING = "keras.distribution.DataParallel"


class Divided(keras.distribution.DataParallel):
    def get_variable_layout(self, variable):
        """Of the logits a rank keeps its part."""
        if variable.name == "logits":
            return self.get_data_layout(variable.shape)
        return super().get_variable_layout(variable)


def problems(case):
    """List of str: why several ranks are not supported."""
    reasons = ["option eager is not supported with several ranks"] if "eager" in case.options else []
    return reasons + ["several ranks: " + problem for problem in jax_ranks.global_problems(case)]


def divide():
    """Divides the batches of models that are built afterwards over all ranks."""
    keras.distribution.set_distribution(Divided(devices=keras.distribution.list_devices(), auto_shard_dataset=False))
