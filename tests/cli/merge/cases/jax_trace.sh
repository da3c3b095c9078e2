# SPDX-License-Identifier: Apache-2.0
# A recorded program of JAX: the autotuner is below the line that compiled the program.
trace=$tests/../../../samples/traces/h200-jax.xtr
merge -q --no-recover "$trace" --text - --all --folded all.folded | grep 'your own code'
# GPU time by what the path has: a Python line, the autotuner, a program.
awk '{
	python = /\(python_work.py:/ ? "python" : "-"
	part = /\[autotune jit_/ ? "autotune" : /;jit\(/ ? "program" : "-"
	sums[python " " part] += $NF
} END { for (s in sums) print s, sums[s] }' all.folded | sort
# Operations as frames, without the functions of XLA.
sed 's/ [0-9]*$//; s/.*(python_work.py:\([0-9]*\))/line \1/' all.folded |
	awk -F';' '/;jit\(/ && !/autotune/ {
		line = $1
		for (f = 2; f <= NF; f++)
			if ($f ~ /^jit\(/) first = f
		for (f = first; f <= NF; f++)
			if ($f !~ /::|^cu/) line = line ";" $f
		print line
	}' | sort -u
