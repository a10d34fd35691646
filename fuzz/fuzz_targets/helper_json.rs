//! Fuzz target `helper_json`: hands its input to the function of that name in `src/lib.rs`, which states the property.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hotstart_parser_fuzz::helper_json(data));
