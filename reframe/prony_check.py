"""A check for ReFrame (4.10): a suite of prony on each node, one job a node for all its cells.

    reframe -C SITE.py -c PREFIX/share/prony/reframe/prony_check.py -r --distribute=idle -S suite=qualify

Settings (-S): suite, options (further words of prony run), prony (the program). Each cell's step time is a figure of
the check in ms, so that ReFrame's own references, performance log and list of nodes apply.
"""
import json
import os

import reframe as rfm
import reframe.utility.sanity as sn

# Cells that this machine cannot run are no fault of it.
FINE = {"ok", "missing", "unsupported"}


@rfm.simple_test
class prony_check(rfm.RunOnlyRegressionTest):
    suite = variable(str, value="qualify")
    options = variable(str, value="")
    prony = variable(str, value="prony")
    descr = "step times of deep-learning frameworks by prony"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    num_tasks = 1
    exclusive_access = True
    time_limit = "1h"
    keep_files = ["run.db", "run.json"]

    @run_before("run")
    def set_command(self):
        self.executable = self.prony
        self.executable_opts = ["run", self.suite, *self.options.split(), "--store", "run.db"]
        self.postrun_cmds = [f"{self.prony} export --format json --store run.db > run.json"]

    def cells(self):
        with open(os.path.join(self.stagedir, "run.json"), encoding="utf-8") as stream:
            return json.load(stream)["cells"]

    @sanity_function
    def cells_are_ok(self):
        statuses = [cell["status"] for cell in self.cells()]
        return sn.assert_true("ok" in statuses and set(statuses) <= FINE, f"cells ended as {statuses}")

    @run_before("performance")
    def set_figures(self):
        self.perf_variables = {
            " ".join(str(cell[axis]) for axis in ("framework", "network", "stage", "batch", "precision", "device")):
            sn.make_performance_function(sn.defer(cell["step"]["center_ns"] / 1e6), "ms")
            for cell in self.cells() if cell["status"] == "ok" and cell["step"]["center_ns"]}
