package console

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// render returns what jsonShown makes of a document.
func rendered(t *testing.T, raw, words string) string {
	t.Helper()
	var made bytes.Buffer
	if err := jsonShown(json.RawMessage(raw), words).Render(&made); err != nil {
		t.Fatal(err)
	}
	checkHarmless(t, made.String())
	return made.String()
}

// TestJSONTree shows documents as trees: in their order, with their numbers as they are, and only
// the parts that have the words of a search.
func TestJSONTree(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	raw := `{"z":12345678901234567890,"a":{"b":[1.50,true,null,{}],"snapshot-id":7},` + string(encoded) + `:` + string(encoded) + `}`
	whole := rendered(t, raw, "")
	for _, want := range []string{"12345678901234567890", "1.50", "4 items", "2 members", "{}"} {
		if !strings.Contains(whole, want) {
			t.Errorf("%q is missing in %s", want, whole)
		}
	}
	if strings.Index(whole, "&#34;z&#34;") > strings.Index(whole, "&#34;a&#34;") {
		t.Errorf("the members are in another order: %s", whole)
	}
	part := rendered(t, raw, "SNAPSHOT")
	if !strings.Contains(part, "snapshot-id") || strings.Contains(part, "1.50") || !strings.Contains(part, "1 part of the file") {
		t.Errorf("with the word snapshot: %s", part)
	}
	if none := rendered(t, raw, hostile+"x"); !strings.Contains(none, "Nothing in this version has") {
		t.Errorf("without a match: %s", none)
	}
}

// TestJSONTreeIsBounded shows documents that are too large or too deep for a tree as text.
func TestJSONTreeIsBounded(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"large":   "[" + strings.Repeat("1,", jsonNodesMax) + "1]",
		"deep":    strings.Repeat("[", jsonDepthMax+2) + strings.Repeat("]", jsonDepthMax+2),
		"long":    `["` + strings.Repeat("a", 2*documentBytesShown) + `"]`,
		"no JSON": `{"a":`,
	} {
		if got := rendered(t, raw, ""); strings.Contains(got, "<details") || len(got) > documentBytesShown+1000 {
			t.Errorf("%s: %d bytes: %.100s", name, len(got), got)
		}
		if got := rendered(t, raw, "a"); !strings.Contains(got, "cannot be searched here") {
			t.Errorf("%s does not say that the words are ignored: %.100s", name, got)
		}
	}
}

// TestTextDiff compares two texts line by line.
func TestTextDiff(t *testing.T) {
	t.Parallel()
	signs := func(was, is string) (all string) {
		for _, line := range textDiff(was, is) {
			all += map[string]string{"": "=", "+": "+", "−": "-"}[line.sign]
		}
		return all
	}
	for _, test := range []struct{ was, is, want string }{
		{"a", "a", ""}, {"a\nb\nc", "a\nc", "=-="}, {"a\r\nc", "a\nb\nc", "=+="}, {"a", "b", "-+"}, {"", "a", "-+"},
		{strings.Repeat("a\n", diffLinesMax), "b", ""},
	} {
		if got := signs(test.was, test.is); got != test.want {
			t.Errorf("%.20q, %.20q: got %s, want %s", test.was, test.is, got, test.want)
		}
	}
}
