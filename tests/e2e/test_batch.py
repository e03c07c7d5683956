#!/usr/bin/env python3
"""`prony batch`: its script against tests/golden/batch.sh; with sbatch, squeue and sinfo of our own, which run the
tasks at once; and on a real Slurm of two nodes on this host, where its programs are installed. $PRONY names prony."""
import json
import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import time
import unittest

from prony_program import PATIENCE_S, PRONY, KeptReferencesTest, ProgramTest, marked_processes, read, write

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "batch.sh")
CELLS = ("-f", "null,fake", "-n", "mlp", "-s", "forward,train", "-d", "synthetic", "-b", "4")
QUICK = (*CELLS, "--quick", "--repeat", "1", "--steps", "5", "--warm-up", "1")
ONE_CELL = ("-f", "null", "-n", "mlp", "-s", "forward", *QUICK[6:])

# Each writes what it is asked; FAKE is a folder.
FAKES = {
    "sbatch": """#!/bin/bash
id=$(($(cat "$FAKE/id" 2>/dev/null || echo 16) + 1)); echo $id > "$FAKE/id"; echo "$@" >> "$FAKE/submitted"
array=0; node=
while [ $# -gt 1 ]; do
    case $1 in
    --array=*) array=${1#--array=};;
    --export=*) export "${1#--export=ALL,}";;
    -w) node=$2; shift;;
    esac
    shift
done
for task in ${array//,/ }; do
    [ "$task" = "$FAKE_LOST" ] || SLURM_ARRAY_JOB_ID=$id SLURM_ARRAY_TASK_ID=$task SLURM_JOB_ID=$id$task \\
        SLURMD_NODENAME=${node:-n$task} bash "$1" >> "$FAKE/log" 2>&1
done
echo "note of the site's filter"
echo "$id;cluster"
""",
    "squeue": '#!/bin/bash\ncat "$FAKE/queue" 2>/dev/null || true\n',
    "sinfo": "#!/bin/bash\necho \"$@\" > \"$FAKE/asked\"; printf 'n1\\nn2\\nn3\\n'\n",
}


class BatchTest(KeptReferencesTest):
    def setUp(self):
        super().setUp()
        self.where = os.path.join(self.folder, "batch")
        self.fake = os.path.join(self.folder, "fake")
        os.mkdir(self.fake)
        for name, text in FAKES.items():
            path = os.path.join(self.fake, name)
            write(path, text)
            os.chmod(path, stat.S_IRWXU)
        self.environment.update(FAKE=self.fake, PATH=f"{self.fake}:{os.environ['PATH']}")

    def batch(self, *words, cells=QUICK, **more):
        return self.prony("batch", *cells, "--folder", self.where, "--store", self.store, "--poll", "1", *words, **more)

    def submitted(self):
        return read(os.path.join(self.fake, "submitted")).splitlines()

    def test_script(self):
        done = self.prony("batch", *CELLS, "--print", "--nodes", "2", "--folder", "/shared/my folder",
                          "--sbatch-option=--partition=gpu", "--sbatch-option", "-A 'my account'", "--setup", "echo 'x'",
                          expect=0)
        prony = os.path.realpath(PRONY)
        self.assertIn(f"prony={prony}\n", done.stdout)
        text = done.stdout.replace(f"prony={prony}\n", "prony=/usr/bin/prony\n")
        if os.environ.get("PRONY_REFRESH_GOLDEN"):
            write(GOLDEN, text)
        self.assertEqual(text, read(GOLDEN))
        subprocess.run(["bash", "-n", GOLDEN], check=True)
        replaced = self.prony("batch", *CELLS, "--print", "--nodes", "2", "--sbatch-option=--time=5", expect=0).stdout
        self.assertEqual(replaced.count("--time="), 1)
        self.assertFalse(os.path.exists(self.where))

    def test_words_that_a_script_cannot_hold(self):
        for line in ("-p gpu\ntouch x", ""):
            done = self.prony("batch", *CELLS, "--print", "--nodes", "2", "--sbatch-option", line)
            self.assertEqual(done.returncode, 64)
            self.assertIn("--sbatch-option: takes one line", done.stderr)
        suite = os.path.join(self.folder, "a b'$(id)\ntouch x.yaml")
        write(suite, "frameworks: fake\nnetworks: mlp\ndatasets: synthetic\n")
        text = self.prony("batch", suite, "--print", "--nodes", "1", expect=0).stdout
        self.assertIn("#SBATCH --job-name=prony-a_b___id__touch_x\n", text)

    def test_folders(self):
        for folder, said in (("", "--folder takes a folder"), ("a%A", "Slurm would expand % and")):
            done = self.prony("batch", *CELLS, "--nodes", "2", "--folder", folder, expect=64)
            self.assertIn(said, done.stderr)
        os.mkdir(self.where)
        for line in ("17 ../../etc", "seventeen", "-1"):
            write(os.path.join(self.where, "jobs"), f"16 n1\n{line}\n")
            done = self.batch("--every-node", "--resume", expect=65)
            self.assertIn("jobs:2: is no job's id", done.stderr)

    def test_nothing_can_run(self):
        words = ("batch", "-n", "resnet50-cifar", "-d", "cifar10", "--data", self.folder, "--nodes", "1", "--print")
        done = self.prony(*words, "-f", "fake", "-s", "train", expect=0)
        self.assertIn("no cell can run on this machine (fake: ", done.stderr)
        done = self.prony(*words, "-f", "onnxruntime", "-s", "train", expect=64)
        self.assertIn("nothing to submit, no cell can run: ", done.stderr)

    def test_submit_and_wait(self):
        done = self.batch("--nodes", "9", "--wait", expect=0)
        self.assertIn("the run has 2 tables, so 2 parts", done.stderr)
        self.assertIn("2 of 2 stores are here, 0 in the queue", done.stderr)
        self.assertEqual(done.stdout.count("fake 0.1.0"), 2, done.stdout)
        self.assertEqual(self.rows("select count(*), max(finished_wall_ns) is null from run"), [(1, 0)])
        self.assertIn("--array=0,1", self.submitted()[0])
        again = self.batch("--nodes", "2")
        self.assertEqual(again.returncode, 64)
        self.assertIn("holds a submission (job 17); add --resume", again.stderr)
        other = self.batch("--nodes", "2", "--resume", "--seed", "3")
        self.assertEqual(other.returncode, 65)
        self.assertIn("is of another run", other.stderr)

    def test_a_lost_part_alone_is_submitted_again(self):
        lost = self.batch("--nodes", "2", "--wait", FAKE_LOST="1")
        self.assertEqual(lost.returncode, 1, lost.stderr)
        self.assertIn("1 of 2 parts ended without a finished store: 2;", lost.stderr)
        self.assertIn("part 2 of 2 is missing", lost.stdout)
        done = self.batch("--nodes", "2", "--wait", "--resume", expect=0)
        self.assertNotIn("missing", done.stdout)
        self.assertEqual(len(self.submitted()), 2)
        self.assertRegex(self.submitted()[1], r"--array=1 --export=ALL,PRONY_RUN_ID=17 ")
        self.assertEqual(self.rows("select count(*) from run"), [(1,)])
        self.batch("--nodes", "2", "--wait", "--resume", expect=0)
        self.assertEqual(len(self.submitted()), 2)

    def test_sbatch_fails(self):
        write(os.path.join(self.fake, "sbatch"), "#!/bin/bash\necho 'no such partition' >&2\nexit 1\n")
        done = self.batch("--nodes", "2")
        self.assertIn("sbatch: exit code 1: no such partition", done.stderr)
        self.assertEqual(done.returncode, 74)
        os.remove(os.path.join(self.fake, "sbatch"))
        done = self.batch("--nodes", "2", PATH=self.fake)
        self.assertIn("no sbatch here", done.stderr)
        for words in ((), ("--nodes", "2", "--every-node"), ("--nodes", "2", "--print", "--wait")):
            self.assertEqual(self.batch(*words).returncode, 64)

    def test_interrupted(self):
        write(os.path.join(self.fake, "queue"), "17 0\n17 1\n99 N/A\n")
        log = os.path.join(self.folder, "log")
        self.environment["FAKE_LOST"] = "1"
        process = self.start("batch", *QUICK, "--folder", self.where, "--nodes", "2", "--wait", "--store", self.store,
                             log=log)
        deadline = time.monotonic() + PATIENCE_S
        while "1 in the queue" not in read(log) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE_S), 130)
        self.assertIn("1 of 2 stores are here, 1 in the queue", read(log))
        self.assertIn("the jobs go on", read(log))

    def test_every_node(self):
        done = self.batch("--every-node", "--max-jobs", "2", "--wait", "--sbatch-option", "-p main", cells=ONE_CELL,
                          expect=0)
        self.assertIn("3 of 3 stores are here, 0 in the queue", done.stderr)
        self.assertIn("--partition=main", read(os.path.join(self.fake, "asked")))
        self.assertEqual([line.split()[2:4] for line in self.submitted()], [["-w", f"n{i}"] for i in (1, 2, 3)])
        self.assertEqual(self.rows("select count(*) from run"), [(3,)])
        self.assertIn(f"another round, which shows what lasts: prony batch {' '.join(ONE_CELL)} --store {self.store} --poll 1 "
                      f"--every-node --max-jobs 2 --wait --sbatch-option '-p main' --folder {self.where}-again\n",
                      done.stderr)
        other = self.batch("--nodes", "2", "--resume", expect=64)
        self.assertIn("holds a submission with --every-node", other.stderr)
        self.assertEqual(len(self.submitted()), 3)


class SlurmTest(ProgramTest):
    """A Slurm of two nodes on 127.0.0.1, with its own munge, without systemd; its programs end with the test."""

    def setUp(self):
        super().setUp()
        self.environment["PATH"] += ":/usr/sbin"
        missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch")
                   if not shutil.which(name, path=self.environment["PATH"])]
        if missing or os.geteuid() != 0:
            self.skipTest(f"not here: {' '.join(missing)}" if missing else "munged and slurmd need root")
        del self.environment["PRONY_LOCK"]
        self.start_cluster()

    def run_tool(self, *words):
        return subprocess.run(words, env=self.environment, check=True, text=True, capture_output=True,
                              timeout=60).stdout

    def start_cluster(self):
        top, host = os.path.join(self.folder, "slurm"), socket.gethostname().split(".")[0]
        for name in ("munge", "state", "log", "spool/n1", "spool/n2", "tmp/n1", "tmp/n2"):
            os.makedirs(os.path.join(top, name))
        for name in ("", "slurm", "slurm/munge"):
            os.chmod(os.path.join(self.folder, name), 0o755)
        munge = os.path.join(top, "munge")
        with open(os.path.join(munge, "key"), "wb") as stream:
            stream.write(os.urandom(128))
        os.chmod(os.path.join(munge, "key"), 0o600)
        subprocess.run(["munged", f"--key-file={munge}/key", f"--socket={munge}/s", f"--pid-file={munge}/pid",
                        f"--log-file={munge}/log", f"--seed-file={munge}/seed", "--force"],
                       env=self.environment, check=True, capture_output=True)
        ports = []
        for _ in range(3):
            with socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                ports.append(one.getsockname()[1])
        # %n: else the nodes of one host write one file. A requeued task waits for the end of its credential.
        write(os.path.join(top, "slurm.conf"), f"""ClusterName=loop
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={munge}/s,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
TmpFS={top}/tmp/%n
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation={top}/state
SlurmctldPidFile={top}/slurmctld.pid
SlurmctldLogFile={top}/log/slurmctld.log
SlurmdPidFile={top}/slurmd.%n.pid
SlurmdLogFile={top}/log/slurmd.%n.log
SlurmdSpoolDir={top}/spool/%n
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
KillWait=2
SchedulerParameters=sched_interval=1,bf_interval=1
SchedulerType=sched/backfill
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={os.cpu_count()} State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
""")
        self.environment["SLURM_CONF"] = os.path.join(top, "slurm.conf")
        self.run_tool("slurmctld")
        for name in ("n1", "n2"):
            self.run_tool("slurmd", "-N", name)
        deadline = time.monotonic() + 30
        while self.run_tool("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split() != ["n1", "n2"]:
            self.assertLess(time.monotonic(), deadline, "the nodes of Slurm are not idle after 30 s")
            time.sleep(0.1)

    def test_an_array_over_two_nodes(self):
        """One task is requeued, one gets the signal of its time limit: nothing is lost, and nothing is stored twice."""
        where = os.path.join(self.folder, "batch")
        words = ("batch", *CELLS, "--quick", "--repeat", "8", "--steps", "20", "--warm-up", "1", "--folder", where,
                 "--nodes", "2", "--store", self.store, "--poll", "1")
        self.prony(*words, expect=0)
        job = read(os.path.join(where, "jobs")).split()[0]
        before = self.processes(self.local(job, 1), 3)
        self.run_tool("scontrol", "requeue", f"{job}_0")
        before |= self.processes(self.local(job, 2), 3)
        self.run_tool("scancel", "--signal=TERM", "--batch", f"{job}_1")
        deadline = time.monotonic() + PATIENCE_S
        while f"{job}_1" in self.run_tool("squeue", "-h", "-r", "-o", "%i").split() and time.monotonic() < deadline:
            time.sleep(0.1)
        # The unfinished store is in the shared folder; the part that was stopped is submitted again.
        self.assertTrue(os.path.exists(os.path.join(where, "parts", "2.db")))
        done = self.prony(*words, "--resume", "--wait", expect=0)
        self.assertNotIn("missing", done.stdout)
        rows = self.rows("select cell.hash, replicate, process.started_wall_ns from process join cell on "
                         "cell.id = process.cell")
        self.assertLessEqual(before, set(rows))
        # Slurm may kill a worker before prony, whose process is then repeated.
        self.assertEqual(self.rows("select count(*) from process where status = 'ok'"), [(4 * 8,)])
        run = json.loads(self.prony("show", "--format", "json", "--store", self.store, expect=0).stdout)["run"]
        self.assertEqual({part["node"] for part in run["parts"]}, {"n1", "n2"})
        self.assertIsNotNone(run["finished"])
        self.assertIn("on 2 machines", done.stdout)
        self.assertEqual(len(read(os.path.join(where, "jobs")).splitlines()), 2)

    def test_every_node_is_compared(self):
        done = self.prony("batch", *ONE_CELL, "--every-node", "--wait", "--folder", os.path.join(self.folder, "batch"),
                          "--store", self.store, "--poll", "1", expect=0)
        self.assertIn("2 of 2 stores are here, 0 in the queue", done.stderr)
        shown = self.prony("show", "--by", "node", "--store", self.store)
        self.assertIn(shown.returncode, (0, 2, 3), shown.stderr)
        self.assertRegex(shown.stdout, r"(?s)\bn1\b.*\bn2\b|\bn2\b.*\bn1\b")

    def local(self, job, part):
        return os.path.join(self.folder, f"prony-{os.getuid()}", f"{job}-{part}.db")

    def test_agents_in_an_allocation(self):
        """One by srun on each node; when srun is killed, so is what runs below its agent."""
        words = ("salloc", "-N2", "--exclusive", PRONY, "run", *CELLS, "--quick", "--repeat", "8", "--steps", "20",
                 "--warm-up", "1", "--launch", "srun", "--store", self.store)
        log = os.path.join(self.folder, "log")
        with open(log, "w", encoding="utf-8") as stream:
            process = subprocess.Popen(words, env=self.environment, stdout=stream, stderr=stream, text=True)
        deadline = time.monotonic() + PATIENCE_S
        while "n2: [2 of" not in read(log) and time.monotonic() < deadline:
            time.sleep(0.02)
        below = [pid for pid, line in marked_processes(self.mark).items() if "--part 2/2" in line]
        launchers = [pid for pid, line in marked_processes(self.mark).items()
                     if line.startswith("srun") and "--nodelist=n2" in line]
        self.assertTrue(below and launchers, read(log))
        for pid in launchers:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(process.wait(PATIENCE_S), 1, read(log))
        text = read(log)
        self.assertIn("n2: srun: the channel ended before the run (killed by signal 9", text)
        self.assertIn("part 2 of 2 is missing", text)
        self.assertFalse(set(below) & set(marked_processes(self.mark)))
        proposed = text.split("to measure what is missing, add ", 1)[1].splitlines()[0].split()
        done = subprocess.run((*words, *proposed), env=self.environment, check=True, text=True, capture_output=True)
        self.assertNotIn("missing", done.stdout)
        self.assertEqual(self.rows("select count(*) from process where status = 'ok'"), [(4 * 8,)])
        run = json.loads(self.prony("show", "--format", "json", "--store", self.store, expect=0).stdout)["run"]
        self.assertEqual([part["node"] for part in run["parts"]], ["n1", "n2"])

    def processes(self, store, least):
        """Those that the store holds, once there are so many."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            rows = set()
            try:
                base = sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=10)
                rows = set(base.execute("select cell.hash, replicate, process.started_wall_ns from process join "
                                        "cell on cell.id = process.cell"))
                base.close()
            except sqlite3.OperationalError:
                pass
            if len(rows) >= least:
                return rows
            time.sleep(0.02)
        self.fail(f"{store} has not {least} processes: "
                  + self.run_tool("squeue") + self.run_tool("scontrol", "show", "node"))


if __name__ == "__main__":
    unittest.main()
