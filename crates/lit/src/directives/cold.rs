//! `HOTSTART-COLD:`, a directive of hotstart's own. A separate scan finds it, so that it cannot change the meaning of
//! lit's directives: to lit such a line is a comment.

use std::sync::LazyLock;

use hotstart_model::ColdTools;
use memchr::{memchr, memmem, memrchr};

const KEYWORD: &str = "HOTSTART-COLD:";

static FINDER: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(KEYWORD));

/// Returns the tools that a test file wants to start cold. Only comment signs may precede the directive on its line,
/// so that a RUN line can mention it.
pub(super) fn tools(content: &[u8]) -> ColdTools {
    let mut tools = ColdTools::None;
    for found in FINDER.find_iter(content) {
        let begin = memrchr(b'\n', &content[..found]).map_or(0, |at| at + 1);
        if content[begin..found].iter().any(|&byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()) {
            continue;
        }
        let rest = &content[found + KEYWORD.len()..];
        let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
        tools = tools.with(&ColdTools::listed(&String::from_utf8_lossy(line)));
    }
    tools
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_lines_count() {
        let text = b"; RUN: opt\n; HOTSTART-COLD: opt llc\r\n//HOTSTART-COLD: FileCheck\n";
        let names = ["opt", "llc", "FileCheck"].map(str::to_owned);
        assert_eq!(tools(text), ColdTools::Named(names.into()));
        assert_eq!(tools(b"/* HOTSTART-COLD: */"), ColdTools::All);
    }

    #[test]
    fn only_a_line_of_its_own_is_a_directive() {
        assert_eq!(
            tools(b"RUN: grep HOTSTART-COLD: %s\n; see HOTSTART-COLD:\nHOTSTART-COLD"),
            ColdTools::None
        );
    }
}
