#!/usr/bin/env python3
"""The bundles of a run: one file of weights and one of batches for all frameworks, gone in time.

$PRONY names the program.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import counted  # noqa: E402
from prony_program import ProgramTest  # noqa: E402

SHORT = ("-d", "mnist-sample", "-b", "8", "-s", "train", "--repeat", "3", "--steps", "12",
         "--warm-up", "3")
FILES = {"case.json", "weights.safetensors", "input.safetensors"}
# After each process: inode and path of every file of the run, then a line that ends the listing.
LIST = 'find "$TMPDIR"/prony-run-* -type f -printf "%i %P\\n" >> "$TMPDIR/seen"; ' \
       'echo end >> "$TMPDIR/seen"'


class BundlesTest(ProgramTest):
    def listings(self):
        """For each process that ended: (inode, path) of the files that were there then."""
        with open(os.path.join(self.folder, "seen"), encoding="utf-8") as stream:
            text = stream.read()
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
