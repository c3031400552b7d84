package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var someTime = time.Date(2026, 11, 25, 10, 0, 0, 1234000, time.UTC)

// A line has exactly the documented members, in the documented order.
func TestLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		line Line
		want string
	}{
		{"decision", Line{
			Time: someTime, Event: Decision, RequestID: "r-1", Caller: "corp:ann", Via: []string{"key:trino"},
			Source: "key", Address: "10.0.0.7", Operation: "commit-table",
			Object: Object{"table", "lake", []string{"a", "b"}, "t", "0123"}, Asked: []string{"write", "alter"},
			Missing: []string{"alter"}, Decision: "forbid", By: "owner", Epoch: 17, Status: 403, Took: 1500 * time.Microsecond,
		}, `{"time":"2026-11-25T10:00:00.001234Z","event":"decision","request-id":"r-1","caller":"corp:ann",` +
			`"via":["key:trino"],"source":"key","address":"10.0.0.7","operation":"commit-table","object":{"kind":"table",` +
			`"warehouse":"lake","namespace":["a","b"],"name":"t","id":"0123"},"asked":["write","alter"],` +
			`"missing":["alter"],"decision":"forbid","by":"owner","epoch":17,"status":403,"micros":1500}`},
		{"change", Line{
			Time: someTime, Event: Decision, Caller: "corp:ann", Operation: "rename-table", Decision: "allow",
			Outcome: "done", Commit: "c1", Node: "pier:7", Effects: []Effect{{
				Object: Object{"table", "lake", []string{"a"}, "ships", "0123"}, Was: "lake.a.boats", Snapshot: 17,
			}},
		}, `{"time":"2026-11-25T10:00:00.001234Z","event":"decision","caller":"corp:ann","operation":"rename-table",` +
			`"decision":"allow","outcome":"done","commit":"c1","effects":[{"kind":"table","warehouse":"lake",` +
			`"namespace":["a"],"name":"ships","id":"0123","was":"lake.a.boats","snapshot":17}],"node":"pier:7"}`},
		{"key", Line{Time: someTime, Event: KeyMade, Caller: "key:root", Principal: "key:etl", Key: "abc"},
			`{"time":"2026-11-25T10:00:00.001234Z","event":"key-made","caller":"key:root","principal":"key:etl","key":"abc"}`},
		{"refused", Line{Time: someTime, Event: Refused, Address: "10.0.0.7", Reason: "expired", Count: 3},
			`{"time":"2026-11-25T10:00:00.001234Z","event":"authentication-refused","address":"10.0.0.7",` +
				`"reason":"expired","count":3}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := string(tt.line.append(nil)); got != tt.want+"\n" {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// FuzzLine writes text from clients into lines. Each stays a single line of JSON without terminal
// commands.
func FuzzLine(f *testing.F) {
	f.Add("plain")
	f.Add("two\nlines\",\"caller\":\"root")
	f.Add("\x1b[2J\u009b2J\xff" + strings.Repeat("é", 700))
	f.Fuzz(func(t *testing.T, text string) {
		line := Line{
			Time: someTime, Event: Decision, Caller: text, Via: []string{text, text}, Source: text, Address: text,
			Object: Object{Kind: "table", Warehouse: text, Namespace: []string{text}, Name: text},
		}
		got := line.append(nil)
		if bytes.IndexByte(got, '\n') != len(got)-1 || !utf8.Valid(got) || bytes.ContainsAny(got, "\x1b\u009b") {
			t.Errorf("%q becomes %q", text, got)
		}
		var read struct{ Caller, Operation string }
		if err := json.Unmarshal(got, &read); err != nil || read.Operation != "" {
			t.Errorf("%q becomes %s, which is read as %+v: %v", text, got, read, err)
		}
		if text == clean(text) && len(text) <= textBytesMax && read.Caller != text {
			t.Errorf("%q is read as %q", text, read.Caller)
		}
	})
}

func BenchmarkNote(b *testing.B) {
	log := New(Config{Out: Stream(discard{}), Jitter: newJitter(), Reads: 1})
	log.Start()
	defer log.Close()
	line := Line{
		Event: Decision, RequestID: "abcdefghij-123", Caller: "corp:ann", Operation: "load-table", Sampled: true,
		Object: Object{"table", "lake", []string{"a", "b"}, "t", "0123456789abcdef0123456789abcdef"},
		Asked:  []string{"describe"}, Decision: Allowed, By: "owner", Epoch: 17, Status: 200,
	}
	b.ReportAllocs()
	for b.Loop() {
		log.Note(line)
	}
}

type discard struct{}

func (discard) Write(text []byte) (int, error) { return len(text), nil }
