//! Converts the command line's options to the settings of the `lit` crate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotstart_lit::settings::{ConfigCache, Settings};
use hotstart_model::{Dialect, Severity};
use hotstart_report::{DiagnosticLevel, KeepOutput, Shown};

use super::asked::Asked;
use crate::args::{ConfigCacheUse, LitOptions};

/// Returns the settings for these options. Diagnostics begin with `program`.
pub(super) fn settings(options: &LitOptions, asked: &Asked, program: &str, cwd: &Path) -> Settings {
    let levels = options.console.levels(Dialect::V23);
    Settings {
        paths: options.test_paths.iter().map(PathBuf::from).collect(),
        cwd: cwd.to_path_buf(),
        progname: program.to_owned(),
        builtin_params: options.own.builtin.params.clone(),
        params: options.user_params.clone(),
        config_map: options.own.builtin.config_map.clone(),
        config_prefix: options.config_prefix.clone(),
        python: options.own.lit_python.clone(),
        lit_package: options.own.lit_package.clone(),
        path: options.path.clone(),
        use_valgrind: options.use_valgrind,
        valgrind_leak_check: options.valgrind_leak_check,
        valgrind_args: options.valgrind_args.clone(),
        no_execute: options.no_execute,
        debug: options.debug,
        diagnostic_level: severity(levels.diagnostics),
        wants_all_output: shows_all(options) || options.reports.keep_output() == KeepOutput::OfAll,
        config_cache: config_cache(options.own.config_cache),
        order: options.order,
        per_test_coverage: options.per_test_coverage,
        gtest_sharding: !options.no_gtest_sharding,
        timeout: options.timeout,
        max_retries_per_test: options
            .max_retries_per_test
            .map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
        update_tests: options.update_tests,
        filter: options.filter.clone(),
        filter_out: options.filter_out.clone(),
        replay: asked.tests().unwrap_or_else(|| options.own.replay.clone()),
        alone: options.own.alone.clone(),
        repeat: options.own.repeat,
        wraps: Arc::clone(&asked.wraps),
        filter_failed: options.filter_failed || options.own.rerun_failed,
        shard: options.shard,
        max_tests: options.max_tests,
        xfail: options.xfail.clone(),
        xfail_not: options.xfail_not.clone(),
        exclude_xfail: options.exclude_xfail,
        unsupported: options.unsupported.clone(),
        unsupported_not: options.unsupported_not.clone(),
        // `--diagnose` has already printed this above the output.
        annotate: !options.own.diagnose,
        line_times: options.reports.html.is_some() || options.reports.line_times,
        native_shell: options.own.native_shell.unwrap_or(false),
        diagnose: options.own.diagnose.then(|| Arc::new(std::env::vars_os().collect())),
    }
}

/// Returns whether either dialect would show the output of every test; the dialect is not known yet.
fn shows_all(options: &LitOptions) -> bool {
    [Dialect::V19, Dialect::V23].iter().any(|dialect| options.console.levels(*dialect).output == Shown::All)
}

fn config_cache(wanted: ConfigCacheUse) -> Option<ConfigCache> {
    let checks = wanted == ConfigCacheUse::Check;
    let dir = hotstart_launch::cache_directory().filter(|_| wanted != ConfigCacheUse::Off)?;
    Some(ConfigCache { dir: dir.join("configs"), checks })
}

fn severity(level: DiagnosticLevel) -> Severity {
    match level {
        DiagnosticLevel::Error => Severity::Error,
        DiagnosticLevel::Warning => Severity::Warning,
        DiagnosticLevel::Note => Severity::Note,
    }
}
