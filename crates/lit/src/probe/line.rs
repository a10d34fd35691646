//! Answers requests: from the cache while it knows the answers, then from the helper's process.
//!
//! The process starts at the first request that the cache cannot answer. It then gets all requests again from the beginning, as
//! configs depend on each other. Its answers must equal those that the cache has given.

use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use hotstart_launch::{Group, Launcher};
use hotstart_model::{Diagnostic, Severity};

use super::cache::Cache;
use super::wire::{Hello, Reply, Request};
use super::{Probe, ProbeError};
use crate::settings::Settings;

/// Key of the greeting, which precedes all requests.
const GREETING: &[u8] = b"greeting";

/// One in this many runs that need no helper evaluates all configs nevertheless, and compares them with the cache.
const SAMPLE: u64 = 64;

/// The answers so far, and the means to start the helper.
#[derive(Debug)]
pub(super) struct Memory<'g> {
    cache: Option<Cache>,
    /// Whether the helper's answers are compared with the cached ones.
    checks: bool,
    /// Whether any request or answer so far prevents caching.
    is_spoilt: bool,
    /// Requests that the cache has answered, with its answers.
    given: Vec<(Vec<u8>, Vec<u8>)>,
    /// The cached greeting.
    greeting: Option<Vec<u8>>,
    starter: Starter<'g>,
}

/// The means to start the helper.
#[derive(Debug)]
pub(super) struct Starter<'g> {
    pub settings: Settings,
    pub launcher: &'g Launcher,
    /// The helper belongs to this group.
    pub group: &'g Group,
}

impl<'g> Memory<'g> {
    pub fn new(cache: Option<(Cache, bool)>, starter: Starter<'g>) -> Self {
        let (cache, checks) = cache.map_or((None, false), |(cache, checks)| (Some(cache), checks));
        Memory { cache, checks, is_spoilt: false, given: Vec::new(), greeting: None, starter }
    }

    /// Returns whether the greeting is cached, so that the process need not start yet.
    pub fn knows_greeting(&mut self) -> bool {
        let sample = RandomState::new().hash_one(0) % SAMPLE == 0;
        let Some(cache) = &mut self.cache else { return false };
        self.greeting = cache.recall(GREETING);
        if self.greeting.is_some() && (self.checks || sample) {
            self.checks = true;
            self.greeting = None;
        }
        if self.greeting.is_none() {
            cache.restart();
        }
        self.greeting.is_some()
    }

    pub fn starter(&self) -> &Starter<'g> {
        &self.starter
    }
}

impl Probe<'_> {
    /// Returns the helper's first two lines. The second is missing if the helper cannot be used.
    pub(super) fn greeting(&mut self) -> Result<(Hello, Option<Reply>), ProbeError> {
        if let Some(greeting) = self.memory.greeting.clone() {
            let mut lines = greeting.split(|byte| *byte == b'\n').map(<[u8]>::to_vec);
            let mut next = || lines.next().unwrap_or_default();
            return Ok((parsed(&next())?, Some(parsed(&next())?)));
        }
        let begun = Instant::now();
        let Some(first) = self.read_line()? else { return Err(self.ended_at_once()) };
        let hello: Hello = parsed(&first)?;
        if hello.missing.is_some() {
            return Ok((hello, None));
        }
        let Some(second) = self.read_line()? else { return Err(self.ended_at_once()) };
        if let Some(cache) = &mut self.memory.cache {
            let kept = self.memory.checks.then(|| cache.recall(GREETING)).flatten();
            if !self.memory.checks {
                cache.advance(GREETING);
            }
            let both = [first.as_slice(), b"\n", second.as_slice()].concat();
            self.memory.is_spoilt |= kept.is_some_and(|kept| kept != both);
            cache.answered(&both);
        }
        self.waited += begun.elapsed();
        Ok((hello, Some(parsed(&second)?)))
    }

    /// Returns the answer to a request.
    pub(super) fn reply(&mut self, request: &[u8], about: &Path) -> Result<Reply, ProbeError> {
        if self.memory.greeting.is_some() {
            let cache = self.memory.cache.as_mut().expect("the greeting came from it");
            if let Some(answer) = cache.recall(request) {
                self.memory.given.push((request.to_vec(), answer.clone()));
                return parsed(&answer);
            }
            self.go_live(about)?;
        }
        let answer = self.exchange(request, about)?;
        self.note(request, &answer)
    }

    /// Starts the helper and repeats the requests that the cache has answered.
    fn go_live(&mut self, about: &Path) -> Result<(), ProbeError> {
        let (given, greeting) = (std::mem::take(&mut self.memory.given), self.memory.greeting.take());
        if let Some(cache) = &mut self.memory.cache {
            cache.restart();
        }
        self.launch()?;
        self.greeting()?;
        drop(greeting);
        for (request, answer) in given {
            let again = self.exchange(&request, about)?;
            self.note(&request, &again)?;
            if !is_same(&answer, &again) {
                self.forget();
                return Err(ProbeError::Changed);
            }
        }
        Ok(())
    }

    /// Records an answer of the helper.
    fn note(&mut self, request: &[u8], answer: &[u8]) -> Result<Reply, ProbeError> {
        let reply: Reply = parsed(answer)?;
        let is_kept = [&b"{\"op\":\"suite\""[..], b"{\"op\":\"local\"", b"{\"op\":\"state\""]
            .iter()
            .any(|op| request.starts_with(op));
        let memory = &mut self.memory;
        memory.is_spoilt |= !is_kept || reply.error.is_some() || reply.exit.is_some();
        let Some(cache) = &mut memory.cache else { return Ok(reply) };
        let kept = if memory.checks { cache.recall(request) } else { None };
        if !memory.checks {
            cache.advance(request);
        }
        cache.answered(answer);
        if let Some(kept) = kept.filter(|kept| !is_same(kept, answer)) {
            self.forget();
            self.diagnostics.push(differs(request, &kept, answer));
        }
        Ok(reply)
    }

    fn forget(&mut self) {
        self.memory.is_spoilt = true;
        if let Some(cache) = &self.memory.cache {
            cache.forget();
        }
    }

    /// Caches the evaluated configs for the next run. Returns the result in words.
    pub fn keep(&mut self) -> String {
        match self.memory.cache {
            None => "evaluated, and not kept: that was asked for, or the Python is a script".to_owned(),
            Some(_) if self.child.is_none() => {
                "not evaluated, as nothing they depend on has changed".to_owned()
            }
            Some(_) => match self.try_to_keep() {
                Ok(()) => "evaluated, and kept for the next run".to_owned(),
                Err(why) => format!("evaluated, and not kept: {why}"),
            },
        }
    }

    fn try_to_keep(&mut self) -> Result<(), String> {
        if self.memory.is_spoilt {
            return Err("a config failed, or its format or a function of it was asked".to_owned());
        }
        let line = Request::op("trace").end();
        let answer = self.exchange(&line, Path::new("lit")).map_err(|error| error.to_string())?;
        let reply: Reply = parsed(&answer).map_err(|error| error.to_string())?;
        let (Some(cache), Some(told)) = (&mut self.memory.cache, reply.trace) else { return Ok(()) };
        cache.keep(&told)
    }

    /// Sends one line to the helper and returns its answer.
    fn exchange(&mut self, request: &[u8], about: &Path) -> Result<Vec<u8>, ProbeError> {
        let ended = || ProbeError::Ended(about.to_path_buf());
        let Some(requests) = &mut self.requests else { return Err(ended()) };
        if requests.write_all(request).is_err() {
            return Err(ended());
        }
        loop {
            let answer = self.read_line()?.ok_or_else(ended)?;
            // Nearly all lines are answers, not predictions.
            if !answer.starts_with(b"{\"ahead\"") {
                return Ok(answer);
            }
            if let Some(ahead) = parsed::<Reply>(&answer)?.ahead {
                self.tell(ahead, about);
            }
        }
    }

    /// Reads the helper's next line; `None` if it has ended.
    pub(super) fn read<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, ProbeError> {
        self.read_line()?.map(|line| parsed(&line)).transpose()
    }

    /// Reads the helper's next line, without its end; `None` if the helper has ended.
    fn read_line(&mut self) -> Result<Option<Vec<u8>>, ProbeError> {
        self.line.clear();
        let Some(replies) = &mut self.replies else { return Ok(None) };
        if replies.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        let end = self.line.strip_suffix(b"\n").map_or(self.line.len(), <[u8]>::len);
        Ok(Some(self.line[..end].to_vec()))
    }
}

fn parsed<T: serde::de::DeserializeOwned>(line: &[u8]) -> Result<T, ProbeError> {
    serde_json::from_slice(line).map_err(|error| ProbeError::Malformed(error.to_string()))
}

/// Returns whether two answers are equal, apart from the order of members.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let value = |line| serde_json::from_slice::<serde_json::Value>(line).ok();
    a == b || value(a).is_some_and(|a| Some(a) == value(b))
}

fn differs(request: &[u8], kept: &[u8], now: &[u8]) -> Diagnostic {
    let at = kept.iter().zip(now).take_while(|(a, b)| a == b).count();
    let around = |text: &[u8]| {
        let text = &text[at.saturating_sub(80).min(text.len())..(at + 80).min(text.len())];
        String::from_utf8_lossy(text).into_owned()
    };
    let message = format!(
        "a fault of hotstart, not of the tests: what is kept of configs is not what they say now. What they say counts, and \
         nothing of it is kept. Please report this.\n--- asked\n{}--- kept\n…{}…\n--- now\n…{}…\n---",
        String::from_utf8_lossy(request),
        around(kept),
        around(now)
    );
    Diagnostic { severity: Severity::Warning, place: None, message }
}
