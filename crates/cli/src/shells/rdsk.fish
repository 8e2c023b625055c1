# fish completion for rdsk. The program itself knows what can stand at a place.
function __rdsk_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    $words[1] complete $words[2..] (commandline --current-token --cut-at-cursor) 2>/dev/null
end
complete --command rdsk --no-files --keep-order --arguments '(__rdsk_complete)'
