package servers

import (
	"testing"
)

// Take records allowed answers, and returns an error for answers that no server may give.
func TestTake(t *testing.T) {
	t.Parallel()
	const view = `{"metadata":{"view-uuid":"u","current-version-id":1,"versions":[{"version-id":1,"representations":[{"sql":"a"}]}],"version-log":[{"version-id":1}]}}`
	load, replace, create, drop := ViewEvent{}, ViewEvent{Query: "a"}, ViewEvent{Query: "a", Creates: true}, ViewEvent{Drops: true}
	missing := Answer{Outcome: Refused, Status: 404, Text: "NoSuchViewException"}
	conflict := Answer{Outcome: Refused, Status: 409}
	for _, row := range []struct {
		name   string
		event  ViewEvent
		answer Answer
		want   ViewEvent
		fails  bool
	}{
		{"seen", replace, Answer{Text: view}, ViewEvent{Query: "a", Seen: View{UUID: "u", Queries: []string{"a"}}}, false},
		{"seen at odds with itself", load, Answer{Text: `{"metadata":{"view-uuid":"u","current-version-id":1,"versions":[{"version-id":1}]}}`}, ViewEvent{}, true},
		{"dropped", drop, Answer{Status: 204}, ViewEvent{Drops: true}, false},
		{"missing", drop, missing, ViewEvent{Drops: true, Absent: true, Outcome: Refused}, false},
		{"no namespace", create, missing, ViewEvent{Query: "a", Creates: true, Absent: true, Outcome: Refused}, true},
		{"another is missing", load, Answer{Outcome: Refused, Status: 404}, ViewEvent{Absent: true, Outcome: Refused}, true},
		{"conflict", replace, conflict, ViewEvent{Query: "a", Outcome: Refused}, false},
		{"conflict of a load", load, conflict, ViewEvent{Outcome: Refused}, true},
		{"no answer", replace, Answer{Outcome: Unknown}, ViewEvent{Query: "a", Outcome: Unknown}, false},
		{"unavailable", drop, Answer{Outcome: Refused, Status: 503}, ViewEvent{Drops: true, Outcome: Refused}, false},
		{"bad", replace, Answer{Outcome: Refused, Status: 400}, ViewEvent{Query: "a", Outcome: Refused}, true},
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
