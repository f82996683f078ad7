//! How agents turn a working directory into the name of a directory of their own.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// One agent's way, named after the agent that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CwdEncoding {
    /// Every UTF-16 unit outside of `[A-Za-z0-9]` becomes `-`; of more than 200 units the first 200
    /// stay, with a hash of the whole after them.
    Claude,
    /// As [`CwdEncoding::Claude`], whatever the length.
    Qwen,
    /// Without the leading `/`, with `/`, `\` and `:` as `-`, between `--` and `--`.
    Pi,
    /// Percent-encoded but for `A-Za-z0-9-_.~`. (Names over 255 bytes take another form, which is
    /// found by what is inside.)
    Grok,
    /// What the agent's own `projects.json` says; before that file existed, the SHA-256 of the path.
    Gemini,
}

/// The longest slug that claude leaves whole, in UTF-16 units.
const CLAUDE_WHOLE: usize = 200;

impl CwdEncoding {
    /// The name for `cwd`, as far as it can be computed.
    pub fn encode(self, cwd: &str) -> String {
        match self {
            CwdEncoding::Claude => claude(cwd),
            CwdEncoding::Qwen => dashes(cwd),
            CwdEncoding::Pi => pi(cwd),
            CwdEncoding::Grok => percent(cwd),
            CwdEncoding::Gemini => sha256_hex(cwd.as_bytes()),
        }
    }
}

fn dashes(cwd: &str) -> String {
    let dash = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    };
    cwd.encode_utf16().map(dash).collect()
}

fn claude(cwd: &str) -> String {
    let mut slug = dashes(cwd);
    if slug.len() > CLAUDE_WHOLE {
        slug.truncate(CLAUDE_WHOLE);
        let hash = cwd.encode_utf16().fold(0_i32, |hash, unit| {
            hash.wrapping_mul(31).wrapping_add(i32::from(unit))
        });
        slug.push('-');
        slug.push_str(&base36(hash.unsigned_abs()));
    }
    slug
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

fn pi(cwd: &str) -> String {
    let path = cwd.strip_prefix('/').unwrap_or(cwd);
    let path = path.replace(['/', '\\', ':'], "-");
    format!("--{path}--")
}

fn percent(cwd: &str) -> String {
    let mut encoded = String::with_capacity(cwd.len() * 2);
    for byte in cwd.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// The SHA-256 of `bytes`, in lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::CwdEncoding::{self, *};
    use super::*;

    #[test]
    fn names_as_the_agents_make_them() {
        let long = format!("/w/{}/sub.dir", "long".repeat(60));
        let long_slug = format!("{}-difq55", &dashes(&long)[..200]);
        let table: [(CwdEncoding, &str, &str); 12] = [
            (Claude, "/home/u/my_repo.v2", "-home-u-my-repo-v2"),
            (Claude, "/home/u/p_2.x y-é", "-home-u-p-2-x-y--"),
            (Claude, "/home/u/日本", "-home-u---"),
            (Claude, "/home/u/a😀b", "-home-u-a--b"),
            (Claude, "/home/u/A-b/c", "-home-u-A-b-c"),
            (Claude, "/home/u/A_b_c", "-home-u-A-b-c"),
            (Claude, &long, &long_slug),
            (Qwen, "/home/u/A_b.c", "-home-u-A-b-c"),
            (Pi, "/home/u/A_b.c x/日", "--home-u-A_b.c x-日--"),
            (Pi, "/a:b\\c", "--a-b-c--"),
            (
                Grok,
                "/home/u/A_b.c~d@e+f x/日",
                "%2Fhome%2Fu%2FA_b.c~d%40e%2Bf%20x%2F%E6%97%A5",
            ),
            // The digest's own test vector (FIPS 180-2, appendix B.1).
            (
                Gemini,
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
        ];
        for (encoding, cwd, want) in table {
            assert_eq!(encoding.encode(cwd), want, "{cwd}");
        }
    }
}
