# bash completion for rdsk. The program itself knows what can stand at a place.
_rdsk() {
    local line=${COMP_LINE:0:COMP_POINT} breaks=${COMP_WORDBREAKS//[^:=]/} words=() kept= reply
    read -a words <<<"$line"
    [[ $line == *[[:blank:]] ]] && words+=("")
    # bash breaks a word at these, and replaces only what follows.
    local word=${words[${#words[@]}-1]}
    [[ -n $breaks ]] && kept=${word%"${word##*[$breaks]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r reply _; do
        reply=${reply#"$kept"}
        [[ $reply == *[[:space:]\"\'\\\&\|\;\<\>\(\)\$\`\*\?\[\]\{\}\#\!]* ]] && printf -v reply %q "$reply"
        COMPREPLY+=("$reply")
    done < <("$1" complete "${words[@]:1}" 2>/dev/null)
    # A path, a list and an operand go on.
    [[ ${COMPREPLY[0]-} == *[=:/] ]] && compopt -o nospace
    return 0
}
complete -o bashdefault -o default -F _rdsk rdsk
