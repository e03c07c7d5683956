"""Settings for all adapters that use Theano: threads, BLAS and the folder of compiled modules, before its
import; and its limit on epsilons."""
import glob
import os

import numpy


def blas_flags():
    """Linker flags for the OpenBLAS in numpy's package, which the process has already loaded, or for the
    system's."""
    package = os.path.dirname(numpy.__file__)
    for folder in (package + ".libs", os.path.join(package, ".libs")):
        for path in sorted(glob.glob(os.path.join(folder, "libopenblas*.so"))):
            if not set(" ,") & set(path):
                return "-L%s -l:%s" % (folder, os.path.basename(path))
    return "-lopenblas"


# The least epsilon of a batch normalisation that is supported.
EPSILON_LEAST = 1e-5


def epsilon(value):
    """A normalisation's epsilon in float32. Theano rejects values below 1e-5, and float32's 1e-5 is below, so
    it becomes the next float above."""
    rounded = numpy.float32(value)
    return numpy.nextafter(rounded, numpy.float32(1)) if rounded < EPSILON_LEAST <= value else rounded


def epsilon_problem(node):
    """The reason if a node's epsilon is not supported, else None."""
    return "epsilon below 1e-5 is not supported" if node["attributes"]["epsilon"] < EPSILON_LEAST else None


def prepare():
    """Adds defaults to the user's THEANO_FLAGS. OMP_NUM_THREADS sets the threads."""
    given = [flag for flag in os.environ.get("THEANO_FLAGS", "").split(",") if flag.strip()]
    said = {flag.split("=", 1)[0].strip() for flag in given}
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    wanted = {"floatX": "float32", "blas.ldflags": blas_flags(), "openmp": str(threads != "1")}
    if "PRONY_THEANO_COMPILEDIR" in os.environ:
        wanted["base_compiledir"] = os.environ["PRONY_THEANO_COMPILEDIR"]
    os.environ["THEANO_FLAGS"] = ",".join(
        given + ["%s=%s" % item for item in sorted(wanted.items()) if item[0] not in said])
