//! Parameters that a wrapper such as a build tree's `llvm-lit` passes to lit's main function, as JSON.
//!
//! They are an object of names and values of any type. One name is not a parameter for configs: `config_map`, an object that
//! maps the main configs of source trees to the configs to load in their place.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// The contents of one or more `--builtin-parameters`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Builtin {
    /// Names, and values as JSON, in order; later entries win.
    pub params: Vec<(String, String)>,
    /// Real paths of main configs, and the configs to load instead; later entries win.
    pub config_map: Vec<(PathBuf, PathBuf)>,
}

impl Builtin {
    /// Adds the object in `value`, which is JSON or the name of a JSON file.
    pub(super) fn add(&mut self, value: &OsStr, cwd: &Path) -> Result<(), String> {
        let text = match value.to_str() {
            Some(text) if text.trim_start().starts_with('{') => text.to_owned(),
            _ => {
                let path = cwd.join(value);
                std::fs::read_to_string(&path).map_err(|error| {
                    format!(
                        "cannot read '{}': {error}; give a JSON object, or a file with one",
                        path.display()
                    )
                })?
            }
        };
        let values: Map<String, Value> = serde_json::from_str(&text)
            .map_err(|error| format!("not a JSON object: {error}; expected as {{\"build_mode\": \".\"}}"))?;
        for (name, value) in values {
            match value {
                value if name == "config_map" => self.add_map(value)?,
                value => self.params.push((name, value.to_string())),
            }
        }
        Ok(())
    }

    fn add_map(&mut self, map: Value) -> Result<(), String> {
        let wrong = || "config_map has to be an object that leads from paths to paths".to_owned();
        let Value::Object(map) = map else { return Err(wrong()) };
        for (main, site) in map {
            let Value::String(site) = site else { return Err(wrong()) };
            self.config_map.push((main.into(), site.into()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(value: &str) -> Result<Builtin, String> {
        let mut builtin = Builtin::default();
        builtin.add(OsStr::new(value), Path::new("/nonexistent")).map(|()| builtin)
    }

    #[test]
    fn values_stay_what_they_are() {
        let builtin =
            added(r#"{"build_mode": ".", "n": 1, "off": false, "config_map": {"/a": "/b"}}"#).unwrap();
        let params: Vec<_> =
            builtin.params.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(params, [("build_mode", "\".\""), ("n", "1"), ("off", "false")]);
        assert_eq!(builtin.config_map, [("/a".into(), "/b".into())]);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let expected = "cannot read '/nonexistent/x.json': No such file or directory (os error 2); give a JSON \
                        object, or a file with one";
        assert_eq!(added("x.json").unwrap_err(), expected);
        assert!(added("{").unwrap_err().starts_with("not a JSON object: EOF"));
        assert!(added(r#"{"config_map": {"/a": 1}}"#).unwrap_err().starts_with("config_map has to be"));
    }
}
