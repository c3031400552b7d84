package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/access"
	"moorage/management/client"
	memorystorage "moorage/storage/memory"
)

var (
	listsFlag     = flag.Int("lists", 12, "how many random worlds are listed")
	listsSeedFlag = flag.Uint64("listsseed", 0, "seed of the random worlds that are listed; 0: a new one each time")
)

// listed is the answer of a list, of any kind.
type listed struct {
	Namespaces  [][]string              `json:"namespaces"`
	Identifiers []struct{ Name string } `json:"identifiers"`
	Next        *string                 `json:"next-page-token"`
}

func (l listed) names() (names []string) {
	for _, ns := range l.Namespaces {
		names = append(names, ns[len(ns)-1])
	}
	for _, ident := range l.Identifiers {
		names = append(names, ident.Name)
	}
	return names
}

// Whatever the page size, a list contains each object that the caller sees exactly once, and
// nothing else. No token contains a hidden name.
func TestListsHideWhatIsNotSeen(t *testing.T) {
	t.Parallel()
	seed := *listsSeedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-listsseed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range *listsFlag {
		w := newGuardedWorld(t, memorystorage.New())
		w.warehouse("w")
		people := []string{root, maker, ann}
		namespaces := []string{"outer", "middle", "inner"}
		w.must(root, "POST", "/v1/w/namespaces", `{"namespace":["outer"]}`)
		w.must(maker, "POST", "/v1/w/namespaces", `{"namespace":["middle"]}`)
		w.must(root, "POST", "/v1/w/namespaces", `{"namespace":["inner"]}`)
		for i := range 30 {
			by, in := people[random.IntN(3)], namespaces[random.IntN(3)]
			name := fmt.Sprintf("private%02d", i)
			switch random.IntN(4) {
			case 0:
				w.must(by, "POST", "/v1/w/namespaces/"+in+"/views", viewJSON(name))
			case 1:
				w.must(by, "POST", "/v1/w/namespaces", fmt.Sprintf(`{"namespace":[%q,%q]}`, in, name))
			default:
				w.must(by, "POST", "/v1/w/namespaces/"+in+"/tables", `{"name":"`+name+`","schema":`+schemaJSON+`}`)
			}
		}
		w.compareRandomLists(t, random)
	}
}

// compareRandomLists lists every container for every caller, under random policies.
func (w *guardedWorld) compareRandomLists(t *testing.T, random *rand.Rand) {
	t.Helper()
	objects := w.objects()
	names := make([]string, 0, len(objects))
	for name := range objects {
		names = append(names, name)
	}
	slices.Sort(names)
	for range 4 {
		var grants []access.Grants
		for _, name := range names {
			path := objects[name]
			if chance := random.IntN(10); chance < 3 && (len(path) > 2 || chance == 0) {
				all := access.Grantable(path[0].Kind).Each()
				grants = append(grants, grantsAt(path, ann, all[random.IntN(len(all))]))
			}
		}
		w.setPolicy(grants...)
		snapshot := access.New(1, access.Records{Grants: grants})
		for _, caller := range []string{ann, maker, other} {
			who, objects := snapshot.Who(access.Caller{Name: caller}), shownTo(caller, objects)
			for _, name := range names {
				if path := objects[name]; path[0].Kind == access.Warehouse || path[0].Kind == access.Namespace {
					w.compareList(t, random, who, caller, name, objects)
				}
			}
		}
	}
}

// compareList lists the children of one container of each kind.
func (w *guardedWorld) compareList(t *testing.T, random *rand.Rand, who *access.Who, caller, container string,
	objects map[string][]access.Object) {
	t.Helper()
	ns := strings.Split(container, "/")[1:]
	joined := url.PathEscape(strings.Join(ns, "\x1f"))
	lists := map[access.Kind]string{access.Namespace: "/v1/w/namespaces?"}
	if len(ns) > 0 {
		lists[access.Namespace] += "parent=" + joined + "&"
		lists[access.Table] = "/v1/w/namespaces/" + joined + "/tables?"
		lists[access.View] = "/v1/w/namespaces/" + joined + "/views?"
	}
	w.compareObjects(t, random, who, caller, container, objects)
	for kind, at := range lists {
		var seen, hidden []string
		for name, path := range objects {
			short, inside := strings.CutPrefix(name, container+"/")
			if !inside || strings.Contains(short, "/") || path[0].Kind != kind {
				continue
			}
			if who.Seen(path) {
				seen = append(seen, short)
			} else {
				hidden = append(hidden, short)
			}
		}
		for _, size := range []int{0, 1 + random.IntN(4), 1000} {
			got, ok := w.pages(t, caller, at, size, hidden)
			if ok != who.Seen(objects[container]) {
				t.Errorf("%s lists %s: %v, sees it %v", caller, at, ok, who.Seen(objects[container]))
			}
			if !ok {
				continue
			}
			slices.Sort(got)
			if len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Errorf("%s lists %s in pages of %d with repetitions: %q", caller, at, size, got)
			}
			for _, name := range got {
				if !slices.Contains(seen, name) {
					t.Errorf("%s lists %s in pages of %d and is told of %q", caller, at, size, name)
				}
			}
			for _, name := range seen {
				if !slices.Contains(got, name) {
					t.Errorf("%s lists %s in pages of %d and is not told of %q", caller, at, size, name)
				}
			}
		}
	}
}

// compareObjects lists the objects in one container through the management API, and searches for
// all names.
func (w *guardedWorld) compareObjects(t *testing.T, random *rand.Rand, who *access.Who, caller, container string,
	objects map[string][]access.Object) {
	t.Helper()
	if !who.Seen(objects[container]) {
		return
	}
	var direct, inside, found, hidden []string
	for name, path := range objects {
		short, within := strings.CutPrefix(name, container+"/")
		last := name[strings.LastIndexByte(name, '/')+1:]
		switch isPrivate := strings.HasPrefix(last, "private"); {
		case !who.Seen(path):
			hidden = append(hidden, last)
			continue
		case isPrivate:
			found = append(found, name)
		}
		if within {
			inside = append(inside, name)
			if !strings.Contains(short, "/") {
				direct = append(direct, name)
			}
		}
	}
	query := "/management/v1/objects?warehouse=w&namespace=" + url.QueryEscape(strings.Join(strings.Split(container, "/")[1:], "\x1f"))
	for _, tt := range []struct {
		path string
		want []string
	}{
		{query, direct}, {query + "&recursive=true", inside}, {"/management/v1/search?q=private&limit=200", found},
	} {
		size := ""
		if strings.Contains(tt.path, "/objects") {
			size = fmt.Sprint("&pageSize=", 1+random.IntN(6))
		}
		got := w.rows(t, who, caller, tt.path+size, objects, hidden)
		slices.Sort(got)
		if slices.Sort(tt.want); !slices.Equal(got, tt.want) {
			t.Errorf("%s is answered by %s%s\n%q, want\n%q", caller, tt.path, size, got, tt.want)
		}
	}
}

// rows returns the names of all rows in the answers of the management API. The answers must not
// contain hidden names, and only a caller with describe gets more than names.
func (w *guardedWorld) rows(t *testing.T, who *access.Who, caller, path string, objects map[string][]access.Object,
	hidden []string) (names []string) {
	t.Helper()
	token := ""
	for range 1000 {
		answer := w.do(caller, "GET", path+"&pageToken="+url.QueryEscape(token), "")
		if strings.Contains(path, "/search") {
			answer = w.do(caller, "GET", path, "")
		}
		var page client.ObjectsPage
		if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || answer.Code != 200 {
			t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
		}
		for _, row := range page.Objects {
			name := strings.Join(append([]string{row.Warehouse}, row.Levels()...), "/")
			if describes := who.Decide(objects[name], access.Describe).Outcome == access.Allow; describes != (row.ID != "") {
				t.Errorf("%s, who may describe it %v, is told of %s: %+v", caller, describes, name, row)
			}
			names = append(names, name)
		}
		plain, _ := base64.RawURLEncoding.DecodeString(page.Next())
		for _, name := range hidden {
			if strings.Contains(answer.Body.String(), `"`+name+`"`) || strings.Contains(string(plain), `"`+name+`"`) {
				t.Errorf("%s is told of %q by %s: %s", caller, name, path, answer.Body)
			}
		}
		if token = page.Next(); token == "" {
			return names
		}
	}
	t.Errorf("%s has no last page", path)
	return nil
}

// pages returns all names of a list, requested in pages of the given size. With size 0 it requests
// a single answer. ok is false if the answer is 404.
func (w *guardedWorld) pages(t *testing.T, caller, at string, size int, hidden []string) (names []string, ok bool) {
	t.Helper()
	token := ""
	for range 1000 {
		path := at
		if size > 0 {
			path += fmt.Sprintf("pageSize=%d&pageToken=%s", size, url.QueryEscape(token))
		}
		answer := w.do(caller, "GET", path, "")
		if answer.Code == 404 {
			return nil, false
		}
		var page listed
		if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || answer.Code != 200 {
			t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
		}
		names = append(names, page.names()...)
		if page.Next == nil || *page.Next == "" {
			return names, true
		}
		token = *page.Next
		for _, encoding := range []*base64.Encoding{base64.RawURLEncoding, base64.URLEncoding, base64.StdEncoding, base64.RawStdEncoding} {
			plain, _ := encoding.DecodeString(token)
			for _, name := range hidden {
				if strings.Contains(string(plain), name) || strings.Contains(token, name) {
					t.Errorf("the token %s of %s names %q", token, path, name)
				}
			}
		}
	}
	t.Errorf("%s has no last page", at)
	return nil, false
}
