# SPDX-License-Identifier: Apache-2.0
"""gdb commands that show the state of the tracer in a recorded process.

Load them with `source tools/gdb/xtrace_gdb.py` in a gdb that runs the process, has attached to it,
or has its core file. The injected library needs debug information. No command changes the process.
"""
import gdb

STATES = {1: "free", 2: "claimed", 3: "inherited"}


def number(value):
    return int(value.cast(gdb.lookup_type("unsigned long")))


def static_variable(file, name):
    """A static variable of a source file of the injected library."""
    try:
        return gdb.parse_and_eval("'%s'::%s" % (file, name))
    except gdb.error as error:
        raise gdb.GdbError("cannot find %s: %s: is libxtrace_inject.so loaded?" % (name, error))


def thread_buffers():
    """Yields (index, thread buffer)."""
    count = number(static_variable("thread_buffer.c", "thread_buffers_reserved"))
    table = static_variable("thread_buffer.c", "thread_buffers")
    pointer = gdb.lookup_type("struct thread_buffer").pointer()
    for index in range(count):
        address = number(table[index])
        if address:
            yield index, gdb.Value(address).cast(pointer).dereference()


def enum_names(enum):
    """The constants of an enum as {value: name}, without their common prefix."""
    fields = gdb.lookup_type("enum " + enum).fields()
    return {field.enumval: field.name for field in fields}


def records_of(buffer):
    """Yields (position, type, bytes, address) of the records that the writer has not consumed."""
    ring, size = buffer["ring"].dereference(), number(buffer["ring"]["data_bytes"])
    head = gdb.lookup_type("struct xt_record").pointer()
    position, end = number(ring["free_pos"]), number(ring["write_pos"])
    while position < end:
        address = number(buffer["data"]) + position % size
        record = gdb.Value(address).cast(head).dereference()
        size_bytes = number(record["bytes"])
        if size_bytes < 4 or size_bytes % 8:
            raise gdb.GdbError("record at %d has an invalid size: %d bytes" % (position, size_bytes))
        yield position, number(record["type"]), size_bytes, address
        position += size_bytes


class XtracePrefix(gdb.Command):
    """Show the state of the tracer in this process."""

    def __init__(self):
        super().__init__("xtrace", gdb.COMMAND_DATA, prefix=True)


class ListBuffers(gdb.Command):
    """List the thread buffers of the process: thread, state, pending bytes and calls."""

    def __init__(self):
        super().__init__("xtrace buffers", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        print("%5s %8s %-9s %10s %10s %9s %9s" %
              ("index", "tid", "state", "pending B", "window B", "calls", "committed"))
        for index, buffer in thread_buffers():
            ring = buffer["ring"].dereference()
            print("%5d %8d %-9s %10d %10d %9d %9d" %
                  (index, number(ring["tid"]), STATES.get(number(buffer["state"]), "?"),
                   number(ring["write_pos"]) - number(ring["free_pos"]), number(buffer["window"]),
                   number(ring["counters"][0]), number(ring["counters"][1])))


class ShowRing(gdb.Command):
    """Show the ring of a thread buffer and its pending records: xtrace ring INDEX [COUNT]"""

    def __init__(self):
        super().__init__("xtrace ring", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        words = argument.split() or ["0"]
        buffer = dict(thread_buffers()).get(int(words[0]))
        if buffer is None:
            raise gdb.GdbError("no thread buffer has the index %s: see xtrace buffers" % words[0])
        ring = buffer["ring"].dereference()
        for name in ("tid", "data_bytes", "write_pos", "free_pos", "open_count"):
            print("%-12s %d" % (name, number(ring[name])))
        for value, name in sorted(enum_names("xt_ring_counter").items()):
            if name != "XT_RING_COUNTERS" and number(ring["counters"][value]):
                print("%-28s %d" % (name, number(ring["counters"][value])))
        types = enum_names("xt_record_type")
        records = list(records_of(buffer))
        shown = records[-int(words[1]):] if len(words) > 1 else records[-16:]
        print("%d pending records, the last %d:" % (len(records), len(shown)))
        for position, kind, size_bytes, address in shown:
            print("  %10d %-24s %5d bytes at %#x" % (position, types.get(kind, kind), size_bytes, address))


class ShowWriter(gdb.Command):
    """Show the state of the writer thread."""

    def __init__(self):
        super().__init__("xtrace writer", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        threads = static_variable("writer_thread.c", "threads")
        for name in ("log", "writer_id", "flusher_id", "begun", "stopping", "finished", "error"):
            print("%-12s %s" % (name, threads[name].format_string(symbols=False)))


for command in (XtracePrefix, ListBuffers, ShowRing, ShowWriter):
    command()
