"""What every adapter on Theano needs: what Theano has to be told before it is imported (threads, a BLAS to compile
against, where compiled modules stay), and what it takes for an epsilon."""
import glob
import os

import numpy


def blas_flags():
    """Linker flags of the OpenBLAS inside numpy's own package, which is loaded already when Theano's
    modules are, or of the system's."""
    package = os.path.dirname(numpy.__file__)
    for folder in (package + ".libs", os.path.join(package, ".libs")):
        for path in sorted(glob.glob(os.path.join(folder, "libopenblas*.so"))):
            if not set(" ,") & set(path):
                return "-L%s -l:%s" % (folder, os.path.basename(path))
    return "-lopenblas"


# Of a batch normalisation; less is refused.
EPSILON_LEAST = 1e-5


def epsilon(value):
    """A normalisation's epsilon in float32: 1e-5 is less there, which Theano refuses, so that it is the next above."""
    rounded = numpy.float32(value)
    return numpy.nextafter(rounded, numpy.float32(1)) if rounded < EPSILON_LEAST <= value else rounded


def epsilon_problem(node):
    """Why a node's epsilon cannot be translated, or None."""
    return "an epsilon below 1e-5" if node["attributes"]["epsilon"] < EPSILON_LEAST else None


def prepare():
    """Adds to the user's THEANO_FLAGS what they do not say. Threads are those of OMP_NUM_THREADS."""
    given = [flag for flag in os.environ.get("THEANO_FLAGS", "").split(",") if flag.strip()]
    said = {flag.split("=", 1)[0].strip() for flag in given}
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    wanted = {"floatX": "float32", "blas.ldflags": blas_flags(), "openmp": str(threads != "1")}
    if "PRONY_THEANO_COMPILEDIR" in os.environ:
        wanted["base_compiledir"] = os.environ["PRONY_THEANO_COMPILEDIR"]
    os.environ["THEANO_FLAGS"] = ",".join(
        given + ["%s=%s" % item for item in sorted(wanted.items()) if item[0] not in said])
