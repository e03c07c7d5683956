#!/usr/bin/env python3
"""Cells of two ranks on the fakes: what they measure, and every way in which one of them fails.

$PRONY names the program.
"""
import json
import os
import shutil
import signal
import sys
import threading
import time
import unittest

import counted
from prony_program import HOME, PRONY, KeptReferencesTest, ProgramTest, marked_processes

SHORT = ("-n", "mlp", "-d", "mnist-3000", "-s", "train", "--quick", "--steps", "12", "--warm-up", "3")
HANG_S = "4"
# Options of fake -> the status of its cell, and words of its reason.
FAULTS = {
    "reduce=none": ("mismatch", "rank 1 holds other weights than rank 0 (fc1.weight)"),
    "reduce=sum": ("mismatch", "differs from the reference"),
    "reduce=some": ("mismatch", "rank 1 holds other weights than rank 0 (fc3.bias)"),
    "reduce=other": ("mismatch", "rank 1 holds other weights than rank 0 (fc3.bias)"),
    "crash+rank=1": ("crashed", "rank 1 of 2: the worker ended during run: killed by signal 11"),
    "exit=3+rank=0": ("crashed", "rank 0 of 2: the worker ended during run: exit code 3"),
    "fail+rank=1": ("crashed", "rank 1 of 2: run failed: fake: failed, as requested"),
    "oom-reply+rank=1": ("out-of-memory", "rank 1 of 2: fake: out of memory, as requested"),
    "impossible-time+rank=1": ("invalid", "rank 1 of 2: its records end"),
    "rank=1+wrong-threads": ("invalid", "rank 1 of 2: requested 1 threads"),
    "rank=1+wrong-logits": ("mismatch", "logits"),
    "crash+rank=1+timed-only": ("crashed", "rank 1 of 2: the worker ended during run: killed by signal 11"),
}


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two ranks need two cores")
class RanksTest(KeptReferencesTest):
    def run_cells(self, *words, repeat=1, expect=None):
        done = self.prony("run", *SHORT, "--repeat", str(repeat), *words, "--store", self.store, expect=expect)
        self.assert_nothing_stays()
        return done

    def outcomes(self):
        return {row[0].partition("+")[2]: row[1:] for row in self.rows("select framework, status, reason from cell")}

    def test_faults(self):
        done = self.run_cells("-f", ",".join("fake+" + option for option in FAULTS), "-D", "cpu:1x2", "-b", "8",
                              expect=1)
        found = self.outcomes()
        for option, (status, words) in FAULTS.items():
            with self.subTest(option):
                self.assertEqual(found[option][0], status, f"{found[option]}\n{done.stderr}")
                self.assertIn(words, found[option][1])

    def test_a_rank_that_hangs(self):
        """The other one waits for it in the sum, so that both are silent."""
        self.run_cells("-f", "fake+hang+rank=1", "-D", "cpu:1x2", "-b", "8", "--timeout", HANG_S, expect=1)
        status, reason = self.outcomes()["hang+rank=1"]
        self.assertEqual(status, "timeout")
        self.assertIn("of 2 ranks these did not answer: 0 1: no reply to run", reason)

    def test_the_whole_batch_is_trained(self):
        """Strong scaling: the first loss is that of the same batch on one core."""
        self.run_cells("-f", "null,fake", "-D", "cpu:1,cpu:1x2", "-b", "8", "--dropout", "off", repeat=2, expect=0)
        losses = dict(self.rows("select device, loss_first from process join cell on cell.id = process.cell"
                                " where framework = 'fake' and round = 1"))
        self.assertAlmostEqual(losses["cpu:1"], losses["cpu:1x2"], places=5)
        evidence = [json.loads(row[0]) for row in self.rows(
            "select evidence from cell where framework = 'fake' order by device")]
        self.assertEqual([e["gate_batch"] for e in evidence], [8, 8])
        self.assertEqual(evidence[1]["framework"]["collectives"], "shared memory")
        self.assertNotIn("collectives", evidence[0]["framework"])
        # The efficiency, also where each comparison is read alone.
        cells = json.loads(self.prony("export", "--format", "json", "--store", self.store, expect=0).stdout)["cells"]
        lines = self.prony("export", "--format", "jsonl", "--store", self.store, expect=0).stdout.splitlines()
        lines = [line for line in map(json.loads, lines) if line["type"] == "cell"]
        for cells in cells, lines:
            one, two = ([c for c in cells if c["device"] == device and c["framework"] == "fake"][0]
                        for device in ("cpu:1", "cpu:1x2"))
            self.assertIsNone(one["efficiency"]["strong"]["ratio"])
            self.assertIsNone(two["efficiency"]["weak"]["ratio"])
            found = two["efficiency"]["strong"]
            self.assertAlmostEqual(found["ratio"], one["step"]["center_ns"] / two["step"]["center_ns"] / 2, places=9)
            self.assertTrue(found["low"] < found["ratio"] < found["high"])
        page = self.prony("report", "-o", "-", "--store", self.store, expect=0).stdout
        self.assertIn("Over ranks", page)
        self.assertIn(">ideal</text>", page)

    def test_the_slowest_rank_counts(self):
        self.run_cells("-f", "fake+delay-ms=20+rank=1", "-D", "cpu:1x2", "-b", "8", expect=0)
        for step, ranks, threads, skew in self.rows("select step_mean_ns, ranks, threads, rank_skew_ns from process"):
            self.assertGreater(step, 20e6)
            self.assertEqual((ranks, threads), (2, 2))
            self.assertLess(skew, step)
        found = self.rows("select rank, length_ns, rss_bytes from process_rank order by process, rank")
        self.assertEqual([row[0] for row in found], [0, 1])
        self.assertGreater(min(min(row[1:]) for row in found), 0)
        peaks = self.rows("select rss_peak_bytes, rank_rss_max from process")[0]
        self.assertEqual(peaks, (found[0][2] + found[1][2], max(found[0][2], found[1][2])))
        done = self.prony("export", "--format", "json", "--store", self.store, expect=0)
        process = json.loads(done.stdout)["cells"][0]["processes"][0]
        self.assertEqual([rank["length_ns"] for rank in process["rank_records"]], [found[0][1], found[1][1]])
        done = self.prony("show", "--store", self.store, expect=0)
        self.assertIn("sums gradients by shared memory", " ".join(done.stdout.split()))

    def test_batches_of_a_rank(self):
        """Weak scaling."""
        done = self.prony("run", *SHORT, "-f", "fake", "-D", "cpu:1,cpu:1x2", "--batch-per-rank", "4", "--dry-run",
                          "--format", "json", expect=0)
        cells = json.loads(done.stdout)
        self.assertEqual({(c["device"], c["batch"]) for c in cells}, {("cpu:1", 4), ("cpu:1x2", 8)})
        done = self.prony("run", *SHORT, "-f", "fake", "-b", "4", "--batch-per-rank", "4", expect=64)
        self.assertIn("give one of them", done.stderr)

    def test_what_ranks_cannot(self):
        done = self.prony("run", "-f", "fake,onnxruntime", "-n", "mlp", "-D", "cpu:1x2", "-s",
                          "train,forward", "-b", "8,9", "--dry-run", "--format", "json")
        reasons = "\n".join(cell.get("reason") or "" for cell in json.loads(done.stdout))
        for words in ("onnxruntime has no data parallel training in prony", "ranks share the stage train only",
                      "2 ranks do not divide a batch of 9"):
            self.assertIn(words, reasons)


# MPI's launcher -> what native says that it sums with; Debian has both under names of their own.
LAUNCHERS = {name: words for name, words in (("mpirun.openmpi", "mpi (Open MPI v"), ("mpirun.mpich", "mpi (MPICH Version:"))
             if shutil.which(name)}


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:
        words = stream.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def rank_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as stream:
        rows = dict(row.partition(b"=")[::2] for row in stream.read().split(b"\0"))
    return int(rows.get(b"OMPI_COMM_WORLD_RANK", rows.get(b"PMI_RANK", b"-1")))


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two ranks need two cores")
@unittest.skipUnless(LAUNCHERS, "no MPI here: apt install openmpi-bin mpich")
class MpiTest(ProgramTest):
    """native, whose ranks MPI's launcher starts."""

    def setUp(self):
        super().setUp()
        if not any(row["name"] == "native" for row in self.ready()):
            self.skipTest("native is not installed")

    def run_native(self, *words, launcher, network="mlp", **more):
        self.environment["PRONY_MPIRUN"] = launcher
        done = self.prony("run", "-f", "native", "-n", network, "-d", "synthetic", "-s", "train", "-D", "cpu:1x2",
                          "-b", "8", "--store", self.store, *words, **HOME, **more)
        self.assert_nothing_stays()
        status, reason, evidence = self.rows("select status, reason, evidence from cell order by id desc limit 1")[0]
        return status, reason, json.loads(evidence or "{}"), done

    def test_gates(self):
        for launcher, words in LAUNCHERS.items():
            for network in ("mlp", "lenet"):
                with self.subTest(launcher=launcher, network=network):
                    status, reason, evidence, done = self.run_native("--gate-only", launcher=launcher, network=network)
                    self.assertEqual((status, reason), ("ok", ""), done.stderr)
                    self.assertIn(words, evidence["framework"]["collectives"])

    def test_another_launcher(self):
        """Each rank would compute alone, and silently."""
        library = {"mpirun.openmpi": "libmpich.so.12", "mpirun.mpich": "libmpi.so.40"}
        for launcher in LAUNCHERS if len(LAUNCHERS) == 2 else ():
            with self.subTest(launcher):
                status, reason, _, _ = self.run_native("--gate-only", launcher=launcher, PRONY_MPI=library[launcher])
                self.assertEqual(status, "invalid")
                self.assertIn("MPI sees 1 rank, the launcher started 2: another MPI's launcher", reason)

    def test_what_is_missing(self):
        for launcher, library, status, words in (
                ("nowhere", "", "missing", "there is no nowhere; install openmpi-bin or mpich"),
                ("false", "", "crashed", "MPI's launcher false ended before it had started 2 ranks, exit code 1"),
                (min(LAUNCHERS), "libnowhere.so", "missing", "install libopenmpi3 or libmpich12")):
            with self.subTest(words):
                more = {"PRONY_MPI": library} if library else {}
                found = self.run_native("--gate-only", launcher=launcher, **more)
                self.assertEqual(found[0], status, found)
                self.assertIn(words, found[1])

    def strike(self, whom, number, after_s, stop):
        """Sends a signal to rank 1 or the launcher, in each try, when rank 1 has computed that long."""
        struck = set()
        while not stop.wait(0.02):
            found = marked_processes(self.mark)
            try:
                ranks = {rank_of(pid): pid for pid, words in found.items() if words.startswith(f"{PRONY} worker ")}
                if 1 not in ranks or ranks[1] in struck or cpu_s(ranks[1]) < after_s:
                    continue
                struck.add(ranks[1])
                launcher = [pid for pid, words in found.items() if words.startswith("mpirun")]
                os.kill(ranks[1] if whom == "rank" else launcher[0], number)
            except (OSError, ValueError):
                continue

    def struck(self, whom, number, after_s, *words, launcher):
        stop = threading.Event()
        striker = threading.Thread(target=self.strike, args=(whom, number, after_s, stop))
        striker.start()
        try:
            return self.run_native(*words, "--warm-up", "3", "--repeat", "1", launcher=launcher)
        finally:
            stop.set()
            striker.join()

    def test_killed_in_a_step(self):
        for launcher in LAUNCHERS:
            for whom, words in (("rank", "rank 1 of 2: the worker ended during run: killed by signal 9"),
                                ("launcher", f"MPI's launcher {launcher} ended: killed by signal 9")):
                with self.subTest(launcher=launcher, whom=whom):
                    found = self.struck(whom, signal.SIGKILL, 0.5, "--steps", "100000", launcher=launcher)
                    self.assertEqual(found[0], "crashed", found)
                    self.assertIn(words, found[1])

    def test_a_rank_of_mpi_that_hangs(self):
        found = self.struck("rank", signal.SIGSTOP, 0, "--steps", "12", "--timeout", "3", launcher=min(LAUNCHERS))
        self.assertEqual(found[0], "timeout", found)
        self.assertIn("of 2 ranks these did not answer: 0 1", found[1])


if __name__ == "__main__":
    sys.exit(counted.main())
