//! The schema: where a table's rows are, and in which order its columns.

use super::pager::Pager;
use super::value::{Value, columns};
use super::{Result, Trouble, btree};

/// A table.
pub(super) struct Found {
    /// The page that its tree begins with.
    pub(super) root: u32,
    columns: Vec<String>,
}

impl Found {
    /// The place of a column in a row.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|column| column.eq_ignore_ascii_case(name))
    }
}

/// The table `name`; `None` if there is none.
pub(super) fn find(pager: &Pager, name: &str) -> Result<Option<Found>> {
    let mut found = None;
    // sqlite_schema(type, name, tbl_name, rootpage, sql), whose tree begins on page 1.
    btree::scan(pager, 1, &mut |payload| {
        let row = columns(payload, &[Some(0), Some(1), Some(3), Some(4)])?;
        if let [
            Value::Text(kind),
            Value::Text(table),
            Value::Integer(root),
            Value::Text(sql),
        ] = &row[..]
            && kind == "table"
            && table.eq_ignore_ascii_case(name)
        {
            found = Some((*root, sql.clone()));
        }
        Ok(())
    })?;
    let Some((root, sql)) = found else {
        return Ok(None);
    };
    let wrong = || Trouble::Unreadable(format!("the definition of table {name} is not understood"));
    Ok(Some(Found {
        root: u32::try_from(root).map_err(|_| wrong())?,
        columns: column_names(&sql).ok_or_else(wrong)?,
    }))
}

/// The names of the columns that a CREATE TABLE statement defines.
fn column_names(sql: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut expected = false;
    for token in Tokens(sql) {
        match token {
            Token::Other('(') => {
                depth += 1;
                expected = depth == 1;
            }
            Token::Other(')') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return (!names.is_empty()).then_some(names);
                }
            }
            Token::Other(',') if depth == 1 => expected = true,
            Token::Word(word) if expected && depth == 1 => {
                if is_constraint(word) {
                    // Constraints of the table stand behind all columns.
                    return Some(names);
                }
                names.push(word.to_owned());
                expected = false;
            }
            Token::Quoted(name) if expected && depth == 1 => {
                names.push(name);
                expected = false;
            }
            _ => {}
        }
    }
    None
}

fn is_constraint(word: &str) -> bool {
    let words = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"];
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

enum Token<'a> {
    Word(&'a str),
    Quoted(String),
    Other(char),
}

struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            self.0 = self.0.trim_start();
            if let Some(comment) = self.0.strip_prefix("--") {
                self.0 = comment.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(comment) = self.0.strip_prefix("/*") {
                self.0 = comment.split_once("*/").map_or("", |(_, rest)| rest);
            } else {
                break;
            }
        }
        let first = self.0.chars().next()?;
        let close = match first {
            '"' | '`' | '\'' => Some(first),
            '[' => Some(']'),
            _ => None,
        };
        if let Some(close) = close {
            let (name, rest) = quoted(&self.0[first.len_utf8()..], close);
            self.0 = rest;
            return Some(Token::Quoted(name));
        }
        let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
        if in_word(first) {
            let end = self.0.find(|c| !in_word(c)).unwrap_or(self.0.len());
            let (word, rest) = self.0.split_at(end);
            self.0 = rest;
            return Some(Token::Word(word));
        }
        self.0 = &self.0[first.len_utf8()..];
        Some(Token::Other(first))
    }
}

/// What stands before the closing quote, which is doubled where it is meant; and what follows.
fn quoted(text: &str, close: char) -> (String, &str) {
    let mut name = String::new();
    let mut rest = text;
    while let Some((part, after)) = rest.split_once(close) {
        name.push_str(part);
        match after.strip_prefix(close) {
            Some(more) if close != ']' => {
                name.push(close);
                rest = more;
            }
            _ => return (name, after),
        }
    }
    name.push_str(rest);
    (name, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_in_their_order() {
        let table = [
            ("CREATE TABLE t(id text PRIMARY KEY, b, c)", "id b c"),
            (
                "CREATE TABLE `session` (\n\t`id` text PRIMARY KEY,\n\t`project_id` text NOT NULL,\n\t`parent_id` text,\n\tCONSTRAINT `fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`)\n)",
                "id project_id parent_id",
            ),
            (
                "create table \"t\"\"x\" ([a b] numeric(10, 2) default (1, 2), -- c, d\n 'e' text check (e in ('x,y)', 'z')), /* f, */ unique_g int, primary key (e))",
                "[a b] e unique_g",
            ),
            ("CREATE TABLE t(a, b DEFAULT ')', c)", "a b c"),
        ];
        for (sql, want) in table {
            let want: Vec<String> = match want {
                "[a b] e unique_g" => vec!["a b".into(), "e".into(), "unique_g".into()],
                plain => plain.split(' ').map(str::to_owned).collect(),
            };
            assert_eq!(column_names(sql), Some(want), "{sql}");
        }
        for sql in [
            "",
            "CREATE TABLE t AS SELECT 1",
            "CREATE TABLE t(",
            "CREATE TABLE t()",
        ] {
            assert_eq!(column_names(sql), None, "{sql}");
        }
    }
}
