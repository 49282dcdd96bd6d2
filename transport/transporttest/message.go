package transporttest

import (
	"fmt"
	"strconv"
	"strings"
)

// message is a line between a replica's process and the calling test: the number of a case, a key of its board, and
// the value. Case 0 is none.
func message(number int, key, value string) string {
	return fmt.Sprintf("%d\t%s\t%q\n", number, key, value)
}

func parseMessage(line string) (number int, key, value string, err error) {
	parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
	if len(parts) != 3 {
		return 0, "", "", fmt.Errorf("the message %q makes no sense", line)
	}
	if number, err = strconv.Atoi(parts[0]); err == nil {
		value, err = strconv.Unquote(parts[2])
	}
	return number, parts[1], value, err
}

// The keys of messages that are not posts.
const (
	came    = "came"    // case 0: the first message of a process. Its value is a rank and a name of processFiles.
	leaving = "leaving" // case 0: the last message of a process
	lost    = "lost"    // case 0: a replica has ended before its time
	failed  = "failed"  // a replica has failed the case
)
