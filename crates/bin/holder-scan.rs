//! The `holder-scan` command; its job is in the crate of that name.

#![no_main]

process::main!(holder_scan::main);
