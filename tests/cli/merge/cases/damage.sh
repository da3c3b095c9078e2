# SPDX-License-Identifier: Apache-2.0
# What is damaged is passed over and said; the rest is written.
make_log normal whole.xtr
cp whole.xtr cut.xtr
size=$(wc -c <whole.xtr)
truncate -s $((size - 40)) cut.xtr
merge cut.xtr --folded -
merge cut.xtr --quiet --text cut.txt
head -3 cut.txt

# A log from which a chunk of each kind that it has is gone.
for kind in 1 4 5 6 7 8 9 10 11 12 13 14; do
	echo "--- without kind $kind"
	cp whole.xtr hurt$kind.xtr
	make_log damage hurt$kind.xtr $kind
	merge hurt$kind.xtr --folded - --chrome hurt.json
	check_chrome hurt.json
done

# Debris between two chunks; a log that ends before its END; one that is but a header.
{ cat whole.xtr; echo debris; tail -c 45 whole.xtr; } >debris.xtr
merge debris.xtr --folded /dev/null
truncate -s $((size - 45)) whole.xtr
merge whole.xtr --folded /dev/null
merge whole.xtr --folded /dev/null --quiet
truncate -s 64 whole.xtr
merge whole.xtr --folded -
