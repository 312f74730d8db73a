# SPDX-License-Identifier: MIT
# find_package(patchcore) brings patchcore::patchcore and, where it is installed, patchcore::check. Found from
# where this file lies, so that a tree that was moved serves, too.
get_filename_component(_patchcore_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
find_path(patchcore_INCLUDE_DIR patchcore/patchcore.h
  HINTS "${_patchcore_lib}/../include" "${_patchcore_lib}/../../include")
mark_as_advanced(patchcore_INCLUDE_DIR)

# The shared library, or the static one and what that needs.
function(_patchcore_import target name)
  if(TARGET ${target})
    return()
  endif()
  if(EXISTS "${_patchcore_lib}/lib${name}.so")
    add_library(${target} SHARED IMPORTED)
    set(file "${_patchcore_lib}/lib${name}.so")
    set(ARGN "")
  elseif(EXISTS "${_patchcore_lib}/lib${name}.a")
    add_library(${target} STATIC IMPORTED)
    set(file "${_patchcore_lib}/lib${name}.a")
  else()
    return()
  endif()
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${file}"
    INTERFACE_INCLUDE_DIRECTORIES "${patchcore_INCLUDE_DIR}" INTERFACE_LINK_LIBRARIES "${ARGN}")
endfunction()

_patchcore_import(patchcore::patchcore patchcore inih pthread m)
_patchcore_import(patchcore::check patchcore_check Zydis Zycore)
if(TARGET patchcore::check)
  set_property(TARGET patchcore::check APPEND PROPERTY INTERFACE_LINK_LIBRARIES patchcore::patchcore)
  set(patchcore_check_FOUND TRUE)
endif()
if(NOT TARGET patchcore::patchcore OR NOT patchcore_INCLUDE_DIR)
  set(patchcore_FOUND FALSE)
  set(patchcore_NOT_FOUND_MESSAGE "libpatchcore or its headers are missing beside ${_patchcore_lib}")
endif()
foreach(_patchcore_part IN LISTS patchcore_FIND_COMPONENTS)
  if(NOT patchcore_${_patchcore_part}_FOUND AND patchcore_FIND_REQUIRED_${_patchcore_part})
    set(patchcore_FOUND FALSE)
    set(patchcore_NOT_FOUND_MESSAGE "libpatchcore_${_patchcore_part} is not installed")
  endif()
endforeach()
