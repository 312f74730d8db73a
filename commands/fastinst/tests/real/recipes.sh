# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The programs that "measure" knows: for each NAME
#   NAME_source   Debian's source package and its version; none for our own programs
#   NAME_prepare  in the unpacked source, once, before it is built in any form (may be missing)
#   NAME_build    in an empty folder: makes ./program out of the source in $1 by $CC and $CXX, which
#                 add the flags of the form
#   NAME_input    sets `input`, the file for standard input, and `arguments`, for $scale times the work
#   NAME_drive    runs the program by the command that it is given, where more than an input is needed, and
#                 prints what is to stay the same; `latencies` is a file for lines "WHAT P50 P99" (may be missing)
#   NAME_filter   takes out of the output what may change (may be missing)
# $inputs is the folder of the inputs, $scratch one for a run, $native that of the program as built without
# sites, $jobs how many compilers may run.
# shellcheck disable=SC2034,SC2154 # used by and set in measure

readonly own_programs="nbody blackscholes"
readonly debian_programs="bzip2 lua5.4 sqlite3 zstd x264 gnugo gnuchess miniperl redis"

# repeated FILE - what holds it $scale times
repeated()
{
	local i into=$inputs/${1##*/}.$scale

	if [ ! -s "$into" ]; then
		for ((i = 0; i < scale; i++)); do
			cat "$1"
		done >"$into.new"
		mv "$into.new" "$into"
	fi
	echo "$into"
}

# texts - the file of words as an argument, $scale times
texts()
{
	local i

	for ((i = 0; i < scale; i++)); do
		arguments+=("$inputs/text")
	done
}

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
nbody_input() { arguments=($(($([ -n "${SMALL:-}" ] && echo 20000 || echo 1000000) * scale))); }

blackscholes_build()
{
	"$CC" -O2 -c "$1/blackscholes.c" && "$CC" -pthread -o program blackscholes.o -lm
}
blackscholes_input()
{
	arguments=(16 20000 $((200 * scale)))
	[ -z "${SMALL:-}" ] || arguments=(4 1000 $((10 * scale)))
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
bzip2_input() { arguments=(-9c) && texts; }

readonly lua5_4_source="lua5.4 5.4.4-3+deb12u1"
lua5_4_prepare() { echo '#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"' >src/lua5.4-deb-multiarch.h; }
lua5_4_build()
{
	local sources=()

	mapfile -t sources < <(find "$1/src" -name '*.c' ! -name luac.c)
	compile -DLUA_USE_POSIX -- "${sources[@]}"
	"$CC" -o program ./*.o -lm
}
lua5_4_input() { input=$(repeated "$recipes/inputs/work.lua") arguments=(-); }

readonly sqlite3_source="sqlite3 3.40.1-2+deb12u2"
sqlite3_prepare() { ./configure --disable-tcl && make sqlite3.c shell.c; }
sqlite3_build()
{
	compile -DSQLITE_THREADSAFE=1 -I"$1" -- "$1/sqlite3.c" "$1/shell.c"
	"$CC" -pthread -o program ./*.o -ldl -lm
}
sqlite3_input() { input=$(repeated "$recipes/inputs/work.sql") arguments=(-batch :memory:); }

readonly zstd_source="libzstd 1.5.4+dfsg2-5"
zstd_build()
{
	compile -DZSTD_MULTITHREAD -DZSTD_DISABLE_ASM -DXXH_NAMESPACE=ZSTD_ -pthread -I"$1/lib" \
		-I"$1/lib/common" -- "$1"/lib/{common,compress,decompress,dictBuilder}/*.c \
		"$1"/programs/*.c
	"$CC" -pthread -o program ./*.o
}
zstd_input() { arguments=(-9 -T2 -c) && texts; }

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
	arguments=(--quiet --no-progress --threads 4 --demuxer raw --input-res 176x144
		--input-csp i420 --frames $((60 * scale)) --muxer raw -o - "$(repeated "$inputs/text")")
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
	input=$inputs/game.$scale arguments=(--mode gtp --seed 1 --level 4)
	{
		for ((i = 0; i < scale; i++)); do
			printf '%s\n' "boardsize 13" clear_board
			for _ in 1 2 3 4 5 6; do
				printf 'genmove %s\n' black white
			done
			echo showboard
		done
		echo quit
	} >"$input"
}

readonly gnuchess_source="gnuchess 6.2.7-1+deb12u1"
# With --uci it ends by cancelling a thread that it has not started.
gnuchess_prepare() { sed -i 's/^  TerminateInput();/  if (!(flags \& UCI)) TerminateInput();/' src/main.cc; }
gnuchess_build()
{
	"$1/configure" --without-readline
	make -j"$jobs"
	mv src/gnuchess program
}
gnuchess_input() { arguments=(--uci); }
# Where more input is there it stops thinking, so it is given the next line when it has answered.
gnuchess_drive()
(
	depth=$([ -n "${SMALL:-}" ] && echo 4 || echo 9)
	coproc engine { "$@"; }
	pid=$engine_PID
	trap '' PIPE
	exec 5<&"${engine[0]}" 6>&"${engine[1]}"
	eval "exec ${engine[0]}<&- ${engine[1]}>&-"
	printf '%s\n' uci "setoption name OwnBook value false" >&6
	for ((i = 0; i < scale; i++)); do
		for moves in e2e4 "e2e4 e7e5 g1f3 b8c6" "d2d4 g8f6 c2c4 e7e6 b1c3 f8b4"; do
			printf '%s\n' ucinewgame "position startpos moves $moves" "go depth $depth" >&6
			while read -r line <&5; do
				[[ $line != *" nodes "* ]] || nodes=${line#* nodes }
				[[ $line != bestmove* ]] || break
			done
			echo "$line ${nodes%% *}"
		done
	done
	echo quit >&6
	exec 6>&-
	cat <&5 >/dev/null
	wait "$pid"
)

readonly miniperl_source="perl 5.36.0-7+deb12u3"
miniperl_prepare() { sh Configure -des -Dcc="$CC" -Doptimize=-O2; }
miniperl_build()
{
	cp -a "$1/." .
	make -j"$jobs" miniperl
	mv miniperl program
}
# It does not know where its modules are.
miniperl_input() { input=$(repeated "$recipes/inputs/work.pl") arguments=(-I"$native/lib" -); }

readonly redis_source="redis 5:7.0.15-1~deb12u7"
# Its load draws other keys each time.
redis_prepare() { sed -i 's/srandom(time(NULL) ^ getpid())/srandom(1)/' src/redis-benchmark.c; }
redis_build()
{
	cp -a "$1/." .
	make -C src -j"$jobs" MALLOC=libc USE_SYSTEMD=no OPTIMIZATION=-O2 CC="$CC" redis-server redis-cli redis-benchmark
	mv src/redis-server program
}
redis_input()
{
	requests=$(($([ -n "${SMALL:-}" ] && echo 2000 || echo 50000) * scale))
	# shellcheck disable=SC2054 # one word of its own
	arguments=(--port 0 --unixsocket "$scratch/redis" --save "" --enable-debug-command yes --dir "$scratch")
}
# In which order clients come does not change what is there in the end.
redis_drive()
(
	client=("$native/src/redis-cli" -s "$scratch/redis")
	"$@" >&2 &
	for ((i = 0; i < 200; i++)); do
		[ "$("${client[@]}" ping 2>&1)" != PONG ] || break
		sleep 0.1
	done
	"$native/src/redis-benchmark" -s "$scratch/redis" -n "$requests" -r 10000 -t set,get,incr,lpush,lpop,sadd,hset \
		--csv | awk -F'"' 'NR > 1 { print $2, $10, $14 }' >"$latencies"
	"${client[@]}" dbsize
	"${client[@]}" debug digest
	"${client[@]}" shutdown nosave >&2
	wait "$!"
)
