//! The `reap` command; its job is in the crate of that name.

use std::process::ExitCode;

fn main() -> ExitCode {
    reap::main()
}
