//! The `eventwait` command; its job is in the crate of that name.

#![no_main]

process::main!(eventwait::main);
