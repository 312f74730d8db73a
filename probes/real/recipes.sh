# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The programs that "measure" knows: for each NAME
#   NAME_source   Debian's source package and its version; none for our own programs
#   NAME_prepare  in the unpacked source, once, before it is built in any form (may be missing)
#   NAME_build    in an empty folder: makes ./program out of the source in $1 by $CC and $CXX, which
#                 add the flags of the form
#   NAME_input    sets `input`, the file for standard input, and `arguments`
# $inputs is the folder of the inputs, $jobs how many compilers may run.
# shellcheck disable=SC2034,SC2154 # used by and set in measure

readonly own_programs="nbody blackscholes"
readonly debian_programs="bzip2 lua5.4 sqlite3 zstd x264 gnugo"

# compile FLAG... -- SOURCE... - objects here, several at a time
compile()
{
	local flags=()

	while [ "$1" != -- ]; do
		flags+=("$1")
		shift
	done
	shift
	printf '%s\n' "$@" | xargs -P "$jobs" -I{} "$CC" "${flags[@]}" -O2 -c {}
}

nbody_build() { "$CC" -O2 -c "$1/nbody.c" && "$CC" -o program nbody.o -lm; }
nbody_input() { arguments=("${SMALL:+20000}"); [ -n "${SMALL:-}" ] || arguments=(1000000); }

blackscholes_build()
{
	"$CC" -O2 -c "$1/blackscholes.c" && "$CC" -pthread -o program blackscholes.o -lm
}
blackscholes_input()
{
	arguments=(16 20000 200)
	[ -z "${SMALL:-}" ] || arguments=(4 1000 10)
}

readonly bzip2_source="bzip2 1.0.8-5"
bzip2_build()
{
	local name sources=()

	for name in blocksort bzip2 bzlib compress crctable decompress huffman randtable; do
		sources+=("$1/$name.c")
	done
	compile -D_FILE_OFFSET_BITS=64 -- "${sources[@]}"
	"$CC" -o program ./*.o
}
bzip2_input() { input=$inputs/text arguments=(-9c); }

readonly lua5_4_source="lua5.4 5.4.4-3+deb12u1"
lua5_4_prepare() { echo '#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"' >src/lua5.4-deb-multiarch.h; }
lua5_4_build()
{
	local sources=()

	mapfile -t sources < <(find "$1/src" -name '*.c' ! -name luac.c)
	compile -DLUA_USE_POSIX -- "${sources[@]}"
	"$CC" -o program ./*.o -lm
}
lua5_4_input() { input=$recipes/inputs/work.lua arguments=(-); }

readonly sqlite3_source="sqlite3 3.40.1-2+deb12u2"
sqlite3_prepare() { ./configure --disable-tcl && make sqlite3.c shell.c; }
sqlite3_build()
{
	compile -DSQLITE_THREADSAFE=1 -I"$1" -- "$1/sqlite3.c" "$1/shell.c"
	"$CC" -pthread -o program ./*.o -ldl -lm
}
sqlite3_input() { input=$recipes/inputs/work.sql arguments=(-batch :memory:); }

readonly zstd_source="libzstd 1.5.4+dfsg2-5"
zstd_build()
{
	compile -DZSTD_MULTITHREAD -DZSTD_DISABLE_ASM -DXXH_NAMESPACE=ZSTD_ -pthread -I"$1/lib" \
		-I"$1/lib/common" -- "$1"/lib/{common,compress,decompress,dictBuilder}/*.c \
		"$1"/programs/*.c
	"$CC" -pthread -o program ./*.o
}
zstd_input() { input=$inputs/text arguments=(-9 -T2 -c); }

readonly x264_source="x264 2:0.164.3095+gitbaee400-3"
x264_build()
{
	"$1/configure" --bit-depth=8 --disable-asm --disable-opencl --disable-avs --disable-swscale --disable-lavf \
		--disable-ffms --disable-gpac --disable-lsmash
	make -j"$jobs" x264
	mv x264 program
}
# Text taken for a film: any bytes will do, and they are the same everywhere.
x264_input()
{
	input=/dev/null
	arguments=(--quiet --no-progress --threads 4 --demuxer raw --input-res 176x144
		--input-csp i420 --frames 60 --muxer raw -o - "$inputs/text")
}

readonly gnugo_source="gnugo 3.8-11"
gnugo_build()
{
	CFLAGS="-O2 -fcommon" "$1/configure" --without-curses --without-readline
	make -j"$jobs"
	mv interface/gnugo program
}
gnugo_input()
{
	input=$inputs/game arguments=(--mode gtp --seed 1 --level 4)
	{
		echo "boardsize 13"
		for _ in 1 2 3 4 5 6; do
			printf 'genmove %s\n' black white
		done
		printf '%s\n' showboard quit
	} >"$input"
}
