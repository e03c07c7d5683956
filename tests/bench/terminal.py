#!/usr/bin/env python3
"""Watches a program on a terminal as a user would, one frame per second, and judges its display.

    tests/bench/terminal.py [--columns N] [--frames FILE] [--] COMMAND...

for example `tests/bench/terminal.py -- build/prony run quickstart`. Prints the longest time without
a change of the screen. Exit status 1 if a second passed without a change. Takes as long as the command.
"""
import argparse
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

# The screen is drawn four times a second; the scheduler of a busy machine is not punctual.
STILL_S = 1.0


class Screen:
    """As much of a terminal as lines of text and ECMA-48's "erase in line" need."""

    def __init__(self):
        self.lines, self.line, self.column, self.rest = [], "", 0, ""

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        while text:
            found = re.match(r"\033\[[0-9;]*[A-Za-z]", text)
            if found:
                if found.group().endswith("K"):
                    self.line = self.line[:self.column]
                text = text[found.end():]
            elif text[0] == "\033" and len(text) < 16:
                self.rest, text = text, ""
            else:
                self.put(text[0])
                text = text[1:]

    def put(self, letter):
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self.lines.append(self.line)
            self.line, self.column = "", 0
        else:
            self.line = self.line[:self.column] + letter + self.line[self.column + 1:]
            self.column += 1


class Recording:
    """The contents of the screen: (seconds, number of lines above, live line) at every change."""

    def __init__(self):
        self.changes, self.seconds, self.code, self.screen = [], 0.0, None, Screen()

    def note(self, now):
        state = (len(self.screen.lines), self.screen.line)
        if not self.changes or self.changes[-1][1:] != state:
            self.changes.append((now, *state))

    def frames(self):
        """The live line once a second."""
        at = 0
        for second in range(int(self.seconds) + 1):
            while at + 1 < len(self.changes) and self.changes[at + 1][0] <= second:
                at += 1
            if self.changes:
                yield second, self.changes[at][2]

    def longest_still(self):
        """(seconds, from when) of the longest time in which nothing changed."""
        times = [0.0] + [change[0] for change in self.changes] + [self.seconds]
        return max((later - earlier, earlier) for earlier, later in zip(times, times[1:]))


def record(command, environment=None, columns=100, act=None, limit=600):
    """Runs the command on a terminal of its own. `act(recording, process)` is called repeatedly."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    begin, recording = time.monotonic(), Recording()
    process = subprocess.Popen(command, env=environment, stdin=slave, stdout=slave, stderr=slave,
                               start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(slave)
    try:
        while True:
            if select.select([master], [], [], 0.05)[0]:
                try:
                    data = os.read(master, 65536)
                except OSError:
                    break  # the last writer has closed it
                if not data:
                    break
                recording.screen.feed(data.decode("utf-8", "replace"))
                recording.note(time.monotonic() - begin)
            if act:
                act(recording, process, master)
            if time.monotonic() - begin > limit:
                process.kill()
    finally:
        os.close(master)
        recording.code = process.wait()
        recording.seconds = time.monotonic() - begin
    return recording


def main():
    parser = argparse.ArgumentParser(description="watches a program on a terminal")
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--frames", help="file that gets a frame a second")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[options.command[:1] == ["--"]:]
    if not command:
        parser.error("name a command: -- build/prony run quickstart")
    recording = record(command, columns=options.columns, limit=86400)
    if options.frames:
        with open(options.frames, "w", encoding="utf-8") as stream:
            for second, line in recording.frames():
                stream.write(f"{second:6d}  {line}\n")
            stream.write("\n" + "\n".join(recording.screen.lines) + "\n")
    still, since = recording.longest_still()
    print(f"{recording.seconds:.1f} s, exit code {recording.code}, {len(recording.changes)} changes")
    print(f"longest without a change: {still:.2f} s, from second {since:.1f} on")
    return 1 if still > STILL_S else 0


if __name__ == "__main__":
    sys.exit(main())
