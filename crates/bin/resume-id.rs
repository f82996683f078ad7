//! The `resume-id` command; its job is in the crate of that name.

use std::process::ExitCode;

fn main() -> ExitCode {
    resume_id::main()
}
