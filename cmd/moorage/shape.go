package main

import (
	"context"
	"fmt"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
)

// showShape prints the distribution of a table's live files: by size, or by partition.
func (p *person) showShape(ctx context.Context) error {
	found, err := p.find(ctx, p.Name, kindTable)
	if err != nil {
		return err
	}
	query := found.query()
	query.Set("deep", "true")
	var answer client.Health
	if err := p.get(ctx, client.RootManagement+client.Path("health"), query, &answer); err != nil {
		return err
	}
	if answer.Shape == nil {
		return cli.No("the manifests of %s cannot be read: moorage health %s", found,
			moorage.ShellWord(p.Name.String()))
	}
	shape := *answer.Shape
	header, rows, text := []string{"SIZE OF A FILE", "FILES", "SIZE"}, fileRows(shape), filesText(shape)
	if p.Part == cli.PartPartitions {
		header = []string{"PARTITION", "FILES", "SIZE", "ROWS", "SMALL", "DELETES"}
		rows, text = partitionRows(shape), partitionsText(shape)
	}
	if p.Output != cli.OutputTable && p.Output != cli.OutputWide {
		return p.rows(header, rows)
	}
	return p.paged(func(out *term.Output) error {
		fmt.Fprintln(out, text)
		if shape.Stopped != "" {
			fmt.Fprintf(out, "Only %s were read: %s\n", moorage.Counted(int(shape.Manifests), "manifest"),
				term.Clean(shape.Stopped))
		}
		if len(rows) == 0 {
			return nil
		}
		var cells [][]term.Cell
		for _, each := range rows {
			cells = append(cells, each.cells)
		}
		return out.Table(header, cells)
	})
}

// filesText returns a line with the totals of all files.
func filesText(shape client.Shape) string {
	text := fmt.Sprintf("%s, %s, %s rows", filesOf(&shape.Files), term.Size(shape.Bytes), term.Count(shape.Rows))
	if shape.Deletes > 0 {
		text += fmt.Sprintf("; %s with %s rows", moorage.Counted(int(shape.Deletes), "delete file"),
			term.Count(shape.DeleteRows))
	}
	return text
}

// fileRows returns a row for each class of file sizes.
func fileRows(shape client.Shape) (rows []row) {
	from := int64(0)
	for _, class := range shape.Sizes {
		name := fmt.Sprintf("from %s to %s", term.Size(from), term.Size(class.Below))
		switch {
		case class.Below == 0:
			name = "from " + term.Size(from)
		case from == 0:
			name = "below " + term.Size(class.Below)
		}
		from = class.Below
		rows = append(rows, row{name: name, json: class, cells: []term.Cell{
			term.Text(name), term.Number(term.Count(class.Files)), term.Number(term.Size(class.Bytes)),
		}})
	}
	return rows
}

// partitionsText returns a line with the number of partitions, which also reports which partitions
// the table shows.
func partitionsText(shape client.Shape) string {
	text := moorage.Counted(shape.Partitions, "partition")
	if len(shape.Worst) < shape.Partitions {
		text += fmt.Sprintf("; these %d have the most files below 32 MB", len(shape.Worst))
	}
	return text
}

// partitionRows returns a row for each of the partitions with the most small files.
func partitionRows(shape client.Shape) (rows []row) {
	for _, each := range shape.Worst {
		name := each.Partition
		if name == "" {
			name = "(none)" // the table is not partitioned
		}
		rows = append(rows, row{name: name, json: each, cells: []term.Cell{
			{Text: name, Style: term.Name}, term.Number(term.Count(each.Files)), term.Number(term.Size(each.Bytes)),
			term.Number(term.Count(each.Rows)), term.Number(term.Count(each.Small)),
			term.Number(term.Count(each.Deletes)),
		}})
	}
	return rows
}

// findAt returns the object that show prints. With --at, the object has the metadata of that
// version.
func (p *person) findAt(ctx context.Context) (object, error) {
	if p.Version == "" {
		return p.find(ctx, p.Name)
	}
	found, err := p.find(ctx, p.Name, kindTable, kindView)
	if err != nil {
		return found, err
	}
	query := found.query()
	query.Set("version", p.Version)
	err = p.get(ctx, client.RootManagement+client.Path("metadata"), query, &found.loaded.Metadata)
	return found, err
}
