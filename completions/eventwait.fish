complete -c eventwait -l socket -d 'Each line that a Unix stream socket sends' -r -F
complete -c eventwait -l herdr -d 'What happens to herdr\'s panes: status, exit, close' -r
complete -c eventwait -l follow -d 'Each line appended to a file, which may appear later, be rotated or truncated' -r -F
complete -c eventwait -l exit -d 'A process has ended (repeatable: any of them)' -r
complete -c eventwait -l path -d 'A path exists, or with --gone does not (repeatable: any of them)' -r -F
complete -c eventwait -l connect -d 'A Unix socket accepts a connection' -r -F
complete -c eventwait -l cmd -d 'A command (up to \';\') exits 0' -r
complete -c eventwait -l send -d 'With --socket: send this line first (repeatable)' -r
complete -c eventwait -l ack -d 'With --socket: nothing counts before a line that matches this, KEY=VALUE and so on' -r
complete -c eventwait -l herdr-socket -d 'With --herdr: herdr\'s socket [default: HERDR_SOCKET_PATH, else the session\'s]' -r -F
complete -c eventwait -l on -d 'With --herdr: which kinds of events [default: status,exit,close]' -r -f -a "status\t'Its agent has another status'
exit\t'Its process has ended'
close\t'It was closed'"
complete -c eventwait -l pane -d 'With --tmux: only what happens to this pane, %N (repeatable)' -r
complete -c eventwait -l tmux-socket -d 'With --tmux: the server\'s name (as -L) or socket (as -S, with a slash)' -r
complete -c eventwait -l tmux-bin -d 'With --tmux: the program [default: tmux on PATH]' -r
complete -c eventwait -l from -d 'With --follow: where to begin in a file that is there: start, end, or a byte [default: end]' -r
complete -c eventwait -l every -d 'With --cmd: the pause between two runs [default: 250ms]' -r
complete -c eventwait -l pid -d 'End when this process ends before a match' -r
complete -c eventwait -l match -d 'Only JSON of which this holds: KEY=VALUE, KEY!=VALUE, KEY~REGEX, KEY dotted (repeatable)' -r
complete -c eventwait -l line -d 'Only lines in which this is found (repeatable)' -r
complete -c eventwait -l count -d 'End after this many matches' -r
complete -c eventwait -s t -l timeout -d 'How long to wait; 0 looks once' -r
complete -c eventwait -l max-line -d 'Skip lines that are longer than this, in bytes (K, M, G)' -r
complete -c eventwait -l beat -d 'Touch this file while the wait is turning' -r -F
complete -c eventwait -l beat-every -d 'How often to touch it' -r
complete -c eventwait -l ack-line -d 'Print this line once the source is armed' -r
complete -c eventwait -l summary -d 'Say at the end how it went, on stderr or in a file' -r -F
complete -c eventwait -l exit-code -d 'Give an end another exit status, such as deadline=0 (repeatable)' -r
complete -c eventwait -s o -l output -d 'Print only these values (dotted: verdict.state), separated by tabs' -r
complete -c eventwait -l tmux -d 'What tmux notifies a control client of, and the death of panes'
complete -c eventwait -l stdin -d 'Each line of standard input'
complete -c eventwait -l no-initial -d 'With --herdr: leave out the state at the start'
complete -c eventwait -l gone -d 'With --path: until it does not exist'
complete -c eventwait -l full-argv -d 'With --cmd: show its arguments whole, with the values below "env" in JSON arguments'
complete -c eventwait -l all -d 'Print all matches until the deadline or the end'
complete -c eventwait -l sh -d 'With -o: print the values as words for the shell\'s eval'
complete -c eventwait -s H -l human -d 'Print an aligned line a record, for eyes'
complete -c eventwait -s q -l quiet -d 'Print nothing on stdout; the exit status is the answer'
complete -c eventwait -s h -l help -d 'Print help (see more with \'--help\')'
complete -c eventwait -s V -l version -d 'Print version'
