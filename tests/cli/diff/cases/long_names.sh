# SPDX-License-Identifier: Apache-2.0
# Every output limits the length of names, and different names stay different.
seeds="1 2 3"
make_runs a
make_runs b -v slow=1.5
long() {
	head -c 20000 /dev/zero | tr '\0' "$1"
}
for run in a1 a2 a3 b1 b2 b3; do
	last=D
	[ $run != b3 ] || last=E
	profile $run | sed -E \
		-e "/\"devices\":/,/]/s/(\"name\": *)\"[^\"]*\"/\1\"$(long D)$last$(long D)\"/" \
		-e "s/(\"host\": *)\"[^\"]*\"/\1\"$(long H)\"/" \
		-e "s/\"layer_3\"/\"$(long L)\"/" \
		-e "s/kernel_3\"/$(long K)\"/" >$run.json
done
for output in text json markdown junit folded; do
	"$xtrace_program" diff a1.json,a2.json b1.json,b2.json --$output out >/dev/null 2>&1 || true
	for letter in D H L K; do
		echo "$output: $letter" "$(grep -o "$letter$letter*" out 2>/dev/null |
			awk 'length > most { most = length } END { print most + 0 }')"
	done
done
diff_runs a1.json,a2.json,a3.json b1.json,b2.json,b3.json 2>&1 | grep 'different GPUs' | sed 's/DDD*/DDD/g'
