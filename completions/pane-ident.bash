_pane__ident() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="pane__ident"
                ;;
            pane__ident,capture)
                cmd="pane__ident__subcmd__capture"
                ;;
            pane__ident,exec)
                cmd="pane__ident__subcmd__exec"
                ;;
            pane__ident,verify)
                cmd="pane__ident__subcmd__verify"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        pane__ident)
            opts="-h -V --help --version capture verify exec"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        pane__ident__subcmd__capture)
            opts="-o -H -q -h --pid --tmux --herdr --kitty --self --merge --full-argv --timeout --tmux-socket --herdr-socket --kitty-socket --tmux-bin --kitten-bin --output --sh --human --quiet --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --pid)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tmux)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --herdr)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kitty)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --merge)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tmux-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --herdr-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kitty-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tmux-bin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kitten-bin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        pane__ident__subcmd__exec)
            opts="-h --binding --same-argv --timeout --summary --tmux-socket --herdr-socket --kitty-socket --tmux-bin --kitten-bin --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --binding)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --summary)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tmux-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --herdr-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kitty-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tmux-bin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kitten-bin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        pane__ident__subcmd__verify)
            opts="-o -H -q -h --only --pane --legacy --same-argv --tmux --herdr --kitty --ancestor --settle --timeout --tmux-socket --herdr-socket --kitty-socket --tmux-bin --kitten-bin --output --sh --human --quiet --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --only)
                    COMPREPLY=($(compgen -W "unknown unbound foreign self match moved orphaned gone" -- "${cur}"))
                    return 0
                    ;;
                --pane)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --legacy)
                    COMPREPLY=($(compgen -W "cwd label" -- "${cur}"))
                    return 0
                    ;;
                --tmux)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --herdr)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kitty)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --settle)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tmux-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --herdr-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kitty-socket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tmux-bin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --kitten-bin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _pane__ident -o nosort -o bashdefault -o default pane-ident
else
    complete -F _pane__ident -o bashdefault -o default pane-ident
fi
