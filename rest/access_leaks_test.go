package rest_test

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moorage/access"
	"moorage/registry"
	"moorage/testkit/scale"
)

// hiddenWord occurs in the names of all objects that are hidden from the callers in the tests
// below, and nowhere else. absentWord occurs in no name.
const (
	hiddenWord = "classified"
	absentWord = "classyfied"
)

// request is a request from one of the matrices, without the expected privileges.
type request struct{ method, path, body string }

func (r request) isRead() bool { return r.method == "GET" || r.method == "HEAD" }

func (r request) String() string { return strings.TrimSpace(r.method + " " + r.path + " " + r.body) }

// These match the names a, t and v in a request, where they name an object of a lake.
var (
	namespaceNames = regexp.MustCompile(`(/namespaces/|namespace=|parent=|path=|"namespace":\[")a\b`)
	tableNames     = regexp.MustCompile(`(/tables/|table=|"table":"|"name":"|%1F)t\b`)
	viewNames      = regexp.MustCompile(`(/views/|view=|"view":"|"name":"|%1F)v\b`)
)

// about returns the request with other names for the namespace a, the table t and the view v.
func (r request) about(namespace, table, view string) request {
	replace := func(text string) string {
		text = namespaceNames.ReplaceAllString(text, "${1}"+namespace)
		text = tableNames.ReplaceAllString(text, "${1}"+table)
		return viewNames.ReplaceAllString(text, "${1}"+view)
	}
	return request{r.method, replace(r.path), replace(r.body)}
}

// hide makes the namespace w/classified. Tables and views in it are renamed to w/a and back,
// dropped, and committed to, alone and together with w/a/t. The callers in the tests may see the
// locations of objects that were moved to w/a, so these locations do not contain the word.
func (l *lake) hide() (metadataLocation string) {
	l.t.Helper()
	const (
		namespaces = "/v1/w/namespaces"
		hidden     = namespaces + "/" + hiddenWord
		about      = "?warehouse=w&namespace=" + hiddenWord + "&table=" + hiddenWord + "-t"
		change     = `"requirements":[],"updates":[{"action":"set-properties","updates":{"` + hiddenWord + `":"x"}}]`
		innocent   = `"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"x"}}]`
	)
	made := 0
	table := func(in, name string) {
		made++
		l.must(root, "POST", in+"/tables", fmt.Sprintf(`{"name":%q,"location":"file:///lake/w/h%d","schema":%s}`, name, made, schemaJSON))
	}
	view := func(in, name string) {
		made++
		body := strings.Replace(viewJSON(name), "{", fmt.Sprintf(`{"location":"file:///lake/w/h%d",`, made), 1)
		l.must(root, "POST", in+"/views", body)
	}
	rename := func(kind, fromNamespace, from, toNamespace, to string) {
		l.must(root, "POST", "/v1/w/"+kind+"/rename", fmt.Sprintf(`{"source":{"namespace":[%q],"name":%q},`+
			`"destination":{"namespace":[%q],"name":%q}}`, fromNamespace, from, toNamespace, to))
	}
	l.must(root, "POST", namespaces, `{"namespace":["`+hiddenWord+`"],"properties":{"`+hiddenWord+`":"x"}}`)
	l.must(root, "POST", namespaces, `{"namespace":["`+hiddenWord+`","`+hiddenWord+`-inner"]}`)
	l.must(root, "POST", namespaces, `{"namespace":["`+hiddenWord+`-gone"]}`)
	l.must(root, "DELETE", hidden+"-gone", "")
	for _, name := range []string{"t", "out", "gone", "purged"} {
		table(hidden, hiddenWord+"-"+name)
	}
	view(hidden, hiddenWord+"-v")
	view(hidden, hiddenWord+"-shown")
	table(namespaces+"/a", "in")
	table(namespaces+"/a", "visitor")

	rename("tables", hiddenWord, hiddenWord+"-out", "a", "moved")
	rename("views", hiddenWord, hiddenWord+"-shown", "a", "movedview")
	rename("tables", "a", "in", hiddenWord, hiddenWord+"-in")
	rename("tables", "a", "visitor", hiddenWord, hiddenWord+"-visitor")
	for _, name := range []string{"-gone", "-visitor", "-purged?purgeRequested=true"} {
		l.must(root, "DELETE", hidden+"/tables/"+hiddenWord+name, "")
	}
	l.must(root, "POST", hidden+"/tables/"+hiddenWord+"-t", "{"+change+"}")
	l.must(root, "POST", "/v1/w/transactions/commit", `{"table-changes":[`+
		`{"identifier":{"namespace":["`+hiddenWord+`"],"name":"`+hiddenWord+`-t"},`+change+`},`+
		`{"identifier":{"namespace":["a"],"name":"t"},`+innocent+`}]}`)
	l.must(root, "POST", namespaces+"/a/tables/moved", "{"+innocent+"}")
	refused := `{"requirements":[{"type":"assert-ref-snapshot-id","ref":"` + hiddenWord + `","snapshot-id":1}],"updates":[]}`
	if answer := l.do(root, "POST", hidden+"/tables/"+hiddenWord+"-t", refused); answer.Code != 409 {
		l.t.Fatalf("a commit whose requirement fails is answered %d %s", answer.Code, answer.Body)
	}
	l.must(root, "PUT", "/management/v1/labels"+about, `{"object-labels":{"`+hiddenWord+`":"x"}}`)
	l.must(root, "PUT", "/management/v1/maintenance/policies/icebergSnapshotManagement"+about, `{"status":"disabled"}`)
	l.must(root, "POST", "/management/v1/grants", `{"changes":[{"change":"grant","grantee":"staff","privileges":["describe"],`+
		`"object":{"warehouse":"w","namespace":["`+hiddenWord+`"],"table":"`+hiddenWord+`-t"}}]}`)
	l.epoch += 100 // the calls above have raised the epoch
	return metadataLocationOf(l.t, l.must(root, "GET", hidden+"/tables/"+hiddenWord+"-t", ""))
}

// requests returns the requests of both matrices, about their usual objects and about the objects
// that were once hidden. It also returns lists and searches, and requests for the location and the
// file of a hidden table. Reads come first.
func (l *lake) requests(metadataLocation string) (all []request) {
	for _, c := range l.cells() {
		all = append(all, request{c.method, c.path, c.body})
	}
	for _, c := range managementCells() {
		for _, id := range l.droppedIDs() { // including hidden objects
			r := request{c.method, "/management/v1" + strings.ReplaceAll(c.path, "{gone}", id), strings.ReplaceAll(c.body, "{gone}", id)}
			if !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	for _, path := range []string{
		"changes?tail=100", "changes?since=1h", "changes?limit=1", "changes?warehouse=w", "changes?warehouse=w&namespace=a",
		"changes?warehouse=w&namespace=a&name=moved", "changes?warehouse=w&namespace=a&name=in",
		"changes?warehouse=w&namespace=a&name=visitor", "changes?kind=table", "changes?operation=drop-table,rename-table",
		"changes?caller=" + root, "search?q=" + hiddenWord[:5], "search?q=moved", "search?q=t&warehouse=w", "objects?warehouse=w",
		"objects?warehouse=w&recursive=true&pageSize=2", "objects?warehouse=w&recursive=true&kind=table",
		"objects?warehouse=w&prefix=" + hiddenWord[:3], "object?warehouse=w&path=a%1Fvisitor",
		"dropped?warehouse=w&recursive=true", "dropped?warehouse=w&ended=true", "dropped?warehouse=w&namespace=a&ended=true",
		"dropped?warehouse=w&namespace=a&name=visitor",
		"metadata?warehouse=w&namespace=a&view=v&version=now~1", "diff?warehouse=w&namespace=a&view=v&from=now~3",
		"metadata?warehouse=w&namespace=a&table=t&version=now~1", "diff?warehouse=w&namespace=a&table=t&from=now~3",
	} {
		all = append(all, request{"GET", "/management/v1/" + path, ""})
	}
	for _, r := range slices.Clone(all) {
		if other := r.about("a", "moved", "movedview"); other != r {
			all = append(all, other)
		}
	}
	const tables = "/v1/w/namespaces/a/tables"
	all = append(all,
		request{"POST", tables, `{"name":"new","location":"file:///lake/w/h1","schema":` + schemaJSON + `}`},
		request{"POST", tables, `{"name":"new","location":"file:///lake/w/h1/inside","schema":` + schemaJSON + `}`},
		request{"POST", tables, `{"name":"new","location":"file:///lake/w/h3","schema":` + schemaJSON + `}`},
		request{"POST", tables + "/t", `{"requirements":[],"updates":[{"action":"set-location","location":"file:///lake/w/h1"}]}`},
		request{"POST", "/v1/w/namespaces/a/register", `{"name":"new","metadata-location":"` + metadataLocation + `"}`},
		request{"POST", "/v1/w/namespaces/a/register", `{"name":"t","overwrite":true,"metadata-location":"` + metadataLocation + `"}`})
	slices.SortStableFunc(all, func(a, b request) int {
		switch {
		case a.isRead() == b.isRead():
			return 0
		case a.isRead():
			return -1
		}
		return 1
	})
	return all
}

// droppedIDs returns the ids of the dropped tables and views.
func (l *lake) droppedIDs() (ids []string) {
	l.t.Helper()
	for _, record := range l.list(registry.TablePointer) {
		if record.State.IsDropped() {
			ids = append(ids, record.Key.ID)
		}
	}
	return ids
}

// textOf returns the text of an answer with its headers, and adds decoded forms of the words in it.
func textOf(answer *httptest.ResponseRecorder) string {
	text := answer.Body.String()
	for name, values := range answer.Header() {
		text += "\n" + name + ": " + strings.Join(values, ", ")
	}
	for _, word := range encodedWord.FindAllString(text, -1) {
		for _, encoding := range []*base64.Encoding{base64.RawURLEncoding, base64.RawStdEncoding} {
			plain, _ := encoding.DecodeString(word)
			text += "\n" + string(plain)
		}
	}
	return strings.ToLower(text)
}

var encodedWord = regexp.MustCompile(`[A-Za-z0-9_+/-]{12,}`)

// TestHiddenNamesAreInNoAnswer uses callers with privileges only on one namespace, or on tables in
// it. No operation may reveal the name of another namespace, or of objects that are or were in it.
// A request for a hidden object gets the same answer as a request for an object that does not
// exist.
func TestHiddenNamesAreInNoAnswer(t *testing.T) {
	t.Parallel()
	on := func(privileges access.Privileges, names ...string) func(map[string][]access.Object) []access.Grants {
		return func(objects map[string][]access.Object) (grants []access.Grants) {
			for _, name := range names {
				path := objects[name]
				grants = append(grants, grantsAt(path, ann, privileges&access.Grantable(path[0].Kind)))
			}
			return grants
		}
	}
	var all access.Privileges
	for _, each := range access.Every() {
		all |= each
	}
	for name, tt := range map[string]struct {
		caller string
		grants func(map[string][]access.Object) []access.Grants
	}{
		"describe":   {ann, on(access.Describe, "w/a")},
		"everything": {ann, on(all, "w/a")},
		"two tables": {ann, on(all, "w/a/moved", "w/a/movedview")},
		"the owner":  {maker, on(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newManagedLake(t, "")
			requests := l.requests(l.hide())
			for _, path := range []string{"changes", "objects?warehouse=w", "search?q=" + hiddenWord} {
				if answer := l.do(root, "GET", "/management/v1/"+path, ""); !strings.Contains(textOf(answer), hiddenWord) {
					t.Errorf("%s does not tell the administrator what is hidden from others: %s", path, answer.Body)
				}
			}
			l.setPolicy(tt.grants(l.objects())...)
			drawn := scale.Sample(t)
			for _, r := range requests {
				if !drawn() {
					continue
				}
				if r.isRead() {
					l.compareHidden(t, tt.caller, r)
				}
				if answer := l.do(tt.caller, r.method, r.path, r.body); strings.Contains(textOf(answer), hiddenWord) {
					t.Errorf("%s is answered %d %s", r, answer.Code, answer.Body)
				}
			}
		})
	}
}

// compareHidden compares the answers to a request about hidden objects, and about objects that do
// not exist.
func (l *lake) compareHidden(t *testing.T, caller string, r request) {
	t.Helper()
	hidden := r.about(hiddenWord, hiddenWord+"-t", hiddenWord+"-v")
	absent := r.about(absentWord, absentWord+"-t", absentWord+"-v")
	if hidden == r {
		return
	}
	got, want := l.do(caller, hidden.method, hidden.path, hidden.body), l.do(caller, absent.method, absent.path, absent.body)
	text := strings.ReplaceAll(withoutRequest(got), hiddenWord, absentWord)
	if got.Code != want.Code || text != withoutRequest(want) {
		t.Errorf("%s is answered\n%d %s, want that of nothing:\n%d %s", hidden, got.Code, text, want.Code, want.Body)
	}
}
