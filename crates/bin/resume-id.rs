//! The `resume-id` command; its job is in the crate of that name.

#![no_main]

process::main!(resume_id::main);
