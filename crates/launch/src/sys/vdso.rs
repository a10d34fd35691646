//! The kernel's own library.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use object::{Endianness, Object, ObjectSymbol};

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

/// linux/random.h, `struct vgetrandom_opaque_params`.
pub(crate) type RandomStateLayout = [u8; 64];

/// The size of a state by which the kernel's random function is asked how large a state is, and to be mapped with which flags.
pub(crate) const ASKS_FOR_LAYOUT: u64 = u64::MAX;

/// The kernel's random function, and what it answers to the question for the layout of its states. That is the same for all processes.
#[derive(Debug)]
pub(crate) struct RandomFunction {
    /// Bytes from the beginning of the library.
    pub offset: u64,
    pub layout: RandomStateLayout,
}

/// Returns the random function, which libraries have since Linux 6.11. glibc asks for the layout before main, since 2.41.
pub(crate) fn random_function() -> Option<&'static RandomFunction> {
    static FUNCTION: OnceLock<Option<RandomFunction>> = OnceLock::new();
    FUNCTION.get_or_init(find_random_function).as_ref()
}

fn find_random_function() -> Option<RandomFunction> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (from, rest) = line.split_once('-')?;
    let from = u64::from_str_radix(from, 16).ok()?;
    let to = u64::from_str_radix(rest.split(' ').next()?, 16).ok()?;
    let mut bytes = vec![0; (to - from) as usize];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, from).ok()?;
    let elf = object::read::elf::ElfFile64::<Endianness, _>::parse(&*bytes).ok()?;
    let names: [&[u8]; 2] = [b"__vdso_getrandom", b"__kernel_getrandom"];
    let symbol =
        elf.dynamic_symbols().find(|symbol| symbol.name_bytes().is_ok_and(|name| names.contains(&name)))?;
    let offset = symbol.address();
    type Function =
        unsafe extern "C" fn(*mut libc::c_void, usize, u32, *mut RandomStateLayout, usize) -> isize;
    // SAFETY: the kernel's library has a function of this type under this name (arch/*/entry/vdso, vgetrandom.c).
    let function = unsafe { std::mem::transmute::<usize, Function>((from + offset) as usize) };
    let mut layout = [0; 64];
    // SAFETY: with this size of a state, the function only fills the structure behind the pointer.
    let result = unsafe { function(std::ptr::null_mut(), 0, 0, &mut layout, ASKS_FOR_LAYOUT as usize) };
    (result == 0).then_some(RandomFunction { offset, layout })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_state_of_random_numbers_has_a_size() {
        // Older kernels have none.
        if let Some(function) = super::random_function() {
            let [a, b, c, d, ..] = function.layout;
            assert!((1..4096).contains(&u32::from_ne_bytes([a, b, c, d])), "{function:?}");
        }
    }

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
