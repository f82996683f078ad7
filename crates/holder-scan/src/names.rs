//! Programs that are known by name, for what they do with the things that their arguments name.
//!
//! Each list is one text with blanks between its words: a slice of words would cost two and a half
//! times as much of the binary, for the pointers and what the loader needs to move them.

/// Programs that name things and hold none of them: editors, pagers, searchers, listers.
pub const READERS: &str = "\
    ack ag awk bat batcat cat code cp diff du echo egrep emacs emacsclient fd fdfind fgrep \
    file find fuser fzf gawk gdb git grep head helix hx inotifywait jq kak kate kill killall \
    less ls lsof ltrace mawk micro more most nano nvim pgrep pkill printf ps rg rsync rview \
    scp sed sort stat strace subl tac tail tar tee touch vi view vim vim.basic vim.tiny \
    watch wc xdg-open zgrep";

/// Programs that carry others to a terminal or a machine: multiplexers, terminals, ssh and
/// container clients. What they were asked to run is in their arguments and runs elsewhere, and
/// what runs below them is no part of them. `SCREEN` is what the server of screen calls itself.
pub const CARRIERS: &str = "\
    SCREEN abduco alacritty autossh byobu docker docker-compose dtach dvtm et foot ghostty \
    gnome-terminal gnome-terminal-server herdr incus kitten kitty konsole kubectl lxc \
    lxc-attach machinectl mosh mosh-client mosh-server nerdctl podman screen shpool ssh sshd \
    sshd-auth sshd-session sshpass tmate tmux wezterm wezterm-gui wezterm-mux-server xterm \
    zellij";

/// This suite.
pub const OWN_TOOLS: &str = "detach eventwait holder-scan pane-ident reap resume-id";

/// Those of this suite whose names are nothing else, so that they are known behind any program.
pub const UNMISTAKABLE: &str = "eventwait holder-scan pane-ident resume-id";

/// Programs and shell words that stand before a command and start it.
pub const LAUNCHERS: &str = "\
    ! builtin chrt command do doas elif else env exec flock if ionice nice nohup nsenter \
    setpriv setsid stdbuf sudo systemd-run taskset then time timeout unbuffer unshare until \
    while xargs";

/// Shells.
pub const SHELLS: &str = "ash bash dash fish ksh ksh93 mksh sh yash zsh";

/// Programs other than shells that hand one argument to a shell after `-c`.
pub const SHELL_STARTERS: &str = "runuser script su";

/// Interpreters that are no shells, without a version at the end.
pub const INTERPRETERS: &str = "\
    bun deno expect java lua luajit node nodejs perl php pypy python ruby ts-node tsx";

/// Options of interpreters that are no shells which take the next argument with them.
pub const WITH_VALUE: &str = "\
    --conditions --cwd --experimental-loader --import --loader --require -C -W -X -r";

/// Options of such interpreters that are followed by the program's text.
pub const WITH_TEXT: &str = "--eval --print -c -e -p -pe";
