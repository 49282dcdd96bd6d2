package transport_test

import (
	"testing"

	"gogcl.dev/transport"
)

func TestLinkClassTexts(t *testing.T) {
	for class, want := range map[transport.LinkClass]string{
		transport.UnknownLink: "unknown link", transport.MemoryLink: "memory link",
		transport.EngineLink: "engine link", transport.SocketLink: "socket link", transport.NetworkLink: "network link",
		transport.NetworkLink + 1: "LinkClass(5)",
	} {
		if have := class.String(); have != want {
			t.Errorf("%d: %q, want %q", class, have, want)
		}
	}
}
