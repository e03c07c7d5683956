#!/usr/bin/env python3
"""Frameworks of the user's own, by descriptor: a worker in a language of its own, and one in Python.
Not a file of the tree is touched for either.

$PRONY names the program, $PRONY_SOURCE the source tree.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import unittest

import counted
from prony_program import ProgramTest, read, write

SOURCE = os.environ.get("PRONY_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
WORKER = os.path.abspath(os.path.join(SOURCE, "tests", "workers", "mlp.py"))
FORWARD = os.path.join(os.path.dirname(WORKER), "forward.py")
USAGE, DATA, MISSING = 64, 65, 1
DESCRIPTOR = """name: mine
summary: mlp in plain Python
worker:
  command: [python3, "{here}/mlp.py", mine]
variables:
  MINE_THREADS: "{threads}"
"""
PYTHON_DESCRIPTOR = """name: nothing
summary: computes nothing, in Python
worker:
  python: nothing_adapter.py
  module: json
stages: [train]
"""
# It says its own name, and as its version what its backend's variable holds.
PYTHON_ADAPTER = """import os
import adapters
from adapters.null import Adapter as Null

class Adapter(Null):
    backends = ("", "one", "two")

    def hello(self):
        return {**Null.hello(self), "name": "nothing", "version": os.environ["NOTHING"]}
"""


class OwnFrameworkTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.own = os.path.join(self.environment["XDG_CONFIG_HOME"], "prony", "frameworks")
        os.makedirs(self.own)

    def put(self, name, text):
        write(os.path.join(self.own, name), text)

    def rows_of(self, *words, expect=0):
        return {row["framework"]: row for row in json.loads(
            self.prony(*words, "--format", "json", expect=expect).stdout)}

    def cells(self, done):
        """framework -> its cell, of a run with one cell each."""
        return {cell["framework"]: cell for cell in json.loads(done.stdout)["cells"]}

    def measure(self, *words, expect=0, repeat=3):
        return self.prony("run", "--quick", "-n", "mlp", "-b", "8", "--steps", "2", "--warm-up", "1",
                          "--repeat", str(repeat), "--store", self.store, "--format", "json", *words,
                          expect=expect)


class EnvironmentTest(OwnFrameworkTest):
    def test_environment_of_others(self):
        """--own: an environment that is there is used, not changed, and its damage is found."""
        folder = os.path.join(self.folder, "theirs")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        packages = glob.glob(os.path.join(folder, "lib", "python*", "site-packages"))[0]
        os.mkdir(os.path.join(packages, "nothing_at_all"))
        with open(os.path.join(packages, "nothing_at_all", "__init__.py"), "w", encoding="utf-8"):
            pass
        self.put("nothing.yaml", PYTHON_DESCRIPTOR.replace("json", "nothing_at_all")
                 + "variables: {NOTHING: \"1\"}\n")
        self.put("nothing_adapter.py", PYTHON_ADAPTER)
        for path, part in ((os.path.join(self.folder, "absent"), "there is no"),
                           (sys.executable, "has no module nothing_at_all"),
                           ("/bin/true", "is not a working Python interpreter")):
            done = self.prony("framework", "install", "nothing", "--own", path, expect=MISSING)
            self.assertIn(part, done.stderr)
        done = self.prony("framework", "install", "null", "--own", folder, expect=USAGE)
        self.assertIn("it has no environment", done.stderr)
        done = self.prony("framework", "install", "all", "--own", folder, expect=USAGE)
        self.assertIn("--own needs one framework", done.stderr)
        done = self.prony("framework", "install", "onnxruntime", "--own", "", expect=64)
        self.assertIn("and a path", done.stderr)
        done = self.prony("framework", "install", "onnxruntime", "--own", "/etc/passwd", expect=1)
        self.assertIn("onnxruntime: nothing was changed, because --own /etc/passwd does not work here", done.stderr)

        self.prony("framework", "install", "nothing", "--own", folder, expect=0)
        row = self.rows_of("list", "frameworks")["nothing"]
        self.assertEqual((row["status"], row["origin"], row["version"]), ("ready", "named", "1"))
        self.assertEqual(row["path"], os.path.join(os.path.realpath(folder), "bin", "python"))
        self.assertEqual(self.damaged(), [])

        shutil.rmtree(os.path.join(packages, "nothing_at_all"))
        self.assertIn("nothing: no module nothing_at_all", self.damaged()[0])
        self.prony("framework", "remove", "nothing", expect=0)
        self.assertEqual(self.rows_of("list", "frameworks")["nothing"]["status"], "missing")
        self.assertTrue(os.path.exists(os.path.join(folder, "bin", "python")))

    def installed_by_prony(self, packages):
        """Folder of an environment of `nothing` as an installation leaves it; packages: {file of a list of pip's: its text},
        below site-packages. The files that the lists name are not made."""
        folder = os.path.join(self.folder, "prony", "frameworks", "nothing")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as stream:
            json.dump({"framework": "nothing", "version": "1", "lock": "", "lock_sha256": "",
                       "entry": "bin/python"}, stream)
        site = glob.glob(os.path.join(folder, "lib", "python*", "site-packages"))[0]
        for name, text in packages.items():
            os.makedirs(os.path.dirname(os.path.join(site, name)))
            write(os.path.join(site, name), text)
        return site

    def test_a_package_with_a_part_of_it_gone(self):
        """What pip wrote down of each file is held against what is there."""
        self.put("nothing.yaml", PYTHON_DESCRIPTOR)
        site = self.installed_by_prony({
            "wheel-1.0.dist-info/RECORD":
                'wheel/a.py,sha256=x,4\n"wheel/b,""c"".py",sha256=x,0\n'
                "wheel/__pycache__/a.pyc,sha256=x,9\nwheel-1.0.dist-info/RECORD,,\n",
            "old-2.0-py3.egg-info/installed-files.txt": "../old/c.py\nPKG-INFO\n"})
        whole = {"wheel/a.py": "1234", 'wheel/b,"c".py': "", "old/c.py": "x"}
        for name, text in whole.items():
            os.makedirs(os.path.dirname(os.path.join(site, name)), exist_ok=True)
            write(os.path.join(site, name), text)
        self.assertEqual(self.damaged(), [])
        for name, package in (("wheel/a.py", "wheel-1.0"), ('wheel/b,"c".py', "wheel-1.0"),
                              ("old/c.py", "old-2.0-py3")):
            os.rename(os.path.join(site, name), os.path.join(site, "aside"))
            found, = self.damaged()
            self.assertIn("nothing: package %s is damaged: " % package, found)
            self.assertIn(name + " is missing", found)
            os.rename(os.path.join(site, "aside"), os.path.join(site, name))
        os.truncate(os.path.join(site, "wheel/a.py"), 3)
        found, = self.damaged()
        self.assertIn("wheel/a.py has 3 bytes instead of 4", found)
        self.assertIn("prony framework install nothing reinstalls it",
                      self.prony("doctor", expect=0, COLUMNS="500").stdout)

    def damaged(self):
        """What prony doctor found of frameworks."""
        rows = json.loads(self.prony("doctor", "--format", "json", expect=0).stdout)
        return [row["value"] for row in rows if row["check"] == "framework"]


class ForeignWorkerTest(OwnFrameworkTest):
    def put_mine(self, name="mine", says="mine"):
        shutil.copy(WORKER, os.path.join(self.own, "mlp.py"))
        self.put(name + ".yaml", DESCRIPTOR.replace("name: mine", "name: " + name)
                 .replace(", mine]", ", %s]" % says))

    def test_it_is_listed_and_runs_beside_native_under_its_own_name(self):
        self.put_mine()
        row = self.rows_of("list", "frameworks")["mine"]
        self.assertEqual((row["name"], row["backend"], row["status"], row["reason"], row["origin"]),
                         ("mine", None, "ready", None, "named"))
        self.assertEqual(row["descriptor"], os.path.join(self.own, "mine.yaml"))
        reference = "native" if self.installed("native") else "fake"
        rows = self.cells(self.measure("-f", reference + ",mine", "-s", "train", repeat=1))
        self.assertEqual({name: row["status"] for name, row in rows.items()},
                         {reference: "ok", "mine": "ok"})
        kinds = dict(self.rows("select framework, count(*) from cell group by framework"))
        self.assertEqual(kinds, {reference: 1, "mine": 1})

    def installed(self, name):
        """Those of the machine's own data folder are lent to this test's."""
        home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
        there = os.path.join(home, "prony", "frameworks", name)
        if os.path.isdir(there):
            os.makedirs(os.path.join(self.folder, "prony", "frameworks"), exist_ok=True)
            os.symlink(there, os.path.join(self.folder, "prony", "frameworks", name))
        return os.path.isdir(there)

    @unittest.skipUnless(os.environ.get("CI") == "true", "half a minute of plain Python: with CI=true")
    def test_it_keeps_to_the_protocol(self):
        self.prony("worker-check", "python3", WORKER, expect=0, seconds=900)

    def test_the_small_one_passes_forward_and_is_ranked(self):
        """A hundred lines, forward alone: what a worker of one's own costs at least."""
        done = self.prony("worker-check", "--level", "numeric", "python3", FORWARD, expect=0, seconds=900)
        self.assertIn("parity: mlp, forward", done.stdout)
        self.assertIn("skipped", done.stdout)  # lenet, whose convolutions it has not
        self.put("mine.yaml", DESCRIPTOR.replace("{here}/mlp.py", FORWARD))
        reference = "native" if self.installed("native") else "fake"
        # Six processes of two steps rank a factor of thousands on any machine; three may not.
        rows = self.cells(self.measure("-f", reference + ",mine", "-s", "forward", repeat=6))
        self.assertEqual((rows[reference]["rank"], rows["mine"]["rank"]), (1, 2))
        row = self.cells(self.measure("-f", "mine", "-s", "train", expect=1))["mine"]
        self.assertEqual(row["status"], "unsupported")

    def test_cold_caches_are_an_empty_folder_for_each_process(self):
        """The worker writes down how many files are where it keeps something, and leaves one more."""
        seen = os.path.join(self.folder, "seen")
        keep = 'mkdir -p "$KEPT"; ls "$KEPT" | wc -l >> %s; : > "$KEPT/$$"; exec python3 "%s" mine' % (seen, WORKER)
        self.put("keep.sh", keep)
        self.put("mine.yaml", DESCRIPTOR.replace('[python3, "{here}/mlp.py", mine]', '[sh, "{here}/keep.sh"]')
                 + '  KEPT: "{cache}/code"\n')
        for caches, found in ("warm", [1, 2, 3]), ("cold", [0, 0, 0]):
            write(seen, "")
            self.measure("-f", "mine", "-s", "forward", "--caches", caches, "--gate")
            self.assertEqual([int(line) for line in read(seen).split()][-3:], found, caches)

    def test_what_it_refuses_is_unsupported_with_its_reason(self):
        self.put_mine()
        done = self.prony("run", "--quick", "-n", "lenet", "-f", "mine", "-b", "8", "--steps", "2",
                          "--repeat", "3", "--store", self.store, "--format", "json", expect=1)
        row = self.cells(done)["mine"]
        self.assertEqual(row["status"], "unsupported")
        self.assertIn("only the network mlp", row["reason"])

    def test_one_that_says_another_name_is_refused(self):
        self.put_mine(says="pytorch")
        row = self.cells(self.measure("-f", "mine", "-s", "forward", expect=1))["mine"]
        self.assertEqual(row["status"], "invalid")
        self.assertIn('worker of mine says in hello that its name is "pytorch"', row["reason"])

    def test_a_name_of_the_tree_cannot_be_taken(self):
        self.put_mine(name="pytorch", says="pytorch")
        for words in (["list", "frameworks"], ["run", "-f", "native", "-n", "mlp", "--dry-run"]):
            text = self.prony(*words, expect=0).stderr
            self.assertIn(os.path.join(self.own, "pytorch.yaml"), text)
            self.assertIn("descriptors/pytorch.yaml", text)

    def test_a_quick_try_needs_no_file(self):
        command = "mine='%s' \"%s\" mine" % (shutil.which("python3"), WORKER)
        rows = self.cells(self.measure("--worker", command, "-f", "mine", "-s", "forward"))
        self.assertEqual(rows["mine"]["status"], "ok")
        for text, part in (("mine", "is not NAME=COMMAND"), ("native=true", "is already used by"),
                           ("Mine=true", "invalid name"), ("mine=", "has no command"),
                           ("all=true", "means every framework"),
                           ("mine='true", "no closing quote in: 'true"),
                           ("mine='", "no closing quote in: '")):
            done = self.prony("run", "--worker", text, "-f", "native", expect=USAGE)
            self.assertIn(part, done.stderr)
        done = self.prony("run", "--worker", "mine=/nowhere/at/all", "-f", "mine", "-n", "mlp",
                          "--dry-run", expect=0)
        self.assertIn("missing: --worker: the command /nowhere/at/all is not a program", done.stdout)

    def test_words_and_variables_are_replaced(self):
        self.put_mine()
        text = self.prony("run", "-n", "mlp", "-f", "mine", "-D", "cpu:1", "--dry-run",
                          "--show-command", expect=0).stdout
        self.assertIn(f"{self.own}/mlp.py mine", text)
        self.assertIn("MINE_THREADS=1", text)


class PythonFrameworkTest(OwnFrameworkTest):
    def test_an_adapter_file_beside_its_descriptor(self):
        self.put("nothing_adapter.py", PYTHON_ADAPTER)
        self.put("nothing.yaml", PYTHON_DESCRIPTOR + "backends:\n"
                 "  one: {variables: {NOTHING: first}}\n"
                 "  two: {variables: {NOTHING: second}, environment: shared}\n")
        rows = self.rows_of("list", "frameworks")
        self.assertEqual([name for name in rows if rows[name]["name"] == "nothing"],
                         ["nothing:one", "nothing:two"])
        row = rows["nothing:two"]
        self.assertEqual((row["backend"], row["status"], row["origin"]),
                         ("two", "ready", "discovered"))
        # What computes nothing is started, says its name, and does not pass the gate.
        rows = self.cells(self.measure("-f", "nothing:one,nothing:two", expect=1))
        self.assertEqual({name: row["status"] for name, row in rows.items()},
                         {"nothing:one": "mismatch", "nothing:two": "mismatch"})
        self.assertEqual(self.rows("select distinct name, backend from cell order by backend"),
                         [("nothing", "one"), ("nothing", "two")])
        text = self.prony("run", "-n", "mlp", "-f", "nothing,nothing:three", "--dry-run",
                          expect=0).stdout
        self.assertIn("write one of nothing:one, nothing:two", text)
        self.assertIn("backend three: unknown; the backends are nothing:one, nothing:two", text)

    def test_a_missing_adapter_is_said(self):
        self.put("nothing.yaml", PYTHON_DESCRIPTOR)
        row = self.cells(self.measure("-f", "nothing", expect=1))["nothing"]
        self.assertEqual(row["status"], "missing")
        self.assertIn("nothing_adapter.py", row["reason"])


class TheanoFlagsTest(OwnFrameworkTest):
    """The user's THEANO_FLAGS reach Theano, and what they do not say is added: an interpreter that is asked for Theano
    says that it has it, and started as its worker prepares the flags and writes them down."""
    INTERPRETER = """#!/bin/sh
if [ "$1" = -c ]; then
    echo 'prony-answer:{"found": true, "version": "1.0.5", "executable": "%(self)s", "path": []}'
    exit
fi
PYTHONPATH="%(folder)s:%(source)s/python" exec "%(python)s" -c '
import os, adapters.theano_setup
adapters.theano_setup.prepare()
open("%(folder)s/flags", "w").write(os.environ["THEANO_FLAGS"])'
"""

    def flags(self, framework, **variables):
        """{name: value} of what a worker of that framework has in THEANO_FLAGS."""
        path = os.path.join(self.folder, "python-of-theano")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(self.INTERPRETER % {
                "self": path, "folder": self.folder, "python": sys.executable, "source": os.path.abspath(SOURCE)})
        os.chmod(path, 0o755)
        with open(os.path.join(self.folder, "numpy.py"), "w", encoding="utf-8"):
            pass
        name = "PRONY_%s_PYTHON" % framework.upper().replace(":", "_")
        self.prony("run", "-f", framework, "-n", "mlp", "-b", "8", "--gate-only", "-D", "cpu:1", "--store", self.store,
                   expect=1, **{name: path}, **variables)
        return dict(flag.split("=", 1) for flag in read(os.path.join(self.folder, "flags")).split(","))

    def test_the_users_go_in_front(self):
        cache = os.path.join(self.folder, "prony", "cache")
        for framework, folder in (("theano", "theano"), ("keras2:theano", "keras2")):
            wanted = {"floatX": "float32", "openmp": "False", "blas.ldflags": "-lopenblas",
                      "base_compiledir": os.path.join(cache, folder, "theano")}
            self.assertEqual(self.flags(framework, THEANO_FLAGS=""), wanted)
            given = "optimizer=fast_compile,blas.ldflags=-lmine -lm"
            self.assertEqual(self.flags(framework, THEANO_FLAGS=given),
                             {**wanted, "optimizer": "fast_compile", "blas.ldflags": "-lmine -lm"})
            self.assertEqual(self.flags(framework, THEANO_FLAGS="base_compiledir=/mine")["base_compiledir"], "/mine")


class BrokenDescriptorTest(OwnFrameworkTest):
    def test_file_line_key_and_remedy(self):
        self.put("mine.yaml", "name: mine\nsumary: x\n")
        wrong = f'{self.own}/mine.yaml:2: unknown key "sumary"; did you mean summary?'
        done = self.prony("list", "frameworks", "--format", "json", expect=0)
        self.assertIn(wrong, done.stderr)
        rows = {row["framework"]: row for row in json.loads(done.stdout)}
        self.assertEqual(rows["mine"]["status"], "broken")
        self.assertIn(wrong, rows["mine"]["reason"])
        self.assertEqual(rows["fake"]["status"], "ready")
        for words in (["list", "networks"], ["run", "-n", "mlp", "-f", "fake", "--dry-run"],
                      ["run", "-n", "mlp", "-f", "all", "--dry-run"]):
            done = self.prony(*words, expect=0)
            self.assertNotIn("mine ", done.stdout)
        for words in (["run", "-n", "mlp", "-f", "fake,mine", "--dry-run"], ["framework", "install", "mine"]):
            self.assertIn(wrong, self.prony(*words, expect=DATA).stderr.splitlines()[-1])

    @unittest.skipIf(os.geteuid() != 0, "only root can give a file away")
    def test_with_roots_rights_a_file_of_somebody_else_is_ignored(self):
        self.put("mine.yaml", DESCRIPTOR)
        os.chown(os.path.join(self.own, "mine.yaml"), 12345, 12345)
        done = self.prony("list", "frameworks", "--format", "json", expect=0)
        self.assertNotIn("mine", [row["name"] for row in json.loads(done.stdout)])
        self.assertIn("mine.yaml is ignored, because prony runs as root", done.stderr)


if __name__ == "__main__":
    sys.exit(counted.main())
