#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Rust binding says of types, sizes and constants what the C header says; a binding that is off by a field is
# seen. Where rustc is here, the example is built and run.
set -euo pipefail
export LC_ALL=C

top=$(cd "${srcdir:-.}" && pwd)
rust=$top/patchcore/examples/rust
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail()
{
	echo "FAILED: $*"
	exit 1
}

# in_c BINDING - what it says, as C that the header has to agree with
in_c()
{
	echo '#include <stddef.h>'
	echo '#include <patchcore/patchcore.h>'
	awk '
		BEGIN {
			type["c_uint"] = "unsigned"; type["c_int"] = "int"; type["c_double"] = type["f64"] = "double"
			type["u64"] = "uint64_t"; type["usize"] = "size_t"; type["c_char"] = "char"
			type["*mut c_void"] = "void *"; type["*const c_void"] = "const void *"
			type["*mut pc_status"] = "struct pc_status *"
		}
		function c(name) {
			if (!(name in type)) {
				print "#error \"no type for " name "\""
				return "void"
			}
			return type[name]
		}
		/^pub const / {
			sub(/:.*=/, "", $0); sub(/;/, "", $0)
			print "_Static_assert(" $3 " == " $4 ", \"" $3 "\");"
		}
		/^pub struct / { name = $3; print "struct rust_" name " {"; n = 0 }
		name && /^    pub / {
			field = $2; sub(/:/, "", field)
			what = $0; sub(/^[^:]*: /, "", what); sub(/,$/, "", what)
			size = ""
			if (what ~ /^\[/) {
				size = what; sub(/.*; /, "[", size)
				sub(/^\[/, "", what); sub(/;.*/, "", what)
			}
			print "\t" c(what) " " field size ";"
			fields[++n] = field
		}
		name && /^}/ {
			print "};"
			print "_Static_assert(sizeof(struct rust_" name ") == sizeof(struct " name "), \"" name "\");"
			for (i = 1; i <= n; i++) {
				print "_Static_assert(offsetof(struct rust_" name ", " fields[i] ") == offsetof(struct " name ", " fields[i] "), \"" fields[i] "\");"
				print "_Static_assert(sizeof(((struct rust_" name " *)0)->" fields[i] ") == sizeof(((struct " name " *)0)->" fields[i] "), \"" fields[i] "\");"
			}
			name = ""
		}
		/^    pub fn / {
			fn = $3; sub(/\(.*/, "", fn)
			list = $0; sub(/^[^(]*\(/, "", list); sub(/\) ->.*/, "", list)
			many = split(list, argument, /, /)
			text = many ? "" : "void"
			for (i = 1; i <= many; i++) {
				sub(/^[^:]*: /, "", argument[i])
				text = text (i > 1 ? ", " : "") c(argument[i])
			}
			if ($0 !~ /-> c_int;$/)
				print "#error \"" fn " returns something else\""
			# An enum is passed as an unsigned number, and has a type of its own.
			gsub(/unsigned/, "enum pc_policy", text)
			print "int " fn "(" text ");"
			functions++
		}
		END { if (functions < 3) print "#error \"few functions were found\"" }' "$1"
}

agrees()
{
	in_c "$1" >"$dir/binding.c"
	# shellcheck disable=SC2086 # CC may carry options
	${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I "$top/patchcore/include" "$dir/binding.c" \
		2>"$dir/errors"
}

agrees "$rust/patchcore.rs" || fail "$(grep error "$dir/errors" | head)"

# damage SED-EXPRESSION
damage()
{
	sed "$1" "$rust/patchcore.rs" >"$dir/damaged.rs"
	! cmp -s "$rust/patchcore.rs" "$dir/damaged.rs" || fail "$1 damages nothing"
	! agrees "$dir/damaged.rs" || fail "not seen: $1"
}
damage '/pub stretch: u64/d'
damage 's/pub runs: u64/pub runs: c_int/'
damage 's/PC_POLICY_WAIT: c_uint = 1/PC_POLICY_WAIT: c_uint = 2/'
damage 's/c_char; 256/c_char; 255/'
damage 's/pc_set_accept_p(p: c_double)/pc_set_accept_p(p: u64)/'
damage 's/upper_p: c_double/lower_p: c_double/'

if ! command -v rustc >/dev/null || ! rustc --version >/dev/null 2>&1; then
	echo "rustc is not here: the binding agrees with the header, the example was not built"
	exit 0
fi
if [ "${SANITIZERS:-none}" != none ] || [ ! -e .libs/libpatchcore.so ]; then
	echo "no shared library without sanitizers: the example was not built"
	exit 0
fi
rustc --edition 2021 -D warnings --out-dir "$dir" -L "native=$PWD/.libs" "$rust/budget.rs" 2>"$dir/errors" ||
	fail "$(cat "$dir/errors")"
LD_LIBRARY_PATH=$PWD/.libs PATCHCORE_MACHINE_CONF=$dir/none "$dir/budget" >"$dir/out" || fail "$(cat "$dir/out")"
[ "$(grep -c 'below 1e-[3-9]: no budget, membarrier' "$dir/out")" = 7 ] || fail "without a config: $(cat "$dir/out")"
