# SPDX-License-Identifier: Apache-2.0
# Damaged ranges of XLA: long and empty names, broken brackets, many scopes, control characters.
word=$(printf 'x%.0s' $(seq 3000))
open=$(printf '(%.0s' $(seq 3000))
scopes=$(printf 's/%.0s' $(seq 200))
{
	echo 'stack run py:/data/train.py:3:step Execute'
	echo 'stack launch py:/data/train.py:3:step Execute Launch'
	n=0
	while read -r text; do
		n=$((n + 1))
		echo "push 1 $((n * 10)) run $text TSL"
		echo "call $n 1 cuLaunchKernel launch $((n * 10 + 1)) 2"
		echo "kernel $n 1 k$n $((n * 1000)) 10"
		echo "pop 1 $((n * 10 + 5)) TSL"
	done <<-END
		XlaModule:#hlo_module=$word,program_id=1#
		XlaModule:#hlo_module=jit_,program_id=1#
		XlaModule:#hlo_module=,program_id=1#
		XlaModule:#hlo_module=jit_step,program_id=
		XlaModule:#
		XlaCompile:#module=#
		XlaCompile:#module=$word
		XlaPass:#name=config-assigner,module=#
		XlaPass:#name=#
		XlaPassPipeline:#name=a;b$(printf '\033')[31m,module=jit_step#
		Thunk:#name=$open/dot,hlo_op=dot#
		Thunk:#name=))/dot),hlo_op=dot#
		Thunk:#name=$scopes,hlo_op=many#
		Thunk:#name=////,hlo_op=#
		Thunk:#name=,hlo_op=,hlo_op=last,
		Thunk:#name=$word$word#
		Thunk:##
		Thunk:#hlo_op=
	END
} >script
make_log script one.xtr <script
merge one.xtr --folded all.folded --text all.txt --summary all.json --html all.html
# Shorten what is repeated.
awk '{ gsub(/xxx+/, "X"); gsub(/[(][(]+/, "OPEN"); s = gsub(/;s/, ""); gsub(/\/s/, "");
	print $0, "scopes:", s }' all.folded | sort
