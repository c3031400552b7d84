package term

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A pipe gets a line every ten seconds. It gets none if the command ends sooner.
func TestProgressOfPipes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := StartProgress(&out, nil, "undrop", 500)
		time.Sleep(9 * time.Second)
		p.Add(120)
		time.Sleep(2 * time.Second)
		p.Add(300)
		time.Sleep(10 * time.Second)
		p.End()
		p.End()
		if want := "undrop: 120 of 500, 10 s\nundrop: 420 of 500, 20 s\n"; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
		out.Reset()
		p = StartProgress(&out, nil, "backup", 0)
		time.Sleep(9 * time.Second)
		p.End()
		if out.Len() > 0 {
			t.Errorf("a short command prints %q", out.String())
		}
	})
}

// A terminal gets one line after a second. The line is cleared for other output, and vanishes at
// the end.
func TestProgressOfTerminals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := startProgress(&out, "rm", 4, true)
		std := p.Over(&out)
		fmt.Fprintln(std, "Dropped a.")
		time.Sleep(900 * time.Millisecond)
		p.Add(1)
		time.Sleep(200 * time.Millisecond)
		fmt.Fprintln(std, "Dropped b.")
		p.Add(3)
		time.Sleep(200 * time.Millisecond)
		p.End()
		want := "Dropped a.\n" + clearLine + "rm [=====               ] 1 of 4, 1 s" + clearLine + "Dropped b.\n" +
			clearLine + "rm [====================] 4 of 4, 1 s" + clearLine
		if out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
		out.Reset()
		p = startProgress(&out, "doctor", 0, true)
		time.Sleep(1100 * time.Millisecond)
		p.Add(7)
		time.Sleep(200 * time.Millisecond)
		p.End()
		if want := clearLine + "doctor: 1 s" + clearLine + "doctor: 7, 1 s" + clearLine; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
}
