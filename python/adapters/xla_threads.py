"""The threads that XLA computes with on a CPU, counted from outside: it has no call that says it."""
import os

POOL_THREAD = "tf_XLAEigen"  # as the kernel calls them


def pool_threads():
    """Number of threads (int) of XLA's pool; 0 when it has not been made."""
    count = 0
    for task in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/comm" % task) as source:
                count += source.read().startswith(POOL_THREAD)
        except OSError:
            pass  # it has ended
    return count
