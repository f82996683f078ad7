//! The `detach` command; its job is in the crate of that name.

#![no_main]

process::main!(detach::main);
