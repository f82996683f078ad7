//! resume-id: the decision how a coding agent's session is to be launched.

#![forbid(unsafe_code)]
