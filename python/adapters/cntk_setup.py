"""Settings for CNTK before its import and at the start of a process."""
import os
import sys
import warnings

# Functions of MPI are bound when they are called. They never are, so the library may be a stub.
_flags = sys.getdlopenflags()
warnings.simplefilter("ignore")  # no message that there is no GPU
sys.setdlopenflags(os.RTLD_LAZY)
import cntk  # noqa: E402

sys.setdlopenflags(_flags)
warnings.resetwarnings()


def start(recipe):
    """Selects the CPU and the recipe's seed; returns the number of threads that took effect."""
    cntk.device.try_set_default_device(cntk.device.cpu())
    cntk.cntk_py.set_fixed_random_seed(recipe["seed"])
    cntk.cntk_py.set_max_num_cputhreads(recipe["threads"])
    return cntk.cntk_py.get_max_num_cputhreads()
