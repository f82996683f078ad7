//! What a guard keeps to start its command again.

use std::os::fd::OwnedFd;

use records::Failure;

use crate::args::Args;

/// What a restart needs, of which the guard itself lets go.
pub struct Restarts {
    /// The command line: nothing is relative to a directory any more, and nobody waits for
    /// readiness.
    pub args: Args,
    /// The caller's standard streams, where they are the command's.
    pub streams: [Option<OwnedFd>; 3],
}

impl Restarts {
    /// From the caller's directory and streams, before anything is started. `None` where there
    /// will be no restarts.
    ///
    /// # Errors
    ///
    /// There is no working directory, or no descriptor left.
    pub fn prepare(args: &Args) -> Result<Option<Restarts>, Failure> {
        if !args.policy().restart {
            return Ok(None);
        }
        let mut again = args.clone();
        again.ready_socket.clear();
        again.ready_file.clear();
        again.ready_line.clear();
        if again.chdir.is_none() {
            let folder = std::env::current_dir();
            again.chdir = Some(folder.map_err(|error| {
                Failure::failed(format_args!("no working directory to restart in: {error}"))
            })?);
        }
        let own = [
            rustix::stdio::stdin(),
            rustix::stdio::stdout(),
            rustix::stdio::stderr(),
        ];
        let mut streams = [None, None, None];
        for ((number, own), stream) in (0..).zip(own).zip(&mut streams) {
            if args.wait || args.keep_fd.contains(&number) {
                *stream = Some(own.try_clone_to_owned()?);
            }
        }
        Ok(Some(Restarts {
            args: again,
            streams,
        }))
    }
}
