# SPDX-License-Identifier: MIT

# TMAX_NEED(VARIABLE-PREFIX, PKG-CONFIG-MODULE, DEBIAN-PACKAGE)
# -------------------------------------------------------------
# Missing modules are collected, so that one run of configure names them all.
AC_DEFUN([TMAX_NEED], [
PKG_CHECK_MODULES([$1], [$2], [:],
	[AC_MSG_WARN([$2 was not found; on Debian the package $3 brings it])
	 tmax_missing="$tmax_missing $3"])
])

# TMAX_NEED_PROGRAM(NAME, CFLAGS, LIBS, DEBIAN-PACKAGE, PROLOGUE, BODY)
# --------------------------------------------------------------------
# The same of a library that pkg-config does not know: a program is linked with it.
AC_DEFUN([TMAX_NEED_PROGRAM], [
AC_MSG_CHECKING([for $1])
save_LIBS=$LIBS save_CFLAGS=$CFLAGS
LIBS="$3 $LIBS" CFLAGS="$CFLAGS $2"
AC_LINK_IFELSE([AC_LANG_PROGRAM([$5], [$6])], [AC_MSG_RESULT([yes])],
	[AC_MSG_RESULT([no; on Debian the package $4 brings it])
	 tmax_missing="$tmax_missing $4"])
LIBS=$save_LIBS CFLAGS=$save_CFLAGS
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

# TMAX_TRY_FLAGS(VARIABLE, FLAGS, [PROGRAM])
# ------------------------------------------
# Appends the flags if the compiler compiles and links with them, and warns of nothing.
AC_DEFUN([TMAX_TRY_FLAGS], [
AC_MSG_CHECKING([whether $CC takes $2])
save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -Werror $2"
AC_LINK_IFELSE([m4_default([$3], [AC_LANG_PROGRAM()])], [
	AC_MSG_RESULT([yes])
	AS_VAR_APPEND([$1], [" $2"])
], [AC_MSG_RESULT([no])])
CFLAGS=$save_CFLAGS
])

# TMAX_HARDEN
# -----------
# HARDEN_CFLAGS for all code, HARDEN_LDFLAGS for what is installed, HARDEN_PIE for programs. Code that
# runs while an INT3 stands (NOPATCH in patchcore/syscall/sys.h) gets no stack protector, by its
# attribute. -fcf-protection is left to the builder: it says of code made at run time that it begins
# with ENDBR64, which only the user of the library knows.
AC_DEFUN([TMAX_HARDEN], [
TMAX_TRY_FLAGS([HARDEN_CFLAGS], [-fstack-protector-strong])
# Not if the compiler or the flags say it already; and without optimisation glibc warns of it.
TMAX_TRY_FLAGS([HARDEN_CFLAGS], [-D_FORTIFY_SOURCE=2], [AC_LANG_PROGRAM([[
#ifdef __OPTIMIZE__
#include <stdio.h>
#else
#error "nothing is checked"
#endif]])])
TMAX_TRY_FLAGS([HARDEN_LDFLAGS], [-Wl,-z,relro])
TMAX_TRY_FLAGS([HARDEN_LDFLAGS], [-Wl,-z,now])
AC_MSG_CHECKING([whether $CC makes programs that lie anywhere])
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#ifndef __PIE__
#error "they lie where the linker says"
#endif]])], [AC_MSG_RESULT([yes])], [
	AC_MSG_RESULT([no])
	TMAX_TRY_FLAGS([HARDEN_PIE], [-fPIE -pie])
	AS_IF([test -n "$HARDEN_PIE"], [AS_VAR_APPEND([HARDEN_CFLAGS], [" -fPIE"]) HARDEN_PIE=-pie])
])
])
