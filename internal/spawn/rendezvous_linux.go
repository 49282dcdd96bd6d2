package spawn

import (
	"fmt"
	"os"
)

// rendezvous is an abstract socket's name. Nothing of it stays on disk, and the number of the user in it tells jobs of
// different users apart.
func rendezvous() (string, error) {
	return fmt.Sprintf("unix:@gclrun-%d-%s", os.Getuid(), random(8)), nil
}
