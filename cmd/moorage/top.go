package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"moorage"

	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/internal/worker"
	"moorage/management/client"
)

// top is the command top.
func top(ctx context.Context, p *person) error {
	p.NoPager = p.NoPager || p.Every > 0
	for {
		var answer client.Top
		asked := client.Request{Method: http.MethodGet, Path: client.Path("top")}
		if err := p.server.Do(ctx, asked, &answer); err != nil {
			if ctx.Err() != nil && p.Every > 0 {
				return nil // with --every, a signal is the normal end
			}
			return err
		}
		if err := p.printTop(answer); err != nil || p.Every == 0 {
			return err
		}
		if worker.Sleep(ctx, p.Every); ctx.Err() != nil {
			return nil
		}
	}
}

// printTop prints the activity of a node, in the form of --output.
func (p *person) printTop(answer client.Top) error {
	slices.SortStableFunc(answer.Tables, func(a, b client.BusyTable) int { return p.busier(b, a) })
	switch p.Output {
	case cli.OutputJSON:
		return printJSON(p.out, answer)
	case cli.OutputLines:
		return json.NewEncoder(p.out).Encode(answer)
	case cli.OutputNames:
		for _, each := range answer.Tables {
			p.printName(p.busyName(each))
		}
		return nil
	}
	return p.paged(func(out *term.Output) error {
		if p.Every > 0 && out.IsTerminal {
			fmt.Fprint(out, "\x1b[H\x1b[2J") // the next table replaces the previous one
		}
		node := "node " + answer.Node
		if answer.Nodes > 1 {
			node = fmt.Sprintf("%s, one of %d", node, answer.Nodes)
		}
		fmt.Fprintf(out, "%s, since %s\n", term.Clean(node), out.Time(answer.Since))
		fmt.Fprintf(out, "commits %s/s, p99 %s, conflicts %s/s   loads %s/s, p99 %s\n", rateOf(answer.Commits),
			spanOf(answer.CommitP99), rateOf(answer.Conflicts), rateOf(answer.Loads), spanOf(answer.LoadP99))
		var cells [][]term.Cell
		for _, each := range answer.Tables {
			cells = append(cells, []term.Cell{
				{Text: p.busyName(each), Style: term.Name}, term.Number(rateOf(each.Commits)),
				term.Number(rateOf(each.Conflicts)), term.Number(rateOf(each.Loads)), term.Number(spanOf(each.WaitP99)),
				term.Text(each.LastBy),
			})
		}
		if len(cells) == 0 {
			return nil
		}
		return out.Table([]string{"TABLE", "COMMITS/s", "CONFLICTS/s", "LOADS/s", "WAIT p99", "LAST BY"}, cells)
	})
}

// busier compares two tables as --sort requires.
func (p *person) busier(a, b client.BusyTable) int {
	by := func(of func(client.BusyTable) float64) int { return cmp.Compare(of(a), of(b)) }
	switch p.Sort {
	case cli.SortLoads:
		return by(func(t client.BusyTable) float64 { return t.Loads })
	case cli.SortConflicts:
		return by(func(t client.BusyTable) float64 { return t.Conflicts })
	case cli.SortWait:
		return by(func(t client.BusyTable) float64 { return t.WaitP99 })
	}
	return by(func(t client.BusyTable) float64 { return t.Commits })
}

// busyName returns the name of a table in the form of the command line.
func (p *person) busyName(t client.BusyTable) string {
	name := moorage.PersonLevels(append(slices.Clone(t.Namespace), t.Name)...)
	if t.Warehouse != p.Warehouse {
		name = moorage.PersonLevels(t.Warehouse) + "/" + name
	}
	return name
}

// rateOf formats a number per second.
func rateOf(perSecond float64) string {
	if perSecond < 100 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", perSecond), ".0")
	}
	return term.Count(int64(perSecond))
}

// spanOf formats a number of milliseconds. For 0 it returns "-".
func spanOf(milliseconds float64) string {
	switch {
	case milliseconds == 0:
		return "-"
	case milliseconds < 10:
		return fmt.Sprintf("%.1f ms", milliseconds)
	case milliseconds < 10_000:
		return fmt.Sprintf("%.0f ms", milliseconds)
	}
	return fmt.Sprintf("%.0f s", milliseconds/1000)
}
