package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage/internal/cli"
	"moorage/internal/term"
)

// showGraph prints the snapshots of a table, the latest first, as a graph of parents.
func (p *person) showGraph(ctx context.Context) error {
	if len(p.Name.Levels) == 0 {
		return cli.Usage("--graph takes the name of a table")
	}
	found, err := p.find(ctx, p.Name, kindTable)
	if err != nil {
		return err
	}
	document, err := parseTable(found.loaded.Metadata)
	if err != nil {
		return err
	}
	refs := make(map[int64][]string)
	for _, name := range slices.Sorted(maps.Keys(document.Refs)) {
		id := document.Refs[name].SnapshotID
		refs[id] = append(refs[id], name)
	}
	var rows []row
	var lanes lanes
	for _, each := range slices.Backward(document.Snapshots) {
		joins, line := lanes.next(each.ID, each.Parent)
		if joins != "" && p.Output != cli.OutputLines && p.Output != cli.OutputNames {
			rows = append(rows, row{cells: []term.Cell{term.Text(joins)}})
		}
		id := strconv.FormatInt(each.ID, 10)
		rows = append(rows, row{name: id, json: each, cells: []term.Cell{
			term.Text(line), {Text: id, Style: term.Strong},
			term.Number(strings.TrimSuffix(p.out.Time(time.UnixMilli(each.TimestampMS)), " ago")),
			term.Text(each.Summary["operation"]), term.Text(countOf(each.total("total-records")) + " rows"),
			{Text: strings.Join(refs[each.ID], ", "), Style: term.Name},
		}})
	}
	if p.Output == cli.OutputJSON {
		return printJSON(p.out, document.Snapshots)
	}
	return p.rows(nil, rows)
}

// lanes are the columns of a graph. Each element is the id of the snapshot that follows in that
// column.
type lanes []int64

// next returns the line of a snapshot. If lanes join at the snapshot, it also returns the line
// above, which shows that.
func (l *lanes) next(id int64, parent *int64) (joins, line string) {
	first := slices.Index(*l, id)
	if first < 0 {
		first = len(*l)
		*l = append(*l, id)
	}
	draw := func(mark func(lane int, next int64) (at int, character byte)) string {
		text := []byte(strings.Repeat(" ", 2*len(*l)))
		for lane, next := range *l {
			at, character := mark(lane, next)
			text[at] = character
		}
		return strings.TrimRight(string(text), " ")
	}
	isJoined := func(lane int, next int64) bool { return lane > first && next == id }
	if slices.Contains((*l)[first+1:], id) {
		joins = draw(func(lane int, next int64) (int, byte) {
			if isJoined(lane, next) {
				return 2*lane - 1, '/'
			}
			return 2 * lane, '|'
		})
		var kept lanes
		for lane, next := range *l {
			if !isJoined(lane, next) {
				kept = append(kept, next)
			}
		}
		*l = kept
	}
	line = draw(func(lane int, _ int64) (int, byte) {
		if lane == first {
			return 2 * lane, '*'
		}
		return 2 * lane, '|'
	})
	if parent == nil {
		*l = slices.Delete(*l, first, first+1)
	} else {
		(*l)[first] = *parent
	}
	return joins, line
}
