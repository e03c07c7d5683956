#!/usr/bin/env python3
"""python/prony.py on what `prony export` writes; and LaTeX, and several runs in one file.

$PRONY names the program, $REPORT_STORE the one that fills a store, $PRONY_SOURCE the source tree.
"""
import ast
import contextlib
import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.environ.get("PRONY_SOURCE", "."), "python")]

import counted  # noqa: E402
import prony as reader  # noqa: E402
from prony_program import PRONY, ProgramTest, read_bytes, write  # noqa: E402

USAGE, BAD_INPUT = 64, 65


class StoredTest(ProgramTest):
    filled = None  # the store that all begin with

    def setUp(self):
        super().setUp()
        if not StoredTest.filled:
            subprocess.run([os.environ["REPORT_STORE"], self.store, "2"], check=True)
            StoredTest.filled = read_bytes(self.store)
        write(self.store, StoredTest.filled)
        self.file = os.path.join(self.folder, "run.jsonl")

    def export(self, *words, expect=0):
        return self.prony("export", *words, "--store", self.store, expect=expect).stdout


class ReaderTest(StoredTest):
    def setUp(self):
        super().setUp()
        self.export("1", "--format", "jsonl", "-o", self.file)

    def test_processes_are_those_of_the_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.export("1", "--layout", "long"))))
        rows = [row for row in rows if row["replicate"]]
        records = reader.processes(self.file)
        self.assertEqual(len(records), len(rows))
        for record, row in zip(records, rows):
            for name in ("framework", "network", "stage", "batch", "replicate", "precision"):
                self.assertEqual(str(record[name]), row[name])
            self.assertEqual(record["status"], row["process_status"])
            self.assertEqual(record["cell.status"], row["status"])
            self.assertEqual(record["process_precision"] or "", row["process_precision"])
            for name in ("step_mean_ns", "window_ns", "rss_peak_bytes"):
                self.assertEqual(record[name], float(row[name]) if row[name] else None, name)
            self.assertFalse([value for value in record.values() if isinstance(value, (dict, list))])

    def test_cells_and_runs(self):
        rows = list(csv.DictReader(io.StringIO(self.export("1", "--layout", "cells"))))
        records = reader.cells(self.file)
        self.assertEqual([(r["framework"], r["status"], r["stage"]) for r in records],
                         [(r["framework"], r["status"], r["stage"]) for r in rows])
        good = [(r["step.center_ns"], float(row["step_center_ns"]))
                for r, row in zip(records, rows) if row["step_center_ns"]]
        self.assertTrue(good and all(ours == theirs for ours, theirs in good))
        [run] = reader.runs(self.file)
        self.assertEqual(run["host"], "slow")
        self.assertEqual(run["environment.must_match.cores_usable"], 2)

    def test_steps_are_those_of_the_windows(self):
        steps = reader.steps(self.file)
        process = [p for p in reader.processes(self.file) if p["blocks"]][0]
        own = [s["step_ns"] for s in steps
               if (s["cell"], s["replicate"]) == (process["cell"], process["replicate"])]
        self.assertEqual(len(own), process["blocks"])
        [line] = [line for line in reader.lines(self.file) if line["type"] == "process" and
                  (line["cell"], line["replicate"]) == (process["cell"], process["replicate"])]
        self.assertEqual(own, [(end - begin) / process["block_steps"] for begin, end in line["intervals"]])

    def test_every_source(self):
        records = reader.processes(self.file)
        with open(self.file, "rb") as whole, gzip.open(self.file + ".gz", "wb") as packed:
            shutil.copyfileobj(whole, packed)
        self.assertEqual(reader.processes(self.file + ".gz"), records)
        with open(self.file, encoding="utf-8") as stream:
            self.assertEqual(reader.processes(stream), records)
        before = os.environ.get("PRONY")
        os.environ["PRONY"] = PRONY
        try:
            self.assertEqual(reader.processes(run="1", store=self.store), records)
            self.assertNotEqual(reader.processes(store=self.store), records)  # the newest
            with self.assertRaisesRegex(RuntimeError, "no run '99'"):
                reader.cells(run=99, store=self.store)
        finally:
            os.environ["PRONY"] = before or PRONY

    def test_what_is_no_export_is_refused(self):
        for text in ("nonsense\n", "{}\n", "[1]\n", '{"type":"run"'):
            with self.assertRaisesRegex(ValueError, "line 1 .*prony export --format jsonl"):
                reader.cells(io.StringIO(text))


class RunTest(ProgramTest):
    def setUp(self):
        super().setUp()
        changed = mock.patch.dict(os.environ, dict(self.environment, PRONY=PRONY))
        changed.start()
        self.addCleanup(changed.stop)

    def test_run_gives_records_a_table_and_progress(self):
        with contextlib.redirect_stderr(io.StringIO()) as progress:
            run = reader.run("fake", "mlp", batch=[1, 8], stage="forward", quick=True, steps=2, warm_up=1, repeat=3,
                             store=self.store)
        self.assertEqual([cell["batch"] for cell in run.cells], [1, 8])
        self.assertEqual(len(run.processes), 6)
        self.assertIn("[6 of 6]", progress.getvalue())
        self.assertEqual(run._repr_html_().count("<tr>"), 3)
        self.assertIn("mlp", repr(run))

    def test_what_cannot_run_raises_the_message(self):
        with contextlib.redirect_stderr(io.StringIO()):
            with self.assertRaisesRegex(RuntimeError, 'unknown framework "nope"'):
                reader.run("nope", store=self.store)
            with self.assertRaisesRegex(RuntimeError, "no-such-option"):
                reader.run("fake", no_such_option=1)

    def test_notebook_runs(self):
        with open(os.path.join(os.environ["PRONY_SOURCE"], "docs/examples/notebook.ipynb"), encoding="utf-8") as stream:
            cells = [cell["source"] for cell in json.load(stream)["cells"] if cell["cell_type"] == "code"]
        names, shown = {}, None
        with contextlib.redirect_stderr(io.StringIO()):
            for source in cells:
                # The fake is in every build, and a few steps are enough here.
                text = "".join(source).replace("native,onnxruntime", "fake")
                text = text.replace("quick=True", "quick=True, steps=2, warm_up=1, repeat=3")
                body = ast.parse(text).body
                last = body.pop() if isinstance(body[-1], ast.Expr) else None
                exec(compile(ast.Module(body, []), "notebook", "exec"), names)
                if last:
                    shown = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
        self.assertIs(shown, True)
        self.assertIn("<svg", next(iter(names["figures"].values()))._repr_svg_())


class ManyRunsTest(StoredTest):
    def test_csv_has_one_header(self):
        for layout in ("long", "cells", "ms"):
            one, two, both = (self.export(*runs, "--layout", layout).splitlines()
                              for runs in (["1"], ["2"], ["1", "2"]))
            self.assertEqual(both, one + two[1:])
        self.assertEqual(self.export("1", "2", "--layout", "wide", expect=USAGE), "")
        self.export("1", "77", expect=BAD_INPUT)

    def test_json_is_a_list_and_lines_are_lines(self):
        both = json.loads(self.export("1", "2", "--format", "json"))
        self.assertEqual(both, [json.loads(self.export(run, "--format", "json")) for run in "12"])
        self.export("2", "1", "--format", "jsonl", "-o", self.file)
        self.assertEqual([run["id"] for run in reader.runs(self.file)], [2, 1])
        self.assertEqual(len({process["run"] for process in reader.processes(self.file)}), 2)


class LatexTest(StoredTest):
    def test_tables_are_balanced_and_escaped(self):
        text = self.export("1", "--format", "latex")
        self.assertEqual(text.count("\\begin{"), text.count("\\end{"))
        self.assertEqual(text.count("\\toprule"), 2)
        bare = re.sub(r"\\\\|\\[{}$&#%_]|\$\\pm\$", "", text)
        self.assertEqual(bare.count("{"), bare.count("}"))
        body = "\n".join(line for line in bare.splitlines() if not line.startswith("%"))
        for letter in "$#<>|\"_`'\033":
            self.assertNotIn(letter, body)
        columns = {len(re.sub(r"\\&", "", line).split(" & ")) for line in text.splitlines() if " & " in line}
        self.assertEqual(len(columns), 1, "every row has as many columns")

    def test_latex_takes_it(self):
        if not shutil.which("pdflatex"):
            self.skipTest("no pdflatex here")
        path = os.path.join(self.folder, "page.tex")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{textcomp,booktabs}"
                         "\\begin{document}\n" + self.export("1", "--format", "latex") + "\\end{document}\n")
        done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", path],
                              cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])


if __name__ == "__main__":
    sys.exit(counted.main())
