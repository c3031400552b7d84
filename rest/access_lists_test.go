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
	memorystorage "moorage/storage/memory"
)

var (
	listsFlag     = flag.Int("lists", 12, "how many random worlds are listed")
	listsSeedFlag = flag.Uint64("listsseed", 0, "seed of the random worlds that are listed; 0: a new one each time")
)

// listed is what a list answers, of whatever kind.
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

// Lists and their pages name what the caller sees, once each, and nothing else, whatever the sizes
// of the pages. No token names what is hidden.
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

// compareRandomLists lists every container for everybody, under random policies.
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

// pages returns all names of a list, in pages of size; 0: in one answer. ok is false if the list is
// answered 404.
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
