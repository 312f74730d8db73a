# SPDX-License-Identifier: MIT

# TMAX_NEED(VARIABLE-PREFIX, PKG-CONFIG-MODULE, DEBIAN-PACKAGE)
# -------------------------------------------------------------
# Missing modules are collected, so that one run of configure names them all.
AC_DEFUN([TMAX_NEED], [
PKG_CHECK_MODULES([$1], [$2], [:],
	[AC_MSG_WARN([$2 was not found; on Debian the package $3 brings it])
	 tmax_missing="$tmax_missing $3"])
])

# TMAX_NEEDS_MET
# --------------
AC_DEFUN([TMAX_NEEDS_MET], [
AS_IF([test -n "$tmax_missing"],
	[AC_MSG_ERROR([libraries are missing. On Debian: apt-get install$tmax_missing])])
])

# TMAX_REQUIRE_X86_64
# -------------------
# The compiler's word counts, not only the host's: -m32 and -mx32 are refused too.
AC_DEFUN([TMAX_REQUIRE_X86_64], [
AC_REQUIRE([AC_CANONICAL_HOST])
AC_CACHE_CHECK([whether the target is x86-64 Linux], [tmax_cv_x86_64],
	[AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#if !defined __x86_64__ || defined __ILP32__ || !defined __linux__
#error "another target"
#endif
]])], [tmax_cv_x86_64=yes], [tmax_cv_x86_64=no])])
AS_CASE([$host_cpu:$tmax_cv_x86_64],
	[x86_64:yes], [],
	[AC_MSG_ERROR([this package patches x86-64 instructions on Linux; $host with "$CC $CFLAGS" is another target])])
])
