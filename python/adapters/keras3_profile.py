"""Profiles layers of Keras 3 with the backend's profiler: each call of an operation runs in the scope of its
node."""
import functools

import keras

from adapters import traced_layers


def _torch_scope(name):
    import torch
    return torch.profiler.record_function(name)


def _scope():
    """The backend's context manager for a named scope."""
    if keras.backend.backend() == "torch":
        return _torch_scope
    if keras.backend.backend() == "jax":
        import jax
        return jax.named_scope
    import tensorflow
    return tensorflow.name_scope


class Scopes(object):
    """Records which operations of a functional model belong to which node, and can wrap each of their calls in
    a scope. In compiled programs scopes cost nothing."""

    def __init__(self, case, source):
        """source: the model's input."""
        self.case = case
        self.places = {node["name"]: index for index, node in enumerate(case.nodes)}
        self.made = {source._keras_history.operation: None}

    def noting(self, operators):
        """The table of rows, wrapped to record the operations that each row makes."""
        def noted(row):
            def run(t, *more):
                result = row(t, *more)
                for value in result if isinstance(result, (list, tuple)) else [result]:
                    self._note(value, self.places[t.name])
                return result
            return run
        return {op: row and noted(row) for op, row in operators.items()}

    def _note(self, value, place):
        history = getattr(value, "_keras_history", None)
        if history is None or history.operation in self.made:
            return
        self.made[history.operation] = place
        for given in history.operation._inbound_nodes[history.node_index].input_tensors:
            self._note(given, place)

    def _owners(self, loss, optimizer):
        """Yields (object, name of its method, name of the scope)."""
        named = [(owner, place) for owner, place in self.made.items() if place is not None]
        lost = self.case.graph.get("loss")
        named += [(loss, index) for index, node in enumerate(self.case.nodes) if lost in node["outputs"]]
        scope, update = traced_layers.scope, traced_layers.UPDATE
        if keras.backend.backend() == "torch":
            from adapters.pytorch_profile import LAYER, UPDATE as update

            def scope(place):
                return LAYER + self.case.nodes[place]["name"]
        for owner, place in named:
            yield owner, "call", scope(place)
        yield optimizer, "apply", update

    def put(self, loss, optimizer):
        """Wraps the calls in scopes; take_away undoes it."""
        enter = _scope()

        def within(plain, name):
            @functools.wraps(plain)
            def call(*args, **kwargs):
                with enter(name):
                    return plain(*args, **kwargs)
            return call
        for owner, method, name in self._owners(loss, optimizer):
            setattr(owner, method, within(getattr(owner, method), name))

    def take_away(self, loss, optimizer):
        for owner, method, _ in self._owners(loss, optimizer):
            delattr(owner, method)


def trace(case):
    """Starts a profile of a model with scopes; returns it."""
    if keras.backend.backend() == "torch":
        from adapters.pytorch_profile import LayerProfile
        return LayerProfile()
    if keras.backend.backend() == "jax":
        from adapters.jax_trace import layer_trace
    else:
        from adapters.tensorflow_trace import layer_trace
    return layer_trace(case)
