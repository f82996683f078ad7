//! What makes a holder the caller's own.

use process::{Comparison, Identity};

use crate::json;
use crate::path;
use crate::program::Program;
use crate::snapshot::Row;

/// The marks of the caller's own processes. Each one that is given has to be confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Criteria {
    /// The program or its script, whole or by its last part.
    pub args: Vec<Vec<u8>>,
    /// The executable.
    pub exes: Vec<Place>,
    /// The working directory.
    pub cwds: Vec<Place>,
    /// A directory that the working directory is, or is below.
    pub cwds_under: Vec<Place>,
    /// Variables, with their values.
    pub envs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The user.
    pub uid: Option<u32>,
    /// Recorded processes, of which one has to be in the tree.
    pub records: Option<Vec<Identity>>,
}

/// A path as it was given, and with its links resolved, where it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// As given, made absolute.
    pub given: Vec<u8>,
    /// Resolved.
    pub resolved: Option<Vec<u8>>,
}

impl Place {
    /// Both spellings, without a slash at the end.
    pub fn spellings(&self) -> impl Iterator<Item = &[u8]> {
        let both = [Some(self.given.as_slice()), self.resolved.as_deref()];
        both.into_iter().flatten().map(path::trimmed)
    }

    fn is(&self, path: &[u8]) -> bool {
        self.spellings().any(|spelling| spelling == path)
    }

    fn is_above(&self, path: &[u8]) -> bool {
        self.spellings()
            .any(|spelling| path::is_at_or_below(path, spelling))
    }
}

impl Criteria {
    /// Whether any was given: without one nothing is the caller's own.
    pub fn any(&self) -> bool {
        *self != Criteria::default()
    }

    /// Whether `row` meets every criterion that is about one process. `resolve` gives the path
    /// behind links, where it can.
    pub fn are_met_by(&self, row: &Row, resolve: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> bool {
        let argv = row.argv.as_deref().unwrap_or_default();
        let program = Program::of(argv, row.exe.as_deref());
        let exe = program.exe.unwrap_or_default();
        if program.only_names() && !self.args.is_empty() {
            return false;
        }
        let uid_fits = self.uid.is_none_or(|uid| row.uid == Some(uid));
        if !uid_fits
            || !self.args.iter().all(|text| program.is_called(text))
            || !self.exes.iter().all(|place| place.is(exe))
        {
            return false;
        }
        if self.cwds.is_empty() && self.cwds_under.is_empty() && self.envs.is_empty() {
            return true;
        }
        let config = Config::of(row);
        let cwds = config.cwds(row, resolve);
        self.cwds
            .iter()
            .all(|place| cwds.iter().any(|cwd| place.is(cwd)))
            && self
                .cwds_under
                .iter()
                .all(|place| cwds.iter().any(|cwd| place.is_above(cwd)))
            && self
                .envs
                .iter()
                .all(|(name, value)| config.has_variable(row, name, value))
    }

    /// Whether `row` is one of the recorded processes; true where no record was given.
    pub fn has_record_of(&self, row: &Row) -> bool {
        let Some(records) = &self.records else {
            return true;
        };
        row.ident.as_ref().is_some_and(|ident| {
            records
                .iter()
                .any(|record| record.compare(ident) == Comparison::Same)
        })
    }
}

/// What the JSON arguments of a process say at their top.
struct Config {
    arguments: Vec<json::Argument>,
}

impl Config {
    fn of(row: &Row) -> Config {
        let argv = row.argv.as_deref().unwrap_or_default().iter();
        Config {
            arguments: argv
                .skip(1)
                .filter_map(|argument| json::Argument::parse(argument))
                .collect(),
        }
    }

    /// The working directories that the process has or was told, without a slash at the end, as
    /// they are and with links resolved.
    fn cwds(&self, row: &Row, resolve: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> Vec<Vec<u8>> {
        let own = row.cwd.as_deref().map(path::trimmed);
        let mut cwds: Vec<Vec<u8>> = own.into_iter().map(<[u8]>::to_vec).collect();
        let told = self.arguments.iter().filter_map(|json| json.cwd.as_ref());
        for cwd in told.filter_map(|cwd| path::told(cwd, row.cwd.as_deref())) {
            cwds.extend(resolve(&cwd));
            if !path::goes_up(&cwd) {
                cwds.push(cwd);
            }
        }
        cwds
    }

    fn has_variable(&self, row: &Row, name: &[u8], value: &[u8]) -> bool {
        let own = row.env.as_deref().unwrap_or_default();
        let told = self.arguments.iter().flat_map(|json| &json.env);
        own.iter()
            .any(|(key, own)| key == name && own.as_deref() == Some(value))
            || told
                .into_iter()
                .any(|(key, told)| key == name && told == value)
    }
}
