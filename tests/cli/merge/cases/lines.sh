# SPDX-License-Identifier: Apache-2.0
# Which lines of own code are charged: those that call wrappers. Each N is a launch of 100 ns.
# usage: lines N FRAMES...  with FRAMES outermost first, as in main:1,step:5
lines() {
	echo "== $1"
	shift
	i=0
	while [ $# -gt 0 ]; do
		echo "stack s$1$2 $(printf 'py:/m/w.py:%s ' $(echo "$2" | sed 's/\([a-z]*\):\([0-9]*\)/\2:\1/g;s/,/ /g')) Launch"
		for launch in $(seq "$1"); do
			i=$((i + 1))
			echo "call $i 1 cuLaunchKernel s$1$2 $((i * 200)) 2"
			echo "kernel $i 1 a $((i * 200 + 10)) 100"
		done
		shift 2
	done >script
	rm -rf one.xtr csv
	make_log script one.xtr <script
	"$merge_program" -q one.xtr --csv csv
	python3 -c "import csv
for row in csv.DictReader(open('csv/lines.csv')):
    print(row['gpu_time_ns'], row['function'], 'via', row['via'], 'from', row['caller'])"
}
lines "one caller" 3 main:1,step:5
lines "several callers" 3 main:1,step:5 1 main:2,step:5
lines "a wrapper whose only caller is one" 3 main:1,f:5,g:6 2 main:2,f:5,g:6
lines "the only caller is none" 3 main:1,f:5,g:6
lines "two lines with three callers" 3 main:1,f:5 2 main:2,f:6 2 main:3,f:5
lines "two lines with two callers" 3 main:1,f:5 2 main:2,f:6
lines "two lines below a wrapper" 3 main:1,f:7,g:5 2 main:2,f:7,g:6 4 main:3,f:7,g:6
lines "each line has its caller" 3 main:1,f:4,g:6 2 main:2,f:5,h:7 1 main:3,f:4,g:6
lines "recursion" 3 main:1,f:5 2 main:1,f:6,f:5 2 main:1,f:6,f:6,f:5
lines "functions that call each other" 3 main:1,f:5,g:6,f:5,g:6 2 f:5,g:6
echo "== the budget and slow steps name the charged line"
{
	echo "stack one py:/m/w.py:1:main py:/m/w.py:5:f Launch"
	echo "stack two py:/m/w.py:2:main py:/m/w.py:5:f Launch"
	for i in $(seq 0 2 40); do
		echo "push 1 $((i * 1000)) - step
			call $((i + 1)) 1 cuLaunchKernel one $((i * 1000 + 100)) 2
			kernel $((i + 1)) 1 a $((i * 1000 + 200)) 100
			call $((i + 2)) 1 cuLaunchKernel two $((i * 1000 + 300)) 2
			kernel $((i + 2)) 1 a $((i * 1000 + 400)) $((300 + i))
			pop 1 $((i * 1000 + 1900))"
	done
} >script
rm -rf one.xtr csv
make_log script one.xtr <script
"$merge_program" -q one.xtr --csv csv
python3 -c "import csv
for row in csv.DictReader(open('csv/budget.csv')):
    print(row['part'], row['line'], row['line_ns'])
print({row['cause_line'] for row in csv.DictReader(open('csv/steps.csv'))})"
