//! macOS: `sysctl(3)`, kqueue, `proc_pidinfo`. (Being written.)
