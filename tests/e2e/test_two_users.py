#!/usr/bin/env python3
"""Two users on one machine: its lock, one store for both, frameworks that both may read. Needs root, which becomes either.

$PRONY is the program.
"""
import os
import subprocess
import time
import unittest

from prony_program import PATIENCE_S, PRONY, ProgramTest, read, write

ANN, BOB, GROUP = 20001, 20002, 20000
RUN = ("run", "-f", "fake", "-n", "mlp", "-b", "4", "-s", "forward", "--quick", "--repeat", "1")


@unittest.skipIf(os.geteuid() != 0, "only root can become two users")
class TwoUsers(ProgramTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.tmp = os.path.join(self.folder, "tmp")
        os.mkdir(self.tmp)
        os.chmod(self.tmp, 0o1777)
        self.lock = os.path.join(self.tmp, "prony.lock")

    def start(self, user, *words, umask=0o022, **more):
        home = os.path.join(self.folder, str(user))
        if not os.path.exists(home):
            os.mkdir(home)
            os.chown(home, user, GROUP)
        environment = {**self.environment, "HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home,
                       "XDG_CACHE_HOME": home, "TMPDIR": self.tmp, "PRONY_LOCK": self.lock, **more}
        process = subprocess.Popen([os.path.abspath(PRONY), *words], env=environment, cwd=home, text=True, user=user,
                                   group=GROUP, extra_groups=[], umask=umask, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        return process

    def finish(self, process, code=0):
        text = process.communicate(timeout=PATIENCE_S)[0]
        self.assertEqual(process.returncode, code, text)
        return text

    def test_who_waits_sees_who_measures(self):
        hold = os.path.join(self.tmp, "hold")
        with open(hold, "w", encoding="utf-8"):
            pass
        ann = self.start(ANN, *RUN, "--setup", f"touch '{self.tmp}/begun'; while [ -e '{hold}' ]; do sleep 0.05; done")
        deadline = time.monotonic() + PATIENCE_S
        while not os.path.exists(os.path.join(self.tmp, "begun")) and time.monotonic() < deadline:
            time.sleep(0.02)
        bob = self.start(BOB, *RUN)
        line = next(line for line in bob.stdout if "waiting" in line)
        os.unlink(hold)
        for part in ("waiting", f"user {ANN}, pid {ann.pid}, since 2", ", takes about ", f": prony {' '.join(RUN)}"):
            self.assertIn(part, line)
        self.finish(ann)
        self.finish(bob)
        # Each may write into the lock that the other made.
        self.assertEqual(os.stat(self.lock).st_uid, ANN)
        self.assertIn(f"user {BOB}\n", read(self.lock))

    def test_one_store(self):
        folder = os.path.join(self.folder, "group")
        os.mkdir(folder)
        os.chown(folder, 0, GROUP)
        os.chmod(folder, 0o2775)
        self.store = os.path.join(folder, "store.db")
        self.finish(self.start(ANN, *RUN, "--store", self.store, umask=0o002))
        self.finish(self.start(BOB, *RUN, "--store", self.store, umask=0o002))
        self.finish(self.start(ANN, *RUN, "--store", self.store, umask=0o002))
        self.assertEqual(self.rows("select count(*) from run"), [(3,)])
        # What one user made alone is refused by name, and can still be read.
        self.store = os.path.join(folder, "own.db")
        self.finish(self.start(ANN, *RUN, "--store", self.store))
        self.assertIn(f"{self.store}: no write permission", self.finish(self.start(BOB, *RUN, "--store", self.store), 74))
        self.assertIn("fake", self.finish(self.start(BOB, "show", "--store", self.store)))

    def test_frameworks_of_another(self):
        shared = os.path.join(self.folder, "shared")
        library = os.path.join(shared, "frameworks", "mxnet", "mxnet", "libmxnet.so")
        os.makedirs(os.path.dirname(library))
        write(library, "not loaded here")
        words = ("framework", "list", "mxnet")
        self.assertIn("ready", self.finish(self.start(ANN, *words, PRONY_SHARED=shared)))
        os.chmod(shared, 0o700)
        text = self.finish(self.start(ANN, *words, PRONY_SHARED=shared))
        for part in ("missing", os.path.join(shared, "frameworks", "mxnet"), "permission denied"):
            self.assertIn(part, text)
        # An own folder that cannot be written is named.
        os.chmod(os.path.join(self.folder, str(ANN)), 0o500)
        text = self.finish(self.start(ANN, "framework", "remove", "mxnet"), 74)
        self.assertIn(f"{self.folder}/{ANN}/prony", text)
        self.assertIn("Permission denied", text)


if __name__ == "__main__":
    unittest.main()
