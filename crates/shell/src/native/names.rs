//! Knows the variables that bash sets, reads or treats in a way of its own. It does not know what they do.

/// The variables of bash's manual and of `compgen -v`, and those that older and newer versions add.
#[rustfmt::skip]
const OF_BASH: [&str; 73] = [
    "_", "auto_resume", "CDPATH", "CHILD_MAX", "COLUMNS", "command_oriented_history", "COMPREPLY", "COPROC", "DIRSTACK", "EMACS", "ENV",
    "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "EXECIGNORE", "FCEDIT", "FIGNORE", "FUNCNAME", "FUNCNEST", "GLOBIGNORE", "GLOBSORT",
    "GROUPS", "histchars", "HOME", "HOSTFILE", "HOSTNAME", "HOSTTYPE", "IFS", "IGNOREEOF", "ignoreeof", "INPUTRC", "INSIDE_EMACS", "LANG",
    "LINENO", "LINES", "MACHTYPE", "MAIL", "MAILCHECK", "MAILPATH", "MAPFILE", "no_exit_on_failed_exec", "nolinks", "notify", "OLDPWD",
    "OPTARG", "OPTERR", "OPTIND", "OSTYPE", "PATH", "PIPESTATUS", "POSIX_PEDANTIC", "POSIXLY_CORRECT", "PPID", "PS0", "PS1", "PS2", "PS3",
    "PS4", "PWD", "RANDOM", "REPLY", "SECONDS", "SHELL", "SHELLOPTS", "SHLVL", "SRANDOM", "TERM", "TEXTDOMAIN", "TEXTDOMAINDIR",
    "TIMEFORMAT", "TMOUT", "TMPDIR", "UID",
];

/// The beginnings of its families of variables.
const FAMILIES: [&str; 6] = ["BASH", "COMP_", "HIST", "LC_", "PROMPT_", "READLINE_"];

/// Those of them that bash hands on as it finds them, and that do not change what a script does (`tests/native` compares). The rest of
/// the rules takes care of PATH, SHLVL, and the order of file names.
#[rustfmt::skip]
const HANDED_ON: [&str; 16] = [
    "HOME", "HOSTNAME", "LANG", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME", "MAIL", "PATH",
    "SHELL", "SHLVL", "TERM", "TMPDIR",
];

/// Variables that the dynamic loader and libc look at, by their beginnings: those that glibc ignores in privileged programs, but for
/// TMPDIR. bash's own process, its builtins and `not`, none of which is started, would be under their influence.
#[rustfmt::skip]
const OF_LOADER: [&str; 14] = [
    "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES", "LD_", "LOCALDOMAIN", "LOCPATH", "MALLOC_", "NIS_PATH", "NLSPATH",
    "RESOLV_", "RES_OPTIONS", "TZDIR", "LIBC_",
];

/// Whether a program may not even start, or do something else, because of this variable.
pub(super) fn steers_loader(name: &str) -> bool {
    OF_LOADER.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether this is a name of a variable in the shell's language.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_bashs(name: &str) -> bool {
    OF_BASH.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Whether bash, started with this variable, has and exports it unchanged.
pub(super) fn may_be_imported(name: &str) -> bool {
    is_name(name) && !steers_loader(name) && (!is_bashs(name) || HANDED_ON.contains(&name))
}

/// Whether a script may export this variable. Of the names without an underscore only short ones are sure to be none of a version of
/// bash to come.
pub(super) fn may_be_exported(name: &str) -> bool {
    let is_short = name.len() <= 3 && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    let has_parts = !name.starts_with('_') && name.contains('_');
    is_name(name) && !is_bashs(name) && !steers_loader(name) && (is_short || has_parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bashs_own_are_neither_imported_nor_exported() {
        for name in [
            "PPID",
            "RANDOM",
            "LINENO",
            "OPTIND",
            "OPTERR",
            "PS1",
            "PS2",
            "HISTCMD",
            "EPOCHSECONDS",
            "BASHPID",
            "SRANDOM",
            "COMP_WORDBREAKS",
            "UID",
            "EUID",
            "SECONDS",
            "GROUPS",
            "FUNCNAME",
            "DIRSTACK",
            "PIPESTATUS",
            "IFS",
            "_",
            "BASH_FUNC_a%%",
            "1",
            "",
            "a.b",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "GLIBC_TUNABLES",
            "MALLOC_PERTURB_",
        ] {
            assert!(!may_be_imported(name) && !may_be_exported(name), "{name}");
        }
    }

    #[test]
    fn what_bash_hands_on_is_imported_but_not_exported() {
        for name in HANDED_ON {
            assert!(may_be_imported(name) && !may_be_exported(name), "{name}");
        }
        for name in ["A", "FOO", "LSAN_OPTIONS", "DYLD_LIBRARY_PATH", "no_proxy"] {
            assert!(may_be_imported(name) && may_be_exported(name), "{name}");
        }
        assert!(
            may_be_imported("PYTHONPATH") && !may_be_exported("PYTHONPATH"),
            "bash may come to use such a name"
        );
    }

    /// Those of the bash that is installed, whatever its version.
    #[test]
    fn what_bash_has_by_itself_is_known() {
        let bash =
            std::process::Command::new("bash").args(["--norc", "-c", "compgen -v"]).env_clear().output();
        let Ok(told) = bash else { return };
        for name in String::from_utf8_lossy(&told.stdout).lines() {
            assert!(is_bashs(name), "{name}");
        }
    }
}
