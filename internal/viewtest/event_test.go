package viewtest

import (
	"testing"

	"moorage/internal/nodetest"
)

// What a call is answered is taken down, or is an answer that no server may give.
func TestTake(t *testing.T) {
	t.Parallel()
	const view = `{"metadata":{"view-uuid":"u","current-version-id":1,"versions":[{"version-id":1,"representations":[{"sql":"a"}]}],"version-log":[{"version-id":1}]}}`
	load, replace, create, drop := Event{}, Event{Query: "a"}, Event{Query: "a", Creates: true}, Event{Drops: true}
	missing := nodetest.Answer{Outcome: nodetest.Refused, Status: 404, Text: "NoSuchViewException"}
	conflict := nodetest.Answer{Outcome: nodetest.Refused, Status: 409}
	for _, row := range []struct {
		name   string
		event  Event
		answer nodetest.Answer
		want   Event
		fails  bool
	}{
		{"seen", replace, nodetest.Answer{Text: view}, Event{Query: "a", Seen: nodetest.View{UUID: "u", Queries: []string{"a"}}}, false},
		{"seen at odds with itself", load, nodetest.Answer{Text: `{"metadata":{"view-uuid":"u","current-version-id":1,"versions":[{"version-id":1}]}}`}, Event{}, true},
		{"dropped", drop, nodetest.Answer{Status: 204}, Event{Drops: true}, false},
		{"missing", drop, missing, Event{Drops: true, Absent: true, Outcome: nodetest.Refused}, false},
		{"no namespace", create, missing, Event{Query: "a", Creates: true, Absent: true, Outcome: nodetest.Refused}, true},
		{"another is missing", load, nodetest.Answer{Outcome: nodetest.Refused, Status: 404}, Event{Absent: true, Outcome: nodetest.Refused}, true},
		{"conflict", replace, conflict, Event{Query: "a", Outcome: nodetest.Refused}, false},
		{"conflict of a load", load, conflict, Event{Outcome: nodetest.Refused}, true},
		{"no answer", replace, nodetest.Answer{Outcome: nodetest.Unknown}, Event{Query: "a", Outcome: nodetest.Unknown}, false},
		{"unavailable", drop, nodetest.Answer{Outcome: nodetest.Refused, Status: 503}, Event{Drops: true, Outcome: nodetest.Refused}, false},
		{"bad", replace, nodetest.Answer{Outcome: nodetest.Refused, Status: 400}, Event{Query: "a", Outcome: nodetest.Refused}, true},
	} {
		got := row.event
		err := got.Take(row.answer)
		if (err != nil) != row.fails {
			t.Errorf("%s: %v, want an error: %t", row.name, err, row.fails)
		}
		if err == nil && (got.String() != row.want.String() || got.Absent != row.want.Absent || got.Seen.UUID != row.want.Seen.UUID) {
			t.Errorf("%s: taken as %+v, want %+v", row.name, got, row.want)
		}
	}
}
