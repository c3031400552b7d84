package torture

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"moorage/testkit/servers"
)

const (
	viewsNamespace = "views"
	viewsCount     = 4 // names
	// viewVersionsMax is the number of versions after which a writer that sees a view drops it.
	// Writers that find no view then create it again.
	viewVersionsMax = 8
	// viewsAnswersMin is the number of answers, over all rounds, after which some view must have
	// been replaced, and some view dropped.
	viewsAnswersMin = 500
)

// viewWorld is the writers' knowledge of the views that all of them create, replace and drop.
type viewWorld struct {
	began           time.Time
	events          []servers.ViewEvent // since the server's last start, plus the events that explain its initial views
	versions, drops int                 // acknowledged
}

func viewName(number int) string { return fmt.Sprintf("v%d", number) }

// viewSight is a writer's knowledge of a view.
type viewSight struct {
	uuid     string
	versions int
	absent   bool
}

// workOnViews makes one call about one of the views. Mostly it replaces the view, regardless of
// concurrent changes. It creates a missing view, and drops one with many versions.
func (w *writer) workOnViews(ctx context.Context) servers.Answer {
	e := servers.ViewEvent{Name: viewName(w.random.IntN(viewsCount))}
	for number := range viewsCount { // first, views that others wait for
		if sight := w.sights[viewName(number)]; sight.absent || sight.versions >= viewVersionsMax {
			e.Name = viewName(number)
		}
	}
	sight := w.sights[e.Name]
	method, path, body := http.MethodPost, servers.ViewPath(viewsNamespace, e.Name), servers.Object(nil)
	w.calls++
	query := fmt.Sprintf("SELECT '%d.%d.%d' AS id", w.round, w.number, w.calls)
	switch {
	case sight.absent:
		e.Creates, e.Query = true, query
		path, body = servers.ViewsPath(viewsNamespace), servers.NewView(viewsNamespace, e.Name, query)
	case sight.versions >= viewVersionsMax:
		e.Drops, method = true, http.MethodDelete
	case w.random.IntN(5) == 0:
		method = http.MethodGet
	default:
		uuid := ""
		if w.random.IntN(2) == 0 {
			uuid = sight.uuid
		}
		e.Query, body = query, servers.NewVersion(viewsNamespace, uuid, query)
	}
	a, err := viewCall(ctx, w.client, w.viewsBegan, &e, method, path, body)
	if err != nil && a.Status < 500 { // work reports the others
		w.problems = append(w.problems, err.Error())
	}
	w.sights[e.Name] = viewSight{uuid: e.Seen.UUID, versions: len(e.Seen.Queries), absent: e.Absent}
	w.views = append(w.views, e)
	return a
}

// viewCall makes the call for e, and records its outcome.
func viewCall(ctx context.Context, c *servers.Client, began time.Time, e *servers.ViewEvent, method, path string, body servers.Object) (servers.Answer, error) {
	var sent any
	if body != nil {
		sent = body
	}
	e.From = time.Since(began)
	a := c.Send(ctx, method, path, sent)
	e.To = time.Since(began)
	return a, e.Take(a)
}

// take adds the events that a writer saw.
func (v *viewWorld) take(events []servers.ViewEvent) {
	v.events = append(v.events, events...)
	for _, e := range events {
		switch {
		case e.Outcome != servers.Acknowledged:
		case e.Drops:
			v.drops++
		case e.Query != "":
			v.versions++
		}
	}
}

// verify loads all views, and judges the events since the last time.
func (v *viewWorld) verify(t *testing.T, c *servers.Client) {
	t.Helper()
	var sights []servers.ViewEvent
	for number := range viewsCount {
		e := servers.ViewEvent{Name: viewName(number)}
		_, err := viewCall(t.Context(), c, v.began, &e, http.MethodGet, servers.ViewPath(viewsNamespace, e.Name), nil)
		report(t, err)
		sights = append(sights, e)
	}
	for _, problem := range v.judge(sights) {
		t.Error(problem)
	}
}

// judge returns the problems in the events up to sights, which cover all views. It keeps the events
// that explain the existing views.
func (v *viewWorld) judge(sights []servers.ViewEvent) (problems []string) {
	problems = servers.JudgeViews(append(v.events, sights...))
	var kept []servers.ViewEvent
	for _, e := range sights {
		for _, made := range v.events {
			if made.Query != "" && slices.Contains(e.Seen.Queries, made.Query) {
				kept = append(kept, made)
			}
		}
	}
	v.events = append(kept, sights...)
	return problems
}

// verifyCounts fails the test if no view was replaced, or none dropped, in at least viewsAnswersMin
// answers.
func (v *viewWorld) verifyCounts(t *testing.T, answers int64) {
	t.Helper()
	if answers >= viewsAnswersMin && (v.versions == 0 || v.drops == 0) {
		t.Errorf("%d versions and %d drops of views were acknowledged among %d answers", v.versions, v.drops, answers)
	}
}

// The judge finds a fault no matter how many rounds ago the view was right. Leftovers of one round
// are not reported in later rounds.
func TestViewsOverRounds(t *testing.T) {
	t.Parallel()
	sight := func(uuid string, queries ...string) servers.ViewEvent {
		return servers.ViewEvent{Name: "v0", Seen: servers.View{UUID: uuid, Queries: queries}}
	}
	created := sight("u", "a")
	created.Query, created.Creates = "a", true
	lost := servers.ViewEvent{Name: "v0", Query: "b", Outcome: servers.Unknown}
	dropped := servers.ViewEvent{Name: "v0", Drops: true}
	absent := servers.ViewEvent{Name: "v0", Absent: true, Outcome: servers.Refused}
	again := sight("w", "c")
	again.Query, again.Creates = "c", true
	type round []servers.ViewEvent // the last one is what was seen after the round
	before := []round{{created, lost, sight("u", "a", "b")}, {sight("u", "a", "b")}}
	for name, row := range map[string]struct {
		last []round
		want int
	}{
		"as it was":                {[]round{{sight("u", "a", "b")}}, 0},
		"dropped":                  {[]round{{dropped, absent}, {absent}, {again, sight("w", "c")}}, 0},
		"gone":                     {[]round{{absent}}, 1},
		"gone after an older drop": {[]round{{dropped, again, sight("w", "c")}, {absent}}, 1},
		"a version lost":           {[]round{{sight("u", "a")}}, 1},
		"back":                     {[]round{{dropped, absent}, {absent}, {sight("u", "a", "b")}}, 2}, // nobody made either
	} {
		v, clock, found := viewWorld{}, time.Duration(0), 0
		for _, r := range append(slices.Clone(before), row.last...) {
			for i := range r {
				clock += 2
				r[i].From, r[i].To = clock, clock+1
			}
			v.take(r[:len(r)-1])
			found += len(v.judge(r[len(r)-1:]))
		}
		if found != row.want {
			t.Errorf("%s: %d problems, want %d", name, found, row.want)
		}
	}
}
