# SPDX-License-Identifier: Apache-2.0
"""Checks SVG files: reads them as XML and rebuilds the tree from the positions of the frames. If
Chromium is installed, also zooms and searches.
"""

import collections
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree

from reference import expect, expect_same

NAME = "flame.svg"
ARGUMENTS = ("--svg", NAME)
SVG = "{http://www.w3.org/2000/svg}"
MIN_PARTS = 20000
SLACK = 0.002

Frame = collections.namedtuple("Frame", "name depth value x end y")


def read_frame(group):
    rect = group.find(f"{SVG}rect")
    x, width = float(rect.get("x")), float(rect.get("width"))
    title = group.find(f"{SVG}title").text
    value = re.search(r"\(([\d,]+) ns\)$", title.split("\n")[1])
    expect(value and int(value[1].replace(",", "")) == int(group.get("data-value")), title)
    return Frame(title.split("\n")[0], int(group.get("data-depth")), int(group.get("data-value")),
                 x, x + width, float(rect.get("y")))


def check(reference, folder, args):
    root = xml.etree.ElementTree.parse(folder / NAME).getroot()
    expect(root.tag == f"{SVG}svg", root.tag)
    frames = [read_frame(g) for g in root.iter(f"{SVG}g")]
    allowed = {f"{SVG}{tag}" for tag in ("svg", "title", "style", "text", "g", "rect", "script")}
    expect({element.tag for element in root.iter()} <= allowed, "unexpected elements")
    total = reference.total()
    expect(frames[0].name == "all" and frames[0].value == total, "the whole is", frames[0])
    wanted = collections.Counter()
    for path, value in reference.folded().items():
        for depth in range(1, len(path) + 1):
            wanted[path[:depth]] += value
    found = paths_of(frames)
    wide = {path: value for path, value in wanted.items()
            if value and all(wanted[path[:d]] >= total // MIN_PARTS
                             for d in range(1, len(path) + 1))}
    expect_same(found, wide, "frames")
    check_in_browser(folder / NAME, frames, wanted, total)


def paths_of(frames):
    """Value by path: a frame's caller is the one below it."""
    paths, rows = {frames[0]: ()}, collections.defaultdict(list)
    for frame in frames:
        rows[frame.depth].append(frame)
    for depth in sorted(rows)[1:]:
        for frame in rows[depth]:
            below = [f for f in rows[depth - 1]
                     if f.x <= frame.x + SLACK and frame.end <= f.end + SLACK and f in paths]
            expect(len(below) >= 1 and below[0].y > frame.y, "nothing below", frame)
            # At the border of two frames, a very narrow frame may overlap both.
            caller = max(below, key=lambda f: min(f.end, frame.end) - max(f.x, frame.x))
            paths[frame] = paths[caller] + (frame.name,)
    found = collections.Counter()
    for frame, path in paths.items():
        if path:
            found[path] += frame.value
    return found


PAGE = """<!doctype html><meta charset="utf-8"><body>%s<script>
const svg = document.querySelector("svg"), out = {};
const shown = () => [...svg.querySelectorAll(".frame")].filter((f) => f.style.display !== "none");
svg.flame.search(%s);
out.details = svg.getElementById("details").textContent;
out.matches = svg.querySelectorAll(".match").length;
svg.flame.search("");
const inner = [...svg.querySelectorAll(".frame")].find((f) => f.dataset.depth === "1");
inner.dispatchEvent(new MouseEvent("click", { bubbles: true }));
out.width = Number(inner.querySelector("rect").getAttribute("width"));
out.zoomed = shown().length;
out.is_marked = document.querySelectorAll("b, img, script").length;
document.title = JSON.stringify(out);
</script>"""


def check_in_browser(path, frames, wanted, total):
    chromium = shutil.which("chromium")
    inner = [f for f in frames if f.depth == 1]
    if not chromium or not inner:
        return
    text = path.read_text(encoding="utf-8")
    name = inner[0].name
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        page.write_text(PAGE % (text[text.index("<svg"):], json.dumps("^" + re.escape(name) + "$")),
                        encoding="utf-8")
        done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu",
                               f"--user-data-dir={folder}/user", "--dump-dom", page.as_uri()],
                              capture_output=True, text=True, encoding="utf-8", timeout=60)
    title = re.search(r"<title>(\{.*?\})</title>", done.stdout)
    expect(title, "the page did not run:", done.stderr[-500:])
    out = json.loads(title[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
    matches = [f for f in frames if f.depth and f.name == name]
    expect(out["matches"] == len(matches), out)
    expect(abs(out["width"] - 1180) < 0.1 and 0 < out["zoomed"] <= len(frames), out)
    expect(out["is_marked"] == 2, "a name became markup:", out)
    # The total of a name at any depth, counted once per path.
    share = sum(value for p, value in wanted.items() if p[-1] == name and name not in p[:-1])
    percent = float(re.search(r"([\d.]+) %$", out["details"])[1])
    expect(abs(percent - 100 * share / total) < 0.1, percent, "% match, wanted", share / total)
