"""jax.profiler's traces, of JAX and of Keras on it."""
import jax

from adapters.traced_layers import LayerTrace


def start(folder):
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(folder, profiler_options=options)


def layer_trace(case):
    """A LayerTrace that has begun."""
    return LayerTrace(case, start, jax.profiler.stop_trace, jax.profiler.TraceAnnotation)
