"""What CNTK has to be told before it is imported, and when a process begins."""
import os
import sys
import warnings

# Functions of MPI are bound when they are called, which is never: the library may be a stub.
_flags = sys.getdlopenflags()
warnings.simplefilter("ignore")  # that there is no GPU
sys.setdlopenflags(os.RTLD_LAZY)
import cntk  # noqa: E402

sys.setdlopenflags(_flags)
warnings.resetwarnings()


def start(recipe):
    """Computes on the CPU, with the recipe's seed; the number of threads that takes effect."""
    cntk.device.try_set_default_device(cntk.device.cpu())
    cntk.cntk_py.set_fixed_random_seed(recipe["seed"])
    cntk.cntk_py.set_max_num_cputhreads(recipe["threads"])
    return cntk.cntk_py.get_max_num_cputhreads()
