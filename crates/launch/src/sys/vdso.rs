//! The kernel's own library.

use std::sync::OnceLock;

/// Returns whether the kernel seals the mapping (`CONFIG_MSEAL_SYSTEM_MAPPINGS`), so that it cannot be kept from a process that knows it.
pub(crate) fn is_sealed() -> bool {
    static SEALED: OnceLock<bool> = OnceLock::new();
    *SEALED.get_or_init(|| {
        // SAFETY: getauxval reads the auxiliary vector only.
        let base = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
        let access = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: the page keeps the access that it has.
        base != 0 && unsafe { libc::mprotect(base as *mut libc::c_void, 4096, access) } != 0
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn asking_changes_nothing() {
        let mapped = || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            maps.lines().find(|line| line.ends_with("[vdso]")).map(str::to_owned)
        };
        let before = mapped();
        super::is_sealed();
        assert_eq!(mapped(), before);
    }
}
