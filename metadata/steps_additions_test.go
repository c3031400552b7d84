package metadata_test

import (
	"fmt"
	"strings"
	"testing"

	"moorage"
	"moorage/metadata"
)

// Additions are compared with all existing elements, in bounded time. An element may be compared,
// removed, and added again with different content under the same id. Then its new content counts.
func TestAdditions(t *testing.T) {
	t.Parallel()
	d, err := metadata.Create(metadata.CreateTable{Location: "s3://b/t", Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int"}]}`)}, viewEnv())
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string) string {
		return fmt.Sprintf(`{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":"int"},{"id":2,"name":%q,"required":false,"type":"int"}]}}`, name)
	}
	apply := func(updates ...string) (*metadata.Document, error) {
		var steps []metadata.Step
		for _, some := range [][]string{updates[:1], updates[1:]} {
			decoded, err := checked(metadata.DecodeUpdates, "["+strings.Join(some, ",")+"]")
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, metadata.Step{Updates: decoded})
		}
		return metadata.ApplySteps(d, steps, viewEnv())
	}
	const order, spec = `{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}}`, `{"action":"add-spec","spec":{"fields":[]}}`
	for n, updates := range map[int][]string{metadata.AdditionsMax - 2: {order, spec}, metadata.AdditionsMax - 1: {order, spec}} {
		for i := range n {
			updates = append(updates, add(fmt.Sprint("n", i)))
		}
		_, err := apply(updates...)
		if refused := moorage.KindOf(err) == moorage.KindBadRequest; err != nil && !refused || refused != (len(updates) > metadata.AdditionsMax) {
			t.Errorf("%d additions: %v", len(updates), err)
		}
	}
	const current = `{"action":"set-current-schema","schema-id":-1}`
	again, err := apply(add("x"), add("x"), `{"action":"remove-schemas","schema-ids":[1]}`, add("y"), add("y"), current)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(again.Raw()), `"name":"y"`); n != 1 || strings.Contains(string(again.Raw()), `"name":"x"`) {
		t.Errorf("y is there %d times: %s", n, again.Raw())
	}
}
