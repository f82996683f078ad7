//! The four tools in a pipe.
