"""Where the Python of an installed framework is, and what its worker's environment holds: a helper of tests."""
import os


class Environment(object):
    """name, backend: as in NAME:BACKEND. python: path of its interpreter, None when it is not installed: that of
    $PRONY_NAME[_BACKEND]_PYTHON, or of prony's own environment, which backends may share."""

    def __init__(self, name, backend=""):
        self.name, self.backend = name, backend
        self.label = name + (backend and ":" + backend)
        words = "_".join(filter(None, ["PRONY", name, backend, "PYTHON"])).upper().replace("-", "_")
        data = os.path.join(os.environ.get("XDG_DATA_HOME", os.path.expanduser("~/.local/share")), "prony")
        folders = [name + "=" + backend, name] if backend else [name]
        places = [os.environ.get(words)] + [os.path.join(data, "frameworks", folder, "bin/python")
                                            for folder in folders]
        self.python = next((path for path in places if path and os.path.exists(path)), None)
        # As the descriptors have them: what was compiled before is found.
        cache = os.path.join(data, "cache")
        self.variables = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", KERAS_HOME=os.path.join(cache, "keras2"),
                              PRONY_THEANO_COMPILEDIR=os.path.join(cache, name, "theano"))

    def need(self, test):
        """Skips a test where it is not installed; fails it where $PRONY_INSTALLED says that it is."""
        if self.python:
            return
        if self.name in os.environ.get("PRONY_INSTALLED", "").split():
            test.fail("set-up installed it, and it has no interpreter")
        test.skipTest("not installed: prony framework install " + self.label)
