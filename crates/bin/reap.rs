//! The `reap` command; its job is in the crate of that name.

#![no_main]

process::main!(reap::main);
