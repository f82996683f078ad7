complete -c detach -l chdir -d 'Start it in this directory' -r -F
complete -c detach -l log -d 'Append its standard output and error to this file' -r -F
complete -c detach -l keep-fd -d 'Leave this descriptor open in it (repeatable)' -r
complete -c detach -l pid-env -d 'Set this variable to its own pid (repeatable)' -r
complete -c detach -l record -d 'Write its record to this file too, whole, before returning' -r -F
complete -c detach -l ready-socket -d 'It is ready when this Unix socket accepts a connection (repeatable)' -r
complete -c detach -l ready-file -d 'It is ready when this file is made or changed after the start (repeatable)' -r -F
complete -c detach -l ready-line -d 'It is ready when this text appears in the log after the start (repeatable)' -r
complete -c detach -l ready-timeout -d 'How long it may take to be ready' -r
complete -c detach -l lock -d 'Start it only if the process whose record is in this file is gone' -r -F
complete -c detach -l timeout -d 'End it, and all that it has started, after this time (exit status 124)' -r
complete -c detach -l grace -d 'How long it may take to end at the timeout before it is killed' -r
complete -c detach -l announce -d 'Append a line to this file when it ends' -r -F
complete -c detach -l marker -d 'This file stands for it while it runs, and until its death is announced' -r -F
complete -c detach -l tag -d 'Copy this text into its marker and announcements' -r
complete -c detach -l sweep -d 'Announce the deaths in this folder whose guards have died too; no command is started' -r -F
complete -c detach -l restart -d 'Start it again when it has ended unnaturally' -r -f -a "on-failure\t'When it has ended by a signal, with a code other than 0, or too soon'"
complete -c detach -l max-restarts -d 'Give up after this many restarts in a row that were not healthy' -r
complete -c detach -l healthy -d 'A run that lasts this long is healthy' -r
complete -c detach -l min-uptime -d 'Exit status 0 sooner than this is no natural end' -r
complete -c detach -s o -l output -d 'Print only these values (dotted: verdict.state), separated by tabs' -r
complete -c detach -l full-argv -d 'Show arguments whole, with the values below "env" in JSON arguments'
complete -c detach -l fail-if-running -d 'Exit with 1, not 0, if it is already running'
complete -c detach -l wait -d 'Stay until it ends, pass signals on to it, and exit with its status'
complete -c detach -l guard -d 'Have a process of its own wait for it, and announce its death'
complete -c detach -l sh -d 'With -o: print the values as words for the shell\'s eval'
complete -c detach -s H -l human -d 'Print an aligned line a record, for eyes'
complete -c detach -s q -l quiet -d 'Print nothing on stdout; the exit status is the answer'
complete -c detach -s h -l help -d 'Print help (see more with \'--help\')'
complete -c detach -s V -l version -d 'Print version'
