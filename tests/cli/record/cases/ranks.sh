# SPDX-License-Identifier: Apache-2.0
# Four processes of a job have their ranks as labels. Values that are no ranks are not recorded.
run() { # one word for each process, with its variables separated by commas
	"$xtrace" record --simulate sh -c '
		program=$1
		shift
		for variables; do
			env $(echo "$variables" | tr , " ") "$program" --layers 1 --dim 64 --tokens 2 >/dev/null &
		done
		wait' sh "$sample" "$@"
	for log in xtrace.data/*.xtr; do
		"$here/../../../tests/tools/xtrace-dump" --check "$log" | grep violation || :
		"$here/../../../tests/tools/xtrace-dump" --kind META "$log" |
			sed -n 's/.*key=env\.\([A-Z_]*\)\tvalue=/\1=/p' | tr '\n' ' '
		echo
	done | sort
	"$bin/xtrace-merge" --quiet --folded - --by process | cut -d ';' -f 1 | sed -E 's/[0-9]{2,}/PID/' |
		sort -u
}
run RANK=0,LOCAL_RANK=0,WORLD_SIZE=4 RANK=1,LOCAL_RANK=1,WORLD_SIZE=4 \
	RANK=2,LOCAL_RANK=0,WORLD_SIZE=4 RANK=3,LOCAL_RANK=1,WORLD_SIZE=4
"$bin/xtrace-merge" --quiet --folded - | cut -d ';' -f 1 | sort -u
"$bin/xtrace-merge" --quiet --all | sed -n '/^GPU time by process/,/^$/p' | grep -c '  rank [0-3].* (llm_inference)'
run RANK=abc,LOCAL_RANK=-1,WORLD_SIZE=1000000000,PMI_RANK= OMPI_COMM_WORLD_RANK=2,SLURM_PROCID=5x \
	PMI_RANK=1,SLURM_PROCID=0 PMI_RANK=1 RANK=3,TORCHELASTIC_RUN_ID=run.7,SLURM_JOB_ID=1_2 \
	RANK=4,TORCHELASTIC_RUN_ID=a/b,SLURM_JOB_ID=
