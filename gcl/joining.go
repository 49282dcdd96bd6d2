package gcl

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strconv"

	"gogcl.dev/gcl/internal/launch"
	"gogcl.dev/transport"
	"gogcl.dev/transport/tcp"
)

// join joins the job and returns the endpoint, and the options that the Comm is made with. Of a job that begins it is
// generation 0.
func (cfg JoinConfig) join(ctx context.Context, opts []CommOption) (*transport.Rejoined, *config, error) {
	if cfg.Timeout < 0 {
		return nil, nil, errorf("JoinConfig.Timeout is %v, want more than 0, or 0 for %v", cfg.Timeout, joinTimeout)
	}
	job, err := cfg.job(os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	byMPI, err := cfg.byMPI(&job)
	switch {
	case err != nil:
		return nil, nil, err
	case byMPI && (cfg.Newcomer || job.Settings.Newcomer):
		return nil, nil, newError("a newcomer to a job by MPI: MPI takes none: want sockets or shared memory")
	case byMPI:
		endpoint, config, err := cfg.joinMPI(ctx, &job, opts)
		return &transport.Rejoined{Endpoint: endpoint}, config, err
	}
	config, blob, err := propose(job.Size, opts)
	if err != nil {
		return nil, nil, err
	}
	most := 0
	if config.elastic != nil {
		most = config.elastic.Max
	}
	c, m, err := cfg.resolve(&job, most)
	if err != nil {
		return nil, nil, err
	}
	newcomer := cfg.Newcomer || job.Settings.Newcomer
	m.Blob, m.Agree, c.Most = blob, config.agreeAll, most
	if newcomer {
		m.Agree = config.agreeAsNewcomer
	}
	joined := &transport.Rejoined{}
	switch {
	case newcomer && most == 0:
		return nil, nil, newError("a newcomer to a job that takes none: want WithElastic with a Max, as the others have it")
	case newcomer:
		m.Within = cmp.Or(cfg.Timeout, joinTimeout)
		joined, err = tcp.Come(ctx, c, m)
	default:
		ctx, cancel := cfg.limited(ctx)
		defer cancel()
		joined.Endpoint, err = tcp.Join(ctx, c, m)
	}
	if err != nil {
		return nil, nil, errorf("join: %w", err)
	}
	config.job = c.Job
	return joined, config, nil
}

// limited is a context with the time for everybody to come.
func (cfg JoinConfig) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := cmp.Or(cfg.Timeout, joinTimeout)
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("the time for everybody to come is over (%v)", limit))
}

// propose makes the options of a job of size replicas, and what is to be told of them to the others.
func propose(size int, opts []CommOption) (*config, []byte, error) {
	config, err := newConfig(size, opts)
	if err == nil {
		config.process = true
		err = config.noEndpoints("a process of a job makes its own endpoint")
	}
	if err != nil {
		return nil, nil, err
	}
	own, err := newTerms(config)
	if err != nil {
		return nil, nil, err
	}
	blob, err := json.Marshal(own)
	if err != nil {
		return nil, nil, errorf("%w", err)
	}
	return config, blob, nil
}

// job is the process's place in its job, from the program or from the environment.
func (cfg JoinConfig) job(lookup func(string) (string, bool)) (job launch.Job, err error) {
	if cfg.Size == 0 {
		if cfg.Rank != 0 {
			return job, errorf("JoinConfig has Rank %d and no Size: give both, or neither", cfg.Rank)
		}
		job, err = launch.Read(lookup)
		if errors.Is(err, launch.ErrNoJob) {
			return job, ErrNoJob
		}
	} else {
		job.Rank, job.Size = cfg.Rank, cfg.Size
		job.Settings, err = launch.ReadSettings(lookup)
		job.Name = job.Settings.Job
	}
	if err != nil {
		return job, errorf("%w", err)
	}
	if cfg.Newcomer {
		job.Rank = 0 // of no account
	}
	if job.Size < 1 || job.Rank < 0 || job.Rank >= job.Size {
		return job, errorf("JoinConfig: replica %d of %d, want 0 to Size-1", job.Rank, job.Size)
	}
	return job, nil
}

// resolve fills in from the environment what the program has left open. most is how many replicas there may be when
// newcomers come.
func (cfg JoinConfig) resolve(job *launch.Job, most int) (c tcp.Config, m tcp.Meeting, err error) {
	fail := func(format string, arguments ...any) (tcp.Config, tcp.Meeting, error) {
		return tcp.Config{}, tcp.Meeting{}, errorf(format, arguments...)
	}
	if cfg.Checksum > ChecksumOff {
		return fail("JoinConfig.Checksum is %d, want ChecksumAuto, ChecksumOn or ChecksumOff", cfg.Checksum)
	}
	set := &job.Settings
	c = tcp.Config{
		Rank: job.Rank, Size: job.Size, Job: cmp.Or(cfg.Job, job.Name), Silence: cfg.Silence,
		Checksum: cfg.Checksum, Ports: cfg.Ports, TLS: cfg.TLS,
	}
	if c.Ports == [2]int{} {
		c.Ports = set.Ports
	}
	if c.Network, err = network(cfg.transport(job)); err != nil {
		return fail("%w", err)
	}
	if c.Secret, m.Exposed, err = cfg.secret(set); err != nil {
		return fail("%w", err)
	}
	m.Insecure = cfg.Insecure
	logger := cfg.Logger
	if logger == nil {
		logger = slog.Default()
	}
	m.Tell = func(text string) { logger.Info("gcl: joining: " + text) }
	pick := set.Interface
	if cfg.Interface != "" {
		if pick, err = launch.ParseInterface(cfg.Interface); err != nil {
			return fail("JoinConfig.Interface: %w", err)
		}
	}
	if pick.String() != "" {
		m.Interface = func(name string, a netip.Addr) bool { return pick.Matches(name, a) }
	}
	var at launch.Rendezvous
	switch {
	case job.Size == 1 && most == 0: // nobody to meet
	case cfg.Rendezvous != "":
		at, err = launch.ParseRendezvous(cfg.Rendezvous)
	case cfg.Size != 0:
		if at = set.Rendezvous; at == (launch.Rendezvous{}) {
			err = errors.New("JoinConfig has a Size and no Rendezvous, and GCL_RENDEZVOUS is not set: " +
				"want host:port, dir:PATH or unix:@NAME, the same for all replicas")
		}
	default:
		at, err = job.Rendezvous()
	}
	if err != nil {
		return fail("%w", err)
	}
	m.Where = at.String()
	return c, m, nil
}

// terms are what the replicas of a job must have alike.
type terms struct {
	Version string // of this module
	Run     string // replica 0's is the job's: see watch.Process
	Options map[string]term
}

// term is the value of an option.
type term struct {
	Value       string
	Environment bool // GCL_OPTIONS says so
}

// newTerms are those of this process.
func newTerms(c *config) (terms, error) {
	o, err := c.override.on(c.options)
	if err != nil {
		return terms{}, err
	}
	text, err := o.Map()
	if err != nil {
		return terms{}, err
	}
	t := terms{Version: moduleVersion(), Run: rand.Text(), Options: map[string]term{}}
	for _, row := range optionRows {
		if value, ok := text[row.key]; ok && !row.local {
			if row.compared != nil {
				value = row.compared(&o)
			}
			t.Options[row.key] = term{value, c.override.has(row.key)}
		}
	}
	if c.elastic != nil && c.elastic.Max > 0 {
		t.Options["Max of WithElastic"] = term{Value: strconv.Itoa(c.elastic.Max)}
	}
	if c.machine {
		t.Options["topology of WithTopology"] = term{Value: fmt.Sprintf("%+v", c.topology)}
	}
	if c.network != nil {
		t.Options["network of WithNetwork"] = term{Value: fmt.Sprintf("%d replicas and %d links, with digest %x",
			c.network.Network.Replicas(), c.network.Network.Links(), c.prices.Digest())}
	}
	return t, nil
}

// moduleVersion is the version of this module in the program.
func moduleVersion() string {
	const path = "gogcl.dev"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == path {
		return info.Main.Version
	}
	for _, d := range info.Deps {
		if d.Path == path {
			if d.Replace != nil {
				d = d.Replace
			}
			return d.Version
		}
	}
	return "unknown"
}

// agreeAll says what replicas do not have alike, and notes which run of the job it is.
func (c *config) agreeAll(blobs [][]byte) error {
	return c.agree(blobs, replicaWord)
}

func replicaWord(r int) string { return fmt.Sprint("replica ", r) }

// agreeAsNewcomer does so for a newcomer with the job.
func (c *config) agreeAsNewcomer(blobs [][]byte) error {
	return c.agree(blobs, newcomerWord)
}

func newcomerWord(r int) string { return []string{"the job", "the newcomer"}[r] }

func (c *config) agree(blobs [][]byte, who func(r int) string) error {
	if err := compareTerms(blobs, who); err != nil {
		return err
	}
	var first terms
	err := json.Unmarshal(blobs[0], &first)
	c.run = first.Run
	return err
}

// compareTerms says what replicas do not have alike.
func compareTerms(blobs [][]byte, who func(r int) string) error {
	all := make([]terms, len(blobs))
	keys := map[string]bool{}
	for r, b := range blobs {
		if err := json.Unmarshal(b, &all[r]); err != nil {
			return fmt.Errorf("%s does not say what its options are: %w", who(r), err)
		}
		for k := range all[r].Options {
			keys[k] = true
		}
	}
	for r := range all {
		if all[r].Version != all[0].Version {
			return fmt.Errorf("%s has version %s of gogcl.dev, %s version %s: start the same program everywhere", who(r),
				all[r].Version, who(0), all[0].Version)
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			if mine, first := all[r].Options[k], all[0].Options[k]; mine.Value != first.Value {
				return fmt.Errorf("%s: %s differs: it is %s on %s, and %s on %s", mine.by(first), k, first, who(0),
					mine, who(r))
			}
		}
	}
	return nil
}

// by names what has set an option on either of two replicas.
func (t term) by(other term) string {
	if t.Environment || other.Environment {
		return environment
	}
	return "the options"
}

func (t term) String() string { return cmp.Or(t.Value, "the default") }
