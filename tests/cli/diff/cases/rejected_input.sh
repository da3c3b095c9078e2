# SPDX-License-Identifier: Apache-2.0
# Report input that cannot be compared. It is never a pass.
make_runs a
make_runs b
base=a1.xtr,a2.xtr,a3.xtr new=b1.xtr,b2.xtr,b3.xtr
try() {
	echo "--- $*"
	diff_runs "$@" | verdict_only
}
try a1.xtr b1.xtr
try a1.xtr nothing.xtr
for run in a1 a2 b1 b2; do profile $run >$run.json; done
sed 's/"driver":""/"driver":"12040"/' b2.json >driver.json
sed 's/"name":"chat","command"/"name":"other","command"/' b1.json >program.json
sed 's/"devices":\[/"devices":[{"device":1,"name":"another GPU","uuid":""},/' b2.json >device.json
sed 's/"version":2/"version":3/' b1.json >newer.json
sed 's/"nodes":\[[^]]*\]/"nodes":[7,7]/' b1.json | tr -d '\n' >broken.json
tr -d '\n' <b1.json | sed 's/"nodes":\[[^]]*\]/"nodes":[7,7]/' >broken.json
sed 's/"found_count":[0-9]*/"found_count":720/' b2.json >layers.json
echo '{"format": "something"}' >other.json
head -c 500 b1.json >cut.json
echo text >text
try a1.json,a2.json b1.json,driver.json
try a1.json,a2.json b1.json,driver.json --allow-different
try a1.json,a2.json program.json,device.json
try a1.json,a2.json b1.json,layers.json
for bad in newer broken other cut; do try a1.json,a2.json b1.json,$bad.json; done
try a1.json text
# Reject the same run twice, and a single run, which shows no noise.
try a1.json,a2.json b1.json,b1.json
try a1.json,a2.json b1.json
# The script of an interpreter identifies the program.
for run in a1 a2 b1 b2; do
	script=$(echo $run | tr -d 12).py
	sed "s|\"name\":\"chat\",\"command\":\"|&python3 -u /src/$script |; s/\"name\":\"chat\"/\"name\":\"python3.12\"/" $run.json >py_$run.json
done
try py_a1.json,py_a2.json py_b1.json,py_b2.json
# The interpreter may have options before the script. Different arguments are only noted.
compare_commands() {
	for side in a b; do
		command=$1
		for run in 1 2; do
			sed "s|\"name\":\"chat\",\"command\":\"[^\"]*|\"name\":\"chat\",\"command\":\"$command|; s/\"name\":\"chat\"/\"name\":\"$3\"/" $side$run.json >of_$side$run.json
		done
		shift
		set -- "$1" "$2" "$2"
	done
	diff_runs of_a1.json,of_a2.json of_b1.json,of_b2.json | grep 'different programs\|different arguments'
}
while IFS='|' read -r program one other; do
	compare_commands "$one" "$other" "$program" || echo "the same: $one"
done <<-END
	python3.12|python3 -W ignore a.py|python3 -W ignore b.py
	python3|python3 -X importtime -u a.py|python3 -Wdoc a.py
	python3|python3 -m train --x|python3 -m train --x
	python3|python3 -c one()|python3 -uc two()
	perl|perl -W a.pl|perl -W b.pl
	bash|bash -e a.sh|bash -ec b
	java|java -cp x.jar -Xmx1g Main|java -cp x.jar Other
	chat|chat --layers 2|chat --layers 4
END
make_run empty -v count=0
try $base empty.xtr,b1.xtr
# A damaged log: one chunk is overwritten, and the end is missing.
size=$(stat -c %s b1.xtr)
head -c $((size - 300)) b1.xtr >damaged.xtr
try $base damaged.xtr,b2.xtr
try $base damaged.xtr,b2.xtr --allow-degraded
# Hostile documents: excessive memory, invalid numbers, GPU work without paths.
python3 - <<-END
	import json
	for name in "deep", "endless", "pathless1", "pathless2":
	    run = json.load(open("b%s.json" % (name[-1] if name[-1] in "12" else "1")))
	    if name == "deep":
	        run["nodes"] = [value for node in range(20000) for value in (node, 0)]
	        run["paths"] = [[20000] + row[1:] for row in run["paths"]]
	    if name.startswith("pathless"):
	        run["paths"] = []
	    text = json.dumps(run)
	    if name == "endless":
	        text = text.replace(json.dumps(run["paths"][0][3]), "1e999")
	    open(name + ".json", "w").write(text)
END
# Profiles with different filters are never comparable.
for run in a1 a2 b1 b2; do
	merge=$(dirname "$xtrace_program")/xtrace-merge
	"$merge" -q $run.xtr --filter layer_3 --profile filter_$run.json
	"$merge" -q $run.xtr --filter layer_4 --profile other_$run.json
done
try a1.json,a2.json filter_b1.json,filter_b2.json --allow-different
try other_a1.json,other_a2.json filter_b1.json,filter_b2.json
try filter_a1.json,filter_a2.json filter_b1.json,filter_b2.json
# No output file remains if there is nothing to show.
try a1.json,a2.json text --folded part.folded --text -
ls part.* 2>/dev/null || echo 'nothing is left'
# --check reads documents and rules without runs.
diff_runs --check a1.json
diff_runs --check --fail-on 'gpu-time > 3%' a1.json,broken.json newer.json,nothing.json
for bad in deep endless; do try a1.json,a2.json b1.json,$bad.json; done
try a1.json,a2.json pathless1.json,pathless2.json --fail-on 'path(*) > 1%'
echo 'allow path(a) +20% until 2027-02-31' >rules
try a1.json,a2.json b1.json,b2.json --rules rules --fail-on 'gpu-time > 1e999%'
# A step split into two halves changes the detected period, which is rejected. With other arguments,
# more iterations are allowed. Options for logs do not apply to profiles.
for run in b1 b2; do
	python3 - $run <<-END
		import json, sys
		run = json.load(open(sys.argv[1] + ".json"))
		for process in run["processes"]:
		    for count in "found_count", "warmup_count", "used_count":
		        process[count] *= 2
		for total in run["totals"]:
		    total[1:3] = [2 * whole for whole in total[1:3]]
		for name, arguments in ("halves", ""), ("more", " --more"):
		    run["processes"][0]["command"] += arguments
		    json.dump(run, open(name + "_" + sys.argv[1] + ".json", "w"))
	END
done
try a1.json,a2.json halves_b1.json,halves_b2.json
try a1.json,a2.json halves_b1.json,halves_b2.json --allow-different-iterations
"$xtrace_program" baseline save halves.baseline more_b1.json,more_b2.json 2>/dev/null
sed 's/"start_realtime_ns":[0-9]*/"start_realtime_ns":9000000000000000001/' a1.json >later_a1.json
sed 's/"start_realtime_ns":[0-9]*/"start_realtime_ns":9000000000000000002/' a2.json >later_a2.json
"$xtrace_program" baseline update halves.baseline later_a1.json,later_a2.json 2>/dev/null
echo "--- a baseline: $("$xtrace_program" diff $basis halves.baseline halves_b1.json,halves_b2.json | grep -c 'cannot compare iterations')"
try a1.json,a2.json more_b1.json,more_b2.json
try a1.json,a2.json b1.json,b2.json --iteration nope
try a1.json,a2.json b1.json,b2.json --warmup 100000
try a1.xtr,a2.xtr b1.xtr,b2.xtr --warmup 7
try a1.json,a2.json b1.json,b2.json --warmup 1
make_run c1 -v seed=c1 -v nvtx=step
make_run c2 -v seed=c2 -v nvtx=step
make_run d1 -v seed=d1 -v nvtx=step
for run in c1 c2 d1; do profile $run >$run.json; done
for name in loop:step_12 step_12 step_ step; do
	echo "--- --iteration $name: $("$xtrace_program" diff c1.json,c2.json d1.json --iteration $name | grep -c 'made without')"
done
