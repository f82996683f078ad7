//! Asks the linker for small binaries, where it can make them: of functions whose code is the same
//! one is kept, and the tables for unwinding are left away, with their index. A program that aborts
//! on a panic does not look into them.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

fn main() {
    println!("cargo::rerun-if-changed=crates/bin/build.rs");
    println!("cargo::rerun-if-changed=crates/bin/no-unwinding.ld");
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    // In a build for debugging the panics unwind, and the time is the programmer's.
    if !env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        return;
    }
    let root = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let no_unwinding = format!("{root}/crates/bin/no-unwinding.ld");
    let mut taken = Vec::new();
    for argument in ["-Wl,--icf=all", "-Wl,--no-eh-frame-hdr", &no_unwinding] {
        taken.push(argument);
        if !links_with(&taken) {
            taken.pop();
        }
    }
    for argument in taken {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}

/// Whether an empty program links with `arguments`, by the linker that this build has, and then
/// runs, where it can.
fn links_with(arguments: &[&str]) -> bool {
    let variable = |name| env::var(name).unwrap_or_default();
    let out = Path::new(&variable("OUT_DIR")).join("empty");
    let mut rustc = Command::new(variable("RUSTC"));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    // The flags that cargo gives rustc, as it hands them on.
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    rustc
        .args(["--target", &variable("TARGET"), "--crate-name=empty", "-"])
        .args(arguments.iter().map(|word| format!("-Clink-arg={word}")))
        .arg(format!("-o{}", out.display()))
        .stderr(Stdio::null());
    let Ok(mut child) = rustc.stdin(Stdio::piped()).spawn() else {
        return false;
    };
    if let Some(mut source) = child.stdin.take() {
        // A compiler that does not read it fails, which is the answer.
        let _ = std::io::Write::write_all(&mut source, b"fn main() {}");
    }
    let runs = || {
        Command::new(&out)
            .status()
            .is_ok_and(|status| status.success())
    };
    let is_foreign = variable("TARGET") != variable("HOST");
    child.wait().is_ok_and(|status| status.success()) && (is_foreign || runs())
}
