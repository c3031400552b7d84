package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
)

// historyPageMax is the maximum number of versions on a page of a history.
const historyPageMax = 50

// showHistory is the command history.
func showHistory(ctx context.Context, p *person) error {
	if p.Graph {
		return p.showGraph(ctx)
	}
	found, err := p.loadHistory(ctx)
	if err != nil {
		return err
	}
	if p.Output == cli.OutputJSON {
		return printJSON(p.out, found)
	}
	versions, older := found.Versions, 0
	if changes := countChanges(versions); !p.All && changes > 0 {
		versions, older = versions[:changes], len(versions)-changes
	}
	rows := make([]row, 0, len(versions))
	for _, version := range versions {
		rows = append(rows, row{name: changeOf(version), json: version, cells: p.versionCells(version)})
	}
	if p.Output == cli.OutputLines || p.Output == cli.OutputNames {
		return p.rows(nil, rows)
	}
	return p.paged(func(out *term.Output) error {
		for _, line := range p.fateLines(found.Object) {
			fmt.Fprintln(out, term.Clean(line))
		}
		cells := make([][]term.Cell, 0, len(rows))
		for _, each := range rows {
			cells = append(cells, each.cells)
		}
		err := out.Table(nil, cells)
		switch {
		case found.Next() != "":
			fmt.Fprintln(out, out.Paint(term.Faint, "There are earlier versions: --all"))
		case older > 0:
			fmt.Fprintln(out, out.Paint(term.Faint, fmt.Sprintf("%s, without callers: --all",
				moorage.Counted(older, "older version"))))
		}
		return err
	})
}

// countChanges returns how many of the versions have a change that the server still has. Those
// versions come first.
func countChanges(versions []client.Event) (n int) {
	for n < len(versions) && versions[n].ID != "" {
		n++
	}
	return n
}

// loadHistory returns the history of the object on the command line: as many changes as the command
// line asks for. If there are fewer, it adds the older versions without changes.
func (p *person) loadHistory(ctx context.Context) (found client.History, err error) {
	query, err := p.beginHistory(ctx, &found)
	for err == nil && found.Next() != "" {
		left, changes := historyPageMax, countChanges(found.Versions)
		isAtChanges := changes == len(found.Versions)
		if !p.All && isAtChanges {
			if left = min(left, p.Tail-changes); left <= 0 {
				break
			}
		}
		query.Set("pageSize", strconv.Itoa(left))
		query.Set("pageToken", found.Next())
		var page client.History
		err = p.askHistory(ctx, query, &page)
		found.Versions = append(found.Versions, page.Versions...)
		found.Complete, found.NextPage = found.Complete || page.Complete, page.NextPage
	}
	return found, err
}

// beginHistory asks for the first page of the history. It returns the query parameters that name
// the object. A table takes precedence over a view, and both over a namespace.
func (p *person) beginHistory(ctx context.Context, page *client.History) (url.Values, error) {
	var tries []client.Object
	n := p.Name
	object := client.Object{Warehouse: p.warehouseOf(n), Namespace: n.Levels}
	if last := len(n.Levels) - 1; last > 0 && !n.IsNamespace {
		in, name := n.Levels[:last], n.Levels[last]
		tries = append(tries, client.Object{Warehouse: object.Warehouse, Namespace: in, Table: name},
			client.Object{Warehouse: object.Warehouse, Namespace: in, View: name})
	}
	if len(n.Levels) > 0 {
		tries = append(tries, object)
	} else {
		tries = append(tries, client.Object{}) // the id names it
	}
	for _, object := range tries {
		query := url.Values{}
		if object.Warehouse != "" {
			query = object.Query()
		}
		if p.ID != "" {
			query.Set("id", p.ID)
		}
		size := historyPageMax
		if !p.All {
			size = min(size, p.Tail)
		}
		query.Set("pageSize", strconv.Itoa(size))
		err := p.askHistory(ctx, query, page)
		if err == nil || !isMissing(err) || p.ID != "" {
			return query, err
		}
	}
	return nil, p.missing(ctx, n, nil)
}

func (p *person) askHistory(ctx context.Context, query url.Values, page *client.History) error {
	asked := client.Request{Method: http.MethodGet, Path: client.Path("history"), Query: query}
	return p.server.Do(ctx, asked, page)
}

// fateLines returns sentences about an object that is not live.
func (p *person) fateLines(object client.HistoryObject) []string {
	dropped := object.Dropped
	if dropped == nil {
		return nil
	}
	levels := object.Namespace
	if object.Name != "" {
		levels = append(levels[:len(levels):len(levels)], object.Name)
	}
	name := moorage.PersonLevels(levels...)
	by := ""
	if dropped.By != "" {
		by = " by " + dropped.By
	}
	first := fmt.Sprintf("%s was dropped %s%s.", name, p.out.Time(dropped.At), by)
	switch object.State {
	case client.StatePurging:
		return []string{first, "Its files are being deleted, so it cannot come back."}
	case client.StateEnded:
		if dropped.How == endedUnregister {
			return []string{strings.Replace(first, "dropped", "unregistered", 1) + " Its files stayed."}
		}
		return []string{first + " " + fateOf(dropped.How)}
	}
	if dropped.EndsAt == nil {
		return []string{first, "Its files are about to be deleted, so it cannot come back."}
	}
	word := cli.Name{Warehouse: p.elsewhere(object.Warehouse), Levels: levels}.String()
	undo := "moorage undrop " + moorage.ShellWord(word)
	if p.ID != "" {
		undo = "moorage undrop --id " + object.ID
	}
	second := fmt.Sprintf("It can come back until %s: %s", dropped.EndsAt.UTC().Format("2006-01-02 15:04"), undo)
	if dropped.Purge == client.PurgeWaiting {
		second += "\nIts files are deleted then."
	}
	return append([]string{first}, strings.Split(second, "\n")...)
}

// The ways in which an object ends; see client.HistoryDrop.
const (
	endedPurge      = "purge"
	endedUnregister = "unregister"
	endedWindow     = "window"
	endedTakeover   = "takeover"
)

// fateOf returns a sentence on how a dropped object ended.
func fateOf(how string) string {
	switch how {
	case endedPurge:
		return "Its files were deleted."
	case endedWindow:
		return "The time to bring it back is over. Its files stayed."
	case endedTakeover:
		return "Another one took its location."
	}
	return "It is gone for good."
}

// elsewhere returns warehouse, or "" if that is the warehouse of names without one.
func (p *person) elsewhere(warehouse string) string {
	if warehouse == p.Warehouse {
		return ""
	}
	return warehouse
}

// changeOf returns the id of the change that made a version. It is empty if the server no longer
// has the change.
func changeOf(version client.Event) string {
	id, _, _ := strings.Cut(version.ID, ".")
	return id
}

const (
	changeDigits = 8  // digits of the id of a change, on a terminal
	detailMax    = 28 // columns of the effect of a change, on a terminal
)

// versionCells returns a version of a history as a row.
func (p *person) versionCells(version client.Event) []term.Cell {
	caller := version.Caller
	if more := len(version.Members) - 1; more > 0 {
		caller += fmt.Sprintf(" +%d", more)
	}
	did, detail := p.whatItDid(version)
	change := changeOf(version)
	if p.out.Width > 0 {
		detail = shortened(detail, detailMax)
		change = change[:min(len(change), changeDigits)]
	}
	return []term.Cell{
		{Text: version.Version, Style: term.Strong},
		term.Number(strings.TrimSuffix(p.out.Time(version.Time), " ago")), term.Text(caller), term.Text(did),
		term.Text(detail), {Text: change, Style: term.Faint},
	}
}

// shortened returns text, cut to at most the given number of characters. A cut text ends in dots.
func shortened(text string, most int) string {
	characters := []rune(text)
	if len(characters) <= most {
		return text
	}
	return string(characters[:most-3]) + "..."
}

// whatItDid returns the effect of a change in one or two words, and the details.
func (p *person) whatItDid(version client.Event) (did, detail string) {
	switch {
	case version.ID == "":
		return "", ""
	case version.Previous != nil:
		levels := append(version.Previous.Namespace, version.Previous.Name)
		return version.Operation, "was " + moorage.PersonLevels(levels...)
	case strings.HasPrefix(version.Operation, "drop-"):
		return version.Operation, strings.Join(nonEmpty(version.Client, version.RequestID), ", ")
	case !strings.HasPrefix(version.Operation, "update-"):
		return version.Operation, version.Client
	}
	for i, action := range version.Actions {
		first, _, _ := strings.Cut(action, " ")
		switch {
		case first == actionAddSnapshot && version.Summary != nil:
			engine, _, _ := strings.Cut(version.Summary.Engine, " ")
			did = strings.Join(nonEmpty(cmp.Or(version.Summary.Operation, "snapshot"), strings.ToLower(engine)), " ")
			return did, deltaText(version.Delta)
		case i == 0:
			did, detail = first, strings.TrimSpace(strings.TrimPrefix(action, first))
		}
	}
	if did == "" {
		return version.Operation, version.Client
	}
	if version.Delta != nil && detail == "" {
		detail = deltaText(version.Delta)
	}
	return did, detail
}

const actionAddSnapshot = "add-snapshot"

// deltaText returns the numbers of rows and files that a commit added to a table, or removed.
func deltaText(delta *client.EventDelta) string {
	if delta == nil {
		return ""
	}
	var words []string
	for _, each := range []struct {
		n    *int64
		what string
	}{{delta.Rows, "row"}, {delta.Files, "file"}} {
		n := valueOr(each.n, 0)
		switch {
		case n == 1 || n == -1:
			words = append(words, signed(n)+" "+each.what)
		case n != 0:
			words = append(words, signed(n)+" "+each.what+"s")
		}
	}
	return strings.Join(words, " ")
}

// signed returns a number with its sign, and with commas between thousands.
func signed(n int64) string {
	sign, digits := "+", strconv.FormatInt(n, 10)
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

func nonEmpty(texts ...string) (some []string) {
	for _, text := range texts {
		if text != "" {
			some = append(some, text)
		}
	}
	return some
}
