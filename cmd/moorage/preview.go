package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
)

const (
	// previewPage is the number of tables in one request of a policy preview. previewMax is the
	// maximum in a whole preview, because for each table the server reads as much as the table's
	// job would.
	previewPage = 10
	previewMax  = 100
)

// previewed has the sums of the effects that a policy would have on the checked tables.
type previewed struct {
	tables, idle, snapshots, due int
	files, bytes                 int64
}

// writePreview prints the effects that a policy would have now. It is called before the policy is
// set.
func writePreview(ctx context.Context, server *client.Client, out io.Writer, words cli.MaintainWords, of string,
	asked client.MaintenancePolicy) error {
	fmt.Fprintf(out, "%s of %s, if they were due now:\n", words.Kind, words.Object)
	preview := client.Request{
		Method: http.MethodPost, Path: client.PolicyPath(of) + "/preview", Query: words.Object.Query(), Body: asked,
		Reads: true,
	}
	preview.Query.Set("pageSize", strconv.Itoa(previewPage))
	var sum previewed
	isWhole := true
	err := client.Pages(ctx, server, preview, func(page client.MaintenancePreviewPage) bool {
		for _, table := range page.Tables {
			sum.add(out, words.Kind, table)
		}
		isWhole = page.Next() == ""
		return sum.tables < previewMax
	})
	if err != nil {
		return err
	}
	sum.write(out, words.Kind)
	if !isWhole {
		fmt.Fprintf(out, "  these are only the first %d tables; maintain run --dry-run shows another\n", sum.tables)
	}
	return nil
}

// add counts the effects on a table, and prints them if there are any.
func (p *previewed) add(out io.Writer, kind string, table client.MaintenancePreview) {
	p.tables++
	p.snapshots, p.files, p.bytes = p.snapshots+table.Snapshots, p.files+table.Files, p.bytes+table.Bytes
	var what string
	switch {
	case table.Failed != "":
		what = table.Failed
	case table.Nothing != "":
		what = "nothing: " + table.Nothing
	case kind == cli.KindSnapshots && table.Snapshots+table.Refs > 0:
		what = fmt.Sprintf("%s and %s would expire, %s would be deleted", moorage.Counted(table.Snapshots, "snapshot"),
			moorage.Counted(table.Refs, "ref"), moorage.Counted(int(table.Files), "file"))
	case kind == cli.KindOrphans && table.Files > 0:
		what = fmt.Sprintf("%s would be deleted, %s", moorage.Counted(int(table.Files), "file"),
			moorage.Counted(int(table.Bytes), "byte"))
	case table.Due:
		p.due++
		what = moorage.Counted(int(table.Files), "file") + " to be compacted"
	default:
		p.idle++
		return
	}
	fmt.Fprintf(out, "  %s: %s\n", table.Object, what)
}

// write prints the sums.
func (p *previewed) write(out io.Writer, kind string) {
	fmt.Fprintf(out, "  %s, %d of them with nothing to do: ", moorage.Counted(p.tables, "table"), p.idle)
	switch kind {
	case cli.KindSnapshots:
		fmt.Fprintf(out, "%s would expire, %s would be deleted\n", moorage.Counted(p.snapshots, "snapshot"),
			moorage.Counted(int(p.files), "file"))
	case cli.KindOrphans:
		fmt.Fprintf(out, "%s would be deleted, %s\n", moorage.Counted(int(p.files), "file"),
			moorage.Counted(int(p.bytes), "byte"))
	default:
		fmt.Fprintf(out, "%s to be compacted\n", moorage.Counted(p.due, "table"))
	}
}
