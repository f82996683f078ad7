complete -c reap -l pidfile -d 'End the process that this file names by its pid or its record (repeatable)' -r -F
complete -c reap -l scope -d 'How far to reach from a target' -r -f -a "process\t'The target alone'
group\t'The process group that the target leads'
tree\t'The target and all its descendants'
auto\t'The tree, and the group too if the target leads it'"
complete -c reap -s s -l signal -d 'The first signal: TERM, SIGTERM or 15' -r
complete -c reap -l grace -d 'How long to wait before KILL' -r
complete -c reap -l kill-grace -d 'How long to wait after KILL' -r
complete -c reap -l until -d 'Be done when all are dead, or when no entry of them is left in the process table either' -r -f -a "dead\t'When it is dead; a zombie is'
vanished\t'When its entries have left the process table as well'"
complete -c reap -s o -l output -d 'Print only these values (dotted: verdict.state), separated by tabs' -r
complete -c reap -l allow-bare-pid -d 'Take records without an identity by their pid alone'
complete -c reap -l active -d 'End holders of our own in which an agent is active, too'
complete -c reap -l leaderless -d 'Of a group whose leader is gone, take members too that are not proved to be of it'
complete -c reap -l no-kill -d 'Stop before KILL'
complete -c reap -s n -l dry-run -d 'Say what would be signalled, and signal nothing'
complete -c reap -l full-argv -d 'Show arguments whole, with the values below "env" in JSON arguments'
complete -c reap -l sh -d 'With -o: print the values as words for the shell\'s eval'
complete -c reap -s H -l human -d 'Print an aligned line a record, for eyes'
complete -c reap -s q -l quiet -d 'Print nothing on stdout; the exit status is the answer'
complete -c reap -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reap -s V -l version -d 'Print version'
