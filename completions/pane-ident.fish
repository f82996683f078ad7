# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_pane_ident_global_optspecs
    string join \n h/help V/version
end

function __fish_pane_ident_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_pane_ident_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_pane_ident_using_subcommand
    set -l cmd (__fish_pane_ident_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c pane-ident -n "__fish_pane_ident_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pane-ident -n "__fish_pane_ident_needs_command" -s V -l version -d 'Print version'
complete -c pane-ident -n "__fish_pane_ident_needs_command" -f -a "capture" -d 'Print a record that binds a pane to its process'
complete -c pane-ident -n "__fish_pane_ident_needs_command" -f -a "verify" -d 'Tell of records, or of identities, whether they still hold'
complete -c pane-ident -n "__fish_pane_ident_needs_command" -f -a "exec" -d 'Run a command only while a record holds'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l pid -d 'Bind a process alone' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l tmux -d 'A tmux pane: %N, @N or SESSION:WINDOW[.PANE]; a window is its active pane' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l herdr -d 'A herdr pane' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l kitty -d 'A kitty window' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l merge -d 'Put the binding\'s keys into the record in FILE (-: standard input), which keeps its type' -r -F
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l timeout -d 'How long all of it may take' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l tmux-socket -d 'The tmux server, as its options -L and -S take it' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l herdr-socket -d 'The herdr server; else HERDR_SOCKET_PATH, else the session\'s' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l kitty-socket -d 'The kitty; else KITTY_LISTEN_ON' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l tmux-bin -d 'The tmux to run, instead of the one on PATH' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l kitten-bin -d 'The kitten to run, instead of the one on PATH' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -s o -l output -d 'Print only these values (dotted: verdict.state), separated by tabs' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l self -d 'The pane that this runs in, by its environment, checked'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l full-argv -d 'Show arguments whole, with the values below "env" in JSON arguments'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -l sh -d 'With -o: print the values as words for the shell\'s eval'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -s H -l human -d 'Print an aligned line a record, for eyes'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -s q -l quiet -d 'Print nothing on stdout; the exit status is the answer'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand capture" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l only -d 'Pass on only the records of these states' -r -f -a "unknown\t'It cannot be told: neither act nor start another one'
unbound\t'The record has no identity'
foreign\t'The address is somebody else\'s'
self\t'The pane is the caller\'s own'
match\t'The pane\'s process is the bound one'
moved\t'The bound process lives, in another pane'
orphaned\t'The bound process lives, without a pane'
gone\t'Neither the pane nor the process is there any more'"
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l pane -d 'Judge only the records that name this pane; drop the others' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l legacy -d 'Compare a record without identity by these of its keys (cwd, label)' -r -f -a "cwd\t'The working directory'
label\t'What people call the pane'"
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l tmux -d 'IDENT must be the process of this tmux pane' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l herdr -d 'IDENT must be the process of this herdr pane' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l kitty -d 'IDENT must be the process of this kitty window' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l settle -d 'Believe \'gone\' only if it still is after this time' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l timeout -d 'How long all records together may take' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l tmux-socket -d 'The tmux server, as its options -L and -S take it' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l herdr-socket -d 'The herdr server; else HERDR_SOCKET_PATH, else the session\'s' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l kitty-socket -d 'The kitty; else KITTY_LISTEN_ON' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l tmux-bin -d 'The tmux to run, instead of the one on PATH' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l kitten-bin -d 'The kitten to run, instead of the one on PATH' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -s o -l output -d 'Print only these values (dotted: verdict.state), separated by tabs' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l same-argv -d 'The process must still run the same program with the same arguments'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l ancestor -d 'IDENT must be an ancestor of the caller'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -l sh -d 'With -o: print the values as words for the shell\'s eval'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -s H -l human -d 'Print an aligned line a record, for eyes'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -s q -l quiet -d 'Print nothing on stdout; the exit status is the answer'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand exec" -l binding -d 'The file that holds the binding\'s record' -r -F
complete -c pane-ident -n "__fish_pane_ident_using_subcommand exec" -l timeout -d 'End the command after this time: by TERM, and a second later by KILL' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand exec" -l summary -d 'Write a record of what was done to this file' -r -F
complete -c pane-ident -n "__fish_pane_ident_using_subcommand exec" -l tmux-socket -d 'The tmux server, as its options -L and -S take it' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand exec" -l herdr-socket -d 'The herdr server; else HERDR_SOCKET_PATH, else the session\'s' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand exec" -l kitty-socket -d 'The kitty; else KITTY_LISTEN_ON' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand exec" -l tmux-bin -d 'The tmux to run, instead of the one on PATH' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand exec" -l kitten-bin -d 'The kitten to run, instead of the one on PATH' -r
complete -c pane-ident -n "__fish_pane_ident_using_subcommand exec" -l same-argv -d 'The process must still run the same program with the same arguments'
complete -c pane-ident -n "__fish_pane_ident_using_subcommand exec" -s h -l help -d 'Print help (see more with \'--help\')'
