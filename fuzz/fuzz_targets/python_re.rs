#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hotstart_parser_fuzz::python_re(data));
