# SPDX-License-Identifier: Apache-2.0
# The command that xtrace record suggests works if it is pasted into the same shell.
run="$sample --layers 1 --dim 64 --tokens 1"
paste() {
	command=$(sed -n 's/^To see it: //p' said)
	echo "$command"
	(eval "$command --text --all") | sed -n 's/  kernels  */kernels /p'
}
bin_here=$(python3 -c 'import os, sys; print(os.path.relpath(sys.argv[1]))' "$bin")
for data in plain "two words" "it's" '$(touch bad)' --embed-symbols; do
	"$xtrace" record --simulate -o "$data" $run 2>said >/dev/null
	paste
done
"$bin_here/xtrace" record --simulate $run 2>said >/dev/null
sed -n "s|To see it: $bin_here/|To see it: RELATIVE/|p" said
paste | tail -n 1
PATH=$bin:$PATH
xtrace record --simulate -o by-path $run 2>said >/dev/null
paste
ln -s "$xtrace" linked
./linked record --simulate -o by-link $run 2>said >/dev/null
paste
ls
