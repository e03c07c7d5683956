"""Reads the *.xplane.pb files of TensorFlow's and XLA's profiler (tsl/profiler/protobuf/xplane.proto). Standard
library only (Python 3.6 or newer)."""
import collections
import os

from errors import WorkerError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types of protobuf

# An event in the plane "/host:CPU". Times in ns from the trace's start; stats: {name: int, float or str}.
Event = collections.namedtuple("Event", "name begin duration thread stats")
# An instruction of a compiled module. called: numbers of the computations that it calls; operands: numbers of
# the instructions whose results it reads.
Instruction = collections.namedtuple("Instruction", "name opcode op_name called number operands parameter")


def varint(data, at):
    """(the unsigned number at `at`, the position after it)."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """Yields (field number, value) of a message; a value is an int or a memoryview of its bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = varint(data, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            value, at = data[at:at + size], at + size
        elif kind == BYTES:
            size, at = varint(data, at)
            if at + size > end:
                raise IndexError("a field of %d bytes in %d" % (size, end - at))
            value, at = data[at:at + size], at + size
        else:
            raise ValueError("a field of kind %d" % kind)
        yield tag >> 3, value


def text(value):
    return bytes(value).decode("utf-8", "replace")


def message(data, **wanted):
    """{name: value} of the fields in `wanted` {name: number}; of a repeated field the last value."""
    found = dict(fields(data))
    return {name: found[number] for name, number in wanted.items() if number in found}


def _names(entries):
    """{id: (name, whole message)} from the entries of a map of metadata."""
    found = {}
    for entry in entries:
        value = message(entry, value=2).get("value", b"")
        row = message(value, id=1, name=2)
        found[row.get("id", 0)] = text(row.get("name", b"")), value
    return found


class _Plane(object):
    def __init__(self, data):
        self.name, self.lines = "", []
        events, stats = [], []
        for number, value in fields(data):
            if number == 2:
                self.name = text(value)
            elif number == 3:
                self.lines.append(value)
            elif number == 4:
                events.append(value)
            elif number == 5:
                stats.append(value)
        self.events, self.stat_names = _names(events), _names(stats)

    def stat(self, data):
        """(name, value) of a stat, whose text may be stored as a reference to a name."""
        key, value = "", None
        for number, field in fields(data):
            if number == 1:
                key = self.stat_names.get(field, ("",))[0]
            elif number in (3, 4):
                value = field
            elif number == 5:
                value = text(field)
            elif number == 6:
                value = field
            elif number == 7:
                value = self.stat_names.get(field, ("",))[0]
        return key, value

    def read(self):
        """Yields the Events of all lines (threads)."""
        for thread, line in enumerate(self.lines):
            at, rows = 0, []
            for number, value in fields(line):
                if number == 3:
                    at = value
                elif number == 4:
                    rows.append(value)
            for row in rows:
                name, offset, duration, stats = "", 0, 0, {}
                for number, value in fields(row):
                    if number == 1:
                        name = self.events.get(value, ("",))[0]
                    elif number == 2:
                        offset = value
                    elif number == 3:
                        duration = value
                    elif number == 4:
                        key, said = self.stat(value)
                        stats[key] = said
                yield Event(name, at + offset // 1000, duration // 1000, thread, stats)


def _numbers(value):
    """The numbers of a repeated field, packed or not."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


def _instruction(data):
    """The Instruction in an HloInstructionProto."""
    row = message(data, name=1, opcode=2, metadata=7, parameter=9, number=35)
    made = message(row.get("metadata", b""), op_name=2)
    called, operands = [], []
    for field, said in fields(data):
        if field == 38:
            called += _numbers(said)
        elif field == 36:
            operands += _numbers(said)
    return Instruction(text(row.get("name", b"")), text(row.get("opcode", b"")), text(made.get("op_name", b"")),
                       called, row.get("number", 0), operands, row.get("parameter", 0))


def _computation(data):
    """(id, [Instruction]) in an HloComputationProto."""
    return (message(data, number=5).get("number", 0),
            [_instruction(value) for place, value in fields(data) if place == 2])


class Module(object):
    """A program that XLA compiled, from an HloModuleProto (xla/service/hlo.proto). instructions: {name:
    Instruction}."""

    def __init__(self, data):
        self.computations = dict(_computation(value) for number, value in fields(data) if number == 3)
        rows = [row for rows in self.computations.values() for row in rows]
        self.instructions = {row.name: row for row in rows}
        self.numbered = {row.number: row for row in rows}
        self.readers = {}
        for row in rows:
            for number in row.operands:
                self.readers.setdefault(number, []).append(row)

    def op_names(self, name):
        """List of str: the names of the operations that an instruction was made from, most important first: its
        own, then those of fused instructions from the last to the first. An instruction that XLA's passes made
        without a name takes the name of its nearest reader, else of its nearest operand."""
        row = self.instructions.get(name)
        if row is None:
            return []
        within = [inner.op_name for number in row.called for inner in self.computations.get(number, [])]
        return ([said for said in [row.op_name] + within[::-1] if said]
                or self._near(row, self._reading) or self._near(row, self._read))

    def _reading(self, row):
        """Yields the readers of a result; for a fusion, first the readers inside it."""
        for reader in self.readers.get(row.number, []):
            place = reader.operands.index(row.number)
            for number in reader.called if reader.opcode == "fusion" else []:
                for inner in self.computations.get(number, []):
                    if inner.opcode == "parameter" and inner.parameter == place:
                        for first in self._reading(inner):
                            yield first
            yield reader

    def _read(self, row):
        return (self.numbered[number] for number in row.operands if number in self.numbered)

    def _near(self, row, following):
        """[name] of the nearest instruction that has a name, or []."""
        met, waiting = {row.number}, collections.deque(following(row))
        while waiting:
            at = waiting.popleft()
            if at.number in met:
                continue
            met.add(at.number)
            if "/" in at.op_name:  # names of variables, on parameters, have no slash
                return [at.op_name]
            waiting.extend(following(at))
        return []


def _modules(plane):
    """{id of a program: HloModuleProto} from the plane of metadata."""
    found = {}
    for _, whole in plane.events.values():
        for place, stat in fields(whole):
            key, said = plane.stat(stat) if place == 5 else ("", None)
            if key == "Hlo Proto":
                module = message(said, module=1).get("module", b"")
                found[message(module, id=5).get("id", 0)] = module
    return found


def parse(data):
    """([Event], {id of a program: Module}) from the bytes of a file, with the programs that have events."""
    events, modules = [], {}
    try:
        for number, value in fields(memoryview(data)):
            if number == 1:
                plane = _Plane(value)
                if plane.name == "/host:CPU":
                    events.extend(plane.read())
                elif plane.name == "/host:metadata":
                    modules.update(_modules(plane))
        ran = {event.stats["program_id"] for event in events if "program_id" in event.stats}
        return events, {key: Module(modules[key]) for key in ran.intersection(modules)}
    except (IndexError, TypeError, ValueError, AttributeError) as error:
        raise WorkerError("crashed", "the profiler's trace is damaged or of an unknown format: %s" % error)


def read(folder):
    """parse() of the only trace file in a folder and its subfolders."""
    found = []
    for root, _, names in os.walk(folder):
        found += [os.path.join(root, name) for name in names if name.endswith(".xplane.pb")]
    if len(found) != 1:
        raise WorkerError("crashed", "the profiler wrote %d trace files instead of one" % len(found))
    with open(found[0], "rb") as source:
        return parse(source.read())
