//! Whether constructors can make anything of the arguments that they are called with: the number of the tool's arguments, and
//! the lists of arguments and variables.
//!
//! Those three are in registers where a constructor begins, and most constructors write to these before they read them. That is
//! decided by following the machine code from there: along each path, a register is out of reach once it is overwritten or the
//! function has returned. Whatever cannot be followed counts as reading them.
//!
//! A path that is not taken in an observation run is taken in no start that has read none of the three, as all else is equal.

use std::collections::{HashMap, HashSet};

use iced_x86::{
    Code, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess,
    OpKind, Register,
};
use object::NativeEndian as Native;
use object::elf::{
    DT_INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_NULL, DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ, Dyn64, ELFMAG,
    FileHeader64, PT_DYNAMIC, PT_LOAD, ProgramHeader64,
};
use object::pod;

use super::maps::{self, Mapping};

const PAGE: u64 = 4096;
/// Longest instruction, in bytes.
const LONGEST: usize = 15;
/// How many instructions are looked at before it is given up: LLVM's libraries have some 100,000 on such paths.
const PATIENCE: usize = 4_000_000;

/// The registers that hold the arguments of a function, as bits.
const NUMBER: u8 = 1;
const LIST: u8 = 2;
const VARIABLES: u8 = 4;
const ALL: u8 = NUMBER | LIST | VARIABLES;

/// Where a path through the code has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct At {
    address: u64,
    /// Which of the three registers still hold what they held at the start.
    live: u8,
    /// A register that holds a constant, or a word from a fixed place. Compilers add calls of functions that need not exist,
    /// each behind a test whether its address is zero.
    loaded: Option<(Register, u64)>,
}

impl At {
    fn new(address: u64, live: u8) -> At {
        At { address, live, loaded: None }
    }
}

/// Reads memory of the process: fills the bytes at an address, or tells that it cannot.
pub(super) trait Memory {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool;
}

/// Why constructors may read them: the place of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// It reads one of the registers.
    Register(u64),
    /// Nobody knows where it goes.
    Lost(u64),
    /// A file whose constructors are not known.
    File,
    /// There is too much of it.
    Long,
}

/// Whether the constructors of all files in `maps`, but for libc's and those of the file with inode `ours`, leave them unread.
pub(super) fn unread(memory: &impl Memory, maps: &[Mapping], ours: u64) -> Result<(), Read> {
    let mut search = Search::new(memory, maps);
    for mapping in maps {
        let is_first = mapping.offset == 0 && mapping.path.starts_with('/');
        if !is_first || mapping.inode == ours || maps::is_libc(&mapping.path) {
            continue;
        }
        let is_code = |other: &&Mapping| other.inode == mapping.inode && other.access[2] == b'x';
        if maps.iter().any(|other| is_code(&other)) {
            search.begin(mapping.from).ok_or(Read::File)?;
        }
    }
    search.run()
}

struct Search<'m, M> {
    memory: &'m M,
    /// Where code is, by address.
    code: Vec<(u64, u64)>,
    /// The loader's, which nobody calls but to have a function looked for. At `main` that is still to be done for functions that
    /// were not called before.
    loader: Vec<(u64, u64)>,
    pages: HashMap<u64, Option<Box<[u8]>>>,
    seen: HashSet<At>,
    todo: Vec<At>,
    info: InstructionInfoFactory,
}

impl<'m, M: Memory> Search<'m, M> {
    fn new(memory: &'m M, maps: &[Mapping]) -> Self {
        let code = maps.iter().filter(|mapping| mapping.access[2] == b'x' && mapping.access[1] != b'w');
        let is_loader =
            |mapping: &&Mapping| mapping.path.rsplit('/').next().is_some_and(|name| name.starts_with("ld-"));
        let loader = maps.iter().filter(is_loader);
        Search {
            memory,
            code: code.map(|mapping| (mapping.from, mapping.to)).collect(),
            loader: loader.map(|mapping| (mapping.from, mapping.to)).collect(),
            pages: HashMap::new(),
            seen: HashSet::new(),
            todo: Vec::new(),
            info: InstructionInfoFactory::new(),
        }
    }

    /// Adds the constructors of the file that begins at `base`; `None` if it is not as it should be.
    fn begin(&mut self, base: u64) -> Option<()> {
        let header: FileHeader64<Native> = self.read(base)?;
        if header.e_ident.magic != ELFMAG {
            return None;
        }
        let headers = base + header.e_phoff.get(Native);
        let count = u64::from(header.e_phnum.get(Native));
        let size = size_of::<ProgramHeader64<Native>>() as u64;
        let parts = (0..count).map(|index| self.read::<ProgramHeader64<Native>>(headers + index * size));
        let parts: Vec<_> = parts.collect::<Option<_>>()?;
        let at = |kind| parts.iter().filter(move |part| part.p_type.get(Native) == kind);
        let lowest = at(PT_LOAD).map(|part| part.p_vaddr.get(Native)).min()?;
        let bias = base.wrapping_sub(lowest / PAGE * PAGE);
        let Some(dynamic) = at(PT_DYNAMIC).next() else { return Some(()) };
        let mut entry = bias.wrapping_add(dynamic.p_vaddr.get(Native));
        let mut tags = HashMap::new();
        loop {
            let found: Dyn64<Native> = self.read(entry)?;
            let tag = found.d_tag.get(Native) as u32;
            if tag == DT_NULL {
                break;
            }
            tags.insert(tag, found.d_val.get(Native));
            entry += size_of::<Dyn64<Native>>() as u64;
        }
        self.todo.extend(tags.get(&DT_INIT).map(|at| At::new(bias.wrapping_add(*at), ALL)));
        for (list, size) in [(DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ), (DT_INIT_ARRAY, DT_INIT_ARRAYSZ)] {
            let Some(list) = tags.get(&list) else { continue };
            for index in 0..tags.get(&size)? / 8 {
                let function = self.word(bias.wrapping_add(*list) + index * 8)?;
                // As in ld.so, which calls each.
                self.todo.push(At::new(function, ALL));
            }
        }
        Some(())
    }

    fn read<T: pod::Pod>(&self, at: u64) -> Option<T> {
        let mut bytes = vec![0; size_of::<T>()];
        self.memory
            .read(at, &mut bytes)
            .then(|| pod::from_bytes::<T>(&bytes).ok().map(|(value, _)| *value))?
    }

    fn word(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.memory.read(at, &mut bytes).then(|| u64::from_ne_bytes(bytes))
    }

    fn run(&mut self) -> Result<(), Read> {
        while let Some(at) = self.todo.pop() {
            self.follow(at)?;
        }
        Ok(())
    }

    /// Goes from one place straight on, until nothing of interest is left or another path has been there.
    fn follow(&mut self, mut at: At) -> Result<(), Read> {
        loop {
            let is_loader = self.loader.iter().any(|&(from, to)| (from..to).contains(&at.address));
            if at.live == 0 || is_loader || !self.seen.insert(at) {
                return Ok(());
            }
            if self.seen.len() > PATIENCE {
                return Err(Read::Long);
            }
            let instruction = self.decode(at.address).ok_or(Read::Lost(at.address))?;
            let live = self.left(&instruction, at.live).ok_or(Read::Register(at.address))?;
            let next =
                At { address: instruction.next_ip(), live, loaded: self.loaded(&instruction, at.loaded) };
            let to = |address| At { address, ..next };
            match instruction.flow_control() {
                FlowControl::Next => {
                    at = next;
                    if let Some(taken) = self.decided(&instruction, next) {
                        at.address = taken;
                    }
                }
                FlowControl::ConditionalBranch => {
                    self.todo.push(to(instruction.near_branch_target()));
                    at = next;
                }
                // A function that was called may use them for anything.
                FlowControl::Return | FlowControl::Exception => return Ok(()),
                FlowControl::UnconditionalBranch | FlowControl::Call => {
                    at = to(instruction.near_branch_target())
                }
                FlowControl::IndirectBranch | FlowControl::IndirectCall => {
                    at = At::new(self.target(&instruction, at.loaded).ok_or(Read::Lost(at.address))?, live);
                }
                FlowControl::Interrupt | FlowControl::XbeginXabortXend => return Err(Read::Lost(at.address)),
            }
        }
    }

    /// Where an indirect call goes by a pointer at a fixed place, as calls of other files do.
    fn target(&self, instruction: &Instruction, loaded: Option<(Register, u64)>) -> Option<u64> {
        match instruction.op0_kind() {
            OpKind::Register => {
                loaded.filter(|(register, _)| *register == instruction.op0_register()).map(|(_, at)| at)
            }
            _ => self.fixed(instruction),
        }
    }

    /// The word at the fixed place that an instruction reads.
    fn fixed(&self, instruction: &Instruction) -> Option<u64> {
        let is_fixed = instruction.is_ip_rel_memory_operand()
            && instruction.memory_size().size() == 8
            && instruction.segment_prefix() == Register::None;
        self.word(is_fixed.then(|| instruction.ip_rel_memory_address())?)
    }

    /// Which register is known after an instruction, and what it holds.
    fn loaded(
        &mut self,
        instruction: &Instruction,
        before: Option<(Register, u64)>,
    ) -> Option<(Register, u64)> {
        if instruction.code() == Code::Mov_r64_rm64 && instruction.op1_kind() == OpKind::Memory {
            return self.fixed(instruction).map(|word| (instruction.op0_register(), word));
        }
        if instruction.code() == Code::Mov_r32_imm32 {
            return Some((instruction.op0_register().full_register(), u64::from(instruction.immediate32())));
        }
        let mut writes = |register: Register| {
            let is_write =
                |access| !matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
            let used = self.info.info(instruction).used_registers().iter();
            used.clone().any(|used| used.register().full_register() == register && is_write(used.access()))
        };
        before.filter(|(register, _)| !writes(*register))
    }

    /// Where it goes on after `test register, register` and a branch by whether that is zero, if the register is known.
    fn decided(&mut self, test: &Instruction, next: At) -> Option<u64> {
        let (register, word) = next.loaded?;
        let is_test = test.code() == Code::Test_rm64_r64
            && test.op0_kind() == OpKind::Register
            && [test.op0_register(), test.op1_register()] == [register; 2];
        let branch = if is_test { self.decode(next.address) } else { None }?;
        match branch.condition_code() {
            ConditionCode::e if word == 0 => Some(branch.near_branch_target()),
            ConditionCode::ne if word != 0 => Some(branch.near_branch_target()),
            ConditionCode::e | ConditionCode::ne => Some(branch.next_ip()),
            _ => None,
        }
        .filter(|_| branch.flow_control() == FlowControl::ConditionalBranch)
    }

    /// What of `live` is still there after an instruction; `None` if it reads any of that.
    fn left(&mut self, instruction: &Instruction, live: u8) -> Option<u8> {
        // A system call has arguments in these registers.
        if instruction.code() == Code::Syscall {
            return None;
        }
        let mut left = live;
        for used in self.info.info(instruction).used_registers() {
            let bit = match used.register().full_register() {
                Register::RDI => NUMBER,
                Register::RSI => LIST,
                Register::RDX => VARIABLES,
                _ => continue,
            };
            match used.access() {
                OpAccess::None | OpAccess::NoMemAccess => {}
                // Writing to the lower half clears the upper one; writing to less leaves the rest.
                OpAccess::Write if used.register().size() >= 4 => left &= !bit,
                OpAccess::Write | OpAccess::CondWrite => {}
                _ if live & bit == 0 => {}
                _ => return None,
            }
        }
        Some(left)
    }

    fn decode(&mut self, address: u64) -> Option<Instruction> {
        let is_code = |&(from, to): &(u64, u64)| (from..to).contains(&address);
        if !self.code.iter().any(is_code) {
            return None;
        }
        let mut bytes = [0; LONGEST];
        let mut have = 0;
        while have < LONGEST {
            let at = address + have as u64;
            let Some(page) = self.page(at / PAGE * PAGE) else { break };
            let rest = &page[(at % PAGE) as usize..];
            let more = rest.len().min(LONGEST - have);
            bytes[have..have + more].copy_from_slice(&rest[..more]);
            have += more;
        }
        let instruction = Decoder::with_ip(64, &bytes[..have], address, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    fn page(&mut self, at: u64) -> Option<&[u8]> {
        let memory = self.memory;
        let read = || {
            let mut bytes = vec![0; PAGE as usize];
            memory.read(at, &mut bytes).then(|| bytes.into_boxed_slice())
        };
        self.pages.entry(at).or_insert_with(read).as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code at 0x1000, and after it data at 0x2000: a null pointer, and one to the function at 0x1800.
    struct Image(Vec<u8>);

    const CODE: u64 = 0x1000;
    const OTHER: usize = 0x800;

    impl Memory for Image {
        fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
            let found = usize::try_from(at - CODE).ok().and_then(|at| self.0.get(at..at + bytes.len()));
            found.map(|found| bytes.copy_from_slice(found)).is_some()
        }
    }

    /// What is found out about a constructor that is `code`, if the function that it may call is `other`.
    fn look(code: &[u8], other: &[u8]) -> Result<(), Read> {
        let mut image = vec![0xcc; 0x2000];
        image[..code.len()].copy_from_slice(code);
        image[OTHER..OTHER + other.len()].copy_from_slice(other);
        image[0x1000..0x1008].fill(0);
        image[0x1008..0x1010].copy_from_slice(&(CODE + OTHER as u64).to_ne_bytes());
        let image = Image(image);
        let maps = maps::parse("1000-2000 r-xp 00000000 fe:00 42  /bin/tool").unwrap();
        let mut search = Search::new(&image, std::slice::from_ref(&maps));
        search.todo.push(At::new(CODE, ALL));
        search.run()
    }

    const RET: u8 = 0xc3;
    /// xor edi, edi; xor esi, esi; xor edx, edx
    const CLEAR: [u8; 6] = [0x31, 0xff, 0x31, 0xf6, 0x31, 0xd2];

    fn code(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn what_is_overwritten_first_is_not_read() {
        assert_eq!(look(&[RET], &[]), Ok(()));
        // Then it may be used: mov rax, rdi; mov rax, rsi; mov rax, rdx
        let uses = [0x48, 0x89, 0xf8, 0x48, 0x89, 0xf0, 0x48, 0x89, 0xd0];
        assert_eq!(look(&code(&[&CLEAR, &uses]), &[]), Ok(()));
        // endbr64; sub rsp, 8; lea rdi, [rip]; a call; mov rax, rsi, which the called function may have written.
        let calls = [0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 8, 0x48, 0x8d, 0x3d, 0, 0, 0, 0];
        let call = [0xe8, 0xec, 0x07, 0, 0];
        assert_eq!(look(&code(&[&calls, &call, &[0x48, 0x89, 0xf0]]), &[RET]), Ok(()));
    }

    #[test]
    fn each_way_to_read_one_is_found() {
        let reads: [(&str, &[u8]); 14] = [
            ("mov [rip], edi", &[0x89, 0x3d, 0, 0, 0, 0]),
            ("cmp edi, 3", &[0x83, 0xff, 3]),
            ("cmp qword [rsi + 16], 0", &[0x48, 0x83, 0x7e, 0x10, 0]),
            ("mov rax, [rdx]", &[0x48, 0x8b, 0x02]),
            ("push rdi", &[0x57]),
            ("mov al, dil", &[0x40, 0x88, 0xf8]),
            ("lea rax, [rdi + rdi]", &[0x48, 0x8d, 0x04, 0x3f]),
            ("inc edi", &[0xff, 0xc7]),
            ("mov di, 1; mov eax, edi", &[0x66, 0xbf, 1, 0, 0x89, 0xf8]),
            ("cmove edi, eax; mov eax, edi", &[0x0f, 0x44, 0xf8, 0x89, 0xf8]),
            ("mul; mov eax, esi", &[0xf7, 0xe1, 0x89, 0xf0]),
            ("movsb", &[0xa4]),
            ("syscall", &[0x0f, 0x05]),
            ("xor esi, edi", &[0x31, 0xfe]),
        ];
        for (name, read) in reads {
            let found = look(&code(&[read, &[RET]]), &[]);
            assert!(matches!(found, Err(Read::Register(_))), "{name}: {found:?}");
        }
    }

    #[test]
    fn it_is_followed_to_where_it_is_read() {
        let read = [0x89, 0xf8, RET];
        let unread = code(&[&CLEAR, &read]);
        // jmp, call, je, and jne behind a test: to 0x1800.
        let ways: [&[u8]; 5] = [
            &[0xe9, 0xfb, 0x07, 0, 0],
            &[0xe8, 0xfb, 0x07, 0, 0],
            &[0x0f, 0x84, 0xfa, 0x07, 0, 0, RET],
            &[0x48, 0x85, 0xc0, 0x0f, 0x85, 0xf7, 0x07, 0, 0, RET],
            // jmp [0x2008]
            &[0xff, 0x25, 0x02, 0x10, 0, 0],
        ];
        for way in ways {
            assert_eq!(look(way, &read), Err(Read::Register(CODE + OTHER as u64)), "{way:x?}");
            assert_eq!(look(way, &unread), Ok(()), "{way:x?}");
        }
    }

    #[test]
    fn a_call_to_nowhere_known_may_read_it() {
        // jmp rax; call [rbx]; jmp [rax*8 + 0x2000]; a jump out of the code; int3
        let ways: [&[u8]; 5] = [
            &[0xff, 0xe0],
            &[0xff, 0x13],
            &[0xff, 0x24, 0xc5, 0, 0x20, 0, 0],
            &[0xe9, 0, 0, 0x10, 0],
            &[0xcc],
        ];
        for way in ways {
            let found = look(way, &[]);
            assert!(matches!(found, Err(Read::Lost(_))), "{way:x?}: {found:?}");
        }
    }

    /// mov rax, [the word]; test rax, rax; je over; jmp rax
    #[test]
    fn a_function_that_does_not_exist_is_not_called() {
        let optional = |word: u32| -> Vec<u8> {
            let distance = (0xff9 + word).to_le_bytes();
            code(&[&[0x48, 0x8b, 0x05], &distance, &[0x48, 0x85, 0xc0, 0x74, 2, 0xff, 0xe0, RET]])
        };
        let read = [0x89, 0xf8, RET];
        assert_eq!(look(&optional(0), &read), Ok(()));
        assert_eq!(look(&optional(8), &read), Err(Read::Register(CODE + OTHER as u64)));
        // Or mov eax, 0, as where addresses are fixed; and not if something else is written in between.
        let fixed = [0xb8, 0, 0, 0, 0, 0x48, 0x85, 0xc0, 0x74, 2, 0xff, 0xe0, RET];
        assert_eq!(look(&fixed, &[]), Ok(()));
        let changed = [0xb8, 0, 0, 0, 0, 0xb0, 1, 0x48, 0x85, 0xc0, 0x74, 2, 0xff, 0xe0, RET];
        assert!(matches!(look(&changed, &[]), Err(Read::Lost(_))));
    }
}
