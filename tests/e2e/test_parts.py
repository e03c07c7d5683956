#!/usr/bin/env python3
"""`prony run --part I/N` and `prony import`, which joins the parts into one run. $PRONY names the program."""
import json
import os
import shutil
import signal
import sqlite3
import time
import unittest

from prony_program import PATIENCE_S, KeptReferencesTest

TWO_TABLES = ("-f", "null,fake", "-n", "mlp", "-s", "forward,train", "-d", "synthetic", "-b", "4")
FOUR_TABLES = (*TWO_TABLES[:-1], "4,8")
QUICK = ("--quick", "--repeat", "1", "--steps", "5", "--warm-up", "1")


class PartsTest(KeptReferencesTest):
    def part(self, part, *words, expect=0, store=None, cells=TWO_TABLES, **more):
        store = store or os.path.join(self.folder, f"part{part.replace('/', 'of')}.db")
        self.prony("run", *cells, *QUICK, "--part", part, "--store", store, *words, expect=expect, **more)
        return store

    def both(self):
        """The stores of both parts of the run with four tables, which is measured once."""
        kept = {"1/2": os.path.join(self.kept, "1.db"), "2/2": os.path.join(self.kept, "2.db")}
        if not os.path.exists(kept["1/2"]):
            self.part("2/2", "--run-id", "7", store=kept["2/2"], cells=FOUR_TABLES)
            self.part("1/2", store=kept["1/2"], cells=FOUR_TABLES, SLURM_ARRAY_JOB_ID="7")
        return [shutil.copy(path, self.folder) for path in kept.values()]

    def imported(self, *stores):
        return self.prony("import", *stores, "--store", self.store, expect=0).stdout.splitlines()

    def shown(self, *words):
        return self.prony("show", *words, "--store", self.store, expect=0).stdout

    def cells(self):
        return json.loads(self.shown("--format", "json"))["cells"]

    def test_the_parts_are_the_whole(self):
        whole = os.path.join(self.folder, "whole.db")
        self.prony("run", *FOUR_TABLES, *QUICK, "--store", whole, expect=0)
        keys = {cell["hash"] for cell in json.loads(
            self.prony("show", "--format", "json", "--store", whole, expect=0).stdout)["cells"]}
        one, two = self.both()
        self.assertIn("1 new run", self.imported(two)[0])
        self.assertIn("part 1 of 2 is missing", self.shown())
        self.assertIn("0 new runs, 4 cells of a part", self.imported(one)[0])
        # Twice, and in any order, changes nothing.
        for line in self.imported(one, two):
            self.assertIn("0 new runs, 4 cells of a part that is here already", line)
        cells = self.cells()
        self.assertEqual({cell["hash"] for cell in cells}, keys)
        self.assertEqual(len(cells), len(keys))
        self.assertEqual(self.rows("select count(*) from run"), [(1,)])
        text = self.shown()
        for absent in ("missing", "unfinished", "machines"):
            self.assertNotIn(absent, text)
        # Contenders of a table stay together, and both parts have something to do.
        part_of = {}
        for cell in cells:
            part_of.setdefault((cell["batch"], cell["stage"]), set()).add(cell["part"])
        self.assertEqual([len(parts) for parts in part_of.values()], [1] * 4)
        self.assertEqual(set().union(*part_of.values()), {1, 2})
        # Another submission is another run.
        self.imported(self.part("1/2", SLURM_ARRAY_JOB_ID="8", store=os.path.join(self.folder, "8.db")))
        self.assertEqual(self.rows("select count(*) from run"), [(2,)])

    def test_a_killed_part_goes_on(self):
        store = os.path.join(self.folder, "killed.db")
        words = ("run", *TWO_TABLES, "--quick", "--repeat", "4", "--steps", "20", "--warm-up", "1", "--part", "1/2",
                 "--store", store, "--resume")
        process = self.start(*words)
        saved, self.store = self.store, store
        deadline = time.monotonic() + PATIENCE_S
        while len(self.rows("select id from process")) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = set(self.rows("select cell, replicate, started_wall_ns from process"))
        self.store = saved
        self.imported(store)
        self.assertIn("part 2 of 2 is missing; part 1 of 2 is not finished", self.shown())
        self.prony(*words, expect=0)
        self.store = store
        after = self.rows("select cell, replicate, started_wall_ns from process")
        self.assertLessEqual(before, set(after))
        self.assertEqual(len(after), 2 * 4)
        self.store = saved
        # The finished part takes the place of what was imported of it.
        self.assertIn("2 cells of a part", self.imported(store)[0])
        self.assertEqual(self.rows("select count(*) from process"), [(2 * 4,)])
        self.assertNotIn("not finished", self.shown())

    def test_more_parts_than_tables(self):
        stores = [self.part(f"{i}/3") for i in range(1, 4)]
        self.imported(*stores)
        self.assertEqual(len(self.cells()), 4)
        self.assertNotIn("missing", self.shown())
        dry = self.prony("run", *TWO_TABLES, *QUICK, "--part", "3/3", "--dry-run", expect=0)
        self.assertIn("0 of 2 tables, 0 of 4 cells", dry.stderr)

    def test_parts_in_one_store(self):
        for part in ("2/2", "1/2"):
            self.part(part, store=self.store)
        self.assertEqual(len(self.cells()), 4)
        again = self.prony("run", *TWO_TABLES, *QUICK, "--part", "2/2", "--store", self.store)
        self.assertEqual(again.returncode, 64, again.stderr)
        self.assertIn("part 2/2 of this run is here; add --resume", again.stderr)
        self.part("2/2", "--resume", store=self.store)
        self.assertEqual(self.rows("select count(*) from process"), [(4,)])

    def test_machines_that_differ(self):
        one, two = self.both()
        self.change(two, "update run_part set host = 'b', environment_hash = '0123456789abcdef', environment = "
                         "json_set(environment, '$.must_match.cpu_model', 'Other')")
        self.imported(two, one)
        text = " ".join(self.shown().split())
        self.assertRegex(text, r"on 2 machines, quick.*of 2 machines, each table of one: part 1 on [^;]*; part 2 on b, Other")

    def test_nodes_that_plan_different_cells(self):
        """A cell that both parts have is kept once, and the import says so."""
        one, two = self.both()
        base = sqlite3.connect(two)
        base.execute("attach ? as one", (one,))
        columns = ", ".join(row[1] for row in base.execute("pragma table_info(cell)") if row[1] not in ("id", "run", "part"))
        base.execute(f"insert into cell (run, part, {columns}) select (select id from main.run), 2, {columns} from one.cell"
                     " limit 1")
        base.commit()
        base.close()
        done = self.prony("import", one, two, "--store", self.store, expect=0)
        self.assertIn("2.db: 1 of its cells left out", done.stderr)
        self.assertEqual(len(self.cells()), 8)

    def test_usage(self):
        for words, said in (
                (("--part", "0/2"), "--part takes I/N"), (("--part", "3/2"), "--part takes I/N"),
                (("--part", "1of2"), "--part takes I/N"), (("--part", "01/2"), "--part takes I/N"),
                (("--run-id", "7"), "add --part I/N"), (("--part", "1/2", "--run-id", ""), "at most 64 characters"),
                (("--part", "1/2", "--run-id", "x" * 65), "at most 64 characters"),
                (("--part", "1/2", "--baseline", "a"), "import all parts, then use prony compare")):
            done = self.prony("run", *TWO_TABLES, *QUICK, *words)
            self.assertEqual(done.returncode, 64)
            self.assertIn(said, done.stderr)

    def change(self, store, sql, *values):
        with sqlite3.connect(store) as base:
            base.execute(sql, values)
        base.close()


if __name__ == "__main__":
    unittest.main()
