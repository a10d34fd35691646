//! Asks the kernel and the C library for features, without using them.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;

/// `PR_SET_SYSCALL_USER_DISPATCH`, and its mode `PR_SYS_DISPATCH_OFF`.
const SET_DISPATCH: libc::c_int = 59;
const OFF: libc::c_ulong = 0;

/// Returns whether the kernel can hand a process its own system calls.
pub fn has_syscall_user_dispatch() -> bool {
    // SAFETY: switching off takes no address. Nothing in this process has switched it on.
    unsafe { libc::prctl(SET_DISPATCH, OFF, OFF, OFF, OFF) == 0 }
}

/// Returns whether the C library has a locale of this name for characters (LC_CTYPE).
pub fn has_locale(name: &OsStr) -> bool {
    let Ok(name) = CString::new(name.as_bytes()) else { return false };
    // SAFETY: the name is a string; the library makes a new locale of it, which nothing uses, or returns null.
    unsafe {
        let made = libc::newlocale(libc::LC_CTYPE_MASK, name.as_ptr(), std::ptr::null_mut());
        if !made.is_null() {
            libc::freelocale(made);
        }
        !made.is_null()
    }
}

/// Returns the version of the C library in this process.
pub fn glibc_version() -> String {
    // SAFETY: the library returns a string that is never freed or changed.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    version.to_string_lossy().into_owned()
}
