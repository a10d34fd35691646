//! The messages of the Remote Execution API that this client sends and reads, with the fields that it uses.
//!
//! They are written down and not generated: the whole API with its annotations is some 10,000 lines, and its crate brings a
//! server along. Numbers of fields are those of build/bazel/remote/execution/v2/remote_execution.proto, of
//! google/longrunning/operations.proto and of google/bytestream/bytestream.proto. A reader skips fields that it does not know.

use crate::digest;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Duration {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Status {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Digest {
    #[prost(string, tag = "1")]
    pub hash: String,
    #[prost(int64, tag = "2")]
    pub size_bytes: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FileNode {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub digest: Option<Digest>,
    #[prost(bool, tag = "4")]
    pub is_executable: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DirectoryNode {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub digest: Option<Digest>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Directory {
    #[prost(message, repeated, tag = "1")]
    pub files: Vec<FileNode>,
    #[prost(message, repeated, tag = "2")]
    pub directories: Vec<DirectoryNode>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Property {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Platform {
    #[prost(message, repeated, tag = "1")]
    pub properties: Vec<Property>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Command {
    #[prost(string, repeated, tag = "1")]
    pub arguments: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    pub environment_variables: Vec<Property>,
    #[prost(string, repeated, tag = "3")]
    pub output_files: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    pub output_paths: Vec<String>,
    #[prost(message, optional, tag = "5")]
    pub platform: Option<Platform>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Action {
    #[prost(message, optional, tag = "1")]
    pub command_digest: Option<Digest>,
    #[prost(message, optional, tag = "2")]
    pub input_root_digest: Option<Digest>,
    #[prost(message, optional, tag = "6")]
    pub timeout: Option<Duration>,
    #[prost(bool, tag = "7")]
    pub do_not_cache: bool,
    #[prost(message, optional, tag = "10")]
    pub platform: Option<Platform>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FindMissingBlobsRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(message, repeated, tag = "2")]
    pub blob_digests: Vec<Digest>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FindMissingBlobsResponse {
    #[prost(message, repeated, tag = "2")]
    pub missing_blob_digests: Vec<Digest>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UpdatedBlob {
    #[prost(message, optional, tag = "1")]
    pub digest: Option<Digest>,
    #[prost(bytes = "vec", tag = "2")]
    pub data: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BatchUpdateBlobsRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(message, repeated, tag = "2")]
    pub requests: Vec<UpdatedBlob>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BlobStatus {
    #[prost(message, optional, tag = "1")]
    pub digest: Option<Digest>,
    #[prost(message, optional, tag = "2")]
    pub status: Option<Status>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BatchUpdateBlobsResponse {
    #[prost(message, repeated, tag = "1")]
    pub responses: Vec<BlobStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BatchReadBlobsRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(message, repeated, tag = "2")]
    pub digests: Vec<Digest>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReadBlob {
    #[prost(message, optional, tag = "1")]
    pub digest: Option<Digest>,
    #[prost(bytes = "vec", tag = "2")]
    pub data: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    pub status: Option<Status>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BatchReadBlobsResponse {
    #[prost(message, repeated, tag = "1")]
    pub responses: Vec<ReadBlob>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetActionResultRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(message, optional, tag = "2")]
    pub action_digest: Option<Digest>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OutputFile {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(message, optional, tag = "2")]
    pub digest: Option<Digest>,
    #[prost(bytes = "vec", tag = "5")]
    pub contents: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ActionResult {
    #[prost(message, repeated, tag = "2")]
    pub output_files: Vec<OutputFile>,
    #[prost(int32, tag = "4")]
    pub exit_code: i32,
    #[prost(bytes = "vec", tag = "7")]
    pub stderr_raw: Vec<u8>,
    #[prost(message, optional, tag = "8")]
    pub stderr_digest: Option<Digest>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UpdateActionResultRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(message, optional, tag = "2")]
    pub action_digest: Option<Digest>,
    #[prost(message, optional, tag = "3")]
    pub action_result: Option<ActionResult>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExecuteRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(bool, tag = "3")]
    pub skip_cache_lookup: bool,
    #[prost(message, optional, tag = "6")]
    pub action_digest: Option<Digest>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExecuteResponse {
    #[prost(message, optional, tag = "1")]
    pub result: Option<ActionResult>,
    #[prost(bool, tag = "2")]
    pub cached_result: bool,
    #[prost(message, optional, tag = "3")]
    pub status: Option<Status>,
    #[prost(string, tag = "5")]
    pub message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WaitExecutionRequest {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CancelOperationRequest {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetCapabilitiesRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CacheCapabilities {
    #[prost(int32, repeated, tag = "1")]
    pub digest_functions: Vec<i32>,
    #[prost(int64, tag = "4")]
    pub max_batch_total_size_bytes: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExecutionCapabilities {
    #[prost(bool, tag = "2")]
    pub exec_enabled: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServerCapabilities {
    #[prost(message, optional, tag = "1")]
    pub cache_capabilities: Option<CacheCapabilities>,
    #[prost(message, optional, tag = "2")]
    pub execution_capabilities: Option<ExecutionCapabilities>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Operation {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bool, tag = "3")]
    pub done: bool,
    #[prost(message, optional, tag = "4")]
    pub error: Option<Status>,
    #[prost(message, optional, tag = "5")]
    pub response: Option<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReadRequest {
    #[prost(string, tag = "1")]
    pub resource_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReadResponse {
    #[prost(bytes = "vec", tag = "10")]
    pub data: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WriteRequest {
    #[prost(string, tag = "1")]
    pub resource_name: String,
    #[prost(int64, tag = "2")]
    pub write_offset: i64,
    #[prost(bool, tag = "3")]
    pub finish_write: bool,
    #[prost(bytes = "vec", tag = "10")]
    pub data: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WriteResponse {
    #[prost(int64, tag = "1")]
    pub committed_size: i64,
}

/// The number of SHA-256 among the service's digest functions.
pub(crate) const SHA256: i32 = 1;

impl From<digest::Digest> for Digest {
    fn from(digest: digest::Digest) -> Self {
        Digest { hash: digest.hex(), size_bytes: digest.size() as i64 }
    }
}
