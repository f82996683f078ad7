//! The word of an identity under many values and many mutations, from a generator that always
//! does the same.

#![allow(clippy::unwrap_used, missing_docs)]

use process::{Comparison, Identity, LinuxIdentity, LstartIdentity, MacosIdentity, Pid};
use uuid::Uuid;

/// SplitMix64, by Steele, Lea and Flood (2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A number of any magnitude, the smallest and largest among them.
    fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => u64::MAX,
            _ => self.next() >> self.below(64),
        }
    }

    fn pid(&mut self) -> Pid {
        let spread = i64::from(Pid::MAX - Pid::MIN + 1);
        let raw = match self.below(8) {
            0 => Pid::MIN.into(),
            1 => Pid::MAX.into(),
            _ => i64::from(Pid::MIN) + (self.next() % spread as u64) as i64,
        };
        Pid::new(raw).unwrap()
    }

    fn boot(&mut self) -> Uuid {
        Uuid::from_u64_pair(self.next(), self.next())
    }

    fn host(&mut self) -> String {
        const LETTERS: &[u8] = b"abcxyzABCXYZ0189.-_";
        let length = 1 + self.below(64);
        let letters = (0..length).map(|_| LETTERS[self.below(LETTERS.len())]);
        letters.map(char::from).collect()
    }

    fn identity(&mut self) -> Identity {
        match self.below(3) {
            0 => Identity::Linux(LinuxIdentity {
                boot: self.boot(),
                pidns: self.number().max(1),
                timens: Some(self.number()).filter(|&inode| inode % 3 == 1),
                pid: self.pid(),
                ticks: self.number(),
                inode: Some(self.number()).filter(|&inode| inode != 0),
            }),
            1 => Identity::Macos(MacosIdentity {
                boot: self.boot(),
                pid: self.pid(),
                seconds: self.number(),
                micros: self.below(1_000_000) as u32,
            }),
            _ => Identity::Lstart(LstartIdentity {
                host: self.host(),
                pid: self.pid(),
                seconds: self.number(),
            }),
        }
    }

    /// Bytes of `word` changed, removed, added, doubled or cut off.
    fn mutated(&mut self, word: &str) -> String {
        const ODD: &[&str] = &[
            ":",
            "+",
            "-",
            ".",
            "0",
            "9",
            " ",
            "\n",
            "\t",
            "\0",
            "'",
            "\"",
            "\u{663}",
            "\u{1F980}",
            "18446744073709551616",
            "linux:",
            "::",
            "00",
        ];
        let mut letters: Vec<char> = word.chars().collect();
        for _ in 0..=self.below(3) {
            let at = self.below(letters.len() + 1);
            match self.below(5) {
                0 => letters.truncate(at),
                1 if at < letters.len() => {
                    letters.remove(at);
                }
                2 if at < letters.len() => letters.insert(at, letters[at]),
                3 if at < letters.len() => {
                    letters[at] = char::from_u32(self.below(0x300) as u32).unwrap_or('?');
                }
                _ => {
                    let odd = ODD[self.below(ODD.len())].chars();
                    letters.splice(at..at, odd);
                }
            }
        }
        letters.into_iter().collect()
    }
}

#[test]
fn what_is_printed_is_read_as_the_same() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let identity = random.identity();
        let word = identity.to_string();
        assert_eq!(word.parse::<Identity>().as_ref(), Ok(&identity), "{word}");
        assert_eq!(identity.compare(&identity), Comparison::Same, "{word}");
        // One word, which fits where words are expected.
        let fits = |byte: u8| byte.is_ascii_graphic() && !b"'\"`\\$&|;<>(){}*?#!~=".contains(&byte);
        assert!(word.bytes().all(fits), "{word}");
        assert_eq!(word.matches(':').count(), 5);
    }
}

#[test]
fn what_is_read_is_printed_as_the_same() {
    let mut random = Random(2);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..100_000 {
        let identity = random.identity();
        let word = random.mutated(&identity.to_string());
        match word.parse::<Identity>() {
            Ok(read) => {
                taken += 1;
                // Upper case hexadecimal is the one liberty.
                assert_eq!(read.to_string(), canonical(&word), "{word:?}");
            }
            Err(why) => {
                refused += 1;
                assert!(why.to_string().len() < 2000);
            }
        }
    }
    assert!(taken > 1000 && refused > 10_000, "{taken} {refused}");
}

/// The word with its boot id in lower case, as boot ids are printed.
fn canonical(word: &str) -> String {
    let mut fields: Vec<String> = word.split(':').map(str::to_owned).collect();
    if fields[0] != "lstart" {
        fields[1] = fields[1].to_lowercase();
    }
    fields.join(":")
}

#[test]
fn comparing_has_no_order() {
    let mut random = Random(3);
    for _ in 0..20_000 {
        let (a, mut b) = (random.identity(), random.identity());
        // Two that differ in little.
        if let (Identity::Linux(a), Identity::Linux(b)) = (&a, &mut b) {
            b.boot = a.boot;
            if random.below(2) == 0 {
                (b.ticks, b.pid) = (a.ticks, a.pid);
            }
            if random.below(2) == 0 {
                (b.pidns, b.timens) = (a.pidns, a.timens);
            }
        }
        assert_eq!(a.compare(&b), b.compare(&a), "{a} and {b}");
    }
}
