package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage"
	"moorage/management/client"
)

// kindCompaction is the kind of jobs that programs outside the server do.
const kindCompaction = "compaction"

// preview is what a kind of maintenance would do to a table now. Asking for it changes nothing.
type preview struct {
	kind    string
	failure string                     // why there is no preview; empty if there is
	plan    *client.MaintenancePlan    // of snapshots and orphans
	compact *client.MaintenancePreview // of compaction
	// settings are those in force, by which the preview was made.
	settings map[string]client.MaintenanceValue
}

// previewFiles is how many files a preview names.
const previewFiles = 20

// loadPreview loads the preview that the address asks for; nil if it asks for none.
func loadPreview(ctx context.Context, v *visit, status client.MaintenanceStatus) (*preview, error) {
	made := &preview{kind: v.text("preview")}
	if made.kind == "" {
		return nil, nil
	}
	for _, k := range status.Kinds {
		if k.Kind == made.kind {
			made.settings = k.Settings
		}
	}
	o := v.object()
	asked := client.Request{
		Method: http.MethodPost, Path: "/maintenance/plan", Reads: true,
		Body: client.MaintenanceByHand{Object: o, Kind: made.kind, Sample: previewFiles},
	}
	var err error
	if made.kind == kindCompaction {
		policy := client.MaintenancePolicy{Status: "enabled"}
		for _, k := range status.Kinds {
			if own, isThere := status.Policies[k.Type]; k.Kind == made.kind && isThere {
				policy.Settings, policy.Unsafe = own.Settings, own.Unsafe
			}
		}
		var found client.MaintenancePreviewPage
		asked = client.Request{
			Method: http.MethodPost, Path: client.PolicyPath("icebergCompaction") + "/preview", Query: o.Query(),
			Reads: true, Body: policy,
		}
		if err = v.api.Do(ctx, asked, &found); err == nil && len(found.Tables) > 0 {
			made.compact = &found.Tables[0]
		}
	} else {
		made.plan = new(client.MaintenancePlan)
		err = v.api.Do(ctx, asked, made.plan)
	}
	if refused, ok := errors.AsType[*client.Error](err); ok && statusOf(err) != http.StatusUnauthorized {
		made.failure, made.plan, err = refused.Message, nil, nil
	}
	return made, err
}

// node returns the preview as a part of the page.
func (p *preview) node() g.Node {
	if p == nil {
		return nil
	}
	var says []g.Node
	say := func(format string, values ...any) { says = append(says, text(fmt.Sprintf(format, values...))) }
	more := g.Node(nil)
	switch {
	case p.failure != "":
		say("%s", p.failure)
	case p.plan != nil:
		more = p.files()
		p.says(say)
	case p.compact == nil:
		say("Nothing: the table has no files that a job could compact.")
	case p.compact.Failed != "":
		say("It is not known: %s", p.compact.Failed)
	case p.compact.Nothing != "":
		say("Nothing: %s.", p.compact.Nothing)
	case p.compact.Due:
		say("%s are there to be compacted, which is enough for a job.", moorage.Counted(int(p.compact.Files), "file"))
		say("A program outside the server compacts: it takes the work from the server, and commits.")
	default:
		say("%s are there to be compacted, which is too few for a job.", moorage.Counted(int(p.compact.Files), "file"))
	}
	return panel("Preview of "+p.kind,
		h.Ul(h.Class("says"), g.Map(says, func(each g.Node) g.Node { return h.Li(each) })), more,
		settings(p.settings), h.P(h.Class("faint"), g.Text("The preview has changed nothing.")))
}

// says puts a plan into words.
func (p *preview) says(say func(format string, values ...any)) {
	plan := p.plan
	if plan.Held != "" {
		say("Nothing may be deleted now: %s", plan.Held)
	}
	if plan.Blocked != "" {
		say("The job would stop until an operator intervenes: %s", plan.Blocked)
	}
	expire := 0
	for _, s := range plan.Snapshots {
		if s.Expires {
			expire++
		}
	}
	if len(plan.Snapshots) > 0 {
		say("%d of %s would expire.", expire, moorage.Counted(len(plan.Snapshots), "snapshot"))
	}
	for _, ref := range plan.Refs {
		say("The ref %s would be removed.", ref)
	}
	words := "%s would be deleted."
	if plan.More {
		words = "More than %s would be deleted."
	}
	say(words, moorage.Counted(int(plan.Files), "file"))
	for _, kept := range plan.Kept {
		say("%s would stay: %s.", moorage.Counted(int(kept.Files), "file"), kept.Reason)
	}
	if plan.Manifests > 0 {
		say("To find them the job reads %s.", moorage.Counted(int(plan.Manifests), "manifest"))
	}
}

// files returns which snapshots stay and why, and the first files that would go.
func (p *preview) files() g.Node {
	list := grid{label: "Snapshots in the preview", plain: true,
		columns: []column{{"Snapshot", ""}, {"Then", ""}, {"Why", "wide"}}}
	for _, s := range p.plan.Snapshots {
		then := badge("good", "stays")
		if s.Expires {
			then = badge("bad", "expires")
		}
		list.rows = append(list.rows, []cell{plain(shortID(s.ID)), plain(then), plain(text(s.Why))})
		if len(list.rows) == snapshotRows {
			break
		}
	}
	return g.Group{
		g.Iff(len(list.rows) > 0, func() g.Node {
			return h.Details(h.Summary(g.Text("Each snapshot")), list.node())
		}),
		g.Iff(len(p.plan.Sample) > 0, func() g.Node {
			return h.Details(h.Summary(text(fmt.Sprintf("The first %d of the files", len(p.plan.Sample)))),
				listing(p.plan.Sample))
		}),
	}
}
