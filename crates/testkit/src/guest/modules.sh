# module NAME [PARAMETER=VALUE…]: loads a carried module after all that it needs.
module() {
    local list="/guest/modules/$1" name="$1" file base
    shift
    if [ ! -e "$list" ]; then
        echo "guest: module $name is not carried; name it in Guest::modules or Guest::carried" >&2
        return 1
    fi
    while read -r file; do
        base=${file##*/}
        base=$(echo "${base%.ko}" | tr - _)
        grep -q "^$base " /proc/modules && continue
        if [ "$base" = "$(echo "$name" | tr - _)" ]; then
            insmod "$file" "$@" || return 1
        else
            # A part that this processor lacks (crc32c-intel) has a plain one beside it.
            insmod "$file" 2>/dev/null || :
        fi
    done < "$list"
}
