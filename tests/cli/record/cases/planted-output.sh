# SPDX-License-Identifier: Apache-2.0
# In a directory that all users can write to, no program writes through links of other users.
if [ "$(id -u)" != 0 ]; then
	echo "only root can make files of another user" >&2
	exit 77
fi
"$xtrace" record --simulate "$sample" --tokens 1 >/dev/null 2>&1
mkdir all own folder
chmod 1777 all
echo precious >own/file
plant() {
	ln -s ../own/"$1" all/"$1"
	chown -h 65534:65534 all/"$1"
}
plant file
plant missing
ln -s ../folder all/folder
chown -h 65534:65534 all/folder
for output in text folded chrome perfetto pprof sqlite summary profile; do
	status "$bin/xtrace-merge" --quiet --$output all/file
	status "$bin/xtrace-merge" --quiet --$output all/missing
done
status "$bin/xtrace-merge" --quiet --csv all/folder
for output in text json markdown junit folded; do
	status "$xtrace" diff xtrace.data xtrace.data --$output all/file 2>&1 | grep all/
done
status "$xtrace" baseline save all/missing xtrace.data
status "$xtrace" baseline save --force all/file xtrace.data
status "$xtrace" record -o all/folder true
status "$xtrace" bench -n 1 --warmup 0 -o all/folder --simulate "$sample" --tokens 1
# Traces of other users are not used, including those in the previous directory.
"$xtrace" record -o all/trace --simulate "$sample" --tokens 1 >/dev/null 2>&1
cp -r all/trace all/trace.previous
chown -R 65534:65534 all/trace.previous
status "$xtrace" record -o all/trace true
mv all/trace.previous all/trace.old
status "$xtrace" record -o all/trace true
cat own/file
ls own folder
# Follows links of the same user.
ln -s ../own/mine all/mine
status "$bin/xtrace-merge" --quiet --folded all/mine
[ -s own/mine ] && [ -L all/mine ] && echo "it is written"
