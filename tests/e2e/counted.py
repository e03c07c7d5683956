"""Runs a unittest program so that tools/run-tests can count it: every skip on a line of its own, with
its reason, and "N passed, N failed, N skipped" as the last line."""
import unittest


def main():
    """unittest.main() of the calling program; its exit status."""
    result = unittest.main(exit=False).result
    bad = len({getattr(test, "test_case", test).id()
               for test, _ in result.failures + result.errors})
    bad += len(result.unexpectedSuccesses)
    for test, reason in result.skipped:
        print("skip %s: %s" % (test.id().replace("__main__.", ""), " ".join(reason.split())))
    skipped = len(result.skipped)
    print("%d passed, %d failed, %d skipped" % (result.testsRun - bad - skipped, bad, skipped))
    return 0 if result.wasSuccessful() else 1
