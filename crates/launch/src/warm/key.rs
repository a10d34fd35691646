//! The key of a start: everything that may influence a process before `main`, as one byte string. Equal keys may share a
//! zygote.
//!
//! The program's own file and its libraries are not in the key. They are compared before every start (`files`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::exe;
use super::layout::Layout;
use super::observe::stdio::{self, Class};
use super::refused::Size;
use super::search::{self, Search};
use crate::sys::limits;
use crate::{EnvBlock, Limit, Reason, Spec};

/// Prefixes of variables that ld.so, libc or a run-time library reads by itself, so that no observation run sees it.
const PREFIXES: [&[u8]; 11] = [
    b"LD_",
    b"MALLOC_",
    b"MIMALLOC_",
    b"LC_",
    b"OMP_",
    b"GOMP_",
    b"KMP_",
    b"LIBOMP",
    b"ASAN_",
    b"UBSAN_",
    b"TSAN_",
];
const NAMES: [&[u8]; 12] = [
    b"GLIBC_TUNABLES",
    b"LANG",
    b"LANGUAGE",
    b"LOCPATH",
    b"NLSPATH",
    b"GCONV_PATH",
    b"TZ",
    b"TZDIR",
    b"LLVM_PROFILE_FILE",
    b"LSAN_OPTIONS",
    b"MSAN_OPTIONS",
    b"POSIXLY_CORRECT",
];

/// Inputs other than variables that constructors have looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Looks {
    /// The standard descriptors.
    pub stdio: [bool; 3],
    /// The set of usable processors.
    pub processors: bool,
    /// The limits, by their numbers.
    pub limits: BTreeSet<u32>,
    /// The system's names.
    pub system: bool,
    /// What a Python script can look at in its interpreter.
    pub python: bool,
}

/// The further variables and other inputs that belong to the key of one program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    names: Vec<Vec<u8>>,
    looks: Looks,
}

impl Asked {
    /// Adds a name. Returns whether it is new.
    pub(crate) fn add(&mut self, name: &[u8]) -> bool {
        let new = !in_key(name) && !self.names.iter().any(|n| n == name);
        if new {
            self.names.push(name.to_vec());
        }
        new
    }

    /// Adds inputs that were looked at. Returns whether any of them is new.
    pub(crate) fn add_looks(&mut self, looks: &Looks) -> bool {
        let before = self.looks.clone();
        for (own, new) in self.looks.stdio.iter_mut().zip(looks.stdio) {
            *own |= new;
        }
        self.looks.processors |= looks.processors;
        self.looks.limits.extend(&looks.limits);
        self.looks.system |= looks.system;
        self.looks.python |= looks.python;
        self.looks != before
    }

    /// Returns whether the tool is a Python script.
    pub(crate) fn is_python(&self) -> bool {
        self.looks.python
    }

    /// Returns whether the kind of a standard descriptor is in the key.
    pub(crate) fn has_streams(&self) -> bool {
        self.looks.stdio.contains(&true)
    }

    /// Returns the reason for which no zygote can be as constructors would find this request: a standard descriptor of
    /// another class, or a limit that is not the runner's.
    pub(crate) fn refuses(&self, spec: &Spec<'_>) -> Option<Reason> {
        let mut looked = self.looks.stdio.iter().zip(spec.stdio).filter(|(looked, _)| **looked);
        if looked.any(|(_, fd)| stdio::class(fd) == Class::Other) {
            return Some(Reason::LooksAtStream);
        }
        if let Some(reason) = self.looks.python.then(|| refuses_python(spec)).flatten() {
            return Some(reason);
        }
        let is_others = |limit: &&Limit| {
            let number = limit.resource.number();
            !limit.resource.is_of_zygote()
                && self.looks.limits.contains(&number)
                && limits::own(number) != [limit.soft, limit.hard]
        };
        spec.limits.iter().find(is_others).map(|_| Reason::Limits)
    }

    /// Appends the inputs that were looked at, as `spec` has them.
    fn look(&self, spec: &Spec<'_>, key: &mut Vec<u8>) {
        for (fd, _) in spec.stdio.iter().zip(self.looks.stdio).filter(|(_, looked)| *looked) {
            stdio::class(*fd).write(key);
        }
        if self.looks.processors {
            let set = rustix::thread::sched_getaffinity(None).unwrap_or_default();
            let mut bits = (0..rustix::thread::CpuSet::MAX_CPU).map(|cpu| set.is_set(cpu));
            while let Some(first) = bits.next() {
                let more = bits.by_ref().take(7).enumerate();
                let byte = more.fold(u8::from(first), |byte, (at, bit)| byte | u8::from(bit) << (at + 1));
                key.push(byte);
            }
        }
        if self.looks.system {
            let system = rustix::system::uname();
            for name in
                [system.sysname(), system.nodename(), system.release(), system.version(), system.machine()]
            {
                key.extend_from_slice(name.to_bytes_with_nul());
            }
            key.extend_from_slice(system.domainname().to_bytes_with_nul());
        }
        for &number in &self.looks.limits {
            for value in limits::own(number) {
                key.extend_from_slice(&value.unwrap_or(u64::MAX).to_ne_bytes());
            }
        }
    }

    fn has(&self, name: &[u8]) -> bool {
        self.names.iter().any(|n| n == name)
    }
}

/// Python's variables with which a zygote's interpreter is as that of a cold start, with their values in the key; and variables of
/// Python's container images, which no interpreter reads.
const PYTHON: [&[u8]; 18] = [
    b"PYTHONPATH",
    b"PYTHONHOME",
    b"PYTHONHASHSEED",
    b"PYTHONDONTWRITEBYTECODE",
    b"PYTHONNOUSERSITE",
    b"PYTHONUSERBASE",
    b"PYTHONIOENCODING",
    b"PYTHONUTF8",
    b"PYTHONOPTIMIZE",
    b"PYTHONSAFEPATH",
    b"PYTHONWARNINGS",
    b"PYTHONUNBUFFERED",
    b"PYTHON_VERSION",
    b"PYTHON_SHA256",
    b"PYTHON_PIP_VERSION",
    b"PYTHON_SETUPTOOLS_VERSION",
    b"PYTHON_GET_PIP_URL",
    b"PYTHON_GET_PIP_SHA256",
];

/// Returns the reason for which no Python script can serve this start: a stream that its interpreter would open otherwise, a
/// variable that changes more than is known, or a path that depends on the working directory.
fn refuses_python(spec: &Spec<'_>) -> Option<Reason> {
    if !spec.stdio.iter().all(|fd| stdio::is_plain(*fd)) {
        return Some(Reason::LooksAtStream);
    }
    if !Search::of(&spec.env).relative().is_empty() {
        return Some(Reason::RelativePath);
    }
    spec.env.strings().filter(|assignment| assignment.starts_with(b"PYTHON")).find_map(|assignment| {
        let sign = memchr::memchr(b'=', assignment)?;
        let (name, value) = (&assignment[..sign], &assignment[sign + 1..]);
        let is_path = matches!(name, b"PYTHONPATH" | b"PYTHONHOME" | b"PYTHONUSERBASE") && !value.is_empty();
        let is_relative = is_path && value.split(|&byte| byte == b':').any(|part| !part.starts_with(b"/"));
        match PYTHON.contains(&name) {
            false => Some(Reason::ReadsEnvironment),
            true => is_relative.then_some(Reason::RelativePath),
        }
    })
}

/// Returns whether the environment gives Python's hashes a certain seed.
pub(crate) fn has_hash_seed(env: &EnvBlock) -> bool {
    let value = env.strings().find_map(|assignment| assignment.strip_prefix(b"PYTHONHASHSEED="));
    value.is_some_and(|value| !value.is_empty() && value.iter().all(u8::is_ascii_digit))
}

/// The first bytes of these names. At each start they rule out most variables at once.
const FIRST: [bool; 256] = {
    let mut first = [false; 256];
    let mut at = 0;
    while at < PREFIXES.len() {
        first[PREFIXES[at][0] as usize] = true;
        at += 1;
    }
    at = 0;
    while at < NAMES.len() {
        first[NAMES[at][0] as usize] = true;
        at += 1;
    }
    first
};

/// Returns whether the loader, libc or a run-time library may read this variable in any program.
pub fn is_read_by_libraries(name: &std::ffi::OsStr) -> bool {
    in_key(name.as_encoded_bytes())
}

/// Returns whether the variable is in the key of every program.
pub(crate) fn is_always_in(name: &[u8]) -> bool {
    in_key(name)
}

fn in_key(name: &[u8]) -> bool {
    let may_be = name.first().is_some_and(|&byte| FIRST[usize::from(byte)]);
    may_be && (PREFIXES.iter().any(|p| name.starts_with(p)) || NAMES.contains(&name))
}

/// Returns the key of a start.
pub(crate) fn of(spec: &Spec<'_>, asked: &Asked) -> Vec<u8> {
    of_exe(spec, asked, &exe::of_file(&spec.program))
}

/// Returns the key of a start of a program with this path in `/proc/self/exe`.
pub(crate) fn of_exe(spec: &Spec<'_>, asked: &Asked, exe: &[u8]) -> Vec<u8> {
    let mut key = of_parts(spec.argv.first().map_or(OsStr::new(""), |name| name), &spec.env, asked);
    key.extend_from_slice(exe);
    key.push(0);
    asked.look(spec, &mut key);
    inherit(spec, &mut key);
    key
}

/// Returns the key of the zygote that serves a start of a program with this path in `/proc/self/exe`.
pub(crate) fn of_zygote(spec: &Spec<'_>, layout: Layout, asked: &Asked, exe: &[u8]) -> Vec<u8> {
    let mut key = of_exe(spec, asked, exe);
    if !asked.looks.python {
        key.push(Size::of(spec) as u8);
    }
    // The last byte (`layout::without`).
    key.push(layout.byte());
    key
}

/// Appends settings that a zygote has from its exec and that are not the runner's.
fn inherit(spec: &Spec<'_>, key: &mut Vec<u8>) {
    for limit in spec.limits.iter().filter(|limit| limit.resource.is_of_zygote()) {
        key.push(b'L');
        key.extend_from_slice(&limit.resource.number().to_ne_bytes());
        for value in [limit.soft, limit.hard] {
            key.extend_from_slice(&value.unwrap_or(u64::MAX).to_ne_bytes());
        }
    }
    if let Some(ignored) = spec.ignored {
        key.push(b'I');
        key.extend_from_slice(&ignored.to_ne_bytes());
    }
}

/// Returns the key of starts of a program called `name` with `env`.
fn of_parts(name: &OsStr, env: &EnvBlock, asked: &Asked) -> Vec<u8> {
    let mut key = Vec::with_capacity(256);
    key.extend_from_slice(name.as_bytes());
    key.push(0);
    for assignment in env.strings() {
        let name = &assignment[..memchr::memchr(b'=', assignment).unwrap_or(assignment.len())];
        if in_key(name) || asked.has(name) {
            key.extend_from_slice(assignment);
            key.push(0);
        }
    }
    key
}

/// Variables that have a name like the loader's, and that no glibc knows. BOLT's tests get the name of a linker by this one.
const NOT_THE_LOADERS: [&[u8]; 1] = [b"LD_LLD"];

/// Returns whether a variable of this name may steer the loader.
pub fn may_steer_loader(name: &[u8]) -> bool {
    name.starts_with(b"LD_") && !NOT_THE_LOADERS.contains(&name)
}

/// Returns the reason for which this environment needs a cold start; `None` if it does not.
pub(crate) fn refuses(spec: &Spec<'_>) -> Option<Reason> {
    spec.env.strings().find_map(|assignment| {
        let sign = assignment
            .iter()
            .position(|&b| b == b'=')
            .filter(|&sign| may_steer_loader(&assignment[..sign]))?;
        let (name, value) = (&assignment[..sign], &assignment[sign + 1..]);
        match name {
            search::NAME => search::refuses(value),
            b"LD_PRELOAD" => {
                let relative =
                    |file: &[u8]| !file.is_empty() && file.contains(&b'/') && !file.starts_with(b"/");
                value.split(|&b| b == b':' || b == b' ').any(relative).then_some(Reason::RelativePath)
            }
            _ => Some(Reason::LoaderVariable),
        }
    })
}

/// Returns the environment of a zygote: the request's, with the runtime and the allocator before the user's own preloads.
pub(crate) fn zygote_environment(
    spec: &Spec<'_>,
    runtime: &str,
    allocator: Option<&Path>,
) -> (Vec<u8>, usize) {
    let mut blob = Vec::with_capacity(spec.env.blob().len() + 64);
    let mut users = None;
    let mut count = 1;
    for assignment in spec.env.strings() {
        match assignment.strip_prefix(b"LD_PRELOAD=") {
            Some(value) => users = Some(value),
            None => {
                blob.extend_from_slice(assignment);
                blob.push(0);
                count += 1;
            }
        }
    }
    blob.extend_from_slice(b"LD_PRELOAD=");
    blob.extend_from_slice(runtime.as_bytes());
    if let Some(allocator) = allocator {
        blob.push(b':');
        blob.extend_from_slice(allocator.as_os_str().as_bytes());
    }
    if let Some(users) = users.filter(|u| !u.is_empty()) {
        blob.push(b':');
        blob.extend_from_slice(users);
    }
    blob.push(0);
    (blob, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_before_main_is_in_the_key() {
        assert!(NAMES.iter().chain(&PREFIXES).all(|name| in_key(name)));
        assert!(in_key(b"LC_ALL") && in_key(b"LD_BIND_NOW"));
        assert!(may_steer_loader(b"LD_") && may_steer_loader(b"LD_LL") && may_steer_loader(b"LD_LLD_"));
        assert!(!may_steer_loader(b"LD_LLD") && !may_steer_loader(b"LD"));
        for other in [&b""[..], b"L", b"LANGUAGES", b"PATH", b"TERM", b"MAIL"] {
            assert!(!in_key(other), "{}", String::from_utf8_lossy(other));
        }
    }
}
