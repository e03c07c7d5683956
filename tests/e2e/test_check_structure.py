#!/usr/bin/env python3
"""tools/check-structure finds each kind of violation, at its place, and only that.

    test_check_structure.py SOURCE BUILD

Works on a copy of the tracked files: one violation is planted at a time.
"""
import os
import shutil
import subprocess
import sys
import tempfile

LONG_BODY = "\tputs_nothing();\n" * 101
COPY = "base/planted.c"
# The code of the copy: a small part, with the headers that violations include. What misses something in the
# small tree is found without a violation, too.
CODE = ("base/", "stats/", "draw/", "graph/", "python/errors.py", "store/store.h", "adapters/adapter.h",
        "adapters/native/cpu/onednn.h", "plan/plan.h")

# (check, file, text to append or the whole of a new file, what the message must hold)
PLANTED = [
    ("include", "stats/planted.c", '#include "store/store.h"\n',
     'stats/planted.c:1: stats/ may not include "store/store.h"'),
    ("include", "run/planted.c", '\n#include "adapters/adapter.h"\n',
     'run/planted.c:2: run/ may not include'),
    ("include", "adapters/native/planted.c", '#include "adapters/native/cpu/onednn.h"\n',
     'adapters/native/planted.c:1: adapters/native/ may not include "adapters/native/cpu/onednn.h"'),
    ("include", "adapters/native/lower/planted.c", "#include <oneapi/dnnl/dnnl.h>\n",
     "adapters/native/lower/planted.c:1: only adapters/native/cpu/ may include"),
    ("include", "base/planted.c", '#include "nowhere.h"\n', "base/planted.c:1: \"nowhere.h\" is not a file"),
    ("include", "surprise/planted.c", "int x;\n", "folder 'surprise/' is not in the table"),
    ("include", "base/planted.c", "#include <base/error.h>\n", "write #include \"base/error.h\""),
    ("include", "stats/meson.build", "planted = [store_dep]\n", "stats/ may not use store/"),
    ("words", COPY, "void f(char *a)\n{\n\tstrcpy(a, a);\n}\n", COPY + ":3: strcpy() is banned"),
    ("words", COPY, "int f(char *a)\n{\n\treturn atoi(a);\n}\n", COPY + ":3: atoi() is banned"),
    ("words", COPY, 'void f(void)\n{\n\tprintf("x");\n}\n', COPY + ":3: only cli/output.c prints"),
    ("words", COPY, 'void f(void)\n{\n\tfprintf(stderr, "x");\n}\n', COPY + ":3: only cli/output.c"),
    ("words", COPY, "void f(void)\n{\n\texit(1);\n}\n", COPY + ":3: only cli/output.c"),
    ("words", "cli/planted.c", 'void f(void)\n{\n\tfputs("x", stdout);\n}\n', "cli/planted.c:3: only cli/"),
    ("words", COPY, "typedef struct thing {\n\tint x;\n} thing;\n", COPY + ":1: structs"),
    ("words", COPY, "/* TO" "DO: later */\n", COPY + ":1: unfinished code"),
    ("length", COPY, "int f(void)\n{\n" + LONG_BODY + "\treturn 0;\n}\n", COPY + ":1: f() has 105 lines"),
    ("length", COPY, "int x;\n" * 1001, COPY + ":1: 1001 lines"),
    ("length", "python/planted.py", "def f():\n" + "    pass\n" * 101, "python/planted.py:1: f() has 102"),
    ("places", "docs/planted.md", "see /wo" "rk/main/x\n", "docs/planted.md:1: absolute path"),
    ("places", "docs/planted.md", "\nhttps://py" "pi.org/x\n", "docs/planted.md:2: name of a package registry"),
    ("places", "docs/planted.bin", "\0" * (3 << 20), "docs/planted.bin:1: 3 MiB: too large"),
    ("dependencies", "frameworks/locks/planted.txt", "# version: 1\n", "planted.txt:1: no row of"),
    ("dependencies", "dependencies.tsv", "debian\tx\n", "needs 7 columns"),
    ("header", "base/planted.h", "#pragma once\nstatic inline size_t f(void) { return 0; }\n",
     "base/planted.h:2: does not compile alone"),
    ("format", COPY, "int x;\nint   y;\n", COPY + ":2: not formatted: run clang-format -i"),
    ("through", "datasets/planted.c", '#include "draw/picture.h"\n',
     'datasets/planted.c:1: datasets/ includes "graph/'),
]
# Nothing to find in these, although they look like it.
INNOCENT = [
    ("words", COPY, '/* strcpy(a, b), printf("x") */\nconst char *s = "exit(1) strcat(";\n'),
    ("words", COPY, "typedef enum prony_status verb(int x);\nint snprintf_like(void);\n"),
    ("length", COPY, "static const int table[] = {\n" + "\t1,\n" * 150 + "};\n"),
    ("include", "run/planted.c", '#include "plan/plan.h"\n#include "base/error.h"\n'),
]


def check(source, copy, build, name):
    command = [sys.executable, os.path.join(source, "tools/check-structure"),
               "--root", copy, "--build", build, "--only", name]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def plant(source, copy, build, name, path, text):
    """The check's answer with `text` planted; the copy is as before afterwards."""
    full = os.path.join(copy, path)
    before = None
    if os.path.exists(full):
        with open(full, encoding="utf-8") as stream:
            before = stream.read()
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "a", encoding="utf-8") as stream:
        stream.write(text)
    answer = check(source, copy, build, name)
    if before is None:
        os.remove(full)
    else:
        with open(full, "w", encoding="utf-8") as stream:
            stream.write(before)
    return answer


def copy_tree(source, copy):
    listing = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others",
                              "--exclude-standard"], capture_output=True, text=True, check=True)
    for name in filter(None, listing.stdout.split("\0")):
        if name.startswith(CODE) or name.endswith((".md", ".build", ".tsv", ".txt")):
            target = os.path.join(copy, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(os.path.join(source, name), target)


def main():
    source, build = sys.argv[1:]
    failed = number = 0
    with tempfile.TemporaryDirectory() as copy:
        copy_tree(source, copy)
        cases = [(case[:3], 1, case[3]) for case in PLANTED] + [(case, 0, "") for case in INNOCENT]
        clean = {name: check(source, copy, build, name) for name in sorted({c[0][0] for c in cases})}
        print(f"1..{len(cases)}")
        for (name, path, text), added, message in cases:
            number += 1
            if clean[name][1].startswith("# SKIP "):  # it needs a tool that is not here
                print(f"ok {number} {clean[name][1].splitlines()[0]}")
                continue
            status, output = plant(source, copy, build, name, path, text)
            more = len(output.splitlines()) - len(clean[name][1].splitlines())
            good = status in (0, 1) and more == added and message in output
            print(f"{'ok' if good else 'not ok'} {number} - {name}: {message or 'innocent text'}")
            if not good:
                failed += 1
                print("\n".join("# " + line for line in output.splitlines()[-8:]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
