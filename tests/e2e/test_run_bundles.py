#!/usr/bin/env python3
"""The bundles of a run: one file of weights and one of batches for all frameworks, gone in time;
docs/examples/case.json is what today's program writes.

$PRONY names the program. PRONY_REFRESH_GOLDEN=1 writes the example again.
"""
import copy
import json
import os
import re
import sys

import counted
import json_schema
from prony_program import ProgramTest, read, write

SHORT = ("-d", "mnist-3000", "-b", "8", "-s", "train", "--quick", "--repeat", "3", "--steps", "12",
         "--warm-up", "3")
FILES = {"case.json", "weights.safetensors", "input.safetensors"}
# After each process: inode and path of every file of the run, then a line that ends the listing.
LIST = 'find "$TMPDIR"/prony-run-* -type f -printf "%i %P\\n" >> "$TMPDIR/seen"; ' \
       'echo end >> "$TMPDIR/seen"'
EXAMPLE = os.path.join(json_schema.ROOT, "docs", "examples", "case.json")
WIDTH = 100


def readable(value, indent=0, before=0):
    """JSON in lines of at most WIDTH columns, each list and object in one where it fits."""
    line = json.dumps(value)
    if indent + before + len(line) < WIDTH or not value or not isinstance(value, (dict, list)):
        return line
    pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    lines = []
    for key, item in pairs:
        head = "" if key is None else json.dumps(key) + ": "
        lines.append(" " * (indent + 1) + head + readable(item, indent + 1, len(head)))
    ends = "{}" if isinstance(value, dict) else "[]"
    return ends[0] + "\n" + ",\n".join(lines) + "\n" + " " * indent + ends[1]


class ExampleTest(ProgramTest):
    def test_the_example_is_what_the_program_writes(self):
        kept = os.path.join(self.folder, "kept")
        self.prony("run", "-f", "null", "-n", "lenet", "-d", "synthetic", "-D", "cpu:1", "-b", "2",
                   "-s", "train", "--quick", "--repeat", "1", "--steps", "12", "--warm-up", "3", "--store",
                   self.store, "--keep-bundle", kept, expect=0)
        folders = os.listdir(kept)
        self.assertEqual(len(folders), 1)
        text = readable(json.loads(read(os.path.join(kept, folders[0], "case.json")))) + "\n"
        if os.environ.get("PRONY_REFRESH_GOLDEN") == "1":
            write(EXAMPLE, text)
        self.assertEqual(read(EXAMPLE), text)

    def test_the_example_follows_the_schema(self):
        schema = json_schema.read("case")
        case = json.loads(read(EXAMPLE))
        self.assertEqual(json_schema.problems(case, schema, schema, "case"), [])
        for path, wrong in ((("schema",), 1), (("recipe", "batch"), "2"),
                            (("recipe", "dropout"), 1), (("recipe", "momentum"), -1),
                            (("files", "weights"), "../w"),
                            (("graph", "values", 0, "shape"), [2.5]),
                            (("graph", "nodes", 0, "outputs"), []),
                            (("graph", "nodes", 0, "attributes"), {"group": None})):
            broken = copy.deepcopy(case)
            part = broken
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = wrong
            self.assertTrue(json_schema.problems(broken, schema, schema, "case"), path)
            if isinstance(part, dict) and path[-1] in part:
                del part[path[-1]]
                self.assertTrue(json_schema.problems(broken, schema, schema, "case"), path)

    def test_the_schema_has_what_every_graph_may_have(self):
        node = json_schema.read("case")["$defs"]["node"]["properties"]
        text = read(os.path.join(json_schema.ROOT, "graph", "graph.h"))
        for key in "inputs", "outputs":
            most = re.search(r"NODE_MAX_%s (\d+)" % key.upper(), text).group(1)
            self.assertEqual(node[key]["maxItems"], int(most), key)
        page = os.path.join(json_schema.ROOT, "docs", "operators.md")
        table = read(page).partition("| operator | inputs |")[2].partition("\n\n")[0]
        defaults = re.findall(r"`(\w+): [^`=]+ = ([^`]+)`", table)
        self.assertGreater(len(defaults), 30)
        for name, default in defaults:
            self.assertEqual(json_schema.problems({name: json.loads(default)}, node["attributes"],
                                                  node, "attributes"), [])


class BundlesTest(ProgramTest):
    def listings(self):
        """For each process that ended: (inode, path) of the files that were there then."""
        text = read(os.path.join(self.folder, "seen"))
        return [[tuple(line.split(" ", 1)) for line in part.splitlines()]
                for part in text.split("end\n")[:-1]]

    def test_kept_bundles_are_whole_and_share(self):
        kept = os.path.join(self.folder, "kept")
        for _ in range(2):  # the second run writes into what the first one left
            self.prony("run", "-f", "fake,fake+delay-us=1", "-n", "mlp", *SHORT, "--store",
                       self.store, "--keep-bundle", kept, expect=0)
        inodes = {}
        for folder, _, files in os.walk(kept):
            if folder == kept:
                continue
            self.assertEqual(set(files), FILES, folder)
            kind = folder.rpartition("-")[2]
            for name in FILES - {"case.json"}:
                inodes.setdefault((kind, name), set()).add(
                    os.stat(os.path.join(folder, name)).st_ino)
        self.assertEqual({folder.rpartition("-")[2] for folder in os.listdir(kept)},
                         {"case", "gate"})
        self.assertEqual(len(os.listdir(kept)), 4)
        for key, numbers in inodes.items():
            self.assertEqual(len(numbers), 1, key)
        weights = "weights.safetensors"
        self.assertEqual(inodes["case", weights], inodes["gate", weights])
        self.assertNotEqual(inodes["case", "input.safetensors"],
                            inodes["gate", "input.safetensors"])

    def test_a_cell_that_ended_leaves_no_bundle(self):
        self.prony("run", "-f", "fake,fake+nan-loss=last", "-n", "mlp", *SHORT, "--store",
                   self.store, "--cleanup", LIST, expect=1)
        last = self.listings()[-1]
        cases = {path.split("/")[0] for _, path in last if path.split("/")[0].endswith("-case")}
        # That of fake, which ended ok just then, and that of the broken one are gone or go.
        self.assertLessEqual(len(cases), 1)
        for listing in self.listings():
            weights = {inode for inode, path in listing if path.endswith("weights.safetensors")}
            self.assertLessEqual(len(weights), 1)

    def test_the_last_cell_of_a_work_takes_its_files_along(self):
        self.prony("run", "-f", "fake+nan-loss=last", "-n", "mlp,lenet", *SHORT, "--store",
                   self.store, "--cleanup", LIST, expect=1)
        listings = self.listings()
        self.assertEqual(len(listings), 2)
        self.assertEqual(listings[-1], [])


if __name__ == "__main__":
    sys.exit(counted.main())
