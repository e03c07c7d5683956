"""Records a program on a terminal: each change of the screen with its time. A helper of tests."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time


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
