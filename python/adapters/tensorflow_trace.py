"""Traces of tf.profiler, of TensorFlow and of Keras on it."""
import tensorflow as tf

from adapters.traced_layers import LayerTrace


def start(folder):
    """Small operations, too: they are of the highest level."""
    tf.profiler.experimental.start(folder, tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=3, python_tracer_level=0, device_tracer_level=0))


def layer_trace(case):
    """A LayerTrace that has begun."""
    return LayerTrace(case, start, tf.profiler.experimental.stop, tf.profiler.experimental.Trace)
