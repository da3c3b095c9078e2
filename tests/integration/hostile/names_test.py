#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that attack an output format do no harm in any format.

One log has each of the names in every place where a log has a text. Another has plain names in
the same places. The structure of an output (tags, tables, keys, lines, cells) must be the same
for both.
"""

import argparse
import csv
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unicodedata
from xml.parsers.expat import ExpatError

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "dump"))
import log_maker as make  # noqa: E402
from log_maker import BYTES, CONST, DELTA, LIST, UVAR  # noqa: E402

HARMFUL = [
    b"@a;b;c 12", b"\"quotes'`", b"back\\slash\\", b"line\nfeed 7", b"tab\there\r", b"\x1b[31mred\x1b[0m",
    b"nul\0inside", b"</script><script>alert(1)</script>", b"<img src=x onerror=alert(1)>",
    b"<!--", b"-->]]>", b"&amp;&#0;&bogus;", b"'\"><svg/onload=alert(1)>", b"javascript:alert(1)",
    b"=cmd|' /C calc'!A0", b"+1+1", b"-2+3", b"@SUM(A1)", b"\t=1", b"\xff\xfe\xfd", b"\xed\xa0\x80",
    b"\xc0\xaf", b"\xe2\x80\xaeright to left", b"\xc2\x9b31m", b"%s%n%d", b"'); DROP TABLE kernels;--",
    b"../../../etc/passwd", b"_ZN5wrongEvvvZZZ", b"_Z" + b"1a" * 200, b"x" * 5000, b"", b" ", b"not\xef\xbf\xbf\xef\xbf\xbexml", b"{\"a\":1}",
]
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


def log_of(names):
    """A log with every name as that of a kernel, a function, a file, a thread, a range and so on."""
    log, count = make.LogMaker(), len(names)
    ids = list(range(1, count + 1))
    plain = [b"process.cwd", b"host.kernel", b"xtrace.version", b"cupti.path", b"cupti.found",
             b"process.cmdline", b"gpu.0.name", b"gpu.0.uuid", b"python.missing", b"python.version",
             b"python.path"]
    log.table(make.META, (1, BYTES, plain), (2, BYTES, (names * 2)[:len(plain)]))
    log.table(make.META, (1, BYTES, names), (2, BYTES, names))
    log.table(make.META, (1, BYTES, [b"process.exe", b"host.name"]), (2, BYTES, [names[7], names[8]]))
    log.table(make.CLOCK, (1, DELTA, [1000]), (2, DELTA, [10 ** 18]))
    log.table(make.THREAD, (1, UVAR, ids), (2, UVAR, [4711 + i for i in ids]), (3, BYTES, names),
              (4, DELTA, [1000] * count))
    log.table(make.MODULE, (1, UVAR, ids), (2, CONST, [1000] * count),
              (3, UVAR, [i << 24 for i in ids]), (4, UVAR, [(i << 24) + 0x10000 for i in ids]),
              (5, UVAR, [i << 24 for i in ids]), (6, BYTES, names), (7, BYTES, [b"\1\2"] * count))
    log.table(make.STRING, (1, UVAR, ids), (2, BYTES, names))
    log.table(make.PYTHON_FRAME, (1, UVAR, ids), (2, UVAR, ids), (3, UVAR, ids), (4, UVAR, ids),
              (5, CONST, [1] * count))
    log.table(make.STACK, (1, UVAR, ids), (2, CONST, [0] * count), (3, CONST, [1500] * count),
              (4, LIST, [[(i << 24) + 0x101, (1 << 24) + 0x201, 0x99] for i in ids]),
              (5, LIST, [[i] for i in ids]), (6, LIST, [[1] for i in ids]))
    launch, copy = 1 << 16 | 307, 1 << 16 | 308
    log.table(make.API, (1, UVAR, [launch, copy]), (2, BYTES, [names[16], names[1]]), (3, UVAR, [1, 3]))
    log.table(make.RANGE, (1, UVAR, [1] * count), (2, UVAR, ids), (3, DELTA, [1400] * count),
              (4, UVAR, ids), (5, UVAR, ids))
    log.table(make.CALL, (1, UVAR, ids), (2, CONST, [launch] * count), (3, UVAR, ids), (4, UVAR, ids),
              (5, DELTA, [2000 + i for i in ids]), (6, CONST, [5] * count),
              (7, UVAR, [i % 2 for i in ids]))
    log.table(make.STREAM, (1, UVAR, [1]), (3, UVAR, [1]), (4, UVAR, [7]))
    log.table(make.SHAPE, (1, UVAR, ids), (2, UVAR, ids), *((c, CONST, [1] * count) for c in range(3, 9)))
    log.table(make.KERNEL, (1, UVAR, ids), (2, CONST, [1] * count), (3, UVAR, ids),
              (4, DELTA, [3000 + 50 * i for i in ids]), (5, UVAR, [7 + i for i in ids]))
    log.table(make.RANGE, (1, UVAR, [2] * count), (2, UVAR, ids), (3, DELTA, [9000] * count))
    log.account(calls__seen=count, calls__written=count, kernels__written=count,
                ranges__seen=2 * count, threads__seen=count)
    log.table(make.ACCOUNT, (1, BYTES, [b"x.lost." + names[8], b"y.lost." + names[5]]),
              (2, UVAR, [1, 2]))
    log.end()
    log.table(make.SYMBOL, (1, UVAR, ids), (2, CONST, [0x100] * count), (3, CONST, [64] * count),
              (4, BYTES, names))
    log.table(make.SOURCE, (1, UVAR, ids), (2, CONST, [0x100] * count), (3, BYTES, names),
              (4, BYTES, names), (5, UVAR, ids))
    return log.end()


def text_of(path):
    """The text is UTF-8 and moves no cursor."""
    with open(path, "rb") as file:
        text = file.read().decode("utf-8")
    found = CONTROL.search(text.replace("\r\n", "\n"))
    assert not found, "control character %r" % text[max(0, found.start() - 40):found.end() + 40]
    return text


def no_lone_surrogates(text):
    for string in re.findall(r'"((?:[^"\\]|\\.)*)"', text):
        json.loads('"%s"' % string).encode("utf-8")


def folded(path):
    """The structure: frames and weights per line."""
    shapes = []
    for line in text_of(path).splitlines():
        stack, weight = line.rsplit(" ", 1)
        assert weight.isdigit(), line
        shapes.append(stack.count(";"))
    return sorted(shapes)


def json_file(path):
    text = text_of(path)
    no_lone_surrogates(text)
    return sorted(json.loads(text))


def html(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name in (b"<script>alert", b"<img src=x", b"onload=alert", b"onerror=alert"):
        assert name.decode() not in text, name
    return len(re.findall("<script", text)), len(re.findall("</script", text)), text.count("<!--")


def tables(path):
    shapes = {}
    for name in sorted(os.listdir(path)):
        text_of(os.path.join(path, name))
        with open(os.path.join(path, name), encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, strict=True))
        for row in rows[1:]:
            for cell in row:
                assert not re.match(r"[=+@\t\r]|-(?!\d+$)", cell), "a formula: %r" % cell
                assert len(row) == len(rows[0]), row
        shapes[name] = rows[0]
    return shapes


def database(path):
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    names = connection.execute("SELECT type, name FROM sqlite_master ORDER BY 1, 2").fetchall()
    for kind, name in names:
        if kind in ("table", "view"):
            for row in connection.execute('SELECT * FROM "%s"' % name):
                for value in row:
                    assert not isinstance(value, bytes), (name, value)
                    assert not isinstance(value, str) or not CONTROL.search(value), (name, value)
    return names


def markdown(path):
    """No name opens HTML, none makes a heading, and none mentions a user."""
    lines = text_of(path).splitlines()
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", "\n".join(lines))
    assert not re.search(r"(?<!\\)<[a-z!/]", outside), "HTML in Markdown"
    assert not re.search(r"(?<!\w)@\w", outside), "a user is mentioned"
    return [line.split(":")[0] for line in lines if line.startswith("#")]


def plain_text(path):
    text = text_of(path)
    bidi = [c for c in text if unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "LRE", "RLI")]
    assert not bidi, "text that runs backwards"
    return True


def packets(path):
    """Texts must be UTF-8. integration.exports reads these files back."""
    with open(path, "rb") as file:
        data = file.read()
    for name in (b"\x1b[31m", b"\xff\xfe\xfd", b"\xed\xa0\x80", b"line\nfeed"):
        assert name not in data, name
    return len(data) > 100


def pprof(path):
    import gzip  # pylint: disable=import-outside-toplevel
    with gzip.open(path) as file:
        data = file.read()
    with open(path + ".raw", "wb") as file:
        file.write(data)
    return packets(path + ".raw")


FORMATS = {"text": plain_text, "brief": markdown, "html": html, "summary": json_file, "profile": json_file, "folded": folded,
           "chrome": json_file, "perfetto": packets, "pprof": pprof, "sqlite": database, "csv": tables}


def merge(args, folder, name, names):
    log = os.path.join(folder, name + ".xtr")
    with open(log, "wb") as file:
        file.write(log_of(names).data)
    help_text = subprocess.run([args.merge, "--help"], capture_output=True, text=True, check=True)
    outputs = [f for f in FORMATS if re.search(r"^ +--%s (FILE|DIR)" % f, help_text.stdout, re.M)]
    known = re.findall(r"^ +--(\w+) (?:FILE|DIR)", help_text.stdout.split("\nOptions")[0], re.M)
    assert set(known) <= set(FORMATS), "a format that this test does not know: %s" % known
    options = [part for f in outputs for part in ("--" + f, os.path.join(folder, name + "." + f))]
    done = subprocess.run([args.merge, log, "--by", "thread", "--lines", "on", *options],
                          capture_output=True, timeout=60, check=False)
    if done.returncode == 2 and b"--html" in done.stderr:
        options = options[:options.index("--html")] + options[options.index("--html") + 2:]
        outputs.remove("html")
        done = subprocess.run([args.merge, log, *options], capture_output=True, timeout=60, check=False)
    assert done.returncode in (0, 1), done.stderr
    path = os.path.join(folder, name + ".stderr")
    with open(path, "wb") as file:
        file.write(done.stderr)
    text_of(path)
    return {f: os.path.join(folder, name + "." + f) for f in outputs}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--merge", required=True)
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="xtrace-names.") as folder:
        harmful = merge(args, folder, "harmful", HARMFUL)
        plain = merge(args, folder, "plain", [b"name%d" % i for i in range(len(HARMFUL))])
        for name, path in harmful.items():
            try:
                found, wanted = FORMATS[name](path), FORMATS[name](plain[name])
                assert found == wanted, "made of %s, with plain names of %s" % (found, wanted)
                print("%s: harmless" % name)
            except (AssertionError, ValueError, sqlite3.Error, ExpatError) as error:
                print("%s: %s" % (name, error))
                wrong += 1
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
