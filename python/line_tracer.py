"""Measures the time of each line of Python that a function runs, in the calling thread. Standard library only.

The tracer's own time is subtracted. The interpreter's time for calling the tracer is not (about 0.1 us a
line)."""
import linecache
import sys

TEXT_CHARACTERS = 200


class Function(object):
    """The figures of a code object: calls, ns with and without the functions that it calls, its lines."""

    def __init__(self, code):
        self.code = code
        self.calls = self.total = self.own = self.depth = 0
        self.lines = {}  # number: [hits, ns with called functions, own ns]

    def line(self, number):
        found = self.lines.get(number)
        if found is None:
            found = self.lines[number] = [0, 0, 0]
        return found

    def report(self):
        """The dict that docs/case-bundle.md describes."""
        code = self.code
        return {"name": getattr(code, "co_qualname", code.co_name), "file": code.co_filename,
                "line": code.co_firstlineno, "calls": self.calls, "ns": self.total,
                "self_ns": self.own, "lines": [
                    {"line": number, "hits": hits, "ns": total, "self_ns": own,
                     "text": linecache.getline(code.co_filename, number).rstrip()[:TEXT_CHARACTERS]}
                    for number, (hits, total, own) in sorted(self.lines.items())]}


class Node(object):
    """A node in the tree of calls; `own` is its time without the functions that it calls."""

    def __init__(self, name):
        self.name, self.own, self.children = name, 0, {}

    def stacks(self, above=()):
        """Yields (names, ns) for every node with own time."""
        names = above + (self.name,)
        if self.own:
            yield names, self.own
        for child in self.children.values():
            for found in child.stacks(names):
                yield found


class LineTracer(object):
    """run(function) traces one call of a function; report() returns the result."""

    def __init__(self, now):
        self.now = now
        self.functions, self.roots = {}, {}
        self.total = 0

    def run(self, function):
        """Returns the function's result, and adds its time without the tracer's to `total`."""
        before = sys.gettrace()
        tracer, spent = self.tracer()
        begin = self.now()
        sys.settrace(tracer)
        try:
            return function()
        finally:
            sys.settrace(before)
            self.total += self.now() - begin - spent()

    def report(self):
        """dict of the members total_ns, functions and stacks of a profile."""
        found = sorted(self.functions.values(), key=lambda function: -function.total)
        return {"total_ns": self.total, "functions": [function.report() for function in found],
                "stacks": [{"frames": list(names), "ns": ns} for root in self.roots.values()
                           for names, ns in root.stacks()]}

    def tracer(self):
        """The function for sys.settrace, and a function that returns the tracer's own ns."""
        now, functions, roots = self.now, self.functions, self.roots
        stack = []       # [code, Function, line, begin of the call, begin of the line, Node]
        last = spent = 0  # without the tracer's own time

        def count(at):
            """Counts the time since the last event for the line that ran."""
            nonlocal last
            if stack:
                top = stack[-1]
                top[2][2] += at - last
                top[1].own += at - last
                top[5].own += at - last
            last = at

        def leave(at):
            code, function, line, call_begin, line_begin, _ = stack.pop()
            line[1] += at - line_begin
            function.depth -= 1
            if not function.depth:  # of recursive calls only the outermost counts
                function.total += at - call_begin

        def enter(frame, event, _):
            nonlocal spent
            begin = now()
            at = begin - spent
            count(at)
            code = frame.f_code
            function = functions.get(code)
            if function is None:
                function = functions[code] = Function(code)
            function.calls += 1
            function.depth += 1
            line = function.line(code.co_firstlineno)
            line[0] += 1
            places = stack[-1][5].children if stack else roots
            node = places.get(code)
            if node is None:
                node = places[code] = Node(code.co_name)
            stack.append([code, function, line, at, at, node])
            spent += now() - begin
            return inside

        def inside(frame, event, _):
            nonlocal spent
            begin = now()
            at = begin - spent
            count(at)
            code = frame.f_code
            # Frames that ended without an event.
            while len(stack) > 1 and stack[-1][0] is not code:
                leave(at)
            if event == "line":
                top = stack[-1]
                top[2][1] += at - top[4]
                top[2] = top[1].line(frame.f_lineno)
                top[2][0] += 1
                top[4] = at
            elif event == "return":
                leave(at)
            spent += now() - begin
            return inside

        return enter, lambda: spent
