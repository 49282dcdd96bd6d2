package tcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/transporttest"
)

// TestProcesses runs the suite with one process for each replica: in all numbers over shared memory, in fewer over
// sockets, which do not care whose process is at the other end.
func TestProcesses(t *testing.T) {
	for _, network := range Networks()[1:] {
		t.Run("network="+string(network), func(t *testing.T) {
			var by transporttest.Launcher
			switch {
			case *full || testing.Short():
			case network == Unix:
				by.Sizes = []int{2}
			case network == TCP:
				by.Sizes = []int{3}
			}
			transporttest.RunLaunched(t, by, func(t testing.TB, rank, size int, dir string) transport.Endpoint {
				c := Config{
					Rank: rank, Size: size, Network: network, Job: t.Name(), Secret: make([]byte, 32),
					Crowded: size > runtime.GOMAXPROCS(0),
				}
				e, err := connectBy(dir, c)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}, transporttest.Buffers, transporttest.NoAlloc)
		})
	}
}

// joinTime is how long the processes of a test have to find each other.
const joinTime = 20 * time.Second

// connectBy connects a replica with those that it finds by files in a directory.
func connectBy(dir string, c Config) (transport.Endpoint, error) {
	l, err := Listen(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinTime)
	defer cancel()
	addresses, err := exchangeAddresses(ctx, dir, c.Rank, c.Size, l.Address())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l.Connect(ctx, addresses)
}

// exchangeAddresses tells the others this replica's address and returns those of all, by rank.
func exchangeAddresses(ctx context.Context, dir string, rank, size int, mine Address) ([]Address, error) {
	name := func(rank int) string { return filepath.Join(dir, fmt.Sprintf("replica%d", rank)) }
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	hidden := name(rank) + ".new"
	if err := os.WriteFile(hidden, text, 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(hidden, name(rank)); err != nil {
		return nil, err
	}
	addresses := make([]Address, size)
	for r := 0; r < size; {
		text, err := os.ReadFile(name(r))
		switch {
		case err == nil:
			if err := json.Unmarshal(text, &addresses[r]); err != nil {
				return nil, fmt.Errorf("the address of replica %d: %w", r, err)
			}
			r++
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		case ctx.Err() != nil:
			return nil, fmt.Errorf("replica %d has not come: %w", r, ctx.Err())
		default:
			time.Sleep(200 * time.Microsecond)
		}
	}
	return addresses, nil
}
