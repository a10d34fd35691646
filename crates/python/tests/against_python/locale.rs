//! What Python makes of the C locale, in each mixture of variables.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use hotstart_python::locale::ctype_instead_of_c;

use crate::driver::{Random, count, python};

const NAMES: [&str; 4] = ["LC_ALL", "LC_CTYPE", "LANG", "PYTHONCOERCECLOCALE"];
const LOCALES: [Option<&str>; 8] = [
    None,
    Some(""),
    Some("C"),
    Some("POSIX"),
    Some("C.UTF-8"),
    Some("C.utf8"),
    Some("xx_YY.UTF-8"),
    Some("en_US.UTF-8"),
];
const SWITCHES: [Option<&str>; 4] = [None, Some(""), Some("0"), Some("1")];

/// Prints what this Python says in this environment only.
fn ask(python: &Path, program: &str, variables: &[(&str, &str)]) -> String {
    let output =
        Command::new(python).args(["-c", program]).env_clear().envs(variables.iter().copied()).output();
    String::from_utf8(output.expect("Python starts").stdout).expect("text").trim_end().to_owned()
}

#[test]
fn the_c_locale_is_given_up_as_by_python() {
    let python = python();
    let program = "import locale, os\n\
                   try: print(locale.setlocale(locale.LC_CTYPE, os.environ['NAME']))\n\
                   except locale.Error: pass";
    let exists = |name: &&str| !name.is_empty() && !ask(&python, program, &[("NAME", name)]).is_empty();
    let existing: Vec<_> = LOCALES.into_iter().flatten().filter(exists).collect();
    let mut random = Random::new(7);
    for _ in 0..count(200) {
        let mut variables = Vec::new();
        for name in NAMES {
            let values = if name == NAMES[3] { &SWITCHES[..] } else { &LOCALES[..] };
            variables.extend(values[random.below(values.len())].map(|value| (name, value)));
        }
        let get = |name: &str| Some(OsStr::new(variables.iter().find(|(key, _)| *key == name)?.1));
        let expected = ask(&python, "import os; print(os.environ.get('LC_CTYPE', '-'))", &variables);
        let own = ctype_instead_of_c(get, |name| existing.iter().any(|one| name == *one))
            .or_else(|| get("LC_CTYPE")?.to_str())
            .unwrap_or("-");
        assert_eq!(own, expected, "{variables:?}");
    }
}
