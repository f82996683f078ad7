//! The `detach` command; its job is in the crate of that name.

#![no_main]

// A daemon is started all the same by whoever has no stdout, such as another daemon.
process::main!(detach::main, process::ClosedOutput::IsDropped);
