# SPDX-License-Identifier: Apache-2.0
# Code that torch.compile generated: PyTorch's structured logs and comments name its source lines.
hash=$(printf 'x%.0s' $(seq 49))
forward=$PWD/ab/cab$hash.py
backward=$PWD/cd/ccd$hash.py
old=$PWD/ef/cef$hash.py
# Returns a stack trace of two lines, as a part of a JSON text.
trace() {
	printf '  File \\"/m/model.py\\", line %d, in forward\\n    x\\n  File \\"/m/model.py\\", line %d, in %s\\n    y\\n' "$@"
}
header() {
	printf 'V1123 10:00:00.000000 %s torch/x.py:1] %s\n' "$1" "$2"
}
code() {
	header "$1" "{\"inductor_output_code\": {\"file_path\": \"$2\"}, \"has_payload\": \"0\"}"
	sed 's/^/\t/' "$3"
}
traces() {
	header "$1" '{"artifact": {"name": "inductor_provenance_tracking_kernel_stack_traces"}, "has_payload": "0"}'
	printf '\t%s\n' "$2"
}
make_log script one.xtr <<-END
	stack fused py:/m/train.py:5:main py:$forward:4:Runner.call Launch
	stack addmm py:/m/train.py:5:main py:$forward:7:Runner.call Launch
	stack other py:/m/train.py:5:main py:$forward:8:Runner.call Launch
	stack outer py:/m/train.py:5:main py:$forward:9:Runner.call py:$forward:4:partition_0 Launch
	stack back Engine py:$backward:3:Runner.call Launch
	stack replay py:/m/train.py:9:replay Launch
	stack kept py:/m/train.py:6:main py:$old:2:call Launch
	stack gone py:/m/train.py:6:main py:$PWD/gh/cgh$hash.py:2:Runner.call Launch
	stack trial py:/m/train.py:6:main py:$PWD/ij/cij$hash.py:2:call Launch
	call 1 1 cuLaunchKernel fused 10 2
	kernel 1 1 norm 100 1
	call 2 1 cuLaunchKernel addmm 20 2
	kernel 2 1 gemm 200 2
	call 3 1 cuLaunchKernel other 30 2
	kernel 3 1 fill 300 4
	call 4 1 cuLaunchKernel outer 40 2
	kernel 4 1 norm 400 8
	call 5 2 cuLaunchKernel back 50 2
	kernel 5 1 norm_backward 500 16
	node 1 0 fused 55 1
	call 6 1 cuGraphLaunch replay 60 2
	kernel 6 1 norm 600 32 1
	call 7 1 cuLaunchKernel kept 70 2
	kernel 7 1 gelu 700 64
	call 8 1 cuLaunchKernel gone 80 2
	kernel 8 1 gelu 800 128
	call 9 1 cuLaunchKernel trial 90 2
	kernel 9 1 candidate 900 256
	call 10 1 cuLaunchKernel outer 100 2 1
END
mkdir ab cd ef logs
cat >forward.py <<-'END'
	class Runner:
	    # Topologically Sorted Source Nodes: [h, x], Original ATen: [aten.norm]
	    # [Provenance debug handles] k_0:1
	    k_0.run(a)
	    # Topologically Sorted Source Nodes: [up], Original ATen: [aten.addmm]
	    # [Provenance debug handles] extern_kernels.addmm:2
	    extern_kernels.addmm(a)
	    f(a)
	    run_partition(a)
END
cat >backward.py <<-'END'
	class Runner:
	    # [Provenance debug handles] k_0:1
	    k_0.run(a)
END
cat >"$old" <<-'END'
	# Source Nodes: [gelu], Original ATen: [aten.gelu]
	k_0.run(a)
END
first=$(trace 25 13 block)
fused="{\"k_0:1\": [\"$first\", \"$(trace 25 15 block)\", \"$first\"], \"extern_kernels.addmm:2\": [\"$(trace 26 14 block)\"]}"
{
	code 4321 "$forward" forward.py
	traces 4321 "$fused"
	code 4321 "$backward" backward.py
	traces 4321 "{\"k_0:1\": [\"$(trace 25 13 back)\"]}"
} >logs/dedicated_log_torch_trace_good.log
cp one.xtr unchanged.xtr
folded() {
	merge -q "$1" --folded - | sed "s/x\{49\}//g"
}
echo "before:"
folded one.xtr
echo "after:"
merge -q one.xtr --embed-symbols --torch-trace logs
folded one.xtr
merge -q one.xtr --text - --all | grep -o 'source lines of.*'
echo "findings and pprof:"
# Strings of a pprof profile are field 6, with a length of less than 128 here.
for option in --text=text --redact; do
	merge -q one.xtr "$option" --summary out.json --pprof out.pb.gz >/dev/null
	python3 -c 'import gzip, json, sys
place = json.load(open("out.json"))["findings"]["rows"][0]["places"][0]
print(place["function"], place["file"], place["line"])
print(*["  %s %s %s" % (f["function"], f.get("file"), f.get("line")) for f in place["lines"]], sep="\n")
profile = gzip.open("out.pb.gz").read()
for text in sys.argv[1:]:
    print(text, b"\x32%c%s" % (len(text), text.encode()) in profile)' \
		forward block 'block (model.py:13) [fused: model.py:13 model.py:15]' \
		"call (cef$hash.py:2) [gelu]" /m/model.py | sed 's/x\{49\}//g'
done
echo "again:"
cp one.xtr before
merge one.xtr --embed-symbols --torch-trace logs
cmp one.xtr before

# The lines may come after the comments.
cp forward.py "$forward"
cp unchanged.xtr late.xtr
echo "comments:"
merge -q late.xtr --embed-symbols --torch-trace missing
folded late.xtr | grep 'Runner'
echo "lines:"
merge -q late.xtr --embed-symbols --torch-trace logs
folded late.xtr >late
folded one.xtr | diff - late
cp late.xtr before
merge late.xtr --embed-symbols --torch-trace logs
cmp late.xtr before
rm "$forward"

# Damage never makes a wrong line: only the comments of the good file are left.
damaged() {
	rm -rf bad
	mkdir bad
	cp unchanged.xtr "$1.xtr"
	"$1" >bad/dedicated_log_torch_trace_bad.log
	echo "$1:"
	merge -q "$1.xtr" --embed-symbols --torch-trace bad
	folded "$1.xtr" | grep -c 'model.py' || true
}
other_process() {
	code 4322 "$forward" forward.py
	traces 4322 "$fused"
}
other_graph() {
	code 4321 "$forward" forward.py
	traces 4321 "{\"k_0:1\": [\"$first\"]}"
}
truncated() {
	code 4321 "$forward" forward.py
	traces 4321 "$fused" | head -c 300
}
huge() {
	code 4321 "$forward" forward.py
	head -c 17000000 /dev/zero | tr '\0' '['
	echo
	traces 4321 "$(head -c 100000 /dev/zero | tr '\0' '[')"
}
odd_values() {
	code 4321 "$forward" forward.py
	traces 4321 '{"k_0:1": ["  File \"/m/model.py\", line 99999999999, in f\n", 7, null, {}], "extern_kernels.addmm:2": [["x"]]}'
	traces 4321 '"k_0:1"'
	header 4321 '{"inductor_output_code": {"file_path": 3}, "has_payload": "0"}'
	header 99999999999 "{\"inductor_output_code\": {\"file_path\": \"$forward\"}}"
}
for case in other_process other_graph truncated huge odd_values; do
	damaged $case
done
# A name that a trace file may have, but no file that can be read to its end.
rm -rf bad
mkdir -p bad/dedicated_log_torch_trace_folder.log
mkfifo bad/dedicated_log_torch_trace_pipe.log
merge -q unchanged.xtr --embed-symbols --torch-trace bad
merge -q unchanged.xtr --embed-symbols --torch-trace missing
folded unchanged.xtr
