#!/usr/bin/env python3
"""history, and the one table of a sweep, on invented figures.

$PRONY is the program, $REPORT_STORE fills a store with the runs of tests/unit/report_fixture.c.
"""
import json
import os
import re
import sqlite3
import subprocess
import unittest

from prony_program import ProgramTest

REPORT_STORE = os.environ.get("REPORT_STORE", "build/tests/report_store")
RUNS = 20


class InventedTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment["COLUMNS"] = "80"
        subprocess.run([REPORT_STORE, self.store, "1"], check=True, timeout=240)
        self.base = sqlite3.connect(self.store, isolation_level=None)
        self.addCleanup(self.base.close)

    def columns(self, table, leave):
        return ", ".join(row[1] for row in self.base.execute(f"PRAGMA table_info({table})")
                         if row[1] not in leave)

    def copy_cell(self, cell, run, factor, hash_of=None, batch=None):
        """A copy of a cell with its processes, in another run or with another batch."""
        columns = self.columns("cell", ("id", "run", "hash", "key", "batch"))
        new = self.base.execute(
            f"INSERT INTO cell (run, hash, key, batch, {columns}) SELECT ?, ifnull(?, hash),"
            f" CASE WHEN ? IS NULL THEN key ELSE replace(key, 'batch=64', 'batch=' || ?) END,"
            f" ifnull(?, batch), {columns} FROM cell WHERE id = ?",
            (run, hash_of, batch, batch, batch, cell)).lastrowid
        columns = self.columns("process", ("id", "cell", "step_mean_ns"))
        self.base.execute(f"INSERT INTO process (cell, step_mean_ns, {columns}) SELECT ?, step_mean_ns * ?,"
                          f" {columns} FROM process WHERE cell = ?", (new, factor, cell))
        return new

    def ask(self, *words, code=0):
        done = self.prony(*words, "--store", self.store, expect=code)
        return done.stdout if code == 0 else done.stderr


class HistoryTest(InventedTest):
    def setUp(self):
        super().setUp()
        (self.cell,), = self.base.execute("SELECT id FROM cell WHERE framework = 'native' AND stage = 'train'")
        columns = self.columns("run", ("id", "uid", "started_wall_ns"))
        self.base.execute("BEGIN")
        for i in range(1, RUNS):
            run = self.base.execute(f"INSERT INTO run (uid, started_wall_ns, {columns}) SELECT lower(hex("
                                    f"randomblob(16))), started_wall_ns + {i} * 3600000000000, {columns}"
                                    " FROM run WHERE id = 1").lastrowid
            # 10 % slower from the thirteenth on, a wobble of 0.4 %.
            self.copy_cell(self.cell, run, (1 + (i * 7 % 5 - 2) / 1000) * (1.1 if i >= 12 else 1))
        self.base.execute("UPDATE cell SET details = json_set(details, '$.version', '3.3.0') WHERE run > 12"
                          " AND framework = 'native'")
        self.base.execute("COMMIT")

    def test_a_change_is_found_where_it_is(self):
        document, = json.loads(self.ask("history", "native", "lenet", "train", "--format", "json"))
        self.assertEqual(len(document["points"]), RUNS)
        change, = document["changes"]
        self.assertEqual((change["run"], change["point"]), (13, 12))
        self.assertTrue(1.09 < change["low"] < 1.1 < change["high"] < 1.11, change)
        self.assertLessEqual(change["p"], 0.01)
        self.assertEqual([point["run"] for point in document["points"] if point["change"]], [13])
        self.assertEqual(document["points"][12]["different"], "native 3.2.0 -> 3.3.0")
        # The same answer each time; a change within the threshold is none.
        again, = json.loads(self.ask("history", document["hash"][:8], "--format", "json"))
        self.assertEqual(again, document)
        none, = json.loads(self.ask("history", document["hash"], "--threshold", "12%", "--format", "json"))
        self.assertEqual(none["changes"], [])
        few, = json.loads(self.ask("history", document["hash"], "--runs", "5", "--format", "json"))
        self.assertEqual((len(few["points"]), few["changes"]), (5, []))

    def test_another_prony_and_another_floor_are_named(self):
        def different(run):
            document, = json.loads(self.ask("history", "native", "lenet", "train", "--format", "json"))
            return document["points"][run - 1]["different"]

        old, new = "ffeeddccbbaa99887766554433221100" * 2, "ee" * 32
        self.base.execute("UPDATE run SET environment = json_set(environment, '$.should_match.program.build', 'def5678'),"
                          " environment_hash = 'feedface11111111' WHERE id >= 6")
        self.base.execute("UPDATE run SET environment = json_set(environment, '$.should_match.program.libraries.native',"
                          f" '{new}') WHERE id >= 7")
        # Neither is told again as other surroundings; a kernel is.
        self.assertEqual(different(6), "prony 0.1.0 (abc1234, sha256 001122334455) -> 0.1.0 (def5678, sha256 001122334455)")
        self.assertEqual(different(7), f"library of native sha256 {old[:12]} -> {new[:12]}")
        self.base.execute("UPDATE run SET environment_hash = 'feedface22222222' WHERE id >= 8")
        self.assertEqual(different(8), "other conditions (prony compare 7 8)")
        # A store of an older prony says less, and can be read.
        self.base.execute("UPDATE run SET environment = json_remove(environment, '$.should_match.program') WHERE id < 6")
        self.assertIsNone(different(5))
        self.assertEqual(different(6), "prony 0.1.0 -> 0.1.0 (def5678, sha256 001122334455)")

    def test_in_a_terminal(self):
        text = self.ask("history", "native", "train")
        lines = text.splitlines()
        self.assertTrue(lines[0].startswith("native: lenet, mnist-sample, train with momentum"))
        self.assertEqual(len(lines[1]), RUNS)
        self.assertTrue(set(lines[1]) <= set("▁▂▃▄▅▆▇█") and lines[1][-1] in "▇█" and lines[1][0] in "▁▂")
        self.assertRegex(text, r"\n +13 .*\+10\.\d % \(\+9\.\d to \+10\.\d\)\n")
        self.assertIn("native 3.2.0 -> 3.3.0", text)
        self.assertIn(f"{RUNS} runs, 1 change\n", text)
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_on_the_page(self):
        """The page of a run has its cells' histories up to it, and their changes."""
        page = self.ask("report", str(RUNS), "-o", "-")
        self.assertRegex(page, r"<td>run 13: \+10\.\d % \(\+9\.\d to \+10\.\d\), native 3\.2\.0 -&gt; 3\.3\.0</td>"
                         rf'<td class="long">{RUNS} runs, 1 change</td>')
        self.assertIn('<td class="long">5 runs, 0 changes', self.ask("report", "5", "-o", "-"))
        self.assertNotIn('id="history"', self.ask("report", "1", "-o", "-"))

    def test_other_machines_and_unfinished_cells_are_left_out(self):
        self.base.execute("UPDATE run SET environment = json_set(environment, '$.must_match.memory_gib', 99)"
                          " WHERE id <= 4")
        self.base.execute("UPDATE cell SET status = 'crashed' WHERE run = 6")
        self.base.execute("UPDATE cell SET status = 'pending' WHERE run IN (7, 8)")
        self.base.execute("DELETE FROM process WHERE replicate > 1 AND cell IN (SELECT id FROM cell WHERE run = 7)")
        document, = json.loads(self.ask("history", "native", "train", "--format", "json"))
        self.assertEqual((len(document["points"]), document["other_machines"], document["without_figures"]),
                         (RUNS - 6, 4, 2))
        text = " ".join(self.ask("history", "native", "train").split())
        self.assertIn("4 runs on other machines not shown; 2 runs unfinished or without a figure, not shown", text)

    def test_words_that_are_wrong(self):
        self.assertIn("which cell", self.ask("history", code=64))
        self.assertIn("no stored run has a cell that matches squeezenet", self.ask("history", "squeezenet", code=65))
        self.assertIn("a cell that matches native lenet squeezenet", self.ask("history", "native", "lenet", "squeezenet", code=65))
        # The framework, not what others load for themselves.
        self.base.execute("UPDATE cell SET key = key || ' input=native' WHERE framework = 'onnxruntime'")
        self.assertNotIn("onnxruntime", self.ask("history", "native"))
        self.assertIn("onnxruntime", self.ask("history", "input=native"))
        self.ask("history", "native", "--runs", "0", code=64)
        self.ask("history", "native", "--threshold", "7", code=64)
        # A word may mean several cells; each has its history.
        self.assertEqual(len(json.loads(self.ask("history", "lenet", "--format", "json"))), 10)


class SweepTest(InventedTest):
    def sweep(self, *batches):
        self.base.execute("BEGIN")
        for (cell,) in self.base.execute("SELECT id FROM cell WHERE run = 1 AND batch = 64").fetchall():
            for batch in batches:
                self.copy_cell(cell, 1, batch / 64, f"{batch:08x}{cell:08x}", batch)
        self.base.execute("COMMIT")

    def test_a_sweep_is_one_table_for_each_stage(self):
        single = self.ask("show")
        self.assertIn("vs native", single)
        self.sweep(1)
        self.assertIn("vs native", self.ask("show"))  # two values are two tables
        self.sweep(4, 16, 256)
        text = self.ask("show")
        self.assertNotIn("vs native", text)
        lines = text.splitlines()
        self.assertLess(len(lines), 45)
        heads = [line for line in lines if line.startswith("framework")]
        self.assertEqual([head.split()[1:] for head in heads], [["1", "4", "16", "64", "256"]] * 2)
        native = [line for line in lines if line.startswith("native ")]
        self.assertEqual(len(native), 2)
        self.assertIn("6.20 ms*", native[0])
        self.assertIn("24.8 ms*", native[0])
        self.assertLessEqual(max(map(len, lines)), 80)
        # The reason of what crashed is said once for all values.
        self.assertEqual(text.count("mxnet, batch 1, 4, 16, 64, 256: killed by signal 11"), 1)
        full = self.ask("show", "--full")
        self.assertEqual(full.count("vs native"), 10)
        self.assertEqual(full.count("undisturbed ratio"), 10)

    def test_a_sweep_says_how_sure_it_is(self):
        self.sweep(1, 4, 16, 256)
        text = " ".join(self.ask("show").split())
        self.assertRegex(text, r"\+/- 1\.\d % \(\w+, batch \d+, has the widest\)")
        self.assertNotIn("no rank", text)
        # native, 20 % to both sides at batch 16: no order there, and it is said what would tell.
        self.base.execute("UPDATE process SET step_mean_ns = step_mean_ns * (0.8 + 0.4 * (replicate % 2)) WHERE cell IN"
                          " (SELECT id FROM cell WHERE framework = 'native' AND batch = 16 AND stage = 'forward')")
        text = self.ask("show")
        native = [line for line in text.splitlines() if line.startswith("native ")][1]
        self.assertRegex(native, r"131 us\* +490 us\? +2\.10 ms\*")
        self.assertEqual(native.count("?"), 1)
        self.assertRegex(" ".join(text.split()), r"\?: no rank for 4 of 20: .* processes each would settle it: --repeat \d+")
        # What contradicts the idea of a floor, at three values and then in one line for the rest.
        self.base.execute("UPDATE process SET step_mean_ns = step_mean_ns / 2 WHERE cell IN"
                          " (SELECT id FROM cell WHERE framework = 'pytorch' AND stage = 'train')")
        text = " ".join(self.ask("show").split())
        self.assertEqual(text.count("faster than native: pytorch"), 1, text)  # the same ratio at all of them
        self.assertIn("batch 1, 4, 16, 64, 256: faster than native: pytorch", text)

    def test_what_the_sweep_means_nothing_to(self):
        """Inference has no learning rate: it has its usual table, and no column of one."""
        self.base.execute("BEGIN")
        for (cell,) in self.base.execute("SELECT id FROM cell WHERE run = 1 AND stage = 'train'").fetchall():
            for rate in (0.01, 0.1):
                new = self.copy_cell(cell, 1, 1 + rate, f"{int(rate * 100):08x}{cell:08x}")
                self.base.execute("UPDATE cell SET learning_rate = ?, key = key || ? WHERE id = ?",
                                  (rate, f" learning_rate={rate}", new))
        self.base.execute("COMMIT")
        text = self.ask("show")
        train, forward = text.split("\n\n")[1:3]
        self.assertEqual([line.split() for line in train.splitlines() if line.startswith("framework")],
                         [["framework", "0.001", "0.01", "0.1"]])
        self.assertIn("forward, batch 64", forward)
        self.assertIn("vs native", forward)
        self.assertNotIn("learning_rate", forward)
        # The signs of both kinds are explained.
        words = " ".join(text.split())
        self.assertIn("*: fastest or tied", words)
        self.assertIn("+/-: half width of the 95 % interval", words)

    def test_a_page_of_more_processes_than_it_holds(self):
        """Above 3,000 the comparisons after the 60th have no processes on it: it says so, and counts them all."""
        self.sweep(*(size for size in range(1, 112) if size != 64))
        self.base.execute("UPDATE cell SET flags = 'disturbed' WHERE status = 'ok' AND batch IN (5, 111)")
        self.base.execute("UPDATE process SET flags = 'disturbed', foreign_share = 0.512 WHERE replicate = 1 AND cell IN"
                          " (SELECT id FROM cell WHERE flags = 'disturbed')")
        processes, = self.base.execute("SELECT count(*) FROM process").fetchone()
        self.assertGreater(processes, 3000)
        banner = re.compile(r"busy machine: other programs took up to \d+ % of their cores, in \d+ of \d+ processes")
        # What is shown in a terminal is counted cell by cell, from all their processes.
        shown = banner.search(" ".join(self.ask("show").split()))
        page = self.ask("report", "-o", "-")
        self.assertEqual(banner.search(page)[0], shown[0])
        self.assertIn("Only the first comparisons are shown", page)

    def test_many_values_stand_below_each_other(self):
        self.sweep(*(2 ** i for i in range(6)), *(2 ** i for i in range(7, 13)))
        for width in ("80", "200"):
            self.environment["COLUMNS"] = width
            text = self.ask("show")
            heads = [line.split() for line in text.splitlines() if re.match(r" *batch [^:]*$", line)]
            self.assertTrue(heads and all("native" in head for head in heads))
            self.assertLessEqual(max(map(len, text.splitlines())), int(width))


if __name__ == "__main__":
    unittest.main()
