# module NAME [PARAMETER=VALUE…]: loads a carried module after all that it needs. Only insmod is a process of its own.
module() {
    local list="/guest/modules/$1" name="${1//-/_}" file base
    if [ ! -e "$list" ]; then
        echo "guest: module $1 is not carried; name it in Guest::modules or Guest::carried" >&2
        return 1
    fi
    shift
    while read -r file; do
        base=${file##*/}
        base=${base%.ko}
        base=${base//-/_}
        # Parts of the kernel itself have a directory there, too, without this file.
        [ ! -e "/sys/module/$base/initstate" ] || continue
        if [ "$base" = "$name" ]; then
            insmod "$file" "$@" || return 1
        else
            # A part that this processor lacks (crc32c-intel) has a plain one beside it.
            insmod "$file" 2>/dev/null || :
        fi
    done < "$list"
}
