# SPDX-License-Identifier: Apache-2.0
# On a terminal, tables fit its width and use colours unless NO_COLOR is set. Other outputs do
# neither.
make_log script tree.xtr <<'END'
stack a main run train step forward attention a_function_with_a_long_name cudaLaunchKernel
stack b main run train step backward cudaLaunchKernel
stack c main load cudaMemcpyAsync
call 1 1 cuLaunchKernel a 5 2
kernel 1 1 matmul 10 6000
call 2 1 cuLaunchKernel b 20 2
kernel 2 1 matmul 7000 3000
call 3 1 cuLaunchKernel b 30 2
kernel 3 1 softmax 11000 950
call 4 1 cuMemcpyHtoDAsync_v2 c 40 2
copy 4 1 1:2:3:1 12000 40 64
call 5 1 cuLaunchKernel a 50 2
kernel 5 1 tiny 13000 10
alloc 6 0x1000 600 90 0 3
END
# Shows the program's output on a terminal, with ESC in place of escape characters.
cat >terminal.py <<'END'
import fcntl, os, pty, struct, sys, termios
def on_terminal(columns, *command):
    child, master = pty.fork()
    if not child:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.environ["TERM"] = "xterm"
        os.execv(command[0], command)
    text = b""
    try:
        while piece := os.read(master, 65536):
            text += piece
    except OSError:
        pass
    os.waitpid(child, 0)
    os.close(master)
    return text.decode().replace("\r", "").replace("\x1b", "ESC")
if __name__ == "__main__":
    sys.stdout.write(on_terminal(int(sys.argv[1]), *sys.argv[2:]))
END
on_terminal() {
	columns=$1
	shift
	python3 terminal.py "$columns" "$merge_program" "$@"
}
echo "-- 80 columns"
on_terminal 80 tree.xtr --all
on_terminal 80 tree.xtr --all | sed 's/ESC\[[0-9]*m//g' | awk '{ gsub(/[^ -~]+/, "x"); if (length($0) > 80) print "too wide: " $0 }'
echo "-- 80 columns, Python: the user's own frames are there, and whole"
plain() {
	columns=$1
	shift
	on_terminal "$columns" "$@" | sed 's/ESC\[[0-9]*m//g'
}
traces=$tests/../../../samples/traces
plain 80 --no-recover "$traces/h200-pytorch-work.xtr" --all --top 4 --finding short-kernels=10 | sed -n '/^Findings/,/by kernel/p'
echo "-- 40 columns"
plain 40 --no-recover "$traces/h200-work.xtr" --all --top 2
echo "-- of all traces and widths, too wide, cut or twice:"
python3 - "$merge_program" "$traces"/*.xtr "$traces" "$traces/h200-ddp-loader" "$traces/h200-idle" "$traces/sim-ranks" <<'END'
import os, re, sys
sys.path.insert(0, os.getcwd())
from terminal import on_terminal
def cut_words(text):
    """Only names of functions in call paths are shortened. Elsewhere an ellipsis replaces whole
    words: a word with digits may be a figure, or the number of a rank, process or GPU."""
    section = ""
    for line in text.split("\n"):
        if not line.startswith(" "):
            section = line
        is_path = ";" in line or "by frame" in section
        if not is_path and re.search(r"\w…\w|\d\S*…|…\S*\d", line):
            yield line
for trace in sys.argv[2:]:
    headlines = set()
    for columns in 40, 60, 80, 100, 132, 200:
        text = re.sub(r"ESC\[[0-9]*m", "", on_terminal(columns, sys.argv[1], "-q", "--no-recover", "--all", trace))
        wide = [line for line in text.split("\n") if len(line) > columns]
        cut = list(cut_words(text)) if columns >= 60 else []
        if wide or cut or "\nTrust" not in text:
            print(trace, columns, *wide, *cut, sep="\n")
        # The headline has all of its text in any width.
        headline = text.partition("\n\n")[0]
        headlines.add("".join(headline.split()))
        # Leaves of the tree that read the same are one row. Other rows are different paths: their
        # modules and ranges tell them apart. Indentation tells siblings: narrow terminals have too
        # little of it.
        is_named = trace.endswith(("gpt2.xtr", "pytorch.xtr", "work.xtr", "training.xtr"))
        rows = re.findall(r"^ *[\d.]+ \w+ +[\d.]+ %([ █-▏]*)(.*)$",
                          text.partition("by frame")[2].partition("\n\n")[0], re.M)
        parents, seen = [(-1, 0)], set()
        for number, ((indent, row), after) in enumerate(zip(rows, rows[1:] + [("", "")])):
            while parents[-1][0] >= len(indent):
                parents.pop()
            is_single = is_named or len(after[0]) <= len(indent)
            place = (parents[-1], row, is_single)
            if columns >= 80 and is_single and place in seen:
                print(trace, columns, "twice:", row)
            seen.add(place)
            parents.append((len(indent), number))
    if len(headlines) > 1:
        print(trace, "differs by width:", *headlines, sep="\n")
END
echo "-- 140 columns, no colours"
(
	export NO_COLOR=1
	on_terminal 140 tree.xtr --all --top 3
)
echo "-- no terminal"
merge tree.xtr --weight count --top 1 --all
