#!/usr/bin/env python3
"""`prony framework` and `prony list` as a user calls them, without a network.

$PRONY names the program, $PRONY_SOURCE the source tree. tools/run-tests installs real frameworks;
here a shell script stands for the Python that has pip.
"""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

import counted
from prony_program import PATIENCE_S, PRONY, ProgramTest, read, write

USAGE, STORAGE, MISSING, INTERRUPTED = 64, 74, 1, 130
DESCRIPTORS = os.path.join(os.environ["PRONY_SOURCE"], "frameworks", "descriptors")
NOBODY_ANSWERS = "http://127.0.0.1:9/simple"


def installable():
    """(name, backend or None) of what the tree's descriptors can install: the floor, then by file."""
    found = []
    for path in glob.glob(os.path.join(DESCRIPTORS, "*.yaml")):
        text = read(path)
        if "harness-only: true" in text:
            continue
        backends = re.search(r"^backends:\n((?: .*\n)+)", text, re.M)
        names = re.findall(r"^  ([\w-]+):", backends.group(1), re.M) if backends else [None]
        place = "floor: true" not in text, os.path.basename(path)
        found += [(place, i, name) for i, name in enumerate(names)]
    return [(place[1][:-5], backend) for place, _, backend in sorted(found)]


def message(done):
    """The one line that starts with the program's name."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("prony: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


class FrameworkTest(ProgramTest):
    def setUp(self):
        super().setUp()
        for name in [name for name in self.environment
                     if name.startswith("PIP_") or name.endswith(("_LIBRARY", "_PYTHON"))
                     or name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH")]:
            del self.environment[name]
        self.environment.update(PIP_CONFIG_FILE=os.devnull, PIP_INDEX_URL=NOBODY_ANSWERS,
                                no_proxy="127.0.0.1")
        self.frameworks = os.path.join(self.folder, "prony", "frameworks")

    def script(self, name, text):
        path = os.path.join(self.folder, name)
        write(path, "#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def left_behind(self):
        """What an installation may not leave: anything but its lock."""
        if not os.path.isdir(self.frameworks):
            return []
        return [name for name in os.listdir(self.frameworks) if not name.endswith(".lock")]

    def wait_for(self, condition, what, seconds=PATIENCE_S):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what} did not come")
            time.sleep(0.02)


class ListTest(FrameworkTest):
    def rows_of(self, *words, **more):
        return json.loads(self.prony(*words, "--format", "json", expect=0, **more).stdout)

    def test_missing_ones_have_reason_and_remedy(self):
        # A PATH without Python: there is none to be found, whatever this machine has.
        rows = {row["framework"]: row for row in self.rows_of("framework", "list", PATH="/nowhere")}
        expected = {":".join(filter(None, words)): words for words in installable()}
        self.assertEqual(list(rows), list(expected) + ["fake", "null"])
        for spelling, words in expected.items():
            row = rows[spelling]
            self.assertEqual(row["state"], "missing")
            self.assertEqual(row["status"], "missing")
            self.assertEqual((row["name"], row["backend"]), words)
            self.assertEqual(row["origin"], "none")
            self.assertIsNone(row["version"])
            self.assertIn(f"prony framework install {spelling}", row["reason"])
            self.assertNotIn(self.folder, row["reason"])
            self.assertIn(self.folder, row["searched"])
        self.assertEqual(rows["null"]["state"], "ready")
        self.assertIsNone(rows["null"]["reason"])
        self.assertEqual(rows["onnxruntime"]["stages"], ["forward"])

    def test_text_shows_the_reasons(self):
        text = self.prony("framework", "list", "mxnet", expect=0, COLUMNS="500").stdout
        self.assertRegex(text, r"(?m)^mxnet +missing +none")
        self.assertRegex(text, r"\n  not installed: prony framework install mxnet \(\d+ MB\)\n")
        full = self.prony("framework", "list", "mxnet", "--full", expect=0, COLUMNS="500").stdout
        self.assertIn(f"; not found in {self.folder}", full)
        self.assertNotIn("native", text)

    def test_a_wrong_shared_folder_is_named(self):
        done = self.prony("framework", "list", "null", PRONY_SHARED="/nowhere/prony", expect=0)
        self.assertIn("PRONY_SHARED names '/nowhere/prony', where no folder is found", done.stderr)

    def test_torch_of_a_python_on_the_path_is_found(self):
        self.script("python3", "echo; echo 'prony-answer:{\"found\": true, \"version\": \"2.9\", "
                               "\"executable\": \"/opt/python\", \"path\": []}'\n")
        row, = self.rows_of("framework", "list", "pytorch", PATH=self.folder)
        self.assertEqual((row["state"], row["origin"], row["version"], row["path"]),
                         ("ready", "discovered", "2.9", "/opt/python"))

    def test_torch_of_an_active_environment_needs_no_download(self):
        place = os.path.join(self.folder, "venv")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=PATIENCE_S)
        packages, = glob.glob(os.path.join(place, "lib", "python3*", "site-packages"))
        for name, text in (("torch/__init__.py", ""), ("torch-2.9.dist-info/METADATA", "Name: torch\nVersion: 2.9\n")):
            os.makedirs(os.path.dirname(os.path.join(packages, name)))
            write(os.path.join(packages, name), text)
        for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            active = {variable: place, "PATH": "/nowhere"}
            text = self.prony("framework", "list", "pytorch", expect=0, COLUMNS="300", **active).stdout
            self.assertRegex(text, rf"pytorch +ready +environment +2\.9 +{place}/bin/python")
        plan = self.prony("run", "-f", "pytorch", "-n", "mlp", "--dry-run", expect=0, **active)
        self.assertNotIn("framework install", plan.stdout + plan.stderr)
        # Who asks for it all the same is told, before the download.
        done = self.prony("framework", "install", "pytorch", PATH=os.environ["PATH"], VIRTUAL_ENV=place)
        self.assertIn(f"2.9 in {place}/bin/python is used without an installation", done.stderr)
        plan = self.prony("run", "-f", "pytorch", "-n", "mlp", "--dry-run", PATH="/nowhere")
        self.assertIn("prony framework install pytorch", plan.stdout)

    def test_named_environments_are_listed(self):
        os.makedirs(os.path.join(self.frameworks, "mxnet@old", "mxnet"))
        library = os.path.join(self.frameworks, "mxnet@old", "mxnet", "libmxnet.so")
        with open(library, "w", encoding="utf-8"):
            pass
        rows = [row for row in self.rows_of("list", "frameworks") if row["name"] == "mxnet"]
        self.assertEqual([row["framework"] for row in rows], ["mxnet", "mxnet@old"])
        self.assertEqual(rows[1]["path"], library)

    def test_every_topic(self):
        keys = {"frameworks": "framework", "networks": "network", "datasets": "dataset",
                "devices": "device", "suites": "suite", "metrics": "metric"}
        for topic, key in keys.items():
            rows = self.rows_of("list", topic)
            names = [row[key] for row in rows]
            self.assertTrue(names, topic)
            # A cell's figure may be named as the field of its processes is that it is the median of.
            whose = [(row.get("of"), row[key]) for row in rows]
            self.assertEqual(len(set(whose)), len(whose), topic)
            text = self.prony("list", topic[:-1], expect=0, COLUMNS="300").stdout
            for name in names:
                self.assertRegex(text, rf"(?m)^{name} ")
        self.assertEqual(list(self.rows_of("list")), list(keys)[:-1])
        self.assertEqual(list(self.rows_of("list", "networks", "metrics")), ["networks", "metrics"])

    def test_topics_say_what_is_so(self):
        networks = {row["network"]: row for row in self.rows_of("list", "networks")}
        self.assertEqual((networks["lenet"]["parameters"], networks["lenet"]["input"]),
                         (431080, "1x28x28"))
        datasets = {row["dataset"]: row for row in self.rows_of("list", "datasets")}
        self.assertEqual(datasets["mnist-3000"]["state"], "ready")
        self.assertIn("prony data fetch mnist", datasets["mnist"]["reason"])
        self.assertIsNone(datasets["synthetic"]["train"])
        suites = {row["suite"]: row for row in self.rows_of("list", "suites")}
        self.assertEqual(suites["quickstart"]["state"], "ready")
        self.assertGreaterEqual(self.rows_of("list", "devices")[0]["cores"], 1)

    def test_gpus_are_asked_of_the_driver(self):
        fakes = os.path.join(os.path.dirname(PRONY), "tests", "cuda", "lib")
        if not os.path.exists(os.path.join(fakes, "libcuda.so.1")):
            self.skipTest("the fake driver was not built: no C++ compiler")
        _, gpu = self.rows_of("list", "devices", LD_LIBRARY_PATH=fakes)
        self.assertEqual([gpu[key] for key in ("device", "model", "memory", "capability", "driver")],
                         ["cuda:0", "NVIDIA Fake H100", "80.0 GiB", "sm_90", "580.0"])
        plan = self.prony("run", "-f", "mxnet", "-n", "lenet", "-D", "cuda:0,cuda:1", "--dry-run",
                          "--full", "--store", self.store, expect=0, COLUMNS="300", LD_LIBRARY_PATH=fakes).stdout
        self.assertIn("mxnet is built for GPUs up to sm_86, this one is sm_90 (it needs a newer build)", plan)
        self.assertIn("device cuda:1: this machine has 1 GPU, cuda:0", plan)

    def test_a_broken_suite_is_named(self):
        share = os.path.join(self.folder, "share")
        os.makedirs(os.path.join(share, "suites"))
        write(os.path.join(share, "suites", "bad.yaml"), "frmeworks: [native]\n")
        row, = self.rows_of("list", "suites", PRONY_SHARE=share)
        self.assertEqual(row["state"], "broken")
        self.assertIn("bad.yaml:1", row["reason"])

    def test_unknown_topic(self):
        done = self.prony("list", "netwrks", expect=USAGE)
        self.assertIn("did you mean 'networks'?", message(done))


class InstallTest(FrameworkTest):
    def test_wrong_words(self):
        for words, part in (
                (["install", "mxnt"], "did you mean 'mxnet'?"),
                (["install", "nothing-like-it"], "known: native, "),
                (["install", "mxnet:backend"], "mxnet has no backends to choose from"),
                (["install", "mxnet+nosubgraph"], "options belong to prony run"),
                (["install", "mxnet@"], "environment is missing after @"),
                (["install", "mxnet@../../x"], "invalid environment name"),
                (["install"], "needs names of frameworks"),
                (["remove"], "needs names of frameworks"),
                (["uninstall", "mxnet"], "unknown action 'uninstall'"),
                ([], "the action is missing")):
            done = self.prony("framework", *words, expect=USAGE)
            self.assertIn(part, message(done))
        self.assertEqual(self.left_behind(), [])

    def test_a_mistyped_name_is_said_before_anything_is_downloaded(self):
        done = self.prony("framework", "install", "onnxruntime", "mxnt", expect=USAGE)
        self.assertNotIn("installing", done.stderr)
        self.assertFalse(os.path.exists(self.frameworks))

    def test_no_network(self):
        done = self.prony("framework", "install", "onnxruntime", "native", expect=STORAGE)
        lines = [line for line in done.stderr.splitlines() if line.startswith("prony: ")]
        self.assertEqual(len(lines), 2, "the first failure does not keep the second away")
        self.assertIn("could not reach a package index", lines[0])
        self.assertIn("PIP_FIND_LINKS", lines[0])
        self.assertEqual(self.left_behind(), [])

    def test_the_disk_fills_up(self):
        """While pip writes, and while an environment is made: both say so, with the remedy, and leave nothing."""
        full = "OSError: [Errno 28] No space left on device"
        pip = self.script("pip", f'[ "$1" = -c ] && exit 0\necho "ERROR: {full}"; exit 1\n')
        venv = self.script("venv", f'[ "$1" = -c ] && {{ echo 3.12; exit 0; }}\necho "{full}"; exit 1\n')
        done = self.prony("framework", "install", "onnxruntime", "jax", expect=STORAGE, PRONY_PYTHON=pip,
                          PRONY_PYTHON_3_12=venv)
        for name in ("onnxruntime", "jax"):
            self.assertIn(f"prony: {name}: the disk with {self.frameworks}/{name} is full; free some space", done.stderr)
            self.assertIn(f": {name} could not be installed", done.stderr)
        self.assertEqual(self.left_behind(), [])

    def test_nothing_to_remove(self):
        done = self.prony("framework", "remove", "mxnet", expect=MISSING)
        self.assertIn("mxnet is not installed", message(done))
        done = self.prony("framework", "remove", "null", expect=MISSING)
        self.assertIn("part of prony", message(done))
        self.prony("framework", "install", "null", expect=0)

    def slow_pip(self):
        """A Python whose pip never ends and says so; only its process group can be ended."""
        path = self.script("slow-python", '[ "$1" = -c ] && exit 0\n'
                           f'echo $$ >{self.folder}/pip-pid\nsleep 1000 & wait\nsleep 1000\n')
        self.environment["PRONY_PYTHON"] = path

    def pip_started(self):
        return os.path.exists(os.path.join(self.folder, "pip-pid"))

    def test_interrupting_leaves_nothing(self):
        self.slow_pip()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                process = self.start("framework", "install", "onnxruntime", "mxnet")
                self.wait_for(self.pip_started, "pip")
                process.send_signal(number)
                self.assertEqual(process.wait(PATIENCE_S), INTERRUPTED)
                self.assertEqual(self.left_behind(), [])
                self.assert_nothing_stays()
                os.remove(os.path.join(self.folder, "pip-pid"))

    def test_after_a_kill_nobody_works_in_the_same_folder(self):
        self.slow_pip()
        process = self.start("framework", "install", "onnxruntime")
        self.wait_for(self.pip_started, "pip")
        process.kill()
        process.wait(PATIENCE_S)
        self.assertEqual(self.left_behind(), [".onnxruntime.part"])

        # pip lives on and still writes there: the second one waits for it, not only for prony.
        log = os.path.join(self.folder, "second.log")
        second = self.start("framework", "install", "onnxruntime", log=log)

        def waits():
            return "waiting for another prony" in read(log)
        self.wait_for(waits, "the message")
        second.send_signal(signal.SIGINT)
        self.assertEqual(second.wait(PATIENCE_S), INTERRUPTED)
        self.assertEqual(self.left_behind(), [".onnxruntime.part"])

        # One that is killed may have let another begin.
        self.wait_for(lambda: not self.end_all(), "the end of pip")
        self.assert_nothing_stays()
        self.script("slow-python", '[ "$1" = -c ] && exit 0\nexit 3\n')
        done = self.prony("framework", "install", "onnxruntime", expect=STORAGE)
        self.assertIn("pip could not download", message(done))
        self.assertEqual(self.left_behind(), [], "what the killed one left goes away")


if __name__ == "__main__":
    sys.exit(counted.main())
