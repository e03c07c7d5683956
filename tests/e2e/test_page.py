#!/usr/bin/env python3
"""The page in a browser: filters, numbers against the export, files of figures, phone, dark, paper.

$PRONY is the program, $REPORT_STORE fills a store with the runs of tests/unit/report_fixture.c. Without
Chromium the test is skipped (77).
"""
import csv
import io
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import browser

PRONY = os.environ.get("PRONY", "build/prony")
REPORT_STORE = os.environ.get("REPORT_STORE", "build/tests/report_store")
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
# What a reader sees of an element.
SHOWN = "(e => e.getClientRects().length > 0)"


def nanoseconds(text):
    value, unit = text.split()
    return float(value) * UNITS[unit]


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="prony-page-")
        store, cls.page = os.path.join(cls.folder, "store.db"), os.path.join(cls.folder, "page.html")
        subprocess.run([REPORT_STORE, store, "4"], check=True, timeout=240)
        cls.store = store
        subprocess.run([PRONY, "report", "1", "--store", store, "-o", cls.page], check=True,
                       capture_output=True, timeout=240)
        cells = subprocess.run([PRONY, "export", "1", "--store", store, "--layout", "cells"],
                               check=True, capture_output=True, text=True, timeout=240).stdout
        cls.cells = list(csv.DictReader(io.StringIO(cells)))
        cls.browser = browser.Browser(browser.find())

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.browser.errors.clear()
        self.browser.requests.clear()

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])
        strangers = [url for url in self.browser.requests
                     if not url.startswith(("file://" + self.folder, "data:", "blob:", "about:"))]
        self.assertEqual(strangers, [])

    def texts(self, selector):
        return self.browser.run(f"[...document.querySelectorAll({selector!r})].filter({SHOWN})"
                                ".map(e => e.textContent)")

    def tick(self, axis, value):
        self.assertTrue(self.browser.run(
            f"(box => {{ box.click(); return true; }})(document.querySelector("
            f"'fieldset[data-axis={axis}] input[value=\"{value}\"]'))"))

    def test_numbers(self):
        """Every ranked cell of the export stands in its section's table with its numbers."""
        self.browser.open(self.page)
        found = 0
        for cell in self.cells:
            rows = self.browser.run(
                "[...document.querySelectorAll('section[id^=comparison] tr[data-framework=\"%s\"]"
                "[data-stage=\"%s\"]')].map(row => [...row.cells].map(cell => cell.textContent))"
                % (cell["framework"], cell["stage"]))
            if cell["status"] == "missing":
                self.assertEqual(rows, [])
                continue
            row = rows[0]
            self.assertEqual(row[1:4], [cell["framework"], cell["version"], row[3]])
            self.assertEqual(row[0].rstrip("="), cell["rank"] or "-")
            self.assertEqual(row[3].split()[0], cell["status"])
            if not cell["rank"]:
                continue
            found += 1
            step = float(cell["step_center_ns"])
            self.assertAlmostEqual(nanoseconds(row[4]) / step, 1, delta=0.005)
            low, high = map(nanoseconds, row[5].split(" to "))
            self.assertAlmostEqual(low / float(cell["step_low_ns"]), 1, delta=0.005)
            self.assertAlmostEqual(high / float(cell["step_high_ns"]), 1, delta=0.005)
            self.assertAlmostEqual(float(row[6].split()[0]) / float(cell["samples_per_second"]), 1, delta=0.005)
            self.assertIn(" " + cell["framework"], self.texts("#overview th[data-framework]"))
        self.assertEqual(found, 6)

    def test_marks_have_their_places(self):
        """The marks of the first figure are where the ratios of the export say, the least ratio first."""
        self.browser.open(self.page)
        rows = self.browser.run(
            "[...document.querySelectorAll('#ratio-to-native .wide-only g.row[data-stage=forward]')]"
            ".filter(row => row.dataset.framework).map(row => { let box = row.querySelector('.fm').getBBox();"
            "return [row.dataset.framework, box.x + box.width / 2]; })")
        ratios = {cell["framework"]: float(cell["floor_ratio"]) for cell in self.cells
                  if cell["stage"] == "forward" and cell["rank"]}
        self.assertEqual([name for name, _ in rows], sorted(ratios, key=ratios.get))
        at, last = dict(rows), rows[-1][0]
        pixels = (at[last] - at["native"]) / math.log(ratios[last])
        for name, ratio in ratios.items():
            self.assertAlmostEqual(at[name] - at["native"], pixels * math.log(ratio), delta=0.2)

    def test_matrix_is_sorted_by_a_click(self):
        """Click and keyboard sort by a column, both ways; the mean stays below."""
        store = os.path.join(self.folder, "matrix.db")
        subprocess.run([PRONY, "run", "-f", "fake,native", "-n", "mlp", "-d", "mnist-3000", "-b", "4,8,16", "-s",
                        "forward", "--quick", "--steps", "3", "--warm-up", "1", "--repeat", "3", "--store", store],
                       check=True, capture_output=True, timeout=240)
        page = self.page_of("matrix.html", "report", "--store", store, "-o")
        self.browser.open(page)
        self.assertEqual(self.browser.run("document.querySelector('main > section').id"), "summary")
        values = "[...document.querySelectorAll('#overview tbody tr')].map(row => row.cells[%d].dataset.value)"
        names = self.texts("#overview tbody th")
        column = self.texts("#overview thead th").index(" fake")
        self.browser.run(f"document.querySelectorAll('#overview thead button')[{column}].focus()")
        self.browser.press("Enter")
        if not self.texts("#overview th[aria-sort]"):  # some versions do not click for a key that is sent
            self.browser.run("document.activeElement.click()")
        ordered = [float(value) for value in self.browser.run(values % column)]
        self.assertEqual(ordered, sorted(ordered))
        self.assertEqual(self.browser.run("document.querySelector('#overview [aria-sort]').ariaSort"), "ascending")
        self.browser.run("document.activeElement.click()")
        self.assertEqual([float(value) for value in self.browser.run(values % column)], ordered[::-1])
        self.browser.run("document.querySelector('#overview thead button').click()")
        self.assertEqual(self.texts("#overview tbody th"), names)
        mean = self.browser.run(f"document.querySelector('#overview tfoot tr').cells[{column}].dataset.value")
        self.assertAlmostEqual(float(mean), math.prod(ordered) ** (1 / 3), delta=1e-4 * float(mean))
        # The curves show all batches; what belongs to one is folded, and a link unfolds it.
        self.assertEqual((len(self.texts("details.fold")), len(self.texts("details.fold[open]"))), (3, 0))
        self.browser.run("document.querySelector('#overview tbody a').click()")
        self.assertEqual(len(self.texts("details.fold[open] h2")), 1)

    def test_filters(self):
        self.browser.open(self.page)
        figure = "figure[id^=memory][id*=forward] .wide-only "
        height = f"document.querySelector('{figure}svg').getBoundingClientRect().height"
        before = self.browser.run(height)
        self.assertIn("mxnet", " ".join(self.texts("#overview th")))
        self.tick("framework", "mxnet")
        self.assertNotIn("mxnet", " ".join(self.texts("#overview th")))
        self.assertNotIn("mxnet", " ".join(self.texts(figure + "g.row")))
        self.assertNotIn("mxnet", " ".join(self.texts("#frameworks td.strong")))
        self.assertEqual(len(self.texts(figure + "g.row")), 3)
        self.assertLess(self.browser.run(height), before)
        # Nothing overlaps: each row stands below the one before.
        tops = self.browser.run(f"[...document.querySelectorAll('{figure}g.row')].filter({SHOWN})"
                                ".map(row => row.querySelector('rect').getBoundingClientRect().top)")
        self.assertEqual(tops, sorted(set(tops)))
        self.tick("stage", "forward")
        self.assertEqual(len(self.texts("section[id^=comparison]")), 1)
        self.tick("status", "unsupported")
        self.assertNotIn("unsupported", " ".join(self.texts("section[id^=comparison] tr")))
        self.browser.run("document.querySelector('[data-action=all]').click()")
        self.assertEqual(len(self.texts("section[id^=comparison]")), 2)
        self.assertEqual(self.browser.run(height), before)

    def test_filters_in_the_address(self):
        """The address of a filtered page shows it filtered again; "back" undoes the last box."""
        figure, mxnet = "figure[id^=step-time][id*=forward] .wide-only g.row", "fieldset input[value=mxnet]"
        settled = "new Promise(done => setTimeout(() => done(location.hash), 100))"
        self.browser.open(self.page)
        self.tick("framework", "mxnet")
        self.tick("stage", "train")
        self.assertEqual(self.browser.run(settled), "#?framework=mxnet&stage=train")
        self.browser.run("document.querySelector('nav a[href=\"#parity\"]').click()")
        self.assertEqual(self.browser.run(settled), "#parity?framework=mxnet&stage=train")
        self.assertLess(abs(self.browser.run("document.querySelector('#parity').getBoundingClientRect().top")), 1)
        for _ in range(2):
            self.browser.run("history.back()")
            self.browser.run(settled)
        self.assertEqual(len(self.texts("section[id^=comparison]")), 2)
        sent = shutil.copy(self.page, os.path.join(self.folder, "sent.html"))
        self.browser.open(sent + "#environment?framework=mxnet&stage=train")
        self.assertFalse(self.browser.run(f"document.querySelector('{mxnet}').checked"))
        self.assertEqual(len(self.texts("section[id^=comparison]")), 1)
        self.assertNotIn("mxnet", " ".join(self.texts(figure)))
        self.assertTrue(self.texts("#environment table"), "a folded part that the address names is open")

    def page_of(self, name, *words):
        page = os.path.join(self.folder, name)
        subprocess.run([PRONY, *words, page], check=True, capture_output=True, timeout=240)
        return page

    def test_contents(self):
        """Each section is linked once, in its order, the first for those of a kind; each link leads to one."""
        self.browser.open(self.page_of("second.html", "report", "3", "--store", self.store, "-o"))
        linked = self.browser.run("[...document.querySelectorAll('nav a')].map(a => a.getAttribute('href').slice(1))")
        sections = self.browser.run("[...document.querySelectorAll('main > section')].map(s => s.id)")
        firsts = {}
        for section in sections:
            firsts.setdefault(re.sub(r"-\d+$", "", section), section)
        self.assertEqual(linked, list(firsts.values()))
        self.assertLessEqual({"drift", "history"}, set(linked))
        self.assertNotIn("devices", linked, "no price of this machine is known")

    def test_history(self):
        """Of the same machine's earlier run, in the third of four; the first has none before it."""
        self.browser.open(self.page)
        self.assertEqual(self.texts("#history"), [])
        self.browser.open(self.page_of("third.html", "report", "3", "--store", self.store, "-o"))
        points = list(csv.DictReader(io.StringIO(self.browser.run(
            "document.querySelector('#history figure[id*=forward]').dataset.csv"))))
        steps = {cell["framework"]: cell["step_center_ns"] for cell in self.cells
                 if cell["stage"] == "forward" and cell["rank"]}
        self.assertLessEqual(set(steps), {point["series"] for point in points})
        for name, step in steps.items():
            self.assertEqual([(point["run"], point["step_center_ns"]) for point in points if point["series"] == name],
                             [("1", step), ("3", step)])
        self.assertIn("2 runs, 0 changes", " ".join(self.texts("#history td")))
        self.tick("framework", "mxnet")
        self.assertNotIn("mxnet", " ".join(self.texts("#history td")))
        self.tick("stage", "forward")
        self.assertEqual(self.texts("#history figure[id*=forward]"), [])

    def test_filters_of_what_varies(self):
        """Input, synchronisation, optimiser and loop have boxes where cells differ in them, and else none."""
        self.browser.open(self.page)
        for axis in ("input", "sync", "optimiser", "loop"):
            self.assertEqual(self.texts(f"fieldset[data-axis={axis}]"), [])
        store = os.path.join(self.folder, "inputs.db")
        subprocess.run([PRONY, "run", "-f", "null", "-n", "mlp", "-d", "mnist-3000", "-b", "8", "--input",
                        "resident,stream", "--sync", "blocks,step", "--optimiser", "sgd,momentum", "--quick", "--steps", "3",
                        "--warm-up", "1", "--repeat", "1", "--store", store], check=True, capture_output=True,
                       timeout=240)
        self.browser.open(self.page_of("inputs.html", "report", "--store", store, "-o"))
        sections = len(self.texts("section[id^=comparison]"))
        self.assertEqual(sections, 8)
        for axis, value in (("input", "stream"), ("sync", "step"), ("optimiser", "sgd")):
            self.tick(axis, value)
            sections //= 2
            self.assertEqual(len(self.texts("section[id^=comparison]")), sections)

    def test_filters_of_what_does_not_apply(self):
        """Inference has no optimiser: no box of one hides it. Curves go with what they are of."""
        store = os.path.join(self.folder, "optimisers.db")
        subprocess.run([PRONY, "run", "-f", "fake", "-n", "mlp", "-d", "mnist-3000", "-b", "4,8", "-s",
                        "forward,train", "--optimiser", "sgd,momentum", "--quick", "--steps", "3", "--warm-up", "1",
                        "--repeat", "1", "--store", store], check=True, capture_output=True, timeout=240)
        self.browser.open(self.page_of("optimisers.html", "report", "--store", store, "-o"))
        curves, sections = "section[id^=sweep]", "section[id^=comparison]"
        self.assertEqual((len(self.texts(curves)), len(self.texts(sections))), (3, 6))
        self.tick("optimiser", "sgd")
        self.assertEqual((len(self.texts(curves)), len(self.texts(sections))), (2, 4))
        self.tick("optimiser", "momentum")
        self.assertEqual((len(self.texts(curves)), len(self.texts(sections))), (1, 2))
        self.assertIn("forward", " ".join(self.texts(curves + " h2")))
        self.tick("batch", "4")
        self.assertEqual((len(self.texts(curves)), len(self.texts(sections))), (1, 1))
        self.tick("stage", "forward")
        self.assertEqual(self.texts(f"{curves}, {sections}"), [])

    def test_files_of_figures(self):
        """Each button gives a file: caught where it would be saved."""
        self.browser.open(self.page)
        self.browser.run("""
            window.saved = {}; window.open_ = 0;
            HTMLAnchorElement.prototype.click = function () {
              var name = this.download;
              open_++;
              fetched(this.href).then(function (text) { saved[name] = text; open_--; });
            };
            var blobs = {}, make = URL.createObjectURL;
            URL.createObjectURL = function (blob) {
              var url = make.call(URL, blob); blobs[url] = blob; return url; };
            function fetched(url) {
              return blobs[url].arrayBuffer().then(function (bytes) {
                return String.fromCharCode.apply(null, new Uint8Array(bytes)); }); }
            document.querySelectorAll('#ratio-to-native button')
              .forEach(function (button) { button.click(); });""")
        saved = self.browser.run("""new Promise(function (done) { (function wait() {
            if (Object.keys(saved).length === 3) done(saved); else setTimeout(wait, 20); })(); })""")
        name = next(iter(saved)).rsplit(".", 1)[0]
        self.assertEqual(sorted(saved), [name + ".csv", name + ".png", name + ".svg"])
        self.assertTrue(saved[name + ".png"].startswith("\x89PNG"))
        self.assertIn("<svg", saved[name + ".svg"])
        rows = {row["row"]: row["floor_ratio"] for row in csv.DictReader(io.StringIO(saved[name + ".csv"]))}
        self.assertEqual({label: ratio for label, ratio in rows.items() if label.startswith("forward: ")},
                         {"forward: " + cell["framework"]: cell["floor_ratio"] for cell in self.cells
                          if cell["stage"] == "forward" and cell["rank"]})

    def test_keyboard_and_numbers_behind(self):
        self.browser.open(self.page)
        focused = []
        for _ in range(20):
            self.browser.press("Tab")
            focused.append(self.browser.run("document.activeElement.outerHTML.slice(0, 200)"))
        self.assertIn("skip", focused[0])
        self.assertTrue(any('type="checkbox"' in what for what in focused))
        self.browser.run("document.querySelector('#ratio-to-native summary').focus()")
        self.browser.press("Enter")
        self.browser.run("new Promise(done => setTimeout(done, 200))")
        if not self.texts("#ratio-to-native details td"):
            self.browser.run("document.querySelector('#ratio-to-native details').open = true")
            self.browser.run("new Promise(done => setTimeout(done, 200))")
        self.assertIn("forward: native", self.texts("#ratio-to-native details td"))
        unnamed = self.browser.run("[...document.querySelectorAll('svg')]"
                                   ".filter(svg => !svg.getAttribute('aria-label')).length")
        self.assertEqual(unnamed, 0)

    def test_phone(self):
        """At 390 pixels nothing of a figure is cut off, and its letters stay readable."""
        for width in (390, 500):
            self.browser.open(self.page, width=width, height=800)
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
            outside = self.browser.run(
                "[...document.querySelectorAll('figure svg')].filter(%s).filter(svg => "
                "[...svg.querySelectorAll('rect, text, line')].some(part => "
                "part.getBoundingClientRect().right > innerWidth + 0.5)).length" % SHOWN)
            self.assertEqual(outside, 0)
            smallest = self.browser.run(
                "Math.min(...[...document.querySelectorAll('figure svg')].filter(%s).map(svg => "
                "12 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width))" % SHOWN)
            self.assertGreater(smallest, 10)

    def test_dark_and_paper(self):
        ground = "getComputedStyle(document.body).backgroundColor"
        letters = "getComputedStyle(document.querySelector('svg .ft')).fill"
        self.browser.open(self.page, dark=True)
        self.assertEqual(self.browser.run(ground), "rgb(20, 23, 27)")
        self.assertEqual(self.browser.run(letters), "rgb(230, 233, 237)")
        self.browser.run("document.querySelector('[data-action=theme]').click()")
        self.assertEqual(self.browser.run(ground), "rgb(255, 255, 255)")
        self.browser.open(self.page, dark=True, media="print")
        self.assertEqual(self.browser.run(ground), "rgb(255, 255, 255)")
        self.assertEqual(self.texts("form.filters, .tools"), [])
        letters = "parseFloat(getComputedStyle(document.querySelector('%s')).fontSize)"
        self.assertLess(self.browser.run(letters % "#overview td"), self.browser.run(letters % "body"))
        paper = self.browser.paper()
        self.assertTrue(paper.startswith(b"%PDF"))
        self.assertGreaterEqual(len(re.findall(rb"/Type\s*/Page\b", paper)), 2)


if __name__ == "__main__":
    if not browser.find():
        print("skipped: no Chromium here (Debian package chromium, or $CHROMIUM names one)")
        sys.exit(77)
    unittest.main(verbosity=2)
