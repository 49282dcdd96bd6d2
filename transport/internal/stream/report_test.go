package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
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
		e.(*Lane).ReportBy(func(int) []byte { return texts[i] })
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

// TestInquire: each replica that is there says what it is doing when it is asked, and again when it is asked again.
func TestInquire(t *testing.T) {
	eps := openRings(t, 3, 4096, false)
	var said [3]atomic.Int64
	for i, e := range eps {
		e.(*Lane).ReportBy(func(int) []byte {
			return append(bytes.Repeat([]byte("long"), i*transport.MaxReply), byte(said[i].Add(1)))
		})
	}
	ask := func(replica int) string { return fmt.Sprintf("%.4q", eps[0].(*Lane).Inquire(time.Minute)[replica]) }
	for k := range 3 {
		if got, want := ask(1), `"long"`; got != want {
			t.Errorf("replica 1 says %s, want %s", got, want)
		}
		if got := said[2].Load(); got != int64(k+1) {
			t.Errorf("replica 2 has been asked %d times, want %d", got, k+1)
		}
	}
	if got := eps[0].(*Lane).Inquire(time.Minute); got[0] != nil || len(got[1]) != transport.MaxReply {
		t.Errorf("this replica says %d bytes, another %d", len(got[0]), len(got[1]))
	}
	eps[2].Close()
	if got := ask(1); got != `"long"` { // nor is replica 2 waited for, which has left
		t.Errorf("replica 1 says %s", got)
	}
	eps[1].Abort(errors.New("no more"))
	<-eps[0].Done()
	eps[0].(*Lane).Inquire(time.Hour)
	for _, e := range eps {
		e.Close()
	}
}

// TestInquireSilent: who does not answer is waited for as long as is said. A reply to another query is none.
func TestInquireSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l, err := NewNode(Config{Rank: 0, Size: 2, Host: &deafHost{told: make([][]byte, 2)}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		go func() {
			time.Sleep(time.Millisecond)
			for _, number := range []byte{0, 2} {
				if err := n.Handle(1, []byte{reply, number, 0, 0, 0, 'x'}); err != nil {
					t.Error(err)
				}
			}
		}()
		if got := l.Inquire(time.Second); got[1] != nil || time.Since(began) != time.Second {
			t.Errorf("%q after %v", got, time.Since(began))
		}
		go func() {
			time.Sleep(10 * time.Millisecond)
			n.Handle(1, []byte{reply, 2, 0, 0, 0, 'x'})
		}()
		if got := l.Inquire(time.Second); string(got[1]) != "x" {
			t.Errorf("%q", got)
		}
		for _, message := range [][]byte{{query, 1, 0, 0}, {query, 1, 0, 0, 0, 0}, {reply, 1, 0, 0},
			append([]byte{reply, 1, 0, 0, 0}, make([]byte, transport.MaxReply+1)...)} {
			if n.Handle(1, message) == nil {
				t.Errorf("no error of %.10x", message)
			}
		}
		l.Close()
	})
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
		l.ReportBy(func(int) []byte {
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

// TestInquireBeside: who asks while another does has what comes to that one, all or what has come until the limit.
func TestInquireBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l, err := NewNode(Config{Rank: 0, Size: 3, Host: &deafHost{told: make([][]byte, 3)}})
		if err != nil {
			t.Fatal(err)
		}
		answer := func(peer int) {
			if err := n.Handle(peer, []byte{reply, 1, 0, 0, 0, 'x'}); err != nil {
				t.Error(err)
			}
		}
		answers := make(chan [][]byte)
		for range 3 {
			go func() { answers <- l.Inquire(time.Hour) }()
		}
		synctest.Wait()
		answer(1)
		if got := fmt.Sprintf("%q", l.Inquire(time.Second)); got != `["" "x" ""]` {
			t.Error(got)
		}
		answer(2)
		for range 3 {
			if got := fmt.Sprintf("%q", <-answers); got != `["" "x" "x"]` {
				t.Error(got)
			}
		}
		if r := &n.reports; r.number != 1 {
			t.Errorf("%d queries", r.number)
		}
		l.Close()
	})
}
