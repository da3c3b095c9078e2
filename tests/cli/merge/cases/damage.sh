# SPDX-License-Identifier: Apache-2.0
# Damaged chunks are skipped and reported; the rest is used.
make_log normal whole.xtr
cp whole.xtr cut.xtr
size=$(wc -c <whole.xtr)
truncate -s $((size - 40)) cut.xtr
merge cut.xtr --folded -
merge cut.xtr --quiet --text cut.txt --all
head -3 cut.txt

# Remove a chunk of each kind in turn.
for kind in 1 4 5 6 7 8 9 10 11 12 13 14; do
	echo "--- without kind $kind"
	cp whole.xtr hurt$kind.xtr
	make_log damage hurt$kind.xtr $kind
	merge hurt$kind.xtr --folded - --chrome hurt.json
	check_chrome hurt.json
done

# Garbage between two chunks; a log without its END; a header alone.
{ cat whole.xtr; echo debris; tail -c 45 whole.xtr; } >debris.xtr
merge debris.xtr --folded /dev/null
truncate -s $((size - 45)) whole.xtr
merge whole.xtr --folded /dev/null
merge whole.xtr --folded /dev/null --quiet
truncate -s 64 whole.xtr
merge whole.xtr --folded -
