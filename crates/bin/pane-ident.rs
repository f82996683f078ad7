//! The `pane-ident` command; its job is in the crate of that name.

#![no_main]

process::main!(pane_ident::main);
