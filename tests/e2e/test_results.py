#!/usr/bin/env python3
"""show, report, export, log and import on a store of invented runs.

$PRONY is the program, $REPORT_STORE fills a store with the runs of tests/unit/report_fixture.c.
"""
import collections
import csv
import hashlib
import io
import json
import os
import pty
import re
import shutil
import sqlite3
import stat
import subprocess
import unittest
import xml.etree.ElementTree
from unittest import mock

from prony_program import PRONY, ProgramTest, read, read_bytes, write

REPORT_STORE = os.environ.get("REPORT_STORE", "build/tests/report_store")
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "report")


def golden(name):
    with open(os.path.join(GOLDEN, name), encoding="utf-8", newline="") as stream:
        return stream.read()


def cells_after_uid(lines):
    """Rows without the uid, which is random; exp and log differ in the last digit between systems."""
    def value(text):
        try:
            return float(f"{float(text):.12g}")
        except ValueError:
            return text
    return [[value(text) for text in row[1:]] for row in csv.reader(lines)]


class Results(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment.update(COLUMNS="120", TZ="UTC")
        self.fill(self.store, 2)

    def fill(self, store, runs):
        subprocess.run([REPORT_STORE, store, str(runs)], check=True, timeout=240)

    def prony(self, *words, code=0, store=None):
        """Standard output and error."""
        if store is not False:
            words += ("--store", store or self.store)
        done = super().prony(*words, expect=code)
        return done.stdout, done.stderr

    def test_show(self):
        text, _ = self.prony("show", "1")
        # The stored run has another number and uid than the one in memory, and is the same otherwise.
        self.assertEqual(text.splitlines()[1:], golden("show.txt").splitlines()[1:])
        self.assertRegex(text.splitlines()[0], r"^run 1 \([0-9a-f]{8}\), quickstart, 2026-11-18T")
        newest, _ = self.prony("show")
        self.assertIn("run 2 (", newest)
        def rounded(text):
            return float(f"{float(text):.12g}")
        document = json.loads(self.prony("show", "1", "--format", "json")[0], parse_float=rounded)
        wanted = json.loads(golden("run.json"), parse_float=rounded)
        self.assertEqual(len(document["cells"]), len(wanted["cells"]))
        for cell, want in zip(document["cells"], wanted["cells"]):
            del want["processes"]
            self.assertEqual(cell, want)

    def test_show_refuses(self):
        # Longer than what is shown of a run's random identifier, which 99 may well begin.
        _, message = self.prony("show", "9999999999", code=65)
        self.assertIn("9999999999", message)
        _, message = self.prony("show", "1", "2", code=64)
        self.assertIn("one run", message)
        self.prony("show", code=65, store=self.empty())

    def empty(self):
        store = os.path.join(self.folder, "empty.db")
        self.fill(store, 0)
        return store

    def widen(self, steps_us, foreign_share=None):
        """Gives the forward cells of run 1 processes with these steps."""
        base = sqlite3.connect(self.store)
        of_cell = "cell = (SELECT id FROM cell WHERE run = 1 AND stage = 'forward' AND framework = ?)"
        for framework, steps in steps_us.items():
            base.execute(f"DELETE FROM process WHERE replicate >= {len(steps)} AND {of_cell}", (framework,))
            for replicate, step in enumerate(steps):
                base.execute(f"UPDATE process SET step_mean_ns = ?, foreign_share = ? WHERE replicate = ? AND {of_cell}",
                             (step * 1e3, foreign_share, replicate, framework))
        if foreign_share:
            base.execute("UPDATE cell SET flags = 'disturbed' WHERE run = 1 AND stage = 'forward' AND status = 'ok'")
        base.commit()
        base.close()

    def everywhere(self):
        """Table, Markdown and page, with spaces for line feeds."""
        page = os.path.join(self.folder, "page.html")
        self.prony("report", "1", "-o", page)
        texts = [self.prony("show", "1")[0], self.prony("export", "1", "--format", "md")[0], read(page)]
        return [re.sub(r"\s+", " ", text) for text in texts]

    def test_the_least_time_is_not_always_the_fastest(self):
        """onnxruntime is ahead in the three rounds that both have; native has a fourth."""
        self.widen({"native": (705, 900, 720, 300), "onnxruntime": (690, 800, 716)})
        for text in self.everywhere():
            self.assertRegex(text, r"native(</strong>)? has the least step time.*; onnxruntime \(0\.9")

    def test_wide_intervals_say_what_is_true(self):
        """With three processes neither 9.83x (3.37 to 28.7) nor 1.04x (0.862 to 1.26) is proved; only the latter may be 1."""
        steps = {"native": (705, 706, 704), "onnxruntime": (690, 800, 716), "mxnet": (4700, 6430, 11000),
                 "pytorch": (900000, 900100, 900200)}
        self.widen(steps)
        told = ("; onnxruntime (1.0x, 0.862x to 1.26x) may be as fast; "
                "mxnet (10x, 3.37x to 28.7x) is slower by the figures, but this is not proved")
        few = "3 processes each are too few to prove the order, and some intervals of their ratios contain 1; about "
        table, markdown, page = self.everywhere()
        for text in (table, markdown):
            self.assertIn("native is fastest by the figures" + told, text)
            self.assertIn("no rank for native, onnxruntime, mxnet: " + few, text)
            self.assertIn("?10x", text)
            self.assertIn("?: order to native not proved", text)
        self.assertIn("<strong>native</strong> is fastest by the figures (705.0 us)" + told, page)
        self.assertIn(few, page)
        # Without the one that may be as fast.
        self.widen({**steps, "onnxruntime": (800000, 800100, 800200)})
        for text in self.everywhere():
            self.assertIn("; mxnet (10x, 3.37x to 28.7x) is slower by the figures, but this is not proved", text)
            self.assertIn("no rank for native, mxnet: 3 processes each are too few to prove the order; about", text)
            self.assertNotIn("may be as fast", text)
            text = text.replace("~: cannot be told apart from 1", "")
            self.assertNotIn("~", text.partition("forward")[2].partition("machine")[0])
        # Without the one that differs.
        self.widen({**steps, "onnxruntime": (600, 900, 728), "mxnet": (800000, 800100, 800200)})
        for text in self.everywhere():
            self.assertRegex(text, r"; onnxruntime \(1.0x, 0.\d+x to 1.\d+x\) may be as fast")
            self.assertIn("no rank for native, onnxruntime: wide intervals of their ratios contain 1; about", text)
            self.assertNotIn("too few", text.replace("are too few to prove the order, and where other programs", ""))
        # A busy machine.
        self.widen(steps, foreign_share=0.9)
        for text in self.everywhere():
            self.assertIn(": other programs used the machine, so the order is not proved; close them", text)
            self.assertIn("mxnet (10x, 3.37x to 28.7x) is slower by the figures, but this is not proved", text)

    def test_exports(self):
        for words, name in ((("--layout", "ms"), "ms.csv"), (("--format", "ms"), "ms.csv"),
                            (("--format", "ms", "--layout", "ms"), "ms.csv"), ((), "long.csv"),
                            (("--layout", "wide"), "wide.csv"), (("--format", "md"), "run.md")):
            text, _ = self.prony("export", "1", *words)
            ours, wanted = text.splitlines(), golden(name).splitlines()
            if name in ("long.csv", "wide.csv"):
                self.assertEqual(cells_after_uid(ours), cells_after_uid(wanted))
            else:
                start = 1 if name == "run.md" else 0
                self.assertEqual(ours[start:], wanted[start:])

    def test_jsonl_is_complete(self):
        lines = [json.loads(line) for line in
                 self.prony("export", "1", "--format", "jsonl")[0].splitlines()]
        self.assertEqual([line["type"] for line in lines[:2]], ["run", "cell"])
        processes = [line for line in lines if line["type"] == "process"]
        self.assertEqual(len(processes), 33)
        good = [line for line in processes if line["status"] == "ok"]
        self.assertTrue(all(len(line["intervals"]) == 3 for line in good))
        self.assertTrue(all(line["steps"] == 1000 for line in good))
        crashed = [line for line in processes if line["status"] == "crashed"]
        self.assertEqual([line["log"] for line in crashed], ["about to crash\n"] * 2)
        self.assertIsNone(crashed[0]["step_mean_ns"])
        self.assertIn("</script>", good[0]["log"])

    def test_export_of_all_runs(self):
        for words in ((), ("--layout", "cells"), ("--layout", "ms"), ("--format", "json"),
                      ("--format", "jsonl"), ("--format", "md")):
            self.assertEqual(self.prony("export", "--all", *words)[0],
                             self.prony("export", "1", "2", *words)[0])
        lines = self.prony("export", "--all", "--format", "jsonl")[0]
        each = [self.prony("export", run, "--format", "jsonl")[0] for run in "12"]
        self.assertEqual(lines, "".join(each))
        output = os.path.join(self.folder, "all.json")
        self.prony("export", "--all", "--format", "json", "-o", output)
        self.assertEqual([run["run"]["id"] for run in json.loads(read(output))], [1, 2])
        # Of one run --all is what its name alone gives.
        one = os.path.join(self.folder, "one.db")
        self.fill(one, 1)
        for words in (("--layout", "wide"), ("--format", "json")):
            self.assertEqual(self.prony("export", "--all", *words, store=one)[0],
                             self.prony("export", "1", *words, store=one)[0])
        _, message = self.prony("export", "--all", "1", code=64)
        self.assertIn("remove 1", message)
        _, message = self.prony("export", "--all", "--layout", "wide", code=64)
        self.assertIn("one run", message)
        self.prony("export", "--all", code=65, store=self.empty())

    def test_export_refuses(self):
        _, message = self.prony("export", "--format", "json", "--layout", "wide", code=64)
        self.assertIn("--layout", message)
        _, message = self.prony("export", "--format", "ms", "--layout", "wide", code=64)
        self.assertIn("remove --layout wide", message)
        _, message = self.prony("export", "--layout", "tall", code=64)
        self.assertIn("wide", message)
        _, message = self.prony("export", "-o", os.path.join(self.folder, "no", "where.csv"), code=74)
        self.assertIn("where.csv", message)

    def test_report(self):
        page = os.path.join(self.folder, "page.html")
        _, message = self.prony("report", "1", "2", "-o", page)
        self.assertIn("page.html", message)
        text = read(page)
        self.assertTrue(text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n"))
        self.assertIn("pytorch", text)
        self.assertIn("slow, run 1", text)
        self.assertIn("fast, run 2", text)
        self.assertEqual(self.prony("report", "-o", "-")[0][:15], "<!DOCTYPE html>")

    def test_figures(self):
        folder = os.path.join(self.folder, "figures")
        _, message = self.prony("report", "1", "--figures", folder)
        self.assertIn("figures: 10 in", message)
        self.assertFalse(os.path.exists("report.html"))
        names = sorted(os.listdir(folder))
        self.assertEqual(len(names), 20)
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".svg"):
                root = xml.etree.ElementTree.parse(path).getroot()
                self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
                self.assertTrue(root.get("aria-label"))
                continue
            with open(path, encoding="utf-8", newline="") as stream:
                rows = list(csv.reader(stream))
            self.assertEqual({len(row) for row in rows}, {len(rows[0])}, name)
        cells = csv.DictReader(io.StringIO(self.prony("export", "1", "--layout", "cells")[0]))
        wanted = {("forward: " if row["stage"] == "forward" else "train with momentum: ") + row["framework"]:
                  float(row["floor_ratio"]) for row in cells if row["rank"]}
        with open(os.path.join(folder, "ratio-to-native.csv"), encoding="utf-8", newline="") as stream:
            shown = {row["row"]: float(row["floor_ratio"]) for row in csv.DictReader(stream)}
        self.assertEqual(shown, wanted)
        _, message = self.prony("report", "1", "--figures", os.path.join(self.store, "in"), code=74)
        self.assertIn("store.db", message)

    def test_figures_for_print(self):
        """84 mm are 357 pixels where 12 of them are 8 points; rsvg-convert makes the PDF, or is asked for."""
        folder, tools = os.path.join(self.folder, "print"), os.path.join(self.folder, "tools")
        words = ["report", "1", "--figures", folder, "--figure-width", "84mm", "--figure-pdf"]
        os.mkdir(tools)
        with mock.patch.dict(self.environment, {"PATH": tools}):
            self.assertIn("apt install librsvg2-bin", self.prony(*words, code=1)[1])
            self.assertFalse(os.path.exists(folder))
            write(os.path.join(tools, "rsvg-convert"), '#!/bin/sh\necho "$@" > "$3"\n')
            os.chmod(os.path.join(tools, "rsvg-convert"), 0o755)
            self.assertIn("each as SVG, CSV and PDF", self.prony(*words)[1])
        name = os.path.join(folder, "ratio-to-native")
        self.assertEqual(read(name + ".pdf"), f"--format=pdf --output {name}.pdf {name}.svg\n")
        root = xml.etree.ElementTree.parse(name + ".svg").getroot()
        self.assertEqual((root.get("width"), root.get("viewBox").split()[2]), ("84mm", "357"))
        if shutil.which("rsvg-convert"):
            self.prony(*words)
            with open(name + ".pdf", "rb") as stream:
                self.assertEqual(stream.read(5), b"%PDF-")
        for width, said in (("84", "--figure-width takes a length"), ("-3mm", "--figure-width takes"),
                            ("20mm", "57 to 940 mm")):
            self.assertIn(said, self.prony("report", "1", "--figures", folder, "--figure-width", width, code=64)[1])
        self.assertIn("need --figures DIR", self.prony("report", "1", "--figure-width", "84mm", code=64)[1])

    def test_log(self):
        text, _ = self.prony("log", "--run", "1", "mxnet", "train")
        self.assertEqual(text.count("about to crash"), 2)
        self.assertIn("-- parity gate: ok\n", text)
        self.assertIn("-- printed during the gate\ngate ran\n", text)
        fake, _ = self.prony("log", "--run", "1", "fake")
        self.assertIn("FAILED change of fc2.bias: off by 0.5, allowed 5.1e-05\n", fake)
        self.assertIn("-- process 2, round 2: crashed: killed by signal 11", text)
        self.assertEqual(text.count("== "), 1)
        one, _ = self.prony("log", "--run", "1", "framework=mxnet", "stage=train", "--process", "1")
        self.assertEqual(one.count("about to crash"), 1)
        cells = json.loads(self.prony("log", "--run", "1", "--format", "json")[0])
        crashed = [cell for cell in cells if cell["status"] == "crashed"][0]
        self.assertEqual(self.prony("log", "--run", "1", crashed["hash"][:8])[0], text)
        self.assertEqual(self.prony("log", "--run", "1", crashed["key"])[0], text)
        document = json.loads(self.prony("log", "--run", "1", crashed["hash"], "--format", "json")[0])
        self.assertEqual(document[0]["processes"][1]["log"], "about to crash\n")
        _, message = self.prony("log", "nothing-like-it", code=65)
        self.assertIn("prony log --run 2", message)

    def test_import(self):
        other = os.path.join(self.folder, "other.db")
        self.fill(other, 1)
        self.assertIn("1 new run\n", self.prony("import", other)[0])
        self.assertIn("0 new runs\n", self.prony("import", other)[0])
        self.assertIn("run 3 (", self.prony("show", "3")[0])
        _, message = self.prony("import", code=64)
        self.assertIn("prony import FILE", message)
        _, message = self.prony("import", os.path.join(self.folder, "absent.db"), code=65)
        self.assertIn("absent.db: no such store\n", message)
        fresh = os.path.join(self.folder, "fresh.db")
        self.prony("import", other, "/dev/null", store=fresh, code=74)
        self.assertFalse(os.path.exists(fresh), "a refused import makes no store")


    def sql(self, script):
        connection = sqlite3.connect(self.store)
        connection.executescript(script)
        connection.close()

    def on_terminal(self, *words, answer=b""):
        """What a terminal gets of standard output and error, and the exit code."""
        master, slave = pty.openpty()
        process = subprocess.Popen([os.path.abspath(PRONY), *words], stdin=slave, stdout=slave, stderr=slave,
                                   cwd=self.folder, env={**self.environment, "TERM": "xterm"})
        os.close(slave)
        os.write(master, answer)
        output = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the last one to hold the terminal is gone
                part = b""
            if not part:
                break
            output += part
        os.close(master)
        return output.decode("utf-8", "replace"), process.wait(timeout=240)

    def test_delete(self):
        self.fill(self.store, 2)
        before = os.path.getsize(self.store)
        _, message = self.prony("delete", code=64)
        self.assertIn("which run", message)
        _, message = self.prony("delete", "1", code=64)
        self.assertIn("--yes", message)
        # An id that begins another's uid, a slip of the hand, a run that is not there.
        self.sql("UPDATE run SET uid = 'abcd' || substr(uid, 5) WHERE id = 1;"
                 "UPDATE run SET uid = 'abce' || substr(uid, 5) WHERE id = 2;"
                 "UPDATE run SET id = 1234 WHERE id = 4; PRAGMA foreign_keys = OFF;"
                 "UPDATE cell SET run = 1234 WHERE run = 4;"
                 "UPDATE run SET uid = '1234' || substr(uid, 5) WHERE id = 3")
        for word, part in (("1234", "matches run 3 (1234"), ("abc", "no run 'abc'"), ("9", "no run '9'"),
                           ("", "no run ''")):
            _, message = self.prony("delete", "2", word, "--yes", code=65)
            self.assertIn(part, message)
        output, code = self.on_terminal("delete", "1", "--store", self.store, answer=b"\n")
        self.assertEqual(code, 130)
        self.assertIn("Delete it permanently? [y/N]", output)
        self.prony("show", "1")
        output, code = self.on_terminal("delete", "1", "abcd", "--store", self.store, answer=b"yes\n")
        self.assertEqual(code, 0, output)
        self.assertIn("run 1 (abcd", output)
        self.assertRegex(output, r"[1-9][0-9.]* KiB freed")
        self.prony("show", "abcd", code=65)
        output, _ = self.prony("delete", "2", "3", "-y")
        self.assertIn("run 2 (", output)
        self.assertIn("pytorch", self.prony("show", "1234")[0])
        self.assertLess(os.path.getsize(self.store), before)
        connection = sqlite3.connect(self.store)
        for table, many in (("run", 1), ("cell", 10), ("process", 33), ("process_log", 33)):
            self.assertEqual(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] <= many, True)
        connection.close()
        self.prony("delete", "1", "-y", code=65, store=os.path.join(self.folder, "absent.db"))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "absent.db")))

    def test_outputs_stay_what_they_are(self):
        file, link, fifo = (os.path.join(self.folder, name) for name in ("file", "link", "fifo"))
        with open(file, "w", encoding="utf-8"):
            os.symlink(file, link)
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        outputs = [file, link, fifo]
        if os.geteuid() == 0:
            node = os.path.join(self.folder, "node")
            try:
                os.mknod(node, 0o600 | stat.S_IFCHR, os.makedev(1, 3))  # as /dev/null is
                outputs.append(node)
            except OSError:
                pass  # a container without the right to
        for output in outputs:
            before = os.lstat(output)
            self.prony("export", "1", "--layout", "ms", "-o", output)
            self.assertEqual(stat.S_IFMT(os.lstat(output).st_mode), stat.S_IFMT(before.st_mode), output)
        self.assertTrue(os.read(reader, 65536).startswith(b"Timestamp,"))
        os.close(reader)
        self.assertTrue(read(file).startswith("Timestamp,"))
        # The store itself is no output.
        for words in (("export",), ("report",)):
            _, message = self.prony(*words, "-o", self.store, code=64)
            self.assertIn("it is the store", message)
        self.prony("show", "1")

    def test_outputs_are_checked_before_anything_is_measured(self):
        absent = os.path.join(self.folder, "no", "page.html")
        for output in (absent, self.folder):
            _, message = self.prony("run", "-f", "null", "-n", "mlp", "-d", "synthetic", "-b", "1", "--quick",
                                    "--report", output, code=74)
            self.assertIn("cannot write " + output, message)
            self.assertNotIn("1 cell", message)
        self.assertEqual(self.prony("show")[0].splitlines()[0][:6], "run 2 ")

    EVIL = "\x1b[2J\x1b]0;mine\x07\x9b2J\u202e"

    def test_a_terminal_obeys_nothing(self):
        evil = self.EVIL.replace("'", "''")
        self.sql(f"UPDATE run SET host = host || '{evil}', suite = '{evil}', effort = 'x{evil}';"
                 f"UPDATE cell SET network = 'n{evil}', device = 'd{evil}', reason = 'r{evil}',"
                 f" key = key || '{evil}', gate_log = '{evil}', flags = '{evil}',"
                 f" details = json_set(coalesce(details, '{{}}'), '$.version', '{evil}');"
                 f"UPDATE process SET error = '{evil}', status = 'x{evil}' WHERE status <> 'ok';"
                 f"UPDATE process_log SET log = 'log{evil}'")
        named = os.path.join(self.folder, "n\x1b[2J.onnx")
        self.prony("network", "mlp", "--onnx", os.path.join(self.folder, "x.onnx"), store=False)
        os.rename(os.path.join(self.folder, "x.onnx"), named)
        write(os.path.join(self.folder, "s\x1b[2J.yaml"), "networks: [mlp]\nfrobnicate: 1\n")
        store = ("--store", self.store)
        commands = [("show", "1", *store), ("show", "1", "--format", "json", *store),
                    ("log", "--run", "1", *store), ("log", "--run", "1", "mxnet", *store),
                    ("log", "--run", "1", "mxnet", "--format", "json", *store),
                    ("delete", "1", *store), ("network", named), ("network", named, "--format", "json"),
                    ("run", "s\x1b[2J.yaml", *store), ("show", "\x1b[2J", *store), ("\x1b[2J",),
                    ("run", "-f", "null", "-n", named, "-d", "synthetic", "--dry-run", *store),
                    ("report", "1", "-o", "n\x1b[2J/page", *store), ("doctor",), ("list",),
                    ("data", "verify", "\x1b[2J/x"), ("framework", "install", "\x1b[2J"),
                    ("worker-check", "printf", "\x1b[2J"),
                    *(("export", "1", "--format", name, *store) for name in ("csv", "json", "jsonl", "md"))]
        for words in commands:
            output, _ = self.on_terminal(*words, answer=b"\n")
            self.assertNotEqual(output, "", words)
            for allowed in ("\x1b[1m", "\x1b[2m", "\x1b[0m", "\r\x1b[K", "\r\n"):
                output = output.replace(allowed, "")
            for code in (*range(0x20), *range(0x7f, 0xa0), *range(0x202a, 0x202f)):
                if chr(code) not in "\t\n":
                    self.assertNotIn(chr(code), output, (words, output))


class OldStore(ProgramTest):
    """tests/golden/store/schema-1.sql, which a program of before made."""

    ASKED = ("-f", "null,fake", "-n", "mlp", "-d", "synthetic", "-s", "forward,train", "--optimiser", "sgd",
             "--dropout", "off", "--quick", "--steps", "3", "--warm-up", "1")

    def setUp(self):
        super().setUp()
        self.sql(self.store, read(os.path.join(GOLDEN, "..", "store", "schema-1.sql")))

    def sql(self, store, script):
        connection = sqlite3.connect(store)
        connection.executescript(script)
        connection.close()

    def prony(self, *words, store=None):
        return super().prony(*words, "--store", store or self.store, expect=0).stdout

    def test_is_read(self):
        for run in ("1", "2"):
            self.assertIn("fake", self.prony("show", run))
            page = os.path.join(self.folder, "page.html")
            self.prony("report", run, "-o", page)
            self.assertIn("fake", read(page))
            cells = json.loads(self.prony("export", run, "--format", "json"))["cells"]
            for cell in cells:
                self.assertNotIn("learning_rate", cell["key"])
                self.assertEqual(cell["learning_rate"], 0.001 if cell["stage"] == "train" else None)

    def test_the_run_says_which_prony_made_it(self):
        digest = hashlib.sha256(read_bytes(PRONY)).hexdigest()
        library = os.path.join(self.folder, "libnative.so")
        write(library, b"what would be loaded")
        new = os.path.join(self.folder, "new.db")
        # The gate of native fails on such a library; the run says what it was.
        subprocess.run([PRONY, "run", *self.ASKED, "-b", "1", "-f", "native", "--store", new], check=False, timeout=240,
                       capture_output=True, env={**os.environ, "PRONY_NATIVE_LIBRARY": library})
        run = json.loads(self.prony("export", "--format", "json", store=new))["run"]
        self.assertEqual(run["executable_sha256"], digest)
        program = run["environment"]["should_match"]["program"]
        self.assertEqual((program["sha256"], program["build"] or None), (digest, run["build"]))
        self.assertEqual(program["libraries"], {"native": hashlib.sha256(b"what would be loaded").hexdigest()})
        page = self.prony("report", "-o", "-", store=new)
        footer = re.search("<footer>.*</footer>", page).group()
        self.assertRegex(footer, rf"Measured by prony [\d.]+ \(.*sha256 {digest[:12]}\), library of native sha256 "
                         + program["libraries"]["native"][:12] + r"; page by prony [\d.]+")
        # A store of an older prony has none of it.
        page = self.prony("report", "1", "-o", "-")
        self.assertRegex(re.search("<footer>.*</footer>", page).group(), r"Measured by prony [\d.]+; page by prony")
        run = json.loads(self.prony("export", "1", "--format", "json"))["run"]
        self.assertEqual((run["build"], run["executable_sha256"]), (None, None))

    def test_is_resumed(self):
        before = self.rows("SELECT id, run, hash FROM cell ORDER BY id")
        processes = self.rows("SELECT cell, replicate, step_mean_ns FROM process")
        # Resuming asks for the same machine: the one of the store becomes this one.
        other = os.path.join(self.folder, "other.db")
        self.prony("run", *self.ASKED, "-b", "1", store=other)
        connection = sqlite3.connect(other)
        (machine,), = connection.execute("SELECT environment_hash FROM run").fetchall()
        connection.close()
        self.sql(self.store, f"UPDATE run SET environment_hash = '{machine}'")
        self.prony("run", *self.ASKED, "-b", "4", "--resume")
        self.assertEqual(self.rows("SELECT id, run, hash FROM cell ORDER BY id"), before)
        self.assertEqual(self.rows("SELECT DISTINCT status FROM cell"), [("ok",)])
        after = self.rows("SELECT cell, replicate, step_mean_ns FROM process")
        self.assertLess(set(processes), set(after))
        # The first run had ended, with as many processes as quick effort had then.
        runs = collections.Counter(run for _, run, _ in before)
        self.assertEqual(len(after), 3 * runs[1] + 11 * runs[2])


if __name__ == "__main__":
    unittest.main()
