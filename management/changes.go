package management

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/catalog/history"
	"moorage/internal/web"
	"moorage/management/client"
	"moorage/registry"
)

// History has the methods of *history.Feed.
type History interface {
	Read(ctx context.Context, caller moorage.Caller, q history.Query) (history.Page, error)
	Of(ctx context.Context, caller moorage.Caller, asked history.Asked) (history.History, error)
}

// noHistory is the History of a server that has no feed of changes.
type noHistory struct{}

// Read implements History.
func (noHistory) Read(context.Context, moorage.Caller, history.Query) (history.Page, error) {
	return history.Page{}, errNoHistory
}

// Of implements History.
func (noHistory) Of(context.Context, moorage.Caller, history.Asked) (history.History, error) {
	return history.History{}, errNoHistory
}

var errNoHistory = moorage.Errorf(moorage.KindUnsupported, "This server has no feed of changes")

// listChanges answers with a page of the feed of changes.
func (s *server) listChanges(w http.ResponseWriter, r *http.Request) error {
	query, err := s.changesQuery(r)
	if err != nil {
		return err
	}
	query.Stopping = s.config.Stopping
	page, err := s.config.History.Read(r.Context(), web.CallerOf(r), query)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.ChangesPage{
		Events: each(page.Events, eventOf), Next: page.Next, First: page.First, AtEnd: page.AtEnd,
	})
}

// changesParameters are the parameters of listChanges.
var changesParameters = []string{
	"after", "tail", "within", "since", "limit", "wait",
	"warehouse", "namespace", "name", "kind", "operation", "caller",
}

// changesQuery reads the parameters of a request.
func (s *server) changesQuery(r *http.Request) (query history.Query, err error) {
	for name := range r.URL.Query() {
		if !slices.Contains(changesParameters, name) {
			return query, moorage.Errorf(moorage.KindBadRequest, "Unknown parameter %q: it is one of %s",
				moorage.Cut(name, moorage.ShownBytesMax), strings.Join(changesParameters, ", "))
		}
	}
	q := web.QueryOf(r)
	text := func(name string) string {
		value, _, broken := q.Text(name)
		err = errors.Join(err, broken)
		return value
	}
	number := func(name string, most int) (n int) {
		value, given, broken := q.Text(name)
		if given && broken == nil {
			if n, broken = strconv.Atoi(value); broken != nil || n < 1 || n > most {
				broken = moorage.Errorf(moorage.KindBadRequest, "Invalid %s: it is a number from 1 to %d", name, most)
			}
		}
		err = errors.Join(err, broken)
		return n
	}
	query = history.Query{
		After: text("after"), Tail: number("tail", history.EventsMax), Limit: number("limit", history.EventsMax),
		Filter: history.Filter{
			Warehouse: text("warehouse"), Name: text("name"), Kinds: wordsOf(text("kind")),
			Operations: wordsOf(text("operation")), Callers: wordsOf(text("caller")),
		},
	}
	if namespace := text("namespace"); namespace != "" {
		query.Filter.Namespace = strings.Split(namespace, moorage.LevelSeparator)
	}
	if since := text("since"); since != "" && err == nil {
		query.From, err = s.parseSince(since)
	}
	if wait := text("wait"); wait != "" && err == nil {
		if query.Wait, err = time.ParseDuration(wait); err != nil || query.Wait < 0 || query.Wait > history.WaitMax {
			err = moorage.Errorf(moorage.KindBadRequest, "Invalid wait: it is a duration from 0s to %s",
				history.WaitMax)
		}
	}
	if within := text("within"); within != "" && err == nil {
		query.Within, err = time.ParseDuration(within)
		if err != nil || query.Within <= 0 || query.Within > history.WithinMax {
			err = moorage.Errorf(moorage.KindBadRequest, "Invalid within: it is a duration from 1ms to %s",
				history.WithinMax)
		}
	}
	begins := 0
	for _, given := range []bool{query.After != "", query.Tail > 0, !query.From.IsZero()} {
		if given {
			begins++
		}
	}
	if err == nil && begins > 1 {
		err = moorage.Errorf(moorage.KindBadRequest, "A request has one of after, tail and since")
	}
	return query, err
}

// parseSince reads a time, or a duration before now.
func (s *server) parseSince(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := time.ParseDuration(text)
	if err != nil || ago <= 0 {
		return time.Time{}, moorage.Errorf(moorage.KindBadRequest,
			"Invalid since: it is a time such as 2026-11-21T10:00:00Z, or a duration such as 2h")
	}
	return s.config.Now().Add(-ago), nil
}

// wordsOf splits a list at commas.
func wordsOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// eventOf returns an event in the form of the API.
func eventOf(e history.Event) client.Event {
	event := client.Event{
		ID: e.ID, Position: e.Position, Time: e.Time, Operation: e.Operation, Count: e.Count, Kind: e.Kind,
		Warehouse: e.Ident.Warehouse, Namespace: e.Ident.Namespace, Name: e.Ident.Name, UUID: e.UUID,
		Caller: e.Caller, Client: e.Client, RequestID: e.RequestID, TraceID: e.TraceID, Verb: e.Verb,
		MetadataLocation: e.MetadataLocation, PreviousMetadataLocation: e.PreviousMetadataLocation,
		Purge: e.Purge, Actions: e.Actions, Summary: eventSummaryOf(e.Summary), Version: e.Version,
		Members: each(e.Members, func(m registry.Member) client.EventMember {
			return client.EventMember{
				Caller: m.Principal, Client: m.Client, RequestID: m.RequestID, TraceID: m.TraceID,
				Time: m.Time, Snapshot: m.Snapshot,
			}
		}),
	}
	if !e.ObjectID.IsZero() {
		event.ObjectID = e.ObjectID.String()
	}
	if e.Delta != nil {
		event.Delta = (*client.EventDelta)(e.Delta)
	}
	if e.Previous != nil {
		event.Previous = &client.EventName{Namespace: e.Previous.Namespace, Name: e.Previous.Name}
	}
	return event
}

func eventSummaryOf(summary *registry.Summary) *client.EventSummary {
	if summary == nil {
		return nil
	}
	number := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	return &client.EventSummary{
		Operation: summary.Operation, Engine: summary.Engine, Snapshot: number(summary.Snapshot),
		Snapshots: number(summary.Snapshots), Refs: number(summary.Refs), Rows: number(summary.Rows),
		Files: number(summary.Files), Deletes: number(summary.Deletes), Bytes: number(summary.Bytes),
	}
}
