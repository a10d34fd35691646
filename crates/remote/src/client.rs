//! The thread that talks to the service, and one action from its digest to its output.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::mpsc as plain;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tonic::{Code, Status, Streaming};

use crate::Action;
use crate::api;
use crate::channel::{Connection, Endpoint, Tls, headers, limited};
use crate::digest::Digest;
use crate::service::{Meter, Pauses, Service, Trouble, execute_response, may_pass, told};
use crate::tree::add_message;

/// Attempts at an action whose worker is lost or whose inputs are.
const ATTEMPTS: u32 = 4;
/// Limit of the request to give up an execution.
const CANCEL: Duration = Duration::from_secs(1);

/// The service and how to talk to it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where actions are executed.
    pub exec: Endpoint,
    /// Where contents and results are stored.
    pub cache: Endpoint,
    /// Files for TLS.
    pub tls: Tls,
    /// Headers of each call.
    pub headers: Vec<(String, String)>,
    /// Properties that a worker must have.
    pub platform: Vec<(String, String)>,
    /// How long a service that cannot be reached is asked again.
    pub patience: Duration,
    /// How long one is asked that has not answered yet.
    pub first_patience: Duration,
}

/// The end of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It ran.
    Done {
        /// Its exit code.
        exit_code: i32,
        /// The file that it wrote. `None` if there is none.
        output: Option<Vec<u8>>,
        /// The beginning of its standard error, if it is at hand.
        stderr: String,
        /// Whether it ran before, and this is the stored result.
        is_cached: bool,
        /// Time from its submission.
        took: Duration,
    },
    /// It did not run to its end.
    Failed(String),
    /// The service is gone.
    Gone(String),
}

/// What was sent and repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of contents uploaded.
    pub uploaded: u64,
    /// Contents uploaded.
    pub blobs: u64,
    /// Calls and executions that were repeated.
    pub repeated: u64,
}

/// A connected service.
#[derive(Debug)]
pub struct Client {
    actions: Option<mpsc::UnboundedSender<(u64, Action)>>,
    ended: Mutex<plain::Receiver<(u64, Ended)>>,
    service: Arc<Service>,
    thread: Option<JoinHandle<()>>,
}

impl Client {
    /// Connects to a service, and checks that it can do the work. The error says why not.
    pub fn new(settings: Settings) -> Result<Client, String> {
        let (runtime, service) = connect(&settings)?;
        runtime.block_on(service.check(true)).map_err(Trouble::into_text)?;
        let service = Arc::new(service);
        let (actions, submitted) = mpsc::unbounded_channel();
        let (report, ended) = plain::channel();
        let (shared, platform) = (Arc::clone(&service), Arc::from(settings.platform));
        let thread = std::thread::Builder::new()
            .name("remote".to_owned())
            .spawn(move || runtime.block_on(serve(shared, platform, submitted, report)))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Client { actions: Some(actions), ended: Mutex::new(ended), service, thread: Some(thread) })
    }

    /// Hands over an action. Its end will be reported under this number.
    pub fn submit(&self, number: u64, action: Action) {
        if let Some(actions) = &self.actions {
            // The thread ends only after this sender is gone.
            let _ = actions.send((number, action));
        }
    }

    /// Waits for the end of an action. `None` if none ended within this time.
    pub fn next(&self, within: Duration) -> Option<(u64, Ended)> {
        self.ended.lock().expect("no panic while locked").recv_timeout(within).ok()
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        let meter = &self.service.meter;
        let [uploaded, blobs, repeated] =
            [&meter.uploaded, &meter.blobs, &meter.repeated].map(|count| count.load(Ordering::Relaxed));
        Counts { uploaded, blobs, repeated }
    }
}

impl Drop for Client {
    /// Gives up all that still runs.
    fn drop(&mut self) {
        self.actions = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes the connections to a service, which begin at the first call, and the runtime for them.
pub(crate) fn connect(settings: &Settings) -> Result<(tokio::runtime::Runtime, Service), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let service = {
        let _inside = runtime.enter();
        let headers = headers(&settings.headers)?;
        Service {
            exec: Connection::new(&settings.exec, &settings.tls, headers.clone())?,
            cache: Connection::new(&settings.cache, &settings.tls, headers)?,
            patience: settings.patience,
            first_patience: settings.first_patience,
            meter: Meter::default(),
            present: Mutex::default(),
            uploading: tokio::sync::Mutex::default(),
        }
    };
    Ok((runtime, service))
}

/// Names of executions that run, by action.
type Running = Arc<Mutex<HashMap<u64, String>>>;

async fn serve(
    service: Arc<Service>,
    platform: Arc<[(String, String)]>,
    mut submitted: mpsc::UnboundedReceiver<(u64, Action)>,
    report: plain::Sender<(u64, Ended)>,
) {
    let running = Running::default();
    while let Some((number, action)) = submitted.recv().await {
        let (service, platform, report) = (Arc::clone(&service), Arc::clone(&platform), report.clone());
        let running = Arc::clone(&running);
        tokio::spawn(async move {
            let one = One { service: &service, number, running: &running };
            let ended = one.run(action, &platform).await.unwrap_or_else(|trouble| match trouble {
                Trouble::Gone(why) => Ended::Gone(why),
                Trouble::Failed(why) | Trouble::Missing(why) => Ended::Failed(why),
            });
            running.lock().expect("no panic while locked").remove(&number);
            // Nobody may be waiting any more.
            let _ = report.send((number, ended));
        });
    }
    let names: HashSet<String> = running.lock().expect("no panic while locked").values().cloned().collect();
    for name in names {
        // Best effort: services need not know this call.
        let asked = api::CancelOperationRequest { name };
        let method = "/google.longrunning.Operations/CancelOperation";
        let _ = limited(CANCEL, service.exec.unary::<_, api::Empty>(method, asked)).await;
    }
}

/// One action on its way.
struct One<'a> {
    service: &'a Service,
    number: u64,
    running: &'a Running,
}

impl One<'_> {
    async fn run(&self, action: Action, platform: &[(String, String)]) -> Result<Ended, Trouble> {
        let begun = Instant::now();
        let (output, is_cached) = (action.output.clone(), action.is_cached);
        let (digest, blobs) = encode(action, platform);
        if is_cached {
            if let Some(result) = self.service.cached(&digest).await? {
                match self.done(result, &output, true, begun).await {
                    Err(Trouble::Missing(_)) => {}
                    answer => return answer,
                }
            }
        }
        let mut trouble = Trouble::Failed("it was never started".to_owned());
        let mut pauses = Pauses::new(self.service.patience);
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                self.service.meter.repeated.fetch_add(1, Ordering::Relaxed);
                if !pauses.wait().await {
                    break;
                }
            }
            self.service.upload(&blobs).await?;
            trouble = match self.execute(&digest, !is_cached || attempt > 0).await {
                Ok((result, was_cached)) => match self.done(result, &output, was_cached, begun).await {
                    Ok(ended) => return Ok(ended),
                    Err(trouble) => trouble,
                },
                Err(trouble) => trouble,
            };
            match &trouble {
                Trouble::Gone(_) => break,
                Trouble::Failed(_) => {}
                // What it had may be gone as well.
                Trouble::Missing(_) => self.service.present.lock().expect("no panic while locked").clear(),
            }
        }
        Err(trouble)
    }

    async fn done(
        &self,
        result: api::ActionResult,
        output: &str,
        is_cached: bool,
        begun: Instant,
    ) -> Result<Ended, Trouble> {
        let output = match result.output_files.iter().find(|file| file.path == output) {
            Some(file) => Some(self.service.download(file).await?),
            None => None,
        };
        let stderr = String::from_utf8_lossy(&result.stderr_raw).chars().take(2000).collect();
        Ok(Ended::Done { exit_code: result.exit_code, output, stderr, is_cached, took: begun.elapsed() })
    }

    /// Executes an action, and follows it through lost connections.
    async fn execute(
        &self,
        action: &Digest,
        skip_cache_lookup: bool,
    ) -> Result<(api::ActionResult, bool), Trouble> {
        let mut name: Option<String> = None;
        let mut pauses = Pauses::new(self.service.patience);
        loop {
            let status = match self.open(action, skip_cache_lookup, name.as_deref()).await {
                Ok(mut operations) => loop {
                    match operations.message().await {
                        Ok(Some(operation)) => {
                            pauses.reset();
                            if operation.done {
                                return result(operation);
                            }
                            let mut running = self.running.lock().expect("no panic while locked");
                            running.insert(self.number, operation.name.clone());
                            name = Some(operation.name);
                        }
                        Ok(None) => break Status::unavailable("the answer ended before the action did"),
                        Err(status) => break status,
                    }
                },
                Err(status) => status,
            };
            match status.code() {
                // It cannot be reached; the execution may go on.
                Code::Unavailable => {}
                // It was restarted and knows nothing of it any more, for which services have different codes.
                _ if name.is_some() => name = None,
                Code::NotFound | Code::FailedPrecondition => return Err(Trouble::Missing(told(&status))),
                _ if !may_pass(&status) => return Err(Trouble::Gone(told(&status))),
                _ => {}
            }
            if !pauses.wait().await {
                return Err(Trouble::Gone(told(&status)));
            }
            self.service.meter.repeated.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn open(
        &self,
        action: &Digest,
        skip_cache_lookup: bool,
        name: Option<&str>,
    ) -> Result<Streaming<api::Operation>, Status> {
        const EXECUTE: &str = "/build.bazel.remote.execution.v2.Execution/Execute";
        const WAIT: &str = "/build.bazel.remote.execution.v2.Execution/WaitExecution";
        let exec = &self.service.exec;
        match name {
            Some(name) => {
                exec.server_streaming(WAIT, api::WaitExecutionRequest { name: name.to_owned() }).await
            }
            None => {
                let asked = api::ExecuteRequest {
                    instance_name: exec.instance.clone(),
                    skip_cache_lookup,
                    action_digest: Some((*action).into()),
                };
                exec.server_streaming(EXECUTE, asked).await
            }
        }
    }
}

/// Returns the result of an operation that has ended, and whether it was stored before.
fn result(operation: api::Operation) -> Result<(api::ActionResult, bool), Trouble> {
    if let Some(error) = operation.error.filter(|error| error.code != 0) {
        return Err(trouble(&error));
    }
    let Some(any) = operation.response else {
        return Err(Trouble::Failed("the action ended without a result".to_owned()));
    };
    let response = execute_response(&any)?;
    match (response.status.filter(|status| status.code != 0), response.result) {
        (Some(status), _) => Err(trouble(&status)),
        (None, Some(result)) => Ok((result, response.cached_result)),
        (None, None) => Err(Trouble::Failed(format!("the action has no result: {}", response.message))),
    }
}

fn trouble(status: &api::Status) -> Trouble {
    let told = format!("{:?}: {}", Code::from(status.code), status.message);
    match Code::from(status.code) {
        Code::FailedPrecondition | Code::NotFound => Trouble::Missing(told),
        Code::Unauthenticated | Code::PermissionDenied => Trouble::Gone(told),
        _ => Trouble::Failed(told),
    }
}

/// Returns the digest of an action, and all that has to be uploaded for it.
pub(crate) fn encode(action: Action, properties: &[(String, String)]) -> (Digest, crate::Blobs) {
    let (root, mut blobs) = action.inputs.into_blobs();
    let pair = |(name, value): &(String, String)| api::Property { name: name.clone(), value: value.clone() };
    // The API wants both lists sorted.
    let sorted = |pairs: &[(String, String)]| {
        let mut sorted: Vec<_> = pairs.iter().map(pair).collect();
        sorted.sort_by(|one, other| (&one.name, &one.value).cmp(&(&other.name, &other.value)));
        sorted
    };
    let platform = (!properties.is_empty()).then(|| api::Platform { properties: sorted(properties) });
    let command = api::Command {
        arguments: action.arguments,
        environment_variables: sorted(&action.environment),
        // Services of v2.0 read the first, later ones the second.
        output_files: vec![action.output.clone()],
        output_paths: vec![action.output],
        platform: platform.clone(),
    };
    let message = api::Action {
        command_digest: Some(add_message(&command, &mut blobs).into()),
        input_root_digest: Some(root.into()),
        timeout: Some(api::Duration { seconds: action.timeout.as_secs().max(1) as i64, nanos: 0 }),
        do_not_cache: !action.is_cached,
        platform,
    };
    (add_message(&message, &mut blobs), blobs)
}
