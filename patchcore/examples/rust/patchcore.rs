// SPDX-License-Identifier: MIT
//! What a Rust program needs of libpatchcore to patch, and to know how long it has to wait. Written by hand;
//! patchcore/tests/test_rust.sh holds types, constants and sizes against the C header.
#![allow(non_camel_case_types, dead_code)]

use std::os::raw::{c_char, c_double, c_int, c_uint, c_void};

pub const PC_PATCH_MAX: usize = 8;
pub const PC_POLICY_AUTO: c_uint = 0;
pub const PC_POLICY_WAIT: c_uint = 1;
pub const PC_POLICY_MEMBARRIER: c_uint = 2;
pub const PC_POLICY_QUIET: c_uint = 3;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct pc_status {
    pub asked: c_uint,
    pub in_use: c_uint,
    pub first_wait: u64,
    pub second_wait: u64,
    pub stretch: u64,
    pub atomic_window: c_uint,
    pub conf_valid: c_int,
    pub upper_p: c_double,
    pub accept_p: c_double,
    pub traps: u64,
    pub changes: u64,
    pub undone: u64,
    pub conf_path: [c_char; 256],
    pub reason: [c_char; 256],
    pub level: c_uint,
    pub line_level: c_uint,
    pub page_p: c_double,
    pub line_p: c_double,
    pub long_run: c_int,
    pub runs: u64,
    pub measured: u64,
    pub later_wait: u64,
    pub later_p: c_double,
    pub line_later_wait: u64,
    pub line_later_p: c_double,
    pub fleet: c_int,
    pub accept_window_p: c_double,
    pub window_p: c_double,
    pub accept_rate: c_double,
    pub rest: u64,
    pub line_rest: u64,
}

#[link(name = "patchcore")]
extern "C" {
    pub fn pc_init() -> c_int;
    pub fn pc_fini() -> c_int;
    pub fn pc_patch(addr: *mut c_void, bytes: *const c_void, len: usize) -> c_int;
    pub fn pc_set_policy(policy: c_uint) -> c_int;
    pub fn pc_set_accept_p(p: c_double) -> c_int;
    pub fn pc_set_accept_window_p(p: c_double) -> c_int;
    pub fn pc_set_accept_rate(tears: c_double) -> c_int;
    pub fn pc_get_status(status: *mut pc_status) -> c_int;
}
