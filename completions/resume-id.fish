complete -c resume-id -l agent -d 'The agent: claude, codex, opencode, gemini, qwen, pi, grok, hermes, copilot, agy, cursor-agent, or one of your own' -r
complete -c resume-id -l cwd -d 'The directory that the agent is to be launched in' -r
complete -c resume-id -l session-id -d 'The session\'s id; an empty one means that there is none' -r
complete -c resume-id -l row -d 'Your own record of the session, or an earlier decision' -r -F
complete -c resume-id -l holders -d 'What holder-scan said about this id' -r -F
complete -c resume-id -l max-age -d 'How old a scan or a decision may be' -r
complete -c resume-id -l history -d 'Exit records, one a line: detach\'s announcements, or your own' -r -F
complete -c resume-id -l max-failures -d 'So many deaths in a row, each before --min-uptime, and the session is begun anew, once' -r
complete -c resume-id -l min-uptime -d 'An agent that has lived this long is no crash loop' -r
complete -c resume-id -l on-missing -d 'What to do where the conversation is lost' -r -f -a "mint\t'Begin a new one'
stop\t'Launch nothing'"
complete -c resume-id -l claim -d 'Claim the session, so that of two calls at the same moment one launches; claims are in DIR' -r -F
complete -c resume-id -l claimant -d 'For whom: a process that lives until the agent does; in a script $$' -r
complete -c resume-id -l agent-env -d 'A variable of the environment that the agent will have (repeatable); without \'=\': not set' -r
complete -c resume-id -l agents -d 'Your own agents [default: ~/.config/muxutils/agents.json]' -r -F
complete -c resume-id -l fresh-arg -d 'An argument for a beginning: the full prompt (repeatable)' -r
complete -c resume-id -l resume-arg -d 'An argument for a continuation: the nudge (repeatable)' -r
complete -c resume-id -l record -d 'Write the decision here, too, whole, before anything is launched' -r -F
complete -c resume-id -l timeout -d 'How long the call may take [default: 5s, and standard input is waited for]' -r
complete -c resume-id -l decision -d 'The decision to follow' -r -F
complete -c resume-id -l since -d 'With --discover: only what was written to since then (RFC 3339, or seconds since 1970)' -r
complete -c resume-id -s o -l output -d 'Print only these values (dotted: verdict.state), separated by tabs' -r
complete -c resume-id -l exec -d 'Become the agent, if the decision and what reap said of it allow that'
complete -c resume-id -l discover -d 'List the agent\'s sessions of a directory, newest first'
complete -c resume-id -l list-agents -d 'Print the agents\' table'
complete -c resume-id -l sh -d 'With -o: print the values as words for the shell\'s eval'
complete -c resume-id -s H -l human -d 'Print an aligned line a record, for eyes'
complete -c resume-id -s q -l quiet -d 'Print nothing on stdout; the exit status is the answer'
complete -c resume-id -s h -l help -d 'Print help (see more with \'--help\')'
complete -c resume-id -s V -l version -d 'Print version'
