package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
)

// valueBytesMax is the maximum length of a value in a table on a terminal.
const valueBytesMax = 60

// showRows is the command rows.
func showRows(ctx context.Context, p *person) error {
	found, err := p.find(ctx, p.Name, kindTable)
	if err != nil {
		return err
	}
	query := found.query()
	if p.Limit > 0 {
		query.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Ref != "" {
		query.Set("ref", p.Ref)
	}
	var answer client.Rows
	asked := client.Request{Method: http.MethodGet, Path: client.Path("rows"), Query: query}
	if err := p.server.Do(ctx, asked, &answer); err != nil {
		return err
	}
	switch p.Output {
	case cli.OutputJSON:
		return printJSON(p.out, answer)
	case cli.OutputNames:
		for _, column := range answer.Columns {
			p.printName(column.Name)
		}
		return nil
	case cli.OutputLines:
		for _, row := range answer.Rows {
			if _, err := fmt.Fprintf(p.out, "%s\n", row); err != nil {
				return err
			}
		}
		return nil
	}
	return p.paged(func(out *term.Output) error { return writeRows(out, answer) })
}

// writeRows prints rows as a table. If rows are missing, it also prints why.
func writeRows(out *term.Output, answer client.Rows) error {
	header := make([]string, 0, len(answer.Columns))
	for _, column := range answer.Columns {
		header = append(header, column.Name)
	}
	cells := make([][]term.Cell, 0, len(answer.Rows))
	for _, row := range answer.Rows {
		var values []json.RawMessage
		if err := json.Unmarshal(row, &values); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		line := make([]term.Cell, 0, len(values))
		for _, value := range values {
			line = append(line, valueCell(value))
		}
		cells = append(cells, line)
	}
	if err := out.Table(header, cells); err != nil {
		return err
	}
	if answer.Stopped != "" {
		fmt.Fprintln(out, out.Paint(term.Faint, term.Clean("There may be more rows: "+answer.Stopped+".")))
	}
	return nil
}

// valueCell returns the cell of a value. It removes the quotes of a string, and aligns numbers to
// the right.
func valueCell(value json.RawMessage) term.Cell {
	var text string
	switch {
	case bytes.Equal(value, []byte("null")):
		return term.Cell{Text: "null", Style: term.Faint}
	case json.Unmarshal(value, &text) == nil:
		return term.Text(moorage.Cut(text, valueBytesMax))
	}
	isNumber := value[0] == '-' || value[0] >= '0' && value[0] <= '9'
	return term.Cell{Text: moorage.Cut(string(value), valueBytesMax), Right: isNumber}
}
