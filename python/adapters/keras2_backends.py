"""What differs between the backends of Keras 2, apart from the layers."""
import os


def channels_last(backend):
    """Whether a backend computes on N x H x W x C: TensorFlow's convolutions on a CPU know nothing else."""
    return backend == "tensorflow"


def libraries(backend):
    """{library: version}."""
    import importlib
    return {backend: importlib.import_module(backend).__version__}


def _start_tensorflow(recipe):
    import tensorflow as tf
    from keras import backend as K
    tf.compat.v1.logging.set_verbosity("ERROR")
    tf.compat.v1.set_random_seed(recipe["seed"])
    K.set_session(tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=recipe["threads"],
        inter_op_parallelism_threads=recipe["threads"])))  # as many, as by default
    return recipe["threads"], {"inter_op_threads": recipe["threads"]}


def _start_theano(recipe):
    import theano
    threads = int(os.environ.get("OMP_NUM_THREADS", "1")) if theano.config.openmp else 1
    return threads, {"openmp": theano.config.openmp, "blas_ldflags": theano.config.blas.ldflags}


def _start_cntk(recipe):
    import adapters.cntk_setup
    return adapters.cntk_setup.start(recipe), {}


def _start_mxnet(recipe):
    import mxnet
    mxnet.random.seed(recipe["seed"])
    return int(os.environ.get("OMP_NUM_THREADS", "1")), {}


_STARTS = {"tensorflow": _start_tensorflow, "theano": _start_theano, "cntk": _start_cntk,
           "mxnet": _start_mxnet}


def start(backend, recipe):
    """(threads, {setting: value}): tells a backend how many threads to take."""
    return _STARTS[backend](recipe)


def _waiting(kind, *arguments):
    """An optimiser of Keras' for TensorFlow 1, whose first update waits for the last gradient: Keras changes
    a weight as soon as its own gradient is there, while others are still computed from it."""
    import tensorflow as tf

    class Waiting(kind):
        def get_gradients(self, loss, params):
            return tf.tuple(super(Waiting, self).get_gradients(loss, params))
    return Waiting(*arguments)


def optimiser(backend, recipe):
    """Keras' optimiser of a recipe. On TensorFlow 1 its own race (`_waiting`); for those that TensorFlow has by
    the same rule, its own are taken, which wait by themselves. Its RMSprop begins with a mean square of 1."""
    rate = recipe["learning_rate"]
    momentum = recipe["momentum"] if recipe["optimiser"] == "momentum" else 0.0
    import keras
    if recipe["optimiser"] == "rmsprop":
        how = rate, recipe["rho"], recipe["epsilon"]
        if backend == "tensorflow":
            return _waiting(keras.optimizers.RMSprop, *how)
        return keras.optimizers.RMSprop(*how)
    if backend != "tensorflow":
        return keras.optimizers.SGD(rate, momentum)
    import tensorflow as tf
    return keras.optimizers.TFOptimizer(
        tf.compat.v1.train.MomentumOptimizer(rate, momentum) if momentum
        else tf.compat.v1.train.GradientDescentOptimizer(rate))


def loss(backend):
    """Function of labels (one-hot) and logits: the cross-entropy of each sample. Keras on Theano and MXNet
    cuts probabilities off at 1e-7 and has no gradient there; they themselves do not."""
    if backend == "theano":
        import theano.tensor as T
        return lambda labels, logits: T.nnet.categorical_crossentropy(T.nnet.softmax(logits), labels)
    from keras import backend as K
    if backend == "mxnet":
        import mxnet
        from keras.backend.mxnet_backend import KerasSymbol, keras_mxnet_symbol
        log_softmax = keras_mxnet_symbol(
            lambda x: KerasSymbol(mxnet.sym.log_softmax(data=x.symbol)))
        return lambda labels, logits: -K.sum(labels * log_softmax(logits), axis=-1)
    return lambda labels, logits: K.categorical_crossentropy(labels, logits, from_logits=True)


def also_return(backend, model, value):
    """Makes train_on_batch of a compiled model return, behind the loss, `value` of the same pass; on MXNet,
    whose metrics are means, `trained_value` gives it."""
    if backend == "mxnet":
        import mxnet
        from keras import backend as K
        phase = K.learning_phase()
        K.set_learning_phase(1)
        model._train_mxnet_symbol = mxnet.sym.Group(
            [model._train_mxnet_symbol, mxnet.sym.BlockGrad(value.symbol)])
        K.set_learning_phase(phase)
        return
    model.metrics_tensors.append(value)
    model.metrics_names.append("logits")


def trained_value(model):
    """What also_return asked for of the last step, on MXNet."""
    return model._module.get_outputs()[-1].asnumpy()


def value(backend, model, variable):
    """The array of a variable of a model's. On MXNet K.get_value gives what was set, not what was trained."""
    if backend == "mxnet" and model.compiled:
        model._sync_weights()
        for kept in (model._args, model._auxs):
            if variable.name in kept:
                return kept[variable.name].asnumpy()
    from keras import backend as K
    return K.get_value(variable)
