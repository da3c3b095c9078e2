# SPDX-License-Identifier: Apache-2.0
"""Makes xtrace logs and crash buffers for tests, byte by byte as docs/internals/LOG_FORMAT.md
describes.

It shares no code with the tracer, the merge or the dumper, and can also make invalid ones.
"""

import ctypes
import struct

UVAR, DELTA, CONST, BYTES, LIST, PLANES, DELTA_PLANES = range(1, 8)
META, ACCOUNT, CLOCK, THREAD, MODULE, MODULE_UNLOAD, STRING, STACK = range(1, 9)
API, CALL, STREAM, SHAPE, KERNEL, SYMBOL, END = range(9, 16)
COPY_SHAPE, COPY, SET, GRAPH_NODE, MEMORY, RANGE, GRAPH_UPDATE, SWITCH = range(16, 24)
PYTHON_FRAME, SOURCE = range(24, 26)
UNKNOWN_KIND = 99
VOID, RING, ACTIVITY, NAMES = range(4)
# The first multiple of 4,096 after the header.
SPOOL_FIRST_AREA = 102400

ZSTD = ctypes.CDLL("libzstd.so.1")
ZSTD_CONTENT_SIZE_FLAG, ZSTD_CHECKSUM_FLAG = 200, 201
ZSTD.ZSTD_createCCtx.restype = ctypes.c_void_p
ZSTD.ZSTD_freeCCtx.argtypes = [ctypes.c_void_p]
ZSTD.ZSTD_CCtx_setParameter.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
ZSTD.ZSTD_compress2.restype = ctypes.c_size_t
ZSTD.ZSTD_compress2.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                ctypes.c_char_p, ctypes.c_size_t]
ZSTD.ZSTD_isError.argtypes = [ctypes.c_size_t]
ZSTD.ZSTD_compressBound.restype = ctypes.c_size_t
ZSTD.ZSTD_compressBound.argtypes = [ctypes.c_size_t]


def fnv1a(data):
    value = 0x811C9DC5
    for byte in data:
        value ^= byte
        value = value * 0x01000193 % (1 << 32)
    return value


def leb(value):
    coded = bytearray()
    while value >= 0x80:
        coded.append(value % 0x80 + 0x80)
        value //= 0x80
    coded.append(value)
    return bytes(coded)


def zigzag(difference):
    difference %= 1 << 64
    if difference >= 1 << 63:
        return 2 * ((1 << 64) - difference) - 1
    return 2 * difference


def uvar(values):
    return b"".join(map(leb, values))


def delta(values):
    coded, before = b"", 0
    for value in values:
        coded += leb(zigzag(value - before))
        before = value
    return coded


def planes(values):
    width = next(width for width in range(1, 9) if max(values, default=0) >> 8 * width == 0)
    return bytes([width]) + b"".join(
        bytes(value >> 8 * plane & 255 for value in values) for plane in range(width))


def delta_planes(values):
    start = values[0] if values else 0
    before = [start] + values[:-1]
    return struct.pack("<Q", start) + planes(
        [zigzag(value - last) for value, last in zip(values, before)])


def column(number, encoding, data, zero=0):
    return struct.pack("<BBHI", number, encoding, zero, len(data)) + data


def encode(number, encoding, values):
    """Encodes a column of these values."""
    if encoding == UVAR:
        return column(number, UVAR, uvar(values))
    if encoding == DELTA:
        return column(number, DELTA, delta(values))
    if encoding == PLANES:
        return column(number, PLANES, planes(values))
    if encoding == DELTA_PLANES:
        return column(number, DELTA_PLANES, delta_planes(values))
    if encoding == CONST:
        assert len(set(values)) == 1
        return column(number, CONST, leb(values[0]))
    if encoding == BYTES:
        return column(number, BYTES, uvar(map(len, values)) + b"".join(values))
    assert encoding == LIST
    return column(number, LIST, uvar(map(len, values)) + delta(sum(map(list, values), [])))


def compress(content, checksum=True, content_size=True):
    context = ZSTD.ZSTD_createCCtx()
    try:
        ZSTD.ZSTD_CCtx_setParameter(context, ZSTD_CHECKSUM_FLAG, int(checksum))
        ZSTD.ZSTD_CCtx_setParameter(context, ZSTD_CONTENT_SIZE_FLAG, int(content_size))
        space = ctypes.create_string_buffer(ZSTD.ZSTD_compressBound(len(content)))
        size = ZSTD.ZSTD_compress2(context, space, len(space), content, len(content))
        assert not ZSTD.ZSTD_isError(size)
        return space.raw[:size]
    finally:
        ZSTD.ZSTD_freeCCtx(context)


def chunk_header(kind, stored, raw, rows, sequence, zero1=0, zero2=0):
    head = b"XTCH" + struct.pack("<HHIIIII", kind, zero1, stored, raw, rows, sequence, zero2)
    return head + struct.pack("<I", fnv1a(head))


def log_header(major=2, minor=4, order=0x01020304, header_bytes=64, pid=4711, start=1000,
               realtime=1700000000000000000, clock=1, log_id=0x0123456789ABCDEF, machine=62, zero=0):
    head = b"\x89XTRLOG\n" + struct.pack("<HHIIIQQIIQI", major, minor, order, header_bytes, pid,
                                         start, realtime, clock, machine, log_id, zero)
    return head + struct.pack("<I", fnv1a(head))


class LogMaker:
    """Collects chunks. `data` is the log so far, `places` has the offset of each chunk."""

    def __init__(self, **header):
        self.data = log_header(**header)
        self.sequence = 0
        self.places = []

    def chunk(self, kind, rows, *columns, sequence=None, frame=None, raw=None, **zeros):
        content = b"".join(columns)
        frame = compress(content) if frame is None else frame
        raw = len(content) if raw is None else raw
        sequence = self.sequence if sequence is None else sequence
        self.places.append(len(self.data))
        self.data += chunk_header(kind, len(frame), raw, rows, sequence, **zeros) + frame
        self.sequence = sequence + 1
        return self

    def table(self, kind, *columns):
        """A chunk of columns given as (number, encoding, values), all of the same length."""
        rows = {len(values) for _, _, values in columns}
        assert len(rows) == 1
        return self.chunk(kind, rows.pop(), *(encode(*column) for column in columns))

    def account(self, **values):
        """Named counters; `__` in a name becomes a dot."""
        names = [name.replace("__", ".").encode() for name in values]
        return self.table(ACCOUNT, (1, BYTES, names), (2, UVAR, list(values.values())))

    def end(self):
        return self.chunk(END, 0)

    def bytes(self, data):
        self.data += data
        return self


def ring_call(api=5, correlation=1, slot=0, enter=100, leave=110, result=0, stated=40, one_in=0):
    return struct.pack("<HHIIIQQiI", 2, stated, api, correlation, slot, enter, leave, result, one_in)


def ring_stack(slot, frames, flags=0, first_seen=90, stated=None, count=None, python=b""):
    stated = 24 + 8 * len(frames) + len(python) if stated is None else stated
    count = len(frames) if count is None else count
    return struct.pack("<HHIIIQ%dQ" % len(frames), 3, stated, slot, count, flags, first_seen,
                       *frames) + python


def ring_modules(*slots):
    """The words after the frames of a stack, from version 6 on."""
    data = struct.pack("<%dH" % len(slots), *slots)
    return data.ljust(-(-len(data) // 8) * 8, b"\0")


def ring_module(slot=1, start=0x1000, end=0x2000, bias=0x800, build_id=b"\x12\xab", path=b"/lib/p.so",
                stated=None):
    text = build_id + path
    room = -(-len(text) // 8) * 8
    return struct.pack("<HHIQQQII", 8, 40 + room if stated is None else stated, slot, start, end,
                       bias, len(build_id), len(path)) + text.ljust(room, b"\xee")


def ring_python(frames, codes, frame_count=None, code_count=None):
    """The Python part of a stack: frames as (line, code, place), codes as (name, file, line)."""
    data = struct.pack("<II", len(frames) if frame_count is None else frame_count,
                       len(codes) if code_count is None else code_count)
    data += b"".join(struct.pack("<IHH", *frame) for frame in frames)
    for name, file, line in codes:
        text = name + file
        data += struct.pack("<IHH", line, len(name), len(file)) + text.ljust(
            -(-len(text) // 8) * 8, b"\0")
    return data


def ring_node(slot=0, node=7, origin=0, time=100, node_type=0, stated=40, graph_exec=0):
    return struct.pack("<HHIQQQII", 4, stated, slot, node, origin, time, node_type, graph_exec)


def ring_skip(correlation=1, stated=8, record_type=6):
    return struct.pack("<HHI", record_type, stated, correlation)


def ring_switch(is_on=0, time=100, stated=16):
    return struct.pack("<HHIQ", 7, stated, is_on, time)


def ring_nvtx(text=b"", slot=0xFFFFFFFF, operation=1, time=100, domain=0, key=0, payload=0,
              payload_type=0, category=0, colour=0, stated=None, text_bytes=None, payload_data=b"",
              payload_bytes=None):
    room = -(-len(text) // 8) * 8
    stated = 64 + room + len(payload_data) if stated is None else stated
    text_bytes = len(text) if text_bytes is None else text_bytes
    return struct.pack("<HHIQQQQIIIIII", 5, stated, slot, time, key, domain, payload, operation,
                       payload_type, category, colour, text_bytes,
                       len(payload_data) if payload_bytes is None else payload_bytes) + \
        text.ljust(room, b"\xee") + payload_data


def ring_padding(size, stated=0):
    return struct.pack("<HH", 1, stated).ljust(size, b"\xee")


def ring(records=b"", free=0, size=4096, thread=1, write=None, data_bytes=None, open_calls=(),
         open_count=None, counters=(), slots=(), modules=(), header_bytes=20480):
    """A ring with these records from its free position on.

    slots has pairs of slot and stack id, modules pairs of slot and module id. open_calls has
    tuples of API, correlation id, slot, enter ns and the tracer's word. From version 4 on the
    header has 135168 bytes.
    """
    header = bytearray(header_bytes)
    struct.pack_into("<IIQQ", header, 0, thread, 4711, 1000,
                     size if data_bytes is None else data_bytes)
    struct.pack_into("<QI", header, 64, free + len(records) if write is None else write,
                     len(open_calls) if open_count is None else open_count)
    for number, (api, correlation, slot, enter, word) in enumerate(open_calls):
        struct.pack_into("<IIIIQ", header, 80 + 24 * number, api, correlation, slot, word, enter)
    struct.pack_into("<%dQ" % len(counters), header, 272, *counters)
    struct.pack_into("<Q", header, 448, free)
    for slot, stack in slots:
        struct.pack_into("<I", header, 512 + 4 * slot, stack)
    for slot, module in modules:
        struct.pack_into("<I", header, 131584 + 4 * slot, module)
    data = bytearray(size)
    for place, byte in enumerate(records, free):
        data[place % size] = byte
    return RING, bytes(header + data)


def activity(state, valid=0, sequence=0, data_bytes=8192):
    header = struct.pack("<IIQQQ", state, 0, data_bytes, valid, sequence).ljust(4096, b"\0")
    return ACTIVITY, header + bytes(8192)


def names(*entries, used=None):
    """An area of names, each as its kind, key and text."""
    data = b"".join(struct.pack("<QII", key, kind, len(text)) + text.ljust(-(-len(text) // 8) * 8,
                                                                         b"\0")
                    for kind, key, text in entries)
    header = struct.pack("<Q", len(data) if used is None else used).ljust(64, b"\0")
    return NAMES, header + data.ljust(8192 - 64, b"\0")


def spool(*areas, directory=(), count=None, version=1, order=0x01020304, wish=0, record_bytes=(),
          modules=(0, 0, 0, 0)):
    """A crash buffer with the given areas, each a kind and content. `directory` replaces entries of
    its directory. It has pairs of an area's number and (offset, bytes, kind, reserved word).
    """
    entries, content, replaced = b"", b"", dict(directory)
    for number, (kind, area) in enumerate(areas):
        entry = (SPOOL_FIRST_AREA + len(content), len(area), kind, 0)
        entries += struct.pack("<QQII", *replaced.get(number, entry))
        content += area.ljust(-(-len(area) // 4096) * 4096, b"\0")
    header = b"\x89XTRSPL\n" + struct.pack("<IIQIIII", version, order, 0x0123456789ABCDEF, 4711,
                                          len(areas) if count is None else count, 28, wish)
    sizes = struct.pack("<64I", *(dict(record_bytes).get(kind, 0) for kind in range(64)))
    sizes += struct.pack("<QHHI", *modules)
    return ((header + entries).ljust(98344, b"\0") + sizes).ljust(SPOOL_FIRST_AREA, b"\0") + content
