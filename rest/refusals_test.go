package rest_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"moorage/access"
	"moorage/management/client"
	memorystorage "moorage/storage/memory"
)

// If a requirement of a commit does not hold, the message has the present state and the last
// committer. Callers with describe on the table can list such refusals. Other callers learn nothing
// about them.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newGuardedWorld(t, memorystorage.New())
	w.warehouse("w")
	for _, ns := range []string{"a", "secret"} {
		w.must(root, "POST", "/v1/w/namespaces", `{"namespace":["`+ns+`"]}`)
		w.must(maker, "POST", "/v1/w/namespaces/"+ns+"/tables", `{"name":"hush","schema":`+schemaJSON+`}`)
	}
	const stale = `{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}],"updates":[]}`
	last := regexp.MustCompile(`Requirement failed: branch or tag main is missing, expected 7; the last commit was by corp:maker at 20\d\d-\S+Z"`)
	for _, ns := range []string{"a", "secret"} {
		answer := w.do(other, "POST", "/v1/w/namespaces/"+ns+"/tables/hush", stale, "X-Client-Version", "Iceberg 9")
		if answer.Code != 409 || !last.MatchString(answer.Body.String()) {
			t.Errorf("a stale commit: %d %s", answer.Code, answer.Body)
		}
	}
	w.must(root, "POST", "/v1/w/tables/rename", `{"source":{"namespace":["secret"],"name":"hush"},"destination":{"namespace":["a"],"name":"moved"}}`)
	of := w.objects()
	w.setPolicy(grantsAt(nil, root, access.Admin|access.Audit), grantsAt(of["w/a/hush"], ann, access.Describe), grantsAt(of["w/a/moved"], ann, access.Describe))
	for _, table := range []string{"hush", "moved"} {
		var list client.Refusals
		answer := w.must(ann, "GET", "/management/v1/refusals?warehouse=w&namespace=a&table="+table, "")
		if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || len(list.Refusals) != 1 || len(list.Nodes) != 1 || list.Nodes[0].Since.IsZero() {
			t.Fatalf("%s: %s", table, answer.Body)
		}
		r := list.Refusals[0]
		if r.Caller != other || r.Name != table || r.Type != "CommitFailedException" || r.Ref != "main" || r.Expected == nil || *r.Expected != 7 ||
			r.Found != nil || r.By != maker || r.LastAt.IsZero() || r.Change == "" || !strings.HasPrefix(r.Reason, "Requirement failed: ") {
			t.Errorf("%s: %s", table, answer.Body)
		}
		if strings.Contains(answer.Body.String(), "secret") {
			t.Errorf("a hidden name is in %s", answer.Body)
		}
	}
	for path, status := range map[string]int{
		"refusals?warehouse=w&namespace=secret": 404, "refusals?warehouse=w&namespace=secret&table=hush": 404, "refusals?warehouse=w&namespace=a": 403,
		"refusals?warehouse=w": 403, "refusals?warehouse=none": 404, "denials": 403, "top": 403,
	} {
		answer := w.do(ann, "GET", "/management/v1/"+path, "")
		if answer.Code != status || strings.Contains(answer.Body.String(), "hush") && !strings.Contains(path, "hush") {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}
