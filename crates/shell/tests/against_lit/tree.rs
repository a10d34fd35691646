//! Creates the initial files of a script, and describes the files that it leaves.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use hotstart_model::Environment;

/// A `not` with a sufficient part of the real one.
const NOT: &str =
    "#!/bin/sh\nwhile [ \"$1\" = not ] || [ \"$1\" = --crash ]; do shift; done\n\"$@\"\n[ $? -gt 128 ]\n";

/// Creates the files of a directory, with the working directory `w`.
pub fn plant(root: &Path) {
    let work = root.join("w");
    fs::create_dir_all(work.join("dir/sub")).expect("fresh");
    let long: String = (0..60).map(|i| format!("line {}\n", i * 7 % 10)).collect();
    let big: String = (0..30_000).map(|i| format!("{i}\n")).collect();
    let files: &[(&str, &[u8])] = &[
        ("a.txt", b"one\ntwo\nthree\n"),
        ("b.txt", b"one\n2\nthree\nfour"),
        ("space.txt", b" one  two\nthree\t\n"),
        ("crlf.txt", b"one\r\ntwo\rthree\r\n"),
        ("bin.dat", b"\xff\xfe\x00one\r\ntwo\x80\n"),
        ("utf8.txt", "é\u{2028}ü\n".as_bytes()),
        ("empty", b""),
        ("noexec", b"#!/bin/sh\nexit 0\n"),
        ("words", b"x y\nz\n"),
        ("long.txt", long.as_bytes()),
        ("big.txt", big.as_bytes()),
        ("dir/x.c", b"x\n"),
        ("dir/y.c", b"y\n"),
        ("dir/.hidden", b"h\n"),
        ("dir/sub/z.c", b"z\n"),
    ];
    for (name, content) in files {
        fs::write(work.join(name), content).expect("fresh");
    }
    let programs = [
        ("run.sh", "#!/bin/sh\necho \"ran $0 $#\"\nexit 3\n"),
        ("bad.sh", "#!/missing/shell\n"),
        ("plain.sh", "echo no\n"),
    ];
    for (name, content) in programs {
        program(&work.join(name), content);
    }
    program(&root.parent().expect("a parent").join("tools/not"), NOT);
    for (name, target) in [("link", "a.txt"), ("dangling", "nowhere"), ("dlink", "dir")] {
        symlink(target, work.join(name)).expect("fresh");
    }
}

fn program(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("writable");
    if !path.exists() {
        fs::write(path, content).expect("writable");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("ours");
    }
}

/// Returns the environment of the commands.
pub fn environment(root: &Path) -> Environment {
    let path = format!("{}/tools:/usr/bin:/bin", root.display());
    let vars =
        [("PATH", path.as_str()), ("LC_ALL", "C.UTF-8"), ("B", "old"), ("LIT_CURRENT_TESTCASE", "t :: x")];
    vars.into_iter().collect()
}

/// Describes names, types, modes and contents.
pub fn describe(root: &Path) -> String {
    let mut out = String::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(path) = pending.pop() {
        let found = fs::symlink_metadata(&path).expect("listed");
        let _ = write!(out, "{} {:o}", path.display(), found.permissions().mode());
        if found.is_dir() {
            let mut inner: Vec<_> =
                fs::read_dir(&path).expect("ours").map(|e| e.expect("listed").path()).collect();
            inner.sort();
            pending.extend(inner);
        } else if found.is_symlink() {
            let _ = write!(out, " -> {}", fs::read_link(&path).expect("a link").display());
        } else {
            let content = fs::read(&path).expect("a file");
            let shown = String::from_utf8_lossy(&content[..content.len().min(400)]).into_owned();
            // lit's `cat` writes this if it is abandoned and its pipe closed. Ours writes nothing.
            let is_abandoned = String::from_utf8_lossy(&content).contains("[Errno 32] Broken pipe");
            let (content, shown) =
                if is_abandoned { (&b""[..], String::new()) } else { (&content[..], shown) };
            // A traceback names lines of lit's program.
            let _ = match shown.contains("Traceback (most recent call last)") {
                true => write!(out, " a traceback"),
                false => write!(out, " {} {shown:?}", content.len()),
            };
        }
        out.push('\n');
    }
    out
}
