//! System calls that x86-64 has, and newer architectures have not: their C libraries make others, with more arguments. There, each has a
//! number here that no call has (the kernel tells numbers of 32 bits), so that lists of calls are the same everywhere.

#[cfg(target_arch = "x86_64")]
pub(super) use libc::{
    SYS_access, SYS_alarm, SYS_arch_prctl, SYS_creat, SYS_dup2, SYS_epoll_create, SYS_fork, SYS_getpgrp,
    SYS_lstat, SYS_mkdir, SYS_open, SYS_pipe, SYS_readlink, SYS_rename, SYS_stat, SYS_time, SYS_unlink,
    SYS_vfork,
};

#[cfg(not(target_arch = "x86_64"))]
#[allow(non_upper_case_globals, reason = "libc's names")]
mod none {
    pub(in super::super) const SYS_open: i64 = i64::MIN + 1;
    pub(in super::super) const SYS_stat: i64 = i64::MIN + 2;
    pub(in super::super) const SYS_lstat: i64 = i64::MIN + 3;
    pub(in super::super) const SYS_readlink: i64 = i64::MIN + 4;
    pub(in super::super) const SYS_access: i64 = i64::MIN + 5;
    pub(in super::super) const SYS_arch_prctl: i64 = i64::MIN + 6;
    pub(in super::super) const SYS_getpgrp: i64 = i64::MIN + 7;
    pub(in super::super) const SYS_time: i64 = i64::MIN + 8;
    pub(in super::super) const SYS_fork: i64 = i64::MIN + 9;
    pub(in super::super) const SYS_vfork: i64 = i64::MIN + 10;
    pub(in super::super) const SYS_alarm: i64 = i64::MIN + 11;
    pub(in super::super) const SYS_pipe: i64 = i64::MIN + 12;
    pub(in super::super) const SYS_epoll_create: i64 = i64::MIN + 13;
    pub(in super::super) const SYS_dup2: i64 = i64::MIN + 14;
    pub(in super::super) const SYS_creat: i64 = i64::MIN + 15;
    pub(in super::super) const SYS_mkdir: i64 = i64::MIN + 16;
    pub(in super::super) const SYS_unlink: i64 = i64::MIN + 17;
    pub(in super::super) const SYS_rename: i64 = i64::MIN + 18;
}
#[cfg(not(target_arch = "x86_64"))]
pub(super) use none::*;
