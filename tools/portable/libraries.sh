# SPDX-License-Identifier: Apache-2.0
# Recipes of tools/portable.sh. Builds the sources in $libraries/src for $libraries/sysroot, and
# installs them in $libraries/prefix. The libraries are static, except elfutils (LGPL), libunwind
# (opened at run time) and libzstd (which elfutils needs).

prefix=$libraries/prefix
sysroot=$libraries/sysroot
jobs=-j$(nproc)

# Debian's links to libraries are absolute, and would lead out of the sysroot.
find "$sysroot" -type l -lname '/*' | while read -r link; do
	ln -sfn "$sysroot$(readlink "$link")" "$link"
done

# -g0: these libraries need no debugging, and the wheel has to be small.
flags="-O2 -g0 -fPIC -fstack-protector-strong -ffile-prefix-map=$libraries=/libraries"
export CC="gcc $system" CFLAGS="$flags" CXXFLAGS="$flags"
export CPPFLAGS="-I$prefix/include -D_FORTIFY_SOURCE=2" LDFLAGS="-L$prefix/lib -Wl,-z,relro"
export PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig"
mkdir -p "$prefix/lib/pkgconfig" "$prefix/include" "$prefix/share/doc"

# begin SOURCE_PACKAGE BINARY_PACKAGE...: goes to its folder, and keeps its licence
begin() {
	cd "$libraries/src/$1"
	for package in $(shift && echo "$@"); do
		mkdir -p "$prefix/share/doc/$package"
		cp debian/copyright "$prefix/share/doc/$package/copyright"
	done
}

# one_file NAME SOURCE HEADER FOLDER: a library that is one source file
one_file() {
	$CC $CPPFLAGS $CFLAGS -I. -c "$2" -o "$1.o"
	ar rcsD "$prefix/lib/lib$1.a" "$1.o"
	mkdir -p "$prefix/include/$4"
	cp "$3" "$prefix/include/$4/"
	cat >"$prefix/lib/pkgconfig/lib$1.pc" <<-EOF
		Name: $1
		Description: $1
		Version: $(dpkg-parsechangelog -S Version | sed 's/-[^-]*$//')
		Libs: -L$prefix/lib -l$1
		Cflags: -I$prefix/include
	EOF
}

begin zlib zlib1g
./configure --static --prefix="$prefix"
make $jobs libz.a
make install

begin xz-utils liblzma5
./configure --prefix="$prefix" --disable-shared --disable-nls --disable-doc --disable-scripts \
	--disable-xz --disable-xzdec --disable-lzmadec --disable-lzmainfo --disable-lzma-links
make $jobs install

begin libzstd libzstd1
make $jobs -C lib PREFIX="$prefix" install-static install-shared install-includes install-pc

begin cjson libcjson1
one_file cjson cJSON.c cJSON.h cjson

begin protobuf-c libprotobuf-c1
one_file protobuf-c protobuf-c/protobuf-c.c protobuf-c/protobuf-c.h protobuf-c

begin libiberty libiberty-dev
mkdir build
cd build
../libiberty/configure --prefix="$prefix" --disable-multilib
make $jobs libiberty.a
cp libiberty.a "$prefix/lib/"
mkdir -p "$prefix/include/libiberty"
cp ../include/*.h "$prefix/include/libiberty/"

begin libevent libevent-2.1-7
./configure --prefix="$prefix" --disable-shared --disable-openssl --disable-thread-support \
	--disable-samples --disable-libevent-regress --disable-debug-mode
# Debian's patches are newer than what Autotools made.
make $jobs install ACLOCAL=: AUTOCONF=: AUTOHEADER=: AUTOMAKE=:

begin sqlite3 libsqlite3-0
./configure --prefix="$prefix" --disable-tcl --disable-readline --disable-load-extension
make sqlite3.c
one_file sqlite3 sqlite3.c sqlite3.h .
mv "$prefix/lib/pkgconfig/libsqlite3.pc" "$prefix/lib/pkgconfig/sqlite3.pc"

begin elfutils libelf1 libdw1
LDFLAGS="$LDFLAGS -Wl,-rpath,\\\$\$ORIGIN" ./configure --prefix="$prefix" --disable-nls \
	--disable-debuginfod --disable-libdebuginfod --without-bzlib --with-zlib --with-lzma --with-zstd
make $jobs SUBDIRS='config lib libelf libcpu backends libebl libdwelf libdwfl libdw' install

begin libunwind libunwind8
LDFLAGS="$LDFLAGS -Wl,-rpath,\\\$\$ORIGIN" ./configure --prefix="$prefix" --disable-static \
	--enable-cxx-exceptions --disable-zlibdebuginfo --disable-tests --disable-documentation
# libtool would add the path of this machine's folder to the library.
sed -i 's/^hardcode_libdir_flag_spec=.*/hardcode_libdir_flag_spec=""/' libtool
make $jobs install
