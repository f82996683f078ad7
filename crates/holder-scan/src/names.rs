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

/// Of interpreters that are no shells: their names, the options that take the next argument with
/// them, and those that are followed by the program's text, each by its own manual. An option that
/// is not here stands alone; where that is wrong, its value is taken for the script, and nothing is
/// the caller's own by that.
pub const OPTIONS: &[(&str, &str, &str)] = &[
    (
        "node nodejs ts-node tsx",
        "--conditions --cwd --diagnostic-dir --disable-warning --dns-result-order --env-file \
         --env-file-if-exists --experimental-loader --icu-data-dir --import --input-type \
         --inspect-port --loader --max-http-header-size --openssl-config --project \
         --redirect-warnings --report-dir --report-directory --report-filename --require --title \
         --trace-event-categories --tsconfig --unhandled-rejections --watch-path -C -P -r",
        "--eval --print -e -p -pe",
    ),
    ("python pypy", "--check-hash-based-pycs -W -X", "-c"),
    ("ruby", "--encoding -C -E -I -X -r", "-e"),
    ("perl", "-I", "-E -e"),
    (
        "java",
        "--add-exports --add-modules --add-opens --add-reads --class-path \
         --enable-native-access --module-path --source -classpath -cp -p",
        "",
    ),
    (
        "deno",
        "--cert --config --ext --import-map --location --log-level --preload --seed -L -c",
        "",
    ),
    (
        "bun",
        "--conditions --cwd --define --env-file --import --loader --port --preload --require \
         --tsconfig-override -d -l -r",
        "--eval --print -e -p",
    ),
    ("php", "-c -d -z", "-B -E -R -r"),
    ("lua luajit", "-l", "-e"),
    ("expect", "", "-c"),
];
