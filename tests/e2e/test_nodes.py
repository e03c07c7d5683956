#!/usr/bin/env python3
"""Nodes of a cluster: recorded in jobs, kept apart in lists and histories, compared by show --by node.

The cluster is simulated: an invented run ($REPORT_STORE) is copied for each node and round with its own name and times.
$PRONY is the program.
"""
import csv
import io
import json
import os
import random
import sqlite3
import subprocess
import unittest

from prony_program import ProgramTest

REPORT_STORE = os.environ.get("REPORT_STORE", "build/tests/report_store")
PROCESSES = 11
HOUR = 3600 * 10 ** 9


class ClusterTest(ProgramTest):
    """Cells of native and mxnet on nodes n01, n02 ...; a process varies by 0.7 %, a node by 0.3 %."""

    def setUp(self):
        super().setUp()
        self.environment["COLUMNS"] = "120"
        subprocess.run([REPORT_STORE, self.store, "1"], check=True, timeout=240)
        self.base = sqlite3.connect(self.store, isolation_level=None)
        self.base.execute("PRAGMA foreign_keys = ON")
        self.addCleanup(self.base.close)
        self.random = random.Random(1)
        self.base.execute("DELETE FROM cell WHERE status != 'ok' OR stage != 'forward' OR name NOT IN ('native', 'mxnet')")
        self.levels = {}

    def columns(self, table, leave):
        return ", ".join(row[1] for row in self.base.execute(f"PRAGMA table_info({table})") if row[1] not in leave)

    def add_run(self, node, round_, factor=1.0, sensors="", job=True):
        """A round on a node, in a store that has only the invented run as number 1."""
        where = "$.informational.node" if job else "$.informational.host"
        columns = self.columns("run", ("id", "uid", "started_wall_ns", "environment", "host"))
        run = self.base.execute(
            "INSERT INTO run (uid, started_wall_ns, environment, host, " + columns + ") SELECT lower(hex(randomblob(16))),"
            f" started_wall_ns + ?, json_set(environment, '{where}', ?), ?, {columns} FROM run WHERE id = 1",
            (round_ * HOUR, node, node)).lastrowid
        level = self.levels.setdefault(node, self.random.gauss(1, 0.003)) * factor
        for cell, in self.base.execute("SELECT id FROM cell WHERE run = 1").fetchall():
            columns = self.columns("cell", ("id", "run"))
            new = self.base.execute(f"INSERT INTO cell (run, {columns}) SELECT ?, {columns} FROM cell WHERE id = ?",
                                    (run, cell)).lastrowid
            columns = self.columns("process", ("id", "cell", "replicate", "round", "step_mean_ns"))
            for i in range(PROCESSES):
                self.base.execute(
                    f"INSERT INTO process (cell, replicate, round, step_mean_ns, {columns}) SELECT ?, ?, ?, step_mean_ns"
                    f" * ?, {columns} FROM process WHERE cell = ? AND replicate = 0",
                    (new, i, i, level * self.random.gauss(1, 0.007), cell))
            if sensors:
                self.base.execute(f"UPDATE process SET {sensors} WHERE cell = ?", (new,))
        return run

    def cluster(self, count, slow, rounds=2):
        """Nodes with factors by node and round: {"n17": (1.04, 1.04)}."""
        self.base.execute("BEGIN")
        for round_ in range(rounds):
            for i in range(count):
                node = f"n{i + 1:02d}"
                self.add_run(node, round_, slow.get(node, (1, 1))[round_])
        self.base.execute("DELETE FROM run WHERE id = 1")
        self.base.execute("COMMIT")

    def show(self, *words, code):
        done = self.prony("show", "--by", "node", *words, "--store", self.store)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code < 64 else done.stderr

    def lasting(self, code):
        document = json.loads(self.show("--format", "json", code=code))
        return {node["node"]: node["lasts"] for node in document["nodes"] if node["lasts"]}


class SlowNodeTest(ClusterTest):
    def test_one_of_fifty_lasts_and_one_passes(self):
        self.cluster(50, {"n17": (1.04, 1.04), "n30": (1.1, 1), "n31": (1, 1.1)})
        text = self.show(code=2)
        self.assertIn("50 nodes, 100 runs of quickstart", text)
        self.assertIn("n17 is slow: SLOWER in both rounds (2 of 2 cells)", text)
        self.assertIn("n30 was slow for a while", text)
        self.assertRegex(text, r"n17 .* \+[45]\.\d % +\+[34]\.\d to \+[45]\.\d +11 +SLOWER +SLOWER +persistent")
        self.assertRegex(text, r"n31 .* SLOWER +(SAME|INCONCLUSIVE) +once")
        # The others are counted; all are listed on request.
        self.assertRegex(text, r"\d+ nodes SAME, .* % from the median of the others\n")
        self.assertNotIn("n02 ", text)
        self.assertIn("n02 ", self.show("--full", code=2))
        self.assertEqual(self.lasting(2), {"n17": "persistent", "n30": "once", "n31": "once"})
        self.assertEqual(self.lasting(2), self.lasting(2))
        self.show("--threshold", "20%", code=0)
        text = self.show("--format", "md", code=2)
        self.assertTrue(text.startswith("# Nodes\n\nn17 is slow: SLOWER in both rounds"), text)
        self.assertRegex(text, r"\| n17 \| .*\| SLOWER \| SLOWER \| persistent \|")
        page = self.prony("report", "--by", "node", "-o", "-", "--store", self.store, expect=0).stdout
        section = page[page.index('<section id="nodes">'):].partition("</section>")[0]
        self.assertIn("<p>n17 is slow: SLOWER in both rounds (2 of 2 cells)</p>", section)
        # The slow one is first.
        self.assertRegex(section, r'<tbody>\n<tr><td class="strong">n17</td><td class="bad">persistent</td>'
                                  r'<td class="figure bad">\+[45]\.\d %<br><small>\+[34]\.\d to ')
        self.assertEqual(section.count("<tr>"), 1 + 50)
        # A row for each cell, node and round.
        rows = list(csv.DictReader(io.StringIO(self.show("--format", "csv", code=2))))
        self.assertEqual(len(rows), 2 * 50 * 2)
        slow = [row for row in rows if row["node"] == "n17"]
        self.assertEqual({row["verdict"] for row in slow}, {"SLOWER"})
        self.assertTrue(all(1.02 < float(row["low"]) < float(row["high"]) < 1.06 for row in slow), slow)

    def test_one_round_does_not_tell_whether_it_lasts(self):
        self.cluster(20, {"n05": (1.06, 1)}, rounds=1)
        self.assertIn("n05 may be slow: SLOWER in its only round; run it again", self.show(code=3))

    def test_what_noise_leaves_open_is_counted(self):
        self.cluster(3, {}, rounds=1)
        self.base.execute("UPDATE process SET step_mean_ns = step_mean_ns * (1 + round % 2)")
        self.base.commit()
        self.assertRegex(" ".join(self.show(code=0).split()),
                         "no node was found slow; 6 of 6 comparisons are INCONCLUSIVE: measure longer")

    def test_no_node_is_slow(self):
        self.cluster(20, {})
        self.assertIn("no node is slow in both rounds", self.show(code=0))

    def test_the_runs_that_are_named(self):
        """Only the last two runs of a node count, unless others are named."""
        self.base.execute("BEGIN")
        for round_ in range(3):
            for node in ("n1", "n2", "n3", "n4", "n5"):
                self.add_run(node, round_, 1.1 if node == "n3" and round_ == 0 else 1)
        self.base.execute("COMMIT")
        self.base.execute("DELETE FROM run WHERE id = 1")
        self.show(code=0)
        self.assertIn("n3 may be slow", self.show("2", "3", "4", "5", "6", code=3))


class OddNodeTest(ClusterTest):
    def test_what_the_sensors_know(self):
        self.base.execute("UPDATE process SET frequency_mean_hz = 2.6e9, thermal_share = 0, foreign_share = 0")
        self.base.execute("BEGIN")
        for round_ in range(2):
            for i in range(12):
                hot = "frequency_mean_hz = 2.1e9, thermal_share = 0.12, foreign_share = 0.3, flags = 'disturbed'" if i == 3 else ""
                self.add_run(f"n{i}", round_, 1.2 if i == 3 else 1, hot)
        self.base.execute("DELETE FROM run WHERE id = 1")
        self.base.execute("COMMIT")
        reason = "clock 2.1 of 2.6 GHz, busy 30 % of their cores, heat 12 % of the time"
        self.assertIn(reason, self.show(code=2))
        page = self.prony("report", "--by", "node", "-o", "-", "--store", self.store, expect=0).stdout
        self.assertIn(f"<small>{reason}</small>", page)

    def test_other_machines_and_failed_cells(self):
        """A machine of another kind is not compared; a cell that only one node fails is named."""
        self.cluster(6, {"n06": (1.5, 1.5)})
        self.base.execute("UPDATE run SET environment = json_set(environment, '$.must_match.cores_usable', 99)"
                          " WHERE host = 'n06'")
        self.base.execute("UPDATE cell SET status = 'crashed', reason = 'killed by signal 11' WHERE name = 'mxnet' AND run ="
                          " (SELECT max(id) FROM run WHERE host = 'n02')")
        text = self.show(code=1)
        self.assertRegex(text, r"not compared, another machine: n06, .*cores_usable \(\d+ and 99\)")
        self.assertIn("n02: 1 of 2 cells is not ok, but on other nodes", text)
        self.assertRegex(text, r"n02 .* crashed .*\n.*killed by signal 11")

    def test_hosts_outside_of_jobs(self):
        for round_ in range(2):
            for host in ("a", "b", "c", "d"):
                self.add_run(host, round_, 1.3 if host == "c" else 1, job=False)
        self.base.execute("DELETE FROM run WHERE id = 1")
        self.assertEqual(self.lasting(2)["c"], "persistent")

    def test_what_cannot_be_compared(self):
        self.assertIn("nothing to compare: 1 node of one kind", self.show(code=65))
        self.prony("report", "--by", "node", "-o", "-", "--store", self.store, expect=65)
        done = self.prony("show", "--format", "csv", "--store", self.store, expect=64)
        self.assertIn("needs --by node", done.stderr)


class RecordTest(ClusterTest):
    def test_a_job_says_its_node(self):
        self.environment.update(SLURMD_NODENAME="n7", SLURM_JOB_ID="12", SLURM_JOB_PARTITION="main")
        self.prony("run", "-f", "null", "-n", "lenet", "-b", "2", "-s", "forward", "--quick", "--repeat", "1",
                   "--store", self.store, expect=0)
        record = json.loads(self.prony("show", "--format", "json", "--store", self.store, expect=0).stdout)["run"]
        self.assertEqual(record["node"], "n7")
        self.assertEqual({"job": "12", "partition": "main"},
                         {key: record["environment"]["informational"].get(key) for key in ("job", "partition")})
        self.assertIn(" n7 ", self.prony("list", "runs", "--store", self.store, expect=0).stdout)
        public = self.prony("export", "--format", "jsonl", "--public", "--store", self.store, expect=0).stdout
        self.assertNotIn("n7", public)
        self.assertNotIn("nodes_allocated", public)

    def test_parts_keep_their_nodes(self):
        """Each cell of a joined run has the node of its part; no cell is on two."""
        stores = [os.path.join(self.folder, f"part{i}.db") for i in (1, 2)]
        for i, store in enumerate(stores):
            self.environment["SLURMD_NODENAME"] = f"n{i + 1}"
            self.prony("run", "-f", "null", "-n", "lenet,mlp", "-b", "2", "-s", "forward", "--quick", "--repeat", "1",
                       "--part", f"{i + 1}/2", "--run-id", "one", "--store", store, expect=0)
        joined = os.path.join(self.folder, "joined.db")
        self.prony("import", *stores, "--store", joined, expect=0)
        rows = csv.DictReader(io.StringIO(self.prony("export", "--layout", "cells", "--store", joined, expect=0).stdout))
        nodes = {row["network"]: row["node"] for row in rows}
        self.assertEqual(sorted(nodes.values()), ["n1", "n2"])
        history, = json.loads(self.prony("history", "null", "lenet", "--format", "json", "--store", joined, expect=0).stdout)
        self.assertEqual([point["node"] for point in history["points"]], [nodes["lenet"]])
        self.store = joined
        self.assertIn("2 nodes of one kind, 0 cells that two of them ran", self.show(code=65))

    def test_a_history_of_each_node(self):
        for round_ in range(3):
            for node in ("n1", "n2"):
                self.add_run(node, round_)
        self.add_run("host", 3, job=False)

        def series(*words):
            return [[point["node"] or point["host"] for point in document["points"]] for document in
                    json.loads(self.prony("history", "mxnet", *words, "--format", "json", "--store", self.store,
                                          expect=0).stdout)]
        self.assertEqual(series(), [["slow", "host"], ["n1"] * 3, ["n2"] * 3])
        self.assertEqual(series("--by", "node"), [["host"], ["n1"] * 3, ["n2"] * 3, ["slow"]])
        self.assertEqual(len(series("--by", "kind")[0]), 8)
        self.assertIn(", on n2\n", self.prony("history", "mxnet", "--store", self.store, expect=0).stdout)


if __name__ == "__main__":
    unittest.main()
