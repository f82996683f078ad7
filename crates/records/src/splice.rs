//! Setting one key of a JSON object in its text, every other byte as it was.

use std::ops::Range;

use crate::record::{Member, elements, index, members};

/// `text`, an object with these members, with `key` set to the JSON `value`.
pub(crate) fn set(text: &str, members: &[Member<'_>], key: &str, value: &str) -> String {
    let mut out = String::with_capacity(text.len() + key.len() + value.len() + 8);
    let mut done = 0;
    for member in members.iter().filter(|member| member.key == key) {
        let old = span(text, member.value.get());
        out.push_str(&text[done..old.start]);
        out.push_str(value);
        done = old.end;
    }
    if done == 0 {
        let (at, comma) = match members.last() {
            Some(last) => (span(text, last.value.get()).end, ","),
            None => (text.rfind('}').unwrap_or(text.len()), ""),
        };
        out.push_str(&text[..at]);
        out.push_str(comma);
        out.push_str(&quoted(key));
        out.push(':');
        out.push_str(value);
        done = at;
    }
    out.push_str(&text[done..]);
    out
}

/// As [`set`], for the key at the end of `path`, inside of the object `text`.
pub(crate) fn set_at(text: &str, path: &[&str], value: &str) -> Result<String, String> {
    let no_object = || format!("no object to set {} in", path.join("."));
    let [way @ .., key] = path else {
        return Err("an empty path".to_owned());
    };
    let mut object = text;
    for step in way {
        object = child(object, step).ok_or_else(no_object)?;
    }
    let inner = members(object).map_err(|_| no_object())?;
    let hole = span(text, object);
    let new = set(object, &inner, key, value);
    Ok([&text[..hole.start], &new, &text[hole.end..]].concat())
}

fn child<'a>(text: &'a str, step: &str) -> Option<&'a str> {
    let value = if text.trim_start().starts_with('[') {
        elements(text)?.get(index(step)?).copied()?
    } else {
        crate::record::find(&members(text).ok()?, step)?
    };
    Some(value.get())
}

/// Where `part`, a slice of `whole`, lies in it.
fn span(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    // Text is always written.
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::record::Record;

    fn with(line: &str, key: &str, value: &str) -> String {
        let value: &serde_json::value::RawValue = serde_json::from_str(value).unwrap();
        let record = Record::parse(line.as_bytes()).unwrap();
        String::from_utf8(record.with(key, value).unwrap()).unwrap()
    }

    #[test]
    fn one_key_is_set_and_every_other_byte_stays() {
        let table = [
            ("{}", r#"{"k":[1]}"#),
            (" { } ", r#" { "k":[1]} "#),
            (r#"{"a":1}"#, r#"{"a":1,"k":[1]}"#),
            ("{\"a\": 1 }\r", "{\"a\": 1,\"k\":[1] }\r"),
            (r#"{"k":null}"#, r#"{"k":[1]}"#),
            (r#"{ "k" : {"k":2} , "b":"}"}"#, r#"{ "k" : [1] , "b":"}"}"#),
            (r#"{"k":1,"a":2,"k":3}"#, r#"{"k":[1],"a":2,"k":[1]}"#),
            (r#"{"\u006b":1}"#, r#"{"\u006b":[1]}"#),
            (r#"{"K":1}"#, r#"{"K":1,"k":[1]}"#),
            (
                r#"{"n":1e400,"m":18446744073709551616,"f":1.0,"s":"\/\u00e4\ud800"}"#,
                r#"{"n":1e400,"m":18446744073709551616,"f":1.0,"s":"\/\u00e4\ud800","k":[1]}"#,
            ),
        ];
        for (line, want) in table {
            assert_eq!(with(line, "k", "[1]"), want);
        }
        assert_eq!(with("{}", "a\"b\n", "0"), "{\"a\\\"b\\n\":0}");
    }

    #[test]
    fn a_key_inside_can_be_set() {
        let line = r#"{"stale":[{"pid":1},{"pid":2.0}], "o":{"p":{"q":1}},"o":{ }}"#;
        let record = Record::parse(line.as_bytes()).unwrap();
        let set = |path: &[&str]| {
            let line = record.with_at(path, &7)?;
            Ok::<_, String>(String::from_utf8(line).unwrap())
        };
        assert_eq!(
            set(&["stale", "1", "reap"]).unwrap(),
            r#"{"stale":[{"pid":1},{"pid":2.0,"reap":7}], "o":{"p":{"q":1}},"o":{ }}"#
        );
        assert_eq!(
            set(&["stale", "0", "pid"]).unwrap(),
            r#"{"stale":[{"pid":7},{"pid":2.0}], "o":{"p":{"q":1}},"o":{ }}"#
        );
        assert_eq!(
            set(&["o", "n"]).unwrap(),
            r#"{"stale":[{"pid":1},{"pid":2.0}], "o":{"p":{"q":1}},"o":{ "n":7}}"#
        );
        assert_eq!(
            set(&["x"]),
            Ok(String::from_utf8(record.with("x", &7).unwrap()).unwrap())
        );
        for path in [
            &["stale", "2", "reap"][..],
            &["stale", "reap"],
            &["stale", "0", "pid", "x"],
            &["none", "x"],
            &[],
        ] {
            assert!(set(path).is_err(), "{path:?}");
        }
    }

    /// Random JSON with random spacing: what is between the bytes of a line and
    /// the same line again must be the spliced key alone.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            // xorshift64: repeatable, and good enough to mix shapes.
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % n
        }

        fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
            of[usize::try_from(self.below(of.len() as u64)).unwrap()]
        }

        fn blank(&mut self) -> &'static str {
            self.pick(&["", "", "", " ", "\t", "  ", "\r"])
        }

        fn key(&mut self) -> &'static str {
            self.pick(&[
                "\"a\"",
                "\"b.c\"",
                "\"\"",
                "\"\\\"\"",
                "\"ü\"",
                "\"\\ud800\"",
                "\"{\"",
            ])
        }

        fn value(&mut self, depth: u32) -> String {
            let kinds = if depth == 0 { 1 } else { 3 };
            match self.below(kinds) {
                1 => self.sequence('[', ']', depth, false),
                2 => self.sequence('{', '}', depth, true),
                _ => self
                    .pick(&[
                        "null",
                        "true",
                        "0",
                        "-0",
                        "1.0",
                        "1e400",
                        "-1E-7",
                        "9007199254740993",
                        "18446744073709551616",
                        "\"\"",
                        "\"}\"",
                        "\"\\\\\"",
                        "\"\\u001b\\/\"",
                        "\"\u{2028}😀\"",
                        "\"\\udfff\"",
                        "\"a,b:c\"",
                        "[]",
                        "{}",
                    ])
                    .to_owned(),
            }
        }

        fn sequence(&mut self, open: char, close: char, depth: u32, keys: bool) -> String {
            let mut text = String::from(open);
            for i in 0..self.below(5) {
                if i > 0 {
                    text.push(',');
                }
                text.push_str(self.blank());
                if keys {
                    text.push_str(self.key());
                    text.push_str(self.blank());
                    text.push(':');
                    text.push_str(self.blank());
                }
                text.push_str(&self.value(depth - 1));
                text.push_str(self.blank());
            }
            text.push(close);
            text
        }
    }

    #[test]
    fn what_is_spliced_in_can_be_cut_out_again() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for _ in 0..3000 {
            let line = [
                random.blank(),
                &random.sequence('{', '}', 4, true),
                random.blank(),
            ]
            .concat();
            assert_eq!(Record::parse(line.as_bytes()).unwrap().text(), line);

            let once = with(&line, "new", "{\"x\":1}");
            let added = ["\"new\":{\"x\":1}", ",\"new\":{\"x\":1}"];
            let comma = usize::from(once.len() - line.len() == added[1].len());
            assert_eq!(once.replacen(added[comma], "", 1), line);

            // Setting it again replaces it, and setting what is there changes nothing.
            let twice = with(&once, "new", "null");
            assert_eq!(with(&twice, "new", "{\"x\":1}"), once);
            let record = Record::parse(once.as_bytes()).unwrap();
            for member in record.members() {
                let value = record.get(&member.key).unwrap();
                let last = with(&once, &member.key, value.get());
                let again = Record::parse(last.as_bytes()).unwrap();
                assert_eq!(again.members().len(), record.members().len());
                assert_eq!(again.get(&member.key).unwrap().get(), value.get());
            }
        }
    }
}
