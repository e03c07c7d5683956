"""What Theano has to be told before it is imported: threads, and a BLAS to compile against."""
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


def prepare():
    """Adds to THEANO_FLAGS what it does not say yet. Threads are those of OMP_NUM_THREADS."""
    given = os.environ.get("THEANO_FLAGS", "")
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    wanted = {"floatX": "float32", "blas.ldflags": blas_flags(),
              "openmp": str(threads != "1")}
    flags = [given] if given else []
    flags += ["%s=%s" % item for item in sorted(wanted.items()) if item[0] + "=" not in given]
    os.environ["THEANO_FLAGS"] = ",".join(flags)
