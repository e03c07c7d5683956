"""Differences between the backends of Keras 2, except in layers."""
import os


def channels_last(backend):
    """Whether a backend computes on N x H x W x C: TensorFlow's convolutions on a CPU need it."""
    return backend == "tensorflow"


def libraries(backend):
    """{library: version}."""
    import importlib
    return {backend: importlib.import_module(backend).__version__}


def _mend_tensorflow_statistics(K):
    """On TensorFlow, Keras 2.2.4 restarts running statistics whatever was set (zero_debias), and corrects a
    variance for n - 1 although the fused normalisation has already done so. This replaces its function."""
    from tensorflow.python.training import moving_averages
    normalise = K.normalize_batch_in_training

    def normalised(x, gamma, beta, axes, epsilon=1e-3):
        made, mean, variance = normalise(x, gamma, beta, axes, epsilon)
        if axes == [0, 1, 2]:
            count = K.cast(K.prod([K.shape(x)[axis] for axis in axes]), K.dtype(x))
            variance = variance * (count - 1.0) / count
        return made, mean, variance
    K.normalize_batch_in_training = normalised
    K.moving_average_update = lambda x, value, momentum: moving_averages.assign_moving_average(
        x, value, momentum, zero_debias=False)


def _start_tensorflow(recipe):
    import tensorflow as tf
    from keras import backend as K
    _mend_tensorflow_statistics(K)
    tf.compat.v1.logging.set_verbosity("ERROR")
    tf.compat.v1.set_random_seed(recipe["seed"])
    K.set_session(tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=recipe["threads"],
        inter_op_parallelism_threads=recipe["threads"])))  # the same number, as by default
    return recipe["threads"], {"inter_op_threads": recipe["threads"]}


def _mend_theano_statistics(K):
    """The variance that Keras 2.2.4 computes from Theano's normalisation (1 / std squared) includes epsilon."""
    normalise = K.normalize_batch_in_training

    def normalised(x, gamma, beta, axes, epsilon=1e-3):
        made, mean, variance = normalise(x, gamma, beta, axes, epsilon)
        return made, mean, variance - epsilon
    K.normalize_batch_in_training = normalised


def _start_theano(recipe):
    import theano
    from keras import backend as K
    _mend_theano_statistics(K)
    threads = int(os.environ.get("OMP_NUM_THREADS", "1")) if theano.config.openmp else 1
    return threads, {"openmp": theano.config.openmp, "blas_ldflags": theano.config.blas.ldflags}


def _mend_cntk_normalisation(cntk_backend):
    """On CNTK, Keras 2.2.4 passes epsilon in place of the axis, so that training uses 1e-3 whatever was set.
    Its function updates running statistics after the weights, by another pass with the new weights. This
    corrects both."""
    normalise, call = cntk_backend.batch_normalization, cntk_backend.Function.__call__

    def normalised(x, mean, var, beta, gamma, axis=-1, epsilon=1e-3):
        if isinstance(axis, float):
            axis, epsilon = -1, axis
        return normalise(x, mean, var, beta, gamma, axis, epsilon)

    def called(function, inputs):
        updates = function.unrelated_updates
        if function.trainer is None or updates is None:
            return call(function, inputs)
        given = dict(zip(function.placeholders, inputs))
        updates.eval({argument: given[argument] for argument in updates.arguments}, as_numpy=False)
        function.unrelated_updates = None
        try:
            return call(function, inputs)
        finally:
            function.unrelated_updates = updates
    cntk_backend.batch_normalization = normalised
    cntk_backend.Function.__call__ = called


def _start_cntk(recipe):
    import adapters.cntk_setup
    from keras.backend import cntk_backend
    _mend_cntk_normalisation(cntk_backend)
    return adapters.cntk_setup.start(recipe), {}


def _mend_mxnet_scale(K):
    """Keras-MXNet keeps MXNet's default, which fixes a normalisation's scale at 1 (fix_gamma)."""
    import mxnet

    def normalised(x, gamma, beta, mean, variance, momentum=0.9, axis=1, epsilon=1e-3,
                   use_global_stats=False):
        return K.KerasSymbol(mxnet.sym.BatchNorm(
            x.symbol, gamma.symbol, beta.symbol, mean.symbol, variance.symbol, momentum=momentum,
            axis=axis, eps=epsilon, use_global_stats=use_global_stats, fix_gamma=False))
    K.mxnet_batchnorm = K.keras_mxnet_symbol(normalised)


def _start_mxnet(recipe):
    import mxnet
    from keras import backend as K
    _mend_mxnet_scale(K)
    mxnet.random.seed(recipe["seed"])
    return int(os.environ.get("OMP_NUM_THREADS", "1")), {}


_STARTS = {"tensorflow": _start_tensorflow, "theano": _start_theano, "cntk": _start_cntk,
           "mxnet": _start_mxnet}


def start(backend, recipe):
    """Sets the number of threads of a backend; returns (threads, {setting: value})."""
    return _STARTS[backend](recipe)


def _waiting(kind, *arguments):
    """A Keras optimiser for TensorFlow 1 whose first update waits for the last gradient. Without it a weight
    changes while other gradients are still computed from it."""
    import tensorflow as tf

    class Waiting(kind):
        def get_gradients(self, loss, params):
            return tf.tuple(super(Waiting, self).get_gradients(loss, params))
    return Waiting(*arguments)


def _adamw(recipe):
    """A Keras optimiser for the symbolic backends; the corrections for bias are running means of ones."""
    import keras
    from keras import backend as K
    rate, betas = recipe["learning_rate"], (recipe["beta1"], recipe["beta2"])

    class AdamW(keras.optimizers.Adam):
        def get_updates(self, loss, params):
            def mean(beta, value, shape):
                kept = K.zeros(shape)
                new = beta * kept + (1.0 - beta) * value
                self.updates.append(K.update(kept, new))
                return new
            grads, ones = self.get_gradients(loss, params), [mean(beta, 1.0, ()) for beta in betas]
            for p, g in zip(params, grads):
                shape = K.int_shape(p)
                m, s = mean(betas[0], g, shape) / ones[0], mean(betas[1], K.square(g), shape) / ones[1]
                decay = rate * recipe["weight_decay"] if len(shape) > 1 else 0.0
                self.updates.append(K.update(p, (1.0 - decay) * p - rate * m / (K.sqrt(s) + recipe["epsilon"])))
            return self.updates
    return AdamW


def _mxnet_adamw(recipe):
    """Keras' Adam on MXNet, whose epsilon is not corrected for bias, with a corrected one and decay."""
    import keras

    class AdamW(keras.optimizers.Adam):
        def update(self, index, weight, grad, state):
            updates = self._index_update_count.get(index, self.begin_num_update) + 1
            self.epsilon = recipe["epsilon"] * (1.0 - recipe["beta2"] ** updates) ** 0.5
            if len(weight.shape) > 1 and recipe["weight_decay"]:
                weight *= 1.0 - recipe["learning_rate"] * recipe["weight_decay"]
            super(AdamW, self).update(index, weight, grad, state)
    return AdamW(recipe["learning_rate"], recipe["beta1"], recipe["beta2"])


def optimiser(backend, recipe):
    """The optimiser of a recipe. On TensorFlow 1 Keras' own race (see `_waiting`), so SGD and momentum are
    TensorFlow's, which wait. RMSprop is Keras', because TensorFlow's starts with a mean square of 1."""
    rate = recipe["learning_rate"]
    momentum = recipe["momentum"] if recipe["optimiser"] == "momentum" else 0.0
    import keras
    if recipe["optimiser"] == "adamw":
        if backend == "mxnet":
            return _mxnet_adamw(recipe)
        return _waiting(_adamw(recipe)) if backend == "tensorflow" else _adamw(recipe)()
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
    """Function of labels (one-hot) and logits: the cross-entropy of each sample. On Theano and MXNet it is the
    backend's own, because Keras clips probabilities at 1e-7 and has no gradient below."""
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


def power(backend, x, exponent):
    """x ** exponent, elementwise, for x above 0. CNTK's own power releases x before its gradient reads it, so
    that the gradient is computed from memory that may hold other values."""
    from keras import backend as K
    return K.exp(exponent * K.log(x)) if backend == "cntk" else K.pow(x, exponent)


def gradient_of_equals(backend):
    """As in NumpyAdapter, if Keras can differentiate anything other than a model's loss."""
    if backend not in ("tensorflow", "theano"):
        return None
    import numpy
    from keras import backend as K
    x = K.variable(numpy.ones((1, 2, 2, 1) if channels_last(backend) else (1, 1, 2, 2)))
    y = K.pool2d(x, (2, 2), (2, 2), pool_mode="max")
    return K.function([], K.gradients(K.sum(y), [x]))([])[0]


def also_return(backend, model, value):
    """Makes train_on_batch of a compiled model return `value` of the same pass after the loss. On MXNet, whose
    metrics are means, `trained_value` returns it."""
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


def finished():
    """Returns when MXNet has finished all work. train_on_batch only waits for the loss, and reading running
    statistics does not wait for the backward pass, which updates them."""
    import mxnet
    mxnet.nd.waitall()


def trained_value(model):
    """The value of also_return in the last step, on MXNet."""
    return model._module.get_outputs()[-1].asnumpy()


def value(backend, model, variable):
    """The array of a model's variable. On MXNet K.get_value returns the initial value, not the trained one."""
    if backend == "mxnet" and model.compiled:
        model._sync_weights()
        for kept in (model._args, model._auxs):
            if variable.name in kept:
                return kept[variable.name].asnumpy()
    from keras import backend as K
    return K.get_value(variable)
