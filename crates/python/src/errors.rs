//! Operating system errors with Python's types and messages.

use std::io;

use rustix::io::Errno;

/// Returns the exception type that Python raises for an error number.
pub fn kind(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => "FileNotFoundError",
        Some(Errno::EXIST) => "FileExistsError",
        Some(Errno::ISDIR) => "IsADirectoryError",
        Some(Errno::NOTDIR) => "NotADirectoryError",
        Some(Errno::ACCESS | Errno::PERM) => "PermissionError",
        Some(Errno::INTR) => "InterruptedError",
        Some(Errno::CHILD) => "ChildProcessError",
        Some(Errno::CONNABORTED) => "ConnectionAbortedError",
        Some(Errno::CONNREFUSED) => "ConnectionRefusedError",
        Some(Errno::CONNRESET) => "ConnectionResetError",
        Some(Errno::PIPE | Errno::SHUTDOWN) => "BrokenPipeError",
        Some(Errno::SRCH) => "ProcessLookupError",
        Some(Errno::TIMEDOUT) => "TimeoutError",
        Some(Errno::AGAIN | Errno::ALREADY | Errno::INPROGRESS) => "BlockingIOError",
        _ => "OSError",
    }
}

/// Returns `[Errno 2] No such file or directory: 'x'`. The path is given as Python would show it, with quotes.
pub fn message(error: &io::Error, shown_path: Option<&str>) -> String {
    let Some(number) = error.raw_os_error() else { return error.to_string() };
    let text = error.to_string();
    let text = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text);
    match shown_path {
        Some(path) => format!("[Errno {number}] {text}: {path}"),
        None => format!("[Errno {number}] {text}"),
    }
}

/// Returns the error for a kernel error number.
pub fn io_error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_words() {
        let error = io_error(Errno::NOENT);
        assert_eq!(message(&error, Some("b'x'")), "[Errno 2] No such file or directory: b'x'");
        assert_eq!(kind(&error), "FileNotFoundError");
        assert_eq!(kind(&io_error(Errno::NOEXEC)), "OSError");
    }
}
