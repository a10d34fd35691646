//! The calls of the API, repeated while the service is not reachable.
//!
//! Each failure is of one of three kinds: the service is gone or refuses us (`Trouble::Gone`), the action itself was lost or failed
//! on its worker (`Trouble::Failed`), or an input has gone from the storage (`Trouble::Missing`).

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Seek, SeekFrom};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use prost::Message;
use tokio_stream::iter;
use tonic::{Code, Status};

use crate::api;
use crate::channel::{Connection, chain};
use crate::digest::Digest;
use crate::tree::{Blobs, Content};

const CAS: &str = "/build.bazel.remote.execution.v2.ContentAddressableStorage";
/// Bytes of a message with contents: the least limit of known services is 3 MiB.
const MESSAGE: u64 = 2 << 20;
/// Bytes of a part of a long content.
const PART: usize = 512 << 10;
/// Digests asked for in one call.
const ASKED: usize = 10_000;
/// First and longest pause before a call is repeated.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));

/// The reason why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The service cannot be reached, or refuses this client.
    Gone(String),
    /// The action did not run to its end.
    Failed(String),
    /// The service lacks an input, or an output that it had stored.
    Missing(String),
}

impl Trouble {
    /// Returns the reason.
    pub fn into_text(self) -> String {
        match self {
            Trouble::Gone(why) | Trouble::Failed(why) | Trouble::Missing(why) => why,
        }
    }
}

/// Counts of what a service was asked for.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub uploaded: AtomicU64,
    pub blobs: AtomicU64,
    pub repeated: AtomicU64,
}

/// A service: its storage and its execution.
#[derive(Debug)]
pub(crate) struct Service {
    pub exec: Connection,
    pub cache: Connection,
    /// How long a call is repeated.
    pub patience: Duration,
    /// The same for a service that has not answered yet: as a rule, its address is wrong.
    pub first_patience: Duration,
    pub meter: Meter,
    /// Blobs that the storage has.
    pub present: Mutex<HashSet<Digest>>,
    /// Held during an upload, so that no blob is uploaded twice.
    pub uploading: tokio::sync::Mutex<()>,
}

/// The pauses between repetitions of a call.
pub(crate) struct Pauses {
    since: Instant,
    next: Duration,
    patience: Duration,
}

impl Pauses {
    pub fn new(patience: Duration) -> Pauses {
        Pauses { since: Instant::now(), next: PAUSES.0, patience }
    }

    /// Waits, unless it has taken too long already. Returns whether to try again.
    pub async fn wait(&mut self) -> bool {
        if self.since.elapsed() + self.next > self.patience {
            return false;
        }
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(PAUSES.1);
        true
    }

    /// Begins anew, after a success.
    pub fn reset(&mut self) {
        (self.since, self.next) = (Instant::now(), PAUSES.0);
    }
}

/// Returns whether another attempt may succeed.
pub(crate) fn may_pass(status: &Status) -> bool {
    use Code::{Aborted, Cancelled, DeadlineExceeded, Internal, ResourceExhausted, Unavailable, Unknown};
    let codes = [Aborted, Cancelled, DeadlineExceeded, Internal, ResourceExhausted, Unavailable, Unknown];
    codes.contains(&status.code())
}

pub(crate) fn told(status: &Status) -> String {
    let cause = std::error::Error::source(status).map(|cause| format!(": {}", chain(cause)));
    format!("{:?}: {}{}", status.code(), status.message(), cause.unwrap_or_default())
}

/// Repeats a call until it succeeds, fails for good, or has taken too long.
macro_rules! repeatedly {
    ($service:expr, $call:expr) => {
        repeatedly!($service, $service.patience, $call)
    };
    ($service:expr, $patience:expr, $call:expr) => {{
        let mut pauses = Pauses::new($patience);
        loop {
            match $call.await {
                Ok(answer) => break Ok(answer),
                Err(status) if may_pass(&status) && pauses.wait().await => {
                    $service.meter.repeated.fetch_add(1, Ordering::Relaxed);
                }
                Err(status) => break Err(status),
            }
        }
    }};
}

impl Service {
    /// Asks whether the service can do the work: keep contents and results, and execute actions if it `executes`. The error says why not.
    pub async fn check(&self, executes: bool) -> Result<(), Trouble> {
        const METHOD: &str = "/build.bazel.remote.execution.v2.Capabilities/GetCapabilities";
        let exec = executes.then_some((&self.exec, true));
        for (connection, executes) in exec.into_iter().chain([(&self.cache, false)]) {
            let asked = || api::GetCapabilitiesRequest { instance_name: connection.instance.clone() };
            let answer: Result<api::ServerCapabilities, Status> =
                repeatedly!(self, self.first_patience, connection.unary(METHOD, asked()));
            let answer = answer.map_err(|status| Trouble::Gone(told(&status)))?;
            let functions = answer.cache_capabilities.map(|of| of.digest_functions).unwrap_or_default();
            if !functions.is_empty() && !functions.contains(&api::SHA256) {
                return Err(Trouble::Gone("it does not know SHA-256".to_owned()));
            }
            if executes && answer.execution_capabilities.is_some_and(|of| !of.exec_enabled) {
                return Err(Trouble::Gone("it executes nothing for this instance".to_owned()));
            }
        }
        Ok(())
    }

    /// Uploads what the storage lacks.
    pub async fn upload(&self, blobs: &Blobs) -> Result<(), Trouble> {
        let _alone = self.uploading.lock().await;
        let unknown: Vec<Digest> = {
            let present = self.present.lock().expect("no panic while locked");
            blobs.keys().filter(|digest| !present.contains(digest)).copied().collect()
        };
        let missing = self.missing(&unknown).await?;
        let (small, large): (Vec<_>, Vec<_>) =
            missing.into_iter().partition(|digest| digest.size() < MESSAGE / 2);
        self.upload_small(blobs, &small).await?;
        for digest in &large {
            self.upload_large(digest, &blobs[digest]).await?;
        }
        let mut present = self.present.lock().expect("no panic while locked");
        present.extend(unknown);
        Ok(())
    }

    async fn missing(&self, digests: &[Digest]) -> Result<Vec<Digest>, Trouble> {
        let method = "/build.bazel.remote.execution.v2.ContentAddressableStorage/FindMissingBlobs";
        let mut missing = HashSet::new();
        for part in digests.chunks(ASKED) {
            let asked = || api::FindMissingBlobsRequest {
                instance_name: self.cache.instance.clone(),
                blob_digests: part.iter().map(|digest| (*digest).into()).collect(),
            };
            let answer: Result<api::FindMissingBlobsResponse, Status> =
                repeatedly!(self, self.cache.unary(method, asked()));
            let answer = answer.map_err(|status| gone(CAS, &status))?;
            missing.extend(answer.missing_blob_digests.into_iter().map(|digest| digest.hash));
        }
        Ok(digests.iter().filter(|digest| missing.contains(&digest.hex())).copied().collect())
    }

    async fn upload_small(&self, blobs: &Blobs, digests: &[Digest]) -> Result<(), Trouble> {
        let mut part: Vec<api::UpdatedBlob> = Vec::new();
        let mut size = 0;
        for digest in digests {
            if size + digest.size() > MESSAGE {
                self.update(std::mem::take(&mut part)).await?;
                size = 0;
            }
            let data = bytes(&blobs[digest])?;
            unchanged(digest, &Digest::of(&data))?;
            // Beside the content a request holds its digest.
            size += digest.size() + 100;
            part.push(api::UpdatedBlob { digest: Some((*digest).into()), data });
        }
        if part.is_empty() { Ok(()) } else { self.update(part).await }
    }

    async fn update(&self, requests: Vec<api::UpdatedBlob>) -> Result<(), Trouble> {
        let method = "/build.bazel.remote.execution.v2.ContentAddressableStorage/BatchUpdateBlobs";
        let message = api::BatchUpdateBlobsRequest { instance_name: self.cache.instance.clone(), requests };
        let answer: Result<api::BatchUpdateBlobsResponse, Status> =
            repeatedly!(self, self.cache.unary(method, message.clone()));
        let answer = answer.map_err(|status| gone(CAS, &status))?;
        let refused = answer.responses.iter().filter_map(|of| of.status.as_ref()).find(|of| of.code != 0);
        if let Some(status) = refused {
            return Err(Trouble::Failed(format!("an upload was refused: {}", status.message)));
        }
        for request in &message.requests {
            self.count(request.data.len() as u64);
        }
        Ok(())
    }

    async fn upload_large(&self, digest: &Digest, content: &Content) -> Result<(), Trouble> {
        const METHOD: &str = "/google.bytestream.ByteStream/Write";
        let instance = &self.cache.instance;
        let slash = if instance.is_empty() { "" } else { "/" };
        // Each attempt has a name of its own, so that it begins at the beginning.
        let name = || format!("{instance}{slash}uploads/{}/blobs/{}/{}", uuid(), digest.hex(), digest.size());
        if let Content::File(path) = content {
            unchanged(digest, &Digest::of_file(path).map_err(|error| lost(path, &error))?)?;
        }
        let write = async || {
            let parts = iter(Parts::new(name(), digest.size(), content));
            let answer: api::WriteResponse = self.cache.client_streaming(METHOD, parts).await?;
            // A service that has the content by now may stop the upload early: it says the whole size, or -1.
            match answer.committed_size {
                size if size == digest.size() as i64 || size == -1 => Ok(()),
                size => Err(Status::aborted(format!("the upload ended after {size} bytes"))),
            }
        };
        let written = repeatedly!(self, write());
        written.map_err(|status| gone("ByteStream", &status))?;
        self.count(digest.size());
        Ok(())
    }

    fn count(&self, bytes: u64) {
        self.meter.uploaded.fetch_add(bytes, Ordering::Relaxed);
        self.meter.blobs.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the stored result of an action, if there is one.
    pub async fn cached(&self, action: &Digest) -> Result<Option<api::ActionResult>, Trouble> {
        const METHOD: &str = "/build.bazel.remote.execution.v2.ActionCache/GetActionResult";
        let asked = || api::GetActionResultRequest {
            instance_name: self.cache.instance.clone(),
            action_digest: Some((*action).into()),
        };
        let answer: Result<api::ActionResult, Status> = repeatedly!(self, self.cache.unary(METHOD, asked()));
        match answer {
            Ok(result) => Ok(Some(result)),
            Err(status) if matches!(status.code(), Code::NotFound | Code::Unimplemented) => Ok(None),
            Err(status) => Err(gone("ActionCache", &status)),
        }
    }

    /// Stores the result of an action.
    pub async fn update_result(&self, action: &Digest, result: api::ActionResult) -> Result<(), Trouble> {
        const METHOD: &str = "/build.bazel.remote.execution.v2.ActionCache/UpdateActionResult";
        let asked = || api::UpdateActionResultRequest {
            instance_name: self.cache.instance.clone(),
            action_digest: Some((*action).into()),
            action_result: Some(result.clone()),
        };
        let answer: Result<api::ActionResult, Status> = repeatedly!(self, self.cache.unary(METHOD, asked()));
        answer.map(drop).map_err(|status| gone("ActionCache", &status))
    }

    /// Returns the bytes of an output.
    pub async fn download(&self, file: &api::OutputFile) -> Result<Vec<u8>, Trouble> {
        let Some(digest) = file.digest.as_ref().filter(|digest| digest.size_bytes > 0) else {
            return Ok(file.contents.clone());
        };
        if !file.contents.is_empty() {
            return Ok(file.contents.clone());
        }
        let read = async || {
            if (digest.size_bytes as u64) < MESSAGE {
                self.read(digest).await
            } else {
                self.stream(digest).await
            }
        };
        let data: Result<Vec<u8>, Status> = repeatedly!(self, read());
        match data {
            Ok(data) if Digest::of(&data).hex() == digest.hash => Ok(data),
            Ok(_) => Err(Trouble::Failed("an output arrived with other bytes".to_owned())),
            Err(status) if status.code() == Code::NotFound => Err(Trouble::Missing(told(&status))),
            Err(status) => Err(gone(CAS, &status)),
        }
    }

    async fn read(&self, digest: &api::Digest) -> Result<Vec<u8>, Status> {
        let method = "/build.bazel.remote.execution.v2.ContentAddressableStorage/BatchReadBlobs";
        let asked = api::BatchReadBlobsRequest {
            instance_name: self.cache.instance.clone(),
            digests: vec![digest.clone()],
        };
        let answer: api::BatchReadBlobsResponse = self.cache.unary(method, asked).await?;
        let Some(blob) = answer.responses.into_iter().next() else {
            return Err(Status::not_found("no answer for the blob"));
        };
        match blob.status {
            Some(status) if status.code != 0 => Err(Status::new(status.code.into(), status.message)),
            _ => Ok(blob.data),
        }
    }

    async fn stream(&self, digest: &api::Digest) -> Result<Vec<u8>, Status> {
        let instance = &self.cache.instance;
        let slash = if instance.is_empty() { "" } else { "/" };
        let name = format!("{instance}{slash}blobs/{}/{}", digest.hash, digest.size_bytes);
        let asked = api::ReadRequest { resource_name: name };
        let mut parts = self
            .cache
            .server_streaming::<_, api::ReadResponse>("/google.bytestream.ByteStream/Read", asked)
            .await?;
        let mut data = Vec::new();
        while let Some(part) = parts.message().await? {
            data.extend(part.data);
        }
        Ok(data)
    }
}

/// Returns a random name in the form of a UUID.
fn uuid() -> String {
    let [first, second] = [0, 1].map(|word: u64| RandomState::new().hash_one(word));
    let digits = format!("{first:016x}{second:016x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

fn gone(what: &str, status: &Status) -> Trouble {
    Trouble::Gone(format!("{what}: {}", told(status)))
}

fn lost(path: &std::path::Path, error: &std::io::Error) -> Trouble {
    Trouble::Failed(format!("{}: {error}", path.display()))
}

/// Checks that a file is still what was named.
fn unchanged(expected: &Digest, found: &Digest) -> Result<(), Trouble> {
    match expected == found {
        true => Ok(()),
        false => Err(Trouble::Failed("an input changed while it was uploaded".to_owned())),
    }
}

fn bytes(content: &Content) -> Result<Vec<u8>, Trouble> {
    match content {
        Content::Bytes(bytes) => Ok(bytes.to_vec()),
        Content::File(path) => std::fs::read(path).map_err(|error| lost(path, &error)),
    }
}

/// The requests of an upload in parts. A file that cannot be read ends it early, so that the service refuses it.
struct Parts {
    name: String,
    size: u64,
    at: u64,
    is_over: bool,
    content: Content,
    file: Option<std::fs::File>,
}

impl Parts {
    fn new(name: String, size: u64, content: &Content) -> Parts {
        let file = match content {
            Content::File(path) => std::fs::File::open(path).ok(),
            Content::Bytes(_) => None,
        };
        Parts { name, size, at: 0, is_over: false, content: content.clone(), file }
    }

    fn read(&mut self) -> Option<Vec<u8>> {
        let length = PART.min((self.size - self.at) as usize);
        match (&self.content, &mut self.file) {
            (Content::Bytes(bytes), _) => Some(bytes[self.at as usize..][..length].to_vec()),
            (Content::File(_), None) => None,
            (Content::File(_), Some(file)) => {
                let mut data = vec![0; length];
                file.seek(SeekFrom::Start(self.at)).ok()?;
                file.read_exact(&mut data).ok()?;
                Some(data)
            }
        }
    }
}

impl Iterator for Parts {
    type Item = api::WriteRequest;

    fn next(&mut self) -> Option<api::WriteRequest> {
        if self.is_over {
            return None;
        }
        let data = self.read()?;
        let write_offset = self.at as i64;
        self.at += data.len() as u64;
        self.is_over = self.at >= self.size;
        let resource_name = if write_offset == 0 { self.name.clone() } else { String::new() };
        Some(api::WriteRequest { resource_name, write_offset, finish_write: self.is_over, data })
    }
}

/// Reads the message within an answer of an execution.
pub(crate) fn execute_response(any: &api::Any) -> Result<api::ExecuteResponse, Trouble> {
    api::ExecuteResponse::decode(any.value.as_slice())
        .map_err(|error| Trouble::Failed(format!("an answer cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_goes_in_parts() {
        let bytes = vec![3; PART + 5];
        let parts: Vec<_> =
            Parts::new("n".to_owned(), bytes.len() as u64, &Content::Bytes(bytes.into())).collect();
        let seen: Vec<_> =
            parts.iter().map(|part| (part.write_offset, part.data.len(), part.finish_write)).collect();
        assert_eq!(seen, [(0, PART, false), (PART as i64, 5, true)]);
        assert_eq!((parts[0].resource_name.as_str(), parts[1].resource_name.as_str()), ("n", ""));
    }

    #[test]
    fn a_file_that_is_gone_ends_the_upload() {
        let gone = Content::File("/nonexistent/file".into());
        assert_eq!(Parts::new("n".to_owned(), 10, &gone).count(), 0);
    }

    #[test]
    fn only_some_failures_may_pass() {
        assert!(may_pass(&Status::unavailable("")) && may_pass(&Status::cancelled("")));
        assert!(!may_pass(&Status::permission_denied("")) && !may_pass(&Status::not_found("")));
    }
}
