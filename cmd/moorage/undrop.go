package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
)

// undropsAtOnce is the number of objects that an undrop of a namespace brings back at the same
// time.
const undropsAtOnce = 16

// undropObject is the command undrop.
func undropObject(ctx context.Context, p *person) error {
	if p.Recursive {
		return p.undropAll(ctx)
	}
	asked := client.UndropRequest{ID: p.ID, Replace: p.Replace, MakeNamespace: p.MakeNamespace}
	if last := len(p.Name.Levels) - 1; last >= 0 {
		if last == 0 || p.Name.IsNamespace {
			return cli.Usage(p.Name.String() + " is a namespace: add the name of the table, or -R for all in it")
		}
		asked.Warehouse = p.warehouseOf(p.Name)
		asked.Namespace, asked.Name = p.Name.Levels[:last], p.Name.Levels[last]
	}
	target := p.Name
	if len(p.To.Levels) > 0 {
		to := p.To.Levels
		if p.To.IsNamespace {
			if asked.Name == "" {
				return cli.Usage("--as takes the new name too, because --id names no object")
			}
			to = append(to[:len(to):len(to)], asked.Name)
		}
		if len(to) < 2 {
			return cli.Usage("--as takes a name with a namespace, as in sales." + p.To.String())
		}
		asked.As = &client.Identifier{Namespace: to[:len(to)-1], Name: to[len(to)-1]}
		target = cli.Name{Warehouse: p.Name.Warehouse, Levels: to}
	}
	if p.Replace && len(target.Levels) > 0 {
		if err := p.askToReplace(ctx, target); err != nil {
			return err
		}
	}
	var done client.Undropped
	path := client.RootManagement + client.Path("undrop")
	if err := p.change(ctx, http.MethodPost, path, nil, asked, &done); err != nil || p.DryRun {
		return err
	}
	was := ""
	if asked.Name != "" {
		was = moorage.PersonLevels(append(asked.Namespace[:len(asked.Namespace):len(asked.Namespace)], asked.Name)...)
	}
	p.done("%s", p.backLine(was, done))
	for _, warning := range done.Warnings {
		p.done("%s.", warning)
	}
	return nil
}

// askToReplace asks the user before a live object is dropped because another object gets its name.
func (p *person) askToReplace(ctx context.Context, name cli.Name) error {
	present, err := p.present(ctx, name)
	if err != nil || present.name == "" {
		return err
	}
	question := p.costOf(present, []object{present}) + " It can come back in its turn."
	if err := p.confirm(ctx, question, ""); err != nil {
		return err
	}
	return p.unchanged(ctx, present)
}

// present returns the live table or view with a name. If there is none, the name of the result is
// empty.
func (p *person) present(ctx context.Context, name cli.Name) (object, error) {
	last := len(name.Levels) - 1
	for _, kind := range []string{kindTable, kindView} {
		o := object{kind: kind, warehouse: p.warehouseOf(name), namespace: name.Levels[:last], name: name.Levels[last]}
		err := p.get(ctx, o.path(), nil, &o.loaded)
		if err == nil {
			o.row, err = p.rowOf(ctx, o)
		}
		if err == nil || !isMissing(err) {
			return o, err
		}
	}
	return object{}, nil
}

// backLine describes an object that has been brought back. was is its last name, or "" if that is
// not known.
func (p *person) backLine(was string, done client.Undropped) string {
	is := moorage.PersonLevels(append(done.Namespace[:len(done.Namespace):len(done.Namespace)], done.Name)...)
	text := is + " is back"
	if was != "" && was != is {
		text = was + " is back as " + is
	}
	if s := done.Summary; s != nil && s.Rows != nil {
		text += fmt.Sprintf(": %s rows in %s", countOf(s.Rows), filesOf(s.Files))
		if s.At != nil {
			text += ", as of " + p.out.Time(*s.At)
		}
	}
	return text + "."
}

// droppedIn returns the objects that were dropped in a namespace, or in the whole warehouse.
func (p *person) droppedIn(ctx context.Context, name cli.Name, isRecursive, isEnded bool) (
	all []client.Dropped, err error) {
	query := url.Values{"warehouse": {p.warehouseOf(name)}, "pageSize": {"1000"}}
	if len(name.Levels) > 0 {
		query.Set("namespace", client.JoinLevels(name.Levels))
	}
	if isRecursive {
		query.Set("recursive", "true")
	}
	if isEnded {
		query.Set("ended", "true")
	}
	asked := client.Request{Method: http.MethodGet, Path: client.Path("dropped"), Query: query}
	err = client.Pages(ctx, p.server, asked, func(page client.DroppedPage) bool {
		all = append(all, page.Dropped...)
		return true
	})
	return all, err
}

// droppedCalled returns the dropped tables and views with a name, the latest drop first.
func (p *person) droppedCalled(ctx context.Context, warehouse string, levels []string) ([]client.Dropped, error) {
	last := len(levels) - 1
	if last < 1 {
		return nil, nil
	}
	query := url.Values{
		"warehouse": {warehouse}, "namespace": {client.JoinLevels(levels[:last])}, "name": {levels[last]},
	}
	var page client.DroppedPage
	err := p.get(ctx, client.RootManagement+client.Path("dropped"), query, &page)
	return page.Dropped, err
}

// undropAll brings back all dropped objects in a namespace that the command line selects. If
// several have the same name, it brings back the one that was dropped last.
func (p *person) undropAll(ctx context.Context) error {
	all, err := p.droppedIn(ctx, p.Name, true, false)
	if err != nil {
		return err
	}
	since, err := p.sinceTime()
	if err != nil {
		return err
	}
	var chosen, kept []client.Dropped
	seen := make(map[string]bool)
	for _, each := range all {
		name := moorage.PersonLevels(each.Levels()...)
		switch {
		case each.At.Before(since), len(p.Callers) > 0 && !slices.Contains(p.Callers, each.By), seen[name]:
			continue
		case each.Undrop != client.UndropYes && !p.MakeNamespace && !p.Replace: // these flags may remove the reason
			kept = append(kept, each)
		default:
			chosen = append(chosen, each)
		}
		seen[name] = true
	}
	for _, each := range kept {
		fmt.Fprintf(p.env.Stderr, "left out: %s. %s\n", term.Clean(moorage.PersonLevels(each.Levels()...)), each.Undrop)
	}
	if len(chosen) == 0 {
		return cli.No("nothing in %s can come back", cmp.Or(p.Name.String(), p.warehouseOf(p.Name)))
	}
	question := fmt.Sprintf("Bring back %s: %s.", moorage.Counted(len(chosen), "object"),
		term.Clean(firstNames(chosen)))
	if err := p.confirm(ctx, question, ""); err != nil {
		return err
	}
	return p.undropEach(ctx, chosen)
}

// namesShown is the maximum number of names in a question.
const namesShown = 5

// firstNames returns the first namesShown names of a list.
func firstNames(all []client.Dropped) string {
	var names []string
	for _, each := range all[:min(len(all), namesShown)] {
		names = append(names, moorage.PersonLevels(each.Levels()...))
	}
	text := strings.Join(names, ", ")
	if more := len(all) - namesShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// undropEach brings objects back, several at a time. One failure does not stop the others. Each
// object is one request, so the command can be repeated.
func (p *person) undropEach(ctx context.Context, chosen []client.Dropped) error {
	failures := make([]error, len(chosen))
	places := make(chan struct{}, undropsAtOnce)
	var working sync.WaitGroup
	bar, end := p.progress("undrop", len(chosen))
	defer end()
	for i, each := range chosen {
		if p.DryRun {
			body := client.UndropRequest{ID: each.ID, Replace: p.Replace, MakeNamespace: p.MakeNamespace}
			err := p.printRequest(http.MethodPost, client.RootManagement+client.Path("undrop"), nil, body)
			if err != nil {
				return err
			}
			continue
		}
		places <- struct{}{}
		working.Go(func() {
			defer func() { <-places }()
			asked := client.UndropRequest{ID: each.ID, Replace: p.Replace, MakeNamespace: p.MakeNamespace}
			var back client.Undropped
			path := client.RootManagement + client.Path("undrop")
			failures[i] = p.change(ctx, http.MethodPost, path, nil, asked, &back)
			bar.Add(1)
		})
	}
	working.Wait()
	end()
	var failed []string
	for i, err := range failures {
		if err != nil {
			failed = append(failed, moorage.PersonLevels(chosen[i].Levels()...))
			fmt.Fprintf(p.env.Stderr, "%s: %s\n", term.Clean(moorage.PersonLevels(chosen[i].Levels()...)), err)
		}
	}
	if p.DryRun {
		return nil
	}
	p.done("%s of %d came back.", moorage.Counted(len(chosen)-len(failed), "object"), len(chosen))
	if len(failed) > 0 {
		return errors.New("some did not come back: repeat the command, or see above")
	}
	return nil
}

// sinceTime returns the time given by --since: a time, or a duration ago. It returns the zero time
// without the flag.
func (p *person) sinceTime() (time.Time, error) {
	if p.Since == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, p.Since); err == nil {
		return at, nil
	}
	ago, err := time.ParseDuration(p.Since)
	return p.out.Now.Add(-ago), err
}

// listDropped is the command ls with --dropped.
func (p *person) listDropped(ctx context.Context) error {
	all, err := p.droppedIn(ctx, p.Name, p.Recursive, false)
	if err != nil {
		return err
	}
	rows := make([]row, 0, len(all))
	for _, each := range all {
		if p.Kind != "" && p.Kind != each.Kind {
			continue
		}
		name := moorage.PersonLevels(each.Levels()...)
		var count *int64
		if each.Summary != nil {
			count = each.Summary.Rows
		}
		rows = append(rows, row{name: name, json: each, cells: []term.Cell{
			{Text: name, Style: term.Name}, term.Text(strings.TrimSuffix(p.out.Time(each.At), " ago")),
			term.Text(cmp.Or(each.By, "-")), term.Number(countOf(count)), term.Text(p.backUntil(each)),
			{Text: droppedNote(each), Style: term.Faint},
		}})
	}
	return p.rows([]string{"NAME", "DROPPED", "BY", "ROWS", "BACK UNTIL", "NOTE"}, rows)
}

// backUntil returns the time until which an object can come back, as text.
func (p *person) backUntil(d client.Dropped) string {
	if d.EndsAt == nil {
		return "-"
	}
	return untilText(*d.EndsAt)
}

// untilText formats a time in the future.
func untilText(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") }

// droppedNote returns a note about a dropped object, if there is something special about it.
func droppedNote(d client.Dropped) string {
	switch {
	case d.Purge == client.PurgeBegun:
		return "purge begun"
	case d.Undrop != client.UndropYes:
		return strings.TrimSuffix(d.Undrop, ".")
	case d.Purge == client.PurgeWaiting:
		return "then purged"
	}
	return ""
}

// removeDropped is the command rm with --dropped: it ends a dropped object before its time.
func removeDropped(ctx context.Context, p *person) error {
	warehouse := p.warehouseOf(p.Name)
	all, err := p.droppedCalled(ctx, warehouse, p.Name.Levels)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(d client.Dropped) bool { return p.ID == "" || d.ID == p.ID })
	if at < 0 {
		return cli.No("nothing dropped is called %s", moorage.PersonLevels(p.Name.Levels...))
	}
	found := all[at]
	name := term.Clean(moorage.PersonLevels(found.Levels()...))
	question := fmt.Sprintf("Forget %s %s, dropped %s%s: it can no longer come back, and its files stay.",
		found.Kind, name, p.out.Time(found.At), byOf(found))
	word, verb := "", "forget"
	if p.Purge {
		question = fmt.Sprintf("Purge %s %s, dropped %s%s", found.Kind, name, p.out.Time(found.At), byOf(found))
		if s := found.Summary; s != nil && s.Rows != nil {
			question += fmt.Sprintf(": %s rows, %s in %s", countOf(s.Rows), sizeOf(s.Bytes), filesOf(s.Files))
		}
		question += ". It can no longer come back, and its files are deleted."
		word, verb = name, "purge"
	}
	if err := p.confirm(ctx, question, word); err != nil {
		return err
	}
	path := client.RootManagement + client.Path("dropped", found.ID, verb)
	if err := p.change(ctx, http.MethodPost, path, nil, nil, nil); err != nil || p.DryRun {
		return err
	}
	if p.Purge {
		p.done("The purge of %s has begun.", name)
	} else {
		p.done("Forgot %s.", name)
	}
	return nil
}

// byOf returns the caller that dropped an object, after the word "by".
func byOf(d client.Dropped) string {
	if d.By == "" {
		return ""
	}
	return " by " + term.Clean(d.By)
}

// droppedLine returns a line about a drop that has just happened. It reports until when the object
// can come back.
func (p *person) droppedLine(ctx context.Context, of object) string {
	line := fmt.Sprintf("Dropped %s %s", of.kind, of)
	if of.kind == kindNamespace {
		return line + "."
	}
	all, err := p.droppedCalled(ctx, of.warehouse, of.levels())
	if err != nil || len(all) == 0 {
		return line + "."
	}
	switch d := all[0]; {
	case d.EndsAt == nil, !d.EndsAt.After(p.out.Now):
		return line + "; its files are deleted now."
	default:
		return fmt.Sprintf("%s; back until %s: moorage undrop %s", line, untilText(*d.EndsAt),
			moorage.ShellWord(p.typed(of)))
	}
}

// typed returns the name of an object in the form of the command line.
func (p *person) typed(of object) string {
	if of.warehouse == p.Warehouse {
		return of.String()
	}
	return cli.Name{Warehouse: of.warehouse, Levels: of.levels()}.String()
}

// wasDropped describes the drop of the object that had a name, and how the object can come back. It
// returns "" if no object with that name was dropped, or if the server does not show it.
func (p *person) wasDropped(ctx context.Context, n cli.Name) string {
	all, err := p.droppedCalled(ctx, p.warehouseOf(n), n.Levels)
	if err != nil || len(all) == 0 {
		return ""
	}
	text := fmt.Sprintf("It was dropped %s%s", p.out.Time(all[0].At), byOf(all[0]))
	if all[0].Undrop != client.UndropYes {
		return text + ". " + all[0].Undrop
	}
	return text + ": moorage undrop " + moorage.ShellWord(n.String())
}

// protectObject is the command protect.
func protectObject(ctx context.Context, p *person) error {
	found, err := p.find(ctx, p.Name)
	if err != nil {
		return err
	}
	query := client.Object{Warehouse: found.warehouse, Namespace: found.namespace}.Query()
	if found.name != "" {
		query = found.query()
		if found.kind == kindView {
			query.Set("view", query.Get("table"))
			query.Del("table")
		}
	}
	body := client.Protection{Protected: !p.Off}
	var done client.Protection
	path := client.RootManagement + client.Path("protection")
	if err := p.change(ctx, http.MethodPut, path, query, body, &done); err != nil || p.DryRun {
		return err
	}
	name, lift := term.Clean(found.String()), "To lift it: moorage protect "+moorage.ShellWord(p.Name.String())+" --off"
	switch {
	case !p.Off && found.name != "":
		p.done("%s cannot be dropped. %s", name, lift)
	case !p.Off:
		p.done("%s and all in it cannot be dropped. %s", name, lift)
	case done.By != nil:
		p.done("%s is still protected, by %s.", name, term.Clean(done.By.String()))
	default:
		p.done("%s can be dropped again.", name)
	}
	return nil
}
