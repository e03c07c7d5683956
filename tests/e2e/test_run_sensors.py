#!/usr/bin/env python3
"""What the sensors see of a worker that keeps one processor busy, from the kernel to the exports.

$PRONY names the program.
"""
import json
import os
import sys

import counted
from prony_program import ProgramTest, timed

# A window of 1.2 s in which one thread spins.
BUSY = ("run", "-n", "mlp", "-d", "mnist-3000", "-b", "8", "-s", "forward", "-D", "cpu:1",
        "-f", "fake+step-us=100000", "--repeat", "1", "--steps", "12", "--warm-up", "2")
SENSORS = ["memory", "cpu", "frequency", "temperature", "thermal", "load", "steal", "foreign",
           "memory_pss", "threads", "switches", "pressure", "swap", "quota", "rapl", "page_faults",
           "worker_cpu", "sampling"]


class SensorsTest(ProgramTest):
    def process(self, *more):
        """The one process as the complete export has it."""
        lines = self.prony("export", "--format", "jsonl", "--store", self.store, *more,
                           expect=0).stdout.splitlines()
        return next(row for row in map(json.loads, lines) if row["type"] == "process")

    def check_busy(self, process, by_name):
        cpus = os.cpu_count()
        # A spinning thread keeps a processor busy, or others and the host keep it from running.
        used = process["cpu_cores"] + process["steal_share"]
        self.assertGreater(used, 0.85)
        self.assertLess(process["cpu_cores"], cpus + 0.2)
        self.assertLessEqual(process["window_cpu_cores"], 1.1)
        # What is neither foreign nor ours was not there: three sensors, one sum. It has a processor
        # of its own; on a machine of one there are no others.
        others = (cpus - 1) * (process["foreign_elsewhere"] or 0)
        ours = process["cpu_cores"] - process["foreign_share"] - others
        self.assertAlmostEqual(ours, process["window_cpu_cores"], delta=0.15)
        channels = [channel["channel"] for channel in by_name["cpu"]["channels"]]
        self.assertEqual(channels[0], "cpu0")

    def check_memory(self, process, by_name):
        rows = by_name["memory"]["samples"]
        values = [row[1] for row in rows if row[1] is not None]
        self.assertGreater(len(values), 4)
        self.assertLess(values[0], max(values), "memory grows while a worker starts")
        self.assertGreater(process["memory_mean_run"], 1 << 20)
        self.assertLessEqual(process["memory_max_window"], max(values))
        times = [row[0] for row in rows]
        self.assertEqual(times, sorted(times))
        begin = process["window_begin_ns"]
        end = begin + process["window_ns"]
        self.assertTrue(times[0] < begin and end <= times[-1])
        self.assertGreater(sum(begin <= time <= end for time in times), 2)
        disturbing = by_name["memory_pss"]["samples"]
        self.assertFalse([row for row in disturbing if begin < row[0] < end])
        known = [row[1] for row in disturbing if row[1] is not None]
        self.assertEqual(process["memory_pss_max"], max(known, default=None))

    @timed
    def test_a_busy_worker(self):
        self.prony(*BUSY, "--store", self.store)
        process = self.process()
        self.assertEqual(process["status"], "ok", process["error"])
        self.assertEqual([row["sensor"] for row in process["sensors"]], SENSORS)
        by_name = {row["sensor"]: row for row in process["sensors"]}
        for row in process["sensors"]:
            self.assertEqual(row["absent"] is None, bool(row["samples"]), row["sensor"])
        self.check_busy(process, by_name)
        self.check_memory(process, by_name)
        if by_name["frequency"]["absent"]:
            self.assertIsNone(process["frequency_mean_hz"])
            self.assertIn("frequency_drop: no frequency control", process["null_reasons"])
        if by_name["rapl"]["absent"]:
            self.assertIsNone(process["energy_joules"])
            self.assertIn(by_name["rapl"]["absent"], process["null_reasons"])
        for sensor, field in (("quota", "quota_share"), ("thermal", "thermal_share"),
                              ("swap", "swap_rate"), ("pressure", "pressure_memory"),
                              ("temperature", "temperature_max"),
                              ("switches", "switches_voluntary")):
            if by_name[sensor]["absent"]:
                self.assertIsNone(process[field], field)
            # A kernel may count one kind of pressure, and a file may refuse to be read.
            self.assertTrue(process[field] is not None or field in process["null_reasons"], field)
        # One thread computes; on a busy machine it may never be seen on its processor.
        self.assertGreaterEqual(process["threads_alive"], 1)
        self.assertIn(process["cores_used"], (None, 1))
        self.assertGreaterEqual(process["page_faults_step"], 0)
        # Half a percent of a core is the aim; a machine under load spoils caches, so ten times that.
        self.assertGreater(process["sampling_cpu_ns"], 0)
        self.assertLess(process["sampling_cpu_ns"], 0.05 * process["total_ns"])
        self.check_outputs(process)

    def test_what_stands_in_the_record_reached_a_worker(self):
        text = self.prony("run", "-n", "mlp", "-d", "mnist-3000", "-b", "8", "-s", "forward",
                          "-f", "fake", "--repeat", "1", "--steps", "2", "--warm-up", "1",
                          "--store", self.store, OMP_NUM_THREADS="7", MKL_NUM_THREADS="7",
                          OMP_WAIT_POLICY="passive", PYTORCH_JIT="0", expect=0).stdout
        # The machine's own settings may stand between the two, and the line is wrapped.
        said = " ".join(text.split()).partition("set in the environment: ")[2].partition(";")[0]
        self.assertLessEqual({"OMP_WAIT_POLICY=passive", "PYTORCH_JIT=0"}, set(said.split(", ")))
        self.assertNotIn("NUM_THREADS", text)
        (run,) = [row for row in map(json.loads, self.prony(
            "export", "--format", "jsonl", "--store", self.store, expect=0).stdout.splitlines())
            if row["type"] == "run"]
        environment = run["environment"]
        self.assertNotIn("OMP_NUM_THREADS", environment["should_match"]["environment"])
        for finding in environment["informational"]["findings"]:
            self.assertEqual(set(finding), {"check", "value", "remedy"})

    def check_outputs(self, process):
        log = self.prony("log", "fake+step-us=100000", "--store", self.store, expect=0).stdout
        self.assertIn("memory rss", log)
        self.assertIn("cpu cpu0", log)
        header, row = self.prony("export", "--store", self.store, expect=0).stdout.splitlines()[:2]
        figures = dict(zip(header.split(","), row.split(",")))
        self.assertAlmostEqual(float(figures["cpu_cores"]), process["cpu_cores"], places=3)
        # Another store gets it whole.
        other = os.path.join(self.folder, "other.db")
        self.prony("import", self.store, "--store", other, expect=0)
        self.assertEqual(self.process("--store", other), process)


if __name__ == "__main__":
    sys.exit(counted.main())
