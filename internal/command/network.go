package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"gogcl.dev/methods/cost"
)

// NetworkUsage says what the value of a flag -network is.
const NetworkUsage = "`network`: a name such as torus:8x8x8, fattree:16x8x4, clique:4+4 or open-ladder:8, as " +
	"cost.ParseNetwork reads it, or a file, as cost.ParseGraph reads it"

// Network returns the network that the value of a flag -network says: a name, which has a colon and no slash, or a
// file.
func Network(text string) (cost.Network, error) {
	if IsNetworkName(text) {
		return cost.ParseNetwork(text)
	}
	file, err := os.ReadFile(text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w, nor is it a name such as torus:8x8x8 or fattree:16x8x4", err)
	}
	if err != nil {
		return nil, err // it names the file
	}
	g, err := cost.ParseGraph(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return g, nil
}

// IsNetworkName reports whether Network takes a text for a name, and not for a file.
func IsNetworkName(text string) bool {
	return strings.Contains(text, ":") && !strings.ContainsAny(text, `/\`)
}
