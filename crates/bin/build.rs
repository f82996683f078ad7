//! Asks the linker for small binaries, where it can make them: of functions whose code is the same
//! one is kept, and the index of the unwinding tables is left away, which a program that aborts on
//! a panic does not look into.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

const SMALLER: [&str; 2] = ["-Wl,--icf=all", "-Wl,--no-eh-frame-hdr"];

fn main() {
    println!("cargo::rerun-if-changed=crates/bin/build.rs");
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    // In a build for debugging the panics unwind, and the time is the programmer's.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        for flag in SMALLER.iter().filter(|flag| links_with(flag)) {
            println!("cargo::rustc-link-arg-bins={flag}");
        }
    }
}

/// Whether an empty program links with `flag`, by the linker that this build has.
fn links_with(flag: &str) -> bool {
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
        .args([format!("-Clink-arg={flag}"), format!("-o{}", out.display())])
        .stderr(Stdio::null());
    let Ok(mut child) = rustc.stdin(Stdio::piped()).spawn() else {
        return false;
    };
    if let Some(mut source) = child.stdin.take() {
        // A compiler that does not read it fails, which is the answer.
        let _ = std::io::Write::write_all(&mut source, b"fn main() {}");
    }
    child.wait().is_ok_and(|status| status.success())
}
