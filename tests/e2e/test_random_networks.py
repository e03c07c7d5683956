#!/usr/bin/env python3
"""Random small networks through the gate, in every light framework that is installed: what is refused says
why, nothing else may happen.

$PRONY names the program. By hand, for an hour: RANDOM_SECONDS=3600, with another RANDOM_SEED each time;
RANDOM_FRAMEWORKS=native,onnxruntime takes only those, RANDOM_STAGES=forward only that, RANDOM_KEEP=DIR gets
the models that failed.
"""
import collections
import json
import os
import random
import shutil
import sys
import time

import counted
from prony_program import HOME, ProgramTest
from random_networks import network

LIGHT = ("native", "onnxruntime", "mxnet", "pytorch")
BATCHES, STAGES = (1, 2, 3, 5, 8, 17), ("forward", "train", "forward-backward")
ROUNDS, NETWORKS = len(STAGES), 4  # of the tests; by hand there are more networks a round
SECONDS = float(os.environ.get("RANDOM_SECONDS", 0))


def explained(cell, operators):
    """What is known to end otherwise. ONNX Runtime's optimiser merges a Pad with the pool behind it (its pull
    request 18136): it then refuses the pads that it has made, or a maximum does not see the zeros any
    more (its issue 24737; 1.31 still)."""
    if cell["framework"] != "onnxruntime":
        return False
    if "Pad should be smaller than kernel" in cell["reason"]:
        return True
    return cell["status"] == "mismatch" and ("Pad", "MaxPool") in zip(operators, operators[1:])


class RandomNetworksTest(ProgramTest):
    def frameworks(self):
        wanted = os.environ.get("RANDOM_FRAMEWORKS", ",".join(LIGHT)).split(",")
        ready = {row["name"] for row in self.ready() if not row["backend"]}
        found = [name for name in wanted if name in ready]  # once, however many versions are installed
        if not found:
            self.skipTest("none of %s is installed" % ", ".join(wanted))
        return found

    def write(self, numbers):
        """Path -> operators."""
        paths = {}
        for number in numbers:
            path = os.path.join(self.folder, "n%s.onnx" % number)
            model, paths[path] = network(number)
            with open(path, "wb") as stream:
                stream.write(model)
        return paths

    def one_round(self, frameworks, numbers, batch, stage):
        """[(framework, status)], [what is wrong] of a run; the models go."""
        paths = self.write(numbers)
        done = self.prony("run", "--gate-only", "-f", ",".join(frameworks), "-n", ",".join(paths),
                          "-d", "synthetic", "-b", str(batch), "-s", stage, "--timeout", "60",
                          "--store", self.store, "--format", "json", seconds=3600, **HOME)
        if done.returncode not in (0, 1):
            return [], ["%s b%d %s: exit code %d: %s" % (numbers, batch, stage, done.returncode,
                                                         done.stderr[-300:])]
        cells, wrong = json.loads(done.stdout)["cells"], []
        self.assertEqual(len(cells), len(paths) * len(frameworks))
        for cell in cells:
            if cell["status"] == "ok" or (cell["status"] == "unsupported" and cell["reason"]):
                continue
            name = cell["network"].partition("@")[0]
            if explained(cell, paths[os.path.join(self.folder, name)]):
                cell["status"] = "explained"
                continue
            wrong.append("%s %s b%d %s: %s: %s" % (cell["framework"], name, batch, stage,
                                                   cell["status"], cell["reason"]))
            if "RANDOM_KEEP" in os.environ:
                shutil.copy(os.path.join(self.folder, name), os.environ["RANDOM_KEEP"])
        for path in [*paths, *(self.store + end for end in ("", "-wal", "-shm"))]:
            if os.path.exists(path):
                os.unlink(path)
        return [(cell["framework"], cell["status"]) for cell in cells], wrong

    def test_random_networks(self):
        frameworks, seed = self.frameworks(), os.environ.get("RANDOM_SEED", "1")
        stages = os.environ.get("RANDOM_STAGES", ",".join(STAGES)).split(",")
        start, count, wrong, rounds = time.monotonic(), collections.Counter(), [], 0
        each = 25 if SECONDS else NETWORKS
        while time.monotonic() - start < SECONDS or rounds < ROUNDS:
            chance = random.Random("%s.%d" % (seed, rounds))
            numbers = ["%s-%d" % (seed, rounds * each + i) for i in range(each)]
            stage = stages[rounds % len(stages)]
            ended, found = self.one_round(frameworks, numbers, chance.choice(BATCHES), stage)
            count.update((framework, stage, status) for framework, status in ended)
            wrong += found
            rounds += 1
            for line in found:
                print("#", line, flush=True)
        print("# %d networks: %s" % (rounds * each, "; ".join(
            "%s %s %s %d" % (*key, value) for key, value in sorted(count.items()))))
        self.assertEqual(wrong, [])
        # One that refuses everything would pass everything.
        for framework in frameworks:
            self.assertTrue(count[framework, stages[0], "ok"] > 0, framework)


if __name__ == "__main__":
    sys.exit(counted.main())
