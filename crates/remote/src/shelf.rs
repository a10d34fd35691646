//! Values in the service's action cache, each as the result of an action that nobody executes.

use tokio::runtime::Runtime;

use crate::client::{Settings, connect, encode};
use crate::digest::Digest;
use crate::service::{Service, Trouble};
use crate::tree::{Content, Tree};
use crate::{Action, api};

/// The output that is the value.
const VALUE: &str = "value";

/// The part of a service that stores results. Calls wait for their answers.
#[derive(Debug)]
pub struct Shelf {
    runtime: Runtime,
    service: Service,
}

impl Shelf {
    /// Connects to the service that `settings` name for results. The error says why not.
    pub fn new(settings: &Settings) -> Result<Shelf, String> {
        let (runtime, service) = connect(settings)?;
        runtime.block_on(service.check(false)).map_err(Trouble::into_text)?;
        Ok(Shelf { runtime, service })
    }

    /// Returns the value with this name. `None` if there is none, or its bytes have gone.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let get = async {
            let (action, _) = action(name);
            let Some(result) = self.service.cached(&action).await? else { return Ok(None) };
            match result.output_files.iter().find(|file| file.path == VALUE) {
                Some(file) => self.service.download(file).await.map(Some),
                None => Ok(None),
            }
        };
        match self.runtime.block_on(get) {
            Err(Trouble::Missing(_)) => Ok(None),
            answer => answer.map_err(Trouble::into_text),
        }
    }

    /// Stores a value, in place of what had this name.
    pub fn put(&self, name: &str, value: Vec<u8>) -> Result<(), String> {
        let (action, mut blobs) = action(name);
        let digest = Digest::of(&value);
        blobs.insert(digest, Content::Bytes(value.into()));
        let file =
            api::OutputFile { path: VALUE.to_owned(), digest: Some(digest.into()), contents: Vec::new() };
        let result = api::ActionResult { output_files: vec![file], ..api::ActionResult::default() };
        let put = async {
            self.service.upload(&blobs).await?;
            self.service.update_result(&action, result).await
        };
        self.runtime.block_on(put).map_err(Trouble::into_text)
    }
}

/// An action that stands for a name. It is stored whole, since some services keep no result of an action that they do not have.
fn action(name: &str) -> (Digest, crate::Blobs) {
    let arguments = ["hotstart".to_owned(), name.to_owned()].to_vec();
    let action = Action {
        arguments,
        environment: Vec::new(),
        inputs: Tree::default(),
        output: VALUE.to_owned(),
        timeout: std::time::Duration::from_secs(1),
        is_cached: true,
    };
    encode(action, &[])
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn each_name_has_an_action_of_its_own() {
        let (one, blobs) = action("one");
        assert_eq!(one, action("one").0);
        assert_ne!(one, action("other").0);
        // The action, its command and its empty directory.
        let sizes: Vec<u64> = blobs.keys().map(Digest::size).collect();
        assert!(sizes.len() == 3 && sizes.contains(&0), "{sizes:?}");
        let text = api::Action::decode(bytes(&blobs, &one).as_slice()).unwrap();
        assert!(!text.do_not_cache);
    }

    fn bytes(blobs: &crate::Blobs, digest: &Digest) -> Vec<u8> {
        match &blobs[digest] {
            Content::Bytes(bytes) => bytes.to_vec(),
            Content::File(path) => std::fs::read(path).unwrap(),
        }
    }
}
