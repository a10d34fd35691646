//! The messages of `runtime/protocol.h`, which defines them; a test compares sizes and offsets.

/// Version of the protocol.
pub(crate) const VERSION: u32 = 1;
/// Longest message.
pub(crate) const MESSAGE_MAX: usize = 120 * 1024;
/// Most descriptors of a request.
pub(crate) const FDS_MAX: usize = 32;
/// Those of a request beside the extra ones: the standard streams, and the socket and page of a process behind the gate.
pub(crate) const FDS_BESIDE: usize = 3 + 2;
/// Numbers of further descriptors are smaller than this.
pub(crate) const TARGET_MAX: i32 = 1024;
/// Numbers of further descriptors in a request to a persistent process are smaller than this.
pub(crate) const WORKER_TARGET_MAX: i32 = 60;
/// Number of the shared page's descriptor in a zygote.
pub(crate) const SLOTS_FD: i32 = 61;
/// Number of the socket's descriptor.
pub(crate) const CONTROL_FD: i32 = 62;
/// Number of the runtime's descriptor.
pub(crate) const RUNTIME_FD: i32 = 63;
/// Leaves the umask as it is.
pub(crate) const UMASK_KEEP: u32 = u32::MAX;
/// Arguments that a zygote of the largest requests is started with, for the room that they make on its stack.
pub(crate) const ROOM: usize = 2500;
/// Most words of a tool in which its constructors may keep the number of arguments.
pub(crate) const COUNTS_MAX: usize = 8;
/// Most words in which a request tells what a cold process has on its stack below and above `main`'s frame.
pub(crate) const RESIDUE_MAX: usize = 1153;
/// How many of these are bits, each for a word below the frame, how many are words above it, and how many are numbers. The first word tells
/// how many are bits, and above its lower half how many are words.
pub(crate) const RESIDUE_BITS: usize = 64;
pub(crate) const RESIDUE_ABOVE: usize = 64;
pub(crate) const RESIDUE_NUMBERS: usize = RESIDUE_MAX - RESIDUE_BITS - RESIDUE_ABOVE - 1;
/// What a word above the frame is, in its highest 16 bits: a number, so far from the frame, or something else that is not zero. Otherwise
/// nothing is known of it.
pub(crate) const ABOVE_NUMBER: u64 = 1;
pub(crate) const ABOVE_PLACE: u64 = 2;
pub(crate) const ABOVE_SOMETHING: u64 = 3;
/// Flag of a request: the fork becomes a persistent process.
pub(crate) const REQUEST_WORKER: u32 = 1;
/// Flag of a request to a persistent process: audit before the end is reported.
pub(crate) const REQUEST_AUDIT: u32 = 2;
/// Flag of a request to a zygote: put the text on large pages first.
pub(crate) const REQUEST_ENLARGE: u32 = 4;
/// Flag of a request: the receiver is bound to a processor, and frees itself first.
pub(crate) const REQUEST_BOUND: u32 = 8;
/// With [`REQUEST_BOUND`]: it frees itself by allowing itself all processors.
pub(crate) const REQUEST_ANYWHERE: u32 = 16;
/// With [`REQUEST_WORKER`]: the fork runs `main` once, behind the gate, and then ends as any process does.
pub(crate) const REQUEST_ONCE: u32 = 32;
/// Stands for "/" in the path of a runtime behind which an allocator of the user's choice is loaded.
pub(crate) const CHOSEN_NEXT: &str = "/./";
/// Flag of a request to a persistent process that waits: it makes a clone of itself.
pub(crate) const REQUEST_CLONE: u32 = 64;
/// Flag of a request to a persistent process: it takes another process number, and tells it, before it runs.
pub(crate) const REQUEST_RENUMBER: u32 = 128;
/// Flag of a request to a persistent process: each number of arguments is learned from its first run on.
pub(crate) const REQUEST_LEARN: u32 = 256;
/// Argument of a `close` by which the runtime reports to an observer that constructors are over.
pub(crate) const MARK_MAIN: u64 = MARK;
/// Such arguments report that a library requests time or random bytes that is known to forget them, and that it has them.
pub(crate) const MARK_KNOWN: u64 = MARK - 1;
pub(crate) const MARK_KNOWN_END: u64 = MARK - 2;
/// Such an argument is about a Python script. `enum hs_python_mark` follows, and a text with its length.
pub(crate) const MARK_PYTHON: u64 = MARK - 3;
pub(crate) const PYTHON_WATCHES: u64 = 1;
pub(crate) const PYTHON_RENEWS: u64 = 2;
pub(crate) const PYTHON_CHECKS: u64 = 3;
pub(crate) const PYTHON_REFUSES: u64 = 4;
pub(crate) const PYTHON_TEXT: u64 = 512;
/// Offsets in `struct hs_observed`: the requested names, their length, the address of `environ`, the place, and `main`.
pub(crate) const OBSERVED: [u64; 5] = [0, 8, 16, 24, 32];
/// A number that no descriptor has.
const MARK: u64 = -0x6873_i64 as u64;
/// Stage of a reply: no persistent process can be made of this tool here.
pub(crate) const STAGE_RESET: u32 = 6;
/// Bit of `enum hs_retirement`: child processes are left.
pub(crate) const RETIRED_CHILDREN: u32 = 1 << 1;
/// Bit of `enum hs_retirement`: the run made a system call that is not known to be harmless.
pub(crate) const RETIRED_CALLS: u32 = 1 << 7;
/// Bit of `enum hs_run_doubt`: the run whose end is awaited did so.
pub(crate) const RUN_CALLS: u32 = 1;
/// Bit of `enum hs_run_doubt`: the run started processes.
pub(crate) const RUN_CHILDREN: u32 = 2;
/// Bit of `enum hs_run_doubt`: it executed another program in a process with earlier runs.
pub(crate) const RUN_PAST: u32 = 4;
/// Bit of `enum hs_run_doubt`: it was shown the process's number, in a process with earlier runs.
pub(crate) const RUN_NUMBER: u32 = 8;
/// Above these bits, in the same word: the number of the first call of [`RUN_CALLS`], plus one.
pub(crate) const RUN_CALL_SHIFT: u32 = 8;
/// Largest `hs_ready` message, with the names of objects and of variables.
pub(crate) const READY_MAX: usize = 80 * 1024;

/// `struct hs_ready`: a zygote has stopped before `main`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub pid: i32,
    pub doubts: u32,
    pub object_count: u32,
    pub name_count: u32,
    /// The place in a Python script where it has stopped; 0 before `main`.
    pub place: u64,
}

/// `struct hs_request`: make a fork.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub length: u32,
    pub argc: u32,
    pub envc: u32,
    pub fd_count: u32,
    pub limit_count: u32,
    pub pgid: i32,
    pub umask: u32,
    pub runner: i32,
    pub flags: u32,
    pub slot: u32,
    pub count_count: u32,
    pub residue_count: u32,
}

/// `struct hs_reply`: the fork's number, or the failed stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub pid: i32,
    pub error: i32,
    pub stage: u32,
}

/// Sizes of the messages' fixed parts.
pub(crate) const READY_SIZE: usize = 32;
pub(crate) const REQUEST_SIZE: usize = 56;
pub(crate) const REPLY_SIZE: usize = 24;
pub(crate) const LIMIT_SIZE: usize = 24;
pub(crate) const END_SIZE: usize = 112;

/// `enum hs_ending`: the result of a request to a persistent process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Reset = 1,
    Retired,
    Refused,
}

/// `struct hs_end`: `main` has ended in a persistent process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub status: i32,
    pub ending: Ending,
    /// `enum hs_retirement`.
    pub retired: u32,
    /// `enum hs_difference`.
    pub differs: u32,
    /// Whether the run began at a deferred snapshot, where `main` first looks at its request.
    pub at_point: bool,
    /// The number of its children, if the process can be used again.
    pub children: u32,
    pub user_us: u64,
    pub system_us: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary: u64,
    pub involuntary: u64,
    pub max_rss_kib: u64,
    pub knows: Knowledge,
    /// Whether `main` has looked at the process's number.
    pub has_shown: bool,
}

/// The deferred snapshots of a persistent process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Knowledge {
    /// The numbers of arguments for which it has one, as bits.
    pub learned: u64,
    /// Whether it is a clone, and the state to which it defers contains its process number. Such a process learns for itself.
    pub is_unlike: bool,
    /// Whether it is a clone, and requests have another environment than what it was cloned from has learned. It learns anew.
    pub is_outdated: bool,
    /// Whether a word of the tool's seems by chance to lead to the strings of dry runs, which may not be so in another memory layout.
    pub is_in_the_way: bool,
}

impl End {
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        check(bytes, END_SIZE)?;
        let [status, ending, retired, differs] = words(bytes);
        let ending = match ending {
            1 => Ending::Reset,
            2 => Ending::Retired,
            3 => Ending::Refused,
            _ => return None,
        };
        let long = |index: usize| {
            let at = 32 + index * 8;
            u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
        };
        Some(End {
            status: status as i32,
            ending,
            retired,
            differs,
            at_point: word(bytes, 6) != 0,
            children: word(bytes, 7),
            user_us: long(0),
            system_us: long(1),
            minor_faults: long(2),
            major_faults: long(3),
            voluntary: long(4),
            involuntary: long(5),
            max_rss_kib: long(6),
            knows: Knowledge {
                learned: long(7),
                is_unlike: long(8) & 1 != 0,
                is_outdated: long(8) & 2 != 0,
                is_in_the_way: long(8) & 4 != 0,
            },
            has_shown: long(9) != 0,
        })
    }
}

impl Ready {
    /// Reads the fixed part; `None` if the message is not of this protocol.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        check(bytes, READY_SIZE)?;
        let [pid, doubts, object_count, name_count] = words(bytes);
        let place = u64::from_ne_bytes(bytes[24..32].try_into().expect("eight bytes"));
        Some(Ready { pid: pid as i32, doubts, object_count, name_count, place })
    }
}

/// `struct hs_mode`: stop in a Python script, under observation or not.
pub(crate) fn python_mode(observed: bool) -> [u8; 12] {
    let mut bytes = [0; 12];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip([VERSION, 1, u32::from(observed)]) {
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

impl Request {
    /// Returns the request to a persistent process for a clone.
    pub(crate) fn for_clone() -> Request {
        Request {
            length: REQUEST_SIZE as u32,
            argc: 0,
            envc: 0,
            fd_count: 0,
            limit_count: 0,
            pgid: 0,
            umask: UMASK_KEEP,
            runner: rustix::process::getpid().as_raw_nonzero().get(),
            flags: REQUEST_CLONE,
            slot: 0,
            count_count: 0,
            residue_count: 0,
        }
    }

    pub(crate) fn encode(&self) -> [u8; REQUEST_SIZE] {
        let words = [
            VERSION,
            self.length,
            self.argc,
            self.envc,
            self.fd_count,
            self.limit_count,
            self.pgid as u32,
            self.umask,
            self.runner as u32,
            self.flags,
            self.slot,
            self.count_count,
            self.residue_count,
            0,
        ];
        let mut bytes = [0; REQUEST_SIZE];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
            chunk.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

impl Reply {
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        check(bytes, REPLY_SIZE)?;
        let [pid, error, stage, _] = words(bytes);
        Some(Reply { pid: pid as i32, error: error as i32, stage })
    }
}

fn check(bytes: &[u8], size: usize) -> Option<()> {
    (bytes.len() >= size && word(bytes, 0) == VERSION && word(bytes, 1) as usize == bytes.len()).then_some(())
}

fn words(bytes: &[u8]) -> [u32; 4] {
    std::array::from_fn(|index| word(bytes, index + 2))
}

fn word(bytes: &[u8], index: usize) -> u32 {
    u32::from_ne_bytes(bytes[index * 4..index * 4 + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::SLOTS;
    use crate::sys::shared::Table;

    /// Compiles the header and compares it with the constants of this file.
    #[test]
    fn header_and_wire_agree() {
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/protocol.h");
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("wire.c");
        let binary = dir.path().join("wire");
        let print = |what: &str| format!("printf(\"%ld\\n\", (long)({what}));\n");
        let offset = |s: &str, f: &str| print(&format!("offsetof(struct {s}, {f})"));
        let body: String = [
            "HS_VERSION",
            "HS_MESSAGE_MAX",
            "HS_FDS_MAX",
            "HS_TARGET_MAX",
            "HS_WORKER_TARGET_MAX",
            "HS_SLOTS_FD",
            "HS_CONTROL_FD",
            "HS_RUNTIME_FD",
            "HS_UMASK_KEEP",
            "sizeof(struct hs_ready)",
            "sizeof(struct hs_request)",
            "sizeof(struct hs_reply)",
            "sizeof(struct hs_limit)",
            "HS_DOUBT_FUNCTIONS",
            "HS_ROOM",
            "HS_COUNTS_MAX",
            "HS_RESIDUE_MAX",
            "HS_RESIDUE_BITS",
            "HS_RESIDUE_ABOVE",
            "HS_ABOVE_NUMBER",
            "HS_ABOVE_PLACE",
            "HS_ABOVE_SOMETHING",
            "sizeof(struct hs_end)",
            "HS_STAGE_RESET",
            "HS_REQUEST_AUDIT",
            "HS_REQUEST_ENLARGE",
            "HS_REQUEST_BOUND",
            "HS_REQUEST_ANYWHERE",
            "HS_REQUEST_ONCE",
            "HS_REQUEST_CLONE",
            "HS_REQUEST_RENUMBER",
            "HS_REQUEST_LEARN",
            "HS_ENDING_REFUSED",
            "HS_SLOTS",
            "sizeof(struct hs_slot)",
            "HS_RETIRED_CHILDREN",
            "HS_RETIRED_CALLS",
            "HS_RUN_CALLS",
            "HS_RUN_CHILDREN",
            "HS_RUN_PAST",
            "HS_RUN_NUMBER",
            "HS_RUN_CALL_SHIFT",
            "sizeof(struct hs_page)",
            "HS_MARK_MAIN",
            "HS_MARK_KNOWN",
            "HS_MARK_KNOWN_END",
            "HS_MARK_PYTHON",
            "HS_PYTHON_WATCHES",
            "HS_PYTHON_RENEWS",
            "HS_PYTHON_CHECKS",
            "HS_PYTHON_REFUSES",
            "HS_PYTHON_TEXT",
            "sizeof(struct hs_mode)",
        ]
        .iter()
        .map(|w| print(w))
        .chain(["pid", "doubts", "object_count", "name_count", "place"].iter().map(|f| offset("hs_ready", f)))
        .chain(
            [
                "argc",
                "envc",
                "fd_count",
                "limit_count",
                "pgid",
                "umask",
                "runner",
                "flags",
                "slot",
                "count_count",
                "residue_count",
            ]
            .iter()
            .map(|f| offset("hs_request", f)),
        )
        .chain(["group", "pid"].iter().map(|f| offset("hs_slot", f)))
        .chain(["pid", "error", "stage"].iter().map(|f| offset("hs_reply", f)))
        .chain(
            ["status", "ending", "retired", "differs", "point", "children", "user_us"]
                .iter()
                .map(|f| offset("hs_end", f)),
        )
        .chain(
            ["minor_faults", "voluntary", "max_rss_kib", "learned", "found", "shown"]
                .iter()
                .map(|f| offset("hs_end", f)),
        )
        .chain(["names", "names_length", "environ", "place", "main"].iter().map(|f| offset("hs_observed", f)))
        .collect();
        std::fs::write(
            &source,
            format!(
                "#include <stddef.h>\n#include <stdio.h>\n#include \"{header}\"\nint main(void){{{body}}}"
            ),
        )
        .unwrap();
        let run = |command: &mut std::process::Command| command.output().unwrap();
        assert!(run(std::process::Command::new("cc").arg("-o").args([&binary, &source])).status.success());
        let printed = String::from_utf8(run(&mut std::process::Command::new(&binary)).stdout).unwrap();
        let numbers: Vec<i64> = printed.lines().map(|l| l.parse().unwrap()).collect();
        let expected: Vec<i64> = [
            VERSION as i64,
            MESSAGE_MAX as i64,
            FDS_MAX as i64,
            TARGET_MAX as i64,
            WORKER_TARGET_MAX as i64,
            SLOTS_FD as i64,
            CONTROL_FD as i64,
            RUNTIME_FD as i64,
            UMASK_KEEP as i64,
            READY_SIZE as i64,
            REQUEST_SIZE as i64,
            REPLY_SIZE as i64,
            LIMIT_SIZE as i64,
            1 << 15,
            ROOM as i64,
            COUNTS_MAX as i64,
            RESIDUE_MAX as i64,
            RESIDUE_BITS as i64,
            RESIDUE_ABOVE as i64,
            ABOVE_NUMBER as i64,
            ABOVE_PLACE as i64,
            ABOVE_SOMETHING as i64,
            END_SIZE as i64,
            STAGE_RESET as i64,
            REQUEST_AUDIT as i64,
            REQUEST_ENLARGE as i64,
            REQUEST_BOUND as i64,
            REQUEST_ANYWHERE as i64,
            REQUEST_ONCE as i64,
            REQUEST_CLONE as i64,
            REQUEST_RENUMBER as i64,
            REQUEST_LEARN as i64,
            Ending::Refused as i64,
            SLOTS as i64,
            Table::bytes(1) as i64,
            RETIRED_CHILDREN as i64,
            RETIRED_CALLS as i64,
            RUN_CALLS as i64,
            RUN_CHILDREN as i64,
            RUN_PAST as i64,
            RUN_NUMBER as i64,
            RUN_CALL_SHIFT.into(),
            Table::bytes(2) as i64,
            MARK_MAIN as i64,
            MARK_KNOWN as i64,
            MARK_KNOWN_END as i64,
            MARK_PYTHON as i64,
            PYTHON_WATCHES as i64,
            PYTHON_RENEWS as i64,
            PYTHON_CHECKS as i64,
            PYTHON_REFUSES as i64,
            PYTHON_TEXT as i64,
            python_mode(true).len() as i64,
        ]
        .into_iter()
        .chain([8, 12, 16, 20, 24])
        .chain([8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48])
        .chain([0, 4])
        .chain([8, 12, 16])
        .chain([8, 12, 16, 20, 24, 28, 32])
        .chain([48, 64, 80, 88, 96, 104])
        .chain(OBSERVED.map(|offset| offset as i64))
        .collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn a_message_of_another_version_or_length_is_refused() {
        let mut bytes = [0; REPLY_SIZE];
        bytes[..4].copy_from_slice(&VERSION.to_ne_bytes());
        bytes[4..8].copy_from_slice(&(REPLY_SIZE as u32).to_ne_bytes());
        bytes[8] = 7;
        assert_eq!(Reply::decode(&bytes), Some(Reply { pid: 7, error: 0, stage: 0 }));
        assert_eq!(Reply::decode(&bytes[..20]), None);
        bytes[0] = 9;
        assert_eq!(Reply::decode(&bytes), None);
    }
}
