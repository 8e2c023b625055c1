#compdef rdsk
# zsh completion for rdsk. The program itself knows what can stand at a place.
_rdsk() {
    local line value
    local -a closed closed_text open open_text
    for line in "${(@f)$("${words[1]}" complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        value=${line%%$'\t'*}
        [[ -n $value ]] || continue
        # A path, a list and an operand go on.
        if [[ $value == *[=:/] ]]; then
            open+=("$value")
            open_text+=("$value  ${line#*$'\t'}")
        else
            closed+=("$value")
            closed_text+=("$value  ${line#*$'\t'}")
        fi
    done
    (( $#closed + $#open )) || { _files; return }
    (( $#open )) && compadd -l -S '' -d open_text -a open
    (( $#closed )) && compadd -l -d closed_text -a closed
    return 0
}
if [[ $funcstack[1] == _rdsk ]]; then
    _rdsk "$@"
else
    compdef _rdsk rdsk
fi
