//! Options for tests on other machines.

use std::path::PathBuf;
use std::time::Duration;

use hotstart_batch::{Endpoint, Settings, Tls};

/// Most tests of an action.
const BATCH: usize = 800;
/// Actions at a time.
const SLOTS: usize = 64;
/// Seconds for which a service that cannot be reached is asked again.
const PATIENCE: u64 = 60;
/// The same if it has not answered yet.
const FIRST_PATIENCE: u64 = 10;

/// Where tests run, as typed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RemoteOptions {
    /// The service.
    pub service: Option<Endpoint>,
    /// Where actions are executed, if that is another one.
    pub exec: Option<Endpoint>,
    /// Where contents are stored, if that is another one.
    pub cache: Option<Endpoint>,
    /// Headers of each call.
    pub headers: Vec<(String, String)>,
    /// Properties of workers.
    pub platform: Vec<(String, String)>,
    /// Certificates that sign the server's.
    pub authorities: Option<PathBuf>,
    /// The client's certificate.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// Most tests of an action, if given.
    pub batch: Option<usize>,
    /// Actions at a time, if given.
    pub slots: Option<usize>,
    /// Tests of an action at a time, if given.
    pub jobs: Option<usize>,
    /// Seconds for which a service that cannot be reached is asked again, if given.
    pub patience: Option<u64>,
    /// Whether tests that do not pass elsewhere do not run here.
    pub no_fallback: bool,
}

impl RemoteOptions {
    /// Returns where actions are executed and where contents are stored; `None` if tests run here. The error says which option is missing.
    pub fn endpoints(&self) -> Result<Option<(Endpoint, Endpoint)>, String> {
        let exec = self.exec.as_ref().or(self.service.as_ref());
        let cache = self.cache.as_ref().or(self.service.as_ref());
        match (exec, cache) {
            (Some(exec), Some(cache)) => Ok(Some((exec.clone(), cache.clone()))),
            (None, None) => Ok(None),
            _ => Err("--remote-exec and --remote-cache belong together; --remote is both. \
                      --cache takes --remote-cache alone"
                .to_owned()),
        }
    }

    /// Returns where remembered passes are kept as well, for other machines. `None` if nothing is said of that.
    pub fn shelf(&self) -> Option<&Endpoint> {
        self.cache.as_ref().filter(|_| self.exec.is_none() && self.service.is_none())
    }

    /// Returns the client's certificate and key. The error says which is missing.
    pub fn identity(&self) -> Result<Option<(PathBuf, PathBuf)>, String> {
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Ok(Some((certificate.clone(), key.clone()))),
            (None, None) => Ok(None),
            _ => Err("--remote-certificate and --remote-key belong together".to_owned()),
        }
    }

    /// Returns how to talk to these services. The error says what is missing.
    pub fn settings(&self, exec: Endpoint, cache: Endpoint) -> Result<Settings, String> {
        Ok(Settings {
            exec,
            cache,
            tls: Tls { authorities: self.authorities.clone(), identity: self.identity()? },
            headers: self.headers.clone(),
            platform: self.platform.clone(),
            patience: Duration::from_secs(self.patience.unwrap_or(PATIENCE)),
            first_patience: Duration::from_secs(self.patience.unwrap_or(FIRST_PATIENCE)),
        })
    }

    /// Returns most tests of an action.
    pub fn batch(&self) -> usize {
        self.batch.unwrap_or(BATCH)
    }

    /// Returns the number of actions at a time.
    pub fn slots(&self) -> usize {
        self.slots.unwrap_or(SLOTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_both_and_each_may_differ() {
        let at = |text| Endpoint::parse(text).ok();
        let options = RemoteOptions { service: at("grpc://a"), cache: at("grpcs://b"), ..Default::default() };
        let (exec, cache) = options.endpoints().unwrap().unwrap();
        assert_eq!((Some(exec), Some(cache)), (at("grpc://a"), at("grpcs://b")));
        let half = RemoteOptions { exec: at("grpc://a"), ..Default::default() };
        assert!(
            half.shelf().is_none()
                && RemoteOptions { cache: at("grpc://a"), ..Default::default() }.shelf().is_some()
        );
        assert!(half.endpoints().is_err() && RemoteOptions::default().endpoints() == Ok(None));
        assert!(RemoteOptions { key: Some("k".into()), ..Default::default() }.identity().is_err());
    }
}
