complete -c holder-scan -l session-id -d 'The session of a coding agent' -r
complete -c holder-scan -l file -d 'A file that is open, mapped, executed, or a working or root directory' -r -F
complete -c holder-scan -l socket -d 'A Unix socket: bound or listening there, or connected to it' -r -F
complete -c holder-scan -l env -d 'A variable of the environment, with its value' -r
complete -c holder-scan -l arg -d 'A whole argument, or the last part of one that is a path' -r
complete -c holder-scan -l cwd -d 'The working directory' -r -F
complete -c holder-scan -l cwd-under -d 'A directory that the working directory is, or is below' -r -F
complete -c holder-scan -l port -d 'A TCP port that is listened on' -r
complete -c holder-scan -l tty -d 'The controlling terminal' -r -F
complete -c holder-scan -l uid -d 'Only processes of this user' -r
complete -c holder-scan -l own-arg -d 'The program, or the script it runs: whole, or the last part of its path' -r
complete -c holder-scan -l own-exe -d 'The executable' -r -F
complete -c holder-scan -l own-cwd -d 'The working directory, or the one in its JSON argument' -r -F
complete -c holder-scan -l own-cwd-under -d 'A directory that the working directory is, or is below' -r -F
complete -c holder-scan -l own-env -d 'A variable of the environment, or of the one in its JSON argument, with its value' -r
complete -c holder-scan -l own-uid -d 'The user' -r
complete -c holder-scan -l own-record -d 'A file with the record of a process of the tree' -r -F
complete -c holder-scan -l registry -d 'Join these rows (session_id, ident or pid) with the live processes' -r -F
complete -c holder-scan -l from -d 'Judge this table, as --dump has written it, instead of the live one' -r -F
complete -c holder-scan -l timeout -d 'End the scan after this long, incomplete (0: one look, without a limit)' -r
complete -c holder-scan -s o -l output -d 'Print only these values (dotted: verdict.state), separated by tabs' -r
complete -c holder-scan -l all-users -d 'What cannot be read of other users\' processes makes the scan incomplete, too'
complete -c holder-scan -l dump -d 'Write the whole process table'
complete -c holder-scan -l mentions -d 'Show those as well that only name the session, and the children of agents\' tools'
complete -c holder-scan -l include-self -d 'Show the caller, its ancestors and its pipeline as well'
complete -c holder-scan -s e -l exit-status -d 'Exit 0 if somebody holds it, 1 if nobody does, 3 if that could not be found out'
complete -c holder-scan -l full-argv -d 'Show arguments whole: not cut, and with the values of environment variables in JSON'
complete -c holder-scan -l sh -d 'With -o: print the values as words for the shell\'s eval'
complete -c holder-scan -s H -l human -d 'Print an aligned line a record, for eyes'
complete -c holder-scan -s q -l quiet -d 'Print nothing on stdout; the exit status is the answer'
complete -c holder-scan -s h -l help -d 'Print help (see more with \'--help\')'
complete -c holder-scan -s V -l version -d 'Print version'
