//! Buffered output whose reader may go away.
//!
//! A closed pipe (`hotstart lit | head`) ends the output, not the run: the first error closes the sink, and later text
//! is dropped. Any other error (a full disk) is kept, to be reported at the end. Each event is flushed as a whole, so
//! a reader sees complete lines and a quiet run makes no system calls.

use std::io::{self, Write};

/// Destination of console text.
pub struct Sink {
    buffer: Vec<u8>,
    /// `None` once writing failed.
    to: Option<Box<dyn Write + Send>>,
    /// The error of a failed write, unless the reader was gone.
    failure: Option<io::Error>,
}

impl Sink {
    /// Creates a sink that writes to `to`.
    pub fn new(to: impl Write + Send + 'static) -> Self {
        Sink { buffer: Vec::new(), to: Some(Box::new(to)), failure: None }
    }

    /// Creates a sink for standard output.
    pub fn stdout() -> Self {
        Sink::new(io::stdout())
    }

    /// Creates a sink for standard error.
    pub fn stderr() -> Self {
        Sink::new(io::stderr())
    }

    /// Adds text.
    pub fn put(&mut self, text: &str) {
        if self.to.is_some() {
            self.buffer.extend_from_slice(text.as_bytes());
        }
    }

    /// Adds a line.
    pub fn line(&mut self, text: &str) {
        self.put(text);
        self.put("\n");
    }

    /// Writes the text added so far.
    pub fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        if let Some(to) = &mut self.to {
            let written = to.write_all(&self.buffer).and_then(|()| to.flush());
            if let Err(error) = written {
                self.to = None;
                self.failure = Some(error).filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
            }
        }
        self.buffer.clear();
    }

    /// Returns the error by which text was lost, unless the reader was gone.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Returns whether writing has failed, because the reader was gone or for another reason.
    pub fn is_closed(&self) -> bool {
        self.to.is_none()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A sink whose text can be read back.
    #[derive(Clone, Default)]
    pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        pub(crate) fn sink(&self) -> Sink {
            Sink::new(self.clone())
        }

        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Captured {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(data);
            Ok(data.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Counts writes and fails each of them.
    struct Closed(Arc<Mutex<u32>>, io::ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            *self.0.lock().unwrap() += 1;
            Err(self.1.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_written_to_once() {
        let calls = Arc::new(Mutex::new(0));
        let mut sink = Sink::new(Closed(calls.clone(), io::ErrorKind::BrokenPipe));
        for _ in 0..3 {
            sink.line("text");
            sink.flush();
        }
        assert!(sink.is_closed() && sink.failure().is_none());
        assert_eq!(*calls.lock().unwrap(), 1);
    }

    #[test]
    fn a_full_disk_is_remembered() {
        let mut sink = Sink::new(Closed(Arc::default(), io::ErrorKind::StorageFull));
        sink.line("text");
        sink.flush();
        assert_eq!(sink.failure().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    }

    #[test]
    fn text_arrives_when_flushed() {
        let captured = Captured::default();
        let mut sink = captured.sink();
        sink.line("a");
        assert_eq!(captured.text(), "");
        sink.flush();
        assert_eq!(captured.text(), "a\n");
    }
}
