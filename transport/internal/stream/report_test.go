package stream

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/transport"
)

// TestReports: after an abort each replica has the reports of the others, no more of each than a control message holds.
func TestReports(t *testing.T) {
	eps := openRings(t, 2, 4096, false)
	texts := [2][]byte{bytes.Repeat([]byte("long"), transport.MaxReport), []byte("short")}
	for i, e := range eps {
		e.(*Lane).ReportBy(func() []byte { return texts[i] })
	}
	eps[0].Abort(errors.New("no more"))
	for i, e := range eps {
		want := texts[1-i][:min(len(texts[1-i]), transport.MaxReport)]
		var got []byte
		for until := time.Now().Add(10 * time.Second); got == nil && time.Now().Before(until); {
			got = e.(*Lane).Reports()[1-i]
		}
		if !bytes.Equal(got, want) {
			t.Errorf("replica %d has a report of %d bytes, want %d", i, len(got), len(want))
		}
	}
	for _, e := range eps {
		e.Close()
	}
}

// TestReportBeforeLeaving: a replica that leaves after an abort has told of itself first, however long that takes to
// make. Who has heard that it leaves waits for no report.
func TestReportBeforeLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &deafHost{told: make([][]byte, 2)}
		n, l, err := NewNode(Config{Rank: 0, Size: 2, Host: h})
		if err != nil {
			t.Fatal(err)
		}
		l.ReportBy(func() []byte {
			time.Sleep(time.Second)
			return []byte("a report")
		})
		n.Abort(errors.New("no more"))
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if want := []byte{aborted, report, left}; !bytes.Equal(h.told[1], want) {
			t.Errorf("the other is told messages of kinds %d, want %d", h.told[1], want)
		}
	})
}

// TestReportsWaitOnce: who asks again after an abort does not wait again for a replica that says nothing.
func TestReportsWaitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l, err := NewNode(Config{Rank: 0, Size: 2, Host: &deafHost{told: make([][]byte, 2)}})
		if err != nil {
			t.Fatal(err)
		}
		n.Abort(errors.New("no more"))
		began := time.Now()
		for range 3 {
			l.Reports()
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began) - 3*time.Millisecond; took != reportTime {
			t.Errorf("three times took %v, want %v", took, reportTime)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestLeftBetweenLooks: word that a replica leaves may come between two looks of a lane whose link to it has ended. The
// replica is not lost.
func TestLeftBetweenLooks(t *testing.T) {
	_, l, _ := loneNode(t, 0)
	p := &l.peers[1]
	p.answered.Store(1)
	p.left.Store(&parting{})
	ended := &ending{err: io.EOF, inquiry: 1}
	if err := l.explained(1, &transport.Transfer{Kind: transport.Recv, Peer: 1}, ended, nil); err != nil {
		t.Errorf("got %v, want another look", err)
	}
	l.Close()
}
