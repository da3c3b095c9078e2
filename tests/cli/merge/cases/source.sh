# SPDX-License-Identifier: Apache-2.0
# JSON has the text of own lines, unless the file is newer, missing or no source.
make_log script one.xtr <<-END
	stack old py:$PWD/old.py:5:step Launch
	stack new py:$PWD/new.py:2:step Launch
	stack secret py:$PWD/secret.txt:1:step Launch
	stack gone py:$PWD/gone.py:1:step Launch
	call 1 1 cuLaunchKernel old 10 2
	kernel 1 1 a 100 8
	call 2 1 cuLaunchKernel new 20 2
	kernel 2 1 b 200 4
	call 3 1 cuLaunchKernel secret 30 2
	kernel 3 1 c 300 2
	call 4 1 cuLaunchKernel gone 40 2
	kernel 4 1 d 400 1
END
printf 'line %d\n' 1 2 3 4 5 6 >old.py
printf '\tsecond\n' >new.py
printf 'password\n' >secret.txt
touch -d 1971-01-01 old.py secret.txt
for option in --jobs=1 --no-source --redact; do
	echo "== $option"
	merge -q one.xtr "$option" --summary s.json
	python3 -c "import json
for row in json.load(open('s.json'))['lines']['rows']:
    print(row['line'], {key: value for key, value in row.items() if 'source' in key})"
done
