"""Traces of jax.profiler, for JAX and for Keras on JAX."""
import jax

from adapters.traced_layers import LayerTrace


def start(folder):
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(folder, profiler_options=options)


def layer_trace(case):
    """Starts a trace; returns the LayerTrace."""
    return LayerTrace(case, start, jax.profiler.stop_trace, jax.profiler.TraceAnnotation)
