#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| targets::control_plane(input));
