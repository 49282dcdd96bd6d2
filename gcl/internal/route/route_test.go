package route

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/internal/cheapest"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
)

var updateRoutes = flag.Bool("update-routes", false, "write testdata/routes.txt anew")

// Phased are the collectives with phases: all but those with a root, though a broadcast has some.
const phased = 1<<schedule.AllReduce | 1<<schedule.ReduceScatter | 1<<schedule.AllGather | 1<<schedule.AllToAll |
	1<<schedule.Broadcast | 1<<schedule.Barrier

// routeSettings are those of the table of routes, each over four ranks.
func routeSettings() (names []string, settings []Setting) {
	add := func(name string, change func(s *Setting)) {
		s := Setting{Tuning: methods.MemoryLinks(), Phased: phased, Ranks: 4, Domains: 1, Each: 4, Memory: true,
			Small: 8 << 10}
		change(&s)
		s.Syncful, s.SyncfulWhy = s.Together()
		names, settings = append(names, name), append(settings, s)
	}
	add("default", func(s *Setting) {})
	add("one rank", func(s *Setting) { s.Ranks = 1 })
	add("MaxBroadcastSize", func(s *Setting) { s.Tuned = true })
	add("MaxBroadcastSize, strided", func(s *Setting) { s.Tuned, s.Strided = true, true })
	add("clockwise_ring", func(s *Setting) { s.Method = methods.ClockwiseRing })
	add("Syncful clockwise_ring", func(s *Setting) { s.Method, s.Implementation = methods.ClockwiseRing, Syncful })
	add("Syncless", func(s *Setting) { s.Implementation = Syncless })
	add("no peer memory", func(s *Setting) { s.Memory = false })
	add("Syncful, no peer memory", func(s *Setting) { s.Memory, s.Implementation = false, Syncful })
	add("sockets", func(s *Setting) { s.Memory, s.Tuning = false, methods.SocketLinks() })
	add("sockets, Reproducible", func(s *Setting) {
		s.Memory, s.Reproducible, s.Tuning = false, true, methods.SocketLinks()
	})
	add("Hybrid, one domain", func(s *Setting) { s.Implementation = Hybrid })
	add("Hybrid, one in each", func(s *Setting) { s.Implementation, s.Domains, s.Each = Hybrid, 4, 1 })
	add("Hybrid, two by two", func(s *Setting) { s.Implementation, s.Domains, s.Each = Hybrid, 2, 2 })
	add("Hybrid, two by two, Reproducible", func(s *Setting) {
		s.Implementation, s.Domains, s.Each, s.Reproducible = Hybrid, 2, 2, true
	})
	add("native", func(s *Setting) { s.Method = methods.Native })
	add("native, one rank", func(s *Setting) { s.Method, s.Ranks = methods.Native, 1 })
	return names, settings
}

// routeQuestions are those of the table of routes.
func routeQuestions() (names []string, questions []Question) {
	add := func(name string, q Question) { names, questions = append(names, name), append(questions, q) }
	for _, c := range schedule.Collectives() {
		for _, bytes := range []int{64, 128 << 10} {
			add(fmt.Sprintf("%v of %d", c, bytes), Question{Collective: c, Bytes: bytes, Published: bytes})
		}
	}
	add("all-reduce of 64, several", Question{Collective: schedule.AllReduce, Several: true, Bytes: 64, Published: 64})
	add("all-reduce of 64, Local", Question{Collective: schedule.AllReduce, Local: true, Bytes: 64, Published: 64})
	add("all-gather of parts", Question{Collective: schedule.AllGather, Parts: true, Bytes: 64, Published: 16})
	add("all-to-all of parts", Question{Collective: schedule.AllToAll, Parts: true, Bytes: 64, Published: 64})
	add("barrier", Question{Collective: schedule.Barrier})
	return names, questions
}

// TestRoutes holds the routes against testdata/routes.txt. After -update-routes look at what has changed: commit only
// what you understand.
func TestRoutes(t *testing.T) {
	var b strings.Builder
	names, settings := routeSettings()
	questions, asked := routeQuestions()
	for i, s := range settings {
		fmt.Fprintf(&b, "%s: %s\n", names[i], s.SyncfulWhy)
		for k := range asked {
			r := s.Route(&asked[k])
			how := fmt.Sprintf("%v, %v", r.Path, r.Method)
			switch {
			case r.Phases:
				how = "in phases"
			case r.Path == Local:
				how = "local"
			case r.Because == AsOnePass:
				how += ", one pass"
			case r.Because == AsTuned:
				how += ", tuned"
			case r.Because == AsCounts:
				how += ", by counts"
			}
			if r.Barriers {
				how += ", barriers"
			}
			fmt.Fprintf(&b, "\t%-28s %s\n", questions[k], how)
		}
	}
	const golden = "testdata/routes.txt"
	if *updateRoutes {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("routes (-want +have):\n%s", d)
	}
}

// TestSame: two questions that differ in a field are not the same.
func TestSame(t *testing.T) {
	v := reflect.ValueOf(&Question{}).Elem()
	for i := range v.NumField() {
		var a, b Question
		switch f := reflect.ValueOf(&b).Elem().Field(i); {
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.CanInt():
			f.SetInt(1)
		default:
			f.SetUint(1)
		}
		if a.Same(&b) || !b.Same(&b) {
			t.Errorf("%s makes no difference", v.Type().Field(i).Name)
		}
	}
}

// TestGiven: a schedule that comes with the call goes by messages, unless replicas are asked to step together.
func TestGiven(t *testing.T) {
	for _, c := range []struct {
		s    Setting
		want Route
	}{
		{Setting{Ranks: 2, Memory: true}, Route{Path: Messages}},
		{Setting{Ranks: 2, Memory: true, Implementation: Syncless}, Route{Path: Messages}},
		{Setting{Ranks: 2, Memory: true, Implementation: Syncful}, Route{Path: Rounds, Together: true}},
		{Setting{Ranks: 2, Implementation: Syncful}, Route{Path: Messages, Together: true, Barriers: true}},
		{Setting{Ranks: 2, Memory: true, Implementation: Hybrid, Domains: 1}, Route{Path: Rounds, Together: true}},
		{Setting{Ranks: 4, Memory: true, Implementation: Hybrid, Domains: 2, Each: 2}, Route{Path: Messages}},
		{Setting{Ranks: 1, Memory: true, Implementation: Syncful}, Route{Path: Messages, Together: true}},
	} {
		if have := c.s.Route(&Question{Given: true}); have != c.want {
			t.Errorf("%+v: %+v, want %+v", c.s, have, c.want)
		}
	}
}

// TestRulesOfOpenedMemory: where only what gcl.Alloc gave is shared a rule for messages does not take a call from one
// pass. It decides where the call goes by messages after all, and where the options ask for messages. A rule for peer
// memory decides as elsewhere.
func TestRulesOfOpenedMemory(t *testing.T) {
	q := Question{Collective: schedule.AllReduce, Bytes: 1 << 20, Published: 1 << 20}
	for rule, want := range map[string]string{
		"clockwise_ring/Syncless": "any: messages clockwise_ring; opened: peer memory direct, then messages clockwise_ring; " +
			"Syncless: messages clockwise_ring",
		"clockwise_ring": "any: messages clockwise_ring; opened: peer memory direct, then messages clockwise_ring; " +
			"Syncless: messages clockwise_ring",
		"direct": "any: peer memory direct; opened: peer memory direct, then messages direct; Syncless: messages direct",
		"clockwise_ring/Syncful": "any: peer memory in rounds clockwise_ring; opened: peer memory in rounds clockwise_ring, " +
			"then messages direct; Syncless: messages direct",
	} {
		rules, err := methods.ParseRules([]byte("all-reduce 4 0 " + rule + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		s := Setting{Tuning: methods.SocketLinks(), Ranks: 4, Domains: 1, Each: 4, Memory: true}
		s.Tuning.Rules = rules
		said := func(r Route) string { return fmt.Sprint(r.Path, " ", r.Method) }
		s.Syncful, s.SyncfulWhy = s.Together()
		have := "any: " + said(s.Route(&q))
		s.Opened = true
		have += "; opened: " + said(s.Route(&q)) + ", then " + said(s.ByMessages(&q))
		s.Implementation = Syncless
		s.Syncful, s.SyncfulWhy = s.Together()
		have += "; Syncless: " + said(s.Route(&q))
		if have != want {
			t.Errorf("%s:\nhave %s\nwant %s", rule, have, want)
		}
	}
}

// counted is a network that counts the ways it is asked for.
type counted struct {
	cost.Network
	ways *int
}

func (c counted) Route(links []int, from, to int) ([]int, error) {
	*c.ways++
	return c.Network.Route(links, from, to)
}

// TestPricedWhereItCounts: a price decides before the library's rules, and no price is made where the job's rules or a
// limit of broadcast decide.
func TestPricedWhereItCounts(t *testing.T) {
	torus, err := cost.ParseNetwork("torus:2x2")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := methods.ParseRules([]byte("all-reduce 4 0 anticlockwise_ring\n"))
	if err != nil {
		t.Fatal(err)
	}
	q := Question{Collective: schedule.AllReduce, Bytes: 1 << 10, Published: 1 << 10}
	for _, c := range []struct {
		what   string
		change func(s *Setting)
		want   Because
	}{
		{"nothing", func(*Setting) {}, AsPriced},
		{"the library's rules", func(s *Setting) { s.Tuning.Rules = rules }, AsPriced},
		{"the job's rules", func(s *Setting) { s.Tuning.Rules, s.Ruled = rules, true }, AsRuled},
		{"a limit", func(s *Setting) {
			s.Tuning.Rules, s.Tuning.MaxBroadcastBytes, s.Tuning.BroadcastFirst, s.Tuned = rules, 1<<20, true, true
		}, AsTuned},
		{"a limit below", func(s *Setting) { s.Tuning.MaxBroadcastBytes, s.Tuned = 8, true }, AsPriced},
		{"the options", func(s *Setting) { s.Method = methods.ClockwiseRing }, AsOptionsAsk},
		{"stepping together", func(s *Setting) { s.Implementation = Syncful }, AsTuned},
	} {
		ways, members := 0, []int{0, 1, 2, 3}
		prices := cheapest.New(cost.Model{Network: counted{torus, &ways}})
		s := Setting{Tuning: methods.SocketLinks(), Ranks: 4, Domains: 1, Each: 4,
			Prices: prices.Of(cheapest.Group{}, members, members, members)}
		c.change(&s)
		s.Syncful, s.SyncfulWhy = s.Together()
		ways = 0
		r := s.Route(&q)
		if r.Because != c.want || (ways > 0) != (c.want == AsPriced) {
			t.Errorf("%s: %v since %v, and %d ways were asked for", c.what, r.Method, r.Because, ways)
		}
	}
}
