#!/usr/bin/env python3
"""The packages of tools/package, built and used without the source tree. Only where CI=true: each compiles the program anew.

$PRONY_SOURCE names the source tree.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import counted

SOURCE = os.path.abspath(os.environ.get("PRONY_SOURCE", "."))
BUILD_SECONDS = 900
C_LIBRARY = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"}
LOADED_BY_THE_PROGRAM = {"libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1"}  # in its lib/, by its RPATH, for oneDNN


class PackageTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="prony-package-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.folder, "LC_ALL": "C.UTF-8",
                            "PRONY_LOCK": os.path.join(self.folder, "lock")}

    def package(self, kind, pattern):
        subprocess.run([os.path.join(SOURCE, "tools", "package"), kind], check=True, timeout=BUILD_SECONDS,
                       stdout=subprocess.DEVNULL, env={**os.environ, "PRONY_CUDA": "disabled"})
        (found,) = glob.glob(os.path.join(SOURCE, "build", "packages", pattern))
        return found

    def run_here(self, *words):
        done = subprocess.run(words, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def measures(self, program, binary):
        """The program finds suites, networks and data sets beside itself, and measures."""
        with open(binary, "rb") as stream:
            self.assertNotIn(SOURCE.encode(), stream.read())
        self.assertIn("quickstart", self.run_here(program, "list", "suites"))
        self.assertIn("mnist-3000", self.run_here(program, "list", "datasets"))
        self.run_here(program, "run", "-f", "fake", "-n", "lenet", "-d", "mnist-3000", "-b", "8", "-s", "forward",
                      "--steps", "5", "--repeat", "3")
        self.assertIn("samples", self.run_here(program, "show"))

    def test_wheel(self):
        wheel = self.package("wheel", "prony-*.whl")
        python = os.path.join(self.folder, "environment", "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", os.path.dirname(os.path.dirname(python))], check=True)
        self.run_here(python, "-m", "pip", "install", "--quiet", "--no-index", wheel)
        program = os.path.join(os.path.dirname(python), "prony")
        package = self.run_here(python, "-c", "import prony; print(prony.__path__[0])").strip()
        self.measures(program, os.path.join(package, "bin", "prony"))
        self.environment["PATH"] = "/usr/bin:/bin"  # the package finds its own program
        self.assertEqual(self.run_here(python, "-c", "import prony; print(len(prony.processes()))"), "3\n")

    def test_bundle(self):
        """The folder needs nothing of the machine but the C library, and has a framework."""
        archive = self.package("bundle", "prony-*.tar.gz")
        self.assertLess(os.path.getsize(archive), 40e6)
        self.run_here("tar", "-xf", archive)
        (folder,) = glob.glob(os.path.join(self.folder, "prony-*"))
        program = os.path.join(folder, "prony")
        self.measures(program, os.path.join(folder, "bin", "prony"))
        self.assertIn("--prepare", self.run_here(os.path.join(folder, "gpu-check"), "--help"))
        libraries = self.run_here("ldd", os.path.join(folder, "bin", "prony"),
                                  *glob.glob(os.path.join(folder, "share/prony/frameworks/native/*/data/lib/lib*")))
        elsewhere = {line.split()[0] for line in libraries.splitlines() if "=>" in line and "/lib/../" not in line
                     and folder not in line}
        self.assertLessEqual(elsewhere, C_LIBRARY | LOADED_BY_THE_PROGRAM, libraries)
        self.run_here(program, "run", "-f", "native", "-n", "lenet", "-d", "mnist-3000", "-b", "8", "-s", "train",
                      "--steps", "5", "--repeat", "3")

    @unittest.skipUnless(shutil.which("dh"), "no debhelper (Debian: apt install debhelper)")
    def test_deb(self):
        deb = self.package("deb", "prony_*.deb")
        if shutil.which("lintian"):
            self.assertEqual(self.run_here("lintian", "--fail-on", "error,warning", deb), "")
        self.run_here("dpkg-deb", "-x", deb, "root")
        usr = os.path.join(self.folder, "root", "usr")
        self.measures(os.path.join(usr, "bin", "prony"), os.path.join(usr, "bin", "prony"))
        for name in ("man/man1/prony.1.gz", "bash-completion/completions/prony.bash", "zsh/site-functions/_prony",
                     "fish/vendor_completions.d/prony.fish", "doc/prony/copyright", "doc/prony/docs/tutorial.md*"):
            self.assertTrue(glob.glob(os.path.join(usr, "share", name)), name)


if __name__ == "__main__":
    if os.environ.get("CI") != "true":
        print("1..0 # SKIP each package compiles the program anew: CI=true tests them")
        sys.exit(77)
    sys.exit(counted.main())
