#!/usr/bin/env python3
"""Runs have names; compare, and the gate of `run --baseline`: on invented figures, and on the fake.

$PRONY is the program, $REPORT_STORE fills a store with the runs of tests/unit/report_fixture.c.
"""
import csv
import io
import json
import os
import sqlite3
import subprocess
import unittest

from prony_program import ProgramTest, read, write

SOURCE = os.environ.get("PRONY_SOURCE", ".")
REPORT_STORE = os.environ.get("REPORT_STORE", "build/tests/report_store")


class StoredTest(ProgramTest):
    """Runs 1 and 3 are of one machine, run 2 of another. Spread of processes: about 1 %."""

    def setUp(self):
        super().setUp()
        self.environment["COLUMNS"] = "80"
        subprocess.run([REPORT_STORE, self.store, "3"], check=True, timeout=240)

    def sql(self, script):
        base = sqlite3.connect(self.store)
        base.executescript(script)
        base.close()

    def slow(self, run, framework, factor):
        self.sql(f"UPDATE process SET step_mean_ns = step_mean_ns * {factor} WHERE cell IN"
                 f" (SELECT id FROM cell WHERE run = {run} AND framework = '{framework}')")

    def ask(self, *words, code=0):
        done = self.prony(*words, "--store", self.store, expect=code)
        return done.stdout if code < 64 else done.stderr

    def compared(self, *words, code):
        return json.loads(self.ask("compare", *words, "--format", "json", code=code))


class NameTest(StoredTest):
    def test_runs_have_names_everywhere(self):
        self.ask("tag", "1", "nightly", "gcc-13", "--name", "main")
        rows = json.loads(self.ask("list", "runs", "--format", "json"))
        # The clock of the invented runs stands still: the last one stored is the newest.
        self.assertEqual([row["id"] for row in rows], [3, 2, 1])
        self.assertEqual((rows[2]["name"], rows[2]["tags"], rows[2]["cells"]),
                         ("main", ["gcc-13", "nightly"], 10))
        text = self.ask("list", "run", "--tag", "nightly")
        self.assertIn("main", text)
        self.assertEqual(len([line for line in text.splitlines() if "2026-" in line]), 1)
        self.assertTrue(self.ask("show", "main").startswith("run 1 ("))
        self.assertIn(") main, quickstart", self.ask("show", "1").splitlines()[0])
        run = json.loads(self.ask("export", "main", "--format", "json"))["run"]
        self.assertEqual((run["id"], run["name"], run["tags"]), (1, "main", ["gcc-13", "nightly"]))
        self.assertIn("about to crash", self.ask("log", "--run", "main", "mxnet", "train"))
        self.ask("report", "main", "2", "-o", os.path.join(self.folder, "page.html"))
        self.assertTrue(self.ask("show", "latest~2").startswith("run 1 ("))
        self.assertIn("run 1 (", self.prony("delete", "main", "-y", "--store", self.store, expect=0).stderr)
        self.assertIn("no run 'main'", self.ask("show", "main", code=65))

    def test_what_is_refused(self):
        self.ask("tag", "1", "--name", "main")
        self.assertIn("run 1 already has the name 'main'", self.ask("tag", "2", "--name", "main", code=64))
        self.assertIn("could be the beginning of a uid", self.ask("tag", "2", "--name", "cafe", code=64))
        # All or nothing.
        self.ask("tag", "2", "good", "bad tag", code=64)
        self.assertNotIn("good", self.ask("list", "runs"))
        self.assertIn("has no tag 'x'", self.ask("tag", "2", "x", "--remove", code=65))
        self.assertIn("which run", self.ask("tag", code=64))
        self.ask("tag", "1", "--name", "")
        self.ask("tag", "2", "--name", "main")

    def test_a_number_is_no_uid(self):
        self.sql("UPDATE run SET uid = '6' || substr(uid, 2) WHERE id = 1;"
                 "UPDATE run SET uid = '7' || substr(uid, 2) WHERE id > 1")
        self.assertIn("no run '6'", self.ask("show", "6", code=65))
        self.assertIn("no run '6'", self.ask("delete", "6", "-y", code=65))


class VerdictTest(StoredTest):
    def test_the_same_figures(self):
        document = self.compared("1", "3", code=3)
        self.assertEqual((document["ok_in_a_only"], document["verdict"]), (0, "INCONCLUSIVE"))
        judged = [cell for cell in document["cells"] if cell["verdict"]]
        self.assertEqual(len(judged), 6)
        for cell in judged:
            self.assertAlmostEqual(cell["ratio"]["ratio"], 1)
            self.assertGreater(cell["processes_needed"], 5)
        text = self.ask("compare", "1", "3", code=3)
        self.assertIn(f"--repeat {judged[0]['processes_needed']}", text)
        self.assertLessEqual(max(len(line) for line in text.splitlines()), 80)
        # A wider threshold knows.
        self.assertEqual(self.compared("1", "3", "--threshold", "2 %", code=0)["verdict"], "SAME")

    def test_slower_and_faster(self):
        self.slow(3, "native", 1.2)
        self.slow(3, "pytorch", 0.8)
        document = self.compared("1", "3", "--threshold", "5%", code=2)
        self.assertEqual((document["verdict"], document["method"], document["threshold"]),
                         ("SLOWER", "welch", 0.05))
        found = {}
        for cell in document["cells"]:
            found.setdefault(cell["framework"], []).append(cell)
        for cell in found["native"]:
            self.assertEqual(cell["verdict"], "SLOWER")
            self.assertAlmostEqual(cell["ratio"]["ratio"], 1.2, places=6)
            self.assertTrue(1.15 < cell["ratio"]["low"] < 1.2 < cell["ratio"]["high"] < 1.25)
            self.assertLessEqual(cell["p"], cell["p_adjusted"])
        self.assertEqual({cell["verdict"] for cell in found["pytorch"]}, {"FASTER"})
        self.assertEqual({cell["verdict"] for cell in found["fake"]}, {None})
        self.assertEqual(self.compared("3", "1", "native", "--threshold", "5%", code=0)["verdict"], "FASTER")
        self.compared("1", "3", "pytorch", "--threshold", "5%", code=0)
        self.compared("1", "3", "native", "train", "--threshold", "25%", code=0)

    def test_every_format_holds_every_cell(self):
        self.slow(3, "native", 1.2)
        self.sql("DELETE FROM cell WHERE run = 3 AND framework = 'jax';"
                 "DELETE FROM cell WHERE run = 1 AND framework = 'fake'")
        rows = list(csv.DictReader(io.StringIO(self.ask("compare", "1", "3", "--format", "csv", code=2))))
        verdicts = [row["verdict"] for row in rows]
        self.assertEqual((verdicts.count("SLOWER"), verdicts.count("only in A"), verdicts.count("only in B"),
                          verdicts.count("not judged"), len(rows)), (2, 1, 1, 2, 10))
        self.assertTrue(all(row["ratio_low"] for row in rows if row["verdict"] == "SLOWER"))
        text = self.ask("compare", "1", "3", code=2)
        for part in ("only in A: jax, lenet", "only in B: fake, lenet", "no figures in A and B: ", " SLOWER"):
            self.assertIn(part, text)
        page = self.ask("compare", "1", "3", "--format", "md", code=2)
        self.assertIn("| cell | A | B | B / A |", page)
        self.assertIn("only in A: jax", page)
        output = os.path.join(self.folder, "out.json")
        self.assertEqual(self.ask("compare", "1", "3", "--format", "json", "-o", output, code=2), "")
        document = json.loads(read(output))
        self.assertEqual((len(document["only_in_a"]), len(document["only_in_b"])), (1, 1))

    def test_what_is_the_same_for_all_is_left_out(self):
        """Unless --full asks for it: what differs in every two runs, and each cell of many without a counterpart."""
        self.sql("UPDATE run SET environment = json_set(environment, '$.informational.recorded_at', 'later') WHERE id = 3;"
                 "DELETE FROM cell WHERE run = 1 AND framework != 'native'")
        few, full = (self.ask("compare", "1", "3", *more, code=3) for more in ((), ("--full",)))
        self.assertIn("only in B: 8 cells (prony compare --full lists them)", few)
        self.assertNotIn("also different", few)
        self.assertEqual(full.count("only in B: "), 8)
        self.assertIn("also different (informational): recorded_at", full)

    def test_two_frameworks_of_a_run_are_paired(self):
        document = self.compared("latest:native", "latest:pytorch", code=2)
        self.assertEqual((document["method"], document["a"]["framework"], document["b"]["framework"]),
                         ("paired", "native", "pytorch"))
        self.assertEqual(len(document["cells"]), 2)
        # Five pairs; Welch would have about eight degrees of freedom.
        for cell in document["cells"]:
            self.assertAlmostEqual(cell["ratio"]["degrees_of_freedom"], 4)
            self.assertTrue(1.4 < cell["ratio"]["low"] < cell["ratio"]["high"] < 1.7)
        self.assertEqual(document["differences"],
                         {"must_match": [], "should_match": [], "informational": []})
        self.compared("latest:pytorch", "latest:native", code=0)

    def test_another_machine_is_refused(self):
        message = self.ask("compare", "1", "2", code=65)
        for part in ("cpu_model (Example CPU 9000 and Example CPU 9900)", "memory_gib (8 and 64)", "--force"):
            self.assertIn(part, message)
        document = self.compared("1", "2", "--force", code=0)
        self.assertEqual({row["what"] for row in document["differences"]["must_match"]},
                         {"cpu_model", "cores_usable", "memory_gib"})
        self.assertEqual([row["what"] for row in document["differences"]["should_match"]], ["governor", "prony"])
        self.assertIn("differs, but must match: cores_usable (2 -> 8)",
                      self.ask("compare", "1", "2", "--force"))

    def test_another_prony_and_another_floor(self):
        def set_program(run, **parts):
            for part, value in parts.items():
                self.sql("UPDATE run SET environment = json_set(environment, '$.should_match.program."
                         f"{part}', json('{json.dumps(value)}')) WHERE id = {run}")

        def differences():
            return self.compared("1", "3", code=3)["differences"]["should_match"]

        self.assertEqual(differences(), [])
        set_program(3, build="def5678", sha256="77" * 32, libraries={"native": "ee" * 32})
        self.assertEqual(differences(), [
            {"what": "library of native, the floor", "a": "sha256 ffeeddccbbaa", "b": "sha256 eeeeeeeeeeee"},
            {"what": "prony", "a": "0.1.0 (abc1234, sha256 001122334455)", "b": "0.1.0 (def5678, sha256 777777777777)"}])
        text = " ".join(self.ask("compare", "1", "3", code=3).split())
        self.assertIn("library of native, the floor (sha256 ffeeddccbbaa -> sha256 eeeeeeeeeeee)", text)
        # A run of a prony that did not say it, as in older stores.
        self.sql("UPDATE run SET environment = json_remove(environment, '$.should_match.program') WHERE id = 3")
        self.assertEqual([(row["what"], row["b"]) for row in differences()], [("prony", "0.1.0")])

    def test_the_noise_is_the_threshold(self):
        self.sql("UPDATE run SET environment = json_set(environment, '$.informational.measured.noise',"
                 " json('{\"floor\": 0.04}'))")
        document = self.compared("1", "3", code=0)
        self.assertEqual((document["threshold"], document["noise_floor"]), (0.04, 0.04))
        self.sql("UPDATE run SET environment = json_set(environment, '$.informational.measured.noise',"
                 " json('{\"floor\": 0.06, \"apart\": 0.03}'))")
        document = self.compared("1", "3", code=0)
        self.assertEqual([document[name] for name in ("threshold", "noise", "noise_floor")], [0.03, 0.03, 0.06])
        self.assertIn("below this machine's noise of 3.0 %",
                      self.ask("compare", "1", "3", "--threshold", "2%"))

    def test_the_noise_floor_is_printed_with_its_date(self):
        def measured(when):
            self.sql("UPDATE run SET environment = json_set(environment, '$.informational.measured.noise',"
                     f" json('{{\"floor\": 0.04, \"measured_at\": \"{when}\"}}'))")
            return " ".join(self.ask("compare", "1", "3").split())

        unknown = " ".join(self.ask("compare", "1", "3", code=3).split())
        self.assertIn("noise floor: not measured on this machine", unknown)
        # The invented runs began at 2026-11-18T11:06:40Z.
        text = measured("2026-11-01T11:06:40Z")
        self.assertIn("noise floor: 4.0 % (a slowdown of twice this size is detected), measured 2026-11-01T11:06:40Z", text)
        self.assertEqual(self.compared("1", "3", code=0)["noise_age_days"], 17)
        text = measured("2026-10-18T11:06:40Z")
        self.assertIn("measured 2026-10-18T11:06:40Z, 31 days before the run", text)
        # The same floor in both: the later run is the one that it is too old for.
        self.sql("UPDATE run SET started_wall_ns = started_wall_ns + 60 * 86400 * 1000000000 WHERE id = 3")
        text = measured("2026-11-08T11:06:40Z")
        self.assertIn("70 days before the run", text)

    def test_a_noise_floor_of_other_surroundings(self):
        def measured(surroundings, which="1, 3"):
            noise = json.dumps({"floor": 0.04, "measured_at": "2026-11-01T11:06:40Z", **surroundings})
            self.sql("UPDATE run SET environment = json_set(environment, '$.informational.measured.noise',"
                     f" json('{noise}')) WHERE id IN ({which})")
            text = " ".join(self.ask("compare", "1", "3").split())
            return text, self.compared("1", "3", code=0)["noise_elsewhere"]

        self.sql("UPDATE run SET environment = json_set(environment, '$.should_match.kernel', '6.8.0',"
                 " '$.should_match.governor', 'powersave', '$.should_match.nvidia_driver', NULL) WHERE id IN (1, 3)")
        now = {"kernel": "6.8.0", "governor": "powersave", "nvidia_driver": None}
        # Those of older versions do not say, and what neither or one alone says is no difference.
        for known in ({}, {"surroundings": now}, {"surroundings": {"kernel": "6.8.0", "microcode": "0x1"}},
                      {"surroundings": "elsewhere"}, {"surroundings": {}}):
            text, elsewhere = measured(known)
            self.assertIsNone(elsewhere, known)
            self.assertNotIn("other conditions", text)
        then = {"surroundings": {**now, "kernel": "6.1.0", "nvidia_driver": "570.1"}}
        expected = {"kernel: then 6.1.0, now 6.8.0", "nvidia_driver: then 570.1, now none"}
        text, elsewhere = measured(then)
        self.assertEqual(set(elsewhere.split("; ")), expected)
        self.assertIn("the noise floor was measured under other conditions: ", text)
        self.assertIn(f"{elsewhere} (to repeat: prony selftest)", text)
        self.assertIn("noise floor: 4.0 % (a slowdown of twice this size is detected), measured 2026-11-01", text)
        # The same floor, which one of the two runs only is far from.
        for which in ("1", "3"):
            measured({"surroundings": now})
            self.assertEqual(set(measured(then, which)[1].split("; ")), expected)

    def test_undisturbed_steps_have_a_ratio_beside_it(self):
        self.assertNotIn("undisturbed", self.ask("compare", "1", "3", code=3))
        self.sql("UPDATE process SET step_undisturbed_ns = 0.9 * step_mean_ns")
        self.slow(3, "native", 1.2)
        document = self.compared("1", "3", "native", code=2)
        for cell in document["cells"]:
            self.assertEqual(cell["verdict"], "SLOWER")
            self.assertEqual(cell["undisturbed"]["verdict"], "INCONCLUSIVE")
            self.assertAlmostEqual(cell["undisturbed"]["ratio"], 1, delta=1e-9)
        # Pauses made the one slower; with a threshold that such an interval fits into it is SAME.
        document = self.compared("1", "3", "native", "--threshold", "5%", code=2)
        self.assertEqual({cell["undisturbed"]["verdict"] for cell in document["cells"]}, {"SAME"})
        text = " ".join(self.ask("compare", "1", "3", "native", "--threshold", "5%", code=2).split())
        self.assertIn("SAME: a different verdict; the typical steps count", text)
        table = list(csv.DictReader(io.StringIO(self.ask("compare", "1", "3", "--format", "csv", code=2))))
        self.assertTrue(all(row["undisturbed_ratio"] for row in table if row["ratio"]))

    def test_what_else_ran_is_no_verdict(self):
        self.slow(3, "native", 1.2)
        self.sql("UPDATE cell SET flags = 'disturbed' WHERE run = 3 AND framework = 'native'")
        document = self.compared("1", "3", "native", code=3)
        self.assertIn("while B was measured", document["cells"][0]["reason"])
        # And what it would take on an idle machine.
        self.assertGreater(document["cells"][0]["processes_needed"], 1)
        self.assertRegex(document["cells"][0]["reason"], r"or use --force; .* decide .*min in total")
        self.compared("1", "3", "native", "--force", code=2)
        # Where it is known which processes it were, and enough are left, these decide.
        of_cell = " WHERE cell IN (SELECT id FROM cell WHERE run = 3 AND framework = 'native')"
        self.sql("UPDATE process SET foreign_share = 0.01" + of_cell)
        self.sql("UPDATE process SET flags = 'disturbed', step_mean_ns = 9 * step_mean_ns" + of_cell +
                 " AND replicate = 1")
        document = self.compared("1", "3", "native", code=2)
        self.assertLess(document["cells"][0]["ratio"]["ratio"], 1.5)
        self.sql("UPDATE process SET flags = 'disturbed'" + of_cell)
        self.compared("1", "3", "native", code=3)

    def test_what_was_disturbed_is_not_known_to_be_the_same(self):
        """The baseline may have been slowed down by as much as what is compared is slower."""
        wide = ("--threshold", "40%")
        self.compared("1", "3", "native", *wide, code=0)
        self.sql("UPDATE cell SET flags = 'disturbed' WHERE run = 1 AND framework = 'native'")
        document = self.compared("1", "3", "native", *wide, code=3)
        self.assertEqual({cell["verdict"] for cell in document["cells"]}, {"INCONCLUSIVE"})
        self.assertIn("while A was measured", document["cells"][0]["reason"])
        self.compared("1", "3", "native", *wide, "--force", code=0)

    def test_a_cell_that_broke(self):
        self.sql("UPDATE cell SET status = 'crashed', reason = 'signal 11' WHERE run = 3"
                 " AND framework = 'native' AND stage = 'train'")
        document = self.compared("1", "3", "native", "--threshold", "2%", code=1)
        self.assertEqual(document["ok_in_a_only"], 1)

    def test_words_that_are_wrong(self):
        for words, code, part in (
                ((), 64, "prony compare A B"), (("1", "1"), 64, "are the same: run 1"),
                (("1:native", "1:native"), 64, "run 1 and native"), (("1:native", "3"), 64, "in both"),
                (("1:nativ", "3:native"), 65, "no framework 'nativ'; it has pytorch, native"),
                (("1", "9"), 65, "no run '9'"), (("1", "3", "squeezenet"), 65, "nothing to compare"),
                (("1", "3", "--threshold", "5"), 64, "such as 5%"), (("1", "3", "--threshold", "x"), 64, "'x'"),
                (("1", "3", "--threshold", "-1%"), 64, "-1%"), (("1", "3", "--format", "xml"), 64, "csv")):
            done = self.prony("compare", *words, "--store", self.store, expect=code)
            self.assertIn(part, done.stderr)


class GateTest(ProgramTest):
    """Runs of the fake, whose step lasts 2 ms; the baseline's figures are made other ones."""

    WORDS = ("-f", "fake+step-us=2000", "-n", "mlp", "-d", "synthetic", "-s", "train", "-b", "4",
             "--warm-up", "2", "--steps", "20", "--repeat", "5")

    def gate(self, *words, expect=None):
        return self.prony("run", *self.WORDS, *words, "--store", self.store, expect=expect)

    def baseline_takes(self, step_ns):
        base = sqlite3.connect(self.store)
        base.executescript(f"UPDATE process SET step_mean_ns = {step_ns} * (1 + replicate / 1000.0)"
                           " WHERE cell = 1")
        base.close()

    def test_a_gate_against_a_baseline(self):
        done = self.gate("--baseline", "main", expect=65)
        self.assertIn("--baseline main (--save-baseline NAME saves one)", done.stderr)
        done = self.gate("--save-baseline", "main", expect=0)
        self.assertIn("saved as 'main': run 1", done.stderr)
        # A thousand times as slow, then as fast: no load of this machine turns that round.
        compared = ("--baseline", "main", "--force")
        self.baseline_takes(2e9)
        done = self.gate(*compared, "--format", "json", expect=0)
        self.assertEqual(json.loads(done.stdout)["comparison"]["verdict"], "FASTER")
        self.baseline_takes(2e3)
        done = self.gate(*compared, "--save-baseline", "main", expect=2)
        self.assertIn(" SLOWER", done.stdout)
        self.assertIn("not saved as 'main': the run is slower", done.stderr)
        self.assertEqual(self.rows("SELECT run FROM run_name WHERE name = 'main'"), [(1,)])
        self.baseline_takes(2e9)
        self.gate(*compared, "--save-baseline", "main", expect=0)
        self.assertEqual(self.rows("SELECT run FROM run_name WHERE name = 'main'"), [(4,)])

    def test_a_run_is_no_baseline_of_itself(self):
        self.gate("--name", "main", expect=0)
        base = sqlite3.connect(self.store)
        base.executescript("PRAGMA foreign_keys = ON; UPDATE run SET finished_wall_ns = NULL; UPDATE cell SET status = 'pending';"
                           "DELETE FROM process WHERE replicate = 4")
        base.close()
        for word in ("main", "latest"):
            done = self.gate("--resume", "--baseline", word, expect=65)
            self.assertIn(f"the baseline '{word}' is run 1, the run that --resume continues", done.stderr)
        self.gate("--resume", expect=0)

    def test_what_is_refused_before_anything_runs(self):
        self.gate("--name", "main", expect=0)
        done = self.gate("--name", "main", expect=64)
        self.assertIn("run 1 already has the name 'main'", done.stderr)
        done = self.gate("--baseline", "main", "--optimiser", "sgd", expect=65)
        self.assertIn("has none of the cells to run", done.stderr)
        for words in (("--threshold", "5%"), ("--force",), ("--name", "a", "--save-baseline", "b"),
                      ("--name", "latest"), ("--save-baseline", "1x"),
                      ("--baseline", "main", "--threshold", "200%"), ("--baseline", "main", "--gate-only")):
            self.gate(*words, expect=64)
        base = sqlite3.connect(self.store)
        base.executescript("UPDATE run SET environment = '{\"must_match\": {\"cores\": 99}}'")
        base.close()
        done = self.gate("--baseline", "main", expect=65)
        self.assertIn("cores (99 and ", done.stderr)
        self.assertEqual(self.rows("SELECT count(*) FROM run"), [(1,)])


class KnownStepTest(ProgramTest):
    """Runs of a worker whose steps last what the test wants, to the nanosecond, however busy the machine is.

    It is tests/workers/forward.py that waits until a step would have ended and then claims that end. Process k of five
    takes (k - 2) / 2 of the spread longer.
    """

    CLOCK = '''
with open("{folder}/started", "ab") as file:
    started = file.tell() + file.write(b".")
with open("{folder}/figures", encoding="utf-8") as stream:
    claim, spread = map(float, stream.read().split())
claim = int(claim * (1 + spread * (started % 5 - 2) / 2))
'''
    WORDS = ("-n", "mlp", "-d", "synthetic", "-b", "1", "--warm-up", "1", "--steps", "2", "--repeat", "5")

    def setUp(self):
        super().setUp()
        text = read(os.path.join(SOURCE, "tests", "workers", "forward.py"))
        for old, new in (("def need(", self.CLOCK.format(folder=self.folder) + "def need("),
                         ("records.extend((begin, now()))",
                          "records.extend((begin, begin + every * claim))\n"
                          "            time.sleep(max(0, records[-1] - now()) / 1e9)")):
            self.assertEqual(text.count(old), 1)
            text = text.replace(old, new)
        self.worker = os.path.join(self.folder, "worker.py")
        write(self.worker, text)

    def gate(self, *words, claim=10e6, spread=0.001, stage="forward", expect=None):
        write(os.path.join(self.folder, "figures"), f"{claim} {spread}")
        # --force: what else the machine does changes nothing of these figures.
        force = ("--force",) if "--baseline" in words else ()
        return self.prony("run", *self.WORDS, "-s", stage, "--worker", f"mine=python3 {self.worker}", "-f", "mine", *words,
                          *force, "--store", self.store, expect=expect)

    def main(self):
        return self.rows("SELECT run FROM run_name WHERE name = 'main'")

    def test_every_outcome_of_the_gate(self):
        both = ("--baseline", "main", "--save-baseline", "main")
        # There is no such run, and no store: only the command that would save it may go on.
        self.assertIn("--save-baseline NAME saves one", self.gate("--baseline", "main", expect=65).stderr)
        self.gate("--baseline", "main", "--save-baseline", "other", expect=65)
        done = self.gate(*both, expect=0)
        self.assertIn("saved as 'main': run 1; there was no such run, so nothing was compared", done.stderr)
        # The same: nothing is replaced.
        done = self.gate(*both, expect=0)
        self.assertIn("'main' stays run 1, because no cell is faster", done.stderr)
        # What may be 30 % slower, or faster, replaces nothing, and fails unless that is allowed.
        done = self.gate(*both, claim=12e6, spread=0.6, expect=3)
        self.assertIn("1 cell may be slower than in the baseline 'main' (INCONCLUSIVE)", done.stderr)
        self.assertIn("not saved as 'main': the run may be slower", done.stderr)
        done = self.gate(*both, "--allow", "inconclusive", claim=12e6, spread=0.6, expect=0)
        self.assertNotIn("--allow", done.stderr)
        self.assertIn("not saved as 'main': the run may be slower", done.stderr)
        done = self.gate("--baseline", "main", "--save-baseline", "other", claim=12e6, spread=0.6, expect=3)
        self.assertIn("not saved as 'other'", done.stderr)
        # Slower is 2, whatever is allowed.
        done = self.gate(*both, "--allow", "inconclusive,unsupported", claim=12e6, expect=2)
        self.assertIn("not saved as 'main': the run is slower", done.stderr)
        self.assertEqual(self.main(), [(1,)])
        # Faster replaces it.
        self.assertIn("saved as 'main': run 7", self.gate(*both, claim=8e6, expect=0).stderr)
        self.assertEqual(self.main(), [(7,)])

    def test_many_small_slowdowns_add_up(self):
        words = ("--baseline", "main", "--save-baseline", "main", "--threshold", "5%")
        codes = [self.gate(*words, claim=10e6 * 1.02 ** run).returncode for run in range(5)]
        self.assertEqual(codes, [0, 0, 0, 2, 2])
        self.assertEqual(self.main(), [(1,)])

    def test_what_cannot_run_may_be_allowed(self):
        stages = ("--save-baseline", "main")
        done = self.gate(*stages, stage="forward,train", expect=1)
        self.assertIn("(unsupported)", done.stderr)
        self.assertIn("--allow unsupported accepts this", done.stderr)
        self.assertEqual(self.main(), [])
        self.gate(*stages, "--allow", "unsupported", stage="forward,train", expect=0)
        self.assertEqual(self.main(), [(2,)])
        self.gate("--baseline", "main", "--allow", "unsupported", stage="forward,train", expect=0)
        # A run of nothing else, and a cell that was ok in the baseline, are failures all the same.
        self.gate("--allow", "unsupported", stage="train", expect=1)
        base = sqlite3.connect(self.store)
        base.executescript("UPDATE cell SET status = 'ok' WHERE run = 2")
        base.close()
        done = self.gate("--baseline", "main", "--allow", "unsupported", stage="forward,train", expect=1)
        self.assertIn("1 cell is ok in the baseline 'main' but not in this run", done.stderr)

    def test_words_of_allow(self):
        done = self.gate("--allow", "unsuported", expect=64)
        self.assertIn("--allow takes inconclusive and unsupported, not 'unsuported'; did you mean unsupported?", done.stderr)
        self.assertIn("is for --baseline", self.gate("--allow", "inconclusive", expect=64).stderr)


if __name__ == "__main__":
    unittest.main()
