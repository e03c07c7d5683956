#!/usr/bin/env python3
"""`prony run --launch`: agents on nodes, here on this host, through launchers that fail in each way. $PRONY names prony."""
import json
import os
import shutil
import signal
import stat
import time
import unittest

from prony_program import PATIENCE_S, PRONY, ProgramTest, marked_processes, read, write

CELLS = ("-f", "null,fake", "-n", "mlp", "-s", "forward,train", "-d", "synthetic", "-b", "4")
SHORT = ("--quick", "--repeat", "2", "--steps", "5", "--warm-up", "1")
LONG = ("--quick", "--repeat", "12", "--steps", "20", "--warm-up", "1")


class LaunchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.launcher = os.path.join(self.folder, "my launcher")
        self.environment["SELF"] = os.path.realpath(PRONY)
        self.on()

    def on(self, **nodes):
        """What the launcher does on a node; on others it starts the agent."""
        cases = "".join(f"{name}) {text};;\n" for name, text in nodes.items())
        write(self.launcher, '#!/bin/bash\nexport SLURMD_NODENAME="$1"\ncase $1 in\n' + cases
              + '*) exec "$SELF" agent;;\nesac\n')
        os.chmod(self.launcher, stat.S_IRWXU)

    def words(self, *words, nodes="a,b", effort=SHORT):
        return ("run", *CELLS, *effort, "--store", self.store, "--launch", f"'{self.launcher}' {{node}} agent",
                "--node-list", nodes, *words)

    def launch(self, *words, expect=0, nodes="a,b", **more):
        return self.prony(*self.words(*words, nodes=nodes), expect=expect, **more)

    def resumed(self, text):
        """The options that prony proposes."""
        return text.split("to measure what is missing, add ", 1)[1].splitlines()[0].split()

    def kept(self):
        """The stores that the agents kept."""
        folder = os.path.join(self.folder, f"prony-agent-{os.geteuid()}")
        return [name for name in os.listdir(folder) if name.endswith('.db')] if os.path.isdir(folder) else []

    def test_one_run_of_two_nodes(self):
        done = self.launch()
        self.assertIn("a: part 1 of 2, 1 table\n", done.stderr)
        self.assertIn("b: has ended with exit code 0; its results are here\n", done.stderr)
        self.assertEqual(done.stdout.count("fake 0.1.0"), 2, done.stdout)
        self.assertEqual(self.rows("select count(*), max(finished_wall_ns) is null from run"), [(1, 0)])
        self.assertEqual(self.rows("select count(*) from process where status = 'ok'"), [(8,)])
        run = json.loads(self.prony("show", "--format", "json", "--store", self.store, expect=0).stdout)["run"]
        self.assertEqual([part["node"] for part in run["parts"]], ["a", "b"])
        self.assertEqual(self.kept(), [])
        # Nothing of it is read by a shell on the way, and more nodes than tables are left out.
        odd = "$(touch${IFS}x);&"
        again = self.launch("--seed", "3", "--format", "json", nodes=f"{odd},b,c")
        self.assertIn("the run has 2 tables, so 2 of 3 nodes are used", again.stderr)
        self.assertEqual([part["node"] for part in json.loads(again.stdout)["run"]["parts"]], [odd, "b"])
        self.assertEqual(self.rows("select count(*) from run"), [(2,)])

    def test_names_are_unique(self):
        self.prony("run", *CELLS, *SHORT, "--store", self.store, "--name", "june", expect=0)
        self.assertIn("run 1 already has the name 'june'", self.launch("--name", "june", expect=64).stderr)

    def test_the_whole_run_on_every_node(self):
        done = self.launch("--every-node")
        self.assertIn("prony show --by node", done.stderr)
        self.assertEqual(self.rows("select count(*) from run where finished_wall_ns is not null"), [(2,)])
        self.assertEqual(self.rows("select count(*) from process"), [(16,)])
        self.assertEqual(self.kept(), [])

    def test_a_node_that_does_not_start(self):
        """The others go on; what is missing is named, and measured with the options that prony names."""
        for text, why in (
                ("exit 3", "it ended without an answer of prony agent (exit code 3)"),
                ("echo 'Permission denied' >&2; exit 255", "(exit code 255): Permission denied"),
                ("exec sleep 600", "no answer for 6 s (--timeout)"),
                ("while echo hello; do sleep 0.1; done", "no answer for 6 s (--timeout)"),
                ("kill -9 $$", "(killed by signal 9"),
                ("head -c 1000000 /dev/zero | tr '\\0' x; sleep 600", "65536 bytes came without a line"),
                ("printf 'hello 9999999999\\nhello x\\nhello 1 1\\n'; exit 4", "(exit code 4): hello 1 1"),
                ("printf 'hello 2\\n{}'; read line; sleep 600", "is another executable than this one"),
                ("printf 'hello 2\\n[;'; sleep 600", "prony agent: line 1, column 2"),
        ):
            with self.subTest(text):
                self.on(b=text)
                lost = self.launch("--timeout", "6", expect=1)
                self.assertIn(why, lost.stderr)
                self.assertIn("1 of 2 nodes did not measure all: b", lost.stderr)
                self.assertIn("part 2 of 2 is missing", lost.stdout)
                self.assert_nothing_stays(5)
        self.on()
        # Another node may take the place.
        done = self.launch("--timeout", "6", *self.resumed(lost.stderr), nodes="a,c")
        self.assertNotIn("a: part 1 of 2 of run", done.stderr)
        self.assertNotIn("missing", done.stdout)

    def test_a_login_that_talks(self):
        self.on(b='echo "Welcome to b"; seq 30000 >&2; head -c 2000000 /dev/zero | tr "\\0" x >&2; exec "$SELF" agent')
        done = self.launch()
        self.assertIn("b: Welcome to b\n", done.stderr)
        self.assertIn("b: further lines are left out\n", done.stderr)
        self.assertLess(len(done.stderr), 100000)
        self.assertNotIn("missing", done.stdout)

    def test_other_software_on_a_node(self):
        other = os.path.join(self.folder, "other")
        shutil.copy(PRONY, other)
        with open(other, "ab") as stream:
            stream.write(b"\0")
        library = os.path.join(self.folder, "libdnnl.so.3")
        write(library, "no library")
        self.on(b=f"exec '{other}' agent")
        share = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        done = self.launch(expect=1, PRONY_SHARE=share)
        self.assertRegex(done.stderr, r"b: its prony \([\d.]+, \w{12}\) is another executable than this one")
        self.on(a=f"PRONY_NATIVE_LIBRARY='{library}' exec \"$SELF\" agent", b='sleep 2; exec "$SELF" agent')
        done = self.launch("-f", "native", expect=1)
        self.assertRegex(done.stderr, r"b: native: missing there, but a version .* elsewhere; install the same")

    def cut(self, mark, expect=1, sign=signal.SIGKILL, relay=True):
        """Ends node b's launcher once this is printed: alone, or the agent with it."""
        self.on()
        if relay:
            self.on(b='cat | setsid "$SELF" agent | cat')
        log = os.path.join(self.folder, f"log{time.monotonic_ns()}")
        process = self.start(*self.words(nodes="b,a", effort=LONG), log=log)
        deadline = time.monotonic() + PATIENCE_S
        while mark not in read(log) and time.monotonic() < deadline:
            time.sleep(0.01)
        mine = marked_processes(self.mark)
        if relay:
            victims = [pid for pid, line in mine.items() if line == "cat" or line.endswith(f"{self.launcher} b agent")]
        else:
            victims = [pid for pid, line in mine.items() if line == f"{self.environment['SELF']} agent"
                       and self.node_of(pid) == "b"]
        self.assertTrue(victims, mine)
        before = {pid for pid in mine if self.node_of(pid) == "b"}
        for pid in victims:
            os.kill(pid, sign)
        since = time.monotonic()
        while before & set(marked_processes(self.mark)) and time.monotonic() < since + 20:
            time.sleep(0.01)
        took = time.monotonic() - since
        self.assertEqual(process.wait(PATIENCE_S), expect, read(log))
        return took, read(log)

    def node_of(self, pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as stream:
                found = [row[16:] for row in stream.read().split(b"\0") if row.startswith(b"SLURMD_NODENAME=")]
        except OSError:
            return None
        return found[0].decode() if found else None

    def test_the_channel_is_cut(self):
        """While the run waits for the machine, in a gate, and while it measures; and the agent is killed."""
        for mark, relay in (("b: part 1 of 2 of run", True), ("b: parity", True), ("b: [3 of", True), ("b: [3 of", False)):
            with self.subTest(mark=mark, relay=relay):
                took, text = self.cut(mark, relay=relay)
                self.assertLess(took, 1.0)
                self.assertIn("b: ", text)
                self.assertIn("the channel ended before the run", text)
                self.assertIn("a: has ended with exit code 0", text)
                self.assert_nothing_stays(5)
        words = self.resumed(text)
        kept = self.kept()
        self.assertTrue(kept)
        self.on()
        done = self.prony(*self.words(*words, nodes="b,a", effort=LONG), expect=0)
        self.assertNotIn("b: parity", done.stderr)
        self.assertNotIn("missing", done.stdout)
        self.assertEqual(len(self.kept()), len(kept) - 1)

    def test_the_channel_is_cut_while_a_store_comes(self):
        self.on(b='setsid "$SELF" agent | (dd bs=1 count=30000 status=none; kill -9 $$)')
        lost = self.launch(expect=1)
        self.assertIn("b: ", lost.stderr)
        self.assertIn("the channel ended before the run", lost.stderr)
        self.assertIn("part 2 of 2 is missing", lost.stdout)
        self.assertEqual(len(self.kept()), 1)
        self.on()
        done = self.launch(*self.resumed(lost.stderr))
        self.assertNotIn("round", done.stderr)
        self.assertEqual(self.rows("select count(*) from process"), [(8,)])
        self.assertEqual(self.kept(), [])

    def test_interrupted(self):
        """What was measured comes back, and the rest is measured later."""
        log = os.path.join(self.folder, "log")
        process = self.start(*self.words(effort=LONG), log=log)
        deadline = time.monotonic() + PATIENCE_S
        while "[3 of" not in read(log) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE_S), 130)
        self.assert_nothing_stays(5)
        count = self.rows("select count(*) from process")[0][0]
        self.assertGreaterEqual(count, 3)
        before = set(self.rows("select started_wall_ns from process"))
        self.prony(*self.words(*self.resumed(read(log)), effort=LONG), expect=0)
        self.assertLessEqual(before, set(self.rows("select started_wall_ns from process")))
        self.assertEqual(self.rows("select count(*) from process"), [(48,)])

    def test_the_parent_is_killed(self):
        log = os.path.join(self.folder, "log")
        process = self.start(*self.words(effort=LONG), log=log)
        deadline = time.monotonic() + PATIENCE_S
        while "[3 of" not in read(log) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.wait()
        self.assert_nothing_stays(10)

    def test_a_folder_of_somebody_else(self):
        os.mkdir(os.path.join(self.folder, f"prony-agent-{os.geteuid()}"), 0o777)
        os.chmod(os.path.join(self.folder, f"prony-agent-{os.geteuid()}"), 0o777)
        done = self.launch(expect=1)
        self.assertIn("is not a folder of yours alone (mode 700)", done.stderr)
        self.assertIn("2 of 2 nodes did not measure all: a, b", done.stderr)

    def test_a_missing_command(self):
        done = self.prony("run", *CELLS, *SHORT, "--store", self.store, "--launch", "no-such-launcher {node}",
                          "--node-list", "a", expect=1)
        self.assertIn("no-such-launcher", done.stderr)
        self.assertIn("1 of 1 nodes did not measure all: a", done.stderr)

    def test_usage(self):
        for words, said in (
                (("--launch", "ssh"), "write {node} where"), (("--node-list", "a"), "--node-list needs --launch"),
                (("--every-node",), "--every-node needs --launch"),
                (("--launch", "srun"), "not in a job of Slurm"),
                (("--launch", "ssh {node}", "--node-list", "a,a"), "a is there twice"),
                (("--launch", "ssh {node}", "--node-list", "a,-oProxyCommand=x"), "is not the name of a node"),
                (("--launch", "ssh '{node}", "--node-list", "a"), "there is no closing quote"),
                (("--launch", "ssh {node}", "--part", "1/2"), "leave out --part"),
                (("--launch", "ssh {node}", "--node-list", "a", "--resume"), "needs the --run-id"),
                (("--launch", "ssh {node}", "--node-list", "a", "--resume", "--run-id", "x"), "nothing to resume"),
                (("--launch", "ssh {node}", "--every-node", "--run-id", "x"), "makes a new run of each node")):
            done = self.prony("run", *CELLS, *words, "--store", self.store, SLURM_JOB_NODELIST="", expect=64)
            self.assertIn(said, done.stderr)
        self.assertIn("is started by prony run --launch", self.prony("agent", expect=64).stderr)
        layers = self.prony("layers", "-n", "mlp", "--launch", "ssh {node}", "--node-list", "a", expect=64)
        self.assertIn("--launch is for prony run", layers.stderr)


if __name__ == "__main__":
    unittest.main()
