//! Applies the helper's changes to a config.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hotstart_model::{ColdTools, Environment};

use super::wire::{self, Changes, Text};
use crate::config::{Alone, Config, Format, ParallelismGroup, Substitution};

/// Variables that name the directory for temporary files, in the order in which lit sets them.
const TMP_VARIABLES: [&str; 4] = ["TMP", "TMPDIR", "TEMP", "TEMPDIR"];

/// Sets the fields of `config` that are in `changes`.
pub(super) fn apply(config: &mut Config, changes: Changes, tmp_dir: Option<&Path>) {
    set(&mut config.name, changes.name.map(Text::into_string));
    set(&mut config.suffixes, changes.suffixes.map(strings));
    set(&mut config.excludes, changes.excludes.map(strings));
    set(&mut config.format, changes.format.map(|format| format.map(format_of)));
    set(&mut config.environment, changes.environment.map(|pairs| Arc::new(environment(pairs, tmp_dir))));
    set(&mut config.substitutions, changes.substitutions.map(|list| Arc::new(substitutions(list))));
    set(&mut config.available_features, changes.available_features.map(|names| Arc::new(strings(names))));
    set(&mut config.unsupported, changes.unsupported);
    set(&mut config.pipefail, changes.pipefail);
    set(&mut config.limit_to_features, changes.limit_to_features.map(strings));
    set(&mut config.parallelism_group, changes.parallelism_group.map(|group| group.map(group_of)));
    set(&mut config.standalone_tests, changes.standalone_tests);
    set(&mut config.recursive_expansion_limit, changes.recursive_expansion_limit);
    let attempts = |count: i64| u32::try_from(count.max(0)).unwrap_or(u32::MAX);
    set(&mut config.test_retry_attempts, changes.test_retry_attempts.map(|count| count.map(attempts)));
    set(&mut config.test_source_root, changes.test_source_root.map(|root| root.map(Text::into_path)));
    set(&mut config.test_exec_root, changes.test_exec_root.map(|root| root.map(Text::into_path)));
    set(
        &mut config.max_individual_test_time,
        changes.max_individual_test_time.map(|limit| limit.and_then(seconds)),
    );
    set(&mut config.hotstart_cold, changes.hotstart_cold.map(cold_tools));
    set(&mut config.hotstart_alone, changes.hotstart_alone.map(alone));
}

/// Converts a limit in seconds; zero is none, as in Python.
pub(super) fn seconds(limit: f64) -> Option<Duration> {
    if limit > 0.0 { Duration::try_from_secs_f64(limit).ok() } else { None }
}

fn alone(tests: wire::SomeOf) -> Alone {
    match tests {
        wire::SomeOf { all: true, .. } => Alone::All,
        wire::SomeOf { names, .. } => Alone::Named(strings(names)),
    }
}

fn cold_tools(tools: wire::SomeOf) -> ColdTools {
    match tools {
        wire::SomeOf { all: true, .. } => ColdTools::All,
        wire::SomeOf { names, .. } if names.is_empty() => ColdTools::None,
        wire::SomeOf { names, .. } => ColdTools::Named(strings(names)),
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn strings<C: FromIterator<String>>(texts: Vec<Text>) -> C {
    texts.into_iter().map(Text::into_string).collect()
}

pub(super) fn environment(pairs: Vec<(Text, Text)>, tmp_dir: Option<&Path>) -> Environment {
    let mut env: Environment =
        pairs.into_iter().map(|(key, value)| (key.into_os(), value.into_os())).collect();
    if let Some(dir) = tmp_dir {
        for name in TMP_VARIABLES {
            env.set(name, dir);
        }
    }
    env
}

fn substitutions(list: Vec<wire::Substitution>) -> Vec<Substitution> {
    let entry = |(key, value, captures): wire::Substitution| Substitution {
        key: key.into_string(),
        value: value.into_string(),
        captures,
    };
    list.into_iter().map(entry).collect()
}

fn group_of(group: wire::Group) -> ParallelismGroup {
    group.name.map_or(ParallelismGroup::Callable, |name| ParallelismGroup::Named(name.into_string()))
}

fn format_of(format: wire::Format) -> Format {
    match format.kind.bytes() {
        b"shtest" => Format::ShTest {
            execute_external: format.execute_external,
            extra_substitutions: substitutions(format.extra_substitutions),
            preamble_commands: strings(format.preamble_commands),
        },
        b"googletest" => Format::GoogleTest {
            test_sub_dirs: strings(format.test_sub_dirs),
            test_suffix: format.test_suffix.into_string(),
            test_prefix: format.test_prefix.map(Text::into_string),
            run_under: strings(format.run_under),
        },
        b"executable" => Format::Executable,
        _ => Format::Python(format.class.into_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_set() {
        let mut config = Config { name: "S".into(), pipefail: true, ..Config::default() };
        let line = br#"{"unsupported":true,"environment":[["A","1"],["TMP","x"],["B","2"]],
            "substitutions":[["%x","y",true]],"format":{"kind":"python","class":"m.F"}}"#;
        apply(&mut config, serde_json::from_slice(line).unwrap(), Some(Path::new("/t")));
        assert!(config.unsupported && config.pipefail);
        assert_eq!(config.name, "S");
        let names: Vec<_> = config.environment.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["A", "TMP", "B", "TMPDIR", "TEMP", "TEMPDIR"]);
        assert_eq!(config.environment.get("TMP").unwrap(), "/t");
        assert!(config.substitutions[0].captures);
        assert_eq!(config.format, Some(Format::Python("m.F".into())));
    }

    #[test]
    fn no_time_limit_is_none() {
        assert_eq!(seconds(0.0), None);
        assert_eq!(seconds(2.5), Some(Duration::from_millis(2500)));
    }
}
