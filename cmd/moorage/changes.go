package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/internal/worker"
	"moorage/management/client"
)

const (
	// changesWait is the time for which one request waits for an event.
	changesWait = 55 * time.Second
	// changesRest is the pause after a failed request with --follow.
	changesRest = 2 * time.Second
)

// changes is the command changes.
func changes(ctx context.Context, p *person) error {
	query, err := p.changesQuery()
	if err != nil {
		return err
	}
	p.NoPager = p.NoPager || p.Follow // events are shown as they come
	for {
		var page client.ChangesPage
		asked := client.Request{Method: http.MethodGet, Path: client.Path("changes"), Query: query}
		err := p.server.Do(ctx, asked, &page)
		switch {
		case ctx.Err() != nil && p.Follow:
			return nil // with --follow, a signal is the normal end
		case err != nil && p.Follow && isPassing(err):
			fmt.Fprintln(p.env.Stderr, term.Clean(err.Error()))
			worker.Sleep(ctx, changesRest)
			continue
		case err != nil:
			return err
		}
		p.out.Now = p.env.Now()
		if err := p.printEvents(page.Events); err != nil {
			return err
		}
		if p.State != "" {
			if err := keepPosition(p.State, page.Next); err != nil {
				return err
			}
		}
		if page.AtEnd && !p.Follow {
			return nil
		}
		for _, name := range []string{"tail", "since"} {
			query.Del(name)
		}
		query.Set("after", page.Next)
		if p.Follow {
			query.Set("wait", changesWait.String())
		}
	}
}

// isPassing reports whether err is temporary, so that the same request may succeed later.
func isPassing(err error) bool {
	answered, ok := errors.AsType[*client.Error](err)
	return !ok || answered.Code == http.StatusTooManyRequests || answered.Code >= http.StatusInternalServerError
}

// changesQuery returns the parameters of the first request.
func (p *person) changesQuery() (url.Values, error) {
	query := url.Values{}
	set := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	set("kind", p.Kind)
	set("operation", strings.Join(p.Operations, ","))
	set("caller", strings.Join(p.Callers, ","))
	if n := p.Name; !n.IsAll && (n.Warehouse != "" || len(n.Levels) > 0) {
		set("warehouse", p.warehouseOf(n))
		levels := n.Levels
		if last := len(levels) - 1; last > 0 && !n.IsNamespace {
			levels = levels[:last]
			set("name", n.Levels[last])
		}
		set("namespace", client.JoinLevels(levels))
	}
	position := ""
	if p.State != "" {
		kept, err := os.ReadFile(p.State)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--state: %w", err)
		}
		position = strings.TrimSpace(string(kept))
	}
	switch {
	case position != "":
		set("after", position)
	case p.Since != "":
		set("since", p.Since)
	case p.State != "":
		set("after", "first")
	default:
		set("tail", strconv.Itoa(p.Tail))
	}
	return query, nil
}

// keepPosition atomically replaces the content of a file with a position.
func keepPosition(file, position string) error {
	next, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	_, err = fmt.Fprintln(next, position)
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("--state: %w", err), os.Remove(next.Name()))
	}
	return nil
}

// printEvents prints the events of a page.
func (p *person) printEvents(events []client.Event) error {
	if len(events) == 0 && (p.Follow || p.Output != cli.OutputJSON) {
		return nil
	}
	rows := make([]row, 0, len(events))
	for _, e := range events {
		name := p.nameOfEvent(e)
		rows = append(rows, row{name: name, json: e, cells: []term.Cell{
			term.Text(p.out.Time(e.Time)), term.Text(e.Operation), {Text: name, Style: term.Name}, term.Text(e.Caller),
			term.Text(noteOf(e)),
		}})
	}
	return p.rows(nil, rows)
}

// nameOfEvent returns the name of the object in the form of the command line.
func (p *person) nameOfEvent(e client.Event) string {
	if e.Warehouse == "" {
		return cmp.Or(e.Name, "server")
	}
	name := cli.Name{Warehouse: e.Warehouse, Levels: slices.Clone(e.Namespace)}
	if e.Name != "" {
		name.Levels = append(name.Levels, e.Name)
	}
	if e.Warehouse == p.Warehouse && len(name.Levels) > 0 {
		name.Warehouse = ""
	}
	return name.String()
}

// noteOf returns a further detail of an event: the former name, or the operation of the last
// snapshot.
func noteOf(e client.Event) string {
	var notes []string
	if e.Previous != nil {
		levels := append(slices.Clone(e.Previous.Namespace), e.Previous.Name)
		notes = append(notes, "was "+moorage.PersonLevels(levels...))
	}
	if e.Summary != nil && e.Summary.Operation != "" {
		notes = append(notes, e.Summary.Operation)
	}
	if e.Summary != nil && e.Summary.Files != nil {
		notes = append(notes, moorage.Counted(int(*e.Summary.Files), "file"))
	}
	if n := len(e.Members); n > 1 {
		notes = append(notes, fmt.Sprintf("%d commits", n))
	}
	if len(notes) == 0 && e.Client != "" {
		notes = append(notes, e.Client)
	}
	return strings.Join(notes, ", ")
}
