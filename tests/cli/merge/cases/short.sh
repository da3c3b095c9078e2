# SPDX-License-Identifier: Apache-2.0
# The text is two screens of 80 columns, in a file, too. --all adds the other tables.
traces=$tests/../../../samples/traces
echo "-- of all traces, too wide or too long:"
python3 - "$merge_program" "$traces"/*.xtr "$traces" "$traces"/h200-ddp "$traces"/h200-ddp-loader "$traces"/h200-idle "$traces"/sim-ranks <<'END'
import subprocess, sys
for trace in sys.argv[2:]:
    for options, columns, lines in ([], 80, range(10, 91)), (["--all"], 210, range(60, 1000)):
        text = subprocess.run([sys.argv[1], "-q", "--no-recover", trace, *options],
                              capture_output=True, check=True, encoding="utf-8").stdout.split("\n")
        if len(text) - 1 not in lines:
            print(trace, *options, len(text) - 1, "lines")
        print(end="".join(f"{trace} {line}\n" for line in text if len(line) > columns))
END
echo "-- several GPUs"
merge -q --no-recover "$traces/h200-ddp-loader"
echo "-- what only --all has"
for options in "" --all; do
	"$merge_program" -q --no-recover "$traces/h200-ddp-loader" $options | sed -n '/^$/{n;s/ (.*//;p}' | sort >titles$options
done
comm -13 titles titles--all
echo "-- another weight"
merge -q --no-recover "$traces/h200-work.xtr" --weight gpu-idle | sed -n '/by frame/,/^$/p'
echo "-- a truncated log, a long command and many warnings"
{
	echo "meta process.cmdline python3$(printf -- '--option=%d' $(seq 30))"
	echo "stack step main step cudaLaunchKernel"
	for i in $(seq 40); do
		echo "call $i 1 cuLaunchKernel step $((i * 10)) 5"
	done
	echo "kernel 1 1 matmul 100 50"
} >script
make_log script cut.xtr <script
truncate -s -50 cut.xtr
merge cut.xtr
echo "-- --hide leaves out no work, so ranks are compared"
merge -q --no-recover "$traces/sim-ranks" --hide load_batch | grep -e '^ran' -e selected -e '^ *rank 2' -e shown
merge -q --no-recover "$traces/sim-ranks" --filter load_batch | grep -e '^ran' -e selected -e '^ *rank 2' -e shown
