//! The `pane-ident` command; its job is in the crate of that name.

use std::process::ExitCode;

fn main() -> ExitCode {
    pane_ident::main()
}
