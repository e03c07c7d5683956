"""Traces of tf.profiler, for TensorFlow and for Keras on TensorFlow."""
import tensorflow as tf

from adapters.traced_layers import LayerTrace


def start(folder):
    """The highest level, which includes small operations."""
    tf.profiler.experimental.start(folder, tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=3, python_tracer_level=0, device_tracer_level=0))


def layer_trace(case):
    """Starts a trace; returns the LayerTrace."""
    return LayerTrace(case, start, tf.profiler.experimental.stop, tf.profiler.experimental.Trace)
