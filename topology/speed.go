package topology

import (
	"fmt"
	"math"
	"time"
)

// Speed is what one link carries in one direction. Links carry both directions at full speed at once.
type Speed struct {
	BytesPerSecond float64
	Latency        time.Duration // from the first byte sent to the first byte there
}

// Speeds holds the speed of one link of each kind. A zero in it stands for the default.
type Speeds struct {
	IPULink, GWLink, HostLink Speed
}

// DefaultSpeeds returns the speeds that stand in for what a caller leaves out:
//
//	kind       bytes/s   latency  source
//	ipu-link   16e9      1 us     Bow-2000 datasheet, "Overview": IPU-Link 512 Gb/s, which does not say
//	                              of how many links nor whether one way or both. Read here as a bundle
//	                              of two, both ways together (the cautious reading). The latency has no
//	                              source: an assumption, set your own.
//	gw-link    12.5e9    5 us     Bow-2000 datasheet, "Overview": two GW-Links of 100 Gb/s. The latency
//	                              is an assumption.
//	host-link  22e9      50 ns    measured for this project on a two-core host: copying from memory on
//	                              one thread, and one way of a shared-memory ping-pong.
func DefaultSpeeds() Speeds {
	return Speeds{
		IPULink:  Speed{BytesPerSecond: 16e9, Latency: time.Microsecond},
		GWLink:   Speed{BytesPerSecond: 12.5e9, Latency: 5 * time.Microsecond},
		HostLink: Speed{BytesPerSecond: 22e9, Latency: 50 * time.Nanosecond},
	}
}

// complete fills in the defaults and refuses what is no speed.
func (s Speeds) complete() (Speeds, error) {
	defaults := DefaultSpeeds()
	for _, c := range []struct {
		kind     Kind
		speed    *Speed
		fallback Speed
	}{
		{IPULink, &s.IPULink, defaults.IPULink},
		{GWLink, &s.GWLink, defaults.GWLink},
		{HostLink, &s.HostLink, defaults.HostLink},
	} {
		if c.speed.BytesPerSecond == 0 {
			c.speed.BytesPerSecond = c.fallback.BytesPerSecond
		}
		if c.speed.Latency == 0 {
			c.speed.Latency = c.fallback.Latency
		}
		if b := c.speed.BytesPerSecond; !(b > 0) || math.IsInf(b, 1) {
			return Speeds{}, fmt.Errorf("topology: %v of %v bytes per second", c.kind, b)
		}
		if c.speed.Latency < 0 {
			return Speeds{}, fmt.Errorf("topology: %v with a latency of %v", c.kind, c.speed.Latency)
		}
	}
	return s, nil
}

// Speed returns the speed of one link of a kind, the zero Speed for [NoLink].
func (t Topology) Speed(kind Kind) Speed {
	switch kind {
	case IPULink:
		return t.speeds.IPULink
	case GWLink:
		return t.speeds.GWLink
	case HostLink:
		return t.speeds.HostLink
	}
	return Speed{}
}
