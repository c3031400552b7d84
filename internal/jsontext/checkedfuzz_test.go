package jsontext

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCheckIsSound checks that text accepted by Check has no fault on which JSON readers disagree.
func FuzzCheckIsSound(f *testing.F) {
	for _, list := range []string{
		`[{"type":"assert-table-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"},{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`,
		`[{"action":"set-properties","updates":{"a":"1","\u0062":"\ud83d\ude00\\\""}},{"action":"Remove-Properties","removals":["a","é"]}]`,
		`[{"action":"add-snapshot","snapshot":{"snapshot-id":8,"sequence-number":2,"timestamp-ms":1700000000001,"manifest-list":"file:///m","summary":{"operation":"append"},"schema-id":0}}]`,
		`[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"c","required":false,"type":"int"}]}},{"action":"set-current-schema","schema-id":-1}]`,
		`[{"action":"add-spec","spec":{"fields":[{"source-id":1,"transform":"void","name":"v"}]}},{"action":"add-sort-order","sort-order":{"order-id":9,"fields":[]}}]`,
		`[{"action":"add-view-version","view-version":{"version-id":3,"schema-id":0,"timestamp-ms":1,"summary":{},"default-namespace":[],"representations":[{"type":"sql","sql":"x","dialect":"y"}]}}]`,
		` [ { "action" : "set-location" , "location" : "x" , "y" : [ -0.5e+3 , true , false , null , { } , [ ] ] } ] `,
		`[{"action":"x"},5]`, `[5]`, `["\\"]`, `[[]]`, `[null]`, `{}`, `null`, `-1`, `[{"type":"x"}]`, `[{"action":5}]`, `[{"action":"set-location","location":"` + strings.Repeat("\u0001", 3) + `"}]`,
	} {
		f.Add([]byte(`{"updates":` + list + `}`))
		f.Add([]byte("{\"a\" : 1 ,\t\"requirements\":\r\n" + list + " } "))
	}
	for _, levels := range []int{497, 498, 499, 500, checkDepthMax - 4, checkDepthMax - 3, checkDepthMax - 2} {
		f.Add([]byte(`{"updates":[{"action":"set-location","location":"x","y":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}]}`))
		f.Add([]byte(`{"updates":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}`))
	}
	f.Add([]byte(`{"updates":[{"action":"set-location","location":"\udc00\udc00"}]}`))
	f.Add([]byte(`{"updates":[{"action":"set-properties","updates":{"a":"1","\u0061":"2"}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := Check(body); err != nil {
			return
		}
		switch {
		case !json.Valid(body) || !utf8.Valid(body):
			t.Errorf("%q is accepted, which is not JSON", body)
		case hasLoneSurrogate(body):
			t.Errorf("%s is accepted, which has a lone surrogate", body)
		case hasNameTwice(body):
			t.Errorf("%s is accepted, which has a name twice in an object", body)
		}
	})
}

var (
	surrogate     = regexp.MustCompile(`(?i)\\ud[89a-f]`)
	surrogatePair = regexp.MustCompile(`(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}`)
)

// hasLoneSurrogate reports whether a string in text, which is JSON, contains half of a surrogate
// pair.
func hasLoneSurrogate(text []byte) bool {
	escapes := bytes.ReplaceAll(text, []byte(`\\`), []byte(`\/`)) // now each backslash begins an escape
	return surrogate.Match(surrogatePair.ReplaceAll(escapes, nil))
}

// hasNameTwice reports whether any object in text, which is JSON, has two members with the same
// name.
func hasNameTwice(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // for numbers that do not fit a float64
	return nextHasNameTwice(d)
}

func nextHasNameTwice(d *json.Decoder) (twice bool) {
	switch begin, _ := d.Token(); begin {
	case json.Delim('['):
		for d.More() {
			twice = nextHasNameTwice(d) || twice
		}
		_, _ = d.Token() // ]
	case json.Delim('{'):
		seen := make(map[json.Token]bool)
		for d.More() {
			name, _ := d.Token()
			twice = seen[name] || twice
			seen[name] = true
			twice = nextHasNameTwice(d) || twice
		}
		_, _ = d.Token() // }
	}
	return twice
}

func TestUnsoundTextIsRecognised(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text        string
		lone, twice bool
	}{
		{`{"a":"\ud83d\ude00\\ud800","b":[{"a":1e999},{"a":2}]}`, false, false},
		{`{"a":"\ud83d\ude00\uDC00"}`, true, false}, {`{"\\\ud800":1}`, true, false}, {`{"a":"\ud83d\\\ude00"}`, true, false}, {`{"a":"\udc00\udc00"}`, true, false},
		{`{"a":[{"b":1,"\u0062":{}}]}`, false, true}, {`{"a":{"b":1},"c":[],"a":2}`, false, true},
	} {
		if lone, twice := hasLoneSurrogate([]byte(row.text)), hasNameTwice([]byte(row.text)); lone != row.lone || twice != row.twice {
			t.Errorf("%s: lone surrogate %t, name twice %t, want %t, %t", row.text, lone, twice, row.lone, row.twice)
		}
	}
}
