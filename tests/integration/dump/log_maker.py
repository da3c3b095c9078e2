# SPDX-License-Identifier: Apache-2.0
"""Makes xtrace logs and spools for tests, byte by byte as docs/LOG_FORMAT.md says.

It shares nothing with the tracer, the merger or the dumper, and it can make wrong ones as well.
"""

import ctypes
import struct

UVAR, DELTA, CONST, BYTES, LIST = 1, 2, 3, 4, 5
META, ACCOUNT, CLOCK, THREAD, MODULE, MODULE_UNLOAD, STRING, STACK = range(1, 9)
API, CALL, STREAM, SHAPE, KERNEL, SYMBOL, END = range(9, 16)

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


def column(number, encoding, data, zero=0):
    return struct.pack("<BBHI", number, encoding, zero, len(data)) + data


def encode(number, encoding, values):
    """A whole column of these values."""
    if encoding == UVAR:
        return column(number, UVAR, uvar(values))
    if encoding == DELTA:
        return column(number, DELTA, delta(values))
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


def log_header(major=1, minor=0, order=0x01020304, header_bytes=64, pid=4711, start=1000,
               realtime=1700000000000000000, clock=1, log_id=0x0123456789ABCDEF, zero=0):
    head = b"\x89XTRLOG\n" + struct.pack("<HHIIIQQIIQI", major, minor, order, header_bytes, pid,
                                         start, realtime, clock, zero, log_id, zero)
    return head + struct.pack("<I", fnv1a(head))


class LogMaker:
    """Collects chunks; `data` is the log so far and `places` says where each chunk begins."""

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
        """Named counters; `__` in a name stands for a dot."""
        names = [name.replace("__", ".").encode() for name in values]
        return self.table(ACCOUNT, (1, BYTES, names), (2, UVAR, list(values.values())))

    def end(self):
        return self.chunk(END, 0)

    def bytes(self, data):
        self.data += data
        return self


def spool(areas, size, count=None, version=1, order=0x01020304, log_id=0x0123456789ABCDEF):
    """A spool of `size` bytes; areas are tuples of offset, bytes and kind."""
    data = b"\x89XTRSPL\n" + struct.pack("<IIQIIII", version, order, log_id, 4711,
                                         len(areas) if count is None else count, 28, 0)
    data += b"".join(struct.pack("<QQII", *area, 0) for area in areas)
    return data.ljust(40 + 4096 * 24, b"\0").ljust(size, b"\0")[:size]
