//! Cache of the configuration helper's answers, kept from one run to the next with all that they depend on.
//!
//! A conversation with the helper is a chain: a config's result depends on the configs before it. So the key of an answer is that of
//! the run (program, Python, settings, environment) and all requests up to its own. The answer is used again only if every path that
//! the helper looked at up to there still looks the same. At the end of the run the helper lists these paths
//! (`python/litprobe/trace.py`), or forbids caching. docs/design/config-cache.md has the rules.

mod print;

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hotstart_launch::time_of_files;
use serde::{Deserialize, Serialize};

use self::print::Look;

/// Most runs that the cache holds: different settings, directories, environments.
const RUNS: usize = 64;

/// One answer.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// Kind of look, path, and print of what was seen.
    seen: Vec<(String, String, String)>,
    reply: String,
}

/// The helper's report on its answers.
#[derive(Debug, Deserialize)]
pub(super) struct Told {
    /// The reason that forbids caching, if any.
    why: Option<String>,
    /// For each answer: kind of look, path, whether the path existed.
    parts: Vec<Vec<(String, String, u8)>>,
}

/// The answers of one run.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    /// Whether no other user can have written there.
    is_ours: bool,
    begun: SystemTime,
    /// Hash of all requests so far.
    chain: u64,
    /// Position of each request in the chain, and the answer; filled while the helper answers.
    answers: Vec<(u64, Vec<u8>)>,
    /// Prints that were taken already.
    compared: HashMap<(Look, PathBuf), String>,
}

impl Cache {
    /// Creates the cache of the runs with this key, below `root`.
    pub fn new(root: &Path, key: &[&[u8]]) -> Cache {
        let half = |salt: u64| hash(|hasher| (salt, key).hash(hasher));
        let dir = root.join(format!("{:016x}{:016x}", half(1), half(2)));
        let is_ours = fs::metadata(&dir)
            .is_ok_and(|data| data.uid() == rustix::process::getuid().as_raw() && data.mode() & 0o022 == 0);
        Cache {
            dir,
            is_ours,
            begun: time_of_files(),
            chain: 0,
            answers: Vec::new(),
            compared: HashMap::new(),
        }
    }

    /// Advances by one request. Returns the answer if it is cached and still valid.
    pub fn recall(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        self.advance(request);
        if !self.is_ours {
            return None;
        }
        let text = fs::read(self.place(self.chain)).ok()?;
        let Entry { seen, reply } = serde_json::from_slice(&text).ok()?;
        let holds = seen.iter().all(|(look, path, print)| {
            Look::named(look).is_some_and(|look| self.print(look, Path::new(path)) == *print)
        });
        holds.then(|| reply.into_bytes())
    }

    /// Advances by one request, which the helper will answer.
    pub fn advance(&mut self, request: &[u8]) {
        let before = self.chain;
        self.chain = hash(|hasher| (before, request).hash(hasher));
    }

    /// Records the helper's answer to the last request.
    pub fn answered(&mut self, reply: &[u8]) {
        self.answers.push((self.chain, reply.to_vec()));
    }

    /// Restarts the chain, without requests.
    pub fn restart(&mut self) {
        (self.chain, self.begun) = (0, time_of_files());
        self.answers.clear();
        self.compared.clear();
    }

    /// Removes the cached answers of this run.
    pub fn forget(&self) {
        drop(fs::remove_dir_all(&self.dir));
    }

    /// Writes the answers to the cache. The error is the reason why it does not.
    pub fn keep(&mut self, told: &Told) -> Result<(), String> {
        if let Some(why) = &told.why {
            return Err(why.clone());
        }
        if told.parts.len() != self.answers.len() {
            return Err(format!("{} answers depend on {} parts", self.answers.len(), told.parts.len()));
        }
        let mut entries = Vec::new();
        for ((chain, reply), part) in std::mem::take(&mut self.answers).into_iter().zip(&told.parts) {
            let reply = String::from_utf8(reply).map_err(|_| "an answer is not UTF-8".to_owned())?;
            entries.push((chain, Entry { seen: self.settled(part)?, reply }));
        }
        self.write(&entries).map_err(|error| format!("'{}' cannot be written: {error}", self.dir.display()))
    }

    /// Returns the prints of the paths, if they have not changed since the helper looked at them.
    fn settled(&mut self, part: &[(String, String, u8)]) -> Result<Vec<(String, String, String)>, String> {
        let mut seen = Vec::with_capacity(part.len());
        for (letter, path, there) in part {
            let look = Look::named(letter).ok_or_else(|| format!("a look of kind '{letter}'"))?;
            let file = Path::new(path);
            let print = self.print(look, file);
            if !print::is_telling(look, file) {
                return Err(format!("nothing tells when '{path}' changes"));
            }
            if print::is_there(&print) != (*there == 1) || !print::is_settled(look, file, self.begun) {
                return Err(format!("'{path}' has just changed"));
            }
            seen.push((letter.clone(), path.clone(), print));
        }
        Ok(seen)
    }

    fn print(&mut self, look: Look, path: &Path) -> String {
        let known = self.compared.entry((look, path.to_owned()));
        known.or_insert_with(|| print::print(look, path)).clone()
    }

    fn write(&self, entries: &[(u64, Entry)]) -> io::Result<()> {
        if !self.dir.exists() {
            make_room(self.dir.parent().unwrap_or(Path::new(".")));
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        for (chain, entry) in entries {
            let place = self.place(*chain);
            let new = place.with_extension(format!("{}", std::process::id()));
            fs::write(&new, serde_json::to_vec(entry)?)?;
            fs::rename(&new, &place)?;
        }
        Ok(())
    }

    fn place(&self, chain: u64) -> PathBuf {
        self.dir.join(format!("{chain:016x}"))
    }
}

/// Removes the runs that were written longest ago, if there are too many.
fn make_room(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    let age = |entry: fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    let mut dirs: Vec<_> = entries.flatten().filter_map(age).collect();
    dirs.sort();
    for (_, dir) in dirs.iter().take(dirs.len().saturating_sub(RUNS - 1)) {
        drop(fs::remove_dir_all(dir));
    }
}

fn hash(feed: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(&mut hasher);
    hasher.finish()
}

/// Returns everything else that an evaluation can depend on: this program, the Python, the environment, the machine, the user.
pub(super) fn surroundings(python: &Path, cwd: &Path) -> Vec<Vec<u8>> {
    let system = rustix::system::uname();
    let names = [system.nodename(), system.release(), system.version(), system.machine()];
    let mut key: Vec<Vec<u8>> = names.iter().map(|name| name.to_bytes().to_vec()).collect();
    for file in [std::env::current_exe().ok(), Some(python.to_path_buf())].into_iter().flatten() {
        let seen = fs::metadata(&file).map(|data| print::whole(&data));
        key.push([file.as_os_str().as_bytes(), seen.unwrap_or_default().as_bytes()].concat());
    }
    // User, groups, rights, processors allowed: `os.access`, `os.sched_getaffinity`. `os.cpu_count` has those that are there.
    for file in ["/proc/self/status", "/sys/devices/system/cpu/online"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        key.extend(text.lines().filter(|line| is_input(line)).map(|line| line.as_bytes().to_vec()));
    }
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    key.push(format!("{processors}").into_bytes());
    key.push(cwd.as_os_str().as_bytes().to_vec());
    for (name, value) in std::env::vars_os() {
        key.push([name.as_bytes(), b"=", value.as_bytes()].concat());
    }
    key
}

/// Returns whether a line of these files is an input: each without a name, and of `/proc/self/status` what follows from the run's
/// user and settings.
fn is_input(line: &str) -> bool {
    const NAMES: [&str; 7] = ["Uid", "Gid", "Groups", "CapEff", "Umask", "Cpus_allowed", "Seccomp"];
    line.split_once(':').is_none_or(|(name, _)| NAMES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn kept(root: &Path, part: &[(String, String, u8)]) -> Result<(), String> {
        let mut cache = Cache::new(root, &[b"key"]);
        cache.begun += Duration::from_secs(1);
        assert_eq!(cache.recall(b"a"), None);
        cache.answered(b"A");
        assert_eq!(cache.recall(b"b"), None);
        cache.answered(b"B");
        cache.keep(&Told { why: None, parts: vec![Vec::new(), part.to_vec()] })
    }

    #[test]
    fn an_answer_holds_while_what_it_depends_on_does() {
        let dir = tempfile::tempdir().unwrap();
        let (root, file) = (dir.path().join("cache"), dir.path().join("f"));
        fs::write(&file, "1").unwrap();
        kept(&root, &[("f".into(), file.to_str().unwrap().into(), 1)]).unwrap();
        let recall = |requests: &[&[u8]]| {
            let mut cache = Cache::new(&root, &[b"key"]);
            requests.iter().map(|request| cache.recall(request)).collect::<Vec<_>>()
        };
        assert_eq!(recall(&[b"a", b"b"]), [Some(b"A".to_vec()), Some(b"B".to_vec())]);
        assert_eq!(recall(&[b"b"]), [None], "an answer belongs to all requests before it");
        fs::write(&file, "2").unwrap();
        assert_eq!(recall(&[b"a", b"b"]), [Some(b"A".to_vec()), None]);
        assert_eq!(Cache::new(&root, &[b"ke", b"y"]).recall(b"a"), None, "another key");
    }

    #[test]
    fn what_is_not_as_the_helper_saw_it_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f").to_str().unwrap().to_owned();
        let error = kept(&dir.path().join("cache"), &[("s".into(), file, 1)]).unwrap_err();
        assert!(error.ends_with("/f' has just changed"), "{error}");
        assert!(!dir.path().join("cache").exists());
    }

    #[test]
    fn the_oldest_run_makes_room() {
        let dir = tempfile::tempdir().unwrap();
        for name in 0..RUNS + 3 {
            fs::create_dir(dir.path().join(name.to_string())).unwrap();
        }
        make_room(dir.path());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), RUNS - 1);
    }
}
